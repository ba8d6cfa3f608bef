"""A query with scores of its own at every position, as a PSSM or a multiple alignment gives them.

Everything that takes a :class:`swsearch.sequences.record.SequenceRecord` takes it: its letters are the consensus that
reports show, its header names where it comes from. The search alone looks at the scores.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from swsearch.errors import ScoringError
from swsearch.query.profile import QueryProfile
from swsearch.scoring.gap import GapPenalty
from swsearch.scoring.matrix import MAX_SCORE, MIN_SCORE, SubstitutionMatrix
from swsearch.sequences.record import SequenceRecord
from swsearch.typing import Codes, ScoreTable

N_AMINO_ACIDS = 20
"""Letters that a position-specific score belongs to: the first codes of the protein alphabet."""


@dataclass(frozen=True, eq=False)
class PositionSpecificQuery(SequenceRecord):
    """A protein query whose positions have scores.

    Attributes
    ----------
    scores : int8 array, shape (length, 32)
        Score of each position against each subject code, as in :class:`swsearch.query.profile.QueryProfile`.
    """

    scores: ScoreTable

    def profile(self, gap: GapPenalty) -> QueryProfile:
        """What an engine needs of it: a table row for each position."""
        return QueryProfile(np.arange(len(self), dtype=np.int32), self.scores, gap)


def with_other_letters(scores: NDArray[np.int64], consensus: Codes, matrix: SubstitutionMatrix) -> ScoreTable:
    """The whole table of a query from its scores for the twenty amino acids.

    The other letters (B, Z, X, ``*``, U, O, J) score as the matrix scores them against the consensus, which is what
    PSI-BLAST does for X and ``*``. So a PSSM that repeats a matrix's rows is that matrix in every letter.

    Parameters
    ----------
    scores : int array, shape (length, 20)
        In the order of the alphabet, ``ARNDCQEGHILKMFPSTWYV``.
    consensus : uint8 array, shape (length,)
    matrix : SubstitutionMatrix

    Raises
    ------
    ScoringError
        A score is outside -127 … 127.
    """
    if scores.min() < MIN_SCORE or scores.max() > MAX_SCORE:
        raise ScoringError(f"position-specific scores lie outside {MIN_SCORE} … {MAX_SCORE}; scale them down")
    table = matrix.scores[consensus].copy()
    table[:, :N_AMINO_ACIDS] = scores
    return table
