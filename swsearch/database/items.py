"""Items of different sizes, such as headers or residues of subjects, as one array of bytes and the end of each item."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from swsearch import _native
from swsearch.typing import Codes, Offsets


@dataclass(frozen=True, eq=False)
class Items:
    """Consecutive items.

    Attributes
    ----------
    data : uint8 array
        The bytes of all items, concatenated.
    ends : uint64 array, shape (n,)
        Offset in ``data`` of the end of each item, exclusive.

    >>> items = Items(np.frombuffer(b"abbccc", dtype=np.uint8), np.array([1, 3, 6], dtype=np.uint64))
    >>> items[1:].data.tobytes(), items[1:].ends.tolist()
    (b'bbccc', [2, 5])
    >>> items.permuted(np.array([2, 0])).data.tobytes()
    b'ccca'
    """

    data: Codes
    ends: Offsets

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, part: slice) -> Items:
        """A range of items; its data is a view."""
        start, stop, _ = part.indices(len(self))
        if stop <= start:
            return Items(self.data[:0], self.ends[:0])
        begin = self.ends[start - 1] if start else np.uint64(0)
        return Items(self.data[int(begin) : int(self.ends[stop - 1])], self.ends[start:stop] - begin)

    def permuted(self, order: NDArray[np.int64]) -> Items:
        """The items with these indices, in this order, as a copy."""
        return Items(*_native.permuted(self.data, self.ends, order))
