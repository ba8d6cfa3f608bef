"""The database on the device: kept for the run where it fits, else streamed chunk by chunk.

On the device subjects lie as in the file, with starts relative to the first residue. :class:`SubjectStore` keeps
uploaded partitions up to its limit of bytes, the least recently used go first. A partition beyond the limit goes
through two slots: while the kernels work on one chunk, a thread copies the next from the mapped file to pinned memory
and the copy stream uploads it. A chunk is made of bands, ranges of stored subjects from all over the partition: so each
has short subjects to end a launch with, and enough of every length to fill the device.
"""

from __future__ import annotations

import itertools
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
BANDS: Final = 16
"""Bands of a chunk."""


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


Chunk = list[slice]
"""Bands: ranges of stored places, growing."""


def chunks(partition: Partition, max_bytes: int) -> list[Chunk]:
    """The partition in chunks of at most ``max_bytes`` on the device, or of one subject that has more.

    Each subject is in one chunk. Where subjects are short beside a chunk, its bands lie evenly over the partition;
    elsewhere each chunk is one range.
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
    """Where each subject begins and ends if the partition lies on the device as it is stored, tables counted in."""
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


@dataclass(frozen=True, eq=False)
class DeviceSubjects:
    """A chunk on the device.

    Attributes
    ----------
    residues, starts, lengths : Buffer
        As the kernels read them.
    partition : Partition
        The same subjects on the host.
    streamed : bool
        A streamed piece numbers its subjects (``subject_index``) by their place in the whole partition.
    """

    residues: Buffer
    starts: Buffer
    lengths: Buffer
    partition: Partition
    streamed: bool = False

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

    def fill(self, partition: Partition, chunk: Chunk) -> Partition:
        """Copy a chunk to pinned memory; what lies there, as a partition that is valid till the next."""
        n_bytes = n_subjects = 0
        for place in chunk:
            band = partition[place]
            first, last = residue_span(band)
            np.copyto(self.host_residues[n_bytes : n_bytes + last - first], band.residues[first:last])
            into = slice(n_subjects, n_subjects + len(band))
            np.subtract(band.starts, np.uint64(first), out=self.host_starts[into])
            self.host_starts[into] += np.uint64(n_bytes)
            np.copyto(self.host_lengths[into], band.lengths)
            n_bytes += last - first
            n_subjects += len(band)
        return Partition(
            self.host_residues[:n_bytes],
            self.host_starts[:n_subjects],
            self.host_lengths[:n_subjects],
            np.concatenate([np.arange(band.start, band.stop, dtype=np.uint32) for band in chunk]),
        )

    def upload(self, device: Device, partition: Partition) -> DeviceSubjects:
        """Begin the copy to the device of what was filled in."""
        device.upload(self.residues, partition.residues, Stream.COPY)
        device.upload(self.starts, partition.starts, Stream.COPY)
        device.upload(self.lengths, partition.lengths, Stream.COPY)
        return DeviceSubjects(self.residues, self.starts, self.lengths, partition, streamed=True)

    def free(self) -> None:
        for buffer in (self.residues, self.starts, self.lengths):
            buffer.free()


class _Staged:
    """A chunk on its way: copied to its slot's pinned memory by the thread, then uploaded by the copy stream."""

    def __init__(
        self, device: Device, slot: _Slot, partition: Partition, chunk: Chunk, copier: ThreadPoolExecutor
    ) -> None:
        self._device = device
        self._slot = slot
        self._filled: Future[Partition] = copier.submit(slot.fill, partition, chunk)
        self._subjects: DeviceSubjects | None = None

    def begin_if_ready(self) -> None:
        if self._subjects is None and self._filled.done():
            self.subjects()

    def subjects(self) -> DeviceSubjects:
        """The chunk, its upload begun."""
        if self._subjects is None:
            self._subjects = self._slot.upload(self._device, self._filled.result())
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
        """The partition's subjects on the device, each once; a piece is valid until the next is asked for.

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

    def n_pieces(self, partition: Partition) -> int:
        """Pieces that :meth:`pieces` gives."""
        if chunk_bytes(partition) <= self.limit_bytes:
            return 1
        return len(self._chunks(partition))

    def _chunks(self, partition: Partition) -> list[Chunk]:
        return chunks(partition, max(self.limit_bytes // 2, SMALLEST_CHUNK))

    def _stream(self, partition: Partition) -> Generator[DeviceSubjects, None, None]:
        self.clear()
        parts = self._chunks(partition)
        room = most = 1
        for chunk in parts:
            spans = [residue_span(partition[band]) for band in chunk]
            room = max(room, sum(last - first for first, last in spans))
            most = max(most, sum(band.stop - band.start for band in chunk))
        slots: list[_Slot] = []
        copier = ThreadPoolExecutor(1, thread_name_prefix="swsearch-stage")
        try:
            slots.extend(_Slot(self._device, room, most) for _ in range(min(2, len(parts))))
            staged = _Staged(self._device, slots[0], partition, parts[0], copier)
            for number in range(len(parts)):
                subjects = staged.subjects()
                self._device.follow(Stream.COMPUTE, Stream.COPY)
                # The other slot is free, on the device and on the host: its scores were downloaded before this piece
                # was asked for, and its kernels had waited for its upload.
                self._next = None
                if number + 1 < len(parts):
                    staged = self._next = _Staged(
                        self._device, slots[(number + 1) % 2], partition, parts[number + 1], copier
                    )
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
