"""Sum statistics: the significance of several alignments of one query together, such as the exons of a gene.

The sum of the scores of r alignments has the distribution of S. Karlin and S. F. Altschul, Applications and statistics
for multiple high-scoring segments in molecular sequences, Proc. Natl. Acad. Sci. USA 90:5873, 1993. If each alignment
after the first begins within a window of g query positions and h subject positions behind the one before it, the
normalized sum is, as BLAST computes it for tblastn with introns::

    t = λ ΣS - ln(K m n) - (r - 1) (ln K + ln(g h)) - ln r!

and the probability of a sum of at least t by chance, with Y of the gamma distribution of shape r - 1::

    P(r, t) = E[ Q(r, exp((Y - t) / r)) ],   Q(r, u) = 1 - exp(-u) Σ_{k<r} u^k / k!

(the double integral of the paper, of which one integral has a closed form). For large t it is
``exp(-t) t^(r-1) / (r! (r-1)!)``. The E-value in the space m n is -ln(1 - P). It is divided by (1 - d) d^(r-1), because
chains of every length are tried: d, the gap decay, is 0.1 as in BLAST, also for an alignment by itself.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final

import numpy as np

from swsearch.deterministic import exp, expm1, log, sum_in_order, total
from swsearch.typing import Floats

GAP_DECAY: Final = 0.1
_STEP: Final = 0.125
_TAIL: Final = 60.0
"""The weight of the gamma distribution beyond its shape and this number is below the precision of the result."""


def divisor(r: int) -> float:
    """The weight of chains of ``r`` alignments among those of all lengths.

    >>> divisor(1), round(divisor(2), 12)
    (0.9, 0.09)
    """
    weight = 1 - GAP_DECAY
    for _ in range(r - 1):
        weight *= GAP_DECAY
    return weight


def log_factorial(n: int) -> float:
    """Ln n!

    >>> round(log_factorial(4), 6)
    3.178054
    """
    return float(log(math.factorial(n))) if n < 150 else total(log(np.arange(1, n + 1)))


@lru_cache(maxsize=4096)
def sum_probability(r: int, t: float) -> float:
    """The probability P(r, t) that the normalized sum of the best ``r`` alignments is at least ``t`` by chance.

    Parameters
    ----------
    r : int
        Number of alignments, at least 1.
    t : float
        Normalized sum, in nats.

    >>> round(sum_probability(1, 5.0), 6)
    0.006715
    """
    if r == 1:
        return float(-expm1(-exp(-t)))
    if t > 40 + 10 * r:  # the limit for large t, within a tenth of the integral
        return float(exp((r - 1) * log(t) - t - log_factorial(r) - log_factorial(r - 1)))
    n_steps = 2 * math.ceil((max(t, 0.0) + r + _TAIL) / (2 * _STEP))
    y = np.arange(n_steps + 1) * _STEP
    density = np.zeros(len(y))
    density[1:] = exp((r - 2) * log(y[1:]) - y[1:] - log_factorial(r - 2))
    density[0] = 1.0 if r == 2 else 0.0
    values = density * _upper(r, (y - t) / r)
    weights = np.where(np.arange(n_steps + 1) % 2 == 1, 4.0, 2.0)  # Simpson's rule
    weights[[0, -1]] = 1.0
    return min(1.0, total(weights * values) * _STEP / 3)


def _upper(r: int, log_u: Floats) -> Floats:
    """Q(r, u) of u = exp(``log_u``): the probability of at least ``r`` events of a Poisson process of mean u."""
    u = exp(np.minimum(log_u, 20.0))
    # From the term of r on, which does not cancel; the terms decrease as soon as k exceeds u.
    n_terms = int(min(max(2.0 * min(float(u.max()), r + 60.0), 0.0) + 60, 400))
    k = np.arange(r, r + n_terms)
    logs = np.cumsum(np.concatenate(([log_factorial(r)], log(k[1:].astype(np.float64)))))
    upper = sum_in_order(exp(k[:, None] * log_u[None, :] - logs[:, None] - u[None, :]))
    return np.where(u > r + 60.0, 1.0, np.minimum(upper, 1.0))


def sum_evalue(r: int, t: float, ratio: float) -> float:
    """The E-value of a chain of ``r`` alignments with the normalized sum ``t``.

    ``ratio`` is that of the complete search space to the one of ``t``, of one query and one subject.

    >>> sum_evalue(1, 20.0, 1.0) > sum_evalue(2, 20.0 + 20.0, 1.0)
    True
    """
    probability = sum_probability(r, t)
    expected = math.inf if probability >= 1.0 else float(-log(1.0 - probability))
    if probability < 1e-6:
        expected = probability
    return expected * ratio / divisor(r)
