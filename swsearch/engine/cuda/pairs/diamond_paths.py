"""Checkpointed traceback of a pair whose end a GPU has found.

The input is a pair, already uploaded (:class:`swsearch.engine.cuda.pairs.diamond_launch.DiamondLaunch`), with its end;
the output is the start of the path and its runs of ``M``, ``D`` and ``I``.

Bands of strips are swept again from the end upwards. A band begins below a known row and is swept only up to the
column that the path has reached; its strips save their lowest rows and states. The saved
values at the edges of the blocks on the path are copied to the host, where ``_native.PairWalk`` computes these blocks
again and traces the path through them. A band whose checkpoints do not fit the device is divided at rows that another
sweep saves. All values are those of the complete matrix, so the path does not depend on the division and equals the
path of the CPU's kernels (docs/design/diamond.md, "Path").
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch import _native
from swsearch.engine.cuda.pairs.diamond_launch import (
    ENTRY_BYTES,
    DiamondLaunch,
    LeftEdges,
    PairEnd,
    StripCheckpoints,
    nodes,
    strip_bytes,
)
from swsearch.engine.cuda.pairs.diamond_plan import CHECKPOINT_COLUMNS
from swsearch.engine.cuda.runtime.device import OutOfDeviceMemory
from swsearch.engine.pair_arrays import FreeEnds
from swsearch.typing import Letters

Entries = NDArray[np.uint64]
"""The lowest row of a strip, padded to complete diamonds, or a part of it."""
PATH_SHARE: Final = 0.5
"""Share of the device's free memory that checkpoints may take."""


def evenly(first: int, last: int, n_rows: int) -> list[int]:
    """Up to ``n_rows`` strips whose lowest rows divide strips first to last - 1 into bands of about equal height."""
    parts = min(n_rows + 1, last - first)
    return [first + (last - first) * part // parts - 1 for part in range(1, parts)]


class DiamondPath:
    """Finds the path of one pair, whose launch it reuses after its ends were read.

    Checkpoints take up to ``checkpoint_bytes`` of device memory at a time, and the rows of one sweep up to
    ``memory_bytes`` of host memory, unless a single strip or row needs more.
    """

    def __init__(self, launch: DiamondLaunch, checkpoint_bytes: int, memory_bytes: int) -> None:
        self._launch, self._problem, self._shape = launch, launch.problem, launch.shape
        self._checkpoint_bytes, self._memory_bytes = checkpoint_bytes, memory_bytes

    def rows_between(self, n_strips: int, columns: int) -> int:
        """Number of rows that divide the strips into bands whose checkpoints fit the device; 0 if one band suffices.

        The rows of one sweep fit the host memory; if not even one row fits, the number is 1.
        """
        bands = -(-n_strips * strip_bytes(self._shape, columns) // max(self._checkpoint_bytes, 1))
        return min(bands - 1, n_strips - 1, max(1, self._memory_bytes // (ENTRY_BYTES * columns)))

    def allocate_rows(self, first: int, last: int, columns: int, n_rows: int) -> StripCheckpoints:
        """Device memory for up to ``n_rows`` rows that divide strips first to last - 1; for fewer if memory is short.

        Raises :class:`OutOfDeviceMemory` if not even one row fits.
        """
        while True:
            try:
                return self._allocated(evenly(first, last, n_rows), columns, states=False)
            except OutOfDeviceMemory:
                if n_rows == 1:
                    raise
                n_rows //= 2

    def find(
        self, query: Letters, subject: Letters, end: PairEnd, known: Sequence[tuple[int, Entries]]
    ) -> tuple[int, int, list[tuple[str, int]]]:
        """The path of the pair that ends at ``end``.

        ``known`` has the strips and the rows that the first sweep saved, from the top down.

        Returns the numbers of query and subject letters before the path, and its runs of ``M``, ``D`` and ``I`` with
        their lengths. Raises :class:`OutOfDeviceMemory` if the checkpoints of a single strip do not fit.
        """
        problem = self._problem
        walk = _native.PairWalk(
            query, subject, problem.table, problem.match, problem.mismatch, problem.gap_open, problem.gap_extend,
            problem.local, problem.free_ends, end.query_end, end.subject_end,
        )  # fmt: skip
        self._band(walk, 0, self._launch.n_strips, None, known)
        return walk.finish()

    def _band(
        self, walk: _native.PairWalk, first: int, last: int, top: Entries | None, known: Sequence[tuple[int, Entries]]
    ) -> None:
        """Trace the path through strips first to last - 1 below ``top``; its current cell is in them or above them."""
        for strip, row in reversed(known):
            self._band(walk, strip + 1, last, row, ())
            last = strip + 1
        last = min(last, self._shape.strips(walk.row))
        if walk.done or last <= first:
            return
        columns = walk.column
        checkpoints = self._allocate_all(first, last, columns)
        if checkpoints is not None:
            with checkpoints:
                self._launch.sweep_again(first, last, columns, top, checkpoints)
                for strip in range(last - 1, first - 1, -1):
                    self._strip(walk, strip, top if strip == first else None, checkpoints)
            return
        with self.allocate_rows(first, last, columns, self.rows_between(last - first, columns)) as rows:
            self._launch.sweep_again(first, rows.strips[-1] + 1, columns, top, rows)
            known = rows.all_rows()
        self._band(walk, first, last, top, known)

    def _allocate_all(self, first: int, last: int, columns: int) -> StripCheckpoints | None:
        """Device memory for all checkpoints of strips first to last - 1; None if the band must be divided."""
        n_bytes = (last - first) * strip_bytes(self._shape, columns)
        if last - first > 1 and n_bytes > self._checkpoint_bytes:
            return None
        try:
            return self._allocated(range(first, last), columns, states=True)
        except OutOfDeviceMemory:
            if last - first == 1:
                raise
            self._checkpoint_bytes = n_bytes // 2
            return None

    def _allocated(self, strips: Sequence[int], columns: int, *, states: bool) -> StripCheckpoints:
        return StripCheckpoints(self._launch.device, self._shape, self._launch.n_strips, strips, columns, states=states)

    def _strip(self, walk: _native.PairWalk, strip: int, top: Entries | None, checkpoints: StripCheckpoints) -> None:
        """Trace the path through a strip; ``top`` is the row above it if the strip above saved none."""
        above = strip * self._shape.strip_rows
        # About as many blocks as a diagonal crosses in a strip.
        at_once = 2 * self._shape.strip_rows // CHECKPOINT_COLUMNS + 2
        while not walk.done and walk.row > above:
            last = (walk.column - 1) // CHECKPOINT_COLUMNS
            first = max(0, last + 1 - at_once)
            begin = first * CHECKPOINT_COLUMNS
            top_h, top_f = self._row_above(strip, top, checkpoints, begin, walk.column)
            # Block b begins at checkpoint b - 1; block 0 begins at the border, for which no state is saved.
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
        self, strip: int, top: Entries | None, checkpoints: StripCheckpoints, begin: int, end: int
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """H of the row above a strip, and F of the strip's first row, in columns begin to end - 1, counted from 0."""
        if strip == 0:
            h = self._problem.border(np.arange(begin + 1, end + 1), FreeEnds.SUBJECT_START)
            return h, h - np.int32(self._problem.gap_first)
        return nodes(checkpoints.row(strip - 1, begin, end) if top is None else top[begin:end])

    def _border(self, above: int) -> LeftEdges:
        """The matrix's left border as the left edge of a strip."""
        rows = np.arange(above, above + self._shape.strip_rows + 1)
        h = self._problem.border(rows, FreeEnds.QUERY_START)[None]
        return LeftEdges(
            h[:, 1:].copy(), h[:, 1:] - np.int32(self._problem.gap_first), h[:, :1].copy(), h[:, :0].copy()
        )
