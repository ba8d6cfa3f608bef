"""Device memory and launches of a sweep of pairs by diamonds.

:class:`DiamondLaunch` uploads the pairs of one call for ``cuda/pairs/sweep_pairs.cu``, owns their device memory,
launches strips and reads the best ends; ``Sweep`` of ``cuda/pairs/sweep.cuh`` has the kernel's parameters.
For a path (``diamond_paths.py``) it sweeps strips again with ``cuda/pairs/trace_pairs.cu``, and they save their lowest
rows and, at checkpoints, the states of their lanes (:class:`StripCheckpoints`). An entry of a row is an entry of the
horizon (``cuda/pairs/horizon.cuh``), 64 bits that contain H, H minus the next F, and the tag of the strip that wrote
the entry.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from swsearch.engine.cuda.pairs.diamond_plan import (
    PairLetters,
    SweepShape,
    choose_shape,
    filled_columns,
    lay_out,
    n_checkpoints,
    table_columns,
)
from swsearch.engine.cuda.runtime.device import Buffer, Device, Stream, Timing, allocated, timed
from swsearch.engine.cuda.runtime.kernels import SWEEP_WARPS, WARP, KernelSpec, sweep_kernel
from swsearch.engine.cuda.runtime.parameters import LOCATE, SWEEP, packed
from swsearch.engine.pair_arrays import AlignmentProblem, FreeEnds
from swsearch.typing import Closeable, Letters, Progress

CELLS_PER_LAUNCH: Final = 4_000_000_000_000
"""Maximum number of cells of a launch: one or two seconds on a large GPU, after which an interrupt takes effect."""
ENTRY_BYTES: Final = 8
"""Bytes of an entry; the horizon and each saved row have one entry per column."""

_PAIR: Final = np.dtype(
    [(name, "<u8") for name in ("query", "subject", "horizon", "last_row", "last_column")]
    + [(name, "<u4") for name in ("rows", "columns", "first_strip", "unused")]
)
"""``SweepPair`` of ``cuda/pairs/sweep.cuh``."""


@dataclass(frozen=True)
class PairEnd:
    """The best end that a problem allows: its score, and the numbers of query and subject letters before it."""

    score: int
    query_end: int
    subject_end: int


def best_end(ends: Iterable[PairEnd]) -> PairEnd:
    """The end with the highest score; among these, that in the smallest column, then row."""
    return min(ends, key=lambda end: (-end.score, end.subject_end, end.query_end))


def strip_bytes(shape: SweepShape, columns: int) -> int:
    """Device memory of a strip's lowest row and states, in bytes."""
    return filled_columns(columns) * ENTRY_BYTES + n_checkpoints(columns) * shape.lane_words * WARP * 4


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
        """A strip's left edges at checkpoints first to last - 1; checkpoint 0 follows the first 256 columns.

        They are computed from lane states, as ``StripLane::save`` writes them. With 16-bit scores a word contains the
        scores of two groups relative to the lane's base; its low half is the score of the upper group.
        """
        shape = self._shape
        states = np.empty((last - first, shape.lane_words, WARP), np.uint32)
        if self.states is not None and len(states):
            offset = (int(self._row_indices[strip]) * self.state_words + first * shape.lane_words * WARP) * 4
            self._device.download(states, self.states, Stream.COMPUTE, offset)
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

    def close(self) -> None:
        """Free the memory."""
        self._stack.close()


class DiamondLaunch:
    """Device memory and launches of one call; the memory is freed when ``stack`` closes.

    ``shape`` is by default the fastest one for the pairs. They are uploaded while their kernels are compiled; with
    ``path``, that of a path as well. The kernel time of sweeps is added to ``timing``.
    """

    def __init__(
        self,
        device: Device,
        stack: contextlib.ExitStack,
        problem: AlignmentProblem,
        pairs: Sequence[tuple[Letters, Letters]],
        timing: Timing,
        shape: SweepShape | None = None,
        *,
        path: bool = False,
    ) -> None:
        self.device, self._stack, self._timing = device, stack, timing
        n_columns = table_columns(pairs, problem)
        if shape is None:
            lengths = [(len(query), len(subject)) for query, subject in pairs]
            shape = choose_shape(problem, lengths, n_columns, device.facts)
        self.problem, self.shape = problem, shape
        self._compared = n_columns is None
        for entry in ["sweep_pairs"] + ["locate_best"] * problem.local + ["trace_pairs"] * path:
            device.prepare(self._kernel(entry))
        letters = self._letters = lay_out(pairs, problem, shape, compared=self._compared)
        table = self._table = _pair_table(pairs, letters, shape, problem)
        self.n_strips = _first_strips(table, shape)[-1]
        columns = int(table["horizon"][-1]) + filled_columns(int(table["columns"][-1]))
        self._lasts_words = int(table["last_column"][-1]) + int(table["rows"][-1])
        self._pairs = self._uploaded(table.view(np.uint8))
        self._query = self._uploaded(letters.query.view(np.uint8))
        self._subject = self._uploaded(letters.subject.view(np.uint8))
        self._lines = self._uploaded(letters.lines)
        self._horizon = self._cleared(columns * ENTRY_BYTES)
        self._known = self._cleared(len(table) * 4)
        self._found = self._allocate(self.n_strips * 8)
        self._states = self._allocate(self.n_strips * shape.state_bytes if problem.local else 0)
        self._lasts = self._allocate(self._lasts_words * 4)
        self._listed = self._allocate(self.n_strips * 4 if problem.local else 0)
        self._positions = self._allocate(self.n_strips * 8 if problem.local else 0)
        self._counter = self._allocate(4)
        # The arrays may be freed after the call, so the copies must have ended.
        device.synchronize()

    def sweep(self, checkpoints: StripCheckpoints | None = None, progress: Progress | None = None) -> None:
        """Sweep all pairs once; a call with a single pair may save rows in ``checkpoints``."""
        with timed(self.device, self._timing):
            columns = int(self._table["columns"].max())
            for strips in self._launched("sweep_pairs", 0, self.n_strips, columns, checkpoints):
                if progress is not None:
                    self.device.synchronize()
                    progress(cells_of(self._table, self.shape, strips))

    def sweep_again(
        self, first: int, last: int, columns: int, top: NDArray[np.uint64] | None, checkpoints: StripCheckpoints
    ) -> None:
        """Sweep columns 1 to ``columns`` of strips first to last - 1 of a single pair again, to fill ``checkpoints``.

        The last diamond is computed to its end, or to the matrix's last column if that comes first, so that padding
        letters occur only after the matrix's end. ``top`` contains the saved entries of the row above, padded to
        complete diamonds; it is None above the first strip.
        """
        device = self.device
        table = self._table.copy()
        columns = min(filled_columns(columns), int(table["columns"][0]))
        table["columns"] = columns
        device.upload(self._pairs, table.view(np.uint8), Stream.COMPUTE)
        if top is None:
            device.clear(self._horizon, filled_columns(columns) * ENTRY_BYTES, Stream.COMPUTE)
        else:
            device.upload(self._horizon, top[: filled_columns(columns)], Stream.COMPUTE)
        device.synchronize()
        with timed(device, self._timing):
            for _ in self._launched("trace_pairs", first, last, columns, checkpoints):
                device.synchronize()

    def ends(self) -> list[PairEnd]:
        """The best end of each pair after a sweep."""
        return self._local_ends() if self.problem.local else self._border_ends()

    def _launched(
        self, entry: str, first: int, last: int, columns: int, checkpoints: StripCheckpoints | None
    ) -> Iterator[range]:
        """Launch strips first to last - 1, and return the range of each launch after it was started."""
        device = self.device
        spec, shared_bytes = self._kernel(entry), self._shared_bytes
        # The grid has at most as many blocks as run at a time, because a strip may wait only for a strip that runs.
        resident = device.facts.multiprocessors * device.resident_blocks(spec, shared_bytes)
        n_strips = max(1, CELLS_PER_LAUNCH // (self.shape.strip_rows * columns))
        for start in range(first, last, n_strips):
            strips = range(start, min(start + n_strips, last))
            device.upload(self._counter, np.array([strips.start], np.uint32), Stream.COMPUTE)
            grid = min(resident, -(-len(strips) // SWEEP_WARPS))
            device.launch(spec, grid, shared_bytes, self._parameters(strips.stop, checkpoints), Stream.COMPUTE)
            yield strips

    def _local_ends(self) -> list[PairEnd]:
        """The best end of each pair over all its strips."""
        device = self.device
        found = np.empty((self.n_strips, 2), np.int32)
        device.download(found, self._found, Stream.COMPUTE)
        firsts = _first_strips(self._table, self.shape)
        best = np.maximum.reduceat(found[:, 0], firsts[:-1])
        wanted = np.flatnonzero((found[:, 0] == np.repeat(best, np.diff(firsts))) & (found[:, 0] > 0))
        positions = np.zeros((len(wanted), 2), np.int32)
        if len(wanted):
            device.upload(self._listed, wanted.astype(np.uint32), Stream.COMPUTE)
            parameters = packed(
                LOCATE, sweep=self._parameters(self.n_strips, None), strips=self._listed.address,
                n_strips=len(wanted), positions=self._positions.address,
            )  # fmt: skip
            grid = -(-len(wanted) // SWEEP_WARPS)
            device.launch(self._kernel("locate_best"), grid, self._shared_bytes, parameters, Stream.COMPUTE)
            device.download(positions, self._positions, Stream.COMPUTE)
        ends = [PairEnd(0, 0, 0)] * len(self._table)
        for strip, (column, row) in zip(wanted.tolist(), positions.tolist(), strict=True):
            pair = int(np.searchsorted(firsts, strip, side="right")) - 1
            ends[pair] = best_end([ends[pair], PairEnd(int(best[pair]), row, column)])
        return ends

    def _parameters(self, last_strip: int, checkpoints: StripCheckpoints | None) -> np.void:
        """``Sweep`` of ``cuda/pairs/sweep.cuh``."""
        problem, letters, shape = self.problem, self._letters, self.shape
        compared = self._compared
        return packed(
            SWEEP,
            pairs=self._pairs.address,
            n_pairs=len(self._table),
            n_strips=last_strip,
            query=(
                0 if compared else self._query.address, self._lines.address, self._query.address if compared else 0,
                letters.n_columns, problem.match, problem.mismatch,
            ),
            subjects=self._subject.address,
            costs=(problem.gap_open, problem.gap_extend, FreeEnds.ALL if problem.local else problem.free_ends),
            reach=shape.reach(problem),
            horizon=self._horizon.address,
            best_known=self._known.address,
            states=self._states.address,
            found=self._found.address,
            border_scores=self._lasts.address,
            saved_row_index=0 if checkpoints is None else checkpoints.row_indices.address,
            saved_rows=0 if checkpoints is None else checkpoints.rows.address,
            saved_row_columns=0 if checkpoints is None else checkpoints.row_columns,
            words_per_warp=shape.warp_bytes(letters.n_columns) // 4,
            work_counter=self._counter.address,
            checkpoints=0 if checkpoints is None or checkpoints.states is None else checkpoints.states.address,
            checkpoint_words=0 if checkpoints is None else checkpoints.state_words,
        )  # fmt: skip

    def _border_ends(self) -> list[PairEnd]:
        """The best allowed end of each pair in the last row and the last column."""
        problem, lasts = self.problem, np.empty(self._lasts_words, np.int32)
        self.device.download(lasts, self._lasts, Stream.COMPUTE)
        found = []
        for pair in self._table:
            rows, columns = int(pair["rows"]), int(pair["columns"])
            column = lasts[int(pair["last_column"]) :][:rows]
            ends = [PairEnd(int(column[-1]), rows, columns)]
            if problem.is_free(FreeEnds.QUERY_END):
                column = np.append(problem.border(np.array([columns]), FreeEnds.SUBJECT_START), column)
                ends.append(PairEnd(int(column.max()), int(column.argmax()), columns))
            if problem.is_free(FreeEnds.SUBJECT_END):
                row = lasts[int(pair["last_row"]) :][:columns]
                row = np.append(problem.border(np.array([rows]), FreeEnds.QUERY_START), row)
                ends.append(PairEnd(int(row.max()), rows, int(row.argmax())))
            found.append(best_end(ends))
        return found

    def _kernel(self, entry: str) -> KernelSpec:
        """The kernel for the problem and the shape."""
        problem, shape = self.problem, self.shape
        return sweep_kernel(
            entry=entry, narrow=shape.narrow, words=shape.words, local=problem.local, affine=problem.gap_open > 0,
            compared=self._compared,
        )  # fmt: skip

    @property
    def _shared_bytes(self) -> int:
        """Shared memory of a block."""
        return self.shape.warp_bytes(self._letters.n_columns) * SWEEP_WARPS

    def _allocate(self, n_bytes: int) -> Buffer:
        return allocated(self.device, self._stack, n_bytes)

    def _uploaded(self, values: NDArray[Any]) -> Buffer:
        buffer = self._allocate(values.nbytes)
        self.device.upload(buffer, values, Stream.COMPUTE)
        return buffer

    def _cleared(self, n_bytes: int) -> Buffer:
        buffer = self._allocate(n_bytes)
        self.device.clear(buffer, n_bytes, Stream.COMPUTE)
        return buffer


def nodes(entries: NDArray[np.uint64]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """H of a row's entries, and F of the row below them."""
    h = (entries & np.uint64(0xFFFFFFFF)).astype(np.uint32).view(np.int32)
    less = ((entries >> np.uint64(32)) & np.uint64(0xFFFF)).astype(np.int32)
    return h, h - less


def _pair_table(
    pairs: Sequence[tuple[Letters, Letters]], letters: PairLetters, shape: SweepShape, problem: AlignmentProblem
) -> NDArray[np.void]:
    """The pairs as the kernel reads them: an array of ``SweepPair``."""
    table = np.zeros(len(pairs), _PAIR)
    horizon = lasts = strips = 0
    for index, (query, subject) in enumerate(pairs):
        rows, columns = len(query), len(subject)
        keeps_row = problem.is_free(FreeEnds.SUBJECT_END) and not problem.local
        table[index] = (
            letters.query_starts[index], letters.subject_starts[index], horizon, lasts,
            lasts + (columns if keeps_row else 0), rows, columns, strips, 0,
        )  # fmt: skip
        horizon += filled_columns(columns)
        lasts += (columns if keeps_row else 0) + (0 if problem.local else rows)
        strips += shape.strips(rows)
    return table


def _first_strips(table: NDArray[np.void], shape: SweepShape) -> list[int]:
    """Index of the first strip of each pair, followed by the total number of strips."""
    return [*table["first_strip"].tolist(), int(table["first_strip"][-1]) + shape.strips(int(table["rows"][-1]))]


def cells_of(table: NDArray[np.void], shape: SweepShape, strips: range) -> int:
    """Cells of a range of strips, padding included."""
    firsts = _first_strips(table, shape)
    cells = 0
    for first, last, columns in zip(firsts, firsts[1:], table["columns"].tolist(), strict=False):
        cells += max(0, min(last, strips.stop) - max(first, strips.start)) * shape.strip_rows * columns
    return cells
