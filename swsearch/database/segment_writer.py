"""Writer of one segment, a folder of arrays, from a stream of records, in bounded memory.

In a first pass, chunks of records are appended in FASTA order to ``headers.bin``, and sorted by length into the runs of
an external sort (:mod:`swsearch.database.external_sort`). In a second pass, the runs are merged into stored order,
block by block. Slices are segments of parts of the subjects: they are written when the whole segment is there, which is
then removed. The SHA-256 of each file is computed while it is written. A build, an addition and a compaction each
write one segment with this module, and then add the returned entry to the catalogue.

Several threads share the work; the caller's thread keeps the order and writes. The memory in use does not grow with the
number of subjects (:mod:`swsearch.database.external_sort`); the disk space in use is temporarily twice the size of the
residues, and 16 bytes per subject; with slices, that of one slice more. The same records give the same bytes in every
file.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from swsearch import _native
from swsearch.database.export import remaining_chunks
from swsearch.database.external_sort import BY_LENGTH, IdentifierSpool, SortedRuns
from swsearch.database.format import (
    ARRAY_DTYPES,
    MAX_SUBJECT_LENGTH,
    MAX_SUBJECTS,
    SEGMENT_DTYPES,
    TAIL_PADDING,
    FileEntry,
    SegmentEntry,
    array_path,
    padded,
    segment_name,
)
from swsearch.database.segment import Segment, header_ranges
from swsearch.errors import FastaFormatError, InputError
from swsearch.folders import sync_folder
from swsearch.sequences.alphabet import PAD_CODE, Alphabet
from swsearch.sequences.fasta import Skip, read_chunks
from swsearch.sequences.record import SequenceChunk, split_header
from swsearch.sequences.source import Spooled, path_list, refuse_repeated_pipes, seekable, shown_name, source_name
from swsearch.threads import Threads
from swsearch.typing import Lengths, SubjectIndex
from swsearch.words import counted, option

BLOCK_BYTES: Final = 4 << 20
"""Approximate size of the blocks in which residues are gathered; an interrupt waits for at most a few blocks."""

COMPARED_SUBJECTS: Final = 1 << 20
"""Number of subjects that are compared with each other, unless more have one length."""

PART_SUBJECTS: Final = 1 << 23
"""Number of subjects that are looked for at a time in all others."""
SHORTEST_PART: Final = 64
"""Fewest residues of a subject that is noted as part of another one: shorter ones take little time, and searches
would need lower scores of long subjects for their sake."""

ReadProgress = Callable[[int, int], None]
"""Called with subjects and residues read so far, after each chunk."""


@dataclass(frozen=True)
class WrittenSegment:
    """A segment that was written, or its slices and the ``whole``, which is not on the disk.

    ``n_duplicates`` counts the subjects that have the identifier of an earlier subject, which are part of the segment;
    ``first_duplicate`` is the identifier of the first of them.
    """

    segments: tuple[SegmentEntry, ...]
    whole: SegmentEntry | None
    alphabet: Alphabet
    n_duplicates: int
    first_duplicate: str | None


def sequence_chunks(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    alphabet: Alphabet | None,
    threads: Threads | None = None,
    skip: Skip | None = None,
    headers: re.Pattern[bytes] | None = None,
) -> Iterator[SequenceChunk]:
    """The records of sequence files in chunks.

    The other parameters are those of :func:`swsearch.sequences.fasta.read_chunks`; with ``headers``, records in whose
    headers the pattern is not found are left out.

    Raises
    ------
    FastaFormatError
        There is no file, or a file cannot be read as sequences of the alphabet, or the text of a pipe ends within a
        line, or all records of all files were skipped.
    """
    several = path_list(paths)
    if not several:
        raise FastaFormatError("no sequence file was given", "nothing to index")
    refuse_repeated_pipes(several)
    is_empty = True
    for path in several:
        source = seekable(path)
        for chunk in read_chunks(source, alphabet, threads=threads, skip=skip):
            alphabet = chunk.alphabet
            wanted = chunk if headers is None else chunk.having(headers)
            if len(wanted):
                is_empty = False
                yield wanted
        if isinstance(source, Spooled) and source.is_cut:
            problem = "the last line has no end, so the program that writes the pipe may have failed"
            raise FastaFormatError(f"{problem}; write its output to a file, or end the last line", shown_name(path))
    if is_empty and headers is not None:
        problem = f"no header has {headers.pattern.decode()!r}"
        raise FastaFormatError(problem, ", ".join(map(shown_name, several)))
    if is_empty:
        problem = (
            "no record is a sequence of the alphabet; "
            f"without {option('skip', flag='--skip-bad')}, the first problem is reported"
        )
        raise FastaFormatError(problem, ", ".join(map(shown_name, several)))


def source_names(paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> tuple[str, ...]:
    """The names of sequence files for the catalogue: the name without folders, ``<stdin>``, or ``<pipe>``."""
    several = path_list(paths)
    return tuple(map(source_name, several))


def write_segment(
    folder: Path,
    generation: int,
    chunks: Iterable[SequenceChunk],
    *,
    threads: Threads,
    known: Sequence[Segment] = (),
    n_slices: int = 1,
    progress: ReadProgress | None = None,
) -> WrittenSegment:
    """Write the arrays of the records to new folders; all data is on the disk when the function returns.

    The folders are made in that of the database; after an exception, the caller removes those of this generation. There
    is at least one chunk, and all are of one alphabet. ``known`` are the segments that the database already has: the
    number of their subjects and the new ones must fit in 32 bits, and the new ones may repeat identifiers.

    Raises
    ------
    FastaFormatError
        A sequence is too long, there are too many sequences, or ``chunks`` raised it.
    InputError
        There are more slices than sequences.
    OSError
        The disk is full, or cannot be written to.
    """
    segment = folder / segment_name(generation)
    segment.mkdir()
    with IdentifierSpool(segment, threads) as identifiers:
        for one in known:
            is_left = one.is_left()
            for begin, end in header_ranges(one.entry.n_subjects):
                identifiers.add(one.packed_headers(begin, end), is_left[begin:end])
        n_known = sum(one.n_subjects for one in known)
        entry, alphabet = _write_arrays(segment, chunks, threads, identifiers, n_known, progress)
        n_before = sum(one.entry.n_subjects for one in known)
        folders = [(one.folder, one.entry.n_subjects) for one in known]
        n_duplicates, first = identifiers.repeats([*folders, (segment, entry.n_subjects)], n_before)
    whole = Segment(segment, entry)
    duplicate = None if first is None else whole.header(first - n_before).decode("utf-8", "surrogateescape")
    identifier = None if duplicate is None else split_header(duplicate)[0]
    if n_slices == 1:
        sync_folder(segment)
        return WrittenSegment((entry,), None, alphabet, n_duplicates, identifier)
    slices = [folder / segment_name(generation, number) for number in range(1, n_slices + 1)]
    entries = tuple(_write_slices(whole, slices, alphabet, threads))
    shutil.rmtree(segment)
    return WrittenSegment(entries, entry, alphabet, n_duplicates, identifier)


def _write_arrays(
    segment: Path,
    chunks: Iterable[SequenceChunk],
    threads: Threads,
    identifiers: IdentifierSpool | None = None,
    n_before: int = 0,
    progress: ReadProgress | None = None,
) -> tuple[SegmentEntry, Alphabet]:
    """Write the arrays of the records to the folder; ``n_before`` subjects are in the database already."""
    alphabet: Alphabet | None = None
    header_bytes = 0
    with SortedRuns(segment, threads) as runs:
        with _array_file(segment, "headers", threads) as headers, _array_file(segment, "header_ends", threads) as ends:
            for chunk in chunks:
                alphabet = chunk.alphabet
                _check_limits(chunk, n_before + runs.n_subjects)
                runs.add(chunk)
                if identifiers is not None:
                    identifiers.add(chunk.headers)
                headers.write(chunk.headers.data)
                ends.write(chunk.headers.ends + np.uint64(header_bytes))
                header_bytes += len(chunk.headers.data)
                if progress is not None:
                    progress(runs.n_subjects, runs.n_residues)
            written = {"headers": headers.finish(), "header_ends": ends.finish()}
        if alphabet is None:
            raise ValueError("a segment of no sequences")
        with _array_file(segment, "positions", threads) as file:
            written["positions"] = file.finish(runs.positions())
        written |= write_residues(segment, runs, threads)
        entry = SegmentEntry(
            name=segment.name,
            n_subjects=runs.n_subjects,
            n_residues=runs.n_residues,
            shortest=runs.shortest,
            longest=runs.longest,
            files={name: written[name] for name in ARRAY_DTYPES},
        )
    return replace(entry, repeats=_write_repeats(segment, entry, threads)), alphabet


def _write_slices(whole: Segment, folders: Sequence[Path], alphabet: Alphabet, threads: Threads) -> list[SegmentEntry]:
    """Divide the subjects of a segment into slices, equal in numbers of subjects and nearly in residues.

    Subjects are dealt like cards, from the longest to the shortest, forwards and backwards in turns
    (:mod:`swsearch.database.format`).
    """
    n_subjects, n_slices = whole.entry.n_subjects, len(folders)
    if n_subjects < n_slices:
        given = option("slices", n_slices)
        few = counted(n_subjects, "sequence")
        raise InputError(f"{given}: {few} cannot be divided into more slices than that; choose fewer")
    entries = []
    for number, folder in enumerate(folders):

        def is_own(fasta_indices: SubjectIndex, number: int = number) -> NDArray[np.bool_]:
            place = (n_subjects - 1 - whole.positions[fasta_indices].astype(np.int64)) % (2 * n_slices)
            own: NDArray[np.bool_] = np.minimum(place, 2 * n_slices - 1 - place) == number
            return own

        folder.mkdir()
        entry, _ = _write_arrays(folder, remaining_chunks([(whole,)], alphabet, threads, is_own), threads)
        blocks = (
            np.arange(first, min(first + BLOCK_BYTES, n_subjects), dtype=np.uint32)
            for first in range(0, n_subjects, BLOCK_BYTES)
        )
        with _array_file(folder, "indices", threads) as file:
            entries.append(replace(entry, indices=file.finish(block[is_own(block)] for block in blocks)))
        sync_folder(folder)
    return entries


def _check_limits(chunk: SequenceChunk, n_before: int) -> None:
    if int(chunk.lengths.max()) > MAX_SUBJECT_LENGTH:
        longest = int(chunk.lengths.argmax())
        identifier, _ = split_header(
            chunk.headers[longest].encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        )
        problem = f"{int(chunk.lengths[longest])} residues, at most {MAX_SUBJECT_LENGTH} are possible; cut the sequence"
        raise FastaFormatError(problem, chunk.source, identifier=identifier)
    if n_before + len(chunk) > MAX_SUBJECTS:
        raise FastaFormatError(f"more than {MAX_SUBJECTS} sequences; build several databases", chunk.source)


def write_residues(segment: Path, runs: SortedRuns, threads: Threads) -> dict[str, FileEntry]:
    """Write the arrays in stored order: ``residues``, ``starts``, ``lengths`` and ``order``."""
    with ExitStack() as stack:
        files = {name: stack.enter_context(_array_file(segment, name, threads)) for name in BY_LENGTH}
        for block in runs.blocks(BLOCK_BYTES):
            for name, array in block.items():
                files[name].write(array)
        files["residues"].write(np.full(TAIL_PADDING, PAD_CODE, dtype=np.uint8))
        return {name: file.finish() for name, file in files.items()}


def _write_repeats(folder: Path, entry: SegmentEntry, threads: Threads) -> FileEntry | None:
    """Write which subjects are equal to others, or part of them; None, without a file, if there are none."""
    stored = Segment(folder, entry)
    found = threads.in_order(lambda block: _equal_in(stored, *block), _comparable(stored.lengths))
    equal = np.concatenate([np.empty((0, 2), np.uint32), *found])
    is_first = np.ones(entry.n_subjects, np.uint8)
    is_first[equal[:, 0]] = 0
    arrays = stored.residues, stored.starts, stored.lengths, is_first
    n_parts = -(-entry.n_subjects // PART_SUBJECTS)
    parts = [
        _native.contained_subjects(*arrays, SHORTEST_PART, part, n_parts, threads.n_threads) for part in range(n_parts)
    ]
    repeats = np.concatenate([equal, _of_whole(np.concatenate(parts))])
    if not len(repeats):
        return None
    with _array_file(folder, "repeats", threads) as file:
        return file.finish([repeats[np.argsort(repeats[:, 0])]])


def _of_whole(parts: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """The same parts, each with a subject that is itself part of none of those that are known."""
    parts = parts[np.argsort(parts[:, 0])]
    rows, wholes = parts.T.copy()
    while True:
        places = np.searchsorted(rows, wholes)
        are_parts = np.append(rows, np.uint32(0))[places] == wholes
        if not are_parts.any():
            return np.stack([rows, wholes], axis=1)
        wholes[are_parts] = wholes[places[are_parts]]


def _comparable(lengths: Lengths) -> Iterator[tuple[int, int]]:
    """Ranges of about :data:`COMPARED_SUBJECTS` stored subjects, each with all subjects of its lengths."""
    first = 0
    while first < len(lengths):
        last = min(first + COMPARED_SUBJECTS, len(lengths)) - 1
        stop = int(np.searchsorted(lengths, lengths[last], side="right"))
        yield first, stop
        first = stop


def _equal_in(stored: Segment, first: int, stop: int) -> NDArray[np.uint32]:
    """The equal subjects of a range; if it has many, they are compared in several parts, one after the other."""
    n_parts = -(-(stop - first) // (4 * COMPARED_SUBJECTS))
    begin = stored.starts[first]
    end = int(stored.starts[stop - 1]) + padded(int(stored.lengths[stop - 1]))
    arrays = stored.residues[int(begin) : end], stored.starts[first:stop] - begin, stored.lengths[first:stop]
    parts = [_native.equal_subjects(*arrays, part, n_parts) for part in range(n_parts)]
    pairs = np.concatenate(parts)
    return pairs[np.argsort(pairs[:, 0])] + np.uint32(first)


class HashingFile:
    """A new file of one array, whose SHA-256 is computed while it is written; a context manager.

    The values are converted to the dtype. Without threads, the caller's thread computes the SHA-256.
    """

    def __init__(self, path: Path, dtype: str, threads: Threads | None = None) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        self._dtype = np.dtype(dtype)
        self._threads = threads
        self._sha256 = hashlib.sha256()
        self._hashing: Future[None] | None = None
        self._size = 0

    def write(self, values: NDArray[Any]) -> None:
        """Append the values of an array; they must not change until the next call of a method has returned."""
        if not values.size:
            return
        rest = np.ascontiguousarray(values, self._dtype).data.cast("B")
        self._size += len(rest)
        self._await_hash()
        if self._threads is None:
            self._sha256.update(rest)
        else:
            self._hashing = self._threads.submit(self._sha256.update, rest)
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]

    def finish(self, last: Iterable[NDArray[Any]] = ()) -> FileEntry:
        """Append the ``last`` values and wait until all are on the disk; return the file's size and SHA-256."""
        for values in last:
            self.write(values)
        self._await_hash()
        os.fsync(self._descriptor)
        return FileEntry(self._size, self._sha256.hexdigest())

    def _await_hash(self) -> None:
        if self._hashing is not None:
            self._hashing.result()
            self._hashing = None

    def __enter__(self) -> HashingFile:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)


def _array_file(folder: Path, name: str, threads: Threads) -> HashingFile:
    """The new file of an array of a segment."""
    return HashingFile(array_path(folder, name), SEGMENT_DTYPES[name], threads)
