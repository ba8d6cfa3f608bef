"""The reader of packed databases: arrays are mapped into memory as they are on disk, headers are read individually.

A search opens a :class:`PackedDatabase` (:mod:`swsearch.database.opening`), passes its partitions to the engines, and
looks up the headers and residues of the hits. ``subject_index`` is the 0-based index of a subject in FASTA order over
all segments, without removed subjects; it is also its index in an export.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from swsearch.arrays import distinct
from swsearch.database.catalogue import joined_catalogue
from swsearch.database.format import Catalogue
from swsearch.database.partition import Partition
from swsearch.database.segment import Segment, header_blocks, parts_of, shifted
from swsearch.errors import DatabaseError, InputError
from swsearch.hits.result import DIGEST_JOINT
from swsearch.sequences.alphabet import ALPHABETS, Alphabet
from swsearch.sequences.record import SequenceRecord, split_header
from swsearch.threads import beat
from swsearch.typing import Closeable, Codes, Lengths, Offsets, SubjectIndex
from swsearch.words import counted, named_twice

if TYPE_CHECKING:
    from swsearch.database.stored_taxonomy import DatabaseTaxonomy

PIPES: Final = ("<stdin>", "<pipe>")
"""Addresses of sequences that were read from a pipe."""


@dataclass(frozen=True)
class DatabasePart:
    """What is wanted of a database; None stands for anything.

    ``digest`` is the one that the database must have. ``segments`` are those of a slice, by their numbers from 0; the
    files of the others need not be there. The subjects of a slice keep their ``subject_index``, and its catalogue, with
    ``n_subjects``, ``n_residues`` and ``digest``, is that of the whole database. The same content can be divided into
    segments in several ways, so the numbers have a meaning only together with the :attr:`Catalogue.layout`.
    """

    digest: str | None = None
    segments: tuple[int, ...] | None = None
    layout: str | None = None


@dataclass(frozen=True, eq=False)
class Member:
    """One of the databases of which a :class:`PackedDatabase` consists.

    ``name`` is what its user wrote, for messages. ``address`` is the absolute path of a folder, the URL of one in an
    object store, or the absolute path of a sequence file without symbolic links; ``<stdin>`` or ``<pipe>`` for a pipe.

    ``folder`` is in the cache of this node if the database ``is_cached``: one of an object store, or a sequence file.
    ``segments`` are those that are open, with the ``subject_index`` that their subjects have in this database alone,
    and ``numbers`` their numbers among all segments of the catalogue, from 0. ``taxonomy_arrays`` are those of the
    stored taxonomy by their names, None if there is none.
    """

    name: str
    address: str
    folder: Path
    catalogue: Catalogue
    segments: tuple[Segment, ...]
    numbers: tuple[int, ...]
    taxonomy_arrays: Mapping[str, NDArray[Any]] | None
    is_cached: bool = False

    def part(self, segments: Collection[int]) -> Member:
        """The same database with these of its open segments only."""
        chosen = tuple(segments)
        return replace(
            self,
            segments=tuple(self.segments[place] for place in chosen),
            numbers=tuple(self.numbers[place] for place in chosen),
        )

    @property
    def location(self) -> str:
        """The address without symbolic links, for the records of a search."""
        return os.path.realpath(self.address) if os.path.isabs(self.address) else self.address

    def has_content(self, digest: str) -> bool:
        """Whether the subjects are those of a database with this digest, apart from compactions."""
        return digest in (self.catalogue.digest, *self.catalogue.former_digests)

    @property
    def opened_part(self) -> DatabasePart:
        """What is open, for another process."""
        if len(self.numbers) == len(self.catalogue.segments):
            return DatabasePart(self.catalogue.digest)
        return DatabasePart(self.catalogue.digest, self.numbers, self.catalogue.layout)

    @property
    def reopened_from(self) -> str:
        """What opens the same database in another process: its address, or the folder in the cache for a pipe.

        The folder is certain to be there only as long as the database is open.
        """
        return os.path.abspath(self.folder) if self.address in PIPES else self.address


class PackedDatabase(Closeable):
    r"""One packed database, or several as one, open for reading; a context manager.

    The subjects of several databases follow each other, as in one FASTA of all their sequences: the segments of each
    database have another ``subject_index``, behind the subjects of all databases before it. Nothing is copied. The
    search space, the order of equal hits and all numbers of subjects are therefore those of a database that was indexed
    from all FASTA files, and so is the result of a search.

    :func:`swsearch.database.opening.open_database` opens it, and reads only the catalogue; arrays are read when they
    are used. Threads may share the object. Returned arrays stay valid after :meth:`close`, which only releases the
    maps. Pickling saves paths and digests; unpickling opens the databases again and fails if their content has changed.
    A database that is changed on the disk (:mod:`swsearch.database.changes`) remains at its generation while it is
    open: the files stay mapped, and no change writes to a file in use.

    Parameters
    ----------
    members : sequence of Member
        At least one, in the order of the subjects.
    release : callable
        Called when the database is closed.

    Raises
    ------
    InputError
        There is no member; two have the same content, or different alphabets; or all together have more than 2^32 - 1
        subjects.

    >>> import tempfile
    >>> from swsearch.database.builder import build_database
    >>> from swsearch.database.opening import open_database
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "two.fa").write_text(">P1 a kinase\nMKVLL\n>P2\nWYr\n")
    ...     _ = build_database(f"{folder}/two.fa", f"{folder}/two.swdb")
    ...     with open_database(f"{folder}/two.swdb") as database:
    ...         print(database.n_subjects, database.header(0), database.record(1).letters)
    2 P1 a kinase WYr
    """

    def __init__(self, members: Sequence[Member], release: Callable[[], None] = lambda: None) -> None:
        _check_members(members)
        self.members = tuple(members)
        """The databases, in the order of their subjects."""
        self._release = release
        self.catalogue = joined_catalogue([member.catalogue for member in members])
        """That of the database; that of all of them together, if there are several."""
        self._n_before = list(accumulate((member.catalogue.n_subjects for member in members), initial=0))
        self._segments = tuple(
            segment
            for member, n_before in zip(members, self._n_before, strict=False)
            for segment in shifted(member.segments, n_before)
        )
        self.is_closed = False
        """Whether :meth:`close` was called; nothing can then be read through this object."""
        self.n_subjects = self.catalogue.n_subjects
        """Number of subjects, without removed ones."""
        self._parts = parts_of(self._segments)
        self._bases = [part[0].numbering.base for part in self._parts]

    def part(self, segments: Collection[int]) -> PackedDatabase:
        """The slice of an open whole database with these segments of :attr:`catalogue`; it shares the maps."""
        parts = []
        first = 0
        for member in self.members:
            stop = first + len(member.catalogue.segments)
            parts.append(member.part([number - first for number in sorted(segments) if first <= number < stop]))
            first = stop
        return PackedDatabase(parts)

    def has_content(self, digests: Sequence[str]) -> bool:
        """Whether the subjects and their indices are those of databases with these digests, apart from compactions."""
        return len(digests) == len(self.members) and all(map(Member.has_content, self.members, digests))

    def check_searched(self, digests: Sequence[str]) -> None:
        """Check that the subjects are those of a search with these digests, with their indices, as :meth:`has_content`.

        Raises
        ------
        DatabaseError
            The content has changed, or the search was of another number of databases.
        """
        if len(digests) != len(self.members):
            raise DatabaseError(f"{self.name}: the search was of {counted(len(digests), 'database')}")
        for member, digest in zip(self.members, digests, strict=True):
            if not member.has_content(digest):
                problem = f"{member.name} has other content than the database that was searched"
                raise DatabaseError(f"{problem} ({digest[:12]}…)")

    def close(self) -> None:
        """Release the maps; the database cannot be read through this object afterwards."""
        self.is_closed = True
        self._segments = ()
        self._parts = []
        self.members = tuple(replace(member, segments=()) for member in self.members)
        self._release()

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The segments that are open; raises DatabaseError if the database is closed."""
        self.check_open()
        return self._segments

    @property
    def parts(self) -> list[tuple[Segment, ...]]:
        """The slices together, if there are some, and each further segment by itself; raises as :attr:`segments`."""
        self.check_open()
        return self._parts

    def check_open(self) -> None:
        """Raise DatabaseError if the database is closed."""
        if self.is_closed:
            raise DatabaseError(f"{self.name} is closed; keep it open until all results are read, or open it again")

    def __reduce__(self) -> tuple[Any, ...]:
        from swsearch.database.opening import open_database

        parts = [member.opened_part for member in self.members]
        return partial(open_database, parts=parts), ([member.reopened_from for member in self.members],)

    @property
    def path(self) -> Path:
        """The folder; the first one, if there are several databases."""
        return self.members[0].folder

    @property
    def name(self) -> str:
        """The databases as their user wrote them, for messages."""
        *others, last = (member.name for member in self.members)
        return f"{', '.join(others)} and {last}" if others else last

    @property
    def locations(self) -> tuple[str, ...]:
        """The :attr:`Member.location` of each database."""
        return tuple(member.location for member in self.members)

    @property
    def digests(self) -> tuple[str, ...]:
        """The digest of each database."""
        return tuple(member.catalogue.digest for member in self.members)

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
        """SHA-256 of the content, in hexadecimal; equal digests mean equal content. Those of several are joined."""
        return self.catalogue.digest

    @cached_property
    def taxonomy(self) -> DatabaseTaxonomy | None:
        """The organisms of the subjects; None if no database has stored them."""
        if all(member.taxonomy_arrays is None for member in self.members):
            return None
        self.check_open()
        from swsearch.database.stored_taxonomy import DatabaseTaxonomy

        return DatabaseTaxonomy(self.members, self._n_before)

    @property
    def taxonomy_digest(self) -> str | None:
        """SHA-256 of the stored organisms, in hexadecimal; None if there are none. Those of several are joined."""
        return DIGEST_JOINT.join(filter(None, (member.catalogue.taxonomy_digest for member in self.members))) or None

    @property
    def subject_index(self) -> SubjectIndex:
        """The ``subject_index`` of all subjects, ascending; uint32. A slice has only those of its segments."""
        found = [np.empty(0, dtype=np.uint32)]
        for segment in self.segments:
            fasta_indices = segment.whole_indices(segment.kept(0, segment.entry.n_subjects))
            found.append(segment.numbering.subject_index(fasta_indices))
        return np.sort(np.concatenate(found))

    def __len__(self) -> int:
        return self.n_subjects

    def __getitem__(self, name: int | str) -> SequenceRecord:
        """A subject by its index (negative: from the end), or by its identifier, the first word of its header.

        Raises
        ------
        IndexError, KeyError
            There is none; the message names it.
        """
        if not isinstance(name, str):
            return self.record(range(self.n_subjects)[name])
        for subject_index, header in self.headers():
            if split_header(header)[0] == name:
                return self.record(subject_index)
        raise KeyError(f"{self.name} has no sequence {name!r}; an identifier is the whole first word of a header")

    def header(self, subject_index: int) -> str:
        """The header of a subject without ``>``; bytes that are not UTF-8 are surrogate escapes."""
        segment, fasta_index = self._find(subject_index)
        return segment.header(fasta_index).decode("utf-8", "surrogateescape")

    def headers(self) -> Iterator[tuple[int, str]]:
        """The ``subject_index`` and the header of all subjects, in FASTA order."""
        for part in self.parts:
            for fasta_indices, headers in header_blocks(part):
                beat()
                yield from zip(part[0].numbering.subject_index(fasta_indices).tolist(), headers, strict=True)

    def length(self, subject_index: int) -> int:
        """Number of residues of a subject."""
        segment, fasta_index = self._find(subject_index)
        return segment.stored_range(fasta_index)[2]

    def lengths(self, subject_index: SubjectIndex) -> Lengths:
        """Numbers of residues of subjects; uint32, in the shape of ``subject_index``, each below ``n_subjects``."""
        lengths = np.empty(subject_index.size, dtype=np.uint32)
        for segment, inside, fasta_indices in self.located(subject_index.ravel()):
            lengths[inside] = segment.lengths_of(fasta_indices)
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
            lengths = segment.partition().lengths  # ascending
            found += [lengths[:-1][lengths[1:] != lengths[:-1]], lengths[-1:]]
        return distinct(np.concatenate(found))

    def repeats(self) -> tuple[int, int]:
        """Numbers of subjects that are equal to others of their segment, or part of them, and of their residues."""
        parts = [(part.lengths, part.repeats) for part in self.partitions() if part.repeats is not None]
        rows = [lengths[repeats[:, 0]] for lengths, repeats in parts]
        return sum(map(len, rows)), sum(int(lengths.sum(dtype=np.uint64)) for lengths in rows)

    def codes(self, subject_index: int) -> Codes:
        """Residue codes of a subject; uint8, shape (length,), a read-only view, checked to be letters."""
        return self._codes(subject_index, 0, None)

    def letters(self, subject_index: int, start: int = 0, stop: int | None = None) -> str:
        """The letters of a subject from ``start`` to ``stop`` (0-based, half-open; None: its end), as written."""
        return self.alphabet.decode(self._codes(subject_index, start, stop))

    def _codes(self, subject_index: int, start: int, stop: int | None) -> Codes:
        segment, fasta_index = self._find(subject_index)
        residues, begin, length = segment.stored_range(fasta_index)
        first, last, _ = slice(start, stop).indices(length)
        codes = residues[begin + first : begin + max(first, last)]
        segment.check_letters(codes, self.alphabet)
        return codes

    def stored_ranges(
        self, subject_index: SubjectIndex, *, checked: bool = True
    ) -> Iterator[tuple[NDArray[np.intp], Codes, Offsets, Lengths]]:
        """Where several subjects are, segment by segment, ``checked`` to be letters.

        A subject is followed by padding up to the next multiple of 16, and then by other subjects.

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
            for start, length in zip(starts.tolist(), lengths.tolist(), strict=True) if checked else ():
                segment.check_letters(segment.residues[start : start + length], self.alphabet)
            yield inside, segment.residues, starts, lengths

    def record(self, subject_index: int) -> SequenceRecord:
        """A subject as a record."""
        return SequenceRecord(self.header(subject_index), self.codes(subject_index), self.alphabet)

    def __iter__(self) -> Iterator[SequenceRecord]:
        """All subjects in the order of the FASTA."""
        return map(self.record, range(self.n_subjects))

    def partitions(self, max_residues: int | None = None) -> Iterator[Partition]:
        """Subjects in stored order, in partitions of similar lengths; no partition spans two segments.

        Parameters
        ----------
        max_residues : int, optional
            Largest number of residues of a partition; a longer subject is a separate partition. By default, each
            segment is one partition.
        """
        for segment in self.segments:
            yield from segment.partition().split(max_residues)

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


def _check_members(members: Sequence[Member]) -> None:
    if not members:
        raise InputError("no database is named; give the path of at least one")
    first = members[0]
    for place, member in enumerate(members):
        name, digest, alphabet = member.name, member.catalogue.digest, member.catalogue.alphabet
        if alphabet != first.catalogue.alphabet:
            problem = f"{name} is {alphabet}, {first.name} is {first.catalogue.alphabet}"
            raise InputError(f"{problem}; databases of one alphabet are searched together: leave one of them out")
        # A compaction changes the digest, but not the content.
        equal = (one for one in members[:place] if one.has_content(digest) or member.has_content(one.catalogue.digest))
        if (other := next(equal, None)) is not None:
            same = "is named twice" if other.name == name else f"has the content of {other.name}"
            raise InputError(named_twice(f"{name} {same}", "subjects", "database"))
