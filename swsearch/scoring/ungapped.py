"""Karlin-Altschul theory of alignments without gaps: exact parameters from scores and letter frequencies.

The theory is that of Karlin and Altschul 1990 (doi 10.1073/pnas.87.6.2264). For frequencies p and scores s, λ is the
positive root of ``Σ p_i p_j exp(λ s_ij) = 1``; :func:`find_lambda` computes it for matrices and profiles. K follows
from the distributions of sums of independent scores. The length of an alignment of score S has the mean S/μ and the
variance S·s²/μ³, where μ and s² are the mean and the variance of the score of a column in a true alignment.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import gcd
from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch.deterministic import exp, expm1, log, sum_in_order, total
from swsearch.scoring.matrix import SubstitutionMatrix
from swsearch.sequences.alphabet import PROTEIN, Alphabet
from swsearch.typing import Floats

_AMINO_ACIDS_PER_HUNDRED_THOUSAND: Final = (
    7805, 5129, 4487, 5364, 1925, 4264, 6295, 7377, 2199, 5142,
    9019, 5744, 2243, 3856, 5203, 7120, 5841, 1330, 3216, 6441,
)  # fmt: skip
"""Number of each residue per 100,000 in natural proteins, in the order ARNDCQEGHILKMFPSTWYV (Robinson and Robinson
1991; the parameters of BLAST were computed with the same numbers)."""


def background(alphabet: Alphabet) -> Floats:
    """Frequencies of the 20 amino acids, or of the 4 bases, in the order of their codes; float64, with sum 1.

    >>> background(PROTEIN).shape, round(float(background(PROTEIN)[0]), 5)
    ((20,), 0.07805)
    """
    if alphabet is PROTEIN:
        frequencies: Floats = np.array(_AMINO_ACIDS_PER_HUNDRED_THOUSAND) / 100_000
        return frequencies
    return np.full(4, 0.25)


_MAX_SUMMANDS: Final = 400
_SERIES_TOLERANCE: Final = 1e-9


@dataclass(frozen=True)
class Ungapped:
    """Parameters of alignments without gaps: λ in nats per unit of score, and K.

    ``a`` and ``alpha`` are mean and variance of the aligned length, both per unit of score.
    """

    lam: float
    k: float
    a: float
    alpha: float


@lru_cache(maxsize=64)
def matrix_parameters(matrix: SubstitutionMatrix) -> Ungapped | None:
    """Parameters of a matrix for letters with background frequencies, or None if they do not exist.

    >>> from swsearch.scoring.matrix import named_matrix
    >>> found = matrix_parameters(named_matrix("BLOSUM62"))
    >>> round(found.lam, 4), round(found.k, 3), round(found.a, 4)
    (0.3176, 0.134, 0.7916)
    """
    return ungapped_parameters(*_matrix_distribution(matrix))


@lru_cache(maxsize=64)
def matrix_lambda(matrix: SubstitutionMatrix) -> float | None:
    """λ of a matrix for letters with background frequencies, as in :func:`matrix_parameters`, or None.

    >>> from swsearch.scoring.matrix import named_matrix
    >>> round(matrix_lambda(named_matrix("BLOSUM62")), 4)
    0.3176
    """
    return find_lambda(*_matrix_distribution(matrix))


def _matrix_distribution(matrix: SubstitutionMatrix) -> tuple[int, Floats]:
    frequencies = background(matrix.alphabet)
    scores = matrix.scores[: len(frequencies), : len(frequencies)].astype(np.int64)
    return score_distribution(scores, frequencies, frequencies)


def score_distribution(
    scores: NDArray[np.int64], row_frequencies: Floats, column_frequencies: Floats
) -> tuple[int, Floats]:
    """The lowest score, and the probabilities of it and of all higher scores, for independent letters.

    Parameters
    ----------
    scores : int array, shape (n_rows, n_columns)
    row_frequencies, column_frequencies : float64 array
        Each sums to 1.
    """
    lowest = int(scores.min())
    weights = (row_frequencies[:, None] * column_frequencies).ravel()
    order = np.argsort(scores, axis=None, kind="stable")
    bounds = np.searchsorted(scores.ravel()[order], np.arange(lowest, int(scores.max()) + 2)).tolist()
    return lowest, np.array([total(weights[order[start:stop]]) for start, stop in pairwise(bounds)])


def ungapped_parameters(lowest: int, probabilities: Floats) -> Ungapped | None:
    """Parameters of a score distribution; None if no score is positive or the mean is not negative.

    Parameters
    ----------
    lowest : int
        Score of the first entry of ``probabilities``.
    probabilities : float64 array
        Probabilities of the scores ``lowest``, ``lowest + 1``, …; they sum to 1.
    """
    lam = find_lambda(lowest, probabilities)
    if lam is None:
        return None
    scores, probabilities = _possible(lowest, probabilities)
    lattice = gcd(*scores.tolist())
    in_alignment = probabilities * exp(lam * scores)
    column_mean = total(scores * in_alignment)
    # If mismatches hardly occur in alignments, rounding errors may make the difference negative.
    column_variance = max(0.0, total(scores * scores * in_alignment) - column_mean * column_mean)
    k = _scale(scores // lattice, probabilities, lam * lattice, column_mean / lattice)
    return Ungapped(lam, k, 1.0 / column_mean, column_variance / (column_mean * column_mean * column_mean))


def find_lambda(lowest: int, probabilities: Floats) -> float | None:
    """λ of a score distribution, to one unit in the last place; None if :func:`ungapped_parameters` is None.

    λ is found by bisection: ``Σ p exp(λ s) - 1`` is convex, 0 at 0 with a negative slope, and 0 again at λ.
    """
    scores, probabilities = _possible(lowest, probabilities)
    if total(scores * probabilities) >= 0 or scores[-1] <= 0:
        return None

    def excess(lam: float) -> float:
        return total(probabilities * expm1(lam * scores))

    # At this value, the term of the highest score alone makes the sum positive.
    high = float(log(1.0 + 1.0 / probabilities[-1])) / float(scores[-1])
    while excess(high / 2) > 0:
        high /= 2
    low = high / 2
    while low < (middle := (low + high) / 2) < high:
        if excess(middle) < 0:
            low = middle
        else:
            high = middle
    return high


def _possible(lowest: int, probabilities: Floats) -> tuple[NDArray[np.int64], Floats]:
    """The scores with positive probability, ascending, and their probabilities."""
    indices = np.flatnonzero(probabilities > 0)
    return indices + lowest, probabilities[indices]


def _scale(scores: NDArray[np.int64], probabilities: Floats, lam: float, column_mean: float) -> float:
    """K for integer scores whose greatest common divisor is 1.

    ``K = λ exp(-2σ) / (λ μ (1 - exp(-λ)))`` with
    ``σ = Σ_n (P(S_n >= 0) + E[exp(λ S_n); S_n < 0]) / n``, where S_n is the sum of n independent scores.
    """
    lowest = int(scores[0])
    width = int(scores[-1]) - lowest
    weights = exp(lam * np.arange(_MAX_SUMMANDS * lowest, 0))  # of the negative sums, up to that of -1
    sums, sigma = np.ones(1), 0.0  # sums[i] is the probability that S_n is n * lowest + i
    for n in range(1, _MAX_SUMMANDS + 1):
        longer = np.zeros(len(sums) + width)
        for score, probability in zip(scores.tolist(), probabilities.tolist(), strict=True):
            longer[score - lowest : score - lowest + len(sums)] += probability * sums
        sums = longer
        n_negative = -n * lowest
        terms = sums.copy()
        terms[:n_negative] *= weights[-n_negative:]
        tail = float(sum_in_order(terms))
        sigma += tail / n
        if tail < _SERIES_TOLERANCE:
            break
    return float(exp(-2.0 * sigma)) / (column_mean * -float(expm1(-lam)))
