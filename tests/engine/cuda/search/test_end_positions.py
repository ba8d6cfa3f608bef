"""Ends of best alignments from the kernel for listed subjects, on the emulated device.

The expected scores are the reference engine's. The expected ends are the first ones with these scores in the matrix of
the recurrence, cell by cell (``tests/full_matrix.py``).
"""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from swsearch.database.partition import Partition
from swsearch.engine.cuda.runtime.kernels import Arithmetic
from swsearch.engine.cuda.search import end_positions as ends_module
from swsearch.engine.cuda.search.engine import CudaEngine
from swsearch.engine.reference import local_scores
from swsearch.errors import EngineError, InputError
from swsearch.query.profile import QueryProfile, sequence_profile
from swsearch.scoring.matrix import match_mismatch, named_matrix
from swsearch.scoring.scheme import GapPenalty, ScoringScheme, default_scheme
from swsearch.sequences.alphabet import DNA, N_CODES, PAD_CODE, PROTEIN, SOFT_MASK_BIT
from swsearch.typing import Codes, Scores
from tests.engine.cuda.emulation.emulated_device import EmulatedDevice, MakeDevice
from tests.full_matrix import local_end
from tests.support import random_codes

WIDE_SCORES = ScoringScheme(match_mismatch(127, -100), GapPenalty(200, 10))


def expected_end(profile: QueryProfile, subject: Codes) -> tuple[int, int, int]:
    """Return score, query end and subject end."""
    end = local_end(profile, subject)
    assert end[0] == local_scores(profile, [subject])[0]
    return end


def expected(profile: QueryProfile, subjects: Partition) -> tuple[Scores, list[int], list[int]]:
    found = [expected_end(profile, subjects.codes(index)) for index in range(len(subjects))]
    scores, rows, columns = zip(*found, strict=True)
    return np.array(scores, dtype=np.int32), list(rows), list(columns)


def assert_ends(engine: CudaEngine, profile: QueryProfile, subjects: Partition) -> Scores:
    """Compare the ends with the expected ones; return the scores."""
    scores, rows, columns = expected(profile, subjects)
    found = engine.ends(profile, subjects, scores)
    assert found is not None
    assert found.query_end.tolist() == rows
    assert found.subject_end.tolist() == columns
    return scores


@contextmanager
def in_groups(device: EmulatedDevice, group_bytes: int) -> Iterator[CudaEngine]:
    """Open an engine that searches for ends in small groups of windows."""
    with pytest.MonkeyPatch.context() as patch, CudaEngine(device) as engine:
        patch.setattr(ends_module, "GROUP_BYTES", group_bytes)
        patch.setattr(ends_module, "SMALLEST_GROUP_BYTES", 256)
        yield engine


def related(rng: np.random.Generator, query: Codes, letters: int = 20) -> list[Codes]:
    """Return subjects in which the best alignment ends early, late, in a gap, or at several equal positions."""
    changed = query.copy()
    changed[::9] = (changed[::9] + 1) % letters
    half = len(query) // 2
    around = [random_codes(rng, int(length), letters) for length in rng.integers(1, 40, 6)]
    return [
        query,
        np.concatenate([around[0], query, around[1], query]),  # the same score twice: the first column wins
        np.concatenate([around[2], changed, around[3]]) | SOFT_MASK_BIT,
        np.concatenate([query[:half], around[4][:3], query[half:]]),
        np.concatenate([query[: half // 2], query[half // 2 + 4 :], around[5]]),
        query[-7:],
    ]


@pytest.mark.parametrize("architecture", [86, 90])
def test_ends_follow_the_rule_for_ties(emulated: MakeDevice, architecture: int) -> None:
    """One strip and several, row blocks; queries with repeats, so that several rows end a best alignment."""
    rng = np.random.default_rng(1)
    for length in (1, 33, 90) if architecture == 90 else (90,):
        query = random_codes(rng, length)
        query = np.concatenate([query, query])
        subjects = related(rng, query) + [random_codes(rng, n, 27) for n in (1, 2, 16, 17, 40)]
        profile = sequence_profile(query, default_scheme(PROTEIN))
        with CudaEngine(emulated(architecture=architecture)) as engine:
            assert_ends(engine, profile, Partition.pack(subjects))


def test_among_many_equal_ends_the_first_column_then_the_first_row_is_taken(emulated: MakeDevice) -> None:
    """Also by hand: As in columns 3, 5 and 7 match rows 3 and 6, counted from 1."""
    scheme = ScoringScheme(match_mismatch(2, -3), GapPenalty(5, 2))
    query = np.array([1, 1, 0, 1, 1, 0], dtype=np.uint8)
    subjects = Partition.pack([np.array([2, 2, 0, 2, 0, 2, 0], dtype=np.uint8), np.array([3, 3], dtype=np.uint8)])
    profile = sequence_profile(query, scheme)
    with CudaEngine(emulated()) as engine:
        found = engine.ends(profile, subjects, np.array([0, 2], dtype=np.int32))
        assert found is not None
        assert (found.query_end.tolist(), found.subject_end.tolist()) == ([0, 3], [0, 3])
        assert_ends(engine, profile, subjects)


@pytest.mark.parametrize("gap", [GapPenalty(0, 2), GapPenalty(6, 0), GapPenalty(2100, 5)], ids=str)
def test_ends_under_other_gap_costs(emulated: MakeDevice, gap: GapPenalty) -> None:
    """Linear costs, costs without extension, and costs beyond exact addition in the fast type."""
    rng = np.random.default_rng(2)
    query = random_codes(rng, 70)
    profile = sequence_profile(query, ScoringScheme(named_matrix("BLOSUM50"), gap))
    with CudaEngine(emulated()) as engine:
        assert_ends(engine, profile, Partition.pack(related(rng, query)))


def test_ends_of_a_query_with_scores_of_its_own(emulated: MakeDevice) -> None:
    """A table row for each of 90 positions, as in a PSSM."""
    rng = np.random.default_rng(3)
    table = rng.integers(-9, 8, size=(90, N_CODES)).astype(np.int8)
    table[:, PAD_CODE] = -128
    profile = QueryProfile(rng.permutation(90).astype(np.int32), table, GapPenalty(11, 1))
    with CudaEngine(emulated()) as engine:
        assert_ends(engine, profile, Partition.pack([random_codes(rng, n) for n in (20, 61, 150)]))


def test_every_type_finds_the_ends_of_the_scores_that_it_holds(emulated: MakeDevice) -> None:
    """Match 127: 16 matches fit into the fast type, 17 exceed it, 260 exceed 16 bits."""
    rng = np.random.default_rng(4)
    query = random_codes(rng, 280, 4)
    subjects = Partition.pack(
        [query[:16], query[:17], query[20:140], query[:170], query, query[5:], random_codes(rng, 90, 4)]
    )
    profile = sequence_profile(query, WIDE_SCORES)
    device = emulated()
    with CudaEngine(device) as engine:
        scores = assert_ends(engine, profile, subjects)
    limits = [arithmetic.largest_exact(profile.max_score) for arithmetic in Arithmetic]
    assert set(np.searchsorted(limits, scores).tolist()) == {0, 1, 2}
    assert [entry for entry, _ in device.launches] == ["end_positions"] * 3


def test_strips_side_by_side_and_in_turn_find_the_same_ends(emulated: MakeDevice) -> None:
    """One warp per strip, or two warps for three strips, in both orders; and one warp per subject for long lists."""
    rng = np.random.default_rng(5)
    query = random_codes(rng, 600, 4)
    subjects = Partition.pack([query[40:], np.concatenate([query[:300], query[309:], query[:300]]), query[200:260]])
    profile = sequence_profile(query, WIDE_SCORES)
    scores, rows, columns = expected(profile, subjects)
    for shared_bytes, reversed_order, teams in itertools.product((227 * 1024, 24 * 1024), (False, True), (2, 0)):
        device = emulated(shared_bytes=shared_bytes, reversed_order=reversed_order, multiprocessors=max(teams, 1))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("swsearch.engine.cuda.search.launches.FEW_LISTED", 4 * teams)
            with CudaEngine(device) as engine:
                found = engine.ends(profile, subjects, scores)
        assert found is not None
        assert (found.query_end.tolist(), found.subject_end.tolist()) == (rows, columns)


def test_long_subjects_are_looked_through_in_windows(emulated: MakeDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ends in the first and in the last window, equal ends in two, a gap across windows; groups of one window each."""
    monkeypatch.setattr(ends_module, "MIN_STRIDE", 64)
    rng = np.random.default_rng(6)
    query = random_codes(rng, 24, 4)
    profile = sequence_profile(query, default_scheme(DNA))
    subjects = []
    for begin in (0, 120, 388, 976):
        subject = random_codes(rng, 1000, 4)
        subject[begin : begin + 24] = query
        subjects.append(subject)
    gapped = random_codes(rng, 1000, 4)  # 24 columns and a gap of 8 from column 381 on; the stride of windows is 64
    gapped[381:393], gapped[393:401], gapped[401:413] = query[:12], DNA.code("N"), query[12:]
    twice = random_codes(rng, 1100, 4)
    twice[700:724] = twice[310:334] = query
    partition = Partition.pack([*subjects, gapped, twice, query])
    device = emulated()
    with CudaEngine(device) as engine:
        assert_ends(engine, profile, partition)
        assert len(device.launches) == 1
    with in_groups(device, 100) as engine:
        assert_ends(engine, profile, partition)
        assert len(device.launches) > 20


def test_a_span_leaves_room_for_the_longest_gap_that_a_score_allows() -> None:
    """By hand: 10 bases score at most 20. A score of 1 allows 14 for a gap of 7 bases; a score of 15 allows no gap."""
    profile = sequence_profile(random_codes(np.random.default_rng(1), 10, 4), default_scheme(DNA))
    columns = profile.most_columns(np.array([1, 15, 20], dtype=np.int32))
    assert columns is not None
    assert columns.tolist() == [17, 10, 10]


def test_a_score_that_is_not_the_best_is_refused(emulated: MakeDevice) -> None:
    rng = np.random.default_rng(7)
    query = random_codes(rng, 40)
    profile = sequence_profile(query, default_scheme(PROTEIN))
    subjects = Partition.pack([query[:20], query])
    scores, _, _ = expected(profile, subjects)
    with CudaEngine(emulated()) as engine:
        for change in (-1, 1, 5_000, 40_000):
            with pytest.raises(EngineError, match=rf"subject 1: .* {scores[1] + change}, but .* {scores[1]}$"):
                engine.ends(profile, subjects, scores + np.array([0, change], dtype=np.int32))
        with pytest.raises(InputError, match="1 scores for 2 subjects"):
            engine.ends(profile, subjects, scores[:1])
        none = engine.ends(profile, subjects[:0], scores[:0])
    assert none is not None
    assert len(none) == 0


def test_a_full_device_gets_smaller_groups_or_says_that_it_cannot(emulated: MakeDevice) -> None:
    rng = np.random.default_rng(8)
    query = random_codes(rng, 30)
    subjects = Partition.pack([random_codes(rng, 500) for _ in range(20)])
    profile = sequence_profile(query, default_scheme(PROTEIN))
    roomy = emulated()
    with in_groups(roomy, 1 << 14) as engine:
        scores = assert_ends(engine, profile, subjects)
    tight = emulated(memory_bytes=roomy.peak_bytes - 5_000)
    with in_groups(tight, 1 << 14) as engine:
        assert_ends(engine, profile, subjects)
    assert len(tight.launches) > len(roomy.launches)
    with in_groups(emulated(memory_bytes=2_000), 1 << 14) as engine:
        assert engine.ends(profile, subjects, scores) is None
