"""The path of a pair whose end a GPU has found: bands of the matrix swept again, and the blocks on the path walked.

From the end on, a band of strips below a known row is swept again, only up to the column where the path is; its strips
leave their lowest rows and states (``diamond_checkpoints.py``). Of these the pieces beside the blocks that the path goes
through are copied to the host, where ``_native.PairWalk`` decides the blocks. A band that the device has no room for is
cut by rows that a sweep keeps. All values are those of the whole matrix, so the path does not depend on where it was
cut, and is the one of the CPU's kernels (docs/design/diamond.md, "Path").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch import _native
from swsearch.engine.cuda.device import Device, OutOfDeviceMemory, Stream
from swsearch.engine.cuda.diamond_checkpoints import (
    ENTRY_BYTES,
    KnownRow,
    LeftEdges,
    StripCheckpoints,
    nodes,
    strip_bytes,
)
from swsearch.engine.cuda.diamond_launch import DiamondLaunch, PairEnd
from swsearch.engine.cuda.diamond_plan import CHECKPOINT_COLUMNS, SweepShape
from swsearch.engine.pair_arrays import AlignmentProblem
from swsearch.typing import Letters

PATH_SHARE: Final = 0.5
"""Share of the device's free memory that what strips leave may take."""


@dataclass(frozen=True)
class PairPath:
    """Letters of query and subject before a path, and its runs of ``M``, ``D`` and ``I`` with lengths."""

    query_start: int
    subject_start: int
    runs: list[tuple[str, int]]


def evenly(first: int, last: int, n_rows: int) -> list[int]:
    """Strips of first to last - 1 below which a band is cut: up to ``n_rows``, so that the parts are about alike."""
    parts = min(n_rows + 1, last - first)
    return [first + (last - first) * part // parts - 1 for part in range(1, parts)]


def rows_between(n_strips: int, shape: SweepShape, columns: int, room_bytes: int, memory_bytes: int) -> int:
    """Rows that cut so many strips into bands with room on the device, as far as the host has room; 0 for one band."""
    bands = -(-n_strips * strip_bytes(shape, columns) // max(room_bytes, 1))
    return min(bands - 1, n_strips - 1, max(1, memory_bytes // (ENTRY_BYTES * columns)))


class DiamondPath:
    """Finds one path.

    Parameters
    ----------
    launch : DiamondLaunch
        That of the pair; once it is done and its ends are read, its memory is used again.
    problem, shape
        As ``launch`` was given them.
    room_bytes : int
        Device memory that what strips leave may take at a time, unless one strip needs more.
    memory_bytes : int
        Host memory for the rows of one sweep, unless one row needs more.

    Attributes
    ----------
    seconds : float
        Kernel time.
    peak_bytes : int
        The most device memory at a time, beside the launch's.
    """

    def __init__(
        self,
        device: Device,
        launch: DiamondLaunch,
        problem: AlignmentProblem,
        shape: SweepShape,
        room_bytes: int,
        memory_bytes: int,
    ) -> None:
        self._device, self._launch, self._problem, self._shape = device, launch, problem, shape
        self._room_bytes, self._memory_bytes = room_bytes, memory_bytes
        self.seconds = 0.0
        self.peak_bytes = 0

    def room_for_rows(self, first: int, last: int, columns: int, n_rows: int) -> StripCheckpoints:
        """Room on the device for up to ``n_rows`` rows that cut strips first to last - 1; for fewer where it is short.

        Raises
        ------
        OutOfDeviceMemory
            There is no room for one.
        """
        while True:
            try:
                return self._allocated(evenly(first, last, n_rows), columns, states=False)
            except OutOfDeviceMemory:
                if n_rows == 1:
                    raise
                n_rows //= 2

    def find(self, query: Letters, subject: Letters, end: PairEnd, known: Sequence[KnownRow]) -> PairPath:
        """The path of the pair that ends at ``end``.

        Parameters
        ----------
        known : sequence of KnownRow
            Rows that the first sweep kept, from the top to the bottom.

        Raises
        ------
        OutOfDeviceMemory
            There is no room for what a single strip leaves.
        """
        problem = self._problem
        walk = _native.PairWalk(
            query, subject, problem.table, problem.match, problem.mismatch, problem.gap_open, problem.gap_extend,
            problem.local, problem.local or problem.query_free, problem.local or problem.subject_free,
            end.query_end, end.subject_end,
        )  # fmt: skip
        self._band(walk, 0, self._launch.n_strips, None, known)
        return PairPath(*walk.finish())

    def _band(
        self, walk: _native.PairWalk, first: int, last: int, top: KnownRow | None, known: Sequence[KnownRow]
    ) -> None:
        """Strips first to last - 1 below ``top``; the path is in one of them, or above."""
        for row in reversed(known):
            self._band(walk, row.strip + 1, last, row, ())
            last = row.strip + 1
        last = min(last, self._shape.strips(walk.row))
        if walk.done or last <= first:
            return
        columns = walk.column
        checkpoints = self._checkpoints_of_all(first, last, columns)
        if checkpoints is not None:
            with checkpoints:
                self._sweep_again(first, last, columns, top, checkpoints)
                for strip in range(last - 1, first - 1, -1):
                    self._strip(walk, strip, top if strip == first else None, checkpoints)
            return
        n_rows = rows_between(last - first, self._shape, columns, self._room_bytes, self._memory_bytes)
        with self.room_for_rows(first, last, columns, n_rows) as rows:
            self._sweep_again(first, rows.strips[-1] + 1, columns, top, rows)
            known = rows.all_rows()
        self._band(walk, first, last, top, known)

    def _checkpoints_of_all(self, first: int, last: int, columns: int) -> StripCheckpoints | None:
        """Room for all that strips first to last - 1 leave, or None where they are to be cut."""
        n_bytes = (last - first) * strip_bytes(self._shape, columns)
        if last - first > 1 and n_bytes > self._room_bytes:
            return None
        try:
            return self._allocated(range(first, last), columns, states=True)
        except OutOfDeviceMemory:
            if last - first == 1:
                raise
            self._room_bytes = n_bytes // 2
            return None

    def _allocated(self, strips: Sequence[int], columns: int, *, states: bool) -> StripCheckpoints:
        checkpoints = StripCheckpoints(self._device, self._shape, self._launch.n_strips, strips, columns, states=states)
        self.peak_bytes = max(self.peak_bytes, checkpoints.n_bytes)
        return checkpoints

    def _sweep_again(
        self, first: int, last: int, columns: int, top: KnownRow | None, checkpoints: StripCheckpoints
    ) -> None:
        with self._device.timed(Stream.COMPUTE) as seconds:
            self._launch.sweep_again(first, last, columns, None if top is None else top.entries, checkpoints)
        self.seconds += seconds[0]

    def _strip(self, walk: _native.PairWalk, strip: int, top: KnownRow | None, checkpoints: StripCheckpoints) -> None:
        """Walks through a strip; ``top`` is the row above it where the strip above leaves none."""
        above = strip * self._shape.strip_rows
        # About the columns that a diagonal crosses at a time.
        at_once = 2 * self._shape.strip_rows // CHECKPOINT_COLUMNS + 2
        while not walk.done and walk.row > above:
            last = (walk.column - 1) // CHECKPOINT_COLUMNS
            first = max(0, last + 1 - at_once)
            begin = first * CHECKPOINT_COLUMNS
            top_h, top_f = self._row_above(strip, top, checkpoints, begin, walk.column)
            # Block b begins at checkpoint b, counted from the border, which leaves no state.
            edges = checkpoints.left_edges(strip, max(first, 1) - 1, last)
            for block in range(last, first - 1, -1):
                column = block * CHECKPOINT_COLUMNS
                if walk.done or walk.row <= above:
                    break
                if walk.column <= column:
                    continue
                left, block_index, group_rows = edges, block - max(first, 1), self._shape.words
                if block == 0:
                    left, block_index, group_rows = self._border(above), 0, self._shape.strip_rows
                walk.through(
                    above, column, group_rows, top_h[column - begin :], top_f[column - begin :],
                    left.h[block_index], left.next_e[block_index], left.corner[block_index], left.next_f[block_index],
                )  # fmt: skip

    def _row_above(
        self, strip: int, top: KnownRow | None, checkpoints: StripCheckpoints, begin: int, end: int
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """H and next F above a strip in columns begin to end - 1, counted from 0."""
        if strip == 0:
            h = self._problem.border(np.arange(begin + 1, end + 1), free=self._problem.subject_free)
            return h, h - np.int32(self._problem.gap_first)
        return nodes(checkpoints.row(strip - 1, begin, end) if top is None else top.entries[begin:end])

    def _border(self, above: int) -> LeftEdges:
        """The left border of a strip as an edge."""
        free = self._problem.query_free
        h = self._problem.border(np.arange(above, above + self._shape.strip_rows + 1), free=free)[None]
        return LeftEdges(
            h[:, 1:].copy(), h[:, 1:] - np.int32(self._problem.gap_first), h[:, :1].copy(), h[:, :0].copy()
        )
