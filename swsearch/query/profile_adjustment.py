"""E-values of an iterated search's profiles, adjusted for the composition of the aligned part of each subject.

A profile of membrane proteins has high scores for hydrophobic residues at most of its positions, so it meets other
membrane proteins with scores that are unlikely only among residues of natural composition. As in PSI-BLAST's
composition-based statistics (Schäffer and others 2001, doi 10.1093/nar/29.14.2994), the scale of the scores is
therefore computed anew for each subject: λ' is the solution of ::

    mean over positions of Σ_a r(a) exp(λ' s(a)) = 1,   r(a) = (n_a + 40 p(a)) / (n + 40)

where n_a is the count of amino acid a among the n amino acids of the *aligned* part of the subject, and p the
composition of natural proteins. If λ' is smaller than the λ of the matrix, the E-value of a raw score S becomes ::

    E' = E exp(λ_g S (1 - λ' / λ)),   λ' / λ at least 1/2

with λ_g of the gapped statistics; otherwise it stays. Hence E' is never smaller than E. On SCOPe40, with the
composition of the aligned part E' costs no sensitivity; with that of the whole subject, as in PSI-BLAST, it does
(``docs/design/iterated-searches.md``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from swsearch.deterministic import exp, sum_in_order
from swsearch.query.profile import PositionSpecificQuery
from swsearch.scoring.composition_adjustment import PSEUDOCOUNTS, SMALLEST_RATIO, EvalueAdjustment, joined
from swsearch.scoring.karlin_altschul import Statistics
from swsearch.scoring.matrix import SubstitutionMatrix
from swsearch.scoring.published_parameters import NoStatistics
from swsearch.scoring.ungapped import background, matrix_lambda
from swsearch.sequences.alphabet import N_AMINO_ACIDS, N_CODES, PROTEIN
from swsearch.sequences.record import SequenceRecord
from swsearch.typing import Codes, Floats, ScoreTable

_STEPS: Final = 10
"""Steps of Newton's method, which converges quadratically from above, since the sum is a convex function of λ'."""


class ProfileAdjustment(EvalueAdjustment):
    """The adjustment of the E-values of one profile.

    Parameters
    ----------
    scores : int8 array, shape (length, 32)
        The scores of the profile.
    lam : float
        λ of the matrix without gaps, which is the scale of the scores among residues of natural composition.
    gapped : float
        λ_g of the gapped statistics.
    """

    def __init__(self, scores: ScoreTable, lam: float, gapped: float) -> None:
        super().__init__(gapped)
        self._lam = lam
        amino_acids = scores[:, :N_AMINO_ACIDS].astype(np.int64)
        lowest = int(amino_acids.min())
        self._values = np.arange(lowest, int(amino_acids.max()) + 1, dtype=np.float64)
        width = len(self._values)
        places = amino_acids - lowest + width * np.arange(N_AMINO_ACIDS)
        counts = np.bincount(places.ravel(), minlength=width * N_AMINO_ACIDS).reshape(N_AMINO_ACIDS, width)
        self._shares = counts / len(scores)

    @classmethod
    def of(
        cls, query: SequenceRecord, matrix: SubstitutionMatrix, statistics: Statistics | NoStatistics
    ) -> ProfileAdjustment | None:
        """The adjustment of a query; None if it has no position-specific scores, or if there are no E-values."""
        if not isinstance(query, PositionSpecificQuery) or not isinstance(statistics, Statistics):
            return None
        lam = matrix_lambda(matrix)
        return None if lam is None else cls(query.scores, lam, statistics.lam)

    def ratios(self, query_parts: Sequence[Codes], subject_parts: Sequence[Codes]) -> Floats:
        """See :meth:`EvalueAdjustment.ratios`; the query's parts have no effect, since positions have no letters."""
        composition = self._composition(subject_parts)
        probabilities = np.zeros((len(subject_parts), len(self._values)))
        for letter in range(N_AMINO_ACIDS):  # in order, so that every machine has the same sum
            probabilities = probabilities + composition[:, letter : letter + 1] * self._shares[letter]
        lam = np.full(len(subject_parts), self._lam)
        lowest = SMALLEST_RATIO * self._lam
        for _ in range(_STEPS):
            terms = probabilities * exp(lam[:, None] * self._values)
            excess = sum_in_order(terms, axis=1) - 1.0
            slope = sum_in_order(terms * self._values, axis=1)
            step = np.where((excess > 0.0) & (slope > 0.0), excess / np.where(slope > 0.0, slope, 1.0), 0.0)
            # Without a positive slope above the solution, the mean score is positive, and there is no solution.
            nearer = np.where((excess > 0.0) & (slope <= 0.0), lowest, np.maximum(lam - step, lowest))
            if np.array_equal(nearer, lam):  # further steps would change nothing either
                break
            lam = nearer
        ratios: Floats = lam / self._lam
        return ratios

    @staticmethod
    def _composition(aligned: Sequence[Codes]) -> Floats:
        """Proportions r of the amino acids, shape (n, 20)."""
        codes, ends = joined(aligned)
        rows = np.repeat(np.arange(len(aligned)), np.diff(ends, prepend=0))
        counts = np.bincount(rows * N_CODES + codes, minlength=len(aligned) * N_CODES)
        amino_acids = counts.reshape(len(aligned), N_CODES)[:, :N_AMINO_ACIDS]
        n = amino_acids.sum(axis=1, dtype=np.int64)[:, None]
        composition: Floats = (amino_acids + PSEUDOCOUNTS * background(PROTEIN)) / (n + PSEUDOCOUNTS)
        return composition
