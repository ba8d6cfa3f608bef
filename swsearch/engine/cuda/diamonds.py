"""Pairs on a GPU by diamonds over a linear horizon: best score and its end, over all cells, in linear memory.

:class:`DiamondSweep` drives ``cuda/entry/sweep_pairs.cu``. All pairs of a call are in flight together, or as many as
the device has memory for. Which of several best ends is given is the rule of docs/design/diamond.md: the smallest
column, then the smallest row.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from swsearch.engine.cuda.device import Argument, Buffer, Device, OutOfDeviceMemory, Stream
from swsearch.engine.cuda.diamond_plan import (
    DIAMOND_STEPS,
    MOST_FIRST,
    MOST_LOCAL_SCORE,
    MOST_SCORE,
    Letters,
    PairLetters,
    PairProblem,
    SweepShape,
    choose_shape,
    kernel_for,
    lay_out,
    table_columns,
)
from swsearch.engine.cuda.kernels import SWEEP_WARPS
from swsearch.errors import InputError

CELLS_A_LAUNCH: Final = 4_000_000_000_000
"""A launch does no more than about this, a second or two of a large GPU, so that an interrupt is heard."""
HORIZON_BYTES: Final = 8
"""Bytes a column of the horizon."""
KEPT_ROWS: Final = 512
"""Rows are kept at multiples of this: a strip of every CPU kernel ends there."""

_PAIR: Final = np.dtype(
    [(name, "<u8") for name in ("query", "subject", "horizon", "last_row", "last_column")]
    + [(name, "<u4") for name in ("rows", "columns", "first_strip", "unused")]
)
"""``SweepPair`` of ``cuda/kernels/sweep.cuh``."""


@dataclass(frozen=True)
class PairEnd:
    """The best end that a problem allows: score, and letters of query and subject before it."""

    score: int
    query_end: int
    subject_end: int


@dataclass(frozen=True, eq=False)
class KeptRows:
    """Rows of nodes that a sweep left on its way, from which a path is found without sweeping again.

    Attributes
    ----------
    query_rows : uint64 array, shape (n,)
        Query letters above each row, ascending.
    h, f : int32 arrays, shape (n, subject letters)
        H, and the F that the next row may take, after each subject letter.
    """

    query_rows: NDArray[np.uint64]
    h: NDArray[np.int32]
    f: NDArray[np.int32]


class DiamondSweep:
    """Scores pairs on one device, which stays the caller's.

    Parameters
    ----------
    device : Device
    make_room : callable, optional
        Frees what others keep on the device and can do without; called where not even one pair finds room.

    Attributes
    ----------
    seconds : float
        Kernel time so far, by events on the device.
    most_bytes : int
        Device memory of the largest call so far.
    """

    def __init__(self, device: Device, make_room: Callable[[], None] | None = None) -> None:
        self._device = device
        self._make_room = make_room
        self.seconds = 0.0
        self.most_bytes = 0

    def ends(
        self,
        pairs: Sequence[tuple[Letters, Letters]],
        problem: PairProblem,
        progress: Callable[[int], None] | None = None,
        shape: SweepShape | None = None,
    ) -> list[PairEnd]:
        """Best score and end of each pair.

        Where the device runs out of memory, half as many pairs are in flight from there on.

        Parameters
        ----------
        pairs : sequence of (uint16 array, uint16 array)
            Query and subject letters, as ``problem`` numbers them.
        progress : callable, optional
            Called between launches with the cells done since the last call.
        shape : SweepShape, optional
            Chosen by the lengths where it is not given.

        Raises
        ------
        InputError
            Sequences so long that a score may leave 30 bits, or costs that only the CPU's kernels take.
        OutOfDeviceMemory
            One of the pairs does not fit alone; the message tells its lengths.
        """
        for query, subject in pairs:
            check_pair(len(query), len(subject), problem)
        filled = [place for place, (query, subject) in enumerate(pairs) if len(query) and len(subject)]
        ends = [_border_end(len(query), len(subject), problem) for query, subject in pairs]
        n_at_once = len(filled)
        while filled:
            places = filled[:n_at_once]
            chosen = [pairs[place] for place in places]
            if len(chosen) == 1:
                swept, _ = self._sweep_alone(chosen[0], problem, progress, shape, 0)
            else:
                try:
                    swept, _ = self._sweep(chosen, problem, progress, shape, 0)
                except OutOfDeviceMemory:
                    n_at_once = len(chosen) // 2
                    continue
            for place, end in zip(places, swept, strict=True):
                ends[place] = _better(ends[place], end)
            del filled[:n_at_once]
        return ends

    def end_and_rows(
        self,
        query: Letters,
        subject: Letters,
        problem: PairProblem,
        most_rows: int,
        progress: Callable[[int], None] | None = None,
        shape: SweepShape | None = None,
    ) -> tuple[PairEnd, KeptRows]:
        """Best score and end of one pair, and up to ``most_rows`` rows on the way, evenly spread.

        Neither side is empty. Where the device runs out of memory, fewer rows are kept, and at last none.

        Raises
        ------
        InputError, OutOfDeviceMemory
            As for :meth:`ends`.
        """
        check_pair(len(query), len(subject), problem)
        ends, kept = self._sweep_alone((query, subject), problem, progress, shape, most_rows)
        return _better(_border_end(len(query), len(subject), problem), ends[0]), kept

    def _sweep_alone(
        self,
        pair: tuple[Letters, Letters],
        problem: PairProblem,
        progress: Callable[[int], None] | None,
        shape: SweepShape | None,
        most_rows: int,
    ) -> tuple[list[PairEnd], KeptRows]:
        """One pair, with all the memory there is if need be."""
        rows, columns = len(pair[0]), len(pair[1])
        most_rows = min(most_rows, rows // KEPT_ROWS)
        make_room = self._make_room
        while True:
            try:
                return self._sweep([pair], problem, progress, shape, most_rows)
            except OutOfDeviceMemory as error:
                if make_room is not None:
                    make_room()
                    make_room = None
                elif most_rows:
                    most_rows //= 2
                else:
                    name, free = self._device.facts.name, self._device.free_bytes() / 1e9
                    problem_of_room = f"{name} has {free:.1f} GB free, no room for {rows:,} against {columns:,} letters"
                    raise OutOfDeviceMemory(f"{problem_of_room}; choose --engine cpu") from error

    def _sweep(
        self,
        pairs: Sequence[tuple[Letters, Letters]],
        problem: PairProblem,
        progress: Callable[[int], None] | None,
        shape: SweepShape | None,
        most_rows: int,
    ) -> tuple[list[PairEnd], KeptRows]:
        """All pairs in flight together. Out of memory is told before any progress."""
        lengths = [(len(query), len(subject)) for query, subject in pairs]
        columns = table_columns(pairs, problem)
        if shape is None:
            shape = choose_shape(problem, lengths, columns, self._device.facts)
        entries = ("sweep_pairs", "locate_best") if problem.local else ("sweep_pairs",)
        self._device.prepare([kernel_for(problem, shape, compared=columns is None, entry=name) for name in entries])
        letters = lay_out(pairs, problem, shape, compared=columns is None)
        table = _pair_table(lengths, letters, shape, problem)
        with contextlib.ExitStack() as held:
            launch = _Launch(self._device, held, problem, shape, letters, table)
            if most_rows > 0:
                launch.keep_rows(most_rows)
            with self._device.timed(Stream.COMPUTE) as seconds:
                for strips in _bands(table, shape):
                    launch.strips(strips.start, strips.stop)
                    if progress is not None:
                        self._device.synchronize()
                        progress(_cells(table, shape, strips))
            self.seconds += seconds[0]
            self.most_bytes = max(self.most_bytes, launch.n_bytes)
            return launch.local_ends() if problem.local else launch.border_ends(), launch.kept_rows()


class _Launch:
    """The memory of one call on the device, and its launches."""

    def __init__(
        self,
        device: Device,
        held: contextlib.ExitStack,
        problem: PairProblem,
        shape: SweepShape,
        letters: PairLetters,
        table: NDArray[np.void],
    ) -> None:
        self._device, self._held = device, held
        self._problem, self._shape, self._letters, self._table = problem, shape, letters, table
        self.n_bytes = 0
        self._n_strips = _first_strips(table, shape)[-1]
        columns = int(table["horizon"][-1]) + _filled_columns(int(table["columns"][-1]))
        self._lasts_words = int(table["last_column"][-1]) + int(table["rows"][-1])
        self._pairs = self._uploaded(table.view(np.uint8))
        self._query = self._uploaded(letters.query.view(np.uint8))
        self._subject = self._uploaded(letters.subject.view(np.uint8))
        self._lines = self._uploaded(letters.lines)
        self._horizon = self._cleared(columns * HORIZON_BYTES)
        self._known = self._cleared(len(table) * 4)
        self._found = self._room(self._n_strips * 8)
        self._states = self._room(self._n_strips * shape.state_bytes if problem.local else 0)
        self._lasts = self._room(self._lasts_words * 4)
        self._listed = self._room(self._n_strips * 4 if problem.local else 0)
        self._places = self._room(self._n_strips * 8 if problem.local else 0)
        self._counter = self._room(4)
        self._kept_strips: NDArray[np.int64] = np.empty(0, np.int64)
        self._kept_places: Buffer | None = None
        self._kept: Buffer | None = None
        self._kept_columns = _filled_columns(int(table["columns"][0]))
        # None of the arrays is pinned or held: the copies must have read them.
        device.synchronize()

    def keep_rows(self, most: int) -> None:
        """Let the sweep leave up to ``most`` of its strips' lowest rows; of one pair alone."""
        rows = int(self._table["rows"][0])
        multiple = max(KEPT_ROWS // self._shape.strip_rows, 1)  # strips from one row that may be kept to the next
        possible = (rows - 1) // (self._shape.strip_rows * multiple)
        chosen = np.unique(np.arange(1, most + 1) * possible // most) if possible else np.empty(0, np.int64)
        self._kept_strips = chosen[chosen > 0] * multiple - 1
        if len(self._kept_strips) == 0:
            return
        places = np.full(self._n_strips, -1, np.int32)
        places[self._kept_strips] = np.arange(len(self._kept_strips))
        self._kept_places = self._uploaded(places)
        self._kept = self._room(len(self._kept_strips) * self._kept_columns * HORIZON_BYTES)
        self._device.synchronize()

    def kept_rows(self) -> KeptRows:
        """The rows that were kept."""
        n_kept, columns = len(self._kept_strips), int(self._table["columns"][0])
        entries = np.empty((n_kept, self._kept_columns), np.uint64)
        if self._kept is not None:
            self._device.download(entries, self._kept, Stream.COMPUTE)
        entries = entries[:, :columns]
        h = (entries & np.uint64(0xFFFFFFFF)).astype(np.uint32).view(np.int32)
        less = ((entries >> np.uint64(32)) & np.uint64(0xFFFF)).astype(np.int32)
        query_rows = (self._kept_strips + 1) * self._shape.strip_rows
        return KeptRows(query_rows.astype(np.uint64), h, h - less)

    def strips(self, first: int, last: int) -> None:
        """Starts strips first to last - 1 of all pairs, in order after those started before."""
        device = self._device
        spec = kernel_for(self._problem, self._shape, compared=self._letters.compared)
        shared_bytes = self._shape.warp_bytes(self._letters.n_columns) * SWEEP_WARPS
        # No more blocks than run at a time: a strip may wait for one that runs, never for one that does not.
        resident = device.facts.multiprocessors * device.resident_blocks(spec, shared_bytes)
        device.upload(self._counter, np.array([first], np.uint32), Stream.COMPUTE)
        grid = min(resident, -(-(last - first) // SWEEP_WARPS))
        device.launch(spec, grid, shared_bytes, self._arguments(last), Stream.COMPUTE)

    def local_ends(self) -> list[PairEnd]:
        """The best place that any strip of a pair reached."""
        device = self._device
        found = np.empty((self._n_strips, 2), np.int32)
        device.download(found, self._found, Stream.COMPUTE)
        firsts = _first_strips(self._table, self._shape)
        best = np.maximum.reduceat(found[:, 0], firsts[:-1])
        wanted = np.flatnonzero((found[:, 0] == np.repeat(best, np.diff(firsts))) & (found[:, 0] > 0))
        places = np.zeros((len(wanted), 2), np.int32)
        if len(wanted):
            device.upload(self._listed, wanted.astype(np.uint32), Stream.COMPUTE)
            spec = kernel_for(self._problem, self._shape, compared=self._letters.compared, entry="locate_best")
            shared_bytes = self._shape.warp_bytes(self._letters.n_columns) * SWEEP_WARPS
            arguments = [
                *self._arguments(self._n_strips), _address(self._listed), np.uint32(len(wanted)),
                _address(self._places),
            ]  # fmt: skip
            device.launch(spec, -(-len(wanted) // SWEEP_WARPS), shared_bytes, arguments, Stream.COMPUTE)
            device.download(places, self._places, Stream.COMPUTE)
        ends = [PairEnd(0, 0, 0)] * len(self._table)
        for strip, (column, row) in zip(wanted.tolist(), places.tolist(), strict=True):
            pair = int(np.searchsorted(firsts, strip, side="right")) - 1
            ends[pair] = _better(ends[pair], PairEnd(int(best[pair]), row, column))
        return ends

    def _arguments(self, last_strip: int) -> list[Argument]:
        """The parameters of ``cuda/include/swsearch/sweep_parameters.cuh``."""
        problem, letters, shape = self._problem, self._letters, self._shape
        nothing = np.uint64(0)
        compared = letters.compared
        return [
            _address(self._pairs), np.uint32(len(self._table)), np.uint32(last_strip),
            nothing if compared else _address(self._query), _address(self._lines), np.int32(letters.n_columns),
            _address(self._query) if compared else nothing, np.int32(problem.match), np.int32(problem.mismatch),
            _address(self._subject), np.int32(problem.gap_open), np.int32(problem.gap_extend),
            np.int32(problem.local or problem.query_free), np.int32(problem.local or problem.subject_free),
            np.int32(shape.reach(problem)),
            _address(self._horizon), _address(self._known), _address(self._states), _address(self._found),
            _address(self._lasts), _address(self._kept_places), _address(self._kept), np.uint32(self._kept_columns),
            np.uint32(shape.warp_bytes(letters.n_columns) // 4),
            _address(self._counter),
        ]  # fmt: skip

    def border_ends(self) -> list[PairEnd]:
        """The best allowed place of the last row and the last column."""
        lasts = np.empty(self._lasts_words, np.int32)
        self._device.download(lasts, self._lasts, Stream.COMPUTE)
        ends = []
        for pair in self._table:
            rows, columns = int(pair["rows"]), int(pair["columns"])
            column = lasts[int(pair["last_column"]) :][:rows]
            end = PairEnd(int(column[-1]), rows, columns)
            if self._problem.query_free:
                end = _better(end, PairEnd(int(column.max()), int(column.argmax()) + 1, columns))
            if self._problem.subject_free:
                row = lasts[int(pair["last_row"]) :][:columns]
                end = _better(end, PairEnd(int(row.max()), rows, int(row.argmax()) + 1))
            ends.append(end)
        return ends

    def _room(self, n_bytes: int) -> Buffer:
        buffer = self._device.allocate(n_bytes)
        self._held.callback(buffer.free)
        self.n_bytes += n_bytes
        return buffer

    def _uploaded(self, values: NDArray[Any]) -> Buffer:
        buffer = self._room(values.nbytes)
        self._device.upload(buffer, values, Stream.COMPUTE)
        return buffer

    def _cleared(self, n_bytes: int) -> Buffer:
        buffer = self._room(n_bytes)
        self._device.clear(buffer, n_bytes, Stream.COMPUTE)
        return buffer


def _address(buffer: Buffer | None) -> np.uint64:
    return np.uint64(0 if buffer is None else buffer.address)


def check_pair(rows: int, columns: int, problem: PairProblem) -> None:
    """Refuse what the kernels cannot do.

    Raises
    ------
    InputError
        It says what, and what to do.
    """
    if problem.first > MOST_FIRST:
        raise InputError("gap costs range up to 16383")
    if problem.local:
        largest = min(rows, columns) * problem.max_score + problem.first
        if largest > MOST_LOCAL_SCORE:
            raise InputError("the sequences are so long that their score may leave 31 bits; split them")
    elif (rows + columns + 2) * problem.step + problem.gap_open > MOST_SCORE:
        raise InputError("the sequences are so long that their score may leave 30 bits; split them")
    if problem.local and problem.first == 0:
        raise InputError("gaps would cost nothing")
    if problem.local and problem.table is None and problem.mismatch >= 0:
        raise InputError("the GPU aligns locally only where different letters score below 0; choose --engine cpu")


def _better(one: PairEnd, other: PairEnd) -> PairEnd:
    """The better of two ends."""
    return min(one, other, key=lambda end: (-end.score, end.subject_end, end.query_end))


def _border_end(rows: int, columns: int, problem: PairProblem) -> PairEnd:
    """The best end on the border of the matrix, which needs no cell; a score below all others where there is none."""
    if problem.local:
        return PairEnd(0, 0, 0)

    def border(k: int, *, free: bool) -> int:
        return 0 if free or k == 0 else -(problem.gap_open + k * problem.gap_extend)

    ends = [PairEnd(-2 * MOST_SCORE, rows, columns)]
    if columns == 0 or problem.subject_free:
        ends.append(PairEnd(border(rows, free=problem.query_free), rows, 0))
    if rows == 0 or problem.query_free:
        ends.append(PairEnd(border(columns, free=problem.subject_free), 0, columns))
    if (rows == 0 and problem.subject_free) or (columns == 0 and problem.query_free):
        ends.append(PairEnd(0, 0, 0))
    best = ends[0]
    for end in ends[1:]:
        best = _better(best, end)
    return best


def _filled_columns(columns: int) -> int:
    return -(-columns // DIAMOND_STEPS) * DIAMOND_STEPS


def _pair_table(
    lengths: Sequence[tuple[int, int]], letters: PairLetters, shape: SweepShape, problem: PairProblem
) -> NDArray[np.void]:
    """The pairs as the kernel reads them."""
    table = np.zeros(len(lengths), _PAIR)
    horizon = lasts = strips = 0
    for place, (rows, columns) in enumerate(lengths):
        keeps_row = problem.subject_free and not problem.local
        table[place] = (
            letters.query_starts[place], letters.subject_starts[place], horizon, lasts,
            lasts + (columns if keeps_row else 0), rows, columns, strips, 0,
        )  # fmt: skip
        horizon += _filled_columns(columns)
        lasts += (columns if keeps_row else 0) + (0 if problem.local else rows)
        strips += shape.strips(rows)
    return table


def _first_strips(table: NDArray[np.void], shape: SweepShape) -> list[int]:
    """First strip of each pair, and the number of all strips."""
    return [*table["first_strip"].tolist(), int(table["first_strip"][-1]) + shape.strips(int(table["rows"][-1]))]


def _bands(table: NDArray[np.void], shape: SweepShape) -> Iterator[range]:
    """Strips to start at a time."""
    n_strips = _first_strips(table, shape)[-1]
    longest = int(table["columns"].max())
    a_launch = max(1, CELLS_A_LAUNCH // (shape.strip_rows * longest))
    for first in range(0, n_strips, a_launch):
        yield range(first, min(first + a_launch, n_strips))


def _cells(table: NDArray[np.void], shape: SweepShape, strips: range) -> int:
    """Cells of a band, fill included."""
    firsts = _first_strips(table, shape)
    cells = 0
    for first, last, columns in zip(firsts, firsts[1:], table["columns"].tolist(), strict=False):
        cells += max(0, min(last, strips.stop) - max(first, strips.start)) * shape.strip_rows * columns
    return cells
