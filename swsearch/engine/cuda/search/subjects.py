"""The database on the device: it is cached between calls if it fits, else streamed chunk by chunk.

The input is a partition of the packed database, mapped from its file; the output is the same arrays in device memory:
residues, starts and lengths. Subjects have the same layout on the device as in the file, with starts relative to the
first residue.

:class:`SubjectStore` caches uploaded partitions up to its limit of bytes and frees the least recently used one first. A
partition beyond the limit is streamed in chunks: while kernels work on one, a thread copies the next from the mapped
file to pinned memory. With a few queries the kernels finish a chunk so soon that its upload time matters; then there
are two slots on the device, and the copy stream uploads into one while kernels work on the other. For many queries
there is one slot of twice the size.

A chunk consists of bands, which are ranges of stored subjects, spread over the partition. Therefore each chunk has
short subjects with which a launch ends, and enough subjects of every length to fill the device.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Callable, Generator, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from swsearch.database.format import SUBJECT_ALIGNMENT
from swsearch.database.partition import Partition
from swsearch.engine.cuda.runtime.device import Buffer, Device, Stream
from swsearch.errors import EngineError
from swsearch.hits.score_block import ScoreBlock

BYTES_PER_SUBJECT: Final = 12
"""Bytes of a subject's start and length."""
SMALLEST_CHUNK: Final = 1 << 20
BANDS: Final = 4
"""Number of bands of a chunk. It is small, so that most chunks have none of the longest subjects, which end last."""
ONE_SLOT_RESIDUES: Final = 3000
"""Query residues from which there is one slot. Its upload overlaps no kernel, but takes less than a twentieth of the
chunk's time, and kernels are faster on one large chunk than on two halves."""


def _padded(length: int) -> int:
    return -(-length // SUBJECT_ALIGNMENT) * SUBJECT_ALIGNMENT


def chunk_bytes(partition: Partition) -> int:
    """Device memory of a partition, in bytes."""
    first, last = partition.residue_span
    return last - first + len(partition) * BYTES_PER_SUBJECT


Chunk = list[slice]
"""Bands: ranges of stored indices, ascending."""


def chunks(partition: Partition, max_bytes: int) -> list[Chunk]:
    """The partition in chunks of at most ``max_bytes`` on the device; a larger subject is a chunk of its own.

    Each subject is in exactly one chunk. If subjects are short in comparison with a chunk, its bands are spread evenly
    over the partition; otherwise each chunk is one range.
    """
    if len(partition) == 0:
        return []
    begins, ends = _extents(partition)
    if (_padded(int(partition.lengths[-1])) + BYTES_PER_SUBJECT) * BANDS * 4 > max_bytes:
        return _ranges(begins, ends, max_bytes)
    n_chunks = -(-int(ends[-1]) // max_bytes)
    while True:
        n_bands = n_chunks * BANDS
        cuts = np.searchsorted(ends, ends[-1] * np.arange(1, n_bands) / n_bands)
        bounds = [0, *cuts.tolist(), len(partition)]
        bands = [slice(start, stop) for start, stop in itertools.pairwise(bounds)]
        found = [[band for band in bands[first::n_chunks] if band.start < band.stop] for first in range(n_chunks)]
        if max(sum(int(ends[band.stop - 1] - begins[band.start]) for band in chunk) for chunk in found) <= max_bytes:
            return [chunk for chunk in found if chunk]
        n_chunks += -(-n_chunks // 8)


def _extents(partition: Partition) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Cumulative device bytes before and after each subject in stored order, table entries included."""
    tables = np.arange(len(partition), dtype=np.int64) * BYTES_PER_SUBJECT
    begins = (partition.starts - partition.starts[0]).astype(np.int64) + tables
    lengths = partition.lengths.astype(np.int64)
    return begins, begins + lengths + -lengths % SUBJECT_ALIGNMENT + BYTES_PER_SUBJECT


def _ranges(begins: NDArray[np.int64], ends: NDArray[np.int64], max_bytes: int) -> list[Chunk]:
    found: list[Chunk] = []
    first = 0
    while first < len(ends):
        stop = max(first + 1, int(np.searchsorted(ends, begins[first] + max_bytes, side="right")))
        found.append([slice(first, stop)])
        first = stop
    return found


class SubjectTable(Protocol):
    """Data about subjects in device memory."""

    @property
    def buffer(self) -> Buffer:
        """The memory."""
        ...


@dataclass(frozen=True, eq=False)
class DeviceSubjects:
    """A chunk on the device, and the same subjects on the host.

    ``subject_index`` of a streamed chunk is the position in the complete partition. ``tables`` are device buffers that
    describe these subjects, with what the host knows of them; they exist as long as the subjects.
    """

    residues: Buffer
    starts: Buffer
    lengths: Buffer
    partition: Partition
    streamed: bool = False
    tables: dict[Hashable, SubjectTable] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.partition)

    @cached_property
    def n_residues(self) -> int:
        """Residues of all subjects, padding excluded."""
        return self.partition.n_residues

    @property
    def residue_bytes(self) -> int:
        """Bytes of residues, padding included; a boundary has as many columns."""
        first, last = self.partition.residue_span
        return last - first

    @property
    def longest(self) -> int:
        """Length of the longest subject; 0 if there is none."""
        return int(self.partition.lengths[-1]) if len(self.partition) else 0

    def prefix(self, n_subjects: int) -> DeviceSubjects:
        """The first subjects, in the same memory."""
        if n_subjects == len(self):
            return self
        return DeviceSubjects(self.residues, self.starts, self.lengths, self.partition[:n_subjects], self.streamed)

    def free(self) -> None:
        """Free the memory."""
        for buffer in (self.residues, self.starts, self.lengths, *(table.buffer for table in self.tables.values())):
            buffer.free()
        self.tables.clear()


class _Slot:
    """Memory for one chunk of a streamed partition, on the device and pinned on the host."""

    def __init__(self, device: Device, residue_bytes: int, n_subjects: int) -> None:
        self._device = device
        self.capacity = (residue_bytes, n_subjects)
        self.residues = device.allocate(residue_bytes)
        self.starts = device.allocate(n_subjects * 8)
        self.lengths = device.allocate(n_subjects * 4)
        self._pinned = [device.pinned(n_bytes) for n_bytes in (max(residue_bytes, 1), n_subjects * 8, n_subjects * 4)]
        self.host_residues = self._pinned[0]
        self.host_starts = self._pinned[1].view(np.uint64)
        self.host_lengths = self._pinned[2].view(np.uint32)

    def fill(self, partition: Partition, chunk: Chunk) -> Partition:
        """Copy a chunk to pinned memory; the returned partition is valid until the next call."""
        n_bytes = 0
        starts = []
        for stored in chunk:
            band = partition[stored]
            first, last = band.residue_span
            np.copyto(self.host_residues[n_bytes : n_bytes + last - first], band.residues[first:last])
            starts.append(band.starts - np.uint64(first) + np.uint64(n_bytes))
            n_bytes += last - first
        return Partition(
            self.host_residues[:n_bytes],
            np.concatenate(starts),
            np.concatenate([partition.lengths[band] for band in chunk]),
            np.concatenate([np.arange(band.start, band.stop, dtype=np.uint32) for band in chunk]),
        )

    def upload(self, partition: Partition) -> DeviceSubjects:
        """Begin to copy the filled chunk to the device."""
        host_starts, host_lengths = self.host_starts[: len(partition)], self.host_lengths[: len(partition)]
        np.copyto(host_starts, partition.starts)
        np.copyto(host_lengths, partition.lengths)
        self._device.upload(self.residues, partition.residues, Stream.COPY)
        self._device.upload(self.starts, host_starts, Stream.COPY)
        self._device.upload(self.lengths, host_lengths, Stream.COPY)
        return DeviceSubjects(self.residues, self.starts, self.lengths, partition, streamed=True)

    def free(self) -> None:
        for buffer in (self.residues, self.starts, self.lengths):
            buffer.free()
        for array in self._pinned:
            self._device.unpin(array)


class _Staged:
    """A chunk in transfer: a thread copies it to its slot's pinned memory, then the copy stream uploads it."""

    def __init__(self, slot: _Slot, partition: Partition, chunk: Chunk, copier: ThreadPoolExecutor) -> None:
        self._slot = slot
        self._filled: Future[Partition] = copier.submit(slot.fill, partition, chunk)
        self._subjects: DeviceSubjects | None = None

    def begin_if_ready(self) -> None:
        if self._subjects is None and self._filled.done():
            self.subjects()

    def subjects(self) -> DeviceSubjects:
        """The chunk on the device, after its upload has begun."""
        if self._subjects is None:
            self._subjects = self._slot.upload(self._filled.result())
        return self._subjects


_Key = tuple[int, int, int, int]


def _key(partition: Partition) -> _Key:
    """Equal for partitions of the same memory; valid while the partition is alive."""
    where = int(partition.residues.__array_interface__["data"][0])
    return (where, *partition.residue_span, len(partition))


def _begins(whole: Partition, partition: Partition) -> bool:
    """Whether a partition consists of the first subjects of another and shares its memory."""
    where, other = (p.lengths.__array_interface__ for p in (partition, whole))
    plain = partition.lengths.flags.c_contiguous and whole.lengths.flags.c_contiguous
    return plain and where["data"] == other["data"] and len(partition) <= len(whole)


class SubjectStore:
    """Partitions on one device, cached or streamed in up to ``limit_bytes`` of device memory."""

    def __init__(self, device: Device, limit_bytes: int) -> None:
        self._device = device
        self.limit_bytes = limit_bytes
        self._kept: OrderedDict[_Key, DeviceSubjects] = OrderedDict()
        self._slots: list[_Slot] = []
        self._stage: Callable[[], _Staged] | None = None
        """Begins the transfer of the next chunk."""
        self._next: _Staged | None = None
        """The next chunk, once its transfer has begun."""

    @property
    def kept_bytes(self) -> int:
        """Device memory of the cached partitions."""
        return sum(chunk_bytes(subjects.partition) for subjects in self._kept.values())

    def preload(self, partition: Partition) -> None:
        """Upload a partition that fits, before it is searched."""
        if chunk_bytes(partition) <= self.limit_bytes:
            self._keep(partition)

    def pieces(self, partition: Partition, query_residues: int = 0) -> Generator[DeviceSubjects, None, None]:
        """The partition's subjects on the device, each once; a piece is valid until the next one is requested.

        ``query_residues`` are those of all queries that are scored against each piece. Raises
        :class:`OutOfDeviceMemory`; a smaller ``limit_bytes`` may help.
        """
        if chunk_bytes(partition) <= self.limit_bytes:
            yield self._keep(partition)
        else:
            yield from self._stream(partition, query_residues)

    def _keep(self, partition: Partition) -> DeviceSubjects:
        key = _key(partition)
        for kept_key, kept in self._kept.items():
            if kept_key != key and _begins(kept.partition, partition):
                self._kept.move_to_end(kept_key)
                return DeviceSubjects(kept.residues, kept.starts, kept.lengths, partition)
        subjects = self._kept.get(key)
        if subjects is None:
            self._free_slots()
            wanted = chunk_bytes(partition)
            while self._kept and self.kept_bytes + wanted > self.limit_bytes:
                self._kept.popitem(last=False)[1].free()
            subjects = self._load(partition)
            self._kept[key] = subjects
        self._kept.move_to_end(key)
        return subjects

    def _load(self, partition: Partition) -> DeviceSubjects:
        first, last = partition.residue_span
        starts = partition.starts - np.uint64(first)
        buffers: list[Buffer] = []
        arrays: tuple[NDArray[np.generic], ...] = (
            np.ascontiguousarray(partition.residues[first:last]),
            np.ascontiguousarray(starts.astype(np.uint64, copy=False)),
            np.ascontiguousarray(partition.lengths),
        )
        try:
            for array in arrays:
                buffers.append(self._device.allocate(array.nbytes))
                self._device.upload(buffers[-1], array, Stream.COMPUTE)
            self._device.synchronize()
        except EngineError:
            for buffer in buffers:
                buffer.free()
            raise
        return DeviceSubjects(buffers[0], buffers[1], buffers[2], partition)

    def n_pieces(self, partition: Partition, query_residues: int) -> int:
        """Number of pieces that :meth:`pieces` yields."""
        if chunk_bytes(partition) <= self.limit_bytes:
            return 1
        return len(self._chunks(partition, query_residues)[0])

    def _chunks(self, partition: Partition, query_residues: int) -> tuple[list[Chunk], int]:
        """The chunks of a streamed partition, and the number of slots."""
        n_slots = 1 if query_residues >= ONE_SLOT_RESIDUES else 2
        return chunks(partition, max(self.limit_bytes // n_slots, SMALLEST_CHUNK)), n_slots

    def _stream(self, partition: Partition, query_residues: int) -> Generator[DeviceSubjects, None, None]:
        while self._kept:
            self._kept.popitem()[1].free()
        parts, n_slots = self._chunks(partition, query_residues)
        slots = self._slots_for(partition, parts, n_slots)
        copier = ThreadPoolExecutor(1, thread_name_prefix="swsearch-stage")
        try:
            staged = _Staged(slots[0], partition, parts[0], copier)
            for number in range(len(parts)):
                # The slot is free: its last chunk was scored before this one was requested.
                subjects = staged.subjects()
                self._device.follow(Stream.COMPUTE, Stream.COPY)
                self._next = self._stage = None
                if number + 1 < len(parts):
                    self._stage = partial(_Staged, slots[(number + 1) % n_slots], partition, parts[number + 1], copier)
                    if n_slots > 1:  # a single slot's pinned memory is in use until a kernel has waited for its upload
                        self._next = self._stage()
                yield subjects
                if self._stage is not None:
                    staged = self._next or self._stage()
        finally:
            self._next = self._stage = None
            copier.shutdown(wait=True, cancel_futures=True)
            self._device.synchronize()

    def _slots_for(self, partition: Partition, parts: list[Chunk], n_slots: int) -> list[_Slot]:
        """Slots large enough for every chunk; those of the previous call if they have the right size."""
        residue_bytes = n_subjects = 1
        for chunk in parts:
            spans = [partition[band].residue_span for band in chunk]
            residue_bytes = max(residue_bytes, sum(last - first for first, last in spans))
            n_subjects = max(n_subjects, sum(band.stop - band.start for band in chunk))
        if [slot.capacity for slot in self._slots] != [(residue_bytes, n_subjects)] * n_slots:
            self._free_slots()
            for _ in range(n_slots):
                self._slots.append(_Slot(self._device, residue_bytes, n_subjects))
        return self._slots

    def advance(self) -> None:
        """Continue the transfer of the next chunk; call this when a kernel on the current one has ended."""
        if self._next is None:
            self._next = None if self._stage is None else self._stage()
        elif len(self._slots) > 1:
            self._next.begin_if_ready()

    def halve_limit(self) -> bool:
        """Free all memory and halve the limit; called after the device ran out of memory.

        Returns False if the limit is already a megabyte.
        """
        self.clear()
        if self.limit_bytes <= SMALLEST_CHUNK:
            return False
        self.limit_bytes = max(self.limit_bytes // 2, SMALLEST_CHUNK)
        return True

    def clear(self) -> None:
        """Free all cached partitions and the slots."""
        while self._kept:
            self._kept.popitem()[1].free()
        self._free_slots()

    def _free_slots(self) -> None:
        while self._slots:
            self._slots.pop().free()


def in_stored_order(block: ScoreBlock, partition: Partition) -> ScoreBlock:
    """A block in stored order, with its positions in the partition replaced by the subjects' indices."""
    within = {int(partition.subject_index[position]): columns for position, columns in block.within.items()}
    if len(block) == len(partition):
        scores = np.empty_like(block.score)
        scores[block.subject_index] = block.score
        return replace(block, subject_index=partition.subject_index, score=scores, within=within)
    order = np.argsort(block.subject_index)
    subject_index = partition.subject_index[block.subject_index[order]]
    return replace(block, subject_index=subject_index, score=block.score[order], within=within)
