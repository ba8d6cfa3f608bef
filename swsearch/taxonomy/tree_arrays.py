"""The arrays of a taxonomic tree: columns of texts, and the flat little-endian arrays that files have.

A column of texts is two arrays: the bytes of all texts one after another, and the end of each (:class:`Texts`). Arrays
are written to files and mapped into memory as they are. The cache of this user and a packed database have the same
arrays, one per file. n is the number of taxa:

===================  =========================  ==========================================================
array                dtype, shape               meaning
===================  =========================  ==========================================================
``taxids``           uint32 (n,)                ids, in the order of the tree (:mod:`swsearch.taxonomy.tree`)
``parents``          uint32 (n,)                index of each taxon's parent; a root is its own
``by_taxid``         uint32 (n,)                indices of the taxa by ascending id
``ranks``            uint16 (n,)                index of each taxon's rank
``rank_names``       bytes                      names of the ranks, one after another
``rank_name_ends``   uint32 (n_ranks,)          end of each in ``rank_names``, exclusive
``names``            bytes                      scientific names
``name_ends``        uint32 (n,)
``common_names``     bytes
``common_name_ends`` uint32 (n,)
``blast_names``      bytes
``blast_name_ends``  uint32 (n,)
``merged``           uint32 (2 n_merged,)       pairs of a former id and the id into which it was merged
``deleted``          uint32 (n_deleted,)        deleted ids, ascending
===================  =========================  ==========================================================
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

ARRAY_DTYPES: Final = {
    "taxids": "<u4",
    "parents": "<u4",
    "by_taxid": "<u4",
    "ranks": "<u2",
    "rank_names": "<u1",
    "rank_name_ends": "<u4",
    "names": "<u1",
    "name_ends": "<u4",
    "common_names": "<u1",
    "common_name_ends": "<u4",
    "blast_names": "<u1",
    "blast_name_ends": "<u4",
    "merged": "<u4",
    "deleted": "<u4",
}


Numbers = NDArray[np.uint32]
"""Taxonomy ids, indices of taxa or ends of texts, one axis."""

_BLOCK_TEXTS: Final = 1 << 17
"""Number of texts that are moved at a time."""


@dataclass(frozen=True, eq=False)
class Texts:
    """A column of texts.

    Attributes
    ----------
    text : uint8 array
        The bytes of all texts.
    ends : uint32 array, shape (n,)
        The end of each text in ``text``, exclusive; a text begins where the one before it ends.
    """

    text: NDArray[np.uint8]
    ends: Numbers

    @classmethod
    def of(cls, texts: Iterable[str]) -> Texts:
        """The column of some texts.

        >>> Texts.of(["species", "", "genus"])[2]
        'genus'
        """
        parts = [text.encode("utf-8", "surrogateescape") for text in texts]
        ends = np.cumsum([len(part) for part in parts], dtype=np.uint64).astype(np.uint32)
        return cls(np.frombuffer(b"".join(parts), dtype=np.uint8), ends)

    @classmethod
    def joined(cls, columns: Iterable[Texts]) -> Texts:
        """The texts of several columns as one column."""
        texts, ends, base = [np.empty(0, np.uint8)], [np.empty(0, np.uint64)], np.uint64(0)
        for column in columns:
            texts.append(column.text)
            ends.append(column.ends + base)
            base += np.uint64(len(column.text))
        return cls(np.concatenate(texts), np.concatenate(ends).astype(np.uint32))

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, i: int) -> str:
        start = int(self.ends[i - 1]) if i else 0
        return self.text[start : int(self.ends[i])].tobytes().decode("utf-8", "surrogateescape")

    def take(self, order: NDArray[np.int64]) -> Texts:
        """The texts at these indices, in this order; an empty text for an index of -1."""
        starts = np.concatenate((np.zeros(1, np.uint32), self.ends[:-1]))[: len(self.ends)]
        found = [np.empty(0, np.uint8)]
        sizes = np.zeros(len(order), np.int64)
        for first in range(0, len(order), _BLOCK_TEXTS):
            part = order[first : first + _BLOCK_TEXTS]
            is_there = part >= 0
            chosen = part[is_there]
            begin = starts[chosen].astype(np.int64)
            size = self.ends[chosen].astype(np.int64) - begin
            sizes[first : first + len(part)][is_there] = size
            found.append(self.text[ranges(begin, size)])
        return Texts(np.concatenate(found), np.cumsum(sizes).astype(np.uint32))


def ranges(starts: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The numbers of several ranges, one range after another.

    >>> ranges(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    before = np.cumsum(sizes) - sizes
    numbers: NDArray[np.int64] = np.arange(int(sizes.sum()), dtype=np.int64) + np.repeat(starts - before, sizes)
    return numbers
