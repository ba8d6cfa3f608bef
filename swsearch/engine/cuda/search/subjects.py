"""The database on the device: it stays there between calls if it fits, else it is streamed piece by piece.

The input is a partition of the packed database, mapped from its file; the output is the same arrays in device memory:
residues, starts and lengths. Subjects have the same layout on the device as in the file, with starts relative to the
first residue.

Kernels need further memory for each residue of the subjects that one launch scores. So a partition is scored in pieces,
which are ranges of subjects. :class:`SubjectStore` keeps the pieces of the partitions that were used last, up to its
limit of bytes. A larger partition is streamed: while kernels work on one piece, threads copy the next from the mapped
file to pinned memory. With a few queries the kernels finish a piece so soon that its upload time matters; then there
are two slots on the device, and the copy stream uploads into one while kernels work on the other. For many queries
there is one slot of twice the size.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict, deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from swsearch.database.format import padded
from swsearch.database.partition import Partition
from swsearch.engine.cuda.runtime.device import Buffer, Device, Event, Stream
from swsearch.errors import EngineError
from swsearch.threads import Threads

BYTES_PER_SUBJECT: Final = 12
"""Bytes of a subject's start and length."""
SMALLEST_PIECE: Final = 1 << 20
ONE_SLOT_RESIDUES: Final = 3000
"""Query residues from which there is one slot. Its upload overlaps no kernel, but takes less than a twentieth of the
piece's time, and kernels are faster on one large piece than on two halves."""
STAGED_BYTES: Final = 1 << 25
"""Size of the two parts of pinned memory for the upload of an array: one is filled while the other is copied."""
LEAST_STAGED: Final = 1 << 28
"""An array of fewer bytes is uploaded by the driver, which is slower but needs no pinned memory of its own."""
COPIED_BYTES: Final = 1 << 22
"""Bytes that a thread copies at a time."""

Places = tuple[int, int, int]
"""Addresses of residues, and of the first byte (u64) and the length (u32) of each subject."""


def device_bytes(partition: Partition) -> int:
    """Device memory of a partition, in bytes."""
    first, last = partition.residue_span
    return last - first + len(partition) * BYTES_PER_SUBJECT


def pieces_of(partition: Partition, max_bytes: int) -> list[Partition]:
    """The partition in as few ranges as possible of at most ``max_bytes`` on the device, of similar sizes.

    A larger subject is a piece of its own.
    """
    if len(partition) == 0:
        return []
    begin, end = partition.residue_span

    def before(row: int) -> int:
        """Bytes of the subjects before a row."""
        start = int(partition.starts[row]) if row < len(partition) else end
        return start - begin + row * BYTES_PER_SUBJECT

    rows = range(len(partition) + 1)
    whole, longest = before(rows[-1]), padded(int(partition.lengths[-1])) + BYTES_PER_SUBJECT
    most = min(max_bytes, -(-whole // -(-whole // max_bytes)) + longest)
    found = []
    first = 0
    while first < len(partition):
        stop = max(bisect_right(rows, before(first) + most, first + 1, key=before) - 1, first + 1)
        found.append(partition[first:stop])
        first = stop
    return found


@dataclass(frozen=True, eq=False)
class DeviceSubjects:
    """A piece on the device, and the same subjects on the host.

    The memory of a ``streamed`` piece is that of a later one, too. ``tables`` are device buffers that describe these
    subjects, by name; they exist as long as the subjects.
    """

    residues: Buffer
    starts: Buffer
    lengths: Buffer
    partition: Partition
    streamed: bool = False
    tables: dict[str, Buffer] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.partition)

    @property
    def places(self) -> Places:
        """Where the subjects lie."""
        return self.residues.address, self.starts.address, self.lengths.address

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
        for buffer in (self.residues, self.starts, self.lengths, *self.tables.values()):
            buffer.free()
        self.tables.clear()


def _arrays(piece: Partition) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """The residues, starts and lengths of a piece as the device has them."""
    first, last = piece.residue_span
    return piece.residues[first:last], piece.starts - np.uint64(first), np.ascontiguousarray(piece.lengths)


def _copy(target: NDArray[Any], source: NDArray[Any], threads: Threads) -> None:
    """Copy bytes on several threads; those of a mapped file take one thread long, which waits for each page."""
    parts = [slice(first, first + COPIED_BYTES) for first in range(0, len(source), COPIED_BYTES)]
    for _ in threads.in_order(lambda part: np.copyto(target[part], source[part]), parts):
        pass


@contextmanager
def _uploads(device: Device, n_bytes: int) -> Iterator[Callable[[Buffer, NDArray[Any]], None]]:
    """A function that begins to copy contiguous arrays to the device; at the end of the block, all copies have ended.

    A large array passes through pinned memory in parts: while one part is copied to the device, threads fill the other.
    ``n_bytes`` is the size of the largest one.
    """
    is_staged = n_bytes >= LEAST_STAGED
    parts: deque[tuple[NDArray[np.uint8], Event | None]] = deque()
    parts.extend((device.pinned(STAGED_BYTES), None) for _ in range(2 * is_staged))

    def upload(buffer: Buffer, array: NDArray[Any]) -> None:
        if not is_staged or array.nbytes < LEAST_STAGED:
            device.upload(buffer, array, Stream.COMPUTE)
            return
        source = array.view(np.uint8)
        for first in range(0, len(source), STAGED_BYTES):
            part, copied = parts.popleft()
            if copied is not None:
                copied.wait()
            filled = part[: len(source) - first]
            _copy(filled, source[first : first + STAGED_BYTES], threads)
            device.upload(buffer, filled, Stream.COMPUTE, first)
            parts.append((part, device.event(Stream.COMPUTE)))

    try:
        with Threads(None if is_staged else 1) as threads:
            yield upload
    finally:
        try:
            device.synchronize()
        finally:
            for part, _event in parts:
                device.unpin(part)


class _Slot:
    """Memory for one piece of a streamed partition, on the device and pinned on the host: residues, starts, lengths.

    A piece is in transfer: threads copy it to the pinned memory, then the copy stream uploads it.
    """

    def __init__(self, device: Device, residue_bytes: int, n_subjects: int) -> None:
        self._device = device
        self.capacity = (residue_bytes, n_subjects)
        n_bytes = (max(residue_bytes, 1), n_subjects * 8, n_subjects * 4)
        self._buffers = [device.allocate(n) for n in n_bytes]
        self._pinned = [device.pinned(n) for n in n_bytes]
        self._piece: Partition
        self._filled: Future[list[int]]
        self._subjects: DeviceSubjects | None = None

    def begin(self, piece: Partition, copier: ThreadPoolExecutor, threads: Threads) -> _Slot:
        """Begin to transfer a piece; returns the slot."""
        self._piece, self._subjects = piece, None
        self._filled = copier.submit(self._fill, piece, threads)
        return self

    def _fill(self, piece: Partition, threads: Threads) -> list[int]:
        """Copy the arrays of a piece, and return their sizes in bytes."""
        arrays = _arrays(piece)
        for pinned, array in zip(self._pinned, arrays, strict=True):
            _copy(pinned[: array.nbytes], array.view(np.uint8), threads)
        return [array.nbytes for array in arrays]

    @property
    def is_filled(self) -> bool:
        """Whether the pinned memory has the piece."""
        return self._filled.done()

    def subjects(self) -> DeviceSubjects:
        """The piece on the device, after its upload has begun."""
        if self._subjects is None:
            for buffer, pinned, n in zip(self._buffers, self._pinned, self._filled.result(), strict=True):
                self._device.upload(buffer, pinned[:n], Stream.COPY)
            residues, starts, lengths = self._buffers
            self._subjects = DeviceSubjects(residues, starts, lengths, self._piece, streamed=True)
        return self._subjects

    def free(self) -> None:
        for buffer in self._buffers:
            buffer.free()
        for array in self._pinned:
            self._device.unpin(array)


def _begins(whole: Partition, partition: Partition) -> bool:
    """Whether a partition consists of the first subjects of another, in its memory and under the same indices.

    A share of a device has the memory of its database, but other indices. A database may compute the same ones again.
    """
    where, other = (p.lengths.__array_interface__ for p in (partition, whole))
    plain = partition.lengths.flags.c_contiguous and whole.lengths.flags.c_contiguous
    if not plain or where["data"] != other["data"] or len(partition) > len(whole):
        return False
    indices, same = partition.subject_index, whole.subject_index[: len(partition)]
    return indices.ctypes.data == same.ctypes.data or np.array_equal(indices, same)


def _first(pieces: list[DeviceSubjects], n_subjects: int) -> list[DeviceSubjects]:
    """The first subjects of the pieces of a partition."""
    found = []
    for piece in pieces:
        if n_subjects > 0:
            found.append(piece.prefix(min(n_subjects, len(piece))))
        n_subjects -= len(piece)
    return found


class SubjectStore:
    """Partitions on one device, in pieces of up to ``piece_bytes`` of its memory.

    They are kept in up to ``limit_bytes`` of it, or streamed. ``piece_bytes`` is the limit by default. ``freed`` is
    called when the device no longer has the subjects of a partition.
    """

    def __init__(
        self,
        device: Device,
        limit_bytes: int,
        piece_bytes: int | None = None,
        freed: Callable[[Partition], None] = lambda _: None,
    ) -> None:
        self._device, self._freed = device, freed
        self.limit_bytes = limit_bytes
        self.piece_bytes = limit_bytes if piece_bytes is None else min(piece_bytes, limit_bytes)
        self._kept: OrderedDict[Partition, list[DeviceSubjects]] = OrderedDict()
        self._slots: list[_Slot] = []
        self._stage: Callable[[], _Slot] | None = None
        """Begins the transfer of the next piece."""
        self._next: _Slot | None = None
        """The next piece, once its transfer has begun."""

    @property
    def kept_bytes(self) -> int:
        """Device memory of the partitions that are kept."""
        return sum(device_bytes(partition) for partition in self._kept)

    def keeps(self, partition: Partition) -> bool:
        """Whether a partition is small enough to be kept, so that it is uploaded only once."""
        return device_bytes(partition) <= self.limit_bytes

    def preload(self, partition: Partition) -> None:
        """Upload a partition that fits, before it is searched."""
        if self.keeps(partition):
            self._keep(partition)

    def pieces(self, partition: Partition, query_residues: int = 0) -> Generator[DeviceSubjects, None, None]:
        """The partition's subjects on the device, each once and in their order.

        ``query_residues`` are those of all queries that are scored against each piece. A streamed piece is valid until
        the next one is requested. Raises :class:`OutOfDeviceMemory`; smaller limits may help.
        """
        if self.keeps(partition):
            yield from self._keep(partition)
        else:
            yield from self._stream(partition, query_residues)

    def _keep(self, partition: Partition) -> list[DeviceSubjects]:
        serving = [whole for whole in self._kept if whole is partition or _begins(whole, partition)]
        if serving:
            longest = max(serving, key=len)  # the others are no longer used, and so are freed first
            self._kept.move_to_end(longest)
            return _first(self._kept[longest], len(partition))
        self._free_slots()
        wanted = device_bytes(partition)
        while self._kept and self.kept_bytes + wanted > self.limit_bytes:
            self._free_oldest()
        pieces = self._load(partition)
        self._kept[partition] = pieces
        return pieces

    def _load(self, partition: Partition) -> list[DeviceSubjects]:
        buffers: list[Buffer] = []
        loaded = []
        pieces = pieces_of(partition, max(self.piece_bytes, SMALLEST_PIECE))
        largest = max((last - first for first, last in (piece.residue_span for piece in pieces)), default=0)
        try:
            with _uploads(self._device, largest) as upload:
                for piece in pieces:
                    for array in _arrays(piece):
                        buffers.append(self._device.allocate(array.nbytes))
                        upload(buffers[-1], array)
                    residues, starts, lengths = buffers[-3:]
                    loaded.append(DeviceSubjects(residues, starts, lengths, piece))
        except EngineError:
            for buffer in buffers:
                buffer.free()
            raise
        return loaded

    def n_pieces(self, partition: Partition, query_residues: int) -> int:
        """Number of pieces in which a partition is streamed; 1 if it is kept."""
        return 1 if self.keeps(partition) else len(self._streamed(partition, query_residues)[0])

    def _streamed(self, partition: Partition, query_residues: int) -> tuple[list[Partition], int]:
        """The pieces of a streamed partition, and the number of slots."""
        n_slots = 1 if query_residues >= ONE_SLOT_RESIDUES else 2
        most = min(self.piece_bytes, self.limit_bytes // n_slots)
        return pieces_of(partition, max(most, SMALLEST_PIECE)), n_slots

    def _stream(self, partition: Partition, query_residues: int) -> Generator[DeviceSubjects, None, None]:
        while self._kept:
            self._free_oldest()
        pieces, n_slots = self._streamed(partition, query_residues)
        slots = self._slots_for(pieces, n_slots)
        with Threads() as threads:
            copier = ThreadPoolExecutor(1, thread_name_prefix="swsearch-stage")
            try:
                staged = slots[0].begin(pieces[0], copier, threads)
                for number in range(len(pieces)):
                    # The slot is free: its last piece was scored before this one was requested.
                    subjects = staged.subjects()
                    self._device.follow(Stream.COMPUTE, Stream.COPY)
                    self._next = self._stage = None
                    if number + 1 < len(pieces):
                        following = slots[(number + 1) % n_slots]
                        self._stage = partial(following.begin, pieces[number + 1], copier, threads)
                        if n_slots > 1:  # a single slot's pinned memory is in use until a kernel waited for its upload
                            self._next = self._stage()
                    yield subjects
                    if self._stage is not None:
                        staged = self._next or self._stage()
            finally:
                self._next = self._stage = None
                copier.shutdown(wait=True, cancel_futures=True)
                self._device.synchronize()
                self._freed(partition)

    def _slots_for(self, pieces: list[Partition], n_slots: int) -> list[_Slot]:
        """Slots large enough for every piece; those of the previous call if they have the right size."""
        spans = [piece.residue_span for piece in pieces]
        capacity = max(last - first for first, last in spans), max(map(len, pieces))
        if [slot.capacity for slot in self._slots] != [capacity] * n_slots:
            self._free_slots()
            for _ in range(n_slots):
                self._slots.append(_Slot(self._device, *capacity))
        return self._slots

    def advance(self) -> None:
        """Continue the transfer of the next piece; call this when a kernel on the current one has ended."""
        if self._next is None:
            self._next = None if self._stage is None else self._stage()
        elif len(self._slots) > 1 and self._next.is_filled:
            self._next.subjects()

    def halve_limit(self) -> bool:
        """Free all memory and halve both limits; called after the device ran out of memory.

        Returns False if a piece is already a megabyte.
        """
        self.clear()
        if self.piece_bytes <= SMALLEST_PIECE:
            return False
        self.piece_bytes = max(self.piece_bytes // 2, SMALLEST_PIECE)
        self.limit_bytes = max(self.limit_bytes // 2, SMALLEST_PIECE)
        return True

    def clear(self) -> None:
        """Free all partitions that are kept, and the slots."""
        while self._kept:
            self._free_oldest()
        self._free_slots()

    def _free_oldest(self) -> None:
        partition, pieces = self._kept.popitem(last=False)
        for piece in pieces:
            piece.free()
        self._freed(partition)

    def _free_slots(self) -> None:
        while self._slots:
            self._slots.pop().free()
