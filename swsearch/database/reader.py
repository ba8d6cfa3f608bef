"""The reader of a packed database: arrays are mapped into memory as they are on disk, headers are read individually.

A search opens a :class:`PackedDatabase` by its path, passes its partitions to the engines, and looks up the headers and
residues of the hits. ``subject_index`` is the 0-based index of a subject in FASTA order over all segments, without
removed subjects; it is also its index in an export.

A database may be changed while it is open (:mod:`swsearch.database.changes`). An open database remains at its
generation until it is closed: the files stay mapped, and no change writes to a file in use.
"""

from __future__ import annotations

import os
import stat
from bisect import bisect_right
from collections.abc import Collection, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from swsearch.arrays import distinct
from swsearch.closeable import Closeable
from swsearch.database.format import (
    ARRAY_DTYPES,
    CATALOGUE,
    MAX_SUBJECT_LENGTH,
    SUBJECT_ALIGNMENT,
    TAIL_PADDING,
    TOMBSTONE_DTYPE,
    Catalogue,
    SegmentEntry,
    array_path,
    catalogue_text,
    read_catalogue,
)
from swsearch.database.object_store import is_url, refuse_url
from swsearch.database.partition import Partition
from swsearch.database.staging import is_staging
from swsearch.errors import DatabaseError
from swsearch.sequences.alphabet import ALPHABETS, PAD_CODE, Alphabet
from swsearch.sequences.record import SequenceRecord
from swsearch.typing import Codes, Lengths, Offsets, SubjectIndex
from swsearch.words import counted

MAX_ATTEMPTS: Final = 20
"""Largest number of attempts to open a database that is changed at the same time."""
_BLOCK_HEADERS: Final = 1 << 16
"""Number of headers that are read at a time."""
_BLOCK_SUBJECTS: Final = 1 << 20
"""Number of subjects whose layout is checked at a time."""
_BLOCK_LETTERS: Final = 1 << 20
"""Number of residues that are checked at a time."""
_SEQUENCE_STARTS: Final = (b">", b"@", b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd")


_NO_INVERSE: Final = ("positions.bin or order.bin", "they are not the inverse of each other")


class Segment:
    """One segment's arrays, mapped read-only; dtypes and shapes are those of :mod:`swsearch.database.format`.

    A *FASTA index* is the 0-based index of a subject in the FASTA from which the segment was built, including
    removed subjects. Only the remaining subjects have a ``subject_index``.

    Methods check the data that they read, as :mod:`swsearch.database.format` specifies, and raise
    :class:`DatabaseError`, so that no value in a damaged file is used as an index outside another array. The arrays
    themselves are not modified.
    """

    def __init__(self, folder: Path, entry: SegmentEntry, base: int) -> None:
        self.folder = folder
        self.entry = entry
        self.base = base
        """``subject_index`` of the segment's first subject."""
        self.n_subjects = entry.n_subjects - entry.n_removed
        """Number of subjects that were not removed."""
        self.residues: Codes = _array(folder, entry, "residues")
        self.starts: Offsets = _array(folder, entry, "starts", entry.n_subjects)
        self.lengths: Lengths = _array(folder, entry, "lengths", entry.n_subjects)
        self.order: SubjectIndex = _array(folder, entry, "order", entry.n_subjects)
        self.positions: SubjectIndex = _array(folder, entry, "positions", entry.n_subjects)
        self.headers: Codes = _array(folder, entry, "headers")
        self.header_ends: Offsets = _array(folder, entry, "header_ends", entry.n_subjects)
        self.removed: SubjectIndex = _removed(folder, entry)
        """Places of the removed subjects, ascending; uint32, empty if no subject was removed."""
        # The i-th remaining subject is at FASTA index i + r, where r is the number of elements <= i of this array.
        self._left_before = self.removed - np.arange(len(self.removed), dtype=np.uint32)
        self._has_checked_layout = False

    def holds(self, subject_index: SubjectIndex) -> NDArray[np.bool_]:
        """For each subject, whether it is in this segment; bool, in the shape of ``subject_index``."""
        return (subject_index >= self.base) & (subject_index < self.base + self.n_subjects)

    def fasta_index(self, subject_index: int) -> int:
        """The FASTA index, within the segment, of one subject of this segment."""
        number = subject_index - self.base
        if len(self.removed):
            number += int(np.searchsorted(self._left_before, np.uint32(number), side="right"))
        return number

    def stored(self, subject_index: SubjectIndex) -> SubjectIndex:
        """Stored positions of subjects of this segment; uint32, in the shape of ``subject_index``."""
        fasta_indices = subject_index - np.uint32(self.base)
        if len(self.removed):
            fasta_indices = fasta_indices + np.searchsorted(self._left_before, fasta_indices, side="right").astype(
                np.uint32
            )
        return self.stored_at(fasta_indices)

    def stored_at(self, fasta_indices: SubjectIndex) -> SubjectIndex:
        """Stored positions of the subjects at ``fasta_indices``; uint32, in the shape of ``fasta_indices``."""
        self._check_layout()
        stored: SubjectIndex = self.positions[fasta_indices]
        if stored.size and (
            int(stored.max()) >= self.entry.n_subjects or not np.array_equal(self.order[stored], fasta_indices)
        ):
            raise self._damaged(*_NO_INVERSE)
        return stored

    def stored_range(self, fasta_index: int) -> tuple[Codes, int, int]:
        """The result of :meth:`PackedDatabase.stored_range` for the subject at ``fasta_index``."""
        self._check_layout()
        stored = int(self.positions[fasta_index])  # as stored_at, without its arrays: a search asks for every hit
        if stored >= self.entry.n_subjects or int(self.order[stored]) != fasta_index:
            raise self._damaged(*_NO_INVERSE)
        return self.residues, int(self.starts[stored]), int(self.lengths[stored])

    def is_left(self) -> NDArray[np.bool_]:
        """For each FASTA index, whether its subject is still part of the database; bool, shape (n,)."""
        left = np.ones(self.entry.n_subjects, dtype=np.bool_)
        left[self.removed] = False
        return left

    def partition(self) -> Partition:
        """The remaining subjects in stored order; ``residues`` is a view, the smaller arrays are views or copies."""
        self._check_layout()
        if not len(self.removed):
            subject_index = self.order if self.base == 0 else self.order + np.uint32(self.base)
            return Partition(self.residues, self.starts, self.lengths, subject_index)
        left = self.is_left()[self.order]
        fasta_indices = self.order[left]
        subject_index = (
            fasta_indices - np.searchsorted(self.removed, fasta_indices).astype(np.uint32) + np.uint32(self.base)
        )
        return Partition(self.residues, self.starts[left], self.lengths[left], subject_index)

    def header(self, fasta_index: int) -> bytes:
        """The header of the subject at ``fasta_index``, as it was read from the FASTA."""
        return self.raw_headers(fasta_index, fasta_index + 1)[0]

    def raw_headers(self, first: int, stop: int) -> list[bytes]:
        """The headers of the subjects at FASTA indices ``first`` to ``stop`` - 1, removed subjects included."""
        begin = int(self.header_ends[first - 1]) if first else 0
        ends = [begin, *self.header_ends[first:stop].tolist()]
        if ends[-1] > len(self.headers) or any(end < start for start, end in pairwise(ends)):
            raise self._damaged("header_ends.bin", "a header ends before it begins, or beyond all headers")
        raw = self.headers[begin : ends[-1]].tobytes()
        return [raw[start - begin : end - begin] for start, end in pairwise(ends)]

    def header_blocks(self) -> Iterator[tuple[int, list[bytes]]]:
        """All headers, also of removed subjects, in blocks; each block has the FASTA index of its first header."""
        for first in range(0, self.entry.n_subjects, _BLOCK_HEADERS):
            yield first, self.raw_headers(first, min(first + _BLOCK_HEADERS, self.entry.n_subjects))

    def _check_layout(self) -> None:
        """Check, once, that every subject is stored at the offset that the format requires, inside the residues."""
        if self._has_checked_layout:
            return
        begin, shortest = 0, 1
        for first in range(0, self.entry.n_subjects, _BLOCK_SUBJECTS):
            part = slice(first, first + _BLOCK_SUBJECTS)
            lengths = self.lengths[part].astype(np.int64)
            if lengths[0] < shortest or bool((np.diff(lengths) < 0).any()) or lengths[-1] > MAX_SUBJECT_LENGTH:
                raise self._damaged("lengths.bin", "lengths do not grow from 1 on, or a subject is too long")
            ends = begin + np.cumsum(-(-lengths // SUBJECT_ALIGNMENT) * SUBJECT_ALIGNMENT)
            starts = self.starts[part]
            if int(starts[0]) != begin or not np.array_equal(starts[1:], ends[:-1].astype(np.uint64)):
                raise self._damaged("starts.bin or lengths.bin", "the subjects do not lie side by side")
            if int(self.order[part].max()) >= self.entry.n_subjects:
                raise self._damaged("order.bin", "a place is that of no subject")
            begin, shortest = int(ends[-1]), int(lengths[-1])
        if begin + TAIL_PADDING != len(self.residues):
            raise self._damaged("lengths.bin or residues.bin", "the residues are not as many as the lengths say")
        self._has_checked_layout = True

    def check_letters(self, codes: Codes, alphabet: Alphabet, *, padded: bool = False) -> None:
        """Check that residue codes of this segment are letters or, if ``padded``, letters or padding."""
        known = alphabet.is_letter
        if padded:
            known = known.copy()
            known[PAD_CODE] = True
        for first in range(0, len(codes), _BLOCK_LETTERS):
            if not known[codes[first : first + _BLOCK_LETTERS]].all():
                raise self._damaged("residues.bin", f"a residue is no letter of alphabet {alphabet.name}")

    def _damaged(self, file: str, problem: str) -> DatabaseError:
        advice = "`swsearch db verify` tells which files have changed; index the FASTA again"
        return DatabaseError(f"{self.folder} is damaged, {file}: {problem}; {advice}")


class PackedDatabase(Closeable):
    r"""A packed database that is open for reading; a context manager.

    Opening reads only the catalogue; arrays are read when they are used. Threads may share the object. Returned arrays
    stay valid after :meth:`close`, which only releases the maps. Pickling saves path and digest; unpickling opens the
    database again and fails if its content has changed. Changes of the database on disk do not affect an open one.

    >>> import tempfile
    >>> from swsearch.database.builder import build_database
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "two.fa").write_text(">P1 a kinase\nMKVLL\n>P2\nWYr\n")
    ...     _ = build_database(f"{folder}/two.fa", f"{folder}/two.swdb")
    ...     with PackedDatabase.open(f"{folder}/two.swdb") as database:
    ...         print(database.n_subjects, database.header(0), database.record(1).letters)
    2 P1 a kinase WYr
    """

    def __init__(
        self,
        path: Path,
        catalogue: Catalogue,
        segments: tuple[Segment, ...],
        url: str | None = None,
        cached: Closeable | None = None,
    ) -> None:
        self.path = path
        """The folder; that of the cache for a database of an object store."""
        self.url = url
        """The URL of a database of an object store; None for a database of this machine."""
        self._cached = cached
        self.catalogue = catalogue
        self.segments = segments
        self.n_subjects = catalogue.n_subjects
        """Number of subjects, without removed ones."""
        self._bases = [segment.base for segment in segments]
        self._entries = [segment.entry for segment in segments]

    @classmethod
    def open(cls, path: str | os.PathLike[str], segments: Collection[int] | None = None) -> PackedDatabase:
        """Open the database at ``path``, a folder or the URL of one in an object store, or one slice of it.

        A slice has some segments only, by their numbers from 0; the files of the others need not be there. Its subjects
        keep their ``subject_index``, and its catalogue, with ``n_subjects``, ``n_residues`` and ``digest``, is that of
        the whole database.

        A database of an object store is fetched completely into the cache of this node, unless it is there
        (:mod:`swsearch.database.remote`).

        Raises
        ------
        DatabaseError
            There is no database of this program's format at ``path``, or one of its files is missing or truncated; or
            it cannot be fetched.
        """
        if isinstance(path, str) and is_url(path):
            from swsearch.database.remote import fetch

            cached = fetch(path)
            try:
                found = cls.open(cached.folder, segments)
                return cls(found.path, found.catalogue, found.segments, path.rstrip("/"), cached)
            except BaseException:
                cached.close()
                raise
        folder = Path(path)
        catalogue = load_catalogue(folder)
        for _ in range(MAX_ATTEMPTS):
            failure = None
            try:
                mapped = map_segments(folder, catalogue, segments)
            except DatabaseError as error:
                failure = error
            # A concurrent change may have mixed two generations or removed files.
            before, catalogue = catalogue, load_catalogue(folder)
            if catalogue == before:
                if failure is not None:
                    raise failure
                return cls(folder, catalogue, mapped)
        raise DatabaseError(f"{folder} changes so often that it cannot be opened; wait until its writers have ended")

    @classmethod
    def open_content(
        cls, path: str | os.PathLike[str], digest: str, segments: Collection[int] | None = None
    ) -> PackedDatabase:
        """Open the database at ``path``, or one slice of it, if its content still has this digest.

        Raises
        ------
        DatabaseError
            The database has another digest, or cannot be opened.
        """
        database = cls.open(path, segments)
        if database.digest != digest:
            database.close()
            raise DatabaseError(f"{path} has been changed since it was opened; run the search again")
        return database

    def part(self, segments: Collection[int]) -> PackedDatabase:
        """The slice of an open whole database with these segments, as :meth:`open` returns it; it shares the maps."""
        return PackedDatabase(self.path, self.catalogue, tuple(self.segments[number] for number in segments), self.url)

    def close(self) -> None:
        """Release the maps; the database cannot be read through this object afterwards."""
        self.segments = ()
        self._bases = []
        if self._cached is not None:
            self._cached.close()

    def __reduce__(self) -> tuple[Any, ...]:
        numbers = [number for number, entry in enumerate(self.catalogue.segments) if entry in self._entries]
        is_whole = len(numbers) == len(self.catalogue.segments)
        return PackedDatabase.open_content, (self.url or self.path, self.digest, None if is_whole else numbers)

    @property
    def location(self) -> str:
        """The absolute path of the folder without symbolic links, or the URL."""
        return self.url or os.path.realpath(self.path)

    @property
    def alphabet(self) -> Alphabet:
        """The alphabet of all subjects."""
        return ALPHABETS[self.catalogue.alphabet]

    @property
    def n_residues(self) -> int:
        """Number of residues, without those of removed subjects."""
        return self.catalogue.n_residues

    @property
    def digest(self) -> str:
        """SHA-256 of the content, in hexadecimal; equal digests mean equal content."""
        return self.catalogue.digest

    @property
    def subject_index(self) -> SubjectIndex:
        """The ``subject_index`` of all subjects, ascending; uint32. A slice has only those of its segments."""
        ranges = [np.arange(one.base, one.base + one.n_subjects, dtype=np.uint32) for one in self.segments]
        return np.concatenate([np.empty(0, dtype=np.uint32), *ranges])

    def __len__(self) -> int:
        return self.n_subjects

    def header(self, subject_index: int) -> str:
        """The header of a subject without ``>``; bytes that are not UTF-8 are surrogate escapes."""
        segment, fasta_index = self._find(subject_index)
        return segment.header(fasta_index).decode("utf-8", "surrogateescape")

    def header_blocks(self) -> Iterator[tuple[int, list[str]]]:
        """All headers in FASTA order, in blocks; each block has the ``subject_index`` of its first header."""
        for segment in self.segments:
            index = segment.base
            is_left = segment.is_left()
            for first, raw in segment.header_blocks():
                fasta_indices = np.flatnonzero(is_left[first : first + len(raw)])
                yield index, [raw[fasta_index].decode("utf-8", "surrogateescape") for fasta_index in fasta_indices]
                index += len(fasta_indices)

    def length(self, subject_index: int) -> int:
        """Number of residues of a subject."""
        return self.stored_range(subject_index)[2]

    def lengths(self, subject_index: SubjectIndex) -> Lengths:
        """Numbers of residues of subjects; uint32, in the shape of ``subject_index``, each below ``n_subjects``."""
        lengths = np.empty(subject_index.shape, dtype=np.uint32)
        for segment in self.segments:
            inside = segment.holds(subject_index)
            lengths[inside] = segment.lengths[segment.stored(subject_index[inside])]
        return lengths

    def distinct_lengths(self) -> Lengths:
        """The distinct lengths of subjects in residues, ascending; uint32."""
        found = [np.empty(0, dtype=np.uint32)]
        for segment in self.segments:
            lengths = segment.partition().lengths
            found.append(lengths[np.flatnonzero(np.diff(lengths, prepend=0))])
        return distinct(np.concatenate(found))

    def codes(self, subject_index: int) -> Codes:
        """Residue codes of a subject; uint8, shape (length,), a read-only view, checked to be letters."""
        segment, fasta_index = self._find(subject_index)
        residues, start, length = segment.stored_range(fasta_index)
        codes = residues[start : start + length]
        segment.check_letters(codes, self.alphabet)
        return codes

    def stored_range(self, subject_index: int) -> tuple[Codes, int, int]:
        """All residues of a subject's segment, the index of the subject's first residue there, and its length.

        The subject is followed by padding up to the next multiple of 16, and then by other subjects.
        """
        segment, fasta_index = self._find(subject_index)
        return segment.stored_range(fasta_index)

    def stored_ranges(self, subject_index: SubjectIndex) -> Iterator[tuple[NDArray[np.intp], Codes, Offsets, Lengths]]:
        """The results of :meth:`stored_range` for several subjects, segment by segment, checked to be letters.

        Yields
        ------
        inside : int array
            Indices in ``subject_index`` of the subjects in the segment, ascending.
        residues : uint8 array
            All residues of the segment.
        starts : uint64 array
            Index of each of these subjects' first residue in ``residues``.
        lengths : uint32 array
        """
        for segment in self.segments:
            inside = np.flatnonzero(segment.holds(subject_index))
            if inside.size:
                stored = segment.stored(subject_index[inside])
                starts, lengths = segment.starts[stored], segment.lengths[stored]
                for start, length in zip(starts.tolist(), lengths.tolist(), strict=True):
                    segment.check_letters(segment.residues[start : start + length], self.alphabet)
                yield inside, segment.residues, starts, lengths

    def record(self, subject_index: int) -> SequenceRecord:
        """A subject as a record."""
        return SequenceRecord(self.header(subject_index), self.codes(subject_index), self.alphabet)

    def __iter__(self) -> Iterator[SequenceRecord]:
        """All subjects in the order of the FASTA."""
        return map(self.record, range(self.n_subjects))

    def partitions(self, max_residues: int | None = None) -> Iterator[Partition]:
        """All subjects in stored order, in partitions of similar lengths; no partition spans two segments.

        Parameters
        ----------
        max_residues : int, optional
            Largest number of residues of a partition; a longer subject is a separate partition. By default, each
            segment is one partition.
        """
        for segment in self.segments:
            whole = segment.partition()
            if max_residues is not None:
                yield from whole.split(max_residues)
            elif len(whole):
                yield whole

    def _find(self, subject_index: int) -> tuple[Segment, int]:
        if not 0 <= subject_index < self.n_subjects:
            raise IndexError(f"subject {subject_index} of {self.n_subjects}")
        segment = self.segments[bisect_right(self._bases, subject_index) - 1]
        return segment, segment.fasta_index(subject_index)


def map_segments(folder: Path, catalogue: Catalogue, numbers: Collection[int] | None = None) -> tuple[Segment, ...]:
    """The segments of a catalogue in its order, or those with the given numbers.

    Raises
    ------
    DatabaseError
        A file of these segments is missing, or has another size or kind.
    """
    if catalogue.alphabet not in ALPHABETS:
        raise DatabaseError(f"{folder}: alphabet {catalogue.alphabet!r} is unknown to this program")
    segments: list[Segment] = []
    base = 0
    for number, entry in enumerate(catalogue.segments):
        if numbers is None or number in numbers:
            segments.append(Segment(folder / entry.name, entry, base))
        base += entry.n_subjects - entry.n_removed
    return tuple(segments)


def catalogue_of(path: str | os.PathLike[str]) -> Catalogue:
    """The catalogue of a database that :meth:`PackedDatabase.open` can open; one of an object store is fetched.

    Raises
    ------
    DatabaseError
        There is no database, or it cannot be fetched.
    """
    if isinstance(path, str) and is_url(path):
        with PackedDatabase.open(path) as opened:
            return opened.catalogue
    return load_catalogue(Path(path))


def load_catalogue(folder: Path) -> Catalogue:
    """The catalogue of a database.

    Raises
    ------
    DatabaseError
        There is no database, or none of this program's format; the message says what was found instead.
    """
    refuse_url(os.fspath(folder))
    if is_staging(Path(os.path.abspath(folder))):
        raise DatabaseError(f"{folder} is the leftover of an unfinished build, no database; index the FASTA again")
    try:
        if not folder.exists():
            raise DatabaseError(f"{folder} does not exist; `swsearch index FASTA -o {folder}` makes a database")
        if not folder.is_dir():
            if folder.is_file() and _start_of(folder).startswith(_SEQUENCE_STARTS):
                raise DatabaseError(
                    f"{folder} is a sequence file, no packed database; index it first: "
                    f"`swsearch index {folder} -o {folder}.swdb`"
                )
            raise DatabaseError(f"{folder} is a file, no packed database (a folder with {CATALOGUE})")
        return read_catalogue(catalogue_text(folder))
    except FileNotFoundError as error:
        raise DatabaseError(f"{folder} is no packed database: it has no {CATALOGUE}") from error
    except OSError as error:
        raise DatabaseError(f"{folder} cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise DatabaseError(f"{folder} cannot be used: {error}; index the FASTA again") from error


def _start_of(path: Path) -> bytes:
    with open(path, "rb") as file:
        return file.read(8)


def _array(folder: Path, entry: SegmentEntry, name: str, n_items: int | None = None) -> np.ndarray[Any, np.dtype[Any]]:
    """One array of a segment."""
    return _mapped(array_path(folder, name), np.dtype(ARRAY_DTYPES[name]), entry.files[name].size, n_items)


def _removed(folder: Path, entry: SegmentEntry) -> SubjectIndex:
    if entry.removed is None:
        return np.empty(0, dtype=np.uint32)
    path = folder / entry.removed.name
    removed = _mapped(path, np.dtype(TOMBSTONE_DTYPE), entry.removed.file.size, entry.removed.n_subjects)
    if int(removed[-1]) >= entry.n_subjects or bool((removed[1:] <= removed[:-1]).any()):
        raise DatabaseError(f"{path} is damaged: the removed are no growing places of subjects; index the FASTA again")
    return removed


def _mapped(path: Path, dtype: np.dtype[Any], expected: int, n_items: int | None) -> np.ndarray[Any, np.dtype[Any]]:
    """A file of ``expected`` bytes, mapped read-only, its size checked against the catalogue."""
    if n_items is not None and expected != n_items * dtype.itemsize:
        raise DatabaseError(
            f"{path}: the catalogue gives it {counted(expected, 'byte')} for {counted(n_items, 'subject')}"
        )
    try:
        found = path.stat()
        size = found.st_size
        if not stat.S_ISREG(found.st_mode):
            raise DatabaseError(f"{path} is no regular file; the database is damaged, index the FASTA again")
        if size != expected:
            advice = "the database is damaged, index the FASTA again"
            raise DatabaseError(f"{path} has {counted(size, 'byte')}, {expected:,} are expected; {advice}")
        if size == 0:
            return np.empty(0, dtype=dtype)
        return np.asarray(np.memmap(path, dtype=dtype, mode="r"))
    except OSError as error:
        raise DatabaseError(f"{path} cannot be read: {error.strerror or error}; the database is damaged") from error
