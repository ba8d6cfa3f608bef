"""The exact top N: from columns of scores to the ranked subjects, in an order that is always the same.

A subject is ranked once, by its best comparison (strand, or pair of frames); among equal ones by the first. Subjects
are ordered by ascending E-value, then descending raw score, then ascending subject index. E-values of one query are not
ordered as its scores are, because they depend on the subject's length; so every subject that can pass the E-value cut
is ranked before the list is cut.
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
    """Subjects that may be reported, each once, in any order; all columns have the same length.

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
        """The candidates that score ``lowest`` or more."""
        return self.rows(np.flatnonzero(self.score >= lowest))

    def rows(self, rows: NDArray[np.intp]) -> RankedCandidates:
        """The candidates at some rows, in the order of ``rows``."""
        return RankedCandidates(self.subject_index[rows], self.score[rows], self.comparison[rows])

    def joined(self, others: RankedCandidates) -> RankedCandidates:
        """These candidates followed by the others."""
        return RankedCandidates(
            np.concatenate((self.subject_index, others.subject_index)),
            np.concatenate((self.score, others.score)),
            np.concatenate((self.comparison, others.comparison)),
        )


def merge_frames(blocks: list[ScoreBlock]) -> RankedCandidates:
    """Each subject once, with its best score; ``blocks`` holds one block per comparison, the preferred one first."""
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
        E-value of each row; None where the scoring scheme has no statistics.
    n_passed : int
        Candidates that passed the E-value cut, before alignments were filtered and the list was cut at the top N.
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
        E-value of each candidate; without them the score alone decides and nothing is cut by E-value.
    largest_evalue : float
        Candidates with a larger E-value are left out.
    """
    passed = np.arange(len(candidates)) if evalues is None else np.flatnonzero(evalues <= largest_evalue)
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
    """The first ``top`` subjects of a ranking whose alignments pass a filter; aligns no more of them than necessary.

    Subjects are judged from the best downwards. A subject may pass with a lower score than the one it was ranked by,
    namely with another of its alignments; it is then ranked anew by that score. The list is complete as soon as the
    next subject to be judged would, even with the score it was ranked by, come after the end of the list.

    Parameters
    ----------
    candidates : RankedCandidates
    ranking : Ranking
        The ranking of :func:`in_order`.
    top, ties
        As for :func:`cut`, applied to the subjects that pass.
    judge : callable
        Takes rows of the candidates. Returns the subjects that pass, each with the score that it passes with (at most
        the candidate's score), and the E-values of these scores.
    largest_evalue : float
        Subjects that pass with a larger E-value are left out.

    Returns
    -------
    passing : RankedCandidates
        The subjects that passed, with the scores that they passed with.
    ranking : Ranking
        The ranking of ``passing``; ``n_passed`` is that of the ranking given.
    """
    passing = candidates.rows(ranking.rows[:0])
    evalues = None if ranking.evalues is None else ranking.evalues[:0]
    ordered = in_order(passing, evalues, largest_evalue)
    first = 0
    size = max(top, _MIN_BLOCK)
    while first < len(ranking.rows):
        judged, judged_evalues = judge(ranking.rows[first : first + size])
        passing = passing.joined(judged)
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
    """Which rows of a ranking equal the one at ``index`` in score and E-value."""
    score = candidates.score[ranking.rows]
    equal: NDArray[np.bool_] = score == score[index]
    if ranking.evalues is not None:
        equal &= ranking.evalues == ranking.evalues[index]
    return equal


def _part(ranking: Ranking, indices: NDArray[np.intp]) -> Ranking:
    evalues = None if ranking.evalues is None else ranking.evalues[indices]
    return Ranking(ranking.rows[indices], evalues, ranking.n_passed)
