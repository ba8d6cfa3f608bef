"""The intrinsics of the emulation compute what NVIDIA's documentation says.

Expected values: NumPy. A double represents every product and sum of numbers of half precision exactly, so its
conversion to half precision is the only rounding.
"""

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.engine.cuda.emulation.emulated_device import EmulatedDevice

Array = NDArray[Any]
ONE = 0x3C00
SIGNS = (0, 0x8000)
MAGNITUDES = [
    *range(20), *range(2, 0x7C00, 613), *range(0x3FB, 0x405), *range(0x7FC, 0x804), 0x3800, *range(ONE - 2, ONE + 3),
    0x3FFF, 0x4000, 0x7BFF, 0x7C00,
]  # fmt: skip
PATTERNS = np.array([sign | magnitude for sign in SIGNS for magnitude in MAGNITUDES], np.uint16)
FACTORS = np.array([sign | magnitude for sign in SIGNS for magnitude in (0, 1, 0x3800, ONE, ONE + 1)], np.uint16)


def larger(a: Array, b: Array) -> Array:
    """Of zeros of both signs, +0."""
    return np.where(a == b, np.where(np.signbit(a), b, a), np.maximum(a, b))


HALVES: dict[int, Callable[..., Array]] = {
    0: lambda a, b, c: a + b,
    1: lambda a, b, c: larger(a, b),
    2: lambda a, b, c: a * b + c,
    3: lambda a, b, c: np.nan_to_num(np.clip(a * b + c, 0, 1)) + 0.0,
}
INTEGERS: dict[int, tuple[Any, Callable[..., Array]]] = {
    4: (np.uint16, lambda a, b: a + b),
    5: (np.int16, np.maximum),
    6: (np.uint16, np.minimum),
}


def emulated(which: int, *words: Array) -> Array:
    library = ctypes.CDLL(str(EmulatedDevice().compile_host_source("intrinsics.cpp")))
    a, b, c = (np.ascontiguousarray(each).view(np.uint32) for each in (*words, words[0])[:3])
    result = np.empty_like(a)
    library.apply(which, len(a), *(ctypes.c_void_p(each.ctypes.data) for each in (a, b, c, result)))
    return result


@pytest.mark.parametrize("which", HALVES)
def test_half_precision_is_rounded_once(which: int) -> None:
    """Pairs and triples of numbers about every limit; the two halves of a word have different numbers."""
    second = FACTORS if which >= 2 else PATTERNS
    a, b, c = (each.ravel() for each in np.meshgrid(PATTERNS, second, PATTERNS if which >= 2 else PATTERNS[:1]))
    order = np.random.default_rng(1).permutation(a.size)
    halves = [np.stack([each, each[order]], 1).ravel() for each in (a, b, c)]
    numbers = [half.view(np.float16).astype(np.float64) for half in halves]
    with np.errstate(invalid="ignore", over="ignore"):
        expected = HALVES[which](*numbers).astype(np.float16)
    found = emulated(which, *halves).view(np.float16)
    valid = ~np.isnan(expected)
    assert valid.mean() > 0.9
    assert np.array_equal(np.isnan(found), ~valid)
    assert np.array_equal(found.view(np.uint16)[valid], expected.view(np.uint16)[valid])


@pytest.mark.parametrize("which", INTEGERS)
def test_integers_wrap_or_saturate(which: int) -> None:
    kind, operation = INTEGERS[which]
    limits = np.iinfo(kind)
    values = np.unique(np.r_[np.linspace(limits.min, limits.max, 256).astype(kind), limits.min // 2, limits.max // 2])
    a, b = (np.tile(each.ravel(), 4).astype(kind) for each in np.meshgrid(values, values))
    order = np.random.default_rng(2).permutation(a.size)
    a, b = a[order], b[order]
    assert np.array_equal(emulated(which, a, b).view(kind), operation(a, b).astype(kind))


@pytest.mark.parametrize("which", [7, 8])
def test_products_with_two_bytes_wrap(which: int) -> None:
    """PTX ISA, dp2a of signed 16-bit numbers and unsigned bytes: its mode chooses the lower or the upper bytes."""
    rng = np.random.default_rng(3)
    numbers, factors, sums = (rng.integers(0, 2**32, 5_000, dtype=np.uint32) for _ in range(3))
    numbers[:4], factors[:4] = (0x80008000, 0x7FFF7FFF, 0x80007FFF, 0xFFFF0001), 0xFFFFFFFF
    of_numbers = numbers.view(np.int16).reshape(-1, 2).astype(np.int64)
    of_factors = factors.view(np.uint8).reshape(-1, 4)[:, 2 * (which - 7) :][:, :2].astype(np.int64)
    expected = (sums + (of_numbers * of_factors).sum(axis=1)).astype(np.uint32)
    assert np.array_equal(emulated(which, numbers, factors, sums), expected)
