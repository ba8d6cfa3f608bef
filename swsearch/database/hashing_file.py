"""New files whose SHA-256 is computed while they are written, beside the writing if there are threads for it."""

from __future__ import annotations

import hashlib
import os
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from swsearch.database.format import FileEntry
from swsearch.threads import Threads


class HashingFile:
    """A new file, or only the size and SHA-256 of a file that is not written; a context manager.

    Parameters
    ----------
    path : path or None
        A file that does not exist. None: nothing is written.
    threads : Threads, optional
        Threads that compute the SHA-256; by default, the caller's thread computes it.
    """

    def __init__(self, path: Path | None, threads: Threads | None = None) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self._descriptor = -1 if path is None else os.open(path, flags, 0o666)
        self._threads = threads
        self._sha256 = hashlib.sha256()
        self._hashing: Future[None] | None = None
        self._size = 0

    def write(self, data: NDArray[Any]) -> None:
        """Append the bytes of a contiguous array; they must not change until the next call of a method has returned."""
        if not data.size:
            return
        rest = data.data.cast("B")
        self._size += len(rest)
        self._await_hash()
        if self._threads is None:
            self._sha256.update(rest)
        else:
            self._hashing = self._threads.submit(self._sha256.update, rest)
        while self._descriptor >= 0 and rest:
            rest = rest[os.write(self._descriptor, rest) :]

    def finish(self) -> FileEntry:
        """Wait until all data is on the disk; return the file's size and SHA-256."""
        self._await_hash()
        if self._descriptor >= 0:
            os.fsync(self._descriptor)
        return FileEntry(self._size, self._sha256.hexdigest())

    def _await_hash(self) -> None:
        if self._hashing is not None:
            self._hashing.result()
            self._hashing = None

    def __enter__(self) -> HashingFile:
        return self

    def __exit__(self, *_: object) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
