"""Karlin-Altschul theory of alignments without gaps: exact parameters from scores and letter frequencies.

Karlin and Altschul 1990 (doi 10.1073/pnas.87.6.2264). With p the frequencies and s the scores, λ is the positive root
of ``Σ p_i p_j exp(λ s_ij) = 1``; K comes from the distributions of sums of independent scores. The aligned length of a
score S has the mean S/μ and the variance S·s²/μ³, with μ and s² the mean and the variance of a column's score in a true
alignment.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, expm1, gcd
from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch.scoring.background import background
from swsearch.scoring.matrix import SubstitutionMatrix
from swsearch.typing import Floats

_BISECTIONS: Final = 60
_MAX_SUMMANDS: Final = 400
_SERIES_TOLERANCE: Final = 1e-9


@dataclass(frozen=True)
class Ungapped:
    """Parameters of alignments without gaps.

    Attributes
    ----------
    lam, k : float
        λ in nats a score unit, and K.
    a, alpha : float
        Mean and variance of the aligned length, each a score unit.
    """

    lam: float
    k: float
    a: float
    alpha: float


def matrix_parameters(matrix: SubstitutionMatrix) -> Ungapped | None:
    """Parameters of a matrix for letters of background frequencies, or None where it has none.

    >>> from swsearch.scoring.matrix import named_matrix
    >>> found = matrix_parameters(named_matrix("BLOSUM62"))
    >>> round(found.lam, 4), round(found.k, 3), round(found.a, 4)
    (0.3176, 0.134, 0.7916)
    """
    frequencies = background(matrix.alphabet)
    scores = matrix.scores[: len(frequencies), : len(frequencies)].astype(np.int64)
    return ungapped_parameters(*score_distribution(scores, frequencies, frequencies))


def score_distribution(
    scores: NDArray[np.int64], row_frequencies: Floats, column_frequencies: Floats
) -> tuple[int, Floats]:
    """Lowest score, and the probability of each score from it on, for letters drawn independently.

    Parameters
    ----------
    scores : int array, shape (n_rows, n_columns)
    row_frequencies, column_frequencies : float64 array
        Each sums to 1.
    """
    lowest = int(scores.min())
    weights = np.outer(row_frequencies, column_frequencies)
    probabilities = np.zeros(int(scores.max()) - lowest + 1)
    np.add.at(probabilities, scores - lowest, weights)
    return lowest, probabilities


def ungapped_parameters(lowest: int, probabilities: Floats) -> Ungapped | None:
    """Parameters of a score distribution, or None where it has none: no score is positive, or the mean is not negative.

    Parameters
    ----------
    lowest : int
        Score of the first entry of ``probabilities``.
    probabilities : float64 array
        Of the scores ``lowest``, ``lowest + 1``, …; sums to 1.
    """
    scores = np.arange(lowest, lowest + len(probabilities))
    possible = probabilities > 0
    scores, probabilities = scores[possible], probabilities[possible]
    mean = float(scores @ probabilities)
    if mean >= 0 or scores[-1] <= 0:
        return None
    lattice = gcd(*scores.tolist())
    lam = _decay(scores, probabilities)
    in_alignment = probabilities * np.exp(lam * scores)
    column_mean = float(scores @ in_alignment)
    column_variance = float(scores**2 @ in_alignment) - column_mean**2
    k = _scale(scores // lattice, probabilities, lam * lattice, column_mean / lattice)
    return Ungapped(lam, k, 1.0 / column_mean, column_variance / column_mean**3)


def _decay(scores: NDArray[np.int64], probabilities: Floats) -> float:
    """λ, by bisection: the moment generating function is convex, 1 at 0 with a negative slope, and 1 again at λ."""

    def excess(lam: float) -> float:
        return float(probabilities @ np.expm1(lam * scores))

    high = 1.0
    while excess(high) < 0:
        high *= 2
    while excess(high / 2) > 0:
        high /= 2
    low = high / 2
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if excess(middle) < 0:
            low = middle
        else:
            high = middle
    return high


def _scale(scores: NDArray[np.int64], probabilities: Floats, lam: float, column_mean: float) -> float:
    """K for scores on the lattice of whole numbers.

    ``K = λ exp(-2σ) / (λ μ (1 - exp(-λ)))`` with
    ``σ = Σ_n (P(S_n >= 0) + E[exp(λ S_n); S_n < 0]) / n``, S_n the sum of n independent scores.
    """
    lowest = int(scores[0])
    single = np.zeros(int(scores[-1]) - lowest + 1)
    single[scores - lowest] = probabilities
    total, sigma = np.ones(1), 0.0
    for n in range(1, _MAX_SUMMANDS + 1):
        total = np.convolve(total, single)
        first = n * lowest
        negative = min(-first, len(total))
        tail = float(total[:negative] @ np.exp(lam * np.arange(first, first + negative))) + float(
            total[negative:].sum()
        )
        sigma += tail / n
        if tail < _SERIES_TOLERANCE:
            break
    return exp(-2.0 * sigma) / (column_mean * -expm1(-lam))
