"""Scores long subjects on one GPU in overlapping windows, and proves by comparison that the scores are exact.

Inputs are a query profile and the subjects on the device from a given index on; the output is the exact best local
score of each of them (:meth:`VerifiedWindowsRun.finish`). The caller is ``CudaEngine`` (engine.py).

A subject is cut into windows that the GPU scores concurrently. Each window except the first of a subject begins some
columns before the end of the previous window, as if H and E were 0 before it. The column at which the previous window
ends is the checkpoint. If both windows have the same H and E in all query rows there, the later window is exact from
the checkpoint on. If this holds at every checkpoint, the largest score of all windows is the subject's score
(``cuda/search/checkpoints.cuh``). Alignments of unrelated sequences are short, so nearly every checkpoint agrees at
once. If the two windows differ at the checkpoint, the previous window is extended by some columns and compared again, a
few times; this is possible only if the GPU computes all strips of the query at the same time.

If a checkpoint is still not proven, an alignment may extend across it. Its window then starts further back and is
scored again, until all checkpoints are proven. Gaps alone can keep H above 0 for score / extend columns after an
alignment, so the new start lies at least this number of columns before the checkpoint, for the subject's best score so
far. If the windows to score again would have more columns than the subject itself, the subject is scored without
windows, by diamonds if they suit the query: then its matrix is divided among warps in both directions
(:mod:`swsearch.engine.cuda.pairs.diamonds`). :func:`score_by_diamonds` also serves queries of so many thousand rows
that a window would have too many strips.

The engine launches the windows before the inter-task kernel of the other subjects and reads their scores after it. If
both kernels ran at the same time, they would share multiprocessors and take longer than one after the other.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch.database.format import SUBJECT_ALIGNMENT
from swsearch.database.partition import Partition
from swsearch.engine.cuda.pairs.diamonds import DiamondSweep
from swsearch.engine.cuda.runtime.device import Buffer, Stream, Timing
from swsearch.engine.cuda.runtime.kernels import CHECKPOINTS, COMPARE_CHECKPOINTS_KERNEL, WARP, Arithmetic
from swsearch.engine.cuda.runtime.parameters import COMPARE_CHECKPOINTS, packed
from swsearch.engine.cuda.search.launches import IntraTaskLauncher, Listed, address
from swsearch.engine.cuda.search.plan import ListedRoute
from swsearch.engine.cuda.search.planner import Planner, suits_diamonds
from swsearch.engine.cuda.search.slots import Slot, profile_strips
from swsearch.engine.cuda.search.subjects import DeviceSubjects
from swsearch.engine.cuda.search.windows import EXTENSION, BestWindows, Size, Windows, cut_in_windows, n_windows
from swsearch.engine.pair_arrays import AlignmentProblem, FreeEnds
from swsearch.hits.score_block import ColumnRanges
from swsearch.query.profile import QueryProfile
from swsearch.sequences.alphabet import CODE_MASK
from swsearch.typing import Scores

GROWTH: Final = 2
"""Smallest factor by which the overlap grows each time that a checkpoint is not proven."""
COMPARE_BLOCKS: Final = 16
"""Blocks per multiprocessor of the kernel that compares checkpoints."""
STATE_BYTES: Final = 256 << 20
"""Memory for the states at checkpoints; strides grow if it does not suffice."""

KNOWN_CUTS: Final = 128
"""Number of cuts of subjects in windows that are remembered, since queries of one length share them."""


@dataclass(frozen=True, eq=False)
class WindowTable:
    """The windows of a launch in device memory.

    ``offsets`` are those in bytes of the columns ``starts``, ``lengths``, ``before``, ``entries`` and ``steps``
    (``checkpoints.cuh``), of the list of windows to score, and of its length. ``longest`` is the number of columns of
    the longest window.
    """

    buffer: Buffer
    offsets: list[int]
    any_checkpoint: bool
    n_listed: int
    longest: int


class VerifiedWindows:
    """Scores long subjects in windows on one device.

    ``n_again`` and ``n_whole`` count the windows that were scored again because a checkpoint was not proven, and the
    subjects that were scored without windows. The time of kernels after the first launch is added to ``timing``.
    """

    def __init__(
        self,
        launcher: IntraTaskLauncher,
        planner: Planner,
        sweep: DiamondSweep,
        timing: Timing,
    ) -> None:
        self.device = launcher.device
        self.launcher = launcher
        self.planner = planner
        self.sweep = sweep
        self.timing = timing
        self._overlap = planner.options.thresholds.window_overlap
        self._min_stride = planner.options.thresholds.window_stride
        self.full_overlap = self._overlap + EXTENSION
        self.n_again = 0
        self.n_whole = 0
        self._cuts: dict[Hashable, tuple[Partition, Size, Windows]] = {}
        """The windows of earlier runs, each with its partition, whose identity is part of the key."""

    def begin(
        self,
        profile: QueryProfile,
        route: ListedRoute,
        subjects: DeviceSubjects,
        first: int,
        name: str,
        slot: Slot,
    ) -> VerifiedWindowsRun:
        """Prepare the windows of the subjects from index ``first`` on: at least one subject, none of them empty.

        ``name`` is unique in the slot of the run's batch. Raises :class:`OutOfDeviceMemory`.
        """
        return VerifiedWindowsRun(self, profile, route, subjects, first, name, slot)

    def cut(
        self, profile: QueryProfile, route: ListedRoute, subjects: DeviceSubjects, first: int
    ) -> tuple[Size, Windows]:
        """The windows of the subjects from index ``first`` on, and their size."""
        key = (id(subjects.partition), first, profile.length, route)
        if key not in self._cuts:
            if len(self._cuts) == KNOWN_CUTS:
                self._cuts.clear()
            long = subjects.partition[first:]
            size = self.size(profile, route, long)
            self._cuts[key] = subjects.partition, size, cut_in_windows(long.lengths, size)
        _, size, windows = self._cuts[key]
        return size, windows

    def size(self, profile: QueryProfile, route: ListedRoute, partition: Partition) -> Size:
        """The smallest windows that the device scores all at the same time, within the limits of stride and memory."""
        tile = route.tile
        n_concurrent = max(self.launcher.concurrent_windows(profile, route), 2 * len(partition))
        later = [
            self.planner.listed(profile, each, "score_windows").tile for each in (Arithmetic.SHORT, Arithmetic.WIDE)
        ]
        words = max(tile.strips(profile.length) * tile.checkpoint_words for tile in later)
        bytes_per_window = (CHECKPOINTS + 1) * words * WARP * 4
        overlap = self._overlap if self.launcher.all_strips_at_once(profile, tile) else self._overlap + EXTENSION
        stride = _rounded(max(self._min_stride, partition.n_residues * bytes_per_window // STATE_BYTES))
        lengths = partition.lengths.astype(np.int64)
        stride = max(stride, _rounded((partition.n_residues - len(partition) * overlap) // n_concurrent))
        slant = min(tile.strips(profile.length) * tile.slant for tile in [tile, *later])
        while int(n_windows(lengths, Size(overlap, stride, slant)).sum()) > n_concurrent:
            stride += SUBJECT_ALIGNMENT
        return Size(overlap, stride, slant)


class VerifiedWindowsRun:
    """The windows of one query's long subjects, from their first launch to the subjects' scores."""

    def __init__(
        self,
        of: VerifiedWindows,
        profile: QueryProfile,
        route: ListedRoute,
        subjects: DeviceSubjects,
        first: int,
        name: str,
        slot: Slot,
    ) -> None:
        self._of = of
        self._device = of.device
        self._profile = profile
        self._subjects = subjects
        self._indices = np.arange(first, len(subjects))
        self._size, windows = of.cut(profile, route, subjects, first)
        self._name = name
        self._slot = slot
        self._downloads: NDArray[np.int32] | None = None
        n_cells = subjects.longest * profile.length
        self._locates = n_cells >= of.planner.options.thresholds.located_cells
        self._best: list[tuple[NDArray[np.intp], BestWindows]] = []
        """The proven windows of some subjects; later entries replace earlier ones."""
        self._again: NDArray[np.intp] | None
        self._windows: Windows
        self._overlap: int
        self._extends: bool
        self._results: Buffer
        self._agreed: int
        self._prepare(route, np.arange(len(self._indices)), windows)

    def start(self) -> None:
        """Launch the windows and, unless the kernel compares and extends them itself, the comparison of checkpoints."""
        self._launch.start()
        if self._any_checkpoint and not self._extends:
            n = len(self._windows)
            compared = packed(
                COMPARE_CHECKPOINTS, entries=self._at_warmup, words=self._states, n_windows=n,
                units_per_checkpoint=self._state_words // 4, differs=self._agreed,
            )  # fmt: skip
            grid = min(n, self._device.facts.multiprocessors * COMPARE_BLOCKS)
            self._device.launch(COMPARE_CHECKPOINTS_KERNEL, grid, 0, compared, Stream.COMPUTE)

    def begin_download(self) -> None:
        """Begin to download the results of :meth:`start`; call :meth:`finish` when the download has ended."""
        self._downloads = self._slot.pinned(2 * len(self._windows), np.int32)
        self._device.begin_download(self._downloads, self._results, Stream.FINISH)

    def finish(self) -> tuple[Scores, int]:
        """The subjects' scores and the number that exceed the narrowest type.

        Windows that are not proven are scored again in this call, which waits for their launches.
        """
        scores, beyond = self._proven()
        n_left = int(np.count_nonzero(beyond))
        while beyond.any():
            assert self._arithmetic.wider is not None
            chosen = self._chosen[beyond]
            windows = cut_in_windows(self._subjects.partition.lengths[self._indices[chosen]], self._size)
            route = self._of.planner.listed(self._profile, self._arithmetic.wider, "score_windows")
            self._prepare(route, chosen, windows)
            self._start_timed()
            scores[chosen], beyond = self._proven()
        return scores, n_left

    def _proven(self) -> tuple[Scores, NDArray[np.bool_]]:
        """Repeat launches until all checkpoints are proven; the best scores, and whether they exceed the type."""
        profile, windows = self._profile, self._windows
        by_diamonds = None
        wholes = np.zeros(0, np.intp)  # the last windows of subjects to score whole
        while True:
            found, best = self._downloaded()
            of_subjects = np.maximum.reduceat(best, windows.first)
            beyond = of_subjects > self._arithmetic.largest_exact(profile.max_score)
            strips = self._tile.strips(profile.length)
            again = windows.unproven(found, strips) if self._extends else found != 0
            if again.any():
                again, whole = self._begin_earlier(again & ~beyond[windows.subject], of_subjects)
                if whole.any() and suits_diamonds(profile):
                    by_diamonds = np.zeros_like(of_subjects) if by_diamonds is None else by_diamonds
                    of_whole = self._subjects.partition[self._indices[self._chosen[whole]]]
                    by_diamonds[whole] = score_by_diamonds(self._of.sweep, profile, of_whole, self._of.timing)
                elif whole.any():
                    last = np.append(windows.first[1:], len(windows)) - 1
                    wholes = np.append(wholes, last[whole])
            if not again.any() and wholes.size:
                # In a launch of their own, because each block has memory for the boundary of the longest window.
                again[wholes], wholes = True, wholes[:0]
            if not again.any():
                elsewhere = np.zeros(len(of_subjects), np.bool_)
                if by_diamonds is not None:
                    elsewhere = by_diamonds > of_subjects
                if self._locates:
                    # The columns of the query's last row lag behind those of the window.
                    slant = strips * self._tile.slant
                    found_best = BestWindows(self._windows, best.copy(), of_subjects.copy(), slant, elsewhere)
                    self._best.append((self._chosen, found_best))
                return of_subjects if by_diamonds is None else np.maximum(of_subjects, by_diamonds), beyond
            self._again = np.flatnonzero(again)
            self._extends = False  # the windows beside them are finished
            self._plan()
            self._start_timed()

    def ranges(self, scores: Scores) -> Mapping[int, tuple[int, int]]:
        """Where each subject's first best alignment lies, by the subject's index; see :class:`ScoreBlock`.

        Call this after :meth:`finish`, whose ``scores`` are given. The result is empty if the subjects are too short or
        if alignments may be of any length.
        """
        if not self._locates:
            return {}
        profile, partition, indices = self._profile, self._subjects.partition, self._indices
        return ColumnRanges(partial(_column_ranges, profile, partition, indices, self._best, scores))

    def _downloaded(self) -> tuple[NDArray[np.uint32], Scores]:
        """The results of the last launch: of the comparisons, and the windows' best scores."""
        n, results, self._downloads = len(self._windows), self._downloads, None
        if results is None:
            results = np.empty(2 * n, np.int32)
            self._device.download(results, self._results, Stream.COMPUTE)
        return results[n:].view(np.uint32), results[:n]

    def _begin_earlier(self, unproven: NDArray[np.bool_], best: Scores) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """The windows to score again, which then begin earlier, and the subjects to score without windows."""
        if not unproven.any():
            return unproven, np.zeros(len(best), dtype=bool)
        extend = self._profile.gap.extend
        reach = best.astype(np.int64) // extend if extend else self._lengths.astype(np.int64)
        self._overlap *= GROWTH
        again = self._windows.after(unproven, reach)
        overlaps = np.maximum(self._overlap, reach + self._size.overlap + -reach % SUBJECT_ALIGNMENT)
        self._windows = replace(self._windows, begin=self._windows.begin.copy())  # another batch may use the former
        whole = self._windows.begin_earlier(again, overlaps, self._lengths)
        again &= ~whole[self._windows.subject]
        self._of.n_again += int(again.sum())
        self._of.n_whole += int(whole.sum())
        return again, whole

    def _start_timed(self) -> None:
        with self._device.timed(Stream.COMPUTE) as seconds:
            self.start()
        self._of.timing.seconds += seconds[0]

    def _prepare(self, route: ListedRoute, chosen: NDArray[np.intp], windows: Windows) -> None:
        """Prepare the windows of the chosen subjects."""
        profile, scratch = self._profile, self._slot.scratch
        self._route, self._tile, self._arithmetic = route, route.tile, route.arithmetic
        self._chosen = chosen
        self._lengths = self._subjects.partition.lengths[self._indices[chosen]]
        self._windows = windows
        self._overlap = self._of.full_overlap
        self._again = None
        # A shorter window would end before checkpoints at which the previous window may wait for it.
        self._extends = self._size.stride >= EXTENSION and self._of.launcher.all_strips_at_once(profile, self._tile)
        strips = profile_strips([profile], self._tile, self._arithmetic)
        self._on_device = self._slot.profile(self._named("profile"), [strips])
        # The scores and states of windows that are not scored again are retained from launch to launch.
        n = len(self._windows)
        self._state_words = self._tile.strips(profile.length) * self._tile.checkpoint_words * WARP
        self._states = address(scratch.buffer(self._named("states"), n * (CHECKPOINTS + 1) * self._state_words * 4))
        self._plan()

    def _plan(self) -> None:
        """Plan the launch of the windows to score."""
        n, table = len(self._windows), self._table()
        starts, lengths, before, self._at_warmup, n_columns, indices, count = (
            address(table.buffer, offset) for offset in table.offsets
        )
        self._any_checkpoint = table.any_checkpoint
        # The buffer contains the scores, which are retained from launch to launch; then zeros: the results of the
        # comparisons, a counter, and the progress of each strip.
        scores_bytes = n * 4
        reached_at = (2 * n + 2) // 2 * 8
        n_bytes = reached_at + n * self._tile.strips(self._profile.length) * 8
        self._results = self._slot.scratch.buffer(self._named("results"), n_bytes)
        self._device.clear(self._results, n_bytes - scores_bytes, Stream.COMPUTE, scores_bytes)
        self._agreed = address(self._results, scores_bytes)
        listed = Listed(
            address(self._subjects.residues), starts, lengths, indices, count,
            table.n_listed, table.longest + EXTENSION + SUBJECT_ALIGNMENT,
            address(self._results), address(self._results, 2 * scores_bytes),
        )  # fmt: skip
        self._launch = self._of.launcher.plan(
            self._profile, self._on_device, listed,
            route=self._route, stream=Stream.COMPUTE, name=f"windows {self._name}",
            further=(
                before, self._at_warmup, n_columns, self._states,
                address(self._results, reached_at) if self._extends else 0, self._agreed,
            ),
        )  # fmt: skip

    def _table(self) -> WindowTable:
        """The table of the windows to score. That of a first launch does not depend on the query's letters."""
        slant = self._tile.strips(self._profile.length) * self._tile.slant
        if self._again is not None or len(self._chosen) < len(self._indices):
            data, offsets, numbers = self._describe(slant)
            return WindowTable(self._slot.upload(self._named("table"), data), offsets, *numbers)
        key = ("windows", int(self._indices[0]), self._size, slant)
        known = self._subjects.tables.get(key)
        if known is None:
            data, offsets, numbers = self._describe(slant)
            buffer = self._device.allocate(len(data))
            staged = self._slot.pinned(len(data), np.uint8)
            np.copyto(staged, data)
            self._device.upload(buffer, staged, Stream.COMPUTE)
            known = self._subjects.tables[key] = WindowTable(buffer, offsets, *numbers)
        assert isinstance(known, WindowTable)
        return known

    def _describe(self, slant: int) -> tuple[NDArray[np.uint8], list[int], tuple[bool, int, int]]:
        """The bytes of the table, the offsets of its columns, and what the host needs to know."""
        partition, windows = self._subjects.partition, self._windows
        starts = (partition.starts[self._indices[self._chosen]] - partition.starts[0]).astype(np.int64)
        lengths = self._lengths[windows.subject] - windows.begin
        warmup, n_columns, again = windows.warmup_columns, windows.n_columns(slant), np.arange(len(windows))
        if self._again is not None:
            again = self._again
            # The others are proven, perhaps at a later checkpoint than the one whose states their windows saved last.
            warmup[np.setdiff1d(np.arange(len(windows)), [again, again + 1])] = 0
        columns: list[NDArray[np.generic]] = [
            (starts[windows.subject] + windows.begin).astype(np.uint64), lengths.astype(np.uint32),
            np.minimum(windows.begin, slant).astype(np.uint32), np.append(warmup, np.uint32(0)), n_columns,
            # The list runs from last to first, so that the later window has begun when a window waits for it.
            again[::-1].astype(np.uint32), np.array([len(again)], dtype=np.uint32),
        ]  # fmt: skip
        offsets = np.cumsum([0, *(column.nbytes for column in columns[:-1])]).tolist()
        data = np.concatenate([column.view(np.uint8) for column in columns])
        return data, offsets, (bool(warmup.any()), len(again), int(n_columns[again].max()))

    def _named(self, what: str) -> str:
        return f"windows' {what} {self._name}"


def _column_ranges(
    profile: QueryProfile,
    partition: Partition,
    indices: NDArray[np.intp],
    best: Sequence[tuple[NDArray[np.intp], BestWindows]],
    scores: Scores,
) -> dict[int, tuple[int, int]]:
    """The ranges of columns of the subjects at ``indices``, from the windows of all launches.

    A first best alignment ends in the first window that has the subject's score, or in a later window, but not behind
    the first one's last column. A window may have been extended.
    """
    spanned = profile.most_columns(scores)
    if spanned is None:
        return {}
    begin, end = np.zeros(len(indices), np.int64), np.zeros(len(indices), np.int64)
    for chosen, windows in best:
        begin[chosen], end[chosen] = windows.columns()
    lengths = partition.lengths[indices].astype(np.int64)
    begin = np.maximum(begin - spanned, 0) // SUBJECT_ALIGNMENT * SUBJECT_ALIGNMENT
    n_columns = np.minimum(np.minimum(end, lengths) + EXTENSION, lengths) - begin
    subjects = partition.subject_index[indices].tolist()
    return dict(zip(subjects, zip(begin.tolist(), n_columns.tolist(), strict=True), strict=True))


def _rounded(columns: int) -> int:
    return -(-columns // SUBJECT_ALIGNMENT) * SUBJECT_ALIGNMENT


def score_by_diamonds(sweep: DiamondSweep, profile: QueryProfile, subjects: Partition, timing: Timing) -> Scores:
    """The subjects' best scores by diamonds; adds the kernel time to ``timing``. The profile must suit diamonds."""
    problem = AlignmentProblem(
        True, FreeEnds.ALL, profile.gap.open, profile.gap.extend, table=np.ascontiguousarray(profile.table)
    )
    rows = profile.rows.astype(np.uint16)
    pairs = [(rows, (subjects.codes(index) & CODE_MASK).astype(np.uint16)) for index in range(len(subjects))]
    before = sweep.seconds
    ends = sweep.ends(pairs, problem)
    timing.seconds += sweep.seconds - before
    return np.array([end.score for end in ends], dtype=np.int32)
