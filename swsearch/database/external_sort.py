"""External sorting in bounded memory: of subjects by length, and of identifiers to find those that occur repeatedly.

*Subjects* come in chunks in FASTA order and leave in blocks of stored order. Each chunk is sorted by length and written
as a *run* to spool files. The subjects of one length in a run are a *group*: they are neighbours in the spools. Stored
order is ascending length, then FASTA order, which is the order of the runs. So every block of it consists of whole
groups of all runs, or of parts of the groups of one length. The work is in native code (``simd/index/runs.cpp``); this
module keeps the account. The memory in use is that of a few chunks and blocks, and 8 bytes per group: some 50 MB for a
database of 60 GB.

The *identifier* of a header is its first word. A spool file takes a hash of each identifier, in 256 buckets by its
highest bits; the buckets of all blocks are then searched one after the other. Identifiers with equal hashes are
compared in the files of the headers, so the result is exact. The work is in native code
(``simd/index/identifiers.cpp``). The memory in use is that of one bucket per thread, about 24 bytes per identifier in
it, and 1 kB per block of headers. The spool takes 12 bytes per identifier.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, Final

import numpy as np
from numpy.typing import NDArray

from swsearch import _native
from swsearch.arrays import Texts
from swsearch.database.format import array_path, padded
from swsearch.sequences.alphabet import PAD_CODE
from swsearch.sequences.record import SequenceChunk
from swsearch.threads import Threads
from swsearch.typing import Lengths, Offsets, SubjectIndex

BY_LENGTH: Final = ("residues", "starts", "lengths", "order")
"""The arrays of a segment that are in stored order."""
_VALUE_BYTES: Final = 4
_NO_LIMIT: Final = 2**63
_SPOOL_SHIFT: Final = 56
"""The highest bits of an offset are the index of its spool."""


def _spool(folder: Path) -> IO[bytes]:
    """A temporary file without a name in a folder, which is removed when it is closed."""
    return TemporaryFile(dir=folder)


@dataclass(frozen=True)
class _Run:
    first: int
    n_subjects: int
    lengths: Lengths
    counts: NDArray[np.uint32]
    place: int
    """Index of the spool of the residues, and their offset in it."""


class SortedRuns:
    """The runs of a segment under construction; a context manager that removes the spools.

    First all chunks are added, then :meth:`positions` and :meth:`blocks` may be used, each as often as needed.

    Attributes
    ----------
    n_subjects, n_residues : int
        Numbers of the chunks so far.
    """

    def __init__(self, folder: Path, threads: Threads) -> None:
        self._threads = threads
        # The system lets one thread at a time write to a file, so each thread has its own.
        self._residues = [_spool(folder) for _ in range(threads.n_threads)]
        self._residues_ends = [0] * threads.n_threads
        self._order = _spool(folder)
        self._running: deque[tuple[int, int, int, Future[tuple[Lengths, NDArray[np.uint32]]]]] = deque()
        self._n_added = 0
        self._runs: list[_Run] = []
        self.n_subjects = 0
        self.n_residues = 0

    def __enter__(self) -> SortedRuns:
        return self

    def __exit__(self, *_: object) -> None:
        while self._running:  # the spools are in use until then
            self._running.pop()[-1].exception()
        for spool in (*self._residues, self._order):
            spool.close()

    def add(self, chunk: SequenceChunk) -> None:
        """Add the next chunk. It is written on one of the threads, so its arrays must not change."""
        number = self._n_added % len(self._residues)
        offset = self._residues_ends[number]
        running = self._threads.submit(
            _native.write_run,
            chunk.codes,
            chunk.lengths,
            self.n_subjects,
            self._residues[number].fileno(),
            offset,
            self._order.fileno(),
        )
        self._running.append((self.n_subjects, len(chunk), number << _SPOOL_SHIFT | offset, running))
        self._residues_ends[number] += len(chunk.codes)
        self._n_added += 1
        self.n_subjects += len(chunk)
        self.n_residues += len(chunk.codes)
        if len(self._running) > self._threads.n_threads:
            self._await_one()

    def _await_one(self) -> None:
        first, n_subjects, place, running = self._running[0]
        try:
            self._runs.append(_Run(first, n_subjects, *running.result(), place))
        finally:
            del running  # its exception would otherwise keep this frame, and all files that are open in its callers
        self._running.popleft()

    @cached_property
    def _all_runs(self) -> list[_Run]:
        while self._running:
            self._await_one()
        return self._runs

    @cached_property
    def _totals(self) -> tuple[Lengths, Offsets]:
        """The distinct lengths, ascending, and their numbers of subjects."""
        totals: dict[int, int] = {}
        for run in self._all_runs:
            for length, count in zip(run.lengths.tolist(), run.counts.tolist(), strict=True):
                totals[length] = totals.get(length, 0) + count
        lengths = sorted(totals)
        return np.array(lengths, dtype=np.uint32), np.array([totals[length] for length in lengths], dtype=np.uint64)

    @property
    def shortest(self) -> int:
        """Number of residues of the shortest subject."""
        return int(self._totals[0][0])

    @property
    def longest(self) -> int:
        """Number of residues of the longest subject."""
        return int(self._totals[0][-1])

    def positions(self) -> Iterator[SubjectIndex]:
        """The stored positions of all subjects in FASTA order, one array per run."""
        distinct, totals = self._totals
        following = np.cumsum(totals, dtype=np.uint64) - totals
        for run in self._all_runs:
            raw = os.pread(self._order.fileno(), run.n_subjects * _VALUE_BYTES, run.first * _VALUE_BYTES)
            order = np.frombuffer(raw, dtype=np.uint32, count=run.n_subjects)
            yield _native.run_positions(run.lengths, run.counts, order, run.first, distinct, following)

    def blocks(self, block_bytes: int) -> Iterator[dict[str, NDArray[Any]]]:
        """All subjects in stored order, in blocks: those arrays of a segment that :data:`BY_LENGTH` names.

        Parameters
        ----------
        block_bytes : int
            Approximate size of a block's residues; a longer subject is a separate block.
        """
        return self._threads.in_order(self._gathered, self._plan(block_bytes))

    def _gathered(self, planned: tuple[_native.Pieces, int]) -> dict[str, NDArray[Any]]:
        pieces, base = planned
        spools = [spool.fileno() for spool in self._residues]
        arrays = (
            *_native.gather_residues(spools, pieces, base, PAD_CODE),
            _native.gather_values(self._order.fileno(), pieces),
        )
        return dict(zip(BY_LENGTH, arrays, strict=True))

    def _plan(self, block_bytes: int) -> Iterator[tuple[_native.Pieces, int]]:
        """The pieces of each block in the spools, and its offset in ``residues.bin``."""
        runs = self._all_runs
        distinct, totals = self._totals
        sizes = np.array([len(run.lengths) for run in runs], dtype=np.uint64)
        lengths = np.concatenate([run.lengths for run in runs])
        counts = np.concatenate([run.counts for run in runs])
        stops = np.cumsum(sizes, dtype=np.uint64)
        following = stops - sizes
        residues = np.array([run.place for run in runs], dtype=np.uint64)
        subjects = np.array([run.first for run in runs], dtype=np.uint64)
        rooms = padded(distinct.astype(np.uint64))
        ends = np.cumsum(rooms * totals, dtype=np.uint64)
        begin = 0
        while begin < len(distinct):
            base = int(ends[begin - 1]) if begin else 0
            stop = max(begin + 1, int(np.searchsorted(ends, np.uint64(base + block_bytes), side="right")))
            room, left = int(rooms[begin]), int(totals[begin])
            # The subjects of one length may be too many for one block.
            most = max(1, block_bytes // room) if stop == begin + 1 else _NO_LIMIT
            while left > 0:
                part = slice(begin, stop)
                next_to = (np.cumsum(totals[part]) - totals[part]).astype(np.uint32)
                pieces = _native.take_pieces(
                    lengths, counts, following, stops, residues, subjects, distinct[part], next_to, most
                )
                yield pieces, base
                base += room * most
                left -= most
            begin = stop


_ALL: Final = np.empty(0, dtype=np.uint8)


class IdentifierSpool:
    """The identifiers of all subjects of a database; a context manager that removes the spool.

    A subject's number is the number of headers that were added before it, including those that were not kept.
    """

    def __init__(self, folder: Path, threads: Threads) -> None:
        self._threads = threads
        self._spool = _spool(folder)
        self._running: deque[Future[NDArray[np.uint32]]] = deque()
        self._counts: list[NDArray[np.uint32]] = []
        self._n_headers = 0
        self._n_entries = 0

    def __enter__(self) -> IdentifierSpool:
        return self

    def __exit__(self, *_: object) -> None:
        while self._running:  # the spool is in use until then
            self._running.pop().exception()
        self._spool.close()

    def add(self, headers: Texts, kept: NDArray[np.bool_] | None = None) -> None:
        """Add the headers of the next subjects, of which all or those ``kept`` count; arrays must not change."""
        mask = _ALL if kept is None else kept.view(np.uint8)
        self._running.append(
            self._threads.submit(
                _native.write_identifiers,
                headers.data,
                headers.ends,
                mask,
                self._n_headers,
                self._spool.fileno(),
                self._n_entries,
            )
        )
        self._n_headers += len(headers)
        self._n_entries += len(headers) if kept is None else int(np.count_nonzero(kept))
        if len(self._running) > self._threads.n_threads:
            self._counts.append(self._running.popleft().result())

    def repeats(self, folders: Sequence[tuple[Path, int]], n_before: int) -> tuple[int, int | None]:
        """The repeated identifiers.

        Parameters
        ----------
        folders : sequence of (Path, int)
            The folders of the segments that have all headers, in the order in which these were added, and their numbers
            of subjects, removed ones included.
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
            for folder, n_subjects in folders:
                paths = [array_path(folder, name) for name in ("headers", "header_ends")]
                descriptors = [os.open(path, os.O_RDONLY | os.O_CLOEXEC) for path in paths]
                for descriptor in descriptors:
                    stack.callback(os.close, descriptor)
                opened.append((first, descriptors[0], descriptors[1]))
                first += n_subjects

            def of_bucket(bucket: int) -> tuple[int, int | None]:
                part = np.ascontiguousarray(offsets[:, bucket]), np.ascontiguousarray(counts[:, bucket])
                return _native.find_repeats(self._spool.fileno(), *part, n_before, opened)

            found = list(self._threads.in_order(of_bucket, range(counts.shape[1])))
        firsts = [number for _, number in found if number is not None]
        return sum(n for n, _ in found), min(firsts, default=None)
