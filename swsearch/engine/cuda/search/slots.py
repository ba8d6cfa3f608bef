"""The memory of a batch in flight: device buffers by name, and pinned host memory for its uploads and downloads.

Query profiles are packed for the kernels: words of two scores, or of one, in the order of a tile's lanes
(:class:`swsearch.engine.cuda.runtime.kernels.Tile`), which the native code writes to the memory of an upload.

Several batches are in flight, so each has a slot of its own. A slot's memory is reused by a later batch when the host
has taken the results of the earlier one. Uploads are copied to pinned memory first: an upload from other memory would
wait for the earlier work of its stream.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import DTypeLike, NDArray

from swsearch import _native
from swsearch.engine.cuda.runtime.device import Buffer, Device, Scratch, Stream
from swsearch.engine.cuda.runtime.kernels import CHUNK_WORDS, PROFILE_COLUMNS, Arithmetic, Tile
from swsearch.query.profile import QueryProfile

PINNED_BYTES: Final = 1 << 20
"""Smallest piece of pinned memory; pinning a piece takes longer than a short search."""
PINNED_ALIGNMENT: Final = 64

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


class Slot:
    """The memory of one batch at a time, in device buffers of at least ``smallest`` bytes."""

    def __init__(self, device: Device, *, smallest: int = 1) -> None:
        self._device = device
        self.scratch = Scratch(device, smallest)
        self._pinned: list[NDArray[np.uint8]] = []
        self._used: list[int] = []

    def reserve(self) -> None:
        """Pin the memory of a small batch, and load what the first texture needs."""
        if not self._pinned:
            self.upload("profile", np.zeros(1, np.uint32)).texture()

    def pinned(self, n_items: int, dtype: DTypeLike) -> NDArray[Any]:
        """Pinned memory for an array, valid until the slot is cleared."""
        n_bytes = n_items * np.dtype(dtype).itemsize
        taken = -(-n_bytes // PINNED_ALIGNMENT) * PINNED_ALIGNMENT
        for index, (block, used) in enumerate(zip(self._pinned, self._used, strict=True)):
            if used + taken <= len(block):
                self._used[index] += taken
                return block[used : used + n_bytes].view(dtype)
        self._pinned.append(self._device.pinned(max(taken, PINNED_BYTES)))
        self._used.append(taken)
        return self._pinned[-1][:n_bytes].view(dtype)

    def upload(self, name: str, values: NDArray[Any], stream: Stream = Stream.COMPUTE) -> Buffer:
        """Begin to copy an array to the buffer of this name; the array may change afterwards."""
        buffer = self.scratch.buffer(name, values.nbytes)
        staged = self.pinned(values.size, values.dtype)
        np.copyto(staged, values)
        self._device.upload(buffer, staged, stream)
        return buffer

    def profile(self, name: str, strips: Sequence[ProfileStrips], stream: Stream = Stream.COMPUTE) -> int:
        """Pack strips, begin to copy them to the buffer of this name, and return the texture over it."""
        staged = pack_strips(strips, self.pinned)
        buffer = self.scratch.buffer(name, staged.nbytes)
        self._device.upload(buffer, staged, stream)
        return buffer.texture()

    def clear(self) -> None:
        """Let the next batch use the pinned memory; all copies must have ended."""
        self._used = [0] * len(self._used)

    def free(self) -> None:
        """Free all memory."""
        self.scratch.free()
        for block in self._pinned:
            self._device.unpin(block)
        self._pinned, self._used = [], []
