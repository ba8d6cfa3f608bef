"""Reading a packed database: arrays mapped into memory as they lie on disk, headers fetched one by one.

A search opens a database here, takes partitions for its engines and looks up headers and residues of the hits.
``subject_index`` is a subject's place in the FASTA, counted from 0 over all segments.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from swsearch.database.format import ARRAY_DTYPES, CATALOGUE, Catalogue, SegmentEntry, read_catalogue
from swsearch.database.partition import Partition
from swsearch.database.staging import is_staging
from swsearch.errors import DatabaseError
from swsearch.sequences.alphabet import ALPHABETS, Alphabet
from swsearch.sequences.record import SequenceRecord
from swsearch.typing import Codes, Lengths, Offsets, SubjectIndex

_SEQUENCE_STARTS: Final = (b">", b"@", b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd")


class Segment:
    """One segment's arrays, mapped read-only; dtypes and shapes are those of :mod:`swsearch.database.format`."""

    def __init__(self, folder: Path, entry: SegmentEntry, base: int) -> None:
        self.entry = entry
        self.base = base
        """``subject_index`` of the segment's first subject."""
        self.residues: Codes = _mapped(folder, entry, "residues")
        self.starts: Offsets = _mapped(folder, entry, "starts", entry.n_subjects)
        self.lengths: Lengths = _mapped(folder, entry, "lengths", entry.n_subjects)
        self.order: SubjectIndex = _mapped(folder, entry, "order", entry.n_subjects)
        self.positions: SubjectIndex = _mapped(folder, entry, "positions", entry.n_subjects)
        self.headers: Codes = _mapped(folder, entry, "headers")
        self.header_ends: Offsets = _mapped(folder, entry, "header_ends", entry.n_subjects)


class PackedDatabase:
    r"""A packed database, open for reading. A context manager.

    Promises: nothing is read but the catalogue until it is asked for; threads may share it; arrays that it gave out
    stay valid after :meth:`close`, which only lets go of the maps. It pickles as its path and opens again elsewhere.

    >>> import tempfile
    >>> from swsearch.database.builder import build_database
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "two.fa").write_text(">P1 a kinase\nMKVLL\n>P2\nWYr\n")
    ...     _ = build_database(f"{folder}/two.fa", f"{folder}/two.swdb")
    ...     with PackedDatabase.open(f"{folder}/two.swdb") as database:
    ...         print(database.n_subjects, database.header(0), database.record(1).letters)
    2 P1 a kinase WYr
    """

    def __init__(self, path: Path, catalogue: Catalogue, segments: tuple[Segment, ...]) -> None:
        self.path = path
        self.catalogue = catalogue
        self.segments = segments
        self._bases = [segment.base for segment in segments]

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> PackedDatabase:
        """Map a database.

        Raises
        ------
        DatabaseError
            There is no database of this program's format at ``path``, or a file of it is missing or cut short.
        """
        folder = Path(path)
        catalogue = _load_catalogue(folder)
        if catalogue.alphabet not in ALPHABETS:
            raise DatabaseError(f"{folder}: alphabet {catalogue.alphabet!r} is unknown to this program")
        segments = []
        base = 0
        for entry in catalogue.segments:
            segments.append(Segment(folder / entry.name, entry, base))
            base += entry.n_subjects
        return cls(folder, catalogue, tuple(segments))

    def close(self) -> None:
        """Let go of the maps; the database cannot be read through this object any more."""
        self.segments = ()
        self._bases = []

    def __enter__(self) -> PackedDatabase:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return PackedDatabase.open, (self.path,)

    @property
    def alphabet(self) -> Alphabet:
        """The alphabet of all subjects."""
        return ALPHABETS[self.catalogue.alphabet]

    @property
    def n_subjects(self) -> int:
        """Subjects in all segments."""
        return self.catalogue.n_subjects

    @property
    def n_residues(self) -> int:
        """Residues in all segments."""
        return self.catalogue.n_residues

    @property
    def digest(self) -> str:
        """SHA-256 of the content, in hexadecimal; the same for equal content."""
        return self.catalogue.digest

    def __len__(self) -> int:
        return self.n_subjects

    def header(self, subject_index: int) -> str:
        """Header of a subject without ``>``; bytes that are not UTF-8 as surrogate escapes."""
        segment, place = self._find(subject_index)
        start = int(segment.header_ends[place - 1]) if place else 0
        raw = segment.headers[start : int(segment.header_ends[place])].tobytes()
        return raw.decode("utf-8", "surrogateescape")

    def length(self, subject_index: int) -> int:
        """Residues of a subject."""
        segment, place = self._find(subject_index)
        return int(segment.lengths[segment.positions[place]])

    def lengths(self, subject_index: SubjectIndex) -> Lengths:
        """Residues of many subjects, uint32, in the shape of ``subject_index``; each must be below ``n_subjects``."""
        lengths = np.empty(subject_index.shape, dtype=np.uint32)
        for segment in self.segments:
            inside = (subject_index >= segment.base) & (subject_index < segment.base + segment.entry.n_subjects)
            lengths[inside] = segment.lengths[segment.positions[subject_index[inside] - segment.base]]
        return lengths

    def distinct_lengths(self) -> Lengths:
        """Every length that some subject has, once, growing; uint32."""
        found = [segment.lengths[np.flatnonzero(np.diff(segment.lengths, prepend=0))] for segment in self.segments]
        return np.unique(np.concatenate(found)) if found else np.empty(0, dtype=np.uint32)

    def codes(self, subject_index: int) -> Codes:
        """Residue codes of a subject, uint8, shape (length,); a read-only view of the map."""
        residues, start, length = self.stored_range(subject_index)
        return residues[start : start + length]

    def stored_range(self, subject_index: int) -> tuple[Codes, int, int]:
        """A subject's segment's whole residues, its first byte there, and its length.

        The bytes around it are what the format promises: padding up to the next multiple of 16, other subjects beyond.
        """
        segment, place = self._find(subject_index)
        stored = int(segment.positions[place])
        return segment.residues, int(segment.starts[stored]), int(segment.lengths[stored])

    def stored_ranges(self, subject_index: SubjectIndex) -> Iterator[tuple[NDArray[np.intp], Codes, Offsets, Lengths]]:
        """:meth:`stored_range` of many subjects, for each segment that holds some of them.

        Yields
        ------
        places : int array
            Which of ``subject_index`` lie in the segment, growing.
        residues : uint8 array
            The segment's whole residues.
        starts : uint64 array
            First byte of each of these subjects in ``residues``.
        lengths : uint32 array
        """
        for segment in self.segments:
            inside = (subject_index >= segment.base) & (subject_index < segment.base + segment.entry.n_subjects)
            places = np.flatnonzero(inside)
            if places.size:
                stored = segment.positions[subject_index[places] - segment.base]
                yield places, segment.residues, segment.starts[stored], segment.lengths[stored]

    def record(self, subject_index: int) -> SequenceRecord:
        """A subject as a record."""
        return SequenceRecord(self.header(subject_index), self.codes(subject_index), self.alphabet)

    def __iter__(self) -> Iterator[SequenceRecord]:
        """All subjects in the order of the FASTA."""
        return map(self.record, range(self.n_subjects))

    def partitions(self, max_residues: int | None = None) -> Iterator[Partition]:
        """All subjects in stored order, in pieces of like length; a piece never spans two segments.

        Parameters
        ----------
        max_residues : int, optional
            Residues a piece may have; one subject that has more is a piece of its own. None: a segment is one piece.
        """
        for segment in self.segments:
            subject_index = segment.order
            if segment.base:
                subject_index = segment.order + np.uint32(segment.base)
            whole = Partition(segment.residues, segment.starts, segment.lengths, subject_index)
            if max_residues is not None:
                yield from whole.split(max_residues)
            elif len(whole):
                yield whole

    def _find(self, subject_index: int) -> tuple[Segment, int]:
        if not 0 <= subject_index < self.n_subjects:
            raise IndexError(f"subject {subject_index} of {self.n_subjects}")
        segment = self.segments[bisect_right(self._bases, subject_index) - 1]
        return segment, subject_index - segment.base


def _load_catalogue(folder: Path) -> Catalogue:
    if is_staging(Path(os.path.abspath(folder))):
        raise DatabaseError(f"{folder} is the leftover of an unfinished build, no database; index the FASTA again")
    try:
        if not folder.exists():
            raise DatabaseError(f"{folder} does not exist; `swsearch index FASTA -o {folder}` makes a database")
        if not folder.is_dir():
            with open(folder, "rb") as file:
                is_sequences = file.read(8).startswith(_SEQUENCE_STARTS)
            if is_sequences:
                raise DatabaseError(
                    f"{folder} is a sequence file, no packed database; index it first: "
                    f"`swsearch index {folder} -o {folder}.swdb`"
                )
            raise DatabaseError(f"{folder} is a file, no packed database (a folder with {CATALOGUE})")
        text = (folder / CATALOGUE).read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise DatabaseError(f"{folder} is no packed database: it has no {CATALOGUE}") from error
    except OSError as error:
        raise DatabaseError(f"{folder} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise DatabaseError(f"{folder} is damaged: {CATALOGUE} is not UTF-8; index the FASTA again") from error
    try:
        return read_catalogue(text)
    except ValueError as error:
        raise DatabaseError(f"{folder} cannot be used: {error}; index the FASTA again") from error


def _mapped(folder: Path, entry: SegmentEntry, name: str, n_items: int | None = None) -> np.ndarray[Any, np.dtype[Any]]:
    """One array of a segment, mapped read-only, its size checked against the catalogue."""
    path = folder / f"{name}.bin"
    dtype = np.dtype(ARRAY_DTYPES[name])
    expected = entry.files[name].size
    if n_items is not None and expected != n_items * dtype.itemsize:
        raise DatabaseError(f"{path}: the catalogue gives it {expected} bytes for {n_items} subjects")
    try:
        size = path.stat().st_size
        if size != expected:
            advice = "the database is damaged, index the FASTA again"
            raise DatabaseError(f"{path} has {size} bytes, {expected} are expected; {advice}")
        if size == 0:
            return np.empty(0, dtype=dtype)
        return np.asarray(np.memmap(path, dtype=dtype, mode="r"))
    except OSError as error:
        raise DatabaseError(f"{path} cannot be read: {error.strerror or error}; the database is damaged") from error
