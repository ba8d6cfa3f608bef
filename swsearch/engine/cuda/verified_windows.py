"""Long subjects in windows that prove themselves: scored side by side, and compared where they meet.

Each window but a subject's first begins some columns before the one before it ends, with zeros where that one has what
came before. If, where the earlier window ends, both hold the same in every row, the later one is right from there on,
and the largest score of all windows is the subject's (``cuda/kernels/checkpoints.cuh``). Alignments of unrelated sequences
are short, so this is nearly always so; where it is not, the earlier window goes on to the next of a few checkpoints, as far
as all strips of the query are aligned at once.

A window whose checkpoint is not proven by then, since an alignment may reach across it, is scored again from some columns
further back, until all are proven: at least from as far as the best score that was found may be felt, score / extend
columns, for which gaps alone keep H above 0. Where this would be more work than to score the subject whole, it is
scored whole, by diamonds if they suit the query.

The engine launches them before the inter-task kernel of the other subjects, and reads them when that has ended. Side by
side they would share multiprocessors, and take longer than one after the other.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch.database.format import SUBJECT_ALIGNMENT
from swsearch.database.partition import Partition
from swsearch.engine.cuda.device import Argument, Buffer, Device, Stream
from swsearch.engine.cuda.diamonds import DiamondSweep
from swsearch.engine.cuda.kernels import (
    CHECKPOINT_STRIDE,
    CHECKPOINTS,
    COMPARE_CHECKPOINTS_KERNEL,
    WARP,
    Arithmetic,
    KernelSpec,
    Tile,
)
from swsearch.engine.cuda.launches import IntraTaskLauncher, Listed, Timing, address, unsigned
from swsearch.engine.cuda.plan import chain_limit, first_arithmetic, plan_intra_task
from swsearch.engine.cuda.profile import Words
from swsearch.engine.cuda.scratch import Scratch
from swsearch.engine.cuda.subjects import DeviceSubjects
from swsearch.engine.cuda.tiled_subjects import score_by_diamonds, suits_diamonds
from swsearch.query.profile import QueryProfile
from swsearch.typing import Lengths, Scores

OVERLAP: Final = 256
FURTHER: Final = (CHECKPOINTS - 1) * CHECKPOINT_STRIDE
"""Columns by which windows overlap at first, and to which they may go on, or overlap where they cannot;
``benchmarks/benchmark_window_checkpoints.py`` measures how many are needed."""
MIN_STRIDE: Final = 384
"""Columns between the begins of two windows; with fewer, most of the work is what they overlap by."""
GROWTH: Final = 2
"""How much longer a window's overlap is, at least, each time that its checkpoint is not proven."""
MIN_LENGTH: Final = 2048
COMPARE_BLOCKS: Final = 16
"""Blocks a multiprocessor that compare checkpoints at a time."""
STATE_BYTES: Final = 256 << 20
"""Memory for what windows hold at their checkpoints; strides grow where it would take more."""

Pack = Callable[[Sequence[QueryProfile], Tile, Arithmetic], Words]


@dataclass(frozen=True)
class Size:
    """Windows of ``overlap + stride`` columns begin every ``stride`` columns; all are multiples of 16.

    Attributes
    ----------
    overlap, stride : int
    slant : int
        Columns, at least, that the query's last row is behind its first: a subject's last window goes on for so many.
    """

    overlap: int
    stride: int
    slant: int = 0


@dataclass(eq=False)
class Windows:
    """Windows of some subjects, subject by subject, in order of their columns.

    Attributes
    ----------
    subject : int64 array, shape (n,)
        Index of each window's subject among these.
    checkpoint : int64 array, shape (n,)
        The subject's column from which the window is needed, where the one before it ends; 0 of the first.
    begin, end : int64 array, shape (n,)
        The window's own first column, and the column behind its last: the next window's checkpoint, or the subject's length.
    first : int64 array, shape (n_subjects,)
        Index of each subject's first window.
    """

    subject: NDArray[np.int64]
    checkpoint: NDArray[np.int64]
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    first: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.subject)

    @property
    def warmup_columns(self) -> Lengths:
        """Columns before the checkpoint with the window before; 0 where none needs proof."""
        return np.where(self.begin > 0, self.checkpoint - self.begin, 0).astype(np.uint32)

    def n_columns(self, slant: int) -> Lengths:
        """Columns before the checkpoint with the next window.

        Where there is none, so many that all rows end in them, and that the window before may go on beside this one.

        slant : int
            Columns that the query's last row may be behind its first.
        """
        has_next = np.append(self.subject[1:] == self.subject[:-1], False)
        columns = self.end - self.begin
        to_end = np.maximum(columns + slant, self.warmup_columns + FURTHER)
        return np.where(has_next, columns, to_end + -to_end % SUBJECT_ALIGNMENT).astype(np.uint32)

    def after(self, unproven: NDArray[np.bool_], reach: NDArray[np.int64]) -> NDArray[np.bool_]:
        """The unproven windows, and those whose checkpoints lie up to a ``reach``, one for each subject, behind theirs.

        Their own checkpoints may well be proven: both sides miss what comes from before the unproven one.
        """
        apart = int(self.end.max() + reach.max()) + 1
        position = self.subject * apart + self.checkpoint
        last = np.maximum.accumulate(np.where(unproven, position, -apart))
        return position - last <= reach[self.subject]

    def unproven(self, agreed: NDArray[np.uint32], strips: int) -> NDArray[np.bool_]:
        """The windows that no checkpoint proves, after windows met by themselves.

        Parameters
        ----------
        agreed : uint32 array, shape (n,)
            For each checkpoint with the next window a byte: strips that hold the same.
        strips : int
            Of the query.
        """
        proven = (agreed.view(np.uint8).reshape(-1, CHECKPOINTS) == strips).any(axis=1)
        has_previous = np.append(False, self.subject[1:] == self.subject[:-1])
        unproven: NDArray[np.bool_] = has_previous & ~np.append(True, proven[:-1])
        return unproven

    def begin_earlier(
        self, again: NDArray[np.bool_], overlaps: NDArray[np.int64], lengths: Lengths
    ) -> NDArray[np.bool_]:
        """Let windows begin some columns before their checkpoints; a number for each subject.

        Returns the subjects whose windows would then have more columns together than the subject has itself: those are
        to be scored whole, and nothing is asked of their windows any more.
        """
        self.begin[again] = np.maximum(self.checkpoint - overlaps[self.subject], 0)[again]
        columns = np.bincount(self.subject[again], (self.end - self.begin)[again], minlength=len(self.first))
        whole: NDArray[np.bool_] = columns > lengths
        self.begin[whole[self.subject]] = 0  # a window that begins with its subject needs no proof
        return whole


def cut_in_windows(lengths: Lengths, size: Size) -> Windows:
    """Windows of subjects of at least one residue each, all but the last of a subject of the same length.

    Columns are those of the query's first row. The checkpoint before a subject's last window may lie behind the subject's
    end, where some rows come to it later.
    """
    whole = lengths.astype(np.int64)
    n_windows = _n_windows(whole, size)
    first = np.cumsum(n_windows) - n_windows
    subject = np.repeat(np.arange(len(whole)), n_windows)
    begin = (np.arange(len(subject)) - first[subject]) * size.stride
    checkpoint = np.where(begin > 0, begin + size.overlap, 0)
    end = begin + size.overlap + size.stride
    last = first + n_windows - 1
    end[last] = whole
    return Windows(subject, checkpoint, begin, end, first)


def _n_windows(lengths: NDArray[np.int64], size: Size) -> NDArray[np.int64]:
    """So many that a subject's last window takes no more steps than the others, and begins before the subject's end."""
    behind = min(size.slant, size.overlap)
    return np.maximum(-(-(lengths + behind - size.overlap) // size.stride), 1)


class VerifiedWindows:
    """Scores the long subjects of one device.

    Parameters
    ----------
    device : Device
    scratch : Scratch
    launcher : IntraTaskLauncher
    sweep : DiamondSweep
    timing : Timing
        Told of the time of kernels that run after the others.
    overlap, min_stride : int
        Columns by which windows overlap at first, and between the begins of two, at least; multiples of 16.
    min_length : int
        Subjects of up to so many residues are not worth cutting.

    Attributes
    ----------
    full_overlap : int
        Columns from a window's begin to its last checkpoint.
    n_again, n_whole : int
        Windows that were scored again, so far, because a checkpoint was not proven, and subjects that were scored whole.
    """

    def __init__(
        self,
        device: Device,
        scratch: Scratch,
        launcher: IntraTaskLauncher,
        sweep: DiamondSweep,
        timing: Timing,
        overlap: int = OVERLAP,
        min_stride: int = MIN_STRIDE,
        min_length: int = MIN_LENGTH,
    ) -> None:
        self.device = device
        self.scratch = scratch
        self.launcher = launcher
        self.sweep = sweep
        self.timing = timing
        self._overlap = overlap
        self._min_stride = min_stride
        self._min_length = min_length
        self.full_overlap = overlap + FURTHER
        self.n_again = 0
        self.n_whole = 0

    def first(self, partition: Partition, profiles: Sequence[QueryProfile]) -> int:
        """Index of the first subject to be scored so, for queries that are scored together; past the last for none."""
        rows = [profile.length for profile in profiles]
        limit = chain_limit(partition.n_residues, rows, self.device.facts.multiprocessors)
        return int(np.searchsorted(partition.lengths, max(limit, self._min_length), side="right"))

    def kernels(self, profile: QueryProfile) -> list[KernelSpec]:
        """Those that a query needs at first."""
        arithmetic = first_arithmetic(profile)
        tile = plan_intra_task(profile, self.device.facts.architecture, arithmetic, windows=True)
        return [self.launcher.kernel(profile, tile, arithmetic, "score_windows"), COMPARE_CHECKPOINTS_KERNEL]

    def begin(
        self,
        profile: QueryProfile,
        subjects: DeviceSubjects,
        first: int,
        pack: Pack,
        name: str,
        stack: contextlib.ExitStack,
    ) -> VerifiedWindowsRun:
        """Get the subjects from index ``first`` on ready; at least one, none of them empty.

        Parameters
        ----------
        pack : callable
            Packs profiles for a tile.
        name : str
            Of the run, among those at a time.
        stack : ExitStack
            Keeps what the kernels use until they have ended.

        Raises
        ------
        OutOfDeviceMemory
        """
        size = self.size(profile, subjects.partition[first:])
        return VerifiedWindowsRun(self, profile, subjects, np.arange(first, len(subjects)), size, pack, name, stack)

    def size(self, profile: QueryProfile, partition: Partition) -> Size:
        """The shortest windows that the device works on all at a time, unless they are very short or far too many."""
        architecture = self.device.facts.architecture
        narrow = first_arithmetic(profile)
        tile = plan_intra_task(profile, architecture, narrow, windows=True)
        at_a_time = max(self.launcher.at_a_time(profile, tile, narrow), 2 * len(partition))
        wide = plan_intra_task(profile, architecture, Arithmetic.WIDE, windows=True)
        bytes_a_window = (CHECKPOINTS + 1) * wide.strips(profile.length) * wide.checkpoint_words * WARP * 4
        overlap = self._overlap if self.launcher.all_strips_at_once(profile, tile) else self._overlap + FURTHER
        stride = _rounded(max(self._min_stride, partition.n_residues * bytes_a_window // STATE_BYTES))
        lengths = partition.lengths.astype(np.int64)
        stride = max(stride, _rounded((partition.n_residues - len(partition) * overlap) // at_a_time))
        slant = min(tile.strips(profile.length) * tile.slant, wide.strips(profile.length) * wide.slant)
        while int(_n_windows(lengths, Size(overlap, stride, slant)).sum()) > at_a_time:
            stride += SUBJECT_ALIGNMENT
        return Size(overlap, stride, slant)


class VerifiedWindowsRun:
    """Long subjects of one query, from the first launch of their windows to their scores."""

    def __init__(
        self,
        of: VerifiedWindows,
        profile: QueryProfile,
        subjects: DeviceSubjects,
        indices: NDArray[np.intp],
        size: Size,
        pack: Pack,
        name: str,
        stack: contextlib.ExitStack,
    ) -> None:
        self._of = of
        self._device = of.device
        self._profile = profile
        self._subjects = subjects
        self._indices = indices
        self._size = size
        self._pack = pack
        self._name = name
        self._stack = stack
        self._tile: Tile
        self._meet: bool
        self._zeros: Buffer
        self._scores: Buffer
        self._prepare(first_arithmetic(profile), np.arange(len(indices)))

    def start(self) -> None:
        """Launch what is to be scored, and the comparison of all checkpoints unless windows meet by themselves."""
        self._launch.start()
        if self._any_checkpoint and not self._meet:
            n = len(self._windows)
            compared: list[Argument] = [
                self._at_warmup, self._states, unsigned(n), unsigned(self._state_words // 4), address(self._zeros),
            ]  # fmt: skip
            grid = min(n, self._device.facts.multiprocessors * COMPARE_BLOCKS)
            self._device.launch(COMPARE_CHECKPOINTS_KERNEL, grid, 0, compared, Stream.COMPUTE)

    def finish(self) -> tuple[Scores, int]:
        """The subjects' scores, and how many left the narrowest type; after :meth:`start`, waits for it."""
        scores = np.zeros(len(self._indices), dtype=np.int32)
        n_left = 0
        while True:
            best, beyond = self._proven()
            scores[self._chosen] = best
            n_left = n_left or int(beyond.sum())
            if not beyond.any():
                return scores, n_left
            assert self._arithmetic.wider is not None
            self._prepare(self._arithmetic.wider, self._chosen[beyond])
            self._start_timed()

    def _proven(self) -> tuple[Scores, NDArray[np.bool_]]:
        """The best score of each subject, and which of them the type does not hold; all others are proven."""
        profile, windows = self._profile, self._windows
        by_diamonds = np.zeros(len(self._chosen), dtype=np.int32)
        while True:
            found, best = np.empty(len(windows), np.uint32), np.empty(len(windows), np.int32)
            self._device.download(found, self._zeros, Stream.COMPUTE)
            self._device.download(best, self._scores, Stream.COMPUTE)
            of_subjects = np.maximum.reduceat(best, windows.first)
            beyond = of_subjects > self._arithmetic.largest_exact(profile.max_score)
            strips = self._tile.strips(profile.length)
            unproven = windows.unproven(found, strips) if self._meet else found != 0
            unproven &= ~beyond[windows.subject]
            again, whole = self._begin_earlier(unproven, of_subjects)
            if whole.any() and suits_diamonds(profile):
                of_whole = self._subjects.partition[self._indices[self._chosen[whole]]]
                by_diamonds[whole] = score_by_diamonds(self._of.sweep, profile, of_whole, self._of.timing)
            elif whole.any():
                last = np.append(windows.first[1:], len(windows)) - 1
                again[last[whole]] = True
            if not again.any():
                return np.maximum(of_subjects, by_diamonds), beyond
            self._again = np.flatnonzero(again)
            self._meet = False  # with windows that are scored already
            # The others were proven, and perhaps at a later checkpoint than what windows keep at their ends is of.
            self._compared = again | np.append(False, again[:-1])
            self._describe()
            self._start_timed()

    def _begin_earlier(self, unproven: NDArray[np.bool_], best: Scores) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which windows are to be scored again, and which subjects whole."""
        if not unproven.any():
            return unproven, np.zeros(len(best), dtype=bool)
        extend = self._profile.gap.extend
        felt = best.astype(np.int64) // extend if extend else self._lengths.astype(np.int64)
        self._overlap *= GROWTH
        again = self._windows.after(unproven, felt)
        overlaps = np.maximum(self._overlap, felt + self._size.overlap + -felt % SUBJECT_ALIGNMENT)
        whole = self._windows.begin_earlier(again, overlaps, self._lengths)
        again &= ~whole[self._windows.subject]
        self._of.n_again += int(again.sum())
        self._of.n_whole += int(whole.sum())
        return again, whole

    def _start_timed(self) -> None:
        with self._device.timed(Stream.COMPUTE) as seconds:
            self.start()
        self._of.timing.seconds += seconds[0]

    def _prepare(self, arithmetic: Arithmetic, chosen: NDArray[np.intp]) -> None:
        """All windows of some of the subjects, in a type."""
        profile, scratch = self._profile, self._of.scratch
        self._arithmetic = arithmetic
        self._chosen = chosen
        self._lengths = self._subjects.partition.lengths[self._indices[chosen]]
        self._windows = cut_in_windows(self._lengths, self._size)
        self._overlap = self._of.full_overlap
        self._again = np.arange(len(self._windows))
        self._compared = np.ones(len(self._windows), dtype=bool)
        self._tile = plan_intra_task(profile, self._device.facts.architecture, arithmetic, windows=True)
        # A window that is shorter would end before it came to checkpoints at which the one before may wait for it.
        self._meet = self._size.stride >= FURTHER and self._of.launcher.all_strips_at_once(profile, self._tile)
        words = self._pack([profile], self._tile, arithmetic)
        self._on_device = self._of.launcher.upload_profile(self._named("profile"), words, self._stack)
        # What is not scored again keeps its scores, and its states at checkpoints, from launch to launch.
        n = len(self._windows)
        self._state_words = self._tile.strips(profile.length) * self._tile.checkpoint_words * WARP
        self._states = address(scratch.buffer(self._named("states"), n * (CHECKPOINTS + 1) * self._state_words * 4))
        self._scores = scratch.buffer(self._named("scores"), n * 4)
        self._describe()

    def _describe(self) -> None:
        """Upload where the windows are and which of them are to be scored, and plan the launch."""
        partition, windows = self._subjects.partition, self._windows
        starts = (partition.starts[self._indices[self._chosen]] - partition.starts[0]).astype(np.int64)
        slant = self._tile.strips(self._profile.length) * self._tile.slant
        lengths = self._lengths[windows.subject] - windows.begin
        warmup, n_columns = np.where(self._compared, windows.warmup_columns, np.uint32(0)), windows.n_columns(slant)
        columns: list[NDArray[np.generic]] = [
            (starts[windows.subject] + windows.begin).astype(np.uint64), lengths.astype(np.uint32),
            np.minimum(windows.begin, slant).astype(np.uint32), np.append(warmup, np.uint32(0)), n_columns,
            # From last to first: a window waits for the one behind it only when that one is begun.
            self._again[::-1].astype(np.uint32), np.array([len(self._again)], dtype=np.uint32),
        ]  # fmt: skip
        self._described = np.concatenate([column.view(np.uint8) for column in columns])
        n = len(windows)
        table = self._of.scratch.buffer(self._named("table"), len(self._described))
        offsets = np.cumsum([0, *(column.nbytes for column in columns[:-1])]).tolist()
        at_starts, at_lengths, at_before, self._at_warmup, at_n_columns, at_indices, at_count = (
            address(table, offset) for offset in offsets
        )
        self._any_checkpoint = bool(warmup.any())
        # What is found about checkpoints, a counter, and how far each strip has come.
        reached_at = (n + 2) // 2 * 8
        n_zeros = reached_at + n * self._tile.strips(self._profile.length) * 8
        self._zeros = self._of.scratch.buffer(self._named("checkpoints"), n_zeros)
        self._device.upload(table, self._described, Stream.COMPUTE)
        self._device.clear(self._zeros, n_zeros, Stream.COMPUTE)
        listed = Listed(
            address(self._subjects.residues), at_starts, at_lengths, at_indices, at_count,
            len(self._again), int(n_columns[self._again].max()) + FURTHER + SUBJECT_ALIGNMENT,
        )  # fmt: skip
        self._launch = self._of.launcher.plan(
            self._profile, self._on_device, listed,
            tile=self._tile, arithmetic=self._arithmetic, scores=address(self._scores),
            counter=address(self._zeros, n * 4), stream=Stream.COMPUTE, name=f"windows {self._name}",
            checkpoints=[
                at_before, self._at_warmup, at_n_columns, self._states,
                address(self._zeros, reached_at) if self._meet else address(None), address(self._zeros),
            ],
        )  # fmt: skip

    def _named(self, what: str) -> str:
        return f"windows' {what} {self._name}"


def _rounded(columns: int) -> int:
    return -(-columns // SUBJECT_ALIGNMENT) * SUBJECT_ALIGNMENT
