"""What an engine returns: the scores of the subjects, and the ends of optimal alignments, one element per subject."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from swsearch.typing import Scores, SubjectIndex


@dataclass(frozen=True, eq=False)
class ScoreBlock:
    """Exact raw scores of subjects against one query.

    Attributes
    ----------
    subject_index : uint32 array, shape (n,)
        Index of each subject in the database's FASTA order.
    score : int32 array, shape (n,)
        Optimal local score, 0 if nothing aligns.
    n_rescored : int
        Number of subjects whose score exceeded the narrow integer type and was computed again in a wider one.
    n_left_out : int
        Number of subjects that reach the floor but have no row, because a top-N bound excludes them from the best N.
    n_bounded : int
        Number of subjects whose score was not computed, because a bound proved that it is below the floor.
    within : mapping of int to (int, int)
        For some long subjects, by index: a range of columns, its first one (a multiple of 16, counted from 0) and its
        length, in which the subject's first best alignment lies completely.
    """

    subject_index: SubjectIndex
    score: Scores
    n_rescored: int = field(default=0)
    n_left_out: int = field(default=0)
    n_bounded: int = field(default=0)
    within: Mapping[int, tuple[int, int]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.score)

    def at_least(self, floor: int | Scores) -> ScoreBlock:
        """The rows with scores of at least ``floor``, which is one number or that of each row."""
        keep = np.flatnonzero(self.score >= floor)
        return self._rows(keep)

    def among(self, subjects: SubjectIndex) -> ScoreBlock:
        """The rows of these subjects."""
        keep = np.flatnonzero(np.isin(self.subject_index, subjects))
        return self._rows(keep)

    def _rows(self, rows: NDArray[np.intp]) -> ScoreBlock:
        return replace(self, subject_index=self.subject_index[rows], score=self.score[rows], n_left_out=0)

    @staticmethod
    def concatenate(blocks: list[ScoreBlock]) -> ScoreBlock:
        """The rows of all blocks, in the order of the blocks."""
        if not blocks:
            return ScoreBlock(np.empty(0, np.uint32), np.empty(0, np.int32))
        if len(blocks) == 1:
            return blocks[0]
        return ScoreBlock(
            np.concatenate([block.subject_index for block in blocks]),
            np.concatenate([block.score for block in blocks]),
            sum(block.n_rescored for block in blocks),
            sum(block.n_left_out for block in blocks),
            sum(block.n_bounded for block in blocks),
            {subject: columns for block in blocks for subject, columns in block.within.items()},
        )


@dataclass(frozen=True, eq=False)
class Ends:
    """The ends of one query's optimal alignments; among several, the smallest subject end, then smallest query end.

    Attributes
    ----------
    query_end : int64 array, shape (n_subjects,)
        Number of query residues up to the end, 1 to the query's length, on the strand of the profile; 0 if nothing
        aligns.
    subject_end : int64 array, shape (n_subjects,)
        Number of subject residues up to the end, 1 to the subject's length; 0 if nothing aligns.
    """

    query_end: NDArray[np.int64]
    subject_end: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.query_end)
