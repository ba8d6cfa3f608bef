"""The exact top N: from score columns to the ranked few, in the order that never varies.

A subject is ranked once, by its best reading (strand or frames; the first among equals). Subjects come by smaller
E-value, then higher raw score, then smaller subject index. E-values of one query are not ordered as its scores are,
because they depend on the subject's length; so every subject that can pass the E-value cut is ranked, and only then the
list is cut.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch.hits.score_block import ScoreBlock
from swsearch.typing import Floats, Scores, SubjectIndex

_LEAST_BLOCK: Final = 64
"""RankedCandidates that are judged together at least, so that threads have work."""


@dataclass(frozen=True, eq=False)
class RankedCandidates:
    """Subjects that may be reported, each once, columns of one length in any order.

    Attributes
    ----------
    subject_index : uint32 array
    score : int32 array
        Score of the best reading.
    reading : uint8 array
        Number of that reading in the order in which readings were searched: strands, or frames of the query and, within
        one, of the subject.
    """

    subject_index: SubjectIndex
    score: Scores
    reading: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.score)

    def at_least(self, lowest: int) -> RankedCandidates:
        """Those that score ``lowest`` or more."""
        return self.rows(np.flatnonzero(self.score >= lowest))

    def rows(self, rows: NDArray[np.intp]) -> RankedCandidates:
        """Those of some rows, in their order."""
        return RankedCandidates(self.subject_index[rows], self.score[rows], self.reading[rows])

    def joined(self, others: RankedCandidates) -> RankedCandidates:
        """These, then the others."""
        return RankedCandidates(
            np.concatenate((self.subject_index, others.subject_index)),
            np.concatenate((self.score, others.score)),
            np.concatenate((self.reading, others.reading)),
        )


def merge_readings(blocks: list[ScoreBlock]) -> RankedCandidates:
    """Each subject once, with its best score; ``blocks`` holds one block a reading, the preferred one first."""
    if len(blocks) == 1:
        return RankedCandidates(blocks[0].subject_index, blocks[0].score, np.zeros(len(blocks[0]), dtype=np.uint8))
    index = np.concatenate([block.subject_index for block in blocks])
    score = np.concatenate([block.score for block in blocks])
    reading = np.repeat(np.arange(len(blocks), dtype=np.uint8), [len(block) for block in blocks])
    order = np.lexsort((reading, -score, index))
    first = np.ones(len(order), dtype=bool)
    first[1:] = index[order[1:]] != index[order[:-1]]
    keep = order[first]
    return RankedCandidates(index[keep], score[keep], reading[keep])


@dataclass(frozen=True, eq=False)
class Ranking:
    """The reported rows of :class:`RankedCandidates`, best first.

    Attributes
    ----------
    rows : int array
        Rows of the candidates.
    evalues : float64 array or None
        E-value of each, None where the scoring scheme has no statistics.
    n_passed : int
        RankedCandidates that passed the E-value cut, before alignments were judged and the list was cut at the top N.
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
        RankedCandidates above it are left out.
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
    """The first ``top`` of those of a ranking that pass; asks for no more of them than it must, best first.

    What passes may do so with less than the score that it was ranked by: another alignment of the subject. So it has a
    new place, and the list is complete when the best that could come would stand behind its end.

    Parameters
    ----------
    candidates : RankedCandidates
    ranking : Ranking
        Of :func:`in_order`.
    top, ties
        As for :func:`cut`; those that pass are counted.
    judge : callable
        For rows of the candidates, those subjects that pass, each with the score that it passes with, at most its
        candidate's, and the E-values of these scores.
    largest_evalue : float
        What passes with a larger E-value is left out.

    Returns
    -------
    passing : RankedCandidates
        Those that passed, with the scores that they passed with.
    ranking : Ranking
        Of ``passing``; ``n_passed`` is that of the ranking given.
    """
    passing = candidates.rows(ranking.rows[:0])
    evalues = None if ranking.evalues is None else ranking.evalues[:0]
    ordered = in_order(passing, evalues, largest_evalue)
    first = 0
    size = max(top, _LEAST_BLOCK)
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


def _key(candidates: RankedCandidates, ranking: Ranking, place: int) -> tuple[float, int, int]:
    """What the one at ``place`` of a ranking is ordered by."""
    row = ranking.rows[place]
    evalue = 0.0 if ranking.evalues is None else float(ranking.evalues[place])
    return evalue, -int(candidates.score[row]), int(candidates.subject_index[row])


def _equal(candidates: RankedCandidates, ranking: Ranking, place: int) -> NDArray[np.bool_]:
    """Which rows of a ranking equal the one at ``place`` in score and E-value."""
    score = candidates.score[ranking.rows]
    equal: NDArray[np.bool_] = score == score[place]
    if ranking.evalues is not None:
        equal &= ranking.evalues == ranking.evalues[place]
    return equal


def _part(ranking: Ranking, places: NDArray[np.intp]) -> Ranking:
    evalues = None if ranking.evalues is None else ranking.evalues[places]
    return Ranking(ranking.rows[places], evalues, ranking.n_passed)
