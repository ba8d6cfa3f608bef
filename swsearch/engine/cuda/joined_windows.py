"""Long subjects in windows that prove themselves: scored side by side, and compared where they meet.

Each window but a subject's first begins some columns before the one before it ends, with zeros where that one has what
came before. If, where the earlier window ends, both hold the same in every row, the later one is right from there on,
and the largest score of all windows is the subject's (``cuda/kernels/joints.cuh``). Alignments of unrelated sequences
are short, so this is nearly always so. A window whose joint is not proven, since an alignment may reach across it, is
scored again from some columns further back, until all are proven; where this would be more work than to score the
subject whole, it is scored whole.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch.database.format import SUBJECT_ALIGNMENT
from swsearch.database.partition import Partition
from swsearch.engine.cuda.device import Argument, Buffer, Device, OutOfDeviceMemory, Stream
from swsearch.engine.cuda.kernels import COMPARE_KERNEL, WARP, Arithmetic, Tile
from swsearch.engine.cuda.launches import DeviceProfile, Listed, ListLauncher, Timing, address, unsigned
from swsearch.engine.cuda.plan import first_arithmetic, plan_list
from swsearch.engine.cuda.profile import pack_profile
from swsearch.engine.cuda.scratch import Scratch
from swsearch.engine.cuda.subjects import DeviceSubjects, SubjectStore, chunk_bytes, in_stored_order
from swsearch.hits.score_block import ScoreBlock
from swsearch.query.profile import QueryProfile
from swsearch.typing import Lengths, Scores

OVERLAP: Final = 256
"""Columns by which windows overlap at first; ``benchmarks/benchmark_joints.py`` measures how many are needed."""
LEAST_STRIDE: Final = 512
GROWTH: Final = 4
"""How much longer a window's overlap is each time that its joint is not proven."""
STATE_BYTES: Final = 256 << 20
"""Memory for what windows hold at their joints; strides grow where it would take more."""


@dataclass(frozen=True)
class Size:
    """Windows end every ``stride`` columns and begin ``overlap`` before the last one ends; both multiples of 16."""

    overlap: int
    stride: int


@dataclass(eq=False)
class Windows:
    """Windows of some subjects, subject by subject, in order of their columns.

    Attributes
    ----------
    subject : int64 array, shape (n,)
        Place of each window's subject among these.
    joint : int64 array, shape (n,)
        The subject's column from which the window is needed, where the one before it ends; 0 of the first.
    begin, end : int64 array, shape (n,)
        The window's own first column, and the column behind its last.
    first : int64 array, shape (n_subjects,)
        Place of each subject's first window.
    """

    subject: NDArray[np.int64]
    joint: NDArray[np.int64]
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    first: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.subject)

    @property
    def entries(self) -> Lengths:
        """Columns before the joint with the window before; 0 where none needs proof."""
        return np.where(self.begin > 0, self.joint - self.begin, 0).astype(np.uint32)

    @property
    def exits(self) -> Lengths:
        """Columns before the joint with the next window; 0 where there is none."""
        followed = np.append(self.subject[1:] == self.subject[:-1], False)
        return np.where(followed, self.end - self.begin, 0).astype(np.uint32)

    def begin_earlier(self, unproven: NDArray[np.bool_], overlap: int, lengths: Lengths) -> NDArray[np.intp]:
        """Let windows begin ``overlap`` columns before their joints; which are to be scored again.

        A subject whose windows would have more columns together than it has itself gets its last one whole instead.
        """
        again = np.flatnonzero(unproven)
        begins = np.maximum(self.joint[again] - overlap, 0)
        columns = np.bincount(self.subject[again], self.end[again] - begins, minlength=len(self.first))
        whole = columns > lengths
        self.begin[again] = begins
        if whole.any():
            last = np.append(self.first[1:], len(self)) - 1
            # Nothing is asked of the others any more: a window that begins with its subject needs no proof.
            self.begin[whole[self.subject]] = 0
            again = np.union1d(again[~whole[self.subject[again]]], last[whole])
        return again


def cut_in_windows(lengths: Lengths, size: Size) -> Windows:
    """Windows of subjects of at least one residue each."""
    whole = lengths.astype(np.int64)
    n_windows = -(-whole // size.stride)
    first = np.cumsum(n_windows) - n_windows
    subject = np.repeat(np.arange(len(whole)), n_windows)
    joint = (np.arange(len(subject)) - first[subject]) * size.stride
    return Windows(
        subject, joint, np.maximum(joint - size.overlap, 0), np.minimum(joint + size.stride, whole[subject]), first
    )


class JoinedWindows:
    """Scores the long subjects of one device.

    Parameters
    ----------
    device : Device
    store : SubjectStore
        Where the subjects are.
    scratch : Scratch
    launcher : ListLauncher
    timing : Timing
        Told of the kernels' time.
    overlap, least_stride : int
        Multiples of 16.

    Attributes
    ----------
    n_again : int
        Windows that were scored again, so far, because a joint was not proven.
    """

    def __init__(
        self,
        device: Device,
        store: SubjectStore,
        scratch: Scratch,
        launcher: ListLauncher,
        timing: Timing,
        overlap: int = OVERLAP,
        least_stride: int = LEAST_STRIDE,
    ) -> None:
        self._device = device
        self._store = store
        self._scratch = scratch
        self._launcher = launcher
        self._timing = timing
        self._overlap = overlap
        self._least_stride = least_stride
        self.n_again = 0

    def score(self, profile: QueryProfile, partition: Partition, first: int) -> ScoreBlock:
        """The best scores of a partition's subjects from place ``first`` on.

        A partition that fits is uploaded whole, as its other subjects are wanted too.

        Parameters
        ----------
        profile : QueryProfile
        partition : Partition
        first : int
            Less than the number of subjects; from there on none is empty.

        Raises
        ------
        OutOfDeviceMemory
            Not even a megabyte of the database at a time fits.
        """
        arithmetic = first_arithmetic(profile)
        tile = plan_list(profile, self._device.facts.architecture, arithmetic, windows=True)
        self._device.prepare([self._launcher.kernel(profile, tile, arithmetic, "score_windows"), COMPARE_KERNEL])
        while True:
            try:
                block = self._score_once(profile, partition, first)
            except OutOfDeviceMemory:
                self._scratch.free()
                if not self._store.give_way():
                    raise
            else:
                self._timing.cells += profile.length * partition[first:].n_residues
                return block

    def _score_once(self, profile: QueryProfile, partition: Partition, first: int) -> ScoreBlock:
        if chunk_bytes(partition) <= self._store.limit_bytes:
            (subjects,) = self._store.pieces(partition)
            return self._score_piece(profile, subjects, np.arange(first, len(partition)))
        long = partition[first:]
        blocks = []
        streamed = False
        with contextlib.closing(self._store.pieces(long, profile.length)) as pieces:
            for subjects in pieces:
                blocks.append(self._score_piece(profile, subjects, np.arange(len(subjects))))
                streamed = subjects.streamed
                self._store.advance()
        whole = ScoreBlock.concatenate(blocks)
        return in_stored_order(whole, long) if streamed else whole

    def _score_piece(self, profile: QueryProfile, subjects: DeviceSubjects, chosen: NDArray[np.intp]) -> ScoreBlock:
        """Best scores of the subjects at the ``chosen`` places, growing."""
        partition = subjects.partition[chosen]
        scores = np.zeros(len(partition), dtype=np.int32)
        size = self._size(profile, partition)
        n_left = 0
        places = np.arange(len(partition))
        arithmetic: Arithmetic | None = first_arithmetic(profile)
        while places.size:
            assert arithmetic is not None
            scores[places] = self._best(profile, subjects, chosen[places], size, arithmetic)
            places = places[scores[places] > arithmetic.largest_exact(profile.max_score)]
            n_left = n_left or len(places)
            arithmetic = arithmetic.wider
        return ScoreBlock(partition.subject_index, scores, n_left)

    def _size(self, profile: QueryProfile, partition: Partition) -> Size:
        """All windows at a time, the last one of each subject counted in, which may be a short one."""
        architecture = self._device.facts.architecture
        narrow = first_arithmetic(profile)
        tile = plan_list(profile, architecture, narrow, windows=True)
        at_a_time = self._launcher.at_a_time(profile, tile, narrow)
        stride = partition.n_residues // max(at_a_time - len(partition), at_a_time // 2, 1)
        wide = plan_list(profile, architecture, Arithmetic.WIDE, windows=True)
        bytes_a_window = 2 * wide.strips(profile.length) * wide.joint_words * WARP * 4
        stride = max(stride, self._least_stride, partition.n_residues * bytes_a_window // STATE_BYTES)
        return Size(self._overlap, _rounded(stride))

    def _best(
        self,
        profile: QueryProfile,
        subjects: DeviceSubjects,
        places: NDArray[np.intp],
        size: Size,
        arithmetic: Arithmetic,
    ) -> Scores:
        """Best scores of the subjects at ``places``, or more than a type holds exactly where one is more."""
        partition = subjects.partition
        lengths = partition.lengths[places]
        starts = (partition.starts[places] - partition.starts[0]).astype(np.int64)
        windows = cut_in_windows(lengths, size)
        tile = plan_list(profile, self._device.facts.architecture, arithmetic, windows=True)
        overlap = size.overlap
        again = np.arange(len(windows))
        with contextlib.ExitStack() as held:
            on_device = self._launcher.upload_profile("profile", pack_profile([profile], tile, arithmetic), held)
            held.callback(self._device.synchronize)
            # What is not scored again keeps its scores, and its states at joints, from launch to launch.
            results = self._scratch.room("window results", len(windows) * 4)
            while True:
                differs, best = self._launch(
                    profile, on_device, subjects, windows, starts, again, results, tile=tile, arithmetic=arithmetic
                )
                of_subjects = np.maximum.reduceat(best, windows.first)
                exact = of_subjects <= arithmetic.largest_exact(profile.max_score)
                unproven = (differs != 0) & exact[windows.subject]
                if not unproven.any():
                    return of_subjects
                overlap *= GROWTH
                again = windows.begin_earlier(unproven, overlap, lengths)
                self.n_again += len(again)

    def _launch(
        self,
        profile: QueryProfile,
        on_device: DeviceProfile,
        subjects: DeviceSubjects,
        windows: Windows,
        starts: NDArray[np.int64],
        again: NDArray[np.intp],
        results: Buffer,
        *,
        tile: Tile,
        arithmetic: Arithmetic,
    ) -> tuple[Scores, Scores]:
        """Score the windows at ``again``, and compare all: where joints differ, and the best score of each window."""
        device, scratch = self._device, self._scratch
        n = len(windows)
        lengths = (windows.end - windows.begin).astype(np.uint32)
        entries = windows.entries
        columns: list[NDArray[np.generic]] = [
            (starts[windows.subject] + windows.begin).astype(np.uint64), lengths, entries, windows.exits,
            again.astype(np.uint32), np.array([len(again)], dtype=np.uint32),
        ]  # fmt: skip
        described = np.concatenate([column.view(np.uint8) for column in columns])
        table = scratch.room("windows", n * 24 + 4)
        offsets = np.cumsum([0, *(column.nbytes for column in columns[:-1])]).tolist()
        at_starts, at_lengths, at_entries, at_exits, at_places, at_count = (address(table, o) for o in offsets)
        # Whether joints differ, a counter, and the scores, which stay.
        zeros = scratch.room("window joints", (n + 1) * 4)
        words = tile.strips(profile.length) * tile.joint_words * WARP
        states = address(scratch.room("window states", n * 2 * words * 4))
        device.upload(table, described, Stream.COMPUTE)
        device.clear(zeros, (n + 1) * 4, Stream.COMPUTE)
        with device.timed(Stream.COMPUTE) as seconds:
            self._launcher.launch(
                profile, on_device,
                Listed(
                    address(subjects.residues), at_starts, at_lengths, at_places, at_count,
                    len(again), int(lengths[again].max()),
                ),
                tile=tile, arithmetic=arithmetic, scores=address(results), counter=address(zeros, n * 4),
                stream=Stream.COMPUTE, joints=[at_entries, at_exits, states],
            )  # fmt: skip
            if entries.any():
                compared: list[Argument] = [at_entries, states, unsigned(n), unsigned(words), address(zeros)]
                grid = max(1, min(-(-n * WARP // COMPARE_KERNEL.threads), device.facts.multiprocessors * 8))
                device.launch(COMPARE_KERNEL, grid, 0, compared, Stream.COMPUTE)
        self._timing.seconds += seconds[0]
        differs, best = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int32)
        device.download(differs, zeros, Stream.COMPUTE)
        device.download(best, results, Stream.COMPUTE)
        return differs, best


def _rounded(columns: int) -> int:
    return -(-columns // SUBJECT_ALIGNMENT) * SUBJECT_ALIGNMENT
