"""The extreme-value distribution of optimal local scores, fitted to counted scores by maximum likelihood.

A score is below an edge e with probability ``F(e) = exp(-exp(log_k + log_area(e) - lam * e))``, which is Gumbel's
distribution if the area is constant. :func:`fit_extreme_value` takes the numbers of scores between edges and returns λ
and the scale. Because scores are counted in cells between edges, the likelihood is exact for integer scores and for
scores that are censored at either end. The maximum is found by Fisher scoring, which also gives the standard errors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch.deterministic import exp, log, sum_in_order, total
from swsearch.errors import InputError
from swsearch.typing import Floats

_ROUNDS: Final = 200
_CONVERGED: Final = 1e-9
_MIN_PROBABILITY: Final = 1e-300


@dataclass(frozen=True)
class ExtremeValueFit:
    """Parameters of the distribution.

    ``lam`` is λ, the decay rate of the upper tail per unit of score, and ``lam_error`` its relative standard error;
    ``log_k`` is the logarithm of the scale.
    """

    lam: float
    log_k: float
    lam_error: float


def fit_extreme_value(
    edges: Floats, counts: NDArray[np.int64], log_area: Floats | float = 0.0, *, top_unknown: bool = False
) -> ExtremeValueFit:
    """The distribution with the maximum likelihood of the counts.

    Parameters
    ----------
    edges : float64 array, shape (n,)
        The edges, ascending; n is at least 3.
    counts : int array, shape (n + 1,)
        Numbers of scores below the first edge, between neighbouring edges (including the lower one), and at or above
        the last edge.
    log_area : float64 array, shape (n,), or float
        Logarithm of the area at each edge.
    top_unknown : bool
        Whether to ignore the number of scores at or above the last edge; for samples whose highest scores are not due
        to chance.

    Raises
    ------
    InputError
        The scores are in fewer than three cells, which do not determine two parameters.
    """
    used = np.asarray(counts, dtype=np.float64)
    if top_unknown:
        used = np.concatenate((used[:-1], [0.0]))
    if np.count_nonzero(used) < 3:
        raise InputError("the scores are too few or too equal to fit an extreme-value distribution to them")
    area = np.broadcast_to(np.asarray(log_area, dtype=np.float64), edges.shape)
    n_used = total(used)
    below = np.clip(np.cumsum(used)[:-1] / n_used, 0.5 / n_used, 1 - 0.5 / n_used)
    centre = float(edges[np.argmin(abs(below - 0.5))])
    quantile = -log(-log(below)) + area  # lam * e - log_k, if the sample has exactly the distribution
    low, high = int(np.argmin(abs(below - 0.4))), int(np.argmin(abs(below - 0.95)))
    if low == high:
        low, high = 0, len(edges) - 1
    slope = max((quantile[high] - quantile[low]) / (edges[high] - edges[low]), 1e-6)
    theta = np.array([slope * (edges[low] - centre) - quantile[low], slope])  # log_k - lam * centre, and lam

    def likelihood(theta: Floats) -> tuple[float, Floats, Floats]:
        return _likelihood(theta, edges - centre, used, area, top_unknown)

    value, gradient, information = likelihood(theta)
    for _ in range(_ROUNDS):
        step = _solved(information, gradient)
        while np.any(abs(step) > _CONVERGED):
            candidate = theta + step
            if candidate[1] > 0 and (found := likelihood(candidate))[0] >= value:
                break
            step = step / 2
        else:
            break  # no step increases the likelihood: this is the maximum
        theta, (value, gradient, information) = candidate, found
    error = math.sqrt(float(_solved(information, np.array([0.0, 1.0]))[1]))
    return ExtremeValueFit(float(theta[1]), float(theta[0] + theta[1] * centre), error / float(theta[1]))


def _solved(matrix: Floats, right: Floats) -> Floats:
    """The solution of two linear equations, by Cramer's rule."""
    (a, b), (c, d) = matrix.tolist()
    first, second = right.tolist()
    determinant = a * d - b * c
    return np.array([(first * d - b * second) / determinant, (a * second - first * c) / determinant])


def _likelihood(
    theta: Floats, offsets: Floats, counts: Floats, area: Floats, top_unknown: bool
) -> tuple[float, Floats, Floats]:
    """Log-likelihood, its gradient, and the Fisher information; ``offsets`` are the edges minus the centre."""
    rate = exp(np.minimum(theta[0] + area - theta[1] * offsets, 500.0))
    below = exp(-rate)
    slope = -rate * below
    derivative = np.stack((slope, -offsets * slope))  # of F at the edges, by both parameters
    cells = np.diff(np.concatenate(([0.0], below, [1.0])))
    changes = np.diff(np.pad(derivative, ((0, 0), (1, 1))), axis=1)
    if top_unknown:
        cells, changes, counts = cells[:-1], changes[:, :-1], counts[:-1]
        known = total(cells)
        changes = (changes - cells / known * sum_in_order(changes, axis=1)[:, None]) / known
        cells = cells / known
    cells = np.maximum(cells, _MIN_PROBABILITY)
    value = total(counts * log(cells))
    gradient = np.array([total(change * (counts / cells)) for change in changes])
    n_scores = total(counts)
    information = np.array([[n_scores * total(one / cells * other) for other in changes] for one in changes])
    return value, gradient, information
