"""Operations on arrays: one that NumPy has too, but at a cost that a short command would feel, and a division."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Number = TypeVar("Number", bound=np.generic)


def distinct(values: NDArray[Number]) -> NDArray[Number]:
    """The different values of a one-dimensional array, ascending, as ``numpy.unique`` gives them.

    ``numpy.unique`` imports ``numpy.ma`` when it is called without further results, which takes 40 ms.

    >>> distinct(np.array([3, 1, 3, 2])).tolist(), distinct(np.array([], dtype=np.int64)).tolist()
    ([1, 2, 3], [])
    """
    ordered = np.sort(values)
    return ordered[np.concatenate(([True], ordered[1:] != ordered[:-1]))] if len(ordered) else ordered


def ranges_within(sizes: NDArray[Any], limit: int) -> Iterator[slice]:
    """Consecutive ranges of items whose sizes sum to at most ``limit`` each; a larger item is a range of its own.

    >>> list(ranges_within(np.array([2, 3, 9, 1, 1]), 5))
    [slice(0, 2, None), slice(2, 3, None), slice(3, 5, None)]
    """
    ends = np.cumsum(sizes, dtype=np.uint64)
    first = 0
    while first < len(ends):
        most = min(limit + (int(ends[first - 1]) if first else 0), int(ends[-1]))
        stop = max(first + 1, int(np.searchsorted(ends, np.uint64(most), side="right")))
        yield slice(first, stop)
        first = stop
