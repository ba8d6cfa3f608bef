"""The exact top N, compared with a plain sort of all subjects."""

from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from swsearch.hits.limits import RankedCandidates
from swsearch.hits.score_block import ScoreBlock
from swsearch.search.options import SearchOptions
from swsearch.search.ranking import HitSelection, ListedAlignment, merge_frames
from swsearch.sequences.alphabet import PROTEIN


def block(rows: list[tuple[int, int]]) -> ScoreBlock:
    index, score = zip(*rows, strict=True) if rows else ((), ())
    return ScoreBlock(np.array(index, np.uint32), np.array(score, np.int32))


def candidates(scores: list[int], evalues: list[float] | None = None) -> RankedCandidates:
    n = len(scores)
    known = None if evalues is None else np.array(evalues, float)
    return RankedCandidates(np.arange(n, dtype=np.uint32), np.array(scores, np.int32), np.zeros(n, np.uint8), known)


def listed(scored: RankedCandidates, top: int, ties: str = "cut") -> list[int]:
    ordered = scored.in_order()
    n = SearchOptions(top=top, ties=ties).limits(PROTEIN).end(ordered.rank, len(ordered), top)
    return ordered.subject_index[:n].tolist()


def test_a_subject_is_kept_on_its_better_strand_and_on_the_first_among_equals():
    """Hand-made: subject 3 is better on the second strand, 5 ties, 7 and 9 are on one strand only."""
    merged = merge_frames([block([(3, 10), (5, 20), (7, 4)]), block([(9, 1), (3, 11), (5, 20)])])
    assert merged.subject_index.tolist() == [3, 5, 7, 9]
    assert merged.score.tolist() == [11, 20, 4, 1]
    assert merged.comparison.tolist() == [1, 0, 0, 1]


def test_no_rows_at_all_merge_and_rank_to_nothing():
    merged = merge_frames([block([]), block([])])
    assert len(merged) == 0
    assert listed(merged, 5, "all") == []


@settings(max_examples=200)
@given(
    rows=st.lists(st.tuples(st.integers(1, 9), st.sampled_from([0.5, 1.0, 3.0, 20.0])), max_size=30),
    top=st.integers(1, 12),
    ties=st.sampled_from(["cut", "all"]),
)
def test_ranking_equals_a_plain_sort_of_all_subjects(rows, top, ties):
    """Source: Python's sort by (E-value, -score, index), the documented order, then the cut."""
    scores, evalues = [s for s, _ in rows], [e for _, e in rows]
    expected = sorted((e, -s, i) for i, (s, e) in enumerate(rows))
    if ties == "all" and len(expected) > top:
        expected = [row for row in expected if row[:2] <= expected[top - 1][:2]]
    else:
        expected = expected[:top]
    assert listed(candidates(scores, evalues), top, ties) == [i for _, _, i in expected]


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
    evalues = rng.choice([0.5, 1.0, 3.0, 20.0], n_rows)
    scored = candidates(rng.integers(6, 15, n_rows).tolist(), evalues.tolist())
    passing = rng.random(n_rows) < share
    lower = rng.random(n_rows) < rng.choice([0.0, 0.3])
    scores_of_passing = scored.score - np.where(lower, rng.integers(1, 5, n_rows), 0).astype(np.int32)
    evalues_of_passing = np.where(lower, evalues + rng.choice([0.0, 2.5], n_rows), evalues)
    rows = zip(scores_of_passing.tolist(), evalues_of_passing.tolist(), passing.tolist(), strict=True)
    expected = sorted((e, -s, i) for i, (s, e, p) in enumerate(rows) if p)
    last = expected[min(top, len(expected)) - 1] if expected else None
    if ties == "all" and last is not None:
        expected = [row for row in expected if row[:2] <= last[:2]]
    else:
        expected = expected[:top]
    asked: list[int] = []

    def judge(some: RankedCandidates) -> dict[int, list[ListedAlignment]]:
        subjects = some.subject_index.tolist()
        asked.extend(subjects)
        values = {s: (evalues_of_passing[s], scores_of_passing[s]) for s in subjects if passing[s]}
        return {s: [alignment(float(evalue), int(score))] for s, (evalue, score) in values.items()}

    found = best(scored.in_order(), judge, top=top, ties=ties)
    assert [(first.evalue, subject) for subject, (first, *_) in found.items()] == [(e, i) for e, _, i in expected]
    assert asked == scored.in_order().subject_index[: len(asked)].tolist()


def alignment(evalue: float | None, score: int) -> ListedAlignment:
    return ListedAlignment(1, evalue, SimpleNamespace(score=score))  # type: ignore[arg-type]


def best(ordered: RankedCandidates, judge: Any, **options: Any) -> Any:
    """The list of a selection whose alignments ``judge`` gives."""
    chosen = SearchOptions(**options)
    search = SimpleNamespace(database=None, options=chosen, limits=chosen.limits(PROTEIN), significance=None)
    selection = HitSelection(search, None)  # type: ignore[arg-type]
    selection._listed_alignments = lambda _prepared, _compared, some, *_: judge(some)  # type: ignore[method-assign]
    threshold = SimpleNamespace(needs_alignments=True, chaining=None)
    return selection.best(SimpleNamespace(threshold=threshold), [], ordered)  # type: ignore[arg-type]


def test_no_more_is_asked_of_a_ranking_than_fills_the_list():
    """By hand: 16 are checked together, and all of them pass."""
    blocks: list[int] = []

    def judge(some: RankedCandidates) -> dict[int, list[ListedAlignment]]:
        blocks.append(len(some))
        return {subject: [alignment(None, 9)] for subject in some.subject_index.tolist()}

    ordered = candidates([9] * 500).in_order()
    assert len(best(ordered, judge, top=5)) == 5
    assert blocks == [16]
    assert len(best(ordered, judge, top=5, ties="all")) == 500


def test_without_statistics_the_score_ranks():
    """Hand-made: equal scores are ordered by index."""
    assert listed(candidates([5, 9, 5, 1]), 3) == [1, 0, 2]
