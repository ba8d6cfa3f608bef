"""The model of the linear horizon: every relation of lengths, every problem, any order of computation.

The expected values come from the full dynamic-programming matrix of tests/pairs, or from calculation by hand.
"""

import numpy as np
import pytest

from swsearch.engine.pair_arrays import AlignmentProblem, FreeEnds
from tests.engine.cuda.pairs.horizon_model import solve
from tests.pairs.whole_matrix import PROBLEMS, judged

N_LETTERS = 4
COSTS = {"linear": (0, 2, 2, -3), "affine": (5, 2, 2, -3), "opening only": (3, 0, 2, -3)}
EDIT = AlignmentProblem(False, FreeEnds.NONE, 0, 1, 0, -1)
LCS = AlignmentProblem(False, FreeEnds.NONE, 0, 0, 1, -1)
S = 5
LENGTHS = [1, S - 1, S, S + 1, 2 * S, 4 * S + 3]


def random_letters(seed, length):
    return np.random.default_rng(seed).integers(0, N_LETTERS, length)


def expected(query, subject, problem):
    """Return score and end according to the full matrix."""
    wanted = judged(query, subject, problem)
    return wanted.score, wanted.query_end, wanted.subject_end


@pytest.mark.parametrize("costs", COSTS.values(), ids=COSTS)
@pytest.mark.parametrize("mode", PROBLEMS)
def test_scores_and_ends_are_those_of_the_whole_matrix(mode, costs):
    """Expected values: the full matrix of tests/pairs. All pairs of lengths near S, unrelated and related."""
    problem = AlignmentProblem(*PROBLEMS[mode], *costs)
    for m in LENGTHS:
        for n in LENGTHS:
            query, subject = random_letters(m, m), random_letters(100 + n, n)
            if min(m, n) > S:
                subject[: min(m, n) - 2] = query[2 : min(m, n)]
            assert solve(problem, query, subject, S) == expected(query, subject, problem), (m, n)


@pytest.mark.parametrize("problem", [EDIT, LCS])
def test_edit_distance_and_common_subsequence_are_the_same_recurrence(problem):
    """Expected values: the full matrix of tests/pairs."""
    for m, n in [(1, 1), (1, 12), (12, 1), (S, S), (13, 17), (17, 13), (21, 20)]:
        query, subject = random_letters(m, m), random_letters(50 + n, n)
        assert solve(problem, query, subject, S) == expected(query, subject, problem), (m, n)


def test_risotto_becomes_presto_in_four_edits():
    """4, by hand: insert P; keep R; replace I by E; keep S; delete O; keep T; delete T; keep O."""
    letters = sorted(set("RISOTTO") | set("PRESTO"))
    query, subject = (np.array([letters.index(x) for x in word]) for word in ("RISOTTO", "PRESTO"))
    assert solve(EDIT, query, subject, 3)[0] == -4


@pytest.mark.parametrize("s", [1, 2, 3, 7, 40])
@pytest.mark.parametrize("processors", [1, 2, 5])
def test_neither_the_size_of_diamonds_nor_the_order_of_work_changes_anything(s, processors):
    """Expected values: the full matrix of tests/pairs."""
    query, subject = random_letters(1, 23), random_letters(2, 31)
    subject[5:20] = query[3:18]
    problem = AlignmentProblem(*PROBLEMS["local"], *COSTS["affine"])
    assert solve(problem, query, subject, s, processors) == expected(query, subject, problem)
