"""The exact top N, compared with a plain sort of all subjects."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from swsearch.hits.score_block import ScoreBlock
from swsearch.search.ranking import RankedCandidates, Ranking, cut, cut_passing, in_order, merge_frames


def block(rows: list[tuple[int, int]]) -> ScoreBlock:
    index, score = zip(*rows, strict=True) if rows else ((), ())
    return ScoreBlock(np.array(index, np.uint32), np.array(score, np.int32))


def candidates(scores: list[int]) -> RankedCandidates:
    n = len(scores)
    return RankedCandidates(np.arange(n, dtype=np.uint32), np.array(scores, np.int32), np.zeros(n, np.uint8))


def rank(scored: RankedCandidates, evalues: np.ndarray | None, largest: float, top: int, ties: str) -> Ranking:
    return cut(scored, in_order(scored, evalues, largest), top, ties)


def test_a_subject_is_kept_on_its_better_strand_and_on_the_first_among_equals():
    """Hand-made: subject 3 is better on the second strand, 5 ties, 7 and 9 are on one strand only."""
    merged = merge_frames([block([(3, 10), (5, 20), (7, 4)]), block([(9, 1), (3, 11), (5, 20)])])
    assert merged.subject_index.tolist() == [3, 5, 7, 9]
    assert merged.score.tolist() == [11, 20, 4, 1]
    assert merged.comparison.tolist() == [1, 0, 0, 1]


def test_no_rows_at_all_merge_and_rank_to_nothing():
    merged = merge_frames([block([]), block([])])
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
    """Source: Python's sort by (E-value, -score, index), the documented order, then the cut."""
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


@settings(max_examples=200, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    n_rows=st.integers(0, 200),
    share=st.sampled_from([0.0, 0.1, 0.5, 1.0]),
    top=st.integers(1, 70),
    ties=st.sampled_from(["cut", "all"]),
)
def test_a_list_of_those_that_pass_equals_a_plain_sort_of_them(seed, n_rows, share, top, ties):
    """Source: a plain sort of all that pass, some with a lower score and a larger E-value than in the first ranking."""
    rng = np.random.default_rng(seed)
    scored = candidates(rng.integers(6, 15, n_rows).tolist())
    evalues = rng.choice([0.5, 1.0, 3.0, 20.0], n_rows)
    passing = rng.random(n_rows) < share
    lower = rng.random(n_rows) < rng.choice([0.0, 0.3])
    scores_of_passing = scored.score - np.where(lower, rng.integers(1, 5, n_rows), 0).astype(np.int32)
    evalues_of_passing = np.where(lower, evalues + rng.choice([0.0, 2.5], n_rows), evalues)
    rows = zip(scores_of_passing.tolist(), evalues_of_passing.tolist(), passing.tolist(), strict=True)
    expected = sorted((e, -s, i) for i, (s, e, p) in enumerate(rows) if e <= 10.0 and p)
    last = expected[min(top, len(expected)) - 1] if expected else None
    if ties == "all" and last is not None:
        expected = [row for row in expected if row[:2] <= last[:2]]
    else:
        expected = expected[:top]
    asked: list[int] = []

    def judge(chosen: np.ndarray) -> tuple[RankedCandidates, np.ndarray]:
        asked.extend(chosen.tolist())
        listed = chosen[passing[chosen]]
        return replace(scored.rows(listed), score=scores_of_passing[listed]), evalues_of_passing[listed]

    ordered = in_order(scored, evalues, 10.0)
    passed, ranking = cut_passing(scored, ordered, top, ties, judge, 10.0)
    assert passed.subject_index[ranking.rows].tolist() == [i for _, _, i in expected]
    assert passed.score[ranking.rows].tolist() == [-s for _, s, _ in expected]
    assert ranking.evalues is not None
    assert ranking.evalues.tolist() == [e for e, _, _ in expected]
    assert ranking.n_passed == ordered.n_passed
    assert asked == ordered.rows[: len(asked)].tolist()
    assert len(set(asked)) == len(asked)


def test_no_more_is_asked_of_a_ranking_than_fills_the_list():
    """By hand: 64 are checked together, and all of them pass."""
    scored = candidates([9] * 500)
    blocks: list[int] = []

    def judge(rows: np.ndarray) -> tuple[RankedCandidates, None]:
        blocks.append(len(rows))
        return scored.rows(rows), None

    ordered = in_order(scored, None, 1.0)
    assert len(cut_passing(scored, ordered, 5, "cut", judge, 1.0)[1].rows) == 5
    assert blocks == [64]
    assert len(cut_passing(scored, ordered, 5, "all", judge, 1.0)[1].rows) == 500


def test_without_statistics_the_score_ranks_and_nothing_is_cut_by_evalue():
    """Hand-made: equal scores are ordered by index."""
    ranking = rank(candidates([5, 9, 5, 1]), None, 1e-9, 3, "cut")
    assert ranking.rows.tolist() == [1, 0, 2]
    assert ranking.evalues is None
    assert ranking.n_passed == 4
