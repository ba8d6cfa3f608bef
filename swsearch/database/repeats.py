"""The search for identifiers that occur more than once, in bounded memory.

The identifier of a header is its first word. A spool file takes a hash of each identifier, in 256 buckets by its
highest bits; the buckets of all blocks are then searched one after the other. Identifiers with equal hashes are
compared in the files of the headers, so the result is exact. The work is in native code
(``simd/index/identifiers.cpp``).

The memory in use is that of one bucket per thread, about 24 bytes per identifier in it, and 1 kB per block of headers.
The spool takes 12 bytes per identifier.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch import _native
from swsearch.database.runs import Spool
from swsearch.threads import Threads
from swsearch.typing import Codes, Offsets

_ALL: Final = np.empty(0, dtype=np.uint8)


@dataclass(frozen=True)
class HeaderFiles:
    """The files ``headers.bin`` and ``header_ends.bin`` of some subjects, and the number of these subjects."""

    headers: Path
    header_ends: Path
    n_subjects: int


class IdentifierSpool:
    """The identifiers of all subjects of a database; a context manager that removes the spool.

    A subject's number is the number of headers that were added before it, including those that were not kept.
    """

    def __init__(self, path: Path, threads: Threads) -> None:
        self._threads = threads
        self._spool = Spool(path)
        self._running: deque[Future[NDArray[np.uint32]]] = deque()
        self._counts: list[NDArray[np.uint32]] = []
        self._n_headers = 0
        self._n_entries = 0

    def __enter__(self) -> IdentifierSpool:
        return self

    def __exit__(self, *_: object) -> None:
        while self._running:  # the spool is in use until then
            self._running.pop().exception()
        self._spool.__exit__()

    def add(self, header_bytes: Codes, header_ends: Offsets, kept: NDArray[np.bool_] | None = None) -> None:
        """Add the headers of the next subjects; the arrays must not change.

        Parameters
        ----------
        header_bytes : uint8 array
        header_ends : uint64 array, shape (n,)
        kept : bool array, shape (n,), optional
            Whether the identifier of each header counts; by default, all of them count.
        """
        mask = _ALL if kept is None else kept.view(np.uint8)
        self._running.append(
            self._threads.submit(
                _native.write_identifiers,
                header_bytes,
                header_ends,
                mask,
                self._n_headers,
                self._spool.descriptor,
                self._n_entries,
            )
        )
        self._n_headers += len(header_ends)
        self._n_entries += len(header_ends) if kept is None else int(np.count_nonzero(kept))
        if len(self._running) > self._threads.n_threads:
            self._counts.append(self._running.popleft().result())

    def repeats(self, files: Sequence[HeaderFiles], n_before: int) -> tuple[int, int | None]:
        """The repeated identifiers.

        Parameters
        ----------
        files : sequence of HeaderFiles
            The files of all headers, in the order in which they were added.
        n_before : int
            Subjects with smaller numbers are not counted, but others that repeat their identifiers are.

        Returns
        -------
        n : int
            Number of subjects with the identifier of a subject with a smaller number.
        first : int or None
            The smallest number of these subjects.
        """
        while self._running:
            self._counts.append(self._running.popleft().result())
        if not self._counts:
            return 0, None
        counts = np.array(self._counts, dtype=np.uint32)
        ends = np.cumsum(counts, dtype=np.uint64).reshape(counts.shape)
        offsets = ends - counts
        with ExitStack() as stack:
            opened = []
            first = 0
            for source in files:
                paths = source.headers, source.header_ends
                descriptors = [os.open(path, os.O_RDONLY | os.O_CLOEXEC) for path in paths]
                for descriptor in descriptors:
                    stack.callback(os.close, descriptor)
                opened.append((first, descriptors[0], descriptors[1]))
                first += source.n_subjects

            def of_bucket(bucket: int) -> tuple[int, int | None]:
                part = np.ascontiguousarray(offsets[:, bucket]), np.ascontiguousarray(counts[:, bucket])
                return _native.find_repeats(self._spool.descriptor, *part, n_before, opened)

            found = list(self._threads.in_order(of_bucket, range(counts.shape[1])))
        firsts = [number for _, number in found if number is not None]
        return sum(n for n, _ in found), min(firsts, default=None)
