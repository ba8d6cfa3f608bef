"""Writer of one segment, a folder of arrays, from a stream of records, in bounded memory.

In a first pass, chunks of records are appended in FASTA order to ``headers.bin``, and sorted by length into the runs of
an external sort (:mod:`swsearch.database.external_sort`). In a second pass, the runs are merged into stored order,
block by block. The SHA-256 of each file is computed while it is written. A build, an addition and a compaction each
write one segment with this module, and then add the returned entry to the catalogue.

Several threads share the work; the caller's thread keeps the order and writes. The memory in use does not grow with the
number of subjects (:mod:`swsearch.database.external_sort`); the disk space in use is temporarily twice the size of the
residues, and 16 bytes per subject. The same records give the same bytes in every file.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from swsearch.database.array_files import BY_LENGTH, ArrayFiles, StoredHeaders
from swsearch.database.external_sort import HeaderFiles, IdentifierSpool, SortedRuns
from swsearch.database.format import (
    ARRAY_DTYPES,
    MAX_SUBJECT_LENGTH,
    MAX_SUBJECTS,
    TAIL_PADDING,
    FileEntry,
    SegmentEntry,
    array_path,
)
from swsearch.database.slice_writer import write_slices
from swsearch.database.staging import sync_folder
from swsearch.errors import FastaFormatError, InputError
from swsearch.sequences.alphabet import PAD_CODE, Alphabet
from swsearch.sequences.fasta import Skip, read_chunks
from swsearch.sequences.record import SequenceChunk, split_header
from swsearch.sequences.source import Spooled, refuse_repeated_pipes, seekable, shown_name, source_name
from swsearch.threads import Threads
from swsearch.words import counted, option

BLOCK_BYTES: Final = 4 << 20
"""Approximate size of the blocks in which residues are gathered; an interrupt waits for at most a few blocks."""

Progress = Callable[[int, int], None]
"""Called with subjects and residues read so far, after each chunk."""


@dataclass(frozen=True)
class WrittenSegment:
    """A segment that was written.

    If there are slices, ``entry`` is that of the whole segment, which is not on the disk. ``n_duplicates`` counts the
    subjects that have the identifier of an earlier subject, which are part of the segment; ``first_duplicate`` is the
    identifier of the first of them.
    """

    entry: SegmentEntry
    slices: tuple[SegmentEntry, ...]
    alphabet: Alphabet
    n_duplicates: int
    first_duplicate: str | None


@dataclass(frozen=True)
class KnownSubjects:
    """The subjects that a database has before an addition: their number, without removed ones.

    ``files`` have the headers of all, and of removed subjects. ``add_to`` adds these headers to a spool, without the
    identifiers of removed subjects.
    """

    n_subjects: int
    files: tuple[HeaderFiles, ...]
    add_to: Callable[[IdentifierSpool], None]


_NO_SUBJECTS: Final = KnownSubjects(0, (), lambda _: None)


def sequence_chunks(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    alphabet: Alphabet | None,
    threads: Threads | None = None,
    skip: Skip | None = None,
) -> Iterator[tuple[str, SequenceChunk]]:
    """The records of sequence files in chunks, each with the name of its file for messages.

    Parameters are those of :func:`swsearch.sequences.fasta.read_chunks`.

    Raises
    ------
    FastaFormatError
        There is no file, or a file cannot be read as sequences of the alphabet, or the text of a pipe ends within a
        line, or all records of all files were skipped.
    """
    several = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    if not several:
        raise FastaFormatError("no sequence file was given", "nothing to index")
    refuse_repeated_pipes(several)
    is_empty = True
    for path in several:
        source = seekable(path)
        for chunk in read_chunks(source, alphabet, threads=threads, skip=skip):
            alphabet = chunk.alphabet
            is_empty = False
            yield shown_name(path), chunk
        if isinstance(source, Spooled) and source.is_cut:
            problem = "the last line has no end, so the program that writes the pipe may have failed"
            raise FastaFormatError(f"{problem}; write its output to a file, or end the last line", shown_name(path))
    if is_empty:
        problem = (
            "no record is a sequence of the alphabet; "
            f"without {option('skip', flag='--skip-bad')}, the first problem is reported"
        )
        raise FastaFormatError(problem, ", ".join(map(shown_name, several)))


def source_names(paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> tuple[str, ...]:
    """The names of sequence files for the catalogue: the name without folders, ``<stdin>``, or ``<pipe>``."""
    several = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    return tuple(map(source_name, several))


def write_segment(
    segment: Path,
    chunks: Iterable[tuple[str, SequenceChunk]],
    *,
    threads: Threads,
    known: KnownSubjects = _NO_SUBJECTS,
    slices: Sequence[Path] = (),
    progress: Progress | None = None,
) -> WrittenSegment:
    """Write the arrays of the records to new folders; all data is on the disk when the function returns.

    Parameters
    ----------
    segment : path
        Folder to create; with slices, it is removed in the end. After an exception, the caller removes all folders.
    chunks : iterable of (str, SequenceChunk)
        At least one chunk, all of one alphabet, each with the name of its source for messages.
    threads : Threads
    known : KnownSubjects
        The subjects that the database already has. Their sum with the new ones must fit in 32 bits, and the new ones
        may repeat their identifiers.
    slices : sequence of paths
        Folders to create, one for each slice; none for a segment without slices.
    progress : callable, optional

    Raises
    ------
    FastaFormatError
        A sequence is too long, there are too many sequences, or ``chunks`` raised it.
    InputError
        There are more slices than sequences.
    OSError
        The disk is full, or cannot be written to.
    """
    segment.mkdir()
    with SortedRuns(segment, threads) as runs, IdentifierSpool(segment / "identifiers.spool", threads) as identifiers:
        known.add_to(identifiers)
        intake = _take_in(chunks, segment, runs, identifiers, threads, known.n_subjects, progress)
        n_before = sum(source.n_subjects for source in known.files)
        written = HeaderFiles(array_path(segment, "headers"), array_path(segment, "header_ends"), runs.n_subjects)
        n_duplicates, first = identifiers.repeats([*known.files, written], n_before)
        if runs.n_subjects < len(slices):
            few = counted(runs.n_subjects, "sequence")
            given = option("slices", len(slices))
            raise InputError(f"{given}: {few} cannot be divided into so many slices; choose fewer")
        entries: list[SegmentEntry] = []
        if slices:
            files, entries = _write_slices(segment, slices, runs, threads)
        else:
            files = {**_write_positions(segment, runs, threads), **write_residues(segment, runs, threads)}
        files.update(intake.files)
        entry = SegmentEntry(
            name=segment.name,
            n_subjects=runs.n_subjects,
            n_residues=runs.n_residues,
            shortest=runs.shortest,
            longest=runs.longest,
            files={name: files[name] for name in ARRAY_DTYPES},
        )
    identifier = None if first is None else _identifier(segment, first - n_before)
    if slices:
        shutil.rmtree(segment)
    for folder in slices or (segment,):
        sync_folder(folder)
    return WrittenSegment(entry, tuple(entries), intake.alphabet, n_duplicates, identifier)


@dataclass(frozen=True)
class _Intake:
    """The result of the first pass."""

    alphabet: Alphabet
    files: dict[str, FileEntry]


def _take_in(
    chunks: Iterable[tuple[str, SequenceChunk]],
    segment: Path,
    runs: SortedRuns,
    identifiers: IdentifierSpool,
    threads: Threads,
    n_before: int,
    progress: Progress | None,
) -> _Intake:
    alphabet: Alphabet | None = None
    header_bytes = 0
    with ArrayFiles(segment, ("headers", "header_ends"), threads) as files:
        for name, chunk in chunks:
            alphabet = chunk.alphabet
            _check_limits(chunk, n_before + runs.n_subjects, name)
            runs.add(chunk)
            identifiers.add(chunk.header_bytes, chunk.header_ends)
            files.write("headers", chunk.header_bytes)
            files.write("header_ends", chunk.header_ends + np.uint64(header_bytes))
            header_bytes += len(chunk.header_bytes)
            if progress is not None:
                progress(runs.n_subjects, runs.n_residues)
        written = files.finish()
    if alphabet is None:
        raise ValueError("a segment of no sequences")
    return _Intake(alphabet, written)


def _check_limits(chunk: SequenceChunk, n_before: int, name: str) -> None:
    if int(chunk.lengths.max()) > MAX_SUBJECT_LENGTH:
        longest = int(chunk.lengths.argmax())
        identifier = _first_word(chunk.headers[longest]).decode("utf-8", "replace")
        problem = f"{int(chunk.lengths[longest])} residues, at most {MAX_SUBJECT_LENGTH} are possible; cut the sequence"
        raise FastaFormatError(problem, name, identifier=identifier)
    if n_before + len(chunk) > MAX_SUBJECTS:
        raise FastaFormatError(f"more than {MAX_SUBJECTS} sequences; build several databases", name)


def _write_slices(
    segment: Path, slices: Sequence[Path], runs: SortedRuns, threads: Threads
) -> tuple[dict[str, FileEntry], list[SegmentEntry]]:
    for folder in slices:
        folder.mkdir()
    with StoredHeaders(segment) as headers:
        return write_slices(slices, runs, headers, segment / "indices.spool", BLOCK_BYTES, threads)


def _write_positions(segment: Path, runs: SortedRuns, threads: Threads) -> dict[str, FileEntry]:
    with ArrayFiles(segment, ("positions",), threads) as files:
        for positions in runs.positions():
            files.write("positions", positions)
        return files.finish()


def write_residues(segment: Path, runs: SortedRuns, threads: Threads) -> dict[str, FileEntry]:
    """Write the arrays in stored order: ``residues``, ``starts``, ``lengths`` and ``order``."""
    with ArrayFiles(segment, BY_LENGTH, threads) as files:
        for block in runs.blocks(BLOCK_BYTES):
            for name in BY_LENGTH:
                files.write(name, getattr(block, name))
        files.write("residues", np.full(TAIL_PADDING, PAD_CODE, dtype=np.uint8))
        return files.finish()


def _identifier(segment: Path, fasta_index: int) -> str:
    with StoredHeaders(segment) as headers:
        header = headers.read(fasta_index, fasta_index + 1).data.tobytes()
    return split_header(header.decode("utf-8", "surrogateescape"))[0]


def _first_word(header: bytes) -> bytes:
    return header.split(None, 1)[0] if header.strip() else b""
