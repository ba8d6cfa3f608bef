"""The data that strips save on a GPU for a path: their lowest rows and, at checkpoints, the states of their lanes.

``cuda/pairs/sweep.cuh`` writes both during a sweep; ``diamond_paths.py`` reads the parts that the path crosses, as
int32 arrays of H, E and F on the host. An entry of a row is an entry of the horizon
(``cuda/pairs/horizon.cuh``), 64 bits that contain H, H minus the next F, and the tag of the strip that wrote
the entry.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch.engine.cuda.pairs.diamond_plan import SweepShape, filled_columns, n_checkpoints
from swsearch.engine.cuda.runtime.device import Device, Stream, allocated
from swsearch.engine.cuda.runtime.kernels import WARP
from swsearch.typing import Closeable

ENTRY_BYTES: Final = 8
"""Bytes of an entry; the horizon and each saved row have one entry per column."""


def strip_bytes(shape: SweepShape, columns: int) -> int:
    """Device memory of a strip's lowest row and states, in bytes."""
    return filled_columns(columns) * ENTRY_BYTES + n_checkpoints(columns) * shape.lane_words * WARP * 4


class StripCheckpoints(Closeable):
    """Device memory for the rows and states that some strips of one pair save. A context manager.

    ``strips`` are those that save something, ascending. ``row_indices`` has the int32 index of the row of each strip,
    or -1. Raises :class:`OutOfDeviceMemory`.
    """

    def __init__(
        self, device: Device, shape: SweepShape, n_strips: int, strips: Sequence[int], columns: int, *, states: bool
    ) -> None:
        self._device, self._shape, self.strips = device, shape, list(strips)
        self._row_indices = np.full(n_strips, -1, np.int32)
        self._row_indices[self.strips] = np.arange(len(strips))
        self.row_columns = filled_columns(columns)
        self.state_words = n_checkpoints(columns) * shape.lane_words * WARP if states else 0
        with contextlib.ExitStack() as stack:
            self.row_indices = allocated(device, stack, self._row_indices.nbytes)
            self.rows = allocated(device, stack, len(strips) * self.row_columns * ENTRY_BYTES)
            self.states = None
            if self.state_words:
                self.states = allocated(device, stack, len(strips) * self.state_words * 4)
            device.upload(self.row_indices, self._row_indices, Stream.COMPUTE)
            device.synchronize()
            self._stack = stack.pop_all()

    def row(self, strip: int, first: int, last: int) -> NDArray[np.uint64]:
        """The entries of a strip's lowest row in columns first to last - 1, counted from 0."""
        entries = np.empty(last - first, np.uint64)
        offset = (int(self._row_indices[strip]) * self.row_columns + first) * ENTRY_BYTES
        self._device.download(entries, self.rows, Stream.COMPUTE, offset)
        return entries

    def all_rows(self) -> list[tuple[int, NDArray[np.uint64]]]:
        """The strip of each saved row, and its entries, padded to complete diamonds, from the top to the bottom."""
        return [(strip, self.row(strip, 0, self.row_columns)) for strip in self.strips]

    def left_edges(self, strip: int, first: int, last: int) -> LeftEdges:
        """A strip's left edges at checkpoints first to last - 1; checkpoint 0 follows the first 256 columns."""
        words = self._shape.lane_words * WARP
        states = np.empty((last - first, self._shape.lane_words, WARP), np.uint32)
        if self.states is not None and len(states):
            offset = (int(self._row_indices[strip]) * self.state_words + first * words) * 4
            self._device.download(states, self.states, Stream.COMPUTE, offset)
        return left_edges_of(states, self._shape)

    def close(self) -> None:
        """Free the memory."""
        self._stack.close()


def nodes(entries: NDArray[np.uint64]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """H of a row's entries, and F of the row below them."""
    h = (entries & np.uint64(0xFFFFFFFF)).astype(np.uint32).view(np.int32)
    less = ((entries >> np.uint64(32)) & np.uint64(0xFFFF)).astype(np.int32)
    return h, h - less


@dataclass(frozen=True, eq=False)
class LeftEdges:
    """Values at the left edges of blocks of a strip: int32 arrays with one row per block.

    The rows of a strip form groups; the edge of each group lies one column to the left of the edge of the group above
    (``LeftEdges`` of ``simd/pair/walk.hpp``). ``h`` and ``next_e``, of shape (blocks, strip rows), are H in the last
    column before the block and E of its first column. ``corner`` and ``next_f``, of shape (blocks, groups), are H above
    a group's first row and F of the row below its last, in the group's last column before the block.
    """

    h: NDArray[np.int32]
    next_e: NDArray[np.int32]
    corner: NDArray[np.int32]
    next_f: NDArray[np.int32]


def left_edges_of(states: NDArray[np.uint32], shape: SweepShape) -> LeftEdges:
    """The edges from lane states of shape (states, words per lane, lanes), as ``StripLane::save`` writes them.

    With 16-bit scores a word contains the scores of two groups relative to the lane's base; its low half is the score
    of the upper group.
    """
    words = np.ascontiguousarray(states[:, :-1])
    if shape.narrow:
        base = np.repeat(states[:, -1].view(np.int32), 2, axis=-1)
        scores = words.view(np.int16) + base[:, None, :]
    else:
        scores = words.view(np.int32)
    cells = scores[:, : 2 * shape.words].reshape(len(states), shape.words, 2, scores.shape[-1])
    rows = cells.transpose(2, 0, 3, 1).reshape(2, len(states), shape.strip_rows)
    return LeftEdges(
        np.ascontiguousarray(rows[0]),
        np.ascontiguousarray(rows[1]),
        np.ascontiguousarray(scores[:, 2 * shape.words + 1]),
        np.ascontiguousarray(scores[:, 2 * shape.words]),
    )
