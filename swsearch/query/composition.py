"""Local composition: E-values adjusted for that of aligned parts, and scores of queries corrected for their own.

Both are for proteins, and both are values of the option ``composition``.

*Adjusted E-values* (``adjust``). Two proteins that are rich in the same amino acids have high scores although they are
not homologous: the matrix assumes that such pairs are rare. As in composition-based statistics (Schäffer and others
2001, doi 10.1093/nar/29.14.2994), the scale of the scores is therefore computed anew for each hit. λ' is the positive
solution of ::

    Σ_ab q(a) r(b) exp(λ' s(a, b)) = 1,   q(a) = (m_a + 40 p(a)) / (m + 40),   r(b) = (n_b + 40 p(b)) / (n + 40)

where m_a and n_b count the amino acids of the aligned parts of query and subject, m and n are their sums, p is the
composition of natural proteins, and s the matrix. A profile of membrane proteins has high scores for hydrophobic
residues at most of its positions, so it meets other membrane proteins with scores that are unlikely only among residues
of natural composition. For the scores s of a profile, λ' is the solution of ::

    mean over positions of Σ_b r(b) exp(λ' s(b)) = 1

If λ' is smaller than the λ of the matrix, the E-value of a raw score S becomes ::

    E' = E exp(λ_g S (1 - λ' / λ)),   λ' / λ at least 1/2

with λ_g of the gapped statistics; otherwise it stays. Hence E' is never smaller than E, and no score changes. Unlike
BLAST and PSI-BLAST, which take the composition of complete sequences, this adjustment looks only at what is aligned: on
SCOPe40 it then costs hardly any sensitivity of a matrix (``benchmarks/benchmark_composition.py``,
``docs/design/statistics.md``), and none of profiles (``docs/design/iterated-searches.md``).

*Corrected scores* (``bias``). A region of a query that is rich in some amino acids has high scores with every subject
that is rich in the same amino acids, whether it is homologous or not. With the composition around a position, such a
match is more likely by chance than the matrix assumes, because the matrix was derived for the average composition. Let
n_b be the count of amino acid b among the N residues within 20 residues of position i, p_b its background frequency,
and λ the ungapped λ of the matrix. Then::

    f_b     = (n_b + 40 p_b) / (N + 40)
    S'(i,b) = S(q_i, b) - round(strength · max(0, ln(f_b / p_b)) / λ)

ln(f_b / p_b) / λ is the part of the score of a match that is due to composition, in the units of the matrix. Correction
by a window was introduced by kClust, HHsuite and MMseqs2 (Hauser, Mayer and Söding 2013,
doi 10.1186/1471-2105-14-248), which shift all scores of a position by the same number, up or down. Here, the score of
each letter is lowered by a different number, and no score is raised. ``benchmarks/benchmark_composition.py`` measures
the effect, which ``docs/design/statistics.md`` describes.

The corrected scores form an ordinary query profile, which all engines and the traceback use.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from swsearch import _native
from swsearch.deterministic import exp, log, sum_in_order
from swsearch.errors import InputError, ScoringError
from swsearch.query.profile import PositionSpecificQuery, QueryProfile
from swsearch.scoring.karlin_altschul import Statistics
from swsearch.scoring.matrix import MIN_SCORE, SubstitutionMatrix
from swsearch.scoring.published_parameters import NoStatistics
from swsearch.scoring.scheme import GapPenalty, ScoringScheme
from swsearch.scoring.ungapped import background, matrix_lambda
from swsearch.sequences.alphabet import CODE_MASK, N_AMINO_ACIDS, N_CODES, PROTEIN
from swsearch.sequences.record import SequenceRecord
from swsearch.typing import Codes, Floats, ScoreTable
from swsearch.words import option

PSEUDOCOUNTS: Final = 40.0
"""Number of residues of natural composition that are added to those of an aligned part, or of a window."""
SMALLEST_RATIO: Final = 0.5
_NO_CODES: Final = np.empty(0, dtype=np.uint8)
_LARGEST_EXPONENT: Final = 700.0
"""exp of it is finite, so an E-value of 0 stays 0."""
_STEPS: Final = 10
"""Steps of Newton's method, which converges quadratically from above, since the sum is a convex function of λ'."""


def joined(parts: Sequence[Codes]) -> tuple[Codes, NDArray[np.int64]]:
    """The codes of all residues of proteins, without soft mask, one part after another, and the end of each part.

    >>> codes, ends = joined([PROTEIN.encode("ARx"), PROTEIN.encode(""), PROTEIN.encode("r")])
    >>> codes.tolist(), ends.tolist()
    ([0, 1, 22, 1], [3, 3, 4])
    """
    ends = np.cumsum(np.fromiter(map(len, parts), dtype=np.int64, count=len(parts)))
    return np.concatenate([_NO_CODES, *parts]) & np.uint8(CODE_MASK), ends


class EvalueAdjustment(ABC):
    """Increases the E-values of hits whose score is partly due to composition.

    ``lam`` is the λ of the matrix without gaps, ``gapped_lambda`` the λ_g of the gapped statistics.
    """

    def __init__(self, lam: float, gapped_lambda: float) -> None:
        self._lam = lam
        self._gapped_lambda = gapped_lambda

    @abstractmethod
    def ratios(self, query_parts: Sequence[Codes], subject_parts: Sequence[Codes]) -> Floats:
        """λ' / λ of each hit, from 0.5 to 1, from the residue codes of its aligned parts without gaps."""

    def adjusted(
        self,
        evalues: Floats,
        raw_scores: NDArray[np.int32],
        query_parts: Sequence[Codes],
        subject_parts: Sequence[Codes],
    ) -> Floats:
        """The adjusted E-values of hits; none becomes smaller.

        Parameters
        ----------
        evalues : float64 array, shape (n_hits,)
        raw_scores : int32 array, shape (n_hits,)
        query_parts, subject_parts : sequence of uint8 array
            The residue codes of the aligned parts, without gaps.
        """
        lost = self._gapped_lambda * raw_scores.astype(np.float64) * (1.0 - self.ratios(query_parts, subject_parts))
        found: Floats = evalues * exp(np.minimum(lost, _LARGEST_EXPONENT))
        return found


class PairAdjustment(EvalueAdjustment):
    """The adjustment of the E-values of queries that are scored by a matrix for proteins."""

    def __init__(self, matrix: SubstitutionMatrix, lam: float, gapped_lambda: float) -> None:
        super().__init__(lam, gapped_lambda)
        self._scores = np.ascontiguousarray(matrix.scores[:N_AMINO_ACIDS, :N_AMINO_ACIDS], dtype=np.int32)
        self._background = background(PROTEIN)
        self._usual, self._lowest = exp(np.array([lam, SMALLEST_RATIO * lam])).tolist()

    @classmethod
    @lru_cache(maxsize=16)  # asked for each query of a search
    def of(cls, matrix: SubstitutionMatrix, statistics: Statistics | NoStatistics) -> PairAdjustment | None:
        """The adjustment of a protein matrix; None if there are no E-values, or if random pairs score 0 or more."""
        if not isinstance(statistics, Statistics):
            return None
        lam = matrix_lambda(matrix)
        return None if lam is None else cls(matrix, lam, statistics.lam)

    def ratios(self, query_parts: Sequence[Codes], subject_parts: Sequence[Codes]) -> Floats:
        """See :meth:`EvalueAdjustment.ratios`."""
        scales = np.empty(len(query_parts), dtype=np.float64)
        _native.composition_scales(
            *joined(query_parts), *joined(subject_parts), self._scores, self._background, PSEUDOCOUNTS,
            self._usual, self._lowest, scales,
        )  # fmt: skip
        ratios: Floats = np.where(scales == self._usual, 1.0, np.maximum(log(scales) / self._lam, SMALLEST_RATIO))
        return ratios


class ProfileAdjustment(EvalueAdjustment):
    """The adjustment of the E-values of one profile, whose scores are int8 of shape (length, 32).

    The λ of the matrix is the scale of the scores among residues of natural composition.
    """

    def __init__(self, scores: ScoreTable, lam: float, gapped_lambda: float) -> None:
        super().__init__(lam, gapped_lambda)
        amino_acids = scores[:, :N_AMINO_ACIDS].astype(np.int64)
        lowest = int(amino_acids.min())
        self._values = np.arange(lowest, int(amino_acids.max()) + 1, dtype=np.float64)
        width = len(self._values)
        places = amino_acids - lowest + width * np.arange(N_AMINO_ACIDS)
        counts = np.bincount(places.ravel(), minlength=width * N_AMINO_ACIDS).reshape(N_AMINO_ACIDS, width)
        self._shares = counts / len(scores)

    @classmethod
    def of(
        cls,
        query: SequenceRecord,
        matrix: SubstitutionMatrix,
        statistics: Statistics | NoStatistics,
        share: float = 1.0,
    ) -> ProfileAdjustment | None:
        """The adjustment of a query; None if it has no position-specific scores, or if there are no E-values.

        ``share``, 0 to 1, is that of ln(E' / E) by which E-values are raised.
        """
        if not isinstance(query, PositionSpecificQuery) or not isinstance(statistics, Statistics):
            return None
        lam = matrix_lambda(matrix)
        return None if lam is None else cls(query.scores, lam, share * statistics.lam)

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


# --- corrected scores ---

STRENGTH: Final = 0.25
"""The strength for which the numbers of false hits at E <= 1 and 10 on SCOPe40 are closest to 1 and 10."""

WINDOW: Final = 20
"""Number of residues on each side of a position that define its local composition."""


def corrected_scale(scheme: ScoringScheme) -> float:
    """λ of a scheme without gaps, with which the scores of its queries are corrected.

    Raises
    ------
    InputError
        The scheme is not for proteins.
    ScoringError
        Its matrix has no ungapped λ.
    """
    if scheme.alphabet is not PROTEIN:
        raise InputError(
            f"{option('composition', 'bias')} is for protein, not for {scheme.alphabet.name}; leave it out"
        )
    lam = matrix_lambda(scheme.matrix)
    if lam is None:
        raise ScoringError(
            f"{option('composition', 'bias')}: matrix {scheme.matrix.name} scores random residues 0 or more on "
            "average; choose another matrix"
        )
    return lam


def local_counts(codes: Codes, n_letters: int) -> NDArray[np.int64]:
    """Count of each of the first ``n_letters`` letters around each position, int64 of shape (length, n_letters)."""
    letters = codes & CODE_MASK
    counted = np.flatnonzero(letters < n_letters)
    occurrences = np.zeros((len(codes), n_letters), dtype=np.int64)
    occurrences[counted, letters[counted]] = 1
    return _window_sums(occurrences)[0]


def corrected_profile(
    codes: Codes, matrix: SubstitutionMatrix, gap: GapPenalty, lam: float, strength: float = STRENGTH
) -> QueryProfile:
    """The profile of a sequence with scores corrected for local composition; uses about 2 kB of memory per residue.

    Parameters
    ----------
    codes : uint8 array, shape (query_length,)
        Residue codes; soft-mask flags do not affect scores.
    matrix : SubstitutionMatrix
    gap : GapPenalty
    lam : float
        λ of the matrix without gaps.
    strength : float
        0 for no correction.
    """
    usual = background(matrix.alphabet)
    counts = local_counts(codes, len(usual))
    n_counted = counts.sum(axis=1, keepdims=True, dtype=np.int64)
    local = (counts + PSEUDOCOUNTS * usual) / (n_counted + PSEUDOCOUNTS)
    scores = _lowered(matrix.scores[codes & CODE_MASK], local, usual, lam, strength)
    table, rows = np.unique(scores, axis=0, return_inverse=True)
    return QueryProfile(rows.reshape(-1).astype(np.int32), np.ascontiguousarray(table), gap)


def corrected_scores(scores: ScoreTable, matrix: SubstitutionMatrix, lam: float) -> ScoreTable:
    """Position-specific scores corrected for the composition that they expect around each position.

    The counts n_b of the formula are sums of the proportions p_b exp(λ s(b)) that the scores of a position imply.

    Parameters
    ----------
    scores : int8 array, shape (length, 32)
    matrix : SubstitutionMatrix
    lam : float
        λ of the scores without gaps.
    """
    usual = background(matrix.alphabet)
    expected = usual * exp(lam * scores[:, : len(usual)].astype(np.float64))
    expected /= sum_in_order(expected, axis=1)[:, None]
    sums, n_positions = _window_sums(expected)
    local = (sums + PSEUDOCOUNTS * usual) / (n_positions + PSEUDOCOUNTS)
    return _lowered(scores, local, usual, lam, STRENGTH)


def _window_sums(rows: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Sums of the rows within :data:`WINDOW` positions of each, and their numbers, of shape (n, 1)."""
    before = np.zeros((len(rows) + 1, rows.shape[1]), dtype=rows.dtype)
    np.cumsum(rows, axis=0, out=before[1:])
    positions = np.arange(len(rows))
    first, stop = np.maximum(positions - WINDOW, 0), np.minimum(positions + WINDOW + 1, len(rows))
    return before[stop] - before[first], (stop - first)[:, None]


def _lowered(scores: ScoreTable, local: Floats, usual: Floats, lam: float, strength: float) -> ScoreTable:
    """Scores without the part that is due to the local composition, shape (length, 32)."""
    excess = np.maximum(log(local / usual), 0.0)
    lowered = scores.astype(np.int64)
    of_letters = lowered[:, : len(usual)] - np.rint(strength * excess / lam).astype(np.int64)
    lowered[:, : len(usual)] = np.maximum(of_letters, MIN_SCORE)
    return lowered.astype(np.int8)
