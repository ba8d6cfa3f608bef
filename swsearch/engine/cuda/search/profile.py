"""Packs query profiles for the kernels: words of two scores, or of one, in the order of a tile's lanes.

The input is a score for each query position and letter; the output is an array of uint32 words, which the native code
writes directly to the memory of an upload. The layout is that of :class:`swsearch.engine.cuda.runtime.kernels.Tile`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from swsearch import _native
from swsearch.engine.cuda.runtime.kernels import CHUNK_WORDS, PROFILE_COLUMNS, Arithmetic, Tile
from swsearch.query.profile import QueryProfile

Words = NDArray[np.uint32]


@dataclass(frozen=True)
class ProfileStrips:
    """Consecutive strips of one query, or of two queries if the tile pairs queries, to be packed in one tile.

    They begin at ``first_row`` of each query; rows past a query's end are padding.
    """

    profiles: Sequence[QueryProfile]
    tile: Tile
    arithmetic: Arithmetic
    first_row: int
    n_strips: int

    @property
    def n_words(self) -> int:
        """Number of words of all strips."""
        return self.n_strips * self.tile.strip_units * CHUNK_WORDS

    def pack(self, words: Words) -> None:
        """Write the strips, one after another, to ``words``, shape (n_words,)."""
        low, high, tile = self.profiles[0], self.profiles[-1], self.tile
        _native.pack_strips(
            low.rows, low.table, high.rows, high.table, tile.group, tile.words, PROFILE_COLUMNS,
            tile.pairing.value, self.arithmetic.value, self.first_row, self.n_strips, words,
        )  # fmt: skip


def profile_strips(profiles: Sequence[QueryProfile], tile: Tile, arithmetic: Arithmetic) -> ProfileStrips:
    """All strips of one query, or of two, in one tile."""
    return ProfileStrips(profiles, tile, arithmetic, 0, tile.strips(max(profile.length for profile in profiles)))


def pack_strips(strips: Sequence[ProfileStrips], allocate: Callable[[int, type[np.uint32]], Words] = np.empty) -> Words:
    """The words of all strips, one after another, in an array that ``allocate`` makes."""
    words = allocate(sum(part.n_words for part in strips), np.uint32)
    first = 0
    for part in strips:
        part.pack(words[first : first + part.n_words])
        first += part.n_words
    return words


def pack_profile(profiles: Sequence[QueryProfile], tile: Tile, arithmetic: Arithmetic) -> Words:
    """The words of all strips in one tile, shape (strips * tile.strip_units * 4,)."""
    return pack_strips([profile_strips(profiles, tile, arithmetic)])
