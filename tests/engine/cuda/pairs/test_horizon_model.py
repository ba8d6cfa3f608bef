"""The model of the linear horizon: every relation of lengths, every problem, any order of computation.

The expected values come from the full dynamic-programming matrix of tests/pairs, or from calculation by hand.
"""

import numpy as np
import pytest

from tests.engine.cuda.pairs.horizon_model import Problem, edit_distance, longest_common_subsequence, solve
from tests.pairs.whole_matrix import PROBLEMS, whole_matrix

N_LETTERS = 4
DNA = np.where(np.eye(N_LETTERS, dtype=bool), 2, -3)
COSTS = {"linear": (0, 2), "affine": (5, 2), "opening only": (3, 0)}
S = 5
LENGTHS = [1, S - 1, S, S + 1, 2 * S, 4 * S + 3]


def random_letters(seed, length):
    return np.random.default_rng(seed).integers(0, N_LETTERS, length)


def expected(problem, query, subject, mode="global"):
    """Return score and end according to the full matrix."""
    pairs = problem.table[np.ix_(query, subject)]
    judged = whole_matrix(pairs, problem.gap_open, problem.gap_extend, *PROBLEMS[mode])
    return judged.score, judged.query_end, judged.subject_end


@pytest.mark.parametrize("costs", COSTS.values(), ids=COSTS)
@pytest.mark.parametrize("mode", PROBLEMS)
def test_scores_and_ends_are_those_of_the_whole_matrix(mode, costs):
    """Expected values: the full matrix of tests/pairs. All pairs of lengths near S, unrelated and related."""
    local, ends = PROBLEMS[mode]
    names = frozenset(end.name.lower().replace("_", "-") for end in ends)
    problem = Problem(DNA, *costs, local, names)
    for m in LENGTHS:
        for n in LENGTHS:
            query, subject = random_letters(m, m), random_letters(100 + n, n)
            if min(m, n) > S:
                subject[: min(m, n) - 2] = query[2 : min(m, n)]
            assert solve(problem, query, subject, S) == expected(problem, query, subject, mode), (m, n)


@pytest.mark.parametrize("problem", [edit_distance(N_LETTERS), longest_common_subsequence(N_LETTERS)])
def test_edit_distance_and_common_subsequence_are_the_same_recurrence(problem):
    """Expected values: the full matrix of tests/pairs."""
    for m, n in [(1, 1), (1, 12), (12, 1), (S, S), (13, 17), (17, 13), (21, 20)]:
        query, subject = random_letters(m, m), random_letters(50 + n, n)
        assert solve(problem, query, subject, S) == expected(problem, query, subject), (m, n)


def test_risotto_becomes_presto_in_four_edits():
    """4, by hand: insert P; keep R; replace I by E; keep S; delete O; keep T; delete T; keep O."""
    letters = sorted(set("RISOTTO") | set("PRESTO"))
    query, subject = (np.array([letters.index(x) for x in word]) for word in ("RISOTTO", "PRESTO"))
    assert solve(edit_distance(len(letters)), query, subject, 3)[0] == -4


@pytest.mark.parametrize("s", [1, 2, 3, 7, 40])
@pytest.mark.parametrize("processors", [1, 2, 5])
def test_neither_the_size_of_diamonds_nor_the_order_of_work_changes_anything(s, processors):
    """Expected values: the full matrix of tests/pairs."""
    query, subject = random_letters(1, 23), random_letters(2, 31)
    subject[5:20] = query[3:18]
    problem = Problem(DNA, 5, 2, local=True)
    assert solve(problem, query, subject, s, processors) == expected(problem, query, subject, "local")
