"""A query with position-specific scores, derived from a PSSM or a multiple alignment.

:class:`PositionSpecificQuery` is a :class:`swsearch.sequences.record.SequenceRecord` whose letters are the consensus,
which reports show, and whose header states its source. Only the search uses the scores.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from swsearch.errors import ScoringError
from swsearch.hits.result import N_AMINO_ACIDS, Pssm
from swsearch.query.profile import QueryProfile
from swsearch.scoring.gap import GapPenalty
from swsearch.scoring.matrix import MAX_SCORE, MIN_SCORE, SubstitutionMatrix
from swsearch.sequences.record import SequenceRecord
from swsearch.typing import Codes, ScoreTable


@dataclass(frozen=True, eq=False)
class PositionSpecificQuery(SequenceRecord):
    """A protein query with a score for each position and letter.

    Attributes
    ----------
    scores : int8 array, shape (length, 32)
        Score of each position against each subject code, as in :class:`swsearch.query.profile.QueryProfile`.
    """

    scores: ScoreTable

    @property
    def pssm(self) -> Pssm:
        """The scores of the amino acids alone."""
        return Pssm(np.ascontiguousarray(self.scores[:, :N_AMINO_ACIDS]))

    def profile(self, gap: GapPenalty) -> QueryProfile:
        """The query's profile, with one table row per position."""
        return QueryProfile(np.arange(len(self), dtype=np.int32), self.scores, gap)


def with_other_letters(scores: NDArray[np.int64], consensus: Codes, matrix: SubstitutionMatrix) -> ScoreTable:
    """The score table of a query, from its scores for the twenty amino acids.

    The other letters (B, Z, X, ``*``, U, O, J) have the scores of the matrix against the consensus, as X and ``*`` have
    in PSI-BLAST. A PSSM that repeats the rows of a matrix therefore has the scores of the matrix for all letters.

    Parameters
    ----------
    scores : int array, shape (length, 20)
        Scores in the order of the alphabet, ``ARNDCQEGHILKMFPSTWYV``.
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
