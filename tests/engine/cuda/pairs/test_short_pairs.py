"""The kernel for many short pairs on the emulated device. Expected values: ``tests/pairs/whole_matrix.py``, which fills
three full matrices cell by cell and traces the path back."""

import itertools

import numpy as np
import pytest

from swsearch.engine.cuda.pairs.short_pairs import LONGEST, ShortPairs
from swsearch.engine.pair_arrays import AlignmentProblem, SequencePairs
from swsearch.errors import EngineError
from tests.engine.cuda.emulation.emulated_device import MakeDevice
from tests.pairs.whole_matrix import PROBLEMS, Judged, found, judged

COSTS = {"linear": (1, -1, 0, 2), "affine": (2, -3, 5, 2), "edit": (0, -1, 0, 1), "lcs": (1, -1, 0, 0)}


def some_pairs(seed: int, sizes: list[tuple[int, int]], letters: int) -> SequencePairs:
    """Return pairs of the given lengths; every other subject is made of segments of its query."""
    rng = np.random.default_rng(seed)
    pairs = []
    for number, (m, n) in enumerate(sizes):
        query, subject = (rng.integers(0, letters, length).astype(np.uint16) for length in (m, n))
        if number % 2 == 0:
            piece = query[rng.random(m) > 0.15][: n - n // 8]
            subject[n // 8 : n // 8 + len(piece)] = piece
        pairs.append((query, subject))
    return SequencePairs.of(pairs)


def problem_of(mode: str, costs: tuple[int, int, int, int]) -> AlignmentProblem:
    match, mismatch, gap_open, gap_extend = costs
    return AlignmentProblem(*PROBLEMS[mode], gap_open, gap_extend, match, mismatch)


def expected(pairs: SequencePairs, problem: AlignmentProblem) -> list[Judged]:
    return [judged(query, subject, problem) for query, subject in pairs]


SIZES = [(1, 1), (1, 40), (40, 1), (7, 8), (8, 7), (9, 33), (31, 32), (64, 65), (100, 90), (37, 120)]


@pytest.mark.parametrize("costs", COSTS)
def test_paths_are_those_of_the_whole_matrix(emulated: MakeDevice, costs: str) -> None:
    """All modes; letters compared; lengths near a lane's rows and a warp's lanes."""
    pairs = some_pairs(1, SIZES, 4)
    with ShortPairs(emulated(reversed_order=costs == "affine")) as engine:
        for mode in PROBLEMS:
            if mode == "local" and costs in ("edit", "lcs"):
                continue  # nothing scores above 0, or gaps cost nothing
            scores = problem_of(mode, COSTS[costs])
            paths = engine.align(pairs, scores)
            assert found(paths) == expected(pairs, scores), mode
            alone = engine.align(pairs, scores, path=False)
            np.testing.assert_array_equal(alone.ends[:, :3], paths.ends[:, :3])
            assert len(alone.runs) == 0


def test_long_queries_take_strips_and_wide_lanes(emulated: MakeDevice) -> None:
    """257 rows need 16 rows per lane, 513 a second strip."""
    pairs = some_pairs(3, [(257, 40), (530, 50)], 4)
    with ShortPairs(emulated()) as engine:
        for mode, costs in itertools.product(("local", "subject"), ("linear", "affine")):
            scores = problem_of(mode, COSTS[costs])
            paths = engine.align(pairs, scores)
            assert found(paths) == expected(pairs, scores)


def test_little_memory_makes_more_launches_and_the_same_paths(emulated: MakeDevice) -> None:
    pairs = some_pairs(4, SIZES, 4)
    scores = problem_of("global", COSTS["linear"])
    device = emulated()
    with ShortPairs(device, decision_limit=12_000) as engine:
        paths = engine.align(pairs, scores)
        again = engine.align(SequencePairs.of(list(pairs)[:3]), scores)
        assert engine.timing.cells == sum(m * n for m, n in SIZES + SIZES[:3])
    assert len(device.launches) > 3
    assert device.used_bytes == 0
    assert found(paths) == expected(pairs, scores)
    assert found(again) == found(paths)[:3]


def test_what_the_kernel_cannot_take_is_refused(emulated: MakeDevice) -> None:
    scores = problem_of("global", COSTS["linear"])
    one = np.zeros(1, np.uint16)
    with ShortPairs(emulated()) as engine:
        for length in (0, LONGEST + 1):
            with pytest.raises(EngineError, match="1 to 8192 can be aligned"):
                engine.align(SequencePairs.of([(np.zeros(length, np.uint16), one)]), scores)
        nothing = engine.align(SequencePairs.of([]), scores)
    assert len(nothing.ends) == 0
