"""The exact top N: from score columns to the ranked few, in the order that never varies.

A subject is found once, on its better strand (the plus strand among equals). Subjects come by smaller E-value, then
higher raw score, then smaller subject index. E-values of one query are not ordered as its scores are, because they
depend on the subject's length; so every subject that can pass the E-value cut is ranked, and only then the list is cut.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from swsearch.hits.score_block import ScoreBlock
from swsearch.typing import Floats, Scores, SubjectIndex


@dataclass(frozen=True, eq=False)
class Candidates:
    """Subjects that may be reported, each once, columns of one length in any order.

    Attributes
    ----------
    subject_index : uint32 array
    score : int32 array
        Score on the better strand.
    strand : uint8 array
        Number of that strand in the order in which strands were searched.
    """

    subject_index: SubjectIndex
    score: Scores
    strand: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.score)

    def at_least(self, lowest: int) -> Candidates:
        """Those that score ``lowest`` or more."""
        keep = np.flatnonzero(self.score >= lowest)
        return Candidates(self.subject_index[keep], self.score[keep], self.strand[keep])


def merge_strands(blocks: list[ScoreBlock]) -> Candidates:
    """Each subject once, with its best score; ``blocks`` holds one block a strand, the preferred one first."""
    if len(blocks) == 1:
        return Candidates(blocks[0].subject_index, blocks[0].score, np.zeros(len(blocks[0]), dtype=np.uint8))
    index = np.concatenate([block.subject_index for block in blocks])
    score = np.concatenate([block.score for block in blocks])
    strand = np.repeat(np.arange(len(blocks), dtype=np.uint8), [len(block) for block in blocks])
    order = np.lexsort((strand, -score, index))
    first = np.ones(len(order), dtype=bool)
    first[1:] = index[order[1:]] != index[order[:-1]]
    keep = order[first]
    return Candidates(index[keep], score[keep], strand[keep])


@dataclass(frozen=True, eq=False)
class Ranking:
    """The reported rows of :class:`Candidates`, best first.

    Attributes
    ----------
    rows : int array
        Rows of the candidates.
    evalues : float64 array or None
        E-value of each, None where the scoring scheme has no statistics.
    n_passed : int
        Rows that passed the E-value cut before the list was cut at the top N.
    """

    rows: NDArray[np.intp]
    evalues: Floats | None
    n_passed: int


def rank(candidates: Candidates, evalues: Floats | None, largest_evalue: float, top: int, ties: str) -> Ranking:
    """The best ``top`` candidates.

    Parameters
    ----------
    candidates : Candidates
    evalues : float64 array or None
        E-value of each candidate; without them the score alone decides and nothing is cut by E-value.
    largest_evalue : float
        Candidates above it are left out.
    top : int
        Length of the list.
    ties : str
        ``all`` also keeps those that equal the last of the list in E-value and score.
    """
    passed = np.arange(len(candidates)) if evalues is None else np.flatnonzero(evalues <= largest_evalue)
    index, score = candidates.subject_index[passed], candidates.score[passed]
    keys = (index, -score) if evalues is None else (index, -score, evalues[passed])
    order = np.lexsort(keys)
    n_kept = min(top, len(order))
    if ties == "all" and n_kept:
        last = order[n_kept - 1]
        equal = score[order] == score[last]
        if evalues is not None:
            equal &= evalues[passed][order] == evalues[passed][last]
        n_kept = max(n_kept, int(np.flatnonzero(equal)[-1]) + 1)
    rows = passed[order[:n_kept]]
    return Ranking(rows, None if evalues is None else evalues[rows], len(passed))
