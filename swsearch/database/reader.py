"""The reader of a packed database: arrays are mapped into memory as they are on disk, headers are read individually.

A search opens a :class:`PackedDatabase` by its path, passes its partitions to the engines, and looks up the headers and
residues of the hits. ``subject_index`` is the 0-based index of a subject in FASTA order over all segments, without
removed subjects; it is also its index in an export.

A database may be changed while it is open (:mod:`swsearch.database.changes`). An open database remains at its
generation until it is closed: the files stay mapped, and no change writes to a file in use.
"""

from __future__ import annotations

import os
import shlex
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from swsearch.arrays import distinct
from swsearch.closeable import Closeable
from swsearch.database.catalogue_json import catalogue_text, read_catalogue
from swsearch.database.format import CATALOGUE, Catalogue
from swsearch.database.object_store import is_url, refuse_url
from swsearch.database.partition import Partition
from swsearch.database.segment import BLOCK_HEADERS, Segment, headers_of, map_segments, mapped_taxonomy, parts_of
from swsearch.errors import DatabaseError
from swsearch.file_registry import is_building, registry
from swsearch.hits.result import DIGEST_JOINT
from swsearch.sequences.alphabet import ALPHABETS, Alphabet
from swsearch.sequences.record import SequenceRecord
from swsearch.sequences.source import is_sequence_file
from swsearch.typing import Codes, Lengths, Offsets, SubjectIndex
from swsearch.words import counted

if TYPE_CHECKING:
    from swsearch.database.opening import Origin
    from swsearch.database.stored_taxonomy import DatabaseTaxonomy

MAX_ATTEMPTS: Final = 20
"""Largest number of attempts to open a database that is changed at the same time."""


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
        origin: Origin | None = None,
        cached: Closeable | None = None,
        taxonomy: Mapping[str, NDArray[Any]] | None = None,
    ) -> None:
        self.path = path
        """The folder; that of the cache for a database of an object store, or for a sequence file. That of the first of
        several joined databases."""
        self.origin = origin
        """Of what the folder of the cache was made; None for a database of this machine."""
        self._cached = cached
        self.catalogue = catalogue
        self._segments = segments
        self._is_closed = False
        self.n_subjects = catalogue.n_subjects
        """Number of subjects, without removed ones."""
        self._parts = parts_of(segments)
        self._bases = [part[0].numbering.base for part in self._parts]
        self._entries = [segment.entry for segment in segments]
        self.taxonomy_arrays = taxonomy
        """The arrays of the stored taxonomy, by their names; None if there is none."""

    @classmethod
    def open(cls, path: str | os.PathLike[str], segments: Collection[int] | None = None) -> PackedDatabase:
        """Open the database at ``path``, or one slice of it.

        Parameters
        ----------
        path : path
            A folder, or the URL of one in an object store, which is fetched into the cache of this node
            (:mod:`swsearch.database.object_store`); or a sequence file, which is packed there
            (:mod:`swsearch.database.sequence_files`). Nothing is done if the cache has it.
        segments : collection of int, optional
            A slice has some segments only, by their numbers from 0; the files of the others need not be there. Its
            subjects keep their ``subject_index``, and its catalogue, with ``n_subjects``, ``n_residues`` and
            ``digest``, is that of the whole database.

        Raises
        ------
        DatabaseError
            There is no database of this program's format at ``path``, or one of its files is missing or truncated; or
            it cannot be fetched or packed.
        InputError
            A sequence file cannot be read.
        """
        if not os.fspath(path):
            raise DatabaseError("the name of the database is empty; give its path")
        if is_url(os.fspath(path)) or is_sequence_file(path):
            from swsearch.database.opening import open_cached

            return open_cached(path, segments)
        folder = Path(path)
        catalogue = load_catalogue(folder)
        for _ in range(MAX_ATTEMPTS):
            failure = None
            try:
                mapped = map_segments(folder, catalogue, segments)
                taxonomy = mapped_taxonomy(folder, catalogue)
            except DatabaseError as error:
                failure = error
            # A concurrent change may have mixed two generations or removed files.
            before, catalogue = catalogue, load_catalogue(folder)
            if catalogue == before:
                if failure is not None:
                    raise failure
                return cls(folder, catalogue, mapped, taxonomy=taxonomy)
        raise DatabaseError(f"{folder} changes so often that it cannot be opened; wait until its writers have ended")

    @classmethod
    def open_content(
        cls,
        path: str | os.PathLike[str],
        digest: str,
        segments: Collection[int] | None = None,
        layout: str | None = None,
    ) -> PackedDatabase:
        """Open the database at ``path``, or some segments of it, if its content still has this digest.

        The same content can be divided into segments in several ways, so numbers of segments have a meaning only
        together with the ``layout`` of a catalogue (:attr:`Catalogue.layout`).

        Raises
        ------
        DatabaseError
            The database has another digest or layout, or cannot be opened.
        """
        database = cls.open(path, segments)
        if database.digest != digest:
            database.close()
            raise DatabaseError(f"{path} has been changed since it was opened; run the search again")
        if layout is not None and database.catalogue.layout != layout:
            database.close()
            raise DatabaseError(
                f"{path} has its content in other segments than those that were named; copy the database"
            )
        return database

    def part(self, segments: Collection[int]) -> PackedDatabase:
        """The slice of an open whole database with these segments, as :meth:`open` returns it; it shares the maps."""
        chosen = tuple(self.segments[number] for number in segments)
        return PackedDatabase(self.path, self.catalogue, chosen, self.origin, taxonomy=self.taxonomy_arrays)

    def has_content(self, digest: str) -> bool:
        """Whether the subjects are those of a database with this digest, with their indices, apart from compactions."""
        digests = digest.split(DIGEST_JOINT)
        return len(digests) == len(self.members) and all(map(_is_content, self.members, digests))

    def check_searched(self, digest: str) -> None:
        """Check that the subjects are those of a search with this digest, with their indices, as :meth:`has_content`.

        Raises
        ------
        DatabaseError
            The content has changed, or the search was of another number of databases.
        """
        digests = digest.split(DIGEST_JOINT)
        if len(digests) != len(self.members):
            raise DatabaseError(f"{self.name}: the search was of {counted(len(digests), 'database')}")
        for member, one in zip(self.members, digests, strict=True):
            if not _is_content(member, one):
                problem = f"{member.name} has other content than the database that was searched"
                raise DatabaseError(f"{problem} ({one[:12]}…)")

    def close(self) -> None:
        """Release the maps; the database cannot be read through this object afterwards."""
        self._is_closed = True
        self._segments = ()
        self._parts = []
        if self._cached is not None:
            self._cached.close()

    @property
    def is_closed(self) -> bool:
        """Whether :meth:`close` was called; nothing can then be read through this object."""
        return self._is_closed

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The segments that are open.

        Raises
        ------
        DatabaseError
            The database is closed.
        """
        self._check_open()
        return self._segments

    @property
    def parts(self) -> list[tuple[Segment, ...]]:
        """The slices together, if there are some, and each further segment by itself: the parts of an export.

        Raises
        ------
        DatabaseError
            The database is closed.
        """
        self._check_open()
        return self._parts

    def _check_open(self) -> None:
        if self._is_closed:
            raise DatabaseError(f"{self.name} is closed; keep it open until all results are read, or open it again")

    def __reduce__(self) -> tuple[Any, ...]:
        numbers = [number for number, entry in enumerate(self.catalogue.segments) if entry in self._entries]
        is_whole = len(numbers) == len(self.catalogue.segments)
        parts = (None, None) if is_whole else (numbers, self.catalogue.layout)
        return PackedDatabase.open_content, (self.address, self.digest, *parts)

    @property
    def members(self) -> tuple[PackedDatabase, ...]:
        """The database itself; or the databases of which :class:`swsearch.database.joined.JoinedDatabase` is made."""
        return (self,)

    def numbers_of_members(self, segments: Collection[int]) -> Iterator[tuple[PackedDatabase, list[int]]]:
        """The members, each with the numbers that it has for its own among these segments of :attr:`catalogue`."""
        yield self, sorted(segments)

    @property
    def name(self) -> str:
        """The database as its user wrote it, for messages."""
        return str(self.path) if self.origin is None else self.origin.name

    @property
    def address(self) -> str:
        """What opens the same database in another process: an absolute path or a URL.

        For a pipe, it is the folder in the cache, which is certain to be there only as long as the database is open.
        """
        given = None if self.origin is None else self.origin.address
        return given or os.path.abspath(self.path)

    @property
    def location(self) -> str:
        """Where the database is, for the records of a search.

        It is an absolute path without symbolic links, a URL, ``<stdin>`` for standard input, or ``<pipe>``.
        """
        return os.path.realpath(self.path) if self.origin is None else self.origin.location

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

    @cached_property
    def taxonomy(self) -> DatabaseTaxonomy | None:
        """The organisms of the subjects; None if they are not stored."""
        if self.taxonomy_arrays is None or self.catalogue.taxonomy is None:
            return None
        from swsearch.database.stored_taxonomy import DatabaseTaxonomy, first_rows

        rows = first_rows(self.catalogue)
        parts = [(part[0].numbering, rows[part[0].entry.name]) for part in self.parts]
        return DatabaseTaxonomy(self.path / self.catalogue.taxonomy.name, self.taxonomy_arrays, parts)

    @property
    def taxonomy_digest(self) -> str | None:
        """SHA-256 of the stored organisms, in hexadecimal; None if they are not stored."""
        return None if self.catalogue.taxonomy is None else self.catalogue.taxonomy.digest

    @property
    def subject_index(self) -> SubjectIndex:
        """The ``subject_index`` of all subjects, ascending; uint32. A slice has only those of its segments."""
        found = [one.subject_index(np.arange(one.entry.n_subjects, dtype=np.uint32)) for one in self.segments]
        return np.sort(np.concatenate([np.empty(0, dtype=np.uint32), *found]))

    def __len__(self) -> int:
        return self.n_subjects

    def header(self, subject_index: int) -> str:
        """The header of a subject without ``>``; bytes that are not UTF-8 are surrogate escapes."""
        segment, fasta_index = self._find(subject_index)
        return segment.header(fasta_index).decode("utf-8", "surrogateescape")

    def header_blocks(self) -> Iterator[tuple[SubjectIndex, list[str]]]:
        """All headers in FASTA order, in blocks; each block has the ``subject_index`` of its headers, uint32."""
        for part in self.parts:
            for first in range(0, part[0].n_whole, BLOCK_HEADERS):
                yield headers_of(part, first, first + BLOCK_HEADERS)

    def length(self, subject_index: int) -> int:
        """Number of residues of a subject."""
        return self.stored_range(subject_index)[2]

    def lengths(self, subject_index: SubjectIndex) -> Lengths:
        """Numbers of residues of subjects; uint32, in the shape of ``subject_index``, each below ``n_subjects``."""
        lengths = np.empty(subject_index.size, dtype=np.uint32)
        for segment, inside, fasta_indices in self.located(subject_index.ravel()):
            lengths[inside] = segment.lengths[segment.stored_at(fasta_indices)]
        return lengths.reshape(subject_index.shape)

    def located(self, subject_index: SubjectIndex) -> Iterator[tuple[Segment, NDArray[np.intp], SubjectIndex]]:
        """The segments of subjects, each with the indices in ``subject_index`` of its subjects and their FASTA indices.

        Parameters
        ----------
        subject_index : uint32 array, shape (n,)
            Each below ``n_subjects``.

        Raises
        ------
        DatabaseError
            The slices of the database do not have each subject once.
        """
        if len(self.segments) == 1:  # the usual case takes a quarter less time without the account of what was found
            inside, fasta_indices = self.segments[0].locate(subject_index)
            if len(inside) < len(subject_index):
                raise self._without_subject()
            if inside.size:
                yield self.segments[0], inside, fasta_indices
            return
        is_found = np.zeros(len(subject_index), dtype=np.bool_)
        for segment in self.segments:
            inside, fasta_indices = segment.locate(subject_index)
            is_found[inside] = True
            if inside.size:
                yield segment, inside, fasta_indices
        if not is_found.all():
            raise self._without_subject()

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

    def letters(self, subject_index: int, start: int = 0, stop: int | None = None) -> str:
        """The letters of a subject from ``start`` to ``stop`` (0-based, half-open; None: its end), as written."""
        segment, fasta_index = self._find(subject_index)
        residues, begin, length = segment.stored_range(fasta_index)
        first, last, _ = slice(start, stop).indices(length)
        codes = residues[begin + first : begin + max(first, last)]
        segment.check_letters(codes, self.alphabet)
        return self.alphabet.decode(codes)

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
        for segment, inside, fasta_indices in self.located(subject_index):
            stored = segment.stored_at(fasta_indices)
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

    def partitions(
        self, max_residues: int | None = None, segments: Collection[int] | None = None
    ) -> Iterator[Partition]:
        """Subjects in stored order, in partitions of similar lengths; no partition spans two segments.

        Parameters
        ----------
        max_residues : int, optional
            Largest number of residues of a partition; a longer subject is a separate partition. By default, each
            segment is one partition.
        segments : collection of int, optional
            Indices in ``segments`` of those whose subjects are wanted; by default, all of them. Subjects keep their
            ``subject_index`` in the whole database.
        """
        for number, segment in enumerate(self.segments):
            if segments is not None and number not in segments:
                continue
            whole = segment.partition()
            if max_residues is not None:
                yield from whole.split(max_residues)
            elif len(whole):
                yield whole

    def _find(self, subject_index: int) -> tuple[Segment, int]:
        if not 0 <= subject_index < self.n_subjects:
            raise IndexError(f"subject {subject_index} of {self.n_subjects}")
        for segment in self.parts[bisect_right(self._bases, subject_index) - 1]:
            fasta_index = segment.fasta_index(subject_index)
            if fasta_index is not None:
                return segment, fasta_index
        raise self._without_subject()

    def _without_subject(self) -> DatabaseError | IndexError:
        if len(self.segments) < len(self.catalogue.segments):
            return IndexError(f"a subject is in none of the segments of {self.name} that are open")
        advice = "`swsearch db verify` tells more; index the FASTA again"
        return DatabaseError(f"{self.name} is damaged, its slices do not have each subject once; {advice}")


def _is_content(database: PackedDatabase, digest: str) -> bool:
    return digest in (database.digest, *database.catalogue.former_digests)


def load_catalogue(folder: Path) -> Catalogue:
    """The catalogue of a database.

    Raises
    ------
    DatabaseError
        There is no database, or none of this program's format; the message says what was found instead.
    InputError
        An output of the same command is a file of it.
    """
    refuse_url(os.fspath(folder))
    if is_building(Path(os.path.abspath(folder))):
        raise DatabaseError(f"{folder} is the leftover of an unfinished build, no database; index the FASTA again")
    try:
        if not folder.is_dir():
            _refuse_blast(folder)
        if not folder.exists():
            raise DatabaseError(
                f"{folder} does not exist; `swsearch index FASTA -o {shlex.quote(str(folder))}` makes a database"
            )
        if not folder.is_dir():
            if is_sequence_file(folder):
                raise DatabaseError(
                    f"{folder} is a sequence file, no packed database; index it first: "
                    f"`swsearch index {folder} -o {folder}.swdb`"
                )
            raise DatabaseError(
                f"{folder} is neither a packed database (a folder with {CATALOGUE}) nor a sequence file"
            )
        catalogue = read_catalogue(catalogue_text(folder))
    except FileNotFoundError as error:
        raise DatabaseError(f"{folder} is no packed database: it has no {CATALOGUE}") from error
    except OSError as error:
        raise DatabaseError(f"{folder} cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise DatabaseError(f"{folder} cannot be used: {error}; index the FASTA again") from error
    registry().read_folder(folder)
    return catalogue


def _refuse_blast(path: Path) -> None:
    """Refuse a BLAST database, with the line that imports it."""
    from swsearch.database.blastdb import blast_name

    if (name := blast_name(path)) is not None:
        raise DatabaseError(f"{path} is a BLAST database; import it: `swsearch index --blastdb {name} -o {name}.swdb`")
