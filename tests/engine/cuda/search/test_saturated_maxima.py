"""The maxima that Turing computes from saturated sums (``arithmetic.cuh``), in half precision, for all operands.

Expected values: the maximum of the integers that the patterns stand for. The kernels themselves run on the emulated
device, with architecture 75 among others.
"""

import numpy as np
from numpy.typing import NDArray

LARGEST_EXACT = 2047
MOST_NEGATIVE = 512
"""More than a profile's lowest score and the cost of a gap's first residue together."""


def saturated_maximum(a: NDArray[np.float16], b: NDArray[np.float16]) -> NDArray[np.float16]:
    return b + np.clip(a - b, np.float16(0), np.float16(1))


def test_maxima_of_exact_scores_are_exact() -> None:
    unit = 2.0**-24
    b = (np.arange(LARGEST_EXACT + 1) * unit).astype(np.float16)
    for first in range(-MOST_NEGATIVE, LARGEST_EXACT + 1, 128):
        integers = np.arange(first, min(first + 128, LARGEST_EXACT + 1))
        found = saturated_maximum((integers * unit).astype(np.float16)[:, None], b[None, :])
        expected = np.maximum(integers[:, None], np.arange(LARGEST_EXACT + 1)[None, :])
        np.testing.assert_array_equal(found.astype(np.float64) / unit, expected)


def test_maxima_of_rounded_scores_stay_beyond_the_exact_ones() -> None:
    """Every pattern from 2,048 to that of 1, as either operand."""
    patterns = np.arange(0x3C01, dtype=np.uint16)
    rounded = patterns[LARGEST_EXACT + 1 :].view(np.float16)
    others = patterns[::37].view(np.float16)
    for a, b in ((rounded[:, None], others[None, :]), (others[None, :], rounded[:, None])):
        assert (saturated_maximum(a, b).view(np.uint16) > LARGEST_EXACT).all()
