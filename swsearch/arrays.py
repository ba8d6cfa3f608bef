"""Operations on arrays: one that NumPy has too, but at a cost that a short command would feel, and divisions.

:class:`Texts` are many texts as two arrays, in memory or mapped: headers of sequences and names of taxa.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Number = TypeVar("Number", bound=np.generic)
T = TypeVar("T")


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


def divided(
    items: Iterable[T], size: Callable[[T], int], most: int, limit: int, first: int | None = None
) -> Iterator[list[T]]:
    """Successive groups of at most ``most`` items whose sizes sum to at most ``limit``, or of a single larger item.

    The first group has at most ``first`` items, and each other one at most twice as many as the one before it.

    >>> list(divided([1, 1, 1, 1, 1, 9, 1], lambda size: size, 4, 5, first=1))
    [[1], [1, 1], [1, 1], [9], [1]]
    """
    group: list[T] = []
    total = 0
    n_now = most if first is None else min(first, most)
    for item in items:
        if group and (len(group) == n_now or total + size(item) > limit):
            yield group
            group, total, n_now = [], 0, min(2 * n_now, most)
        group.append(item)
        total += size(item)
    if group:
        yield group


@dataclass(frozen=True, eq=False)
class Texts:
    """Texts, one after another; iteration gives each as bytes.

    Attributes
    ----------
    data : uint8 array
        The bytes of all texts.
    ends : uint32 or uint64 array, shape (n,)
        The end of each text in ``data``, exclusive; a text begins where the one before it ends.

    >>> texts = Texts.of([b"a", b"bb", b"ccc"])
    >>> texts[1], list(texts.part(slice(1, None))), list(texts.take(np.array([2, -1, 0])))
    ('bb', [b'bb', b'ccc'], [b'ccc', b'', b'a'])
    """

    data: NDArray[np.uint8]
    ends: NDArray[Any]

    @classmethod
    def of(cls, texts: Iterable[bytes]) -> Texts:
        """Some texts as arrays."""
        each = list(texts)
        sizes = np.fromiter(map(len, each), dtype=np.uint64, count=len(each))
        return cls(np.frombuffer(b"".join(each), dtype=np.uint8), np.cumsum(sizes, dtype=np.uint64))

    @classmethod
    def joined(cls, several: Iterable[Texts]) -> Texts:
        """The texts of several objects, one after another."""
        data, ends, n_bytes = [np.empty(0, np.uint8)], [np.empty(0, np.uint64)], 0
        for one in several:
            data.append(one.data)
            ends.append(one.ends + np.uint64(n_bytes))
            n_bytes += len(one.data)
        return cls(np.concatenate(data), np.concatenate(ends))

    def __len__(self) -> int:
        return len(self.ends)

    def __iter__(self) -> Iterator[bytes]:
        raw = self.data.tobytes()
        return (raw[start:end] for start, end in pairwise([0, *self.ends.tolist()]))

    def __getitem__(self, i: int) -> str:
        """One text; bytes that are not UTF-8 are surrogate escapes."""
        start = int(self.ends[i - 1]) if i else 0
        return self.data[start : int(self.ends[i])].tobytes().decode("utf-8", "surrogateescape")

    def part(self, which: slice) -> Texts:
        """A range of the texts; its data is a view."""
        start, stop, _ = which.indices(len(self))
        if stop <= start:
            return Texts(self.data[:0], self.ends[:0])
        begin = self.ends[start - 1] if start else self.ends.dtype.type(0)
        return Texts(self.data[int(begin) : int(self.ends[stop - 1])], self.ends[start:stop] - begin)

    def take(self, order: NDArray[np.int64]) -> Texts:
        """The texts at these indices, in this order, as a copy; an empty text for an index of -1."""
        from swsearch import _native  # only here: reports of stored runs import this module, and need nothing native

        none = np.uint64(0)  # the size of the empty text, which stands behind all others
        sizes = np.append(np.diff(self.ends, prepend=none), none)
        starts = np.append(self.ends, np.uint64(len(self.data))) - sizes
        lengths = sizes[order].astype(np.uint32)
        data = _native.copy_subjects([self.data], np.zeros(len(order), dtype=np.uint16), starts[order], lengths)
        return Texts(data, np.cumsum(lengths, dtype=np.uint64))
