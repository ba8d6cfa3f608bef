"""Aligns pairs on a GPU by diamonds over a linear horizon: best score, its end and the path, in linear memory.

Inputs are pairs of uint16 letter arrays and a problem; outputs are a :class:`PairEnd` per pair, or the path of a single
pair. Every cell of the matrix is computed. :class:`DiamondSweep` plans the sweeps of ``diamond_launch.py``. All pairs
of a call share its launches as far as the device's memory allows; a path is found for one pair at a time
(``diamond_paths.py``). If several ends have the best score, the one in the smallest column is reported and, within this
column, the one in the smallest row (docs/design/diamond.md).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TypeVar

from swsearch.engine.cuda.pairs.diamond_launch import DiamondLaunch, PairEnd
from swsearch.engine.cuda.pairs.diamond_paths import PATH_SHARE, DiamondPath
from swsearch.engine.cuda.pairs.diamond_plan import MAX_GAP_FIRST, MAX_LOCAL_SCORE, MAX_PAIR_SCORE, SweepShape
from swsearch.engine.cuda.runtime.device import Device, OutOfDeviceMemory, Timing
from swsearch.engine.pair_arrays import AlignmentProblem, PairPaths, SequencePairs, limited
from swsearch.engine.reference import ReferencePairs
from swsearch.errors import InputError
from swsearch.typing import Letters, Progress

T = TypeVar("T")
Pair = tuple[Letters, Letters]
"""The letters of a query and of a subject."""

MEMORY_BYTES: Final = 256 << 20
"""Host memory for saved rows, used if the device has too little memory for all checkpoints of a path."""


class DiamondSweep:
    """The pair backend for long pairs, on one device, which the caller owns and closes.

    ``make_room`` frees device memory that its owners can allocate again; it is called if not even one pair fits.
    The kernel time of sweeps is added to ``timing``, by default a new one. If checkpoints of a path do not fit the
    device, ``memory_bytes`` of host memory are used for rows, at least for one. ``shape`` is by default the fastest one
    for the pairs.
    """

    name = "cuda diamond"

    def __init__(
        self,
        device: Device,
        make_room: Callable[[], None] | None = None,
        timing: Timing | None = None,
        *,
        memory_bytes: int = MEMORY_BYTES,
        shape: SweepShape | None = None,
    ) -> None:
        self._device = device
        self._make_room = make_room
        self.timing = timing or Timing()
        self._memory_bytes = memory_bytes
        self._shape = shape

    def align(
        self, pairs: SequencePairs, problem: AlignmentProblem, *, path: bool = True, progress: Progress | None = None
    ) -> PairPaths:
        """See :class:`swsearch.engine.pair_arrays.PairBackend`.

        Without paths all pairs are scored in the same launches; a path is found for one pair at a time. ``progress``
        counts the cells of its first sweep. A pair with an empty side has no cells and is aligned on the host. Errors
        are those of :meth:`ends`.
        """
        report = limited(progress, int(pairs.cells.sum()))
        if not path:
            ends = self.ends(list(pairs), problem, report)
            outcomes = [PairPaths.of_pair((end.score, end.query_end, end.subject_end, 0, 0)) for end in ends]
        else:
            outcomes = [
                self._end_and_path(pair, problem, report)
                if len(pair[0]) and len(pair[1])
                else _without_cells(pair, problem)
                for pair in pairs
            ]
        return PairPaths.concatenate(outcomes)

    def ends(self, pairs: Sequence[Pair], problem: AlignmentProblem, progress: Progress | None = None) -> list[PairEnd]:
        """Best score and end of each pair of uint16 letter arrays, as ``problem`` numbers the letters.

        If the device runs out of memory, the next launch takes half as many pairs. ``progress`` is called between
        launches with the number of cells computed since the last call. Raises :class:`InputError` for scores beyond 30
        bits or costs that only the CPU's kernels support, and :class:`OutOfDeviceMemory`, with the lengths, if a single
        pair does not fit.
        """
        ends: dict[int, PairEnd] = {}
        filled = []
        for index, pair in enumerate(pairs):
            check_pair(len(pair[0]), len(pair[1]), problem)
            if len(pair[0]) and len(pair[1]):
                filled.append(index)
            else:
                ends[index] = PairEnd(*_without_cells(pair, problem).ends[0, :3].tolist())
        n_at_once = len(filled)
        while filled:
            indices = filled[:n_at_once]
            chosen = [pairs[index] for index in indices]
            if len(chosen) == 1:
                swept = self._alone(chosen[0], partial(self._ends_of, chosen, problem, progress))
            else:
                try:
                    swept = self._ends_of(chosen, problem, progress)
                except OutOfDeviceMemory:
                    n_at_once = len(chosen) // 2
                    continue
            ends.update(zip(indices, swept, strict=True))
            del filled[:n_at_once]
        return [ends[index] for index in range(len(pairs))]

    def _end_and_path(self, pair: Pair, problem: AlignmentProblem, progress: Progress | None) -> PairPaths:
        """Best score and end of one pair without an empty side, with the path to it.

        If the device runs out of memory, fewer checkpoints are saved and more cells computed again.
        """
        query, subject = pair
        columns = len(subject)
        check_pair(len(query), columns, problem)

        def find() -> PairPaths:
            checkpoint_bytes = int(self._device.free_bytes() * PATH_SHARE)
            with contextlib.ExitStack() as stack:
                launch = DiamondLaunch(self._device, stack, problem, [pair], self.timing, self._shape, path=True)
                path = DiamondPath(launch, checkpoint_bytes, self._memory_bytes)
                n_rows = path.rows_between(launch.n_strips, columns)
                checkpoints = path.allocate_rows(0, launch.n_strips, columns, n_rows) if n_rows else None
                with checkpoints or contextlib.nullcontext():
                    launch.sweep(checkpoints, progress)
                    known = [] if checkpoints is None else checkpoints.all_rows()
                (end,) = launch.ends()
                query_start, subject_start, runs = path.find(query, subject, end, known)
            return PairPaths.of_pair((end.score, end.query_end, end.subject_end, query_start, subject_start), runs)

        return self._alone(pair, find)

    def _alone(self, pair: Pair, work: Callable[[], T]) -> T:
        """The result of ``work`` for one pair; if memory is short, it is repeated after ``make_room``."""
        make_room = self._make_room
        while True:
            try:
                return work()
            except OutOfDeviceMemory as error:
                if make_room is None:
                    rows, columns = len(pair[0]), len(pair[1])
                    name, free = self._device.facts.name, self._device.free_bytes() / 1e9
                    shortage = f"{name} has {free:.1f} GB free, no room for {rows:,} against {columns:,} letters"
                    raise OutOfDeviceMemory(f"{shortage}; choose --engine cpu") from error
                make_room()
                make_room = None

    def _ends_of(self, pairs: Sequence[Pair], problem: AlignmentProblem, progress: Progress | None) -> list[PairEnd]:
        """The ends of pairs that share their launches. Memory is allocated before any progress is reported."""
        with contextlib.ExitStack() as stack:
            launch = DiamondLaunch(self._device, stack, problem, pairs, self.timing, self._shape)
            launch.sweep(progress=progress)
            return launch.ends()


def check_pair(rows: int, columns: int, problem: AlignmentProblem) -> None:
    """Raise :class:`InputError`, with the limit and the remedy, for a pair that the kernels cannot compute."""
    if problem.gap_first > MAX_GAP_FIRST:
        raise InputError("gap costs range up to 16383")
    if problem.local:
        largest = min(rows, columns) * problem.max_score + problem.gap_first
        if largest > MAX_LOCAL_SCORE:
            raise InputError("the sequences are so long that their score may leave 31 bits; split them")
    elif (rows + columns + 2) * problem.max_step + problem.gap_open > MAX_PAIR_SCORE:
        raise InputError("the sequences are so long that their score may leave 30 bits; split them")
    if problem.local and problem.gap_first == 0:
        raise InputError("gaps would cost nothing")
    if problem.local and problem.table is None and problem.mismatch >= 0:
        raise InputError("the GPU aligns locally only where different letters score below 0; choose --engine cpu")


def _without_cells(pair: Pair, problem: AlignmentProblem) -> PairPaths:
    """The outcome of a pair with an empty side, which is aligned on the host."""
    return ReferencePairs().align(SequencePairs.of([pair]), problem)
