"""Plans, tiles and launch shapes: pure functions, compared with calculations by hand."""

import re
import tracemalloc

import numpy as np
import pytest

from swsearch.database.partition import Partition
from swsearch.engine.cuda.runtime.kernels import MAX_LIST_WARPS, Arithmetic, Pairing, Tile
from swsearch.engine.cuda.runtime.pycuda_device import MultiprocessorLimits, fitting_blocks
from swsearch.engine.cuda.search.launches import IntraTaskTeams, choose_teams, intra_task_teams
from swsearch.engine.cuda.search.planner import ROW_UNIT, bound_limit, first_long, layout, pair_queries
from swsearch.engine.cuda.search.subjects import BYTES_PER_SUBJECT, device_bytes, pieces_of
from swsearch.engine.cuda.search.tiles import choose_list_tile, tiles
from swsearch.folders import resource_folder
from swsearch.query.profile import QueryProfile, sequence_profile
from swsearch.scoring.matrix import named_matrix
from swsearch.scoring.scheme import GapPenalty, ScoringScheme
from tests.support import random_codes

ARCHITECTURES = [75, 80, 86, 89, 90, 110, 120]


def profile(length: int, gap: GapPenalty | None = None) -> QueryProfile:
    codes = random_codes(np.random.default_rng(length), length)
    return sequence_profile(codes, ScoringScheme(named_matrix("BLOSUM62"), gap or GapPenalty(11, 1)))


def test_a_tiles_rows_and_memory() -> None:
    """By hand: 8 lanes x 28 words x 2 halves; 7 chunks of 8 slots: 4 planes of 16 units; 4 columns hold no letter."""
    tile = Tile(Pairing.TWO_BLOCKS, 8, 28)
    assert tile.rows == 448
    assert tile.strips(448) == 1
    assert tile.strips(449) == 2
    assert tile.strip_units == 4 * 28 * 16
    assert tile.shared_bytes() == (4 * 28 * 16 + 4 * 16) * 16
    assert Tile(Pairing.TWO_QUERIES, 4, 6).planes == 1
    assert Tile(Pairing.ONE_SCORE, 32, 7).planes == 4
    assert Tile(Pairing.ONE_SCORE, 32, 1).rows == 32


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("pairing", [Pairing.TWO_BLOCKS, Pairing.TWO_QUERIES])
def test_every_query_length_has_a_tile_that_fits_the_device(architecture: int, pairing: Pairing) -> None:
    """The architectures' limits: 64 KB of shared memory per block on 7.5, 99 KB and more on the others."""
    max_bytes = 64 * 1024 if architecture == 75 else 99 * 1024
    for shape in tiles(architecture, pairing):
        assert shape.tile.shared_bytes() <= max_bytes
        assert shape.threads % 32 == 0
        assert shape.tile.rows % ROW_UNIT == 0


@pytest.mark.parametrize("lengths", [
    (1,), (2,), (30,), (144,), (449,), (5478,), (100_000,), (1, 1), (30, 31), (144, 189), (449, 500), (700, 5478),
])  # fmt: skip
def test_strips_cover_every_row_once(lengths: tuple[int, ...]) -> None:
    """Two queries share words until the shorter one ends; the longer one continues alone; only the last strip pads."""
    for architecture in ARCHITECTURES:
        found = layout(architecture, lengths)
        row = 0
        for index, strip in enumerate(found.strips):
            assert row < lengths[-1]
            shared = strip.tile.pairing is Pairing.TWO_QUERIES
            assert shared == (len(lengths) == 2 and row < lengths[0]) or row >= lengths[0]
            above = found.strips[max(index - 1, 0)].tile.pairing
            mode = "kNone" if len(found.strips) == 1 else "kOwn" if above is strip.tile.pairing else "kReadsPair"
            assert dict(found.kernels[index].constants)["EDGES"] == mode
            row += strip.tile.rows
        assert row >= lengths[-1]


def test_rows_cost_no_more_than_the_fullest_tiles_and_one_that_fits() -> None:
    """By hand: the simplest cover of n rows, full tiles of one shape and a last one, is an upper bound of the cost."""
    shapes = tiles(90, Pairing.TWO_BLOCKS)
    for length in range(225, 3000, 97):
        cost = layout(90, (length,)).cost
        for shape in shapes:
            full, rest = divmod(length, shape.tile.rows)
            last = min((s.edges for s in shapes if s.tile.rows >= rest), default=0.0) if rest else 0.0
            assert cost <= full * shape.edges + last + 1e-9


def test_queries_of_like_length_share_words_and_others_do_not() -> None:
    profiles = [profile(length) for length in (400, 40, 398, 3000)]
    batches = pair_queries(profiles, 90)
    assert sorted(batches) == [(1,), (2, 0), (3,)]
    different = [profile(400), profile(400, GapPenalty(10, 2))]
    assert len(pair_queries(different, 90)) == 2


def test_the_limit_of_a_bound_never_loses_a_score() -> None:
    """By hand: T - open - 4 x extend; T is at most the largest exact value, 2047 minus the best pair score, 11."""
    assert bound_limit(profile(10), 15) is None
    assert bound_limit(profile(10), 16) == 1
    assert bound_limit(profile(10), 72) == 72 - 15
    best = profile(10).max_score
    assert bound_limit(profile(10), 100_000) == 2047 - best - 15


def test_subjects_beyond_a_groups_fair_share_are_long() -> None:
    lengths = np.sort(np.concatenate([np.full(1000, 300), [1499, 1500, 1501, 9000]])).astype(np.uint32)
    n_residues = int(lengths.sum())
    assert lengths[first_long(lengths, n_residues, 10**6, 1500)] == 1501
    assert first_long(lengths, n_residues, 1, 1500) == len(lengths)


def test_gap_costs_of_the_fast_type_are_at_most_its_largest_score() -> None:
    """By hand: a gap of a first residue that costs 2,047 or more leaves nothing of a score that is exact."""
    given = ((11, 1), (0, 2047), (2040, 7), (2040, 8), (2100, 5), (0, 5000), (30_000, 30_000))
    wanted = [(11, 1), (0, 2047), (2040, 7), (2039, 8), (2042, 5), (0, 2047), (0, 2047)]
    assert [Arithmetic.FAST.gap_costs(*costs) for costs in given] == wanted
    assert Arithmetic.SHORT.gap_costs(2100, 5) == (2100, 5)
    assert choose_list_tile(90, Arithmetic.WIDE, 50, tall=False).pairing is Pairing.ONE_SCORE


def test_teams_share_the_strips_of_a_query_that_fits() -> None:
    """By hand: a strip of 4 words is 2 planes of 28 columns x 256 bytes; 64 KB hold four strips and the slack."""
    tile = choose_list_tile(90, Arithmetic.SHORT, 700, tall=False)
    assert (tile.rows, tile.shared_bytes(4)) == (256, (4 * 2 * 28 * 16 + 4 * 16) * 16)
    max_bytes = 227 * 1024
    assert intra_task_teams(tile, 1, max_bytes, alone=True) == [IntraTaskTeams(n, 1, 1) for n in range(1, 17)]
    assert intra_task_teams(tile, 3, max_bytes, alone=False) == [IntraTaskTeams(3 * n, 3, 3) for n in range(1, 6)]
    assert intra_task_teams(tile, 5, max_bytes, alone=False) == [IntraTaskTeams(5 * n, 5, 5) for n in (1, 2, 3)]
    assert intra_task_teams(tile, 40, max_bytes, alone=False) == [IntraTaskTeams(16, 16, 16)]
    assert intra_task_teams(tile, 40, 64 * 1024, alone=False) == [IntraTaskTeams(4, 4, 4)]
    assert intra_task_teams(tile, 4, 64 * 1024, alone=False) == [IntraTaskTeams(4 * n, 4, 4) for n in (1, 2, 3, 4)]
    assert intra_task_teams(tile, 40, max_bytes, alone=True) == [IntraTaskTeams(3, 1, 3)]


def test_numbers_that_stand_in_python_and_in_the_kernels() -> None:
    source = (resource_folder("cuda") / "search" / "intra_task.cuh").read_text()
    named = dict(re.findall(r"constexpr int (k\w+) = (\d+);", source))
    assert int(named["kMostTeams"]) >= MAX_LIST_WARPS // 2  # a team has at least two warps


def test_a_long_list_takes_large_blocks() -> None:
    """By hand: 100 multiprocessors; blocks of two teams would give some of them four of 300 subjects, others two.

    Of 350 each has four, in two blocks or in one. Of the blocks with the most subjects at a time, the largest is taken.
    """
    teams = [IntraTaskTeams(2 * n, 2, 2) for n in (1, 2, 3, 4)]
    choices = list(zip(teams, [300, 400, 300, 400], strict=True))
    assert choose_teams(choices, 100, 100) == (teams[0], 300)
    assert choose_teams(choices, 300, 100) == (teams[0], 300)
    assert choose_teams(choices[1:], 300, 100) == (teams[2], 300)
    assert choose_teams(choices, 350, 100) == (teams[1], 400)
    assert choose_teams(choices, 900, 100) == (teams[3], 400)


def test_blocks_on_a_multiprocessor() -> None:
    """By hand, for Hopper's limits: 128 registers x 256 threads use half of 65,536; shared memory; threads."""
    hopper = MultiprocessorLimits(threads=2048, registers=65_536, shared_bytes=233_472)
    assert fitting_blocks(hopper, 256, 128, 26_000) == 2
    assert fitting_blocks(hopper, 256, 120, 26_000) == 2
    assert fitting_blocks(hopper, 256, 64, 26_000) == 4
    assert fitting_blocks(hopper, 256, 64, 100_000) == 2
    assert fitting_blocks(hopper, 1024, 24, 0) == 2
    assert fitting_blocks(hopper, 256, 255, 230_000) == 1


def assert_divides(pieces: list[Partition], partition: Partition, limit: int) -> None:
    """The pieces are the subjects in their order, and a piece beyond the limit is one subject."""
    np.testing.assert_array_equal(np.concatenate([piece.starts for piece in pieces]), partition.starts)
    assert all(len(piece) == 1 or device_bytes(piece) <= limit for piece in pieces)


def test_pieces_cover_a_partition_within_their_limit() -> None:
    rng = np.random.default_rng(5)
    partition = Partition.pack([random_codes(rng, int(length)) for length in rng.integers(1, 200, 60)])
    whole = device_bytes(partition)
    first, last = partition.residue_span
    assert whole == last - first + 60 * BYTES_PER_SUBJECT
    for limit in (1, 300, 1000, whole - 1, whole):
        assert_divides(pieces_of(partition, limit), partition, limit)
    assert len(pieces_of(partition, whole)) == 1
    assert len(pieces_of(partition, whole - 1)) == 2
    assert len(pieces_of(partition, 1)) == 60
    assert pieces_of(Partition.pack([]), 100) == []


def test_a_partition_is_divided_without_copies_of_its_arrays() -> None:
    """By hand: a subject takes 64 + 12 bytes, and 100 pieces of 10,000 subjects are as few as possible."""
    n = 1_000_000
    starts, lengths = np.arange(n, dtype=np.uint64) * np.uint64(64), np.full(n, 64, np.uint32)
    partition = Partition(np.empty(0, np.uint8), starts, lengths, np.arange(n, dtype=np.uint32))
    tracemalloc.start()
    pieces = pieces_of(partition, 76 * 10_000)
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [len(piece) for piece in pieces] == [10_000] * 100
    assert most_bytes < n


def test_a_subject_beyond_the_limit_is_a_piece_of_its_own() -> None:
    rng = np.random.default_rng(7)
    partition = Partition.pack([random_codes(rng, length) for length in (5, 9, 30, 35, 4000)])
    pieces = pieces_of(partition, 200)
    assert_divides(pieces, partition, 200)
    assert [len(piece) for piece in pieces] == [4, 1]


@pytest.mark.parametrize("removed", [False, True])
def test_pieces_are_few_and_of_similar_sizes(removed: bool) -> None:
    """Gaps left by removed subjects count, because they are copied too."""
    rng = np.random.default_rng(6)
    partition = Partition.pack([random_codes(rng, int(length)) for length in rng.integers(1, 100, 4000)])
    if removed:
        left = np.flatnonzero(rng.random(4000) < 0.7)
        partition = Partition(
            partition.residues, partition.starts[left], partition.lengths[left], partition.subject_index[left]
        )
    limit = device_bytes(partition) // 3 + 500
    pieces = pieces_of(partition, limit)
    assert_divides(pieces, partition, limit)
    assert len(pieces) == 3
    assert min(map(device_bytes, pieces)) > 0.95 * limit
