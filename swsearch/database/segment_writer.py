"""Writer of one segment, a folder of arrays, from a stream of records, in bounded memory.

In a first pass, chunks of records are appended in FASTA order to ``headers.bin`` and to a spool of residues. Then the
subjects are sorted by length, and their residues are copied from the spool in stored order, block by block. The SHA-256
of each file is computed while it is written. A build, an addition and a compaction each write one segment with this
module, and then add the returned entry to the catalogue.

The memory in use is one chunk, one block, and about 60 bytes per subject; the disk space in use is temporarily twice
the size of the residues. The same records give the same bytes in every file.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch import _native
from swsearch.database.format import (
    ARRAY_DTYPES,
    MAX_SUBJECT_LENGTH,
    MAX_SUBJECTS,
    SUBJECT_ALIGNMENT,
    TAIL_PADDING,
    FileEntry,
    SegmentEntry,
    array_path,
)
from swsearch.database.staging import sync_folder
from swsearch.errors import FastaFormatError
from swsearch.sequences.alphabet import PAD_CODE, Alphabet
from swsearch.sequences.fasta import SequenceChunk, read_chunks
from swsearch.sequences.record import split_header
from swsearch.sequences.source import refuse_repeated_pipes, shown_name, source_name
from swsearch.typing import Lengths, Offsets

BLOCK_BYTES: Final = 16 << 20
"""Approximate size of the blocks in which residues are gathered; an interrupt waits for at most one block."""

Progress = Callable[[int, int], None]
"""Called with subjects and residues read so far, after each chunk."""

IdentifierHashes = NDArray[np.int64]
"""Hashes of identifiers, the same for the same identifier within one process."""


@dataclass(frozen=True)
class WrittenSegment:
    """A segment that was written.

    Attributes
    ----------
    entry : SegmentEntry
    alphabet : Alphabet
    n_duplicates : int
        Number of subjects that have the identifier of an earlier subject. They are part of the segment.
    first_duplicate : str or None
        Identifier of the first of these subjects.
    """

    entry: SegmentEntry
    alphabet: Alphabet
    n_duplicates: int
    first_duplicate: str | None


def sequence_chunks(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], alphabet: Alphabet | None
) -> Iterator[tuple[str, SequenceChunk]]:
    """The records of sequence files in chunks, each with the name of its file for messages.

    Raises
    ------
    FastaFormatError
        There is no file, or a file cannot be read as sequences of the alphabet.
    """
    several = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    if not several:
        raise FastaFormatError("no sequence file was given", "nothing to index")
    refuse_repeated_pipes(several)
    for path in several:
        for chunk in read_chunks(path, alphabet):
            alphabet = chunk.alphabet
            yield shown_name(path), chunk


def source_names(paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> tuple[str, ...]:
    """The names of sequence files for the catalogue: the name without folders, ``<stdin>``, or ``<pipe>``."""
    several = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    return tuple(map(source_name, several))


def write_segment(
    segment: Path,
    chunks: Iterable[tuple[str, SequenceChunk]],
    *,
    n_before: int = 0,
    hashes_before: IdentifierHashes | None = None,
    progress: Progress | None = None,
) -> WrittenSegment:
    """Write the arrays of the records to a new folder; all data is on the disk when the function returns.

    Parameters
    ----------
    segment : path
        Folder to create. After an exception, the caller removes it.
    chunks : iterable of (str, SequenceChunk)
        At least one chunk, all of one alphabet, each with the name of its source for messages.
    n_before : int
        Number of subjects that the database already has. Its sum with the new ones must fit in 32 bits.
    hashes_before : int64 array, optional
        The :func:`identifier_hashes` of the subjects that the database already has, to find repeated identifiers.
    progress : callable, optional

    Raises
    ------
    FastaFormatError
        A sequence is too long, there are too many sequences, or ``chunks`` raised it.
    OSError
        The disk is full, or cannot be written to.
    """
    segment.mkdir()
    intake = _take_in(chunks, segment, n_before, progress)
    entry = _write_arrays(segment, intake)
    n_duplicates, first = _duplicates(intake.hashes, hashes_before)
    name = None if first is None else _identifier(segment, first)
    return WrittenSegment(entry, intake.alphabet, n_duplicates, name)


def identifier_hashes(headers: Sequence[bytes]) -> IdentifierHashes:
    """A hash of each header's first word."""
    return np.fromiter((hash(_first_word(header)) for header in headers), dtype=np.int64, count=len(headers))


@dataclass(frozen=True, eq=False)
class _Intake:
    """The arrays that the first pass collects, in FASTA order; the residues are in the spool."""

    alphabet: Alphabet
    lengths: Lengths
    hashes: IdentifierHashes
    spool: Path
    headers: FileEntry
    header_ends: FileEntry


class HashingFile:
    """A new file whose SHA-256 is computed while it is written; a context manager."""

    def __init__(self, path: Path) -> None:
        self._file = open(path, "xb", buffering=0)  # noqa: SIM115
        self._sha256 = hashlib.sha256()
        self._size = 0

    def write(self, data: bytes | memoryview) -> None:
        """Append bytes."""
        self._sha256.update(data)
        rest = memoryview(data)
        while rest:
            rest = rest[self._file.write(rest) or 0 :]
        self._size += len(data)

    def finish(self) -> FileEntry:
        """Wait until all data is on the disk; return the file's size and SHA-256."""
        os.fsync(self._file.fileno())
        return FileEntry(self._size, self._sha256.hexdigest())

    def __enter__(self) -> HashingFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def _take_in(
    chunks: Iterable[tuple[str, SequenceChunk]], segment: Path, n_before: int, progress: Progress | None
) -> _Intake:
    alphabet: Alphabet | None = None
    lengths: list[Lengths] = []
    hashes: list[IdentifierHashes] = []
    n_subjects = n_residues = header_bytes = 0
    spool_path = segment / "residues.spool"
    with (
        open(spool_path, "xb", buffering=0) as spool,
        HashingFile(array_path(segment, "headers")) as headers,
        HashingFile(array_path(segment, "header_ends")) as header_ends,
    ):
        for name, chunk in chunks:
            alphabet = chunk.alphabet
            _check_limits(chunk.lengths, chunk.headers, n_before + n_subjects, name)
            rest = chunk.codes.data
            while rest:
                rest = rest[spool.write(rest) or 0 :]
            headers.write(b"".join(chunk.headers))
            sizes = np.fromiter(map(len, chunk.headers), dtype=np.uint64, count=len(chunk))
            ends = np.cumsum(sizes, dtype=np.uint64) + np.uint64(header_bytes)
            header_ends.write(ends.astype(ARRAY_DTYPES["header_ends"]).tobytes())
            lengths.append(chunk.lengths)
            hashes.append(identifier_hashes(chunk.headers))
            n_subjects += len(chunk)
            n_residues += len(chunk.codes)
            header_bytes = int(ends[-1])
            if progress is not None:
                progress(n_subjects, n_residues)
        entries = headers.finish(), header_ends.finish()
    if alphabet is None:
        raise ValueError("a segment of no sequences")
    return _Intake(alphabet, np.concatenate(lengths), np.concatenate(hashes), spool_path, *entries)


def _check_limits(lengths: Lengths, headers: list[bytes], n_before: int, name: str) -> None:
    if int(lengths.max()) > MAX_SUBJECT_LENGTH:
        longest = int(lengths.argmax())
        identifier = _first_word(headers[longest]).decode("utf-8", "replace")
        problem = f"{int(lengths[longest])} residues, at most {MAX_SUBJECT_LENGTH} are possible; cut the sequence"
        raise FastaFormatError(problem, name, identifier=identifier)
    if n_before + len(lengths) > MAX_SUBJECTS:
        raise FastaFormatError(f"more than {MAX_SUBJECTS} sequences; build several databases", name)


def _write_arrays(segment: Path, intake: _Intake) -> SegmentEntry:
    lengths = intake.lengths
    n_subjects = len(lengths)
    order = np.argsort(lengths, kind="stable").astype(np.uint32)
    positions = np.empty(n_subjects, dtype=np.uint32)
    positions[order] = np.arange(n_subjects, dtype=np.uint32)
    stored_lengths = lengths[order]
    room = (stored_lengths.astype(np.uint64) + np.uint64(SUBJECT_ALIGNMENT - 1)) & ~np.uint64(SUBJECT_ALIGNMENT - 1)
    ends = np.cumsum(room, dtype=np.uint64)
    starts = ends - room
    spool_starts = (np.cumsum(lengths, dtype=np.uint64) - lengths)[order]
    plan = _Plan(spool_starts, stored_lengths, starts, ends)
    files = {
        "residues": write_residues(array_path(segment, "residues"), intake.spool, plan),
        "headers": intake.headers,
        "header_ends": intake.header_ends,
    }
    small = {"starts": starts, "lengths": stored_lengths, "order": order, "positions": positions}
    for name, array in small.items():
        with HashingFile(array_path(segment, name)) as file:
            file.write(array.astype(ARRAY_DTYPES[name], copy=False).data.cast("B"))
            files[name] = file.finish()
    os.unlink(intake.spool)
    sync_folder(segment)
    return SegmentEntry(
        name=segment.name,
        n_subjects=n_subjects,
        n_residues=int(lengths.sum(dtype=np.uint64)),
        shortest=int(stored_lengths[0]),
        longest=int(stored_lengths[-1]),
        files={name: files[name] for name in ARRAY_DTYPES},
    )


@dataclass(frozen=True, eq=False)
class _Plan:
    """Source and target offsets of the residues of each stored subject."""

    spool_starts: Offsets
    lengths: Lengths
    starts: Offsets
    ends: Offsets
    """Offset of the end of each subject and its padding, which is the start of the next subject."""


def write_residues(path: Path, spool: Path, plan: _Plan) -> FileEntry:
    """Write ``residues.bin``: the residues of the spool file in stored order, each subject padded."""
    with open(spool, "rb", buffering=0) as source, HashingFile(path) as file:
        first = 0
        while first < len(plan.lengths):
            base = plan.starts[first]
            stop = max(first + 1, int(np.searchsorted(plan.ends, base + np.uint64(BLOCK_BYTES), side="right")))
            block = np.empty(int(plan.ends[stop - 1] - base), dtype=np.uint8)
            part = slice(first, stop)
            failure = _native.gather(
                source.fileno(), plan.spool_starts[part], plan.lengths[part], plan.starts[part] - base, block, PAD_CODE
            )
            if failure:
                raise OSError(failure, os.strerror(failure), str(spool))
            file.write(block.data)
            first = stop
        file.write(bytes([PAD_CODE]) * TAIL_PADDING)
        return file.finish()


def _duplicates(hashes: IdentifierHashes, before: IdentifierHashes | None) -> tuple[int, int | None]:
    """The number of repeated identifiers, and the index of the first repeated one.

    Identifiers are compared by 64-bit hashes: among a million, two different ones have the same hash with a probability
    of 3 in 10^8.
    """
    n_before = 0 if before is None else len(before)
    every = hashes if before is None else np.concatenate((before, hashes))
    by_hash = np.argsort(every, kind="stable")
    again = by_hash[1:][every[by_hash[1:]] == every[by_hash[:-1]]] - n_before
    again = again[again >= 0]
    return len(again), int(again.min()) if len(again) else None


def _identifier(segment: Path, subject_index: int) -> str:
    ends = np.memmap(array_path(segment, "header_ends"), dtype=ARRAY_DTYPES["header_ends"], mode="r")
    start = int(ends[subject_index - 1]) if subject_index else 0
    with open(array_path(segment, "headers"), "rb") as file:
        file.seek(start)
        header = file.read(int(ends[subject_index]) - start)
    return split_header(header.decode("utf-8", "surrogateescape"))[0]


def _first_word(header: bytes) -> bytes:
    return header.split(None, 1)[0] if header.strip() else b""
