"""The kernels for bounds and the search that uses them.

Expected values: the definition of the bound in NumPy (``tests/engine/bound_reference.py``), number by number, and the
reference engine or the exact kernels for the scores that a search reports.
"""

from functools import cache

import numpy as np
import pytest

from swsearch import _native
from swsearch.database.partition import Partition
from swsearch.engine.cpu.engine import BAND_ROWS, CpuEngine, usable_instruction_sets
from swsearch.engine.protocol import score_requests
from swsearch.engine.reference import ReferenceEngine
from swsearch.errors import InputError
from swsearch.hits.score_block import ScoreBlock
from swsearch.query.profile import QueryProfile, sequence_profile
from swsearch.scoring.scheme import GapPenalty, default_scheme
from swsearch.sequences.alphabet import DNA, PROTEIN, reverse_complement
from swsearch.typing import Codes, Scores
from tests.engine.bound_reference import LARGEST, LARGEST_WRAPPING, Pairs, bounds
from tests.support import by_position, random_dna, random_profile, random_protein


@pytest.fixture(params=usable_instruction_sets())
def instruction_set(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def kernel_bounds(profile: QueryProfile, partition: Partition, rows: int, instruction_set: str) -> tuple[Scores, int]:
    """Return the bounds of one kernel, and the smallest bound that stands for every larger one, too."""
    found = np.empty(len(partition), np.int32)
    largest = _native.bound_partition(
        (profile.rows, profile.table, profile.gap.open, profile.gap.extend),
        partition.residues,
        np.ascontiguousarray(partition.starts),
        np.ascontiguousarray(partition.lengths),
        found,
        rows,
        instruction_set,
    )
    return np.where(found < 0, largest, found), largest


def defined_bounds(profile: QueryProfile, subjects: list[Codes], rows: int) -> Scores:
    """Return the bounds by definition, with the columns that complete the longest subject of the batch."""
    n_columns = max(subject.size for subject in subjects)
    residues = np.full((len(subjects), n_columns), 31)
    for number, subject in enumerate(subjects):
        residues[number, : subject.size] = subject
    scores = profile.table[profile.rows].astype(np.int32)[:, residues.T]
    costs = (np.full(len(subjects), cost, np.int32) for cost in (profile.gap.open, profile.gap.extend))
    return np.minimum(bounds(Pairs(scores, *costs), rows, lanes=True).score, LARGEST)


def relatives(rng: np.random.Generator, profile: QueryProfile, n: int, length: int) -> list[Codes]:
    """Return subjects of one length: random ones, and copies of the query's best letters with deletions."""
    best = profile.table[:, :20].argmax(axis=1).astype(np.uint8)[profile.rows]
    subjects = []
    for number in range(n):
        subject = rng.integers(0, 20, length).astype(np.uint8)
        if number % 2 and best.size > 1:
            step = np.where(rng.random(length) < 0.1, rng.integers(0, 8, length), 1)
            part = best[np.cumsum(step) % best.size][: int(rng.integers(1, length))]
            subject[: part.size] = part
        subjects.append(subject)
    return subjects


@cache
def _bounded_cases() -> list[tuple[QueryProfile, list[Codes], dict[int, Scores]]]:
    """Return profiles of all shapes, subjects, and the bounds by definition for every number of rows."""
    rng = np.random.default_rng(11)
    gaps = [GapPenalty(*costs) for costs in ((11, 1), (5, 2), (0, 3), (7, 0), (3, 1), (90, 30))]
    profiles = [sequence_profile(random_protein(rng, length), default_scheme(PROTEIN)) for length in (1, 5, 6, 24, 75)]
    profiles += [random_profile(rng, int(rng.integers(2, 60)), 20, gap, -12, 9) for gap in gaps]
    profiles += [random_profile(rng, 61, 61, gap, -40, 30) for gap in gaps]  # too many rows for a score profile
    profiles += [random_profile(rng, 40, 20, GapPenalty(11, 1), -128, 127)]
    profiles += [random_profile(rng, 31, 32, GapPenalty(11, 1), -9, 9)]  # all rows of a score profile
    cases = []
    for profile in profiles:
        subjects = relatives(rng, profile, 130, int(rng.integers(1, 60)))
        cases.append((profile, subjects, {rows: defined_bounds(profile, subjects, rows) for rows in BAND_ROWS[1:]}))
    return cases


@pytest.mark.parametrize("rows", BAND_ROWS[1:])
def test_kernels_compute_the_bound_as_it_is_defined(instruction_set: str, rows: int) -> None:
    for profile, subjects, expected in _bounded_cases():
        found, largest = kernel_bounds(profile, Partition.pack(subjects), rows, instruction_set)
        assert largest in {LARGEST, LARGEST_WRAPPING}
        needed = np.minimum(expected[rows], largest)
        np.testing.assert_array_equal(found, needed, err_msg=f"{profile.length} rows, {profile.gap}")


def test_the_cases_reach_from_low_bounds_to_saturated_ones() -> None:
    """Bounds that were all low or all saturated would test little."""
    found = np.concatenate([expected[rows] for _, _, expected in _bounded_cases() for rows in expected])
    assert (found == LARGEST).mean() > 0.05
    assert ((found > 40) & (found < LARGEST)).mean() > 0.2


def test_blocks_of_rows_change_no_bound() -> None:
    """A query beyond one block of rows, whose subjects align across its border; expected values: the definition."""
    rng = np.random.default_rng(12)
    profile = sequence_profile(random_protein(rng, 2100), default_scheme(PROTEIN))
    query = profile.rows.astype(np.uint8)
    subjects = [query[start : start + 24].copy() for start in (0, 2010, 2028, 2035, 2076)]
    subjects += [random_protein(rng, 24) for _ in range(5)]
    for rows in BAND_ROWS[1:]:
        expected = defined_bounds(profile, subjects, rows)
        for name in usable_instruction_sets():
            for form in (profile, by_position(profile)):
                found, largest = kernel_bounds(form, Partition.pack(subjects), rows, name)
                np.testing.assert_array_equal(found, np.minimum(expected, largest))


@pytest.mark.parametrize("rows", BAND_ROWS[1:])
def test_low_scores_are_raised_where_additions_wrap(instruction_set: str, rows: int) -> None:
    """Scores below -24, with a score profile and looked up; expected values: the definition with raised scores."""
    rng = np.random.default_rng(44)
    for _ in range(5):
        profile = random_profile(rng, 43, 20, GapPenalty(11, 1), -60, 24)
        subjects = relatives(rng, profile, 130, 50)
        raised = QueryProfile(profile.rows, np.maximum(profile.table, np.int8(-24)), profile.gap)
        for form in (profile, by_position(profile)):
            found, largest = kernel_bounds(form, Partition.pack(subjects), rows, instruction_set)
            used = raised if largest == LARGEST_WRAPPING else profile
            np.testing.assert_array_equal(found, np.minimum(defined_bounds(used, subjects, rows), largest))


def assert_same(blocks: list[ScoreBlock], expected: list[ScoreBlock], floor: int) -> None:
    """The blocks are those of a search without floors, restricted to the scores that reach the floor."""
    for block, whole in zip(blocks, expected, strict=True):
        passing = np.flatnonzero(whole.score >= floor)
        np.testing.assert_array_equal(block.subject_index, whole.subject_index[passing])
        np.testing.assert_array_equal(block.score, whole.score[passing])


@cache
def _searches() -> list[tuple[str, list[QueryProfile], Partition, list[ScoreBlock]]]:
    """Return searches with the scores of the reference engine: protein, DNA, a PSSM, biased and short queries."""
    rng = np.random.default_rng(13)
    protein, dna = default_scheme(PROTEIN), default_scheme(DNA)
    query = random_protein(rng, 70)
    repeat = np.tile(np.array([0, 7, 7], np.uint8), 22)
    pssm = random_profile(rng, 58, 58, protein.gap, -6, 6)
    gene = random_dna(rng, 66)
    strands = [sequence_profile(codes, dna) for codes in (gene, reverse_complement(gene))]
    proteins = [random_protein(rng, int(length)) for length in rng.integers(1, 60, 1500)]
    proteins += [np.delete(query, np.arange(start, start + 3))[: int(rng.integers(15, 67))] for start in range(60)]
    proteins += [repeat[: int(rng.integers(4, 66))] for _ in range(40)]
    genes = [random_dna(rng, int(length)) for length in rng.integers(1, 90, 1500)] + [gene[5:40], gene[8:20]]
    found = []
    for name, profiles, subjects in [
        ("protein", [sequence_profile(query, protein), sequence_profile(query[:33], protein)], proteins),
        ("biased", [sequence_profile(repeat, protein)], proteins),
        ("short", [sequence_profile(query[:n], protein) for n in (1, 5, 8, 13)], proteins),
        ("PSSM", [pssm, sequence_profile(query, protein)], proteins),
        ("DNA", strands, genes),
    ]:
        partition = Partition.pack(subjects)
        found.append((name, profiles, partition, ReferenceEngine().score(score_requests(profiles), partition)))
    return found


@pytest.mark.parametrize("band_rows", [None, 0, *BAND_ROWS])
def test_floors_report_the_scores_of_the_reference_engine(instruction_set: str, band_rows: int | None) -> None:
    for _, profiles, partition, expected in _searches():
        engine = CpuEngine(2, instruction_set, band_rows=band_rows)
        for floor in (1, 16, 25, 40, 61, 255, 400):
            assert_same(engine.score(score_requests(profiles, [floor] * len(profiles)), partition), expected, floor)


@cache
def _large_search() -> tuple[list[QueryProfile], Partition, list[ScoreBlock]]:
    """Return enough subjects for a choice by sample, some of them longer than a sample looks, and the scores."""
    rng = np.random.default_rng(14)
    scheme = default_scheme(PROTEIN)
    queries = [random_protein(rng, length) for length in (30, 90)] + [np.full(50, 7, np.uint8)]
    subjects = [random_protein(rng, int(length)) for length in rng.integers(10, 60, 9000)]
    subjects += [random_protein(rng, length) for length in (5000, 9000, 30_000)]
    subjects += [np.concatenate([random_protein(rng, 6000), query, random_protein(rng, 30)]) for query in queries]
    subjects += [np.delete(query, slice(9, 13)) for query in queries]
    profiles = [sequence_profile(query, scheme) for query in queries]
    partition = Partition.pack(subjects)
    return profiles, partition, CpuEngine(1, "scalar", band_rows=0).score(score_requests(profiles), partition)


def test_the_choice_by_sample_changes_no_score(instruction_set: str) -> None:
    """Expected values: the scalar kernels without floors; progress counts every cell once, however it is bounded."""
    profiles, partition, expected = _large_search()
    for floor in (20, 33, 45, 70):
        seen: list[int] = []
        requests = score_requests(profiles, [floor] * len(profiles))
        blocks = CpuEngine(2, instruction_set).score(requests, partition, seen.append)
        assert_same(blocks, expected, floor)
        assert sum(seen) == sum(profile.length for profile in profiles) * partition.n_residues


def test_bands_that_do_not_exist_are_refused() -> None:
    with pytest.raises(InputError, match="choose from 0, 1, 4, 6"):
        CpuEngine(1, band_rows=5)
    profile = sequence_profile(np.zeros(4, np.uint8), default_scheme(PROTEIN))
    with pytest.raises(ValueError, match="a band has 1, 4 or 6 rows"):
        kernel_bounds(profile, Partition.pack([np.zeros(4, np.uint8)]), 3, "scalar")
    wide = QueryProfile(profile.rows, profile.table, GapPenalty(127, 1))
    with pytest.raises(ValueError, match="exceed 8 bits"):
        kernel_bounds(wide, Partition.pack([np.zeros(4, np.uint8)]), 4, "scalar")


@cache
def _decided_subjects() -> tuple[list[QueryProfile], list[Codes], list[int], list[int]]:
    """Return profiles, subjects, a floor of each profile, and the number of subjects whose bound is below it."""
    rng = np.random.default_rng(43)
    subjects = [random_protein(rng, int(length)) for length in rng.integers(20, 60, 90)]
    profiles = [sequence_profile(random_protein(rng, length), default_scheme(PROTEIN)) for length in (50, 70)]
    floors = [24, 40]
    decided = [
        sum(int(defined_bounds(profile, [subject], 4)[0] < floor) for subject in subjects)
        for profile, floor in zip(profiles, floors, strict=True)
    ]
    return profiles, subjects, floors, decided


def test_subjects_that_the_bound_decides_are_counted(instruction_set: str) -> None:
    """Expected values: the subjects whose bound, in NumPy, is below the floor."""
    profiles, subjects, floors, wanted = _decided_subjects()
    assert 0 < wanted[0] < wanted[1]
    partition = Partition.pack(subjects)
    with CpuEngine(1, instruction_set, band_rows=4) as engine:
        found = [block.n_bounded for block in engine.score(score_requests(profiles, floors), partition)]
        # A batch has as many columns as its longest subject, and with more columns no bound is lower.
        assert all(0.8 * most <= count <= most for count, most in zip(found, wanted, strict=True))
        assert [block.n_bounded for block in engine.score(score_requests(profiles), partition)] == [0, 0]
    with CpuEngine(1, instruction_set, band_rows=0) as engine:
        assert [block.n_bounded for block in engine.score(score_requests(profiles, floors), partition)] == [0, 0]
