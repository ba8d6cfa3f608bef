"""Operations on arrays that NumPy has too, but at a cost that a short command would feel."""

from __future__ import annotations

from typing import TypeVar

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
