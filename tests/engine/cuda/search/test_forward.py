"""Forward scores of the kernels ``column_odds`` and ``forward_totals`` on the emulated device.

The expected scores are those of the kernels of the CPU, bit by bit, which ``tests/query/test_columns.py`` compares with
plain computations.
"""

import threading

import numpy as np
import pytest

from swsearch.database.partition import Partition
from swsearch.engine.cuda.runtime.device import Device
from swsearch.engine.cuda.search.forward import ForwardScorer
from swsearch.engine.cuda.search.multi_gpu import CudaDevices
from swsearch.errors import EngineError
from swsearch.query.columns import ColumnModel, column_model
from swsearch.query.profile import ProfileModel
from swsearch.sequences.alphabet import SOFT_MASK_BIT
from swsearch.threads import Threads
from swsearch.typing import Codes, Floats
from tests.engine.cuda.emulation.emulated_device import EmulatedDevice, MakeDevice, opener
from tests.query.test_columns import random_gaps, random_model
from tests.support import random_codes


def family(rng: np.random.Generator, length: int) -> tuple[ProfileModel, Codes]:
    """A query with gaps of its own, and a member of its family, whose Forward score leaves the range of float."""
    member = random_codes(rng, length, 20)
    columns = np.full((length, 20), 0.01)
    columns[np.arange(length), member] += 0.8
    return ProfileModel(columns, random_gaps(rng, length)), member


def subjects_around(rng: np.random.Generator, member: Codes) -> Partition:
    """Members of the family in parts, repeated, with gaps, between other residues, and unrelated subjects."""
    half = len(member) // 2
    around = [random_codes(rng, int(length), 27) for length in rng.integers(1, 200, 7)]
    return Partition.pack([
        member,
        np.concatenate([around[0], member | SOFT_MASK_BIT, around[1], member[half:]]),
        np.concatenate([member[: half - 5], member[half + 6 :]]),
        np.concatenate([member[half:], around[2], member[:half]]),
        member[:1],
        np.full(40, 25, dtype=np.uint8),  # X
        *around,
    ])  # fmt: skip


def expected(model: ColumnModel, query: ProfileModel, subjects: Partition) -> Floats:
    return model.odds(subjects.residues, subjects.starts, subjects.lengths).forward(query)


def assert_same_scores(device: EmulatedDevice, model: ColumnModel, query: ProfileModel, subjects: Partition) -> None:
    scorer = ForwardScorer(lambda: device)
    for one in (query, query.reversed):
        found = scorer.scores(one, [subjects[:3], subjects[3:]], model)
        np.testing.assert_array_equal(found, expected(model, one, subjects))
    scorer.close()
    assert device.used_bytes == 0


@pytest.mark.parametrize("length", [1, 16, 33, 530])
@pytest.mark.parametrize("reversed_order", [False, True])
def test_scores_are_those_of_the_cpu(emulated: MakeDevice, length: int, reversed_order: bool) -> None:
    """One block of rows, several, and two strips of 512 rows."""
    rng = np.random.default_rng(length)
    query, member = family(rng, length)
    device = emulated(reversed_order=reversed_order)
    assert_same_scores(device, column_model(), query, subjects_around(rng, member))
    assert [entry for entry, _ in device.launches] == 2 * ["column_odds", *["forward_totals"] * (1 + (length > 512))]


@pytest.mark.parametrize(("width", "n_first", "n_second"), [(1, 32, 32), (5, 64, 32), (13, 160, 64)])
def test_other_networks(emulated: MakeDevice, width: int, n_first: int, n_second: int) -> None:
    rng = np.random.default_rng(width)
    query, member = family(rng, 20)
    assert_same_scores(emulated(), random_model(rng, width, n_first, n_second), query, subjects_around(rng, member))


def test_values_far_below_a_power_of_two_are_lost_as_on_the_cpu(emulated: MakeDevice) -> None:
    """Two members after each other: the second begins where 1 is nothing beside the values of the first. The columns
    are those of one letter, so the first rows have scores that are far from those of the others.
    """
    rng = np.random.default_rng(7)
    query, member = family(rng, 90)
    query.columns[:16] = 1e-6
    query.columns[40:56] = 0.0  # no alignment passes, but gaps do
    subjects = [np.concatenate([member, random_codes(rng, n, 20), member]) for n in (0, 3, 60, 200, 400)]
    assert_same_scores(emulated(), column_model(), query, Partition.pack(subjects))


def test_subjects_in_any_order_and_none(emulated: MakeDevice) -> None:
    rng = np.random.default_rng(8)
    query, member = family(rng, 40)
    subjects = subjects_around(rng, member)
    chosen = rng.permutation(len(subjects))[:9]
    assert_same_scores(emulated(), column_model(), query, subjects[chosen])
    assert_same_scores(emulated(), column_model(), query, subjects[:0])


def test_an_engine_without_memory_leaves_the_scores_to_the_caller(emulated: MakeDevice) -> None:
    rng = np.random.default_rng(9)
    query, member = family(rng, 40)
    device = emulated(memory_bytes=1 << 20)
    held = device.allocate(1000 << 10)
    scorer = ForwardScorer(lambda: device)
    subjects = subjects_around(rng, member)
    assert scorer.scores(query, [subjects]) is None
    held.free()
    assert scorer.scores(query, [subjects]) is not None
    scorer.close()


def test_calls_at_the_same_time_use_different_devices() -> None:
    """A call that follows another uses its device, which is open."""
    rng = np.random.default_rng(10)
    query, member = family(rng, 30)
    subjects = subjects_around(rng, member)
    opened: list[tuple[int, EmulatedDevice]] = []
    both_opened = threading.Barrier(2)

    def open_device(ordinal: int) -> Device:
        device = opener()(ordinal)
        opened.append((ordinal, device))
        if threading.current_thread().name.startswith("forward"):
            both_opened.wait(60)
        return device

    with CudaDevices([0, 1], open_device) as engine, Threads(2) as threads:
        both = [threads.submit(engine.forward, query, [subjects]) for _ in range(2)]
        for found in [*(call.result() for call in both), engine.forward(query, [subjects])]:
            np.testing.assert_array_equal(found, expected(column_model(), query, subjects))
        launched = {ordinal: len(device.launches) for ordinal, device in opened if device.launches}
    assert launched in ({0: 2, 1: 4}, {0: 4, 1: 2})
    assert all(device.used_bytes == 0 for _, device in opened)
    with pytest.raises(EngineError, match="closed"):
        engine.forward(query, [subjects])


@pytest.mark.gpu
def test_scores_of_a_gpu() -> None:
    rng = np.random.default_rng(11)
    with CudaDevices([0]) as engine:
        for length in (1, 350, 1100):
            query, member = family(rng, length)
            subjects = Partition.pack([
                *(subjects_around(rng, member).codes(row) for row in range(13)),
                *(random_codes(rng, int(n), 27) for n in rng.integers(1, 2000, 500)),
            ])  # fmt: skip
            for one in (query, query.reversed):
                np.testing.assert_array_equal(engine.forward(one, [subjects]), expected(column_model(), one, subjects))
