"""Properties of the CPU engine alone: paths for long subjects, rescoring, interruption, and validation of arguments.

The expected scores come from the reference engine, from the scalar kernels, or from calculation by hand.
"""

from functools import cache

import numpy as np
import pytest

from swsearch import _native
from swsearch.database.partition import Partition
from swsearch.engine.cpu.engine import CpuEngine, cpu_info, usable_instruction_sets
from swsearch.engine.protocol import ScoreEngine, score_requests
from swsearch.engine.reference import ReferenceEngine, local_scores
from swsearch.errors import EngineError, EngineUnavailable, InputError
from swsearch.query.profile import QueryProfile, sequence_profile
from swsearch.scoring.matrix import match_mismatch
from swsearch.scoring.scheme import GapPenalty, ScoringScheme, default_scheme
from swsearch.sequences.alphabet import DNA, PROTEIN
from swsearch.typing import Scores
from tests.patience import interrupt
from tests.support import by_position, random_dna, random_profile, random_protein


@pytest.fixture(params=usable_instruction_sets())
def instruction_set(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def test_it_is_a_score_engine() -> None:
    """The engine passes the protocol's own check."""
    assert isinstance(CpuEngine(), ScoreEngine)


def test_info_names_the_instruction_set_it_takes() -> None:
    """The best usable instruction set is the first, and the scalar kernels run everywhere."""
    names = [name for name, _ in _native.instruction_sets()]
    assert names[-1] == "scalar"
    assert "scalar" in usable_instruction_sets()
    info = cpu_info()
    assert info.usable
    assert info.detail.startswith(usable_instruction_sets()[0])


def test_a_long_subject_in_windows_scores_as_a_whole(instruction_set: str) -> None:
    """Expected values: the reference engine. Copies of the query cross the ends of windows of every size."""
    rng = np.random.default_rng(1)
    query = random_dna(rng, 24)
    for period in (997, 1500):
        genome = random_dna(rng, 60_000)
        for start in range(period, 59_000, period):
            copy = np.delete(query, rng.integers(2, 22))
            genome[start : start + 11] = copy[:11]
            genome[start + 14 : start + 14 + 12] = copy[11:]
        profile = sequence_profile(query, default_scheme(DNA))
        for threads in (1, 3):
            subjects = Partition.pack([genome, genome[:70]])
            (block,) = CpuEngine(threads, instruction_set).score(score_requests([profile]), subjects)
            assert block.score.tolist() == local_scores(profile, [genome[:70], genome])


def test_saturated_windows_are_rescored_exactly(instruction_set: str) -> None:
    """Expected values: the reference engine; one repeat, in one window of many, scores beyond 8 bits."""
    rng = np.random.default_rng(2)
    query = random_dna(rng, 40)
    genome = random_dna(rng, 200_000)
    genome[123_456 : 123_456 + 40] = query
    scheme = ScoringScheme(match_mismatch(9, -20), GapPenalty(90, 30))
    profile = sequence_profile(query, scheme)
    (block,) = CpuEngine(2, instruction_set).score(score_requests([profile]), Partition.pack([genome, query]))
    assert block.score.tolist() == [360, 360]
    assert block.n_rescored == 2


def test_a_gap_without_extension_cost_may_span_anything(instruction_set: str) -> None:
    """Expected value by hand: two halves 49,000 residues apart, 60 matches of 5 minus 7 for a gap of any length."""
    rng = np.random.default_rng(3)
    left, right = random_dna(rng, 30), random_dna(rng, 30)
    genome = np.concatenate([left, random_dna(rng, 49_000), right])
    profile = sequence_profile(np.concatenate([left, right]), ScoringScheme(match_mismatch(5, -9), GapPenalty(7, 0)))
    (block,) = CpuEngine(2, instruction_set).score(score_requests([profile]), Partition.pack([genome]))
    assert block.score[0] == local_scores(profile, [genome])[0] >= 293


@pytest.mark.parametrize(
    ("match", "flank", "extend", "filler"), [(5, 20, 0, 400), (60, 40, 1, 400), (127, 300, 2, 1000)]
)
def test_a_gap_in_the_query_reaches_over_any_number_of_lanes(
    instruction_set: str, match: int, flank: int, extend: int, filler: int
) -> None:
    """Expected value by hand, in 8, 16 and 32 bits: the query's filler matches nothing, so it forms one gap."""
    rng = np.random.default_rng(9)
    left, right = rng.integers(0, 3, (2, flank), dtype=np.uint8)
    query = np.concatenate([left, np.full(filler, 3, np.uint8), right])
    profile = sequence_profile(query, ScoringScheme(match_mismatch(match, -100), GapPenalty(7, extend)))
    engine = CpuEngine(1, instruction_set)
    (block,) = engine.score(score_requests([profile]), Partition.pack([np.concatenate([left, right])]))
    assert block.score.tolist() == [2 * flank * match - 7 - filler * extend]


@cache
def _query_of_several_blocks() -> tuple[QueryProfile, Partition, Scores]:
    """Return a query whose best alignments cross the borders of its row blocks, and the reference engine's scores."""
    rng = np.random.default_rng(4)
    query = random_protein(rng, 4200)
    subjects = [query[start : start + 90].copy() for start in (0, 2000, 2040, 4050, 4110)]
    subjects += [random_protein(rng, int(length)) for length in rng.integers(80, 100, 64)]  # more than one per lane
    partition = Partition.pack(subjects)
    profile = sequence_profile(query, ScoringScheme(default_scheme(PROTEIN).matrix, GapPenalty(3, 1)))
    (expected,) = ReferenceEngine().score(score_requests([profile]), partition)
    return profile, partition, expected.score


def test_queries_longer_than_a_block_of_rows(instruction_set: str) -> None:
    """Expected values: the reference engine."""
    profile, partition, expected = _query_of_several_blocks()
    for form in (profile, by_position(profile)):
        (block,) = CpuEngine(2, instruction_set).score(score_requests([form]), partition)
        np.testing.assert_array_equal(block.score, expected)


def test_all_instruction_sets_agree_on_random_profiles() -> None:
    """Expected values: the scalar kernels, which share only the template of the recurrence with the others."""
    for seed in range(12):
        rng = np.random.default_rng(100 + seed)
        gap = GapPenalty(int(rng.integers(0, 30)), int(rng.integers(1, 12)))
        subjects = [rng.integers(0, 31, int(n), dtype=np.uint8) for n in rng.integers(0, 400, rng.integers(1, 400))]
        partition = Partition.pack(subjects)
        high = int(rng.integers(1, 60))
        profiles = [
            random_profile(rng, int(rng.integers(1, 150)), int(rng.integers(1, 60)), gap, -high, high // 2 + 1)
            for _ in range(3)
        ]
        judged = CpuEngine(1, "scalar").score(score_requests(profiles), partition)
        for name in usable_instruction_sets():
            found = CpuEngine(2, name).score(score_requests(profiles), partition)
            for block, expected in zip(found, judged, strict=True):
                np.testing.assert_array_equal(block.score, expected.score, err_msg=f"seed {seed}, {name}")


@cache
def _queries_to_pack() -> tuple[list[QueryProfile], Partition, list[Scores]]:
    """Return queries, only some of which can share passes, and the scores of each alone by the scalar kernels."""
    rng = np.random.default_rng(8)
    proteins = default_scheme(PROTEIN)
    gap = proteins.gap
    profiles = [sequence_profile(random_protein(rng, length), proteins) for length in (1, 40, 144, 9, 40)]
    profiles += [
        random_profile(rng, 30, 12, gap, -9, 12),  # together with the previous table more than 32 rows
        random_profile(rng, 50, 45, gap, -9, 12),
        random_profile(rng, 3, 1, gap, -9, 12),
        sequence_profile(random_protein(rng, 2100), proteins),
        sequence_profile(random_protein(rng, 60), ScoringScheme(proteins.matrix, GapPenalty(3, 1))),
        sequence_profile(random_protein(rng, 60), ScoringScheme(proteins.matrix, GapPenalty(300, 1))),
        sequence_profile(random_protein(rng, 75), proteins),
    ]
    subjects = [random_protein(rng, int(length)) for length in rng.integers(0, 60, 300)]
    subjects += [random_protein(rng, 4000), profiles[8].rows.astype(np.uint8)[:1500]]
    partition = Partition.pack(subjects)
    alone = [CpuEngine(1, "scalar").score(score_requests([profile]), partition)[0].score for profile in profiles]
    return profiles, partition, alone


@pytest.mark.parametrize("packing", [[12], [5, 4, 3], [1, 11]])
def test_queries_score_the_same_however_they_are_packed(instruction_set: str, packing: list[int]) -> None:
    """Expected values: the scalar kernels with one query per call; with threads, in both orders, and with floors."""
    profiles, partition, alone = _queries_to_pack()
    for order in (list(range(12)), list(range(11, -1, -1))):
        first = 0
        for count in packing:
            chosen = order[first : first + count]
            first += count
            for floor in (None, 20):
                floors = None if floor is None else [floor] * count
                requests = score_requests([profiles[i] for i in chosen], floors)
                blocks = CpuEngine(2, instruction_set).score(requests, partition)
                for i, block in zip(chosen, blocks, strict=True):
                    passing = np.flatnonzero(alone[i] >= (floor or 0))
                    np.testing.assert_array_equal(block.score, alone[i][passing])
                    np.testing.assert_array_equal(block.subject_index, partition.subject_index[passing])


def test_profiles_of_a_call_keep_their_own_gap_costs() -> None:
    """Expected values: a gap of five residues in a copy of the query, by hand from the costs of each profile."""
    query = random_protein(np.random.default_rng(5), 60)
    matrix = default_scheme(PROTEIN).matrix
    subject = np.delete(query, np.arange(28, 33))
    partition = Partition.pack([subject])
    profiles = [sequence_profile(query, ScoringScheme(matrix, GapPenalty(5, extend))) for extend in (1, 2, 3)]
    pairs = int(matrix.scores[subject, subject].sum())
    with CpuEngine(1) as engine:
        found = [int(block.score[0]) for block in engine.score(score_requests(profiles), partition)]
    assert found == [pairs - (5 + 5 * extend) for extend in (1, 2, 3)]


def test_calls_have_more_rows_with_more_threads() -> None:
    """Expected values: 2,040 rows for each two threads, as docs/design/cpu-engine.md states."""
    assert [CpuEngine(threads).rows_per_call for threads in (1, 2, 3, 16)] == [2040, 2040, 2040, 16_320]


def test_large_partitions_are_scored_in_pieces() -> None:
    """Expected values: the scalar kernels with one query per call; `scores_per_call` divides the partition."""
    profiles, partition, alone = _queries_to_pack()
    seen: list[int] = []
    blocks = CpuEngine(2, scores_per_call=500).score(score_requests(profiles), partition, seen.append)
    for block, score in zip(blocks, alone, strict=True):
        np.testing.assert_array_equal(block.score, score)
        np.testing.assert_array_equal(block.subject_index, partition.subject_index)
    assert sum(seen) == sum(profile.length for profile in profiles) * partition.n_residues


def test_only_saturated_subjects_are_counted_as_rescored(instruction_set: str) -> None:
    """Expected values by hand: in 8 bits, 255 is indistinguishable from a larger score, and 254 is not."""
    table = np.full((1, 32), -1, dtype=np.int8)
    table[0, 0] = 1
    profile = QueryProfile(np.zeros(300, np.int32), table, GapPenalty(5, 5))
    subjects = [np.zeros(length, np.uint8) for length in (10, 253, 254, 255, 256, 300)]
    (block,) = CpuEngine(1, instruction_set).score(score_requests([profile]), Partition.pack(subjects))
    assert block.score.tolist() == [10, 253, 254, 255, 256, 300]
    assert block.n_rescored == 3


@cache
def _many_subjects_with_scores_everywhere() -> tuple[list[QueryProfile], Partition, list[Scores], list[int]]:
    """Return enough subjects for bounds, with parts of the queries, so that scores range from 0 to beyond 16 bits."""
    rng = np.random.default_rng(7)
    profiles = [
        sequence_profile(random_protein(rng, 70), default_scheme(PROTEIN)),
        sequence_profile(random_protein(rng, 33), default_scheme(PROTEIN)),
        random_profile(rng, 60, 20, GapPenalty(0, 1), -9, 9),
        random_profile(rng, 60, 20, GapPenalty(6, 0), -90, 30),
        random_profile(rng, 700, 500, GapPenalty(100, 9), -120, 120),
    ]
    subjects = [random_protein(rng, int(length)) for length in rng.integers(1, 40, 2500)]
    for profile in profiles:
        best = profile.table[:, :25].argmax(axis=1).astype(np.uint8)[profile.rows]
        subjects += [best[start : start + int(rng.integers(2, 700))] for start in rng.integers(0, len(best), 25)]
        subjects.append(np.delete(best, [20, 21, 25]))
    partition = Partition.pack(subjects)
    blocks = CpuEngine(1, "scalar").score(score_requests(profiles), partition)
    return profiles, partition, [block.score for block in blocks], [block.n_rescored for block in blocks]


def test_floors_leave_every_score_that_reaches_them_exact(instruction_set: str) -> None:
    """Expected values: the scalar kernels without floors, which the protocol's tests compare with the reference."""
    profiles, partition, expected, n_rescored = _many_subjects_with_scores_everywhere()
    for floor in (14, 40, 61, 120, 254, 255, 256, 4000, 40_000):
        blocks = CpuEngine(2, instruction_set).score(score_requests(profiles, [floor] * len(profiles)), partition)
        for block, score, n_wide in zip(blocks, expected, n_rescored, strict=True):
            passing = np.flatnonzero(score >= floor)
            np.testing.assert_array_equal(block.subject_index, partition.subject_index[passing])
            np.testing.assert_array_equal(block.score, score[passing])
            assert block.n_rescored == n_wide


@pytest.mark.parametrize("kind", ["many", "one"])
def test_an_interrupt_ends_a_search_quickly(kind: str) -> None:
    """Ctrl-C takes effect while most of the work remains, even in the middle of one very long pair."""
    rng = np.random.default_rng(5)
    length = 4_000_000 if kind == "one" else 3000
    query = random_dna(rng, 20_000 if kind == "many" else 60_000)
    partition = Partition.pack([random_dna(rng, length) for _ in range(1 if kind == "one" else 4000)])
    seen: list[int] = []
    profile = sequence_profile(query, default_scheme(DNA))
    interrupt(lambda: CpuEngine(2).score(score_requests([profile]), partition, seen.append))
    assert sum(seen) < query.size * partition.n_residues / 2


def test_progress_is_heard_within_one_long_pair() -> None:
    """A pair that takes a second or more reports progress during its calculation, and all its cells at the end."""
    rng = np.random.default_rng(6)
    query = random_protein(rng, 1500)
    partition = Partition.pack([random_protein(rng, 400_000)])
    seen: list[int] = []
    requests = score_requests([sequence_profile(query, default_scheme(PROTEIN))])
    CpuEngine(1, "scalar").score(requests, partition, seen.append)
    assert len(seen) > 2
    assert sum(seen) == query.size * partition.n_residues


def test_a_closed_engine_refuses_work() -> None:
    """The engine raises a clear error instead of returning a result."""
    engine = CpuEngine(1)
    engine.close()
    with pytest.raises(EngineError, match="was closed"):
        engine.score([], Partition.pack([]))


def test_parameters_that_cannot_be_used_are_refused() -> None:
    """Errors name the invalid value and the valid ones."""
    with pytest.raises(InputError, match="at least 1"):
        CpuEngine(0)
    with pytest.raises(EngineUnavailable, match=r"'mmx' is not among .*scalar"):
        CpuEngine(1, "mmx")


class TestDoor:
    """The native function refuses arguments that would make it access memory outside its arrays."""

    def call(self, **changes: object) -> list[int]:
        arguments: dict[str, object] = {
            "profiles": [(np.zeros(3, np.int32), np.ones((1, 32), np.int8), 1, 1)],
            "residues": np.zeros(64, np.uint8),
            "starts": np.array([0, 16], np.uint64),
            "lengths": np.array([3, 4], np.uint32),
            "scores": np.zeros((1, 2), np.int32),
            "floors": [(0, [0])],
            "instruction_set": "scalar",
            "n_threads": 1,
        }
        return _native.score_partition(**{**arguments, **changes})  # type: ignore[arg-type]

    def test_it_takes_what_is_right(self) -> None:
        assert self.call() == [(0, 0)]  # no subject was rescored

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            *(
                ({"profiles": [(np.zeros(3, np.int32), np.ones((1, 32), np.int8), *gap)]}, "gap costs")
                for gap in ((-1, 1), (0, 0), (1, 16384))
            ),
            (
                {"profiles": [(np.array([1], np.int32), np.ones((1, 32), np.int8), 1, 1)]},
                r"rows\[0\] is not a row of the table",
            ),
            (
                {"profiles": [(np.array([-1], np.int32), np.ones((1, 32), np.int8), 1, 1)]},
                r"rows\[0\] is not a row of the table",
            ),
            ({"profiles": [(np.zeros(0, np.int32), np.ones((1, 32), np.int8), 1, 1)]}, "1 to 16777216"),
            (
                {"profiles": [(np.zeros(1, np.int32), np.ones((0, 32), np.int8), 1, 1)]},
                r"rows\[0\] is not a row of the table",
            ),
            ({"starts": np.array([0, 61], np.uint64)}, "subject 1 leaves"),
            ({"starts": np.array([0, 2**64 - 1], np.uint64)}, "subject 1 leaves"),
            ({"lengths": np.array([65, 1], np.uint32)}, "subject 0 leaves"),
            ({"starts": np.zeros(3, np.uint64)}, "starts and lengths differ"),
            ({"scores": np.zeros((2, 2), np.int32)}, "scores must have shape"),
            ({"floors": []}, "no floors"),
            ({"floors": [(0, [])]}, "floors must have one"),
            ({"floors": [(0, [0]), (5, [])]}, "floors must have one"),
            ({"floors": [(1, [9])]}, "begin at 0"),
            ({"floors": [(0, [0]), (7, [9]), (7, [10])]}, "ascend"),
            ({"n_threads": 0}, "threads"),
            ({"instruction_set": "z80"}, "no instruction set is named z80"),
        ],
    )
    def test_values_out_of_range(self, changes: dict[str, object], message: str) -> None:
        with pytest.raises(ValueError, match=message):
            self.call(**changes)

    @pytest.mark.parametrize(
        "changes",
        [
            {"residues": np.zeros(64, np.int8)},
            {"residues": np.zeros(128, np.uint8)[::2]},
            {"starts": np.array([0, 16], np.int64)},
            {"lengths": np.array([3, 4], np.uint64)},
            {"scores": np.zeros((1, 2), np.int64)},
            {"scores": np.zeros((1, 4), np.int32)[:, ::2]},
            {"profiles": [(np.zeros(3, np.int64), np.ones((1, 32), np.int8), 1, 1)]},
            {"profiles": [(np.zeros(3, np.int32), np.ones((1, 31), np.int8), 1, 1)]},
        ],
    )
    def test_arrays_of_another_kind(self, changes: dict[str, object]) -> None:
        with pytest.raises(TypeError):
            self.call(**changes)
