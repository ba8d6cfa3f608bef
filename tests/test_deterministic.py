"""The arithmetic of :mod:`swsearch.deterministic`. Expected values: mpmath with 40 digits unless stated otherwise."""

import hashlib
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from swsearch import _native
from swsearch.deterministic import exp, expm1, log, normal, sum_in_order, total


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


def test_exp_underflows_to_zero_and_overflows_to_infinity():
    """Source: IEEE 754; float64 ends near exp(-745.13) and exp(709.78)."""
    assert exp(np.array([-746.0, -1e6, -1e300, -np.inf])).tolist() == [0.0] * 4
    assert exp(np.array([710.0, 1e6, 1e300, np.inf])).tolist() == [np.inf] * 4
    assert np.isnan(exp(np.nan))


def test_expm1_is_right_to_the_last_digits_near_zero_and_far():
    """Source: mpmath.expm1; both sides of each change of the power of two, and where the 1 no longer matters."""
    steps = np.log(2) * np.arange(-60.5, 70)
    x = np.concatenate([np.linspace(-40, 700, 801), -np.logspace(-300, 0, 301), np.logspace(-300, 0, 301), steps])
    assert max(relative_error(v, mpmath.expm1(float(a))) for a, v in zip(x, expm1(x), strict=True)) < 5e-16


def test_log_is_right_to_the_last_digits_near_one_and_far():
    """Source: mpmath.log; powers of two and their neighbours, both sides of 1, the smallest and the largest numbers."""
    powers = 2.0 ** np.arange(-1022, 1024, 7)
    near_one = np.concatenate([1 + np.logspace(-16, -1, 200), 1 - np.logspace(-16, -1, 200)])
    turning = np.sqrt(0.5) * 2.0 ** np.arange(-3, 4)
    ends = [5e-324, 1e-310, np.nextafter(np.inf, 0), 1000.0]
    x = np.concatenate(
        [powers, np.nextafter(powers, 0), np.nextafter(powers, np.inf), near_one[near_one != 1], turning]
    )
    x = np.concatenate([x, np.nextafter(turning, 0), ends, np.random.default_rng(1).uniform(0.4, 3, 2000)])
    x = x[x != 1.0]
    assert max(relative_error(v, mpmath.log(float(a))) for a, v in zip(x, log(x), strict=True)) < 4e-16
    assert log(1.0) == 0.0


def test_special_values_are_those_of_the_c_library():
    """Source: ISO C, annex F; no warning, which pytest would make an error."""
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -1.0, 1e308])
    np.testing.assert_array_equal(exp(x), [1.0, 1.0, np.inf, 0.0, np.nan, exp(-1.0), np.inf])
    np.testing.assert_array_equal(expm1(x), [0.0, 0.0, np.inf, -1.0, np.nan, expm1(-1.0), np.inf])
    np.testing.assert_array_equal(log(x), [-np.inf, -np.inf, np.inf, np.nan, np.nan, np.nan, log(1e308)])
    assert exp(709.782712893384) < np.inf == exp(709.7827128933841)
    assert expm1(709.782712893384) < np.inf == expm1(709.7827128933841)


def test_shapes_are_kept():
    for function in (exp, expm1, log):
        assert function(2.0).shape == ()
        assert function([]).shape == (0,)
        assert function(np.ones((2, 3))).shape == (2, 3)


def test_values_are_the_same_bytes_on_every_machine():
    """Source: this module on x86-64 with AVX-512; a machine with other bytes breaks the promise of equal bytes."""
    x = np.arange(1, 50_001) / 780.0
    found = [hashlib.sha256(function(x).tobytes()).hexdigest()[:16] for function in (exp, expm1, log)]
    assert found == ["2eccb521ef6a70a5", "47e518ce4ef31a2e", "273a897f471ea5d3"]


def test_a_total_is_exact_in_any_order():
    """Source: sums of fractions, rounded once."""
    values = np.random.default_rng(2).normal(0, 1, 3000) * 10.0 ** np.random.default_rng(3).integers(-30, 30, 3000)
    exact = float(sum(map(Fraction, values.tolist())))
    assert total(values) == exact == total(values[::-1]) == total(values.reshape(30, 100).T)
    assert total([]) == 0.0


def test_sums_in_order_are_those_of_a_loop():
    """Source: Python's additions, one by one."""
    values = np.random.default_rng(4).normal(0, 1, (40, 50, 7)) * 1e9
    for axis in range(3):
        expected = np.zeros(values.sum(axis=axis).shape)
        for part in np.moveaxis(values, axis, 0):
            expected = expected + part
        np.testing.assert_array_equal(sum_in_order(values, axis), expected)


def test_normal_distribution_keeps_its_digits_in_both_tails():
    """Source: mpmath.ncdf and mpmath.npdf, E[max(0, z + Z)] = z Φ(z) + φ(z)."""
    z = np.concatenate([np.linspace(-37, 37, 297), [-2.5, 2.5, np.nextafter(-2.5, 0), np.nextafter(-2.5, -3)]])
    cdf, excess = normal(z)
    for index, argument in enumerate(z):
        a = mpmath.mpf(float(argument))
        assert relative_error(cdf[index], mpmath.ncdf(a)) < 1e-12
        assert relative_error(excess[index], a * mpmath.ncdf(a) + mpmath.npdf(a)) < 1e-12


def test_far_arguments_have_their_limits():
    """Source: the limits of the distribution."""
    cdf, excess = normal(np.array([-1e9, -40.0, 1e9]))
    assert cdf[0] == 0.0
    assert excess[0] == 0.0
    assert 0.0 <= excess[1] < 1e-300
    assert cdf[2] == 1.0
    assert excess[2] == 1e9


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 1001])
def test_a_value_does_not_depend_on_its_neighbours(size):
    """The loops handle eight values at a time, near and far ones by different formulas."""
    z = np.random.default_rng(size).uniform(-9, 9, size)
    for function in (normal, lambda x: (exp(x), expm1(x), log(x), log(abs(x)))):
        together = function(z)
        alone = [function(np.array([value])) for value in z]
        for index, values in enumerate(together):
            assert values.tobytes() == b"".join(parts[index].tobytes() for parts in alone)
        backwards = function(z[::-1])
        assert backwards[0][::-1].tobytes() == together[0].tobytes()


@pytest.mark.parametrize(
    ("function", "arrays", "message"),
    [
        (_native.normal, (np.zeros(3, np.float32), np.zeros(3), np.zeros(3)), "z must be an array of float64"),
        (_native.normal, (np.zeros(3), np.zeros(6)[::2], np.zeros(3)), "cdf must be contiguous"),
        (_native.exp, (np.zeros(3), np.zeros(3, np.float32)), "values must be an array of float64"),
        (_native.log, (np.zeros(3, np.int64), np.zeros(3)), "x must be an array of float64"),
    ],
)
def test_other_arrays_are_refused(function, arrays, message):
    with pytest.raises(TypeError, match=message):
        function(*arrays)
    with pytest.raises(ValueError, match="differ in length"):
        _native.normal(np.zeros(3), np.zeros(3), np.zeros(2))
    with pytest.raises(ValueError, match="differ in length"):
        _native.exp(np.zeros(3), np.zeros(2))
