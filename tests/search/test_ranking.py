"""The exact top N, against a plain sort of all subjects."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from swsearch.hits.score_block import ScoreBlock
from swsearch.search.ranking import Candidates, merge_readings, rank


def block(rows: list[tuple[int, int]]) -> ScoreBlock:
    index, score = zip(*rows, strict=True) if rows else ((), ())
    return ScoreBlock(np.array(index, np.uint32), np.array(score, np.int32))


def candidates(scores: list[int]) -> Candidates:
    n = len(scores)
    return Candidates(np.arange(n, dtype=np.uint32), np.array(scores, np.int32), np.zeros(n, np.uint8))


def test_a_subject_is_kept_on_its_better_strand_and_on_the_first_among_equals():
    """Hand-made: subject 3 is better on the second strand, 5 ties, 7 and 9 are on one strand alone."""
    merged = merge_readings([block([(3, 10), (5, 20), (7, 4)]), block([(9, 1), (3, 11), (5, 20)])])
    assert merged.subject_index.tolist() == [3, 5, 7, 9]
    assert merged.score.tolist() == [11, 20, 4, 1]
    assert merged.reading.tolist() == [1, 0, 0, 1]


def test_no_rows_at_all_merge_and_rank_to_nothing():
    merged = merge_readings([block([]), block([])])
    ranking = rank(merged, np.empty(0), 10.0, 5, "all")
    assert len(merged) == 0
    assert ranking.rows.size == 0
    assert ranking.n_passed == 0


@settings(max_examples=200)
@given(
    rows=st.lists(st.tuples(st.integers(1, 9), st.sampled_from([0.5, 1.0, 3.0, 20.0])), max_size=30),
    top=st.integers(1, 12),
    ties=st.sampled_from(["cut", "all"]),
)
def test_ranking_equals_a_plain_sort_of_all_subjects(rows, top, ties):
    """Source: Python's sort by (E-value, -score, index), the order that DESIGN states, then the cut."""
    scores, evalues = [s for s, _ in rows], [e for _, e in rows]
    expected = sorted((e, -s, i) for i, (s, e) in enumerate(rows) if e <= 10.0)
    n_passed = len(expected)
    if ties == "all" and len(expected) > top:
        expected = [row for row in expected if row[:2] <= expected[top - 1][:2]]
    else:
        expected = expected[:top]
    ranking = rank(candidates(scores), np.array(evalues, dtype=float), 10.0, top, ties)
    assert ranking.rows.tolist() == [i for _, _, i in expected]
    assert ranking.n_passed == n_passed


def test_without_statistics_the_score_ranks_and_nothing_is_cut_by_evalue():
    """Hand-made: equal scores come by index."""
    ranking = rank(candidates([5, 9, 5, 1]), None, 1e-9, 3, "cut")
    assert ranking.rows.tolist() == [1, 0, 2]
    assert ranking.evalues is None
    assert ranking.n_passed == 4
