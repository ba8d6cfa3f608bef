"""Plans of large searches. Expected values: computed by hand from the rates that a test names."""

import pytest

from swsearch.errors import InputError
from swsearch.planning import DatabaseSize, Machine, plan, slices_needed


def test_a_small_plan_is_that_computed_by_hand():
    """1,000 residues in 10 sequences take 1,000 + 10 · 7.5 + 10 · 12 bytes; 100 queries of 50 are 5,000,000 cells."""
    database = DatabaseSize.of_counts(1000, 10)
    one = plan(database, Machine.of_gpus("X1", gcups=0.001, memory_bytes=1e9), 100, 50, price=3600.0, disk_rate=1195.0)
    assert (database.device_bytes, one.n_cells, one.placement) == (1195, 5_000_000, "resident")
    assert one.query_seconds == pytest.approx(0.05)
    assert one.total_seconds == pytest.approx(1 + 100 * 0.05)
    assert one.cost == pytest.approx(one.total_seconds)


@pytest.mark.parametrize(
    ("memory", "placement", "slices", "pieces", "factor"),
    [
        (1195 / 0.04 + 1, "resident", 1, 1, 0.95),  # 4 % of the memory holds the 1,195 bytes
        (1195 / 0.04 - 1, "shared", 1, 1, 0.89),  # 4 % of two memories do
        (1195 / 0.08 - 1, "streamed", 1, 3, 0.75 * 0.95),
        (1195 / 0.7 - 1, "sliced", 2, 9, 0.75 * 0.95),  # 70 % no longer holds them; 597.5 bytes, 68.2 at a time
    ],
)
def test_the_placement_follows_from_the_memory(memory, placement, slices, pieces, factor):
    one = plan(DatabaseSize.of_counts(1000, 10), Machine.of_gpus("2xX1", 1.0, memory), 1, 50)
    assert (one.placement, one.n_slices, one.n_pieces) == (placement, slices, pieces)
    assert one.gcups == pytest.approx(2 * factor)


@pytest.mark.parametrize(
    ("n_bytes", "room", "n_workers", "expected"),
    [(100, 100, 8, 1), (101, 100, 8, 2), (450, 100, 8, 8), (850, 100, 8, 16), (450, 100, 1, 5)],
)
def test_slices_divide_evenly_among_the_workers(n_bytes, room, n_workers, expected):
    assert slices_needed(n_bytes, room, n_workers) == expected


def test_the_cores_of_a_cpu_add_up():
    one = plan(DatabaseSize.of_counts(359_000_000, 1_000_000), Machine(None, 10), 1, 100)
    assert one.query_seconds_each == pytest.approx(1.0)
    assert one.query_seconds == pytest.approx(0.1)


def test_a_database_has_at_least_as_many_residues_as_sequences():
    with pytest.raises(InputError, match="more than the 5 residues"):
        DatabaseSize.of_counts(5, 6)
