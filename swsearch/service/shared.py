"""Memory that the web processes of a server share: token buckets and slots, so that a limit is one for all of them.

The memory is a file without a name, whose descriptor the processes inherit. They take turns by locks on its bytes
(``fcntl``), which the operating system releases when a process ends, for any reason. A process that was killed so
leaves at worst one bucket with an old level.
"""

from __future__ import annotations

import fcntl
import hashlib
import mmap
import os
import secrets
import struct
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from swsearch.closeable import Closeable
from swsearch.service.buckets import Bucket, Buckets
from swsearch.service.settings import ServerLimits

_HEAD: Final = 4096
"""Bytes before the tables: the key of the digests, then a byte for each slot, which is only locked."""
_KEY_BYTES: Final = 16
_MAX_SLOTS: Final = _HEAD - _KEY_BYTES
_RECORD: Final = struct.Struct("=16sdd")
"""A bucket: the digest of its name, its level, and the time of that level."""
_WAYS: Final = 8
_SETS: Final = 2048
_TABLE_BYTES: Final = _WAYS * _SETS * _RECORD.size
_FREE: Final = bytes(16)
_PAUSE: Final = 0.01


class BucketTable:
    """The buckets of one limit: a table of :data:`_SETS` sets of :data:`_WAYS` buckets, by a digest of the name.

    A bucket that is full is the same as none. If all buckets of a set are in use, the one that was used longest ago
    makes room. The digest has a secret key, so nobody can choose names that push others out.
    """

    def __init__(self, memory: SharedMemory, first: int) -> None:
        self._memory = memory
        self._first = first

    @contextmanager
    def turn(self) -> Iterator[None]:
        """A context in which no other process uses the table."""
        with self._memory.locked(self._first, 1):
            yield

    def get(self, name: str) -> Bucket | None:
        """The level of a bucket and the time of that level."""
        digest, start = self._place(name)
        for offset in range(start, start + _WAYS * _RECORD.size, _RECORD.size):
            found, level, seen = _RECORD.unpack_from(self._memory.bytes, offset)
            if found == digest:
                return level, seen
        return None

    def put(self, name: str, bucket: Bucket, is_full: Callable[[Bucket], bool]) -> None:
        """Set a bucket; ``is_full`` says which of the others may be forgotten."""
        digest, start = self._place(name)
        oldest, chosen = float("inf"), start
        for offset in range(start, start + _WAYS * _RECORD.size, _RECORD.size):
            found, level, seen = _RECORD.unpack_from(self._memory.bytes, offset)
            if found == digest:
                chosen = offset
                break
            age = float("-inf") if found == _FREE or is_full((level, seen)) else seen
            if age < oldest:
                oldest, chosen = age, offset
        _RECORD.pack_into(self._memory.bytes, chosen, digest, *bucket)

    def _place(self, name: str) -> tuple[bytes, int]:
        digest = hashlib.blake2b(name.encode("utf-8", "surrogateescape"), key=self._memory.key, digest_size=16).digest()
        return digest, self._first + int.from_bytes(digest[:4], "little") % _SETS * _WAYS * _RECORD.size


class Slots:
    """A number of things that may be done at a time; threads may share it.

    Parameters
    ----------
    memory : SharedMemory
    most : int
        Number of slots.
    """

    def __init__(self, memory: SharedMemory, most: int) -> None:
        self._memory = memory
        self._most = min(most, _MAX_SLOTS)
        self._mine: list[int] = []
        self._lock = threading.Lock()

    def acquire(self, timeout: float = 0.0) -> bool:
        """Take a slot, if one becomes free within this time in seconds; returns whether it did."""
        ends = time.monotonic() + timeout
        while not self._take():
            if time.monotonic() >= ends:
                return False
            time.sleep(_PAUSE)
        return True

    def _take(self) -> bool:
        with self._lock:
            for slot in range(self._most):
                # The lock of a process does not keep its other threads away.
                if slot not in self._mine and self._memory.lock_at_once(_KEY_BYTES + slot):
                    self._mine.append(slot)
                    return True
        return False

    def release(self, n: int = 1) -> None:
        """Give slots of this process back."""
        with self._lock:
            for _ in range(n):
                self._memory.unlock(_KEY_BYTES + self._mine.pop(), 1)


class SharedMemory(Closeable):
    """The memory.

    Parameters
    ----------
    descriptor : int, optional
        That of the memory of another process; by default a new one.

    Attributes
    ----------
    descriptor : int
        For the other processes.
    key : bytes
        The key of the digests.
    bytes : mmap
    """

    def __init__(self, descriptor: int | None = None) -> None:
        if descriptor is None:
            with tempfile.TemporaryFile() as file:
                descriptor = os.dup(file.fileno())
            os.ftruncate(descriptor, _HEAD + 2 * _TABLE_BYTES)
            os.pwrite(descriptor, secrets.token_bytes(_KEY_BYTES), 0)
        self.descriptor = descriptor
        self.bytes = mmap.mmap(descriptor, 0)
        self.key = self.bytes[:_KEY_BYTES]

    def close(self) -> None:
        """Give the memory back, unless others use it."""
        if not self.bytes.closed:
            self.bytes.close()
            os.close(self.descriptor)

    def requests(self, limits: ServerLimits) -> Buckets:
        """The buckets of requests."""
        return Buckets(limits.requests_per_minute, BucketTable(self, _HEAD))

    def failures(self, limits: ServerLimits) -> Buckets:
        """The buckets of invalid tokens."""
        return Buckets(limits.failures_per_minute, BucketTable(self, _HEAD + _TABLE_BYTES))

    def downloads(self, limits: ServerLimits) -> Slots:
        """The slots of downloads."""
        return Slots(self, limits.downloads)

    @contextmanager
    def locked(self, first: int, n_bytes: int) -> Iterator[None]:
        """A context in which other processes wait for these bytes; threads of this one do not."""
        fcntl.lockf(self.descriptor, fcntl.LOCK_EX, n_bytes, first)
        try:
            yield
        finally:
            self.unlock(first, n_bytes)

    def lock_at_once(self, place: int) -> bool:
        """Lock a byte, unless another process has; returns whether it is locked now."""
        try:
            fcntl.lockf(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
        except OSError:
            return False
        return True

    def unlock(self, first: int, n_bytes: int) -> None:
        """End a lock."""
        fcntl.lockf(self.descriptor, fcntl.LOCK_UN, n_bytes, first)
