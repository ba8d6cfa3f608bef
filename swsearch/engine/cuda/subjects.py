"""The database on the device: kept for the run where it fits, else streamed chunk by chunk.

A chunk is a range of stored subjects with its residues as they lie in the file, starts relative to the first residue,
and lengths. :class:`SubjectStore` keeps uploaded partitions up to its limit of bytes, the least recently used go first.
A partition beyond the limit goes through two slots: while the kernels work on one chunk, a thread copies the next from
the mapped file to pinned memory and the copy stream uploads it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Generator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch.database.format import SUBJECT_ALIGNMENT
from swsearch.database.partition import Partition
from swsearch.engine.cuda.device import Buffer, Device, Stream
from swsearch.errors import EngineError

BYTES_PER_SUBJECT: Final = 12
"""A start of eight bytes and a length of four."""
SMALLEST_CHUNK: Final = 1 << 20


def _padded(length: int) -> int:
    return -(-length // SUBJECT_ALIGNMENT) * SUBJECT_ALIGNMENT


def residue_span(partition: Partition) -> tuple[int, int]:
    """First byte of a partition's residues, and the byte after the last, its padding included."""
    if len(partition) == 0:
        return 0, 0
    return int(partition.starts[0]), int(partition.starts[-1]) + _padded(int(partition.lengths[-1]))


def chunk_bytes(partition: Partition) -> int:
    """Device memory that a partition takes."""
    first, last = residue_span(partition)
    return last - first + len(partition) * BYTES_PER_SUBJECT


def chunks(partition: Partition, max_bytes: int) -> list[Partition]:
    """The partition in order, in pieces of at most ``max_bytes`` on the device, or of one subject that has more."""
    pieces = []
    first = 0
    while first < len(partition):
        origin = int(partition.starts[first])
        places = np.arange(first + 1, len(partition) + 1, dtype=np.int64)
        ends = partition.starts[first:].astype(np.int64) + partition.lengths[first:].astype(np.int64)
        ends += -ends % SUBJECT_ALIGNMENT
        sizes = ends - origin + (places - first) * BYTES_PER_SUBJECT
        stop = first + max(1, int(np.searchsorted(sizes, max_bytes, side="right")))
        pieces.append(partition[first:stop])
        first = stop
    return pieces


@dataclass(frozen=True, eq=False)
class DeviceSubjects:
    """A chunk on the device.

    Attributes
    ----------
    residues, starts, lengths : Buffer
        As the kernels read them.
    partition : Partition
        The same subjects on the host.
    """

    residues: Buffer
    starts: Buffer
    lengths: Buffer
    partition: Partition

    def __len__(self) -> int:
        return len(self.partition)

    @cached_property
    def n_residues(self) -> int:
        """Residues of all subjects, padding left out."""
        return self.partition.n_residues

    @property
    def residue_bytes(self) -> int:
        """Bytes of residues, padding included: the columns of a boundary."""
        first, last = residue_span(self.partition)
        return last - first

    @property
    def longest(self) -> int:
        """Length of the longest subject, 0 where there is none."""
        return int(self.partition.lengths[-1]) if len(self.partition) else 0

    def free(self) -> None:
        """Give the memory back."""
        for buffer in (self.residues, self.starts, self.lengths):
            buffer.free()


class _Slot:
    """Room for one chunk of a streamed partition, on the device and pinned on the host."""

    def __init__(self, device: Device, residue_bytes: int, n_subjects: int) -> None:
        self.residues = device.allocate(residue_bytes)
        self.starts = device.allocate(n_subjects * 8)
        self.lengths = device.allocate(n_subjects * 4)
        self.host_residues = device.pinned(max(residue_bytes, 1))
        self.host_starts = device.pinned(n_subjects * 8).view(np.uint64)
        self.host_lengths = device.pinned(n_subjects * 4).view(np.uint32)

    def fill(self, partition: Partition) -> None:
        """Copy a chunk to pinned memory."""
        first, last = residue_span(partition)
        np.copyto(self.host_residues[: last - first], partition.residues[first:last])
        np.subtract(partition.starts, np.uint64(first), out=self.host_starts[: len(partition)])
        np.copyto(self.host_lengths[: len(partition)], partition.lengths)

    def upload(self, device: Device, partition: Partition) -> DeviceSubjects:
        """Begin the copy to the device."""
        first, last = residue_span(partition)
        device.upload(self.residues, self.host_residues[: last - first], Stream.COPY)
        device.upload(self.starts, self.host_starts[: len(partition)], Stream.COPY)
        device.upload(self.lengths, self.host_lengths[: len(partition)], Stream.COPY)
        return DeviceSubjects(self.residues, self.starts, self.lengths, partition)

    def free(self) -> None:
        for buffer in (self.residues, self.starts, self.lengths):
            buffer.free()


class _Staged:
    """A chunk on its way: copied to its slot's pinned memory by the thread, then uploaded by the copy stream."""

    def __init__(self, device: Device, slot: _Slot, partition: Partition, copier: ThreadPoolExecutor) -> None:
        self._device = device
        self._slot = slot
        self._partition = partition
        self._filled: Future[None] = copier.submit(slot.fill, partition)
        self._subjects: DeviceSubjects | None = None

    def begin_if_ready(self) -> None:
        if self._subjects is None and self._filled.done():
            self.subjects()

    def subjects(self) -> DeviceSubjects:
        """The chunk, its upload begun."""
        if self._subjects is None:
            self._filled.result()
            self._subjects = self._slot.upload(self._device, self._partition)
        return self._subjects


_Key = tuple[int, int, int, int]


def _key(partition: Partition) -> _Key:
    """The same for partitions of the same memory; valid while their partition is held."""
    where = int(partition.residues.__array_interface__["data"][0])
    return (where, *residue_span(partition), len(partition))


class SubjectStore:
    """Partitions on one device.

    Parameters
    ----------
    device : Device
    limit_bytes : int
        Device memory that databases may take, kept and streamed.
    """

    def __init__(self, device: Device, limit_bytes: int) -> None:
        self._device = device
        self.limit_bytes = limit_bytes
        self._kept: OrderedDict[_Key, DeviceSubjects] = OrderedDict()
        self._next: _Staged | None = None

    @property
    def kept_bytes(self) -> int:
        """Device memory of the kept partitions."""
        return sum(chunk_bytes(subjects.partition) for subjects in self._kept.values())

    def pieces(self, partition: Partition) -> Generator[DeviceSubjects, None, None]:
        """The partition's subjects on the device, in order; each piece is valid until the next is asked for.

        Raises
        ------
        OutOfDeviceMemory
            Not even kept partitions leave room; with a smaller ``limit_bytes`` it may work.
        """
        if chunk_bytes(partition) <= self.limit_bytes:
            yield self._keep(partition)
        else:
            yield from self._stream(partition)

    def _keep(self, partition: Partition) -> DeviceSubjects:
        key = _key(partition)
        subjects = self._kept.get(key)
        if subjects is None:
            wanted = chunk_bytes(partition)
            while self._kept and self.kept_bytes + wanted > self.limit_bytes:
                self._kept.popitem(last=False)[1].free()
            subjects = self._load(partition)
            self._kept[key] = subjects
        self._kept.move_to_end(key)
        return subjects

    def _load(self, partition: Partition) -> DeviceSubjects:
        first, last = residue_span(partition)
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

    def _stream(self, partition: Partition) -> Generator[DeviceSubjects, None, None]:
        self.clear()
        parts = chunks(partition, max(self.limit_bytes // 2, SMALLEST_CHUNK))
        spans = [residue_span(part) for part in parts]
        room = max(last - first for first, last in spans)
        most = max(len(part) for part in parts)
        slots: list[_Slot] = []
        copier = ThreadPoolExecutor(1, thread_name_prefix="swsearch-stage")
        try:
            slots.extend(_Slot(self._device, room, most) for _ in range(min(2, len(parts))))
            staged = _Staged(self._device, slots[0], parts[0], copier)
            for number in range(len(parts)):
                subjects = staged.subjects()
                self._device.follow(Stream.COMPUTE, Stream.COPY)
                # The other slot is free, on the device and on the host: its scores were downloaded before this piece
                # was asked for, and its kernels had waited for its upload.
                self._next = None
                if number + 1 < len(parts):
                    staged = self._next = _Staged(self._device, slots[(number + 1) % 2], parts[number + 1], copier)
                yield subjects
        finally:
            self._next = None
            copier.shutdown(wait=True, cancel_futures=True)
            self._device.synchronize()
            for slot in slots:
                slot.free()

    def advance(self) -> None:
        """Begin the next chunk's upload if it is ready; call it between the launches of a piece."""
        if self._next is not None:
            self._next.begin_if_ready()

    def clear(self) -> None:
        """Free all kept partitions."""
        while self._kept:
            self._kept.popitem()[1].free()
