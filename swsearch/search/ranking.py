"""The order of the subjects of a query, as arrays: each subject once, with its best comparison.

A subject is ranked once, by its best comparison (strand, or pair of frames); among comparisons of equal score, the
first one is used. Subjects are ordered by ascending E-value, then descending raw score, then ascending subject index.
E-values of one query are not a monotonic function of its scores, because they also depend on the length of the subject.
Where the list ends is decided by :mod:`swsearch.hits.limits`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from swsearch.hits.limits import Rank
from swsearch.hits.score_block import ScoreBlock
from swsearch.typing import Floats, Scores, SubjectIndex


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
    evalue : float64 array, optional
        E-value of the score; None if the scoring scheme has no statistics, or if they are not yet known.
    masked_evalue : float64 array, optional
        E-value of the best score of the masked query; None if it has no soft mask.
    """

    subject_index: SubjectIndex
    score: Scores
    comparison: NDArray[np.uint8]
    evalue: Floats | None = None
    masked_evalue: Floats | None = None

    def __len__(self) -> int:
        return len(self.score)

    def rows(self, rows: NDArray[np.intp]) -> RankedCandidates:
        """The candidates at these rows, in the order of ``rows``."""
        evalue = None if self.evalue is None else self.evalue[rows]
        masked = None if self.masked_evalue is None else self.masked_evalue[rows]
        return RankedCandidates(self.subject_index[rows], self.score[rows], self.comparison[rows], evalue, masked)

    def in_order(self) -> RankedCandidates:
        """The candidates, best first."""
        keys = (self.subject_index, -self.score)
        return self.rows(np.lexsort(keys if self.evalue is None else (*keys, self.evalue)))

    def rank(self, row: int) -> Rank:
        """The sort key of the candidate at a row."""
        evalue = 0.0 if self.evalue is None else float(self.evalue[row])
        return evalue, -int(self.score[row]), int(self.subject_index[row])


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
