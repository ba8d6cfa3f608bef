"""Long subjects in windows that prove themselves: scored side by side, and compared where they meet.

Each window but a subject's first begins some columns before the one before it ends, with zeros where that one has what
came before. If, where the earlier window ends, both hold the same in every row, the later one is right from there on,
and the largest score of all windows is the subject's (``cuda/kernels/joints.cuh``). Alignments of unrelated sequences
are short, so this is nearly always so. Subjects of which a joint is not proven, since an alignment may reach across,
are scored again in longer windows, and at last whole.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch.database.format import SUBJECT_ALIGNMENT
from swsearch.database.partition import Partition
from swsearch.engine.cuda.device import Argument, Device, OutOfDeviceMemory, Stream
from swsearch.engine.cuda.kernels import COMPARE_KERNEL, WARP, Arithmetic
from swsearch.engine.cuda.launches import Listed, ListLauncher, Timing, address, unsigned
from swsearch.engine.cuda.plan import first_arithmetic, plan_list
from swsearch.engine.cuda.profile import pack_profile
from swsearch.engine.cuda.scratch import Scratch
from swsearch.engine.cuda.subjects import DeviceSubjects, SubjectStore, chunk_bytes, in_stored_order
from swsearch.hits.score_block import ScoreBlock
from swsearch.query.profile import QueryProfile
from swsearch.typing import Lengths, Offsets, Scores

OVERLAP: Final = 512
"""Columns by which windows overlap at first; ``benchmarks/benchmark_joints.py`` measures how many are needed."""
LEAST_STRIDE: Final = 1024
GROWTH: Final = 4
"""How much longer overlaps and strides are the second time."""
STATE_BYTES: Final = 256 << 20
"""Memory for what windows hold at their joints; strides grow where it would take more."""


@dataclass(frozen=True)
class Size:
    """Windows begin every ``stride`` columns less ``overlap``; both are multiples of 16, the overlap not the larger."""

    overlap: int
    stride: int


@dataclass(frozen=True, eq=False)
class Windows:
    """Windows of some subjects, subject by subject, in order of their columns.

    Attributes
    ----------
    starts : uint64 array, shape (n,)
        First byte of each in the residues.
    lengths : uint32 array, shape (n,)
    entries, exits : uint32 array, shape (n,)
        Columns before the joint with the window before, and before the joint with the next; 0 where there is none.
    first : int64 array, shape (n_subjects,)
        Place of each subject's first window.
    """

    starts: Offsets
    lengths: Lengths
    entries: Lengths
    exits: Lengths
    first: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.lengths)


def cut_in_windows(starts: Offsets, lengths: Lengths, size: Size) -> Windows:
    """Windows of the subjects that begin at ``starts``, each of at least one residue."""
    whole = lengths.astype(np.int64)
    n_windows = -(-whole // size.stride)
    ends = np.cumsum(n_windows)
    first = ends - n_windows
    number = np.arange(ends[-1]) - np.repeat(first, n_windows)
    begins = np.maximum(number * size.stride - size.overlap, 0)
    stops = np.minimum((number + 1) * size.stride, np.repeat(whole, n_windows))
    is_last = number == np.repeat(n_windows, n_windows) - 1
    return Windows(
        np.repeat(starts.astype(np.uint64), n_windows) + begins.astype(np.uint64),
        (stops - begins).astype(np.uint32),
        np.where(number > 0, size.overlap, 0).astype(np.uint32),
        np.where(is_last, 0, stops - begins).astype(np.uint32),
        first,
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
        Subjects that were scored again, so far, because a joint was not proven.
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
        narrowest = first_arithmetic(profile)
        left = np.zeros(len(partition), dtype=bool)
        sizes = self._sizes(profile, partition)
        waiting: list[tuple[Arithmetic, int, NDArray[np.intp]]] = [(narrowest, 0, np.arange(len(partition)))]
        while waiting:
            arithmetic, attempt, places = waiting.pop()
            found, proven = self._attempt(profile, subjects, chosen[places], sizes[attempt], arithmetic)
            scores[places] = found
            beyond = found > arithmetic.largest_exact(profile.max_score)
            if beyond.any():
                assert arithmetic.wider is not None
                left[places[beyond]] = True
                waiting.append((arithmetic.wider, attempt, places[beyond]))
            again = ~proven & ~beyond
            if again.any():
                self.n_again += int(again.sum())
                waiting.append((arithmetic, attempt + 1, places[again]))
        return ScoreBlock(partition.subject_index, scores, int(left.sum()))

    def _sizes(self, profile: QueryProfile, partition: Partition) -> list[Size | None]:
        """The windows' sizes, one after another until all is proven; None is the whole subject."""
        architecture = self._device.facts.architecture
        narrow = first_arithmetic(profile)
        tile = plan_list(profile, architecture, narrow, windows=True)
        at_a_time = self._launcher.at_a_time(profile, tile, narrow)
        # All at a time, the last window of each subject counted in, which may be a short one.
        stride = partition.n_residues // max(at_a_time - len(partition), at_a_time // 2, 1)
        wide = plan_list(profile, architecture, Arithmetic.WIDE, windows=True)
        bytes_a_window = 2 * wide.strips(profile.length) * wide.joint_words * WARP * 4
        stride = _rounded(max(stride, self._least_stride, partition.n_residues * bytes_a_window // STATE_BYTES))
        return [Size(self._overlap, stride), Size(GROWTH * self._overlap, GROWTH * stride), None]

    def _attempt(
        self,
        profile: QueryProfile,
        subjects: DeviceSubjects,
        places: NDArray[np.intp],
        size: Size | None,
        arithmetic: Arithmetic,
    ) -> tuple[Scores, NDArray[np.bool_]]:
        """Best scores of the subjects at ``places`` in windows of a size, and of which all joints are proven."""
        device, scratch = self._device, self._scratch
        partition = subjects.partition
        starts = partition.starts[places] - partition.starts[0]
        stride = _rounded(subjects.longest) if size is None else size.stride
        windows = cut_in_windows(starts, partition.lengths[places], size or Size(0, stride))
        tile = plan_list(profile, device.facts.architecture, arithmetic, windows=size is not None)
        n = len(windows)

        columns: list[NDArray[np.generic]] = [
            windows.starts, windows.lengths, windows.entries, windows.exits, np.arange(n, dtype=np.uint32),
        ]  # fmt: skip
        described = np.concatenate([*(column.view(np.uint8) for column in columns), _bytes_of(n)])
        table = scratch.room("windows", described.nbytes)
        offsets = np.cumsum([0, *(column.nbytes for column in columns)]).tolist()
        at_starts, at_lengths, at_entries, at_exits, at_places, at_count = (address(table, o) for o in offsets)
        results = scratch.room("window results", (2 * n + 1) * 4)
        at_differs, at_counter = address(results, n * 4), address(results, 2 * n * 4)
        joints: list[Argument] | None = None
        words = tile.strips(profile.length) * tile.joint_words * WARP
        if size is not None:
            states = address(scratch.room("window states", n * 2 * words * 4))
            joints = [at_entries, at_exits, states]
        with contextlib.ExitStack() as held:
            device.upload(table, described, Stream.COMPUTE)
            device.clear(results, (2 * n + 1) * 4, Stream.COMPUTE)
            on_device = self._launcher.upload_profile("profile", pack_profile([profile], tile, arithmetic), held)
            held.callback(device.synchronize)
            with device.timed(Stream.COMPUTE) as seconds:
                self._launcher.launch(
                    profile, on_device,
                    Listed(
                        address(subjects.residues), at_starts, at_lengths, at_places, at_count,
                        n, int(windows.lengths.max()),
                    ),
                    tile=tile, arithmetic=arithmetic, scores=address(results), counter=at_counter,
                    stream=Stream.COMPUTE, joints=joints,
                )  # fmt: skip
                if joints is not None:
                    compared: list[Argument] = [at_entries, states, unsigned(n), unsigned(words), at_differs]
                    grid = max(1, min(-(-n * WARP // COMPARE_KERNEL.threads), device.facts.multiprocessors * 8))
                    device.launch(COMPARE_KERNEL, grid, 0, compared, Stream.COMPUTE)
            self._timing.seconds += seconds[0]
            found = np.empty(2 * n, dtype=np.int32)
            device.download(found, results, Stream.COMPUTE)
        best = np.maximum.reduceat(found[:n], windows.first)
        differs = np.maximum.reduceat(found[n:], windows.first)
        return best, differs == 0


def _rounded(columns: int) -> int:
    return -(-columns // SUBJECT_ALIGNMENT) * SUBJECT_ALIGNMENT


def _bytes_of(count: int) -> NDArray[np.uint8]:
    return np.array([count], dtype=np.uint32).view(np.uint8)
