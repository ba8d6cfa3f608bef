"""The query profile: the scores of every query position against every subject letter, as the input of engines.

The score of query position ``i`` is ``table[rows[i], subject code & 31]``. The profile of a sequence has one table row
per distinct letter, so an engine may build one score vector per row and reuse it at all positions with this row. The
profile of a position-specific query has one row per position. For engines, there is no other difference.

:class:`PositionSpecificQuery` is a query with the scores of a PSSM or a multiple alignment, and :class:`SubjectRecord`
one that is itself a subject of the searched database. Both are records of sequences
(:class:`swsearch.sequences.record.SequenceRecord`).

A query is also a profile hidden Markov model, :class:`ProfileModel`, with a column for each position and the
probabilities of gaps beside it. A *column* is the distribution of the 20 amino acids at a position of a sequence in the
alignments of its relatives. The model of a position has three states: a pair of residues (M), an insertion of subject
residues behind it (I), and a deletion of the position (D). Its transitions lead to its own insertion and to the pair
and the deletion of the next position. Models of HMMER's files have transitions of their own, all other queries have
:data:`USUAL_TRANSITIONS`.

Local Forward scores (:mod:`swsearch.query.columns`) add the odds of all alignments, each the product of the odds of its
pairs and of the probabilities of its transitions. The recurrence of the kernels needs four factors for each position
(:attr:`ProfileModel.gap_factors`), in which transitions into a gap and back to a pair are combined.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch.errors import ScoringError
from swsearch.hits.result import Pssm
from swsearch.scoring.matrix import MAX_SCORE, MIN_SCORE, SubstitutionMatrix
from swsearch.scoring.scheme import GapPenalty, ScoringScheme
from swsearch.sequences.alphabet import CODE_MASK, N_AMINO_ACIDS, N_CODES
from swsearch.sequences.record import SequenceRecord
from swsearch.typing import Codes, Floats, Scores, ScoreTable


@dataclass(frozen=True, eq=False)
class QueryProfile:
    """Scores of every query position against every subject letter, with the gap cost.

    Attributes
    ----------
    rows : int32 array, shape (query_length,)
        Table row of each query position.
    table : int8 array, shape (n_rows, 32), C order
        Score of each row against each subject code; -128 for codes that are not letters.
    gap : GapPenalty
    """

    rows: NDArray[np.int32]
    table: ScoreTable
    gap: GapPenalty

    def __post_init__(self) -> None:
        if self.table.ndim != 2 or self.table.shape[1] != N_CODES or self.table.dtype != np.int8:
            raise ScoringError(f"a profile's table is int8 of shape (n, {N_CODES}), not {self.table.shape}")
        if self.rows.size == 0:
            raise ScoringError("the query is empty; give a sequence of at least one residue")

    @property
    def length(self) -> int:
        """Query length in residues."""
        return int(self.rows.size)

    @cached_property
    def max_score(self) -> int:
        """Largest score of any position."""
        return int(self.table.max())

    def most_columns(self, scores: Scores) -> NDArray[np.int64] | None:
        """Upper bound on the subject columns that alignments with these scores span; None if gap extension is free.

        The sum of the best scores of all positions, minus the score of an alignment, bounds the cost of its gaps.
        """
        if self.gap.extend == 0:
            return None
        best = np.maximum(self.table.max(axis=1), 0).astype(np.int64)
        for_gaps = int(best[self.rows].sum(dtype=np.int64)) - scores.astype(np.int64) - self.gap.open
        columns: NDArray[np.int64] = self.length + np.maximum(for_gaps, 0) // self.gap.extend
        return columns


def sequence_profile(codes: Codes, scheme: ScoringScheme) -> QueryProfile:
    """Profile of a plain sequence.

    Parameters
    ----------
    codes : uint8 array, shape (query_length,)
        Residue codes; soft-mask flags do not affect scores.
    scheme : ScoringScheme
    """
    kinds = codes & CODE_MASK
    is_used = np.zeros(N_CODES, dtype=np.bool_)
    is_used[kinds] = True
    row_of = np.cumsum(is_used, dtype=np.int32) - np.int32(1)
    return QueryProfile(row_of[kinds], scheme.matrix.scores[is_used], scheme.gap)


GAP_OPEN: Final = 0.03
GAP_EXTEND: Final = 0.5
"""Probabilities δ that a gap begins in either sequence after a pair of residues, and ε that it is extended."""
MM, MI, MD, IM, II, DM, DD = range(N_TRANSITIONS := 7)
"""The order of the transitions, which is that of HMMER's files: the state that they leave, and the one they lead to."""
LEAVING: Final = (("a match", slice(MM, IM)), ("an insertion", slice(IM, DM)), ("a deletion", slice(DM, DD + 1)))
"""States, and the transitions that leave them."""
USUAL_TRANSITIONS: Final = (
    1.0 - 2.0 * GAP_OPEN,
    GAP_OPEN,
    GAP_OPEN,
    1.0 - GAP_EXTEND,
    GAP_EXTEND,
    1.0 - GAP_EXTEND,
    GAP_EXTEND,
)
_LEAST: Final = 1e-6
"""In place of smaller probabilities of transitions by which others are divided."""


@dataclass(frozen=True, eq=False)
class ProfileModel:
    """Columns and transitions.

    Attributes
    ----------
    columns : float64 array, shape (length, 20)
        Each has the sum 1.
    transitions : float64 array, shape (length, 7)
        Probabilities in the order of :data:`USUAL_TRANSITIONS`. Those of the last position lead nowhere.
    """

    columns: Floats
    transitions: Floats

    @classmethod
    def of_columns(cls, columns: Floats) -> ProfileModel:
        """A model with the usual transitions."""
        return cls(columns, np.tile(np.array(USUAL_TRANSITIONS), (len(columns), 1)))

    def __len__(self) -> int:
        """Number of positions."""
        return len(self.columns)

    @property
    def reversed(self) -> ProfileModel:
        """The model in which each path through this one has the same probability from its end to its beginning."""
        before = np.roll(self.transitions[::-1], -1, axis=0)  # those of the position before, which now follows
        return ProfileModel(self.columns[::-1], before[:, [MM, IM, DM, MI, II, MD, DD]])

    @property
    def odds_factors(self) -> NDArray[np.float32]:
        """The columns, each times the probability that no gap follows; float32 of shape (length, 20)."""
        return (np.maximum(self.transitions[:, MM:MI], _LEAST) * self.columns).astype(np.float32)

    @property
    def gap_factors(self) -> NDArray[np.float32]:
        """The factors of gaps, float32 of shape (length, 4).

        They lead from the pair of the position before to a deletion of this position and back to a pair; from a
        deletion of the position before to one of this position; from this pair to an insertion and back to a pair; and
        from an insertion to a further residue of it. Each is divided by what the state that it leaves has already
        been multiplied with, as if it were followed by a pair.
        """
        here = np.maximum(self.transitions, [_LEAST, 0, 0, 0, 0, _LEAST, 0])
        before = np.roll(here, 1, axis=0)
        factors = (
            here[:, DM] * before[:, MD] / before[:, MM],
            here[:, DM] * before[:, DD] / before[:, DM],
            here[:, MI] * here[:, IM] / here[:, MM],
            here[:, II],
        )
        return np.stack(factors, axis=1).astype(np.float32)


@dataclass(frozen=True, eq=False)
class PositionSpecificQuery(SequenceRecord):
    """A protein query with a score for each position and letter.

    Attributes
    ----------
    scores : int8 array, shape (length, 32)
        Score of each position against each subject code, as in :class:`swsearch.query.profile.QueryProfile`.
    model : ProfileModel or None
        What a file of models states beside the scores; None if they are all that is known.
    has_relatives : bool
        Whether the scores come from more than one sequence, or may do so: False if they are what a sequence's own
        residues predict.
    """

    scores: ScoreTable
    model: ProfileModel | None = None
    has_relatives: bool = True

    @property
    def content(self) -> bytes:
        """What its hits depend on, except its letters."""
        model = b"" if self.model is None else self.model.columns.tobytes() + self.model.transitions.tobytes()
        return bytes([self.has_relatives]) + self.scores.tobytes() + model

    @property
    def pssm(self) -> Pssm:
        """The scores of the amino acids alone."""
        return Pssm(np.ascontiguousarray(self.scores[:, :N_AMINO_ACIDS]), self.has_relatives)

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


@dataclass(frozen=True, eq=False)
class SubjectRecord(SequenceRecord):
    """A subject as a query, with its index in the database's FASTA order."""

    subject_index: int

    @property
    def place(self) -> tuple[int, int]:
        """Its length and its index, by which subjects are ordered."""
        return len(self), self.subject_index
