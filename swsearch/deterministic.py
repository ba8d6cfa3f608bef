"""Mathematical functions composed of basic arithmetic, so that every machine computes the same bytes.

The C library's and NumPy's ``exp``, ``log`` and ``erf`` choose an implementation by the processor (AVX2, AVX-512, fused
multiply-add), and their results differ in the last bit between machines, or between positions in an array. The same
holds for sums and products whose order depends on the width of a vector register, as in NumPy's ``sum`` and BLAS's
``dot``; and Python's ``sum`` of floats changed with version 3.12. IEEE 754 defines the results of ``+ - * /``, of
``sqrt``, of rounding to an integer and of scaling by a power of two, and NumPy applies these operations one at a time,
without fusing. The functions of this module use only these operations, element by element, so a value does not depend
on its neighbours in the array.

All code that affects results (λ, K, E-values, corrected and estimated scores, simulations) uses the functions and the
sums of this module; ``scripts/lint_arithmetic.py`` checks this. Sums of integers are exact in any order.

:func:`exp`, :func:`log` and :func:`normal` are loops of ``simd/statistics``, since a search calls them for each query
with few values: 330 operations of NumPy take 0.5 ms, however short the arrays are. So is the formula of E-values
(:mod:`swsearch.scoring.karlin_altschul`).

Relative errors, measured against mpmath, are at most 4e-16 for exp and log, 5e-16 for expm1, and 1e-12 for the normal
distribution. A total is the exact sum, rounded once.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from swsearch import _native
from swsearch.typing import Floats

LN2: Final = 0.6931471805599453
"""ln 2: the nats of a bit."""
_LOG2_E: Final = 1.4426950408889634
_LN2_HIGH: Final = 0.693145751953125  # 0xB1721 / 2**20: its product with an exponent below 2**32 is exact
_LN2_LOW: Final = 1.4286068203094173e-06
_EXP_TERMS: Final = 14  # (ln 2 / 2)**14 / 14! is below 5e-18
_MIN_EXPONENT: Final = -1e8
"""Smaller arguments of exp are replaced by this value; the product of the result and any float64 is still 0."""
_MAX_EXPONENT: Final = 1e8
"""Larger arguments of exp are replaced by this value; the result is infinite."""
_NO_DIGITS_LEFT: Final = 64
"""If exp(x) is at least 2**64, exp(x) - 1 equals exp(x) in float64."""


def _reduced(x: Floats) -> tuple[Floats, NDArray[np.int32]]:
    """``(rest, power)`` with ``exp(x) = exp(rest) * 2**power``, ``|rest| <= ln 2 / 2``; NaN stays in ``rest``."""
    x = np.minimum(np.maximum(x, _MIN_EXPONENT), _MAX_EXPONENT)
    power = np.rint(np.where(np.isnan(x), 0.0, x) * _LOG2_E)
    return (x - power * _LN2_HIGH) - power * _LN2_LOW, power.astype(np.int32)


def exp(x: ArrayLike) -> Floats:
    """``exp(x)``, float64 of the same shape: 0 in case of underflow, infinity in case of overflow.

    >>> exp([0.0, -1000.0, 1000.0]).tolist()
    [1.0, 0.0, inf]
    """
    given = np.asarray(x, dtype=np.float64)
    values = np.empty(given.shape)
    _native.exp(np.ascontiguousarray(given).ravel(), values.reshape(-1))
    found: Floats = values[()]
    return found


def expm1(x: ArrayLike) -> Floats:
    """``exp(x) - 1``, float64 of the same shape, without cancellation for small x.

    >>> float(expm1(1e-20))
    1e-20
    """
    rest, power = _reduced(np.asarray(x, dtype=np.float64))
    series = np.ones_like(rest)
    for term in range(_EXP_TERMS, 1, -1):
        series = 1.0 + series * rest / term
    less_one = series * rest  # exp(rest) - 1
    power = np.clip(power, -3000, 3000)
    few = np.minimum(power, _NO_DIGITS_LEFT)
    with np.errstate(over="ignore", under="ignore"):
        whole = np.ldexp(1.0 + less_one, power)
        parted = np.ldexp(less_one, few) + (np.ldexp(1.0, few) - 1.0)
    value: Floats = np.where(power > _NO_DIGITS_LEFT, whole, parted)
    return value


def log(x: ArrayLike) -> Floats:
    """The natural logarithm, float64 of the same shape: -infinity at 0, NaN for negative values.

    For x = m · 2**e with m from √½ to √2, let f = m - 1 and s = f / (2 + f). Then::

        ln m = 2 artanh s = f - s (f - R),   R = 2 (s²/3 + s⁴/5 + …)

    where f and e · (upper part of ln 2) are exact.

    >>> float(log(10.0))
    2.302585092994046
    """
    given = np.asarray(x, dtype=np.float64)
    values = np.empty(given.shape)
    _native.log(np.ascontiguousarray(given).ravel(), values.reshape(-1))
    found: Floats = values[()]
    return found


def normal(z: ArrayLike) -> tuple[Floats, Floats]:
    """The standard normal distribution and its partial expectation.

    Returns
    -------
    cdf : float64 array
        Φ(z), the probability of a value of at most z.
    excess : float64 array
        E[max(0, z + Z)] = z·Φ(z) + φ(z), never negative; computed without cancellation for z far below 0.
    """
    given = np.asarray(z, dtype=np.float64)
    cdf, excess = np.empty(given.shape), np.empty(given.shape)
    _native.normal(np.ascontiguousarray(given).ravel(), cdf.reshape(-1), excess.reshape(-1))
    return cdf, excess


# --- Sums ---


def total(values: ArrayLike) -> float:
    """The exact sum of all values, rounded once, so that their order does not matter; about 50 ns per value.

    >>> total([1e16, 1.0, -1e16])
    1.0
    """
    return math.fsum(np.asarray(values, dtype=np.float64).ravel().tolist())


def sum_in_order(values: Floats, axis: int = 0) -> Floats:
    """Sums along one axis; the values are added one by one, from the first to the last.

    >>> sum_in_order(np.array([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [4.0, 6.0]
    """
    running: Floats = np.cumsum(values, axis=axis)  # each sum is the previous one plus one value, by definition
    sums: Floats = np.take(running, -1, axis=axis)
    return sums
