"""New files of arrays: the SHA-256 of each is computed while it is written, on another thread if there are some.

:mod:`swsearch.database.format` specifies the arrays of a segment. Its headers are read again while it is written.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from swsearch.database.format import ARRAY_DTYPES, INDICES, INDICES_DTYPE, FileEntry, array_path
from swsearch.database.segment import Items
from swsearch.threads import Threads

BY_LENGTH: Final = ("residues", "starts", "lengths", "order")
"""The arrays in stored order."""


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


class ArrayFiles:
    """The new files of some arrays of one segment; a context manager.

    With ``folder`` None, nothing is written, and the entries are those that the files would have.
    """

    def __init__(self, folder: Path | None, names: Sequence[str], threads: Threads) -> None:
        self._stack = ExitStack()
        self._files = {
            name: self._stack.enter_context(HashingFile(folder and array_path(folder, name), threads)) for name in names
        }

    def __enter__(self) -> ArrayFiles:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def write(self, name: str, array: NDArray[Any]) -> None:
        """Append an array of any integer type to a file, whose type it gets."""
        dtype = INDICES_DTYPE if name == INDICES else ARRAY_DTYPES[name]
        self._files[name].write(np.ascontiguousarray(array).astype(dtype, copy=False))

    def finish(self) -> dict[str, FileEntry]:
        """Wait until all data is on the disk; return the entries of the files by their names."""
        return {name: file.finish() for name, file in self._files.items()}


class StoredHeaders:
    """The headers of a segment under construction, in its files; a context manager.

    Parameters
    ----------
    folder : path
        Folder of ``headers.bin`` and ``header_ends.bin``.
    """

    def __init__(self, folder: Path) -> None:
        self._headers, self._ends = (
            os.open(array_path(folder, name), os.O_RDONLY | os.O_CLOEXEC) for name in ("headers", "header_ends")
        )

    def __enter__(self) -> StoredHeaders:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._headers)
        os.close(self._ends)

    def read(self, first: int, stop: int) -> Items:
        """The headers at FASTA indices ``first`` to ``stop`` - 1."""
        dtype = np.dtype(ARRAY_DTYPES["header_ends"])
        before = min(first, 1)
        raw = os.pread(self._ends, (stop - first + before) * dtype.itemsize, (first - before) * dtype.itemsize)
        ends = np.frombuffer(raw, dtype=dtype).astype(np.uint64)
        begin = int(ends[0]) if before else 0
        text = os.pread(self._headers, int(ends[-1]) - begin, begin)
        return Items(np.frombuffer(text, dtype=np.uint8), ends[before:] - np.uint64(begin))
