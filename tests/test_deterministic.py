"""The arithmetic of :mod:`swsearch.deterministic`. Expected values: mpmath with 40 digits."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from swsearch.deterministic import exp, exp_parts, normal


@pytest.fixture(autouse=True)
def forty_digits():
    with mpmath.workdps(40):
        yield


def relative_error(value: float, expected: mpmath.mpf) -> float:
    return float(abs(mpmath.mpf(float(value)) / expected - 1))


def test_exp_is_right_to_the_last_digits():
    """Source: mpmath.exp."""
    x = np.concatenate([np.linspace(-700, 700, 401), [0.0, -1e-300, 1e-17, 0.5 * np.log(2)]])
    assert max(relative_error(v, mpmath.exp(float(a))) for a, v in zip(x, exp(x), strict=True)) < 4e-16


def test_exp_underflows_to_zero_and_its_parts_do_not():
    """Source: mpmath.exp; float64 ends near exp(-745.13)."""
    assert exp(np.array([-746.0, -1e6, -1e300, -np.inf])).tolist() == [0.0] * 4
    mantissa, exponent = exp_parts(np.array([-2000.0]))
    whole = mpmath.ldexp(mpmath.mpf(float(mantissa[0])), int(exponent[0]))
    assert float(abs(whole / mpmath.exp(-2000) - 1)) < 4e-16


def test_normal_distribution_keeps_its_digits_in_both_tails():
    """Source: mpmath.ncdf and mpmath.npdf, E[max(0, z + Z)] = z Φ(z) + φ(z)."""
    z = np.concatenate([np.linspace(-37, 37, 297), [-2.5, 2.5, np.nextafter(-2.5, 0), np.nextafter(-2.5, -3)]])
    cdf, excess = normal(z)
    for place, argument in enumerate(z):
        a = mpmath.mpf(float(argument))
        assert relative_error(cdf[place], mpmath.ncdf(a)) < 1e-12
        assert relative_error(excess[place], a * mpmath.ncdf(a) + mpmath.npdf(a)) < 1e-12


def test_far_arguments_have_their_limits():
    """Source: the limits of the distribution."""
    cdf, excess = normal(np.array([-1e9, -40.0, 1e9]))
    assert cdf[0] == 0.0
    assert excess[0] == 0.0
    assert 0.0 <= excess[1] < 1e-300
    assert cdf[2] == 1.0
    assert excess[2] == 1e9


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 9, 17, 1000])
def test_a_value_does_not_depend_on_its_place_in_the_array(size):
    """Source: the same function on one element; byte for byte."""
    z = np.random.default_rng(size).normal(0, 4, size)
    cdf, excess = normal(z)
    for place in range(size):
        one_cdf, one_excess = normal(z[place : place + 1])
        assert one_cdf.tobytes() == cdf[place : place + 1].tobytes()
        assert one_excess.tobytes() == excess[place : place + 1].tobytes()
