"""The exact top N: from arrays of scores to the ranked subjects, in a deterministic order.

A subject is ranked once, by its best comparison (strand, or pair of frames); among comparisons of equal score, the
first one is used. Subjects are ordered by ascending E-value, then descending raw score, then ascending subject index.
E-values of one query are not a monotonic function of its scores, because they also depend on the length of the subject;
therefore, all subjects that can pass the E-value cut are ranked before the list is cut.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch.hits.score_block import ScoreBlock
from swsearch.typing import Floats, Scores, SubjectIndex

_MIN_BLOCK: Final = 64
"""Smallest number of candidates that are aligned and filtered together, so that all threads have work."""


@dataclass(frozen=True, eq=False)
class RankedCandidates:
    """Subjects that may be reported, each once, in any order; all arrays have the same length.

    Attributes
    ----------
    subject_index : uint32 array
    score : int32 array
        Score of the subject's best comparison.
    comparison : uint8 array
        Index of that comparison. Comparisons are numbered by query frame (or strand) and, within one, by subject frame.
    """

    subject_index: SubjectIndex
    score: Scores
    comparison: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.score)

    def at_least(self, lowest: int) -> RankedCandidates:
        """The candidates with scores of at least ``lowest``."""
        return self.rows(np.flatnonzero(self.score >= lowest))

    def rows(self, rows: NDArray[np.intp]) -> RankedCandidates:
        """The candidates at these rows, in the order of ``rows``."""
        return RankedCandidates(self.subject_index[rows], self.score[rows], self.comparison[rows])

    def joined(self, others: RankedCandidates) -> RankedCandidates:
        """These candidates, followed by ``others``."""
        return RankedCandidates(
            np.concatenate((self.subject_index, others.subject_index)),
            np.concatenate((self.score, others.score)),
            np.concatenate((self.comparison, others.comparison)),
        )


def merge_frames(blocks: list[ScoreBlock]) -> RankedCandidates:
    """Each subject once, with its best score; ``blocks`` has one block per comparison, in order of preference."""
    if len(blocks) == 1:
        return RankedCandidates(blocks[0].subject_index, blocks[0].score, np.zeros(len(blocks[0]), dtype=np.uint8))
    index = np.concatenate([block.subject_index for block in blocks])
    score = np.concatenate([block.score for block in blocks])
    comparison = np.repeat(np.arange(len(blocks), dtype=np.uint8), [len(block) for block in blocks])
    order = np.lexsort((comparison, -score, index))
    first = np.ones(len(order), dtype=bool)
    first[1:] = index[order[1:]] != index[order[:-1]]
    keep = order[first]
    return RankedCandidates(index[keep], score[keep], comparison[keep])


@dataclass(frozen=True, eq=False)
class Ranking:
    """The reported rows of :class:`RankedCandidates`, best first.

    Attributes
    ----------
    rows : int array
        Row of each reported subject in the candidates.
    evalues : float64 array or None
        E-value of each row; None if the scoring scheme has no statistics.
    n_passed : int
        Number of candidates that passed the E-value cut, before alignments were filtered and the list was cut to N.
    """

    rows: NDArray[np.intp]
    evalues: Floats | None
    n_passed: int


def in_order(candidates: RankedCandidates, evalues: Floats | None, largest_evalue: float) -> Ranking:
    """All candidates that can be reported, best first.

    Parameters
    ----------
    candidates : RankedCandidates
    evalues : float64 array or None
        E-value of each candidate; if None, candidates are ordered by score alone and none is left out.
    largest_evalue : float
        Candidates with a larger E-value are left out.
    """
    passed = np.arange(len(candidates)) if evalues is None else (evalues <= largest_evalue).nonzero()[0]
    index, score = candidates.subject_index[passed], candidates.score[passed]
    keys = (index, -score) if evalues is None else (index, -score, evalues[passed])
    rows = passed[np.lexsort(keys)]
    return Ranking(rows, None if evalues is None else evalues[rows], len(passed))


def cut(candidates: RankedCandidates, ranking: Ranking, top: int, ties: str) -> Ranking:
    """The first ``top`` of a ranking; with ``ties`` ``all``, also those that equal the last in E-value and score."""
    n_kept = min(top, len(ranking.rows))
    if ties == "all" and n_kept:
        n_kept = int(np.flatnonzero(_equal(candidates, ranking, n_kept - 1))[-1]) + 1
    return _part(ranking, np.arange(n_kept))


def cut_passing(
    candidates: RankedCandidates,
    ranking: Ranking,
    top: int,
    ties: str,
    judge: Callable[[NDArray[np.intp]], tuple[RankedCandidates, Floats | None]],
    largest_evalue: float,
) -> tuple[RankedCandidates, Ranking]:
    """The first ``top`` subjects of a ranking whose alignments pass a filter; no more are aligned than necessary.

    Subjects are tested in the order of the ranking. A subject may pass with an alignment whose score is lower than the
    score by which the subject was ranked; it is then ranked again by the lower score. The list is complete when the
    next subject to be tested, even with its original score, would be ranked after the last subject of the list.

    Parameters
    ----------
    candidates : RankedCandidates
    ranking : Ranking
        The ranking of :func:`in_order`.
    top, ties
        As for :func:`cut`, applied to the subjects that pass.
    judge : callable
        Takes rows of the candidates. Returns the subjects that pass, each with the score with which it passes (at most
        the score of the candidate), and the E-values of these scores.
    largest_evalue : float
        Subjects that pass with a larger E-value are left out.

    Returns
    -------
    passing : RankedCandidates
        The subjects that passed, with the scores with which they passed.
    ranking : Ranking
        The ranking of ``passing``; its ``n_passed`` is that of the argument ``ranking``.
    """
    passing = candidates.rows(ranking.rows[:0])
    evalues = None if ranking.evalues is None else ranking.evalues[:0]
    ordered = Ranking(ranking.rows[:0], evalues, 0)
    first = 0
    size = max(top, _MIN_BLOCK)
    while first < len(ranking.rows):
        judged, judged_evalues = judge(ranking.rows[first : first + size])
        passing = passing.joined(judged) if len(passing) else judged
        if evalues is not None and judged_evalues is not None:
            evalues = np.concatenate((evalues, judged_evalues))
        ordered = in_order(passing, evalues, largest_evalue)
        first += size
        if len(ordered.rows) >= top and first < len(ranking.rows):
            worst, next_best = _key(passing, ordered, top - 1), _key(candidates, ranking, first)
            if worst < next_best and (ties == "cut" or worst[:2] < next_best[:2]):
                break
    return passing, replace(cut(passing, ordered, top, ties), n_passed=ranking.n_passed)


def _key(candidates: RankedCandidates, ranking: Ranking, index: int) -> tuple[float, int, int]:
    """The sort key of the subject at ``index`` of a ranking."""
    row = ranking.rows[index]
    evalue = 0.0 if ranking.evalues is None else float(ranking.evalues[index])
    return evalue, -int(candidates.score[row]), int(candidates.subject_index[row])


def _equal(candidates: RankedCandidates, ranking: Ranking, index: int) -> NDArray[np.bool_]:
    """For each row of a ranking, whether its score and E-value equal those at ``index``; bool."""
    score = candidates.score[ranking.rows]
    equal: NDArray[np.bool_] = score == score[index]
    if ranking.evalues is not None:
        equal &= ranking.evalues == ranking.evalues[index]
    return equal


def _part(ranking: Ranking, indices: NDArray[np.intp]) -> Ranking:
    evalues = None if ranking.evalues is None else ranking.evalues[indices]
    return Ranking(ranking.rows[indices], evalues, ranking.n_passed)
