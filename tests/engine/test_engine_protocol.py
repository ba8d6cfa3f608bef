"""One list of cases, run on every engine: the scores are the exact local scores, in stored order.

The expected scores come from the reference engine, from parasail, or from calculation by hand.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any, Final

import numpy as np
import pytest

from swsearch import _native
from swsearch.database.partition import Partition
from swsearch.engine.cpu.engine import CpuEngine
from swsearch.engine.cuda.search.engine import CudaEngine
from swsearch.engine.protocol import ScoreEngine, ScoreRequest, score_requests
from swsearch.engine.reference import ReferenceEngine
from swsearch.hits.score_block import ScoreBlock
from swsearch.query.profile import QueryProfile, sequence_profile
from swsearch.scoring.matrix import match_mismatch, named_matrix
from swsearch.scoring.scheme import GapPenalty, ScoringScheme, default_scheme
from swsearch.sequences.alphabet import DNA, N_CODES, PAD_CODE, PROTEIN, SOFT_MASK_BIT
from tests.engine.cuda.emulation.emulated_device import EmulatedDevice
from tests.peers import oracle
from tests.support import random_dna, random_profile, random_protein

Case = tuple[list[QueryProfile], Partition]


MOST_EMULATED_CELLS: Final = 400_000
"""Cells that the emulation of a GPU scores in about a second."""


class EmulatedEngine(CudaEngine):
    """The CUDA engine on an emulated device; a test with too many cells for it is skipped."""

    def __init__(self) -> None:
        super().__init__(EmulatedDevice())

    def score(self, requests: Sequence[ScoreRequest], partition: Partition, *rest: Any) -> list[ScoreBlock]:
        cells = partition.n_residues * sum(request.profile.length for request in requests)
        if cells > MOST_EMULATED_CELLS:
            pytest.skip(f"{cells:,} cells take the emulation too long")
        return super().score(requests, partition, *rest)


ENGINES: Final = [
    pytest.param(ReferenceEngine, id="reference"),
    *(
        pytest.param(
            partial(CpuEngine, threads, name),
            id=f"cpu-{name}-{threads}",
            marks=pytest.mark.skipif(not usable, reason=f"this processor has no {name}"),
        )
        for name, usable in _native.instruction_sets()
        for threads in ((1, 2) if name == "scalar" else (1,))
    ),
    pytest.param(EmulatedEngine, id="cuda-emulated", marks=pytest.mark.peer("g++")),
    pytest.param(CudaEngine, id="cuda", marks=pytest.mark.gpu),
]


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Iterator[ScoreEngine]:
    with request.param() as built:
        yield built


def _ladder(profile_length: int) -> np.ndarray:
    return np.arange(profile_length, dtype=np.int32)


def _proteins() -> Case:
    rng = np.random.default_rng(1)
    subjects = [random_protein(rng, int(length)) for length in rng.integers(0, 150, 200)]
    scheme = default_scheme(PROTEIN)
    return [sequence_profile(random_protein(rng, length), scheme) for length in (1, 2, 40, 77)], Partition.pack(
        subjects
    )


def _dna() -> Case:
    rng = np.random.default_rng(2)
    subjects = [random_dna(rng, int(length)) for length in rng.integers(1, 300, 70)]
    return [sequence_profile(random_dna(rng, 90), default_scheme(DNA))], Partition.pack(subjects)


def _long_subject_among_short() -> Case:
    rng = np.random.default_rng(3)
    query = random_protein(rng, 35)
    far = random_protein(rng, 6000)
    far[4000:4035] = query
    subjects = [random_protein(rng, 30) for _ in range(140)] + [far]
    return [sequence_profile(query, default_scheme(PROTEIN))], Partition.pack(subjects)


def _one_subject() -> Case:
    rng = np.random.default_rng(4)
    return [sequence_profile(random_protein(rng, 200), default_scheme(PROTEIN))], Partition.pack(
        [random_protein(rng, 501)]
    )


def _single_residues() -> Case:
    scheme = default_scheme(PROTEIN)
    subjects = [np.array([code], dtype=np.uint8) for code in range(len(PROTEIN.letters))]
    return [sequence_profile(PROTEIN.encode(letter), scheme) for letter in "AW*X"], Partition.pack(subjects)


def _empty_subjects() -> Case:
    rng = np.random.default_rng(5)
    empty = np.empty(0, dtype=np.uint8)
    return [sequence_profile(random_protein(rng, 20), default_scheme(PROTEIN))], Partition.pack(
        [empty, random_protein(rng, 9), empty]
    )


def _no_subjects() -> Case:
    return [sequence_profile(PROTEIN.encode("MKV"), default_scheme(PROTEIN))], Partition.pack([])


def _soft_masked() -> Case:
    rng = np.random.default_rng(6)
    subjects = [random_protein(rng, 60) | (rng.integers(0, 2, 60, dtype=np.uint8) * SOFT_MASK_BIT) for _ in range(20)]
    return [sequence_profile(subjects[0], default_scheme(PROTEIN))], Partition.pack(subjects)


def _position_specific() -> Case:
    rng = np.random.default_rng(7)
    subjects = [random_protein(rng, int(length)) for length in rng.integers(1, 120, 150)]
    table = rng.integers(-8, 9, size=(95, N_CODES)).astype(np.int8)
    table[:, PAD_CODE] = -128
    return [QueryProfile(_ladder(95), table, GapPenalty(11, 1))], Partition.pack(subjects)


def _chosen_subjects() -> Case:
    """Select some subjects of a partition, with others between them in memory, as a filter does."""
    profiles, whole = _proteins()
    return profiles, whole[np.flatnonzero(np.random.default_rng(10).random(len(whole)) < 0.3)]


def _gaps(gap: GapPenalty) -> Callable[[], Case]:
    def case() -> Case:
        rng = np.random.default_rng(8)
        n_letters = len(PROTEIN.letters)
        subjects = [rng.integers(0, n_letters, int(length), dtype=np.uint8) for length in rng.integers(1, 90, 140)]
        profiles = [
            random_profile(rng, 60, 20, gap, -127, 127),
            random_profile(rng, 45, 45, gap, -20, 20),
            random_profile(rng, 30, 12, gap, -3, 2),
        ]
        return profiles, Partition.pack(subjects)

    return case


def _two_gap_costs() -> Case:
    rng = np.random.default_rng(9)
    query, matrix = random_protein(rng, 50), named_matrix("BLOSUM62")
    subjects = [random_protein(rng, 80) for _ in range(30)]
    return [
        sequence_profile(query, ScoringScheme(matrix, GapPenalty(*gap))) for gap in ((11, 1), (0, 3), (11, 1))
    ], Partition.pack(subjects)


def _borders() -> Case:
    """Scores on both sides of the limits of signed and unsigned bytes and words, each with its own query.

    The query is one letter repeated; against a subject of that letter repeated k times it scores k times the letter's
    score (plus one letter with another score), which covers the complete range near each limit.
    """
    table = np.full((2, N_CODES), -4, dtype=np.int8)
    table[:, PAD_CODE] = -128
    table[0, 0] = 1
    table[1, 1] = 127
    profiles, subjects = [], []
    for border in (127, 128, 255, 256, 32767, 32768, 65535, 65536):
        for score in (border - 2, border - 1, border, border + 1):
            high, low = divmod(score, 127)
            rows = np.concatenate([np.zeros(low, np.int32), np.ones(high, np.int32)])
            subjects.append(rows.astype(np.uint8))
            if score % 5 == 0 or score == border:
                profiles.append(QueryProfile(rows, table, GapPenalty(3, 1)))
    return profiles, Partition.pack(subjects)


def _beyond_16_bits() -> Case:
    """Matches of 127: 17 exceed 11 bits, and from 258 on a sum of scores may exceed 16 bits."""
    subjects = [np.zeros(length, np.uint8) for length in (16, 17, 257, 258, 259)]
    scheme = ScoringScheme(match_mismatch(127, -100), GapPenalty(200, 10))
    return [sequence_profile(subjects[-1], scheme)], Partition.pack(subjects)


GAPS = ((0, 1), (0, 6), (5, 0), (11, 1), (126, 1), (127, 1), (254, 2), (16383, 0), (16383, 16383))

CASES: dict[str, Callable[[], Case]] = {
    "proteins": _proteins,
    "dna": _dna,
    "long_subject_among_short": _long_subject_among_short,
    "one_subject": _one_subject,
    "single_residues": _single_residues,
    "empty_subjects": _empty_subjects,
    "no_subjects": _no_subjects,
    "soft_masked": _soft_masked,
    "position_specific": _position_specific,
    "chosen_subjects": _chosen_subjects,
    "two_gap_costs": _two_gap_costs,
    "borders": _borders,
    "beyond_16_bits": _beyond_16_bits,
    **{f"gap_{opening}_{extend}": _gaps(GapPenalty(opening, extend)) for opening, extend in GAPS},
}


@cache
def expected(name: str) -> tuple[Case, tuple[np.ndarray, ...]]:
    """Return a case and the reference engine's scores for it."""
    profiles, partition = CASES[name]()
    blocks = ReferenceEngine().score(score_requests(profiles), partition)
    return (profiles, partition), tuple(block.score for block in blocks)


@pytest.mark.parametrize("name", CASES)
def test_scores_are_those_of_the_reference(engine: ScoreEngine, name: str) -> None:
    """Expected values: the reference engine, which is compared with parasail below."""
    (profiles, partition), scores = expected(name)
    blocks = engine.score(score_requests(profiles), partition)
    assert len(blocks) == len(profiles)
    for block, score in zip(blocks, scores, strict=True):
        assert block.score.dtype == np.int32
        np.testing.assert_array_equal(block.subject_index, partition.subject_index)
        np.testing.assert_array_equal(block.score, score)


@pytest.mark.parametrize(("opening", "extend"), [(11, 1), (10, 2), (5, 2), (0, 4)])
def test_scores_are_those_of_parasail(engine: ScoreEngine, opening: int, extend: int) -> None:
    """Expected values: parasail 1.3, its scalar loop, with BLOSUM62; it charges open + (k - 1) * extend."""
    parasail = oracle("parasail")
    rng = np.random.default_rng(11)
    query = PROTEIN.decode(random_protein(rng, 64))
    subjects = [random_protein(rng, int(length)) for length in rng.integers(1, 140, 60)]
    partition = Partition.pack(subjects)
    scheme = ScoringScheme(named_matrix("BLOSUM62"), GapPenalty(opening, extend))
    (block,) = engine.score(score_requests([sequence_profile(PROTEIN.encode(query), scheme)]), partition)
    found = dict(zip(block.subject_index.tolist(), block.score.tolist(), strict=True))
    for index, subject in enumerate(subjects):
        judge = parasail.sw(query, PROTEIN.decode(subject), opening + extend, extend, parasail.blosum62)
        assert found[index] == judge.score


def test_identical_sequences_score_their_length(engine: ScoreEngine) -> None:
    """Expected value by hand: 300 matches of 2."""
    query = random_dna(np.random.default_rng(12), 300)
    scheme = ScoringScheme(match_mismatch(2, -3), GapPenalty(5, 2))
    (block,) = engine.score(score_requests([sequence_profile(query, scheme)]), Partition.pack([query]))
    assert block.score.tolist() == [600]


def test_a_long_gap_costs_open_and_its_extensions(engine: ScoreEngine) -> None:
    """Expected value by hand: 80 matches of 5, minus 11 + 30 for a gap of 30, in the query and in the subject."""
    scheme = ScoringScheme(match_mismatch(5, -4), GapPenalty(11, 1))
    whole = np.concatenate([np.tile([0, 1], 20), np.full(30, 3), np.tile([0, 1, 1, 0], 10)]).astype(np.uint8)
    short = np.concatenate([whole[:40], whole[70:]])
    for query, subject in ((whole, short), (short, whole)):
        (block,) = engine.score(score_requests([sequence_profile(query, scheme)]), Partition.pack([subject]))
        assert block.score.tolist() == [80 * 5 - 41]


def test_floors_keep_the_subjects_that_reach_them(engine: ScoreEngine) -> None:
    """Expected values: the reference engine's scores, cut at the floor."""
    (profiles, partition), scores = expected("proteins")
    floors = [1, 5, 30, 34]
    blocks = engine.score(score_requests(profiles, floors), partition)
    for block, score, floor in zip(blocks, scores, floors, strict=True):
        passing = np.flatnonzero(score >= floor)
        np.testing.assert_array_equal(block.subject_index, partition.subject_index[passing])
        np.testing.assert_array_equal(block.score, score[passing])


def test_progress_adds_up_to_all_cells(engine: ScoreEngine) -> None:
    """Expected value by hand: query residues times subject residues, each pair counted once."""
    (profiles, partition), _ = expected("borders")
    reported: list[int] = []
    engine.score(score_requests(profiles[:3]), partition, reported.append)
    assert sum(reported) == sum(profile.length for profile in profiles[:3]) * partition.n_residues


def test_what_progress_raises_ends_the_call(engine: ScoreEngine) -> None:
    """An engine must neither continue nor return when the caller's callback raises."""
    (profiles, partition), _ = expected("proteins")

    def stop(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        engine.score(score_requests(profiles), partition, stop)


def test_a_part_of_a_partition_scores_as_in_the_whole(engine: ScoreEngine) -> None:
    """Expected values: the reference engine on the complete partition."""
    (profiles, partition), scores = expected("proteins")
    blocks = engine.score(score_requests(profiles), partition[17:101])
    for block, score in zip(blocks, scores, strict=True):
        np.testing.assert_array_equal(block.score, score[17:101])
