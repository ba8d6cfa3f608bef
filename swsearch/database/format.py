"""The on-disk format of the packed database: its specification, its constants, and the records of its catalogue.

A packed database is a folder. Its ``catalogue.json`` names all other data of the database; a folder without a valid
catalogue is not a database. :mod:`swsearch.database.catalogue` converts the catalogue between JSON text and a
:class:`Catalogue`, and checks it. The arrays are written by :mod:`swsearch.database.segment_writer` and read by
:mod:`swsearch.database.reader`.

The sequences are stored in one or more *segments*. A segment is a folder of flat little-endian arrays, where n is the
number of its subjects:

=====================  =======================  ============================================================
file                   dtype, shape             meaning
=====================  =======================  ============================================================
``residues.bin``       uint8                    residue codes of all subjects in stored order; each subject
                                                starts at a multiple of 16 bytes, gaps are filled with code
                                                31, and the last 64 bytes of the file are code 31
``starts.bin``         uint64 (n,)              offset in ``residues.bin`` of each stored subject, in bytes
``lengths.bin``        uint32 (n,)              number of residues of each stored subject
``order.bin``          uint32 (n,)              FASTA index of each stored subject
``positions.bin``      uint32 (n,)              stored position of each subject of the FASTA
``headers.bin``        bytes                    headers without ``>``, in FASTA order
``header_ends.bin``    uint64 (n,)              offset in ``headers.bin`` of the end of each header, exclusive
``removed-G.bin``      uint32 (r,)              FASTA indices of the r removed subjects, ascending; present
                                                only if subjects were removed
``indices.bin``        uint32 (n,)              only in a slice: FASTA index in the whole segment of each subject,
                                                in FASTA order of the slice; ascending
``repeats.bin``        uint32 (e, 2)            stored positions of e subjects whose residues are those of an
                                                earlier one in stored order, or part of a longer one's,
                                                ascending, each with that of the first of the equal ones, or
                                                of a longer one that is not listed itself; present only if
                                                there are any
=====================  =======================  ============================================================

The *FASTA index* of a subject is its 0-based index in the FASTA from which the segment was built, and its *stored
position* is its 0-based index in *stored order*. Stored order is ascending length, and ascending FASTA index among
subjects of equal length. Neighbouring subjects therefore have similar lengths, the lanes of a SIMD batch or the threads
of a warp finish at nearly the same time, and any range of stored positions is a partition.

:mod:`swsearch.sequences.alphabet` defines the residue codes. Four residues form one 32-bit word of a subject, the first
residue in the lowest byte. Because subjects start at multiples of 16 bytes, the CPU can load complete vectors and the
GPU 128-bit words. Because of the padding at the end of the file, a vector load at the last residue stays inside the
file. Engines read these arrays unchanged, mapped into memory.

**Slices.** The subjects of a FASTA may be dealt into K segments, the *slices*, so that K workers can each hold one. The
segment that the same FASTA would have without slices is the *whole segment*; it is not stored. A slice has the arrays
of a segment that was built from a FASTA with only its subjects, in their order, and ``indices.bin``, which gives their
FASTA indices in the whole segment. Every subject of the whole segment is in exactly one slice. Subjects are dealt by
stored order, from the longest to the shortest: in rows of K subjects, the first row to slices 1 to K, the second to
slices K to 1, and so on in turns. So the slices have equally many subjects, except for one, and nearly equally many
residues; a reader MUST NOT rely on this rule. The slices are the first K segments of the catalogue, in order; further
segments are not sliced. ``subject_index`` numbers the subjects of the slices by their FASTA indices in the whole
segment: neither it, nor an export, nor a report depends on the slices. The catalogue's field ``whole`` is the entry of
the whole segment, with the sizes and digests that its files would have; the digest of the database is computed from it
in place of the slices, and is therefore that of the same content without slices. The file ``removed-G.bin`` of the
whole segment exists, in the folder of the database: a reader that opens one slice needs the removed subjects of all
slices to compute ``subject_index``.

**Changes.** A *change* (:mod:`swsearch.database.changes`) makes a new *generation* G, written with at least six digits.
A change adds files and then replaces the catalogue; it never writes to a file that a catalogue has named. An addition
of FASTA files adds a new segment, ``segment-G``, after the existing ones. A removal writes a file ``removed-G.bin``
into each affected segment; this file also lists the subjects that were removed from the segment earlier. Readers do not
report removed subjects: ``subject_index`` counts the remaining subjects of all segments, in the order of the catalogue,
and is therefore always the index of the subject in an export. The arrays of a segment contain the removed subjects
until a compaction rewrites the remaining subjects as one segment, or as slices. Its arrays are identical, byte for
byte, to those of a fresh build from the exported FASTA. A segment of generation G is named ``segment-G``, and slice
number S of it ``segment-G-slice-S`` with at least three digits.

**Taxonomy.** A database may state which organisms its sequences come from. The folder ``taxonomy-G`` of generation G
has the tree of these organisms and all their ancestors, as the arrays of :mod:`swsearch.taxonomy.tree`, and
three arrays more. A *set* is the taxonomy ids of a sequence, and a *row* is the index of a sequence in the FASTA of all
segments in the order of the catalogue, with the whole segment in place of its slices, removed subjects included:

=====================  =======================  ============================================================
file                   dtype, shape             meaning
=====================  =======================  ============================================================
``set_of.bin``         uint32 (r,)              number of the set of each row, from 1; 0 for no id. Rows from
                                                r on were added later; their headers state their ids
``set_taxids.bin``     uint32                   the ids of all sets, one set after another
``set_ends.bin``       uint32 (s,)              end of each set in ``set_taxids``, exclusive
=====================  =======================  ============================================================

The catalogue has the field ``taxonomy`` if there is such a folder; a program may ignore it. It is not part of the
digest, because scores and E-values do not depend on it.

**Repeats.** Of equal subjects, a search scores the first one only. No part of a subject scores more than the subject,
so a search for high scores scores a part only if the whole reaches them. A program may ignore ``repeats.bin`` and the
field ``repeats`` of a segment, which is present if there is this file: they are not part of the digest.

**Versions.** A catalogue without removals has version 1. A catalogue with removals has version 2, and its segments have
the field ``removed`` (null or the file). A program that supports only version 1 would count removed subjects; the
version makes it refuse the database instead. A catalogue with slices has version 3, a field ``whole``, and in each
segment the fields ``removed`` and ``indices`` (null or the file). The field ``former_digests`` is present if a
compaction has changed the digest of the same content; a program may ignore it.

**Checks.** A reader MUST refuse a catalogue if its ``format`` or ``version`` is unknown, if its ``checksum`` is not
that of its other fields, if a field has the wrong type or is out of range, or if it names a file that is missing, is
not a regular file, or does not have the stated size. The names of folders and files MUST be those above, so that no
name refers to a path outside the database. ``swsearch db verify`` MUST also compare the SHA-256 of each file. This
program checks

- *when a database is opened*: all fields of the catalogue (only white space in its JSON may differ), the type and size
  of every file, and that ``removed-G.bin`` contains ascending FASTA indices;
- *at the first use of a segment's subjects*: that ``starts``, ``lengths`` and the size of ``residues`` agree, that
  ``order`` contains valid FASTA indices, and that ``repeats`` grow and name earlier subjects of the same length, or
  longer ones;
- *at each access to a subject*: that ``positions`` is the inverse of ``order`` for this subject, that the header ends
  are valid, and that residues to be aligned or written are letters;
- *only in verification and compaction*: the SHA-256 of every file. Only these detect a letter that was changed to
  another letter, or a header that was changed to another header.

**Concurrency.** The catalogue is always written last and by one rename; a folder that has a catalogue is therefore
complete. A reader MUST read the catalogue again after it has mapped the files: if the catalogue has changed, files of
two generations may be mixed, and the reader MUST start again. A writer MUST hold the lock (``flock``) of
``writer.lock`` in the folder. It removes what writers that ended early left behind: segments that the catalogue does
not name, and ``removed-G.bin`` files of a later generation.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from swsearch import file_registry
from swsearch.taxonomy.tree import ARRAY_DTYPES as TREE_DTYPES

FORMAT_NAME: Final = file_registry.FORMAT_NAME
CATALOGUE: Final = file_registry.CATALOGUE
FORMAT_VERSIONS: Final = (1, 2, 3)
"""Supported versions. The lowest one is written that can represent the database."""
SUBJECT_ALIGNMENT: Final = 16
TAIL_PADDING: Final = 64
MAX_SUBJECT_LENGTH: Final = 2**31 - 2**16
"""Length of the longest subject, in residues; positions and scores fit in signed 32 bits."""
MAX_SUBJECTS: Final = 2**32 - 1
MAX_CATALOGUE_BYTES: Final = 1 << 28
"""Upper limit of the size of a catalogue, in bytes. A larger one would list some hundred thousand segments."""

ARRAY_DTYPES: Final = {
    "residues": "<u1",
    "starts": "<u8",
    "lengths": "<u4",
    "order": "<u4",
    "positions": "<u4",
    "headers": "<u1",
    "header_ends": "<u8",
}
"""Name and dtype of each array of a segment; the array ``name`` is stored in the file ``name.bin``."""
TOMBSTONE_DTYPE: Final = "<u4"
TAXONOMY_DTYPES: Final = {**TREE_DTYPES, "set_of": "<u4", "set_taxids": "<u4", "set_ends": "<u4"}
"""Name and dtype of each array of a taxonomy."""
OPTIONAL_DTYPES: Final = {"indices": "<u4", "repeats": "<u4"}
"""The same for the arrays that only slices have, and only segments in which subjects have the residues of others."""
SEGMENT_DTYPES: Final = {**ARRAY_DTYPES, **OPTIONAL_DTYPES}
"""Both."""
MAX_SLICES: Final = 128
"""Largest number of slices."""


@dataclass(frozen=True)
class FileEntry:
    """One array's file: its size in bytes and its SHA-256 in hexadecimal."""

    size: int
    sha256: str


@dataclass(frozen=True)
class Tombstones:
    """The removed subjects of a segment: their number, their residues, and the file of their FASTA indices."""

    name: str
    n_subjects: int
    n_residues: int
    file: FileEntry


@dataclass(frozen=True)
class SegmentEntry:
    """One segment: the name of its folder, the statistics of its arrays (including removed subjects), and its files.

    ``indices`` is the file ``indices.bin`` of a slice, and None in any other segment; ``repeats`` is ``repeats.bin``,
    and None if no subject has the residues of another.
    """

    name: str
    n_subjects: int
    n_residues: int
    shortest: int
    longest: int
    files: dict[str, FileEntry]
    removed: Tombstones | None = None
    indices: FileEntry | None = None
    repeats: FileEntry | None = None

    @property
    def is_slice(self) -> bool:
        """Whether the segment is a slice of the whole segment."""
        return self.indices is not None

    @property
    def arrays(self) -> dict[str, FileEntry]:
        """The files of all arrays, by the names of the arrays."""
        found = {name: self.files[name] for name in ARRAY_DTYPES}
        optional = {name: getattr(self, name) for name in OPTIONAL_DTYPES}
        return found | {name: file for name, file in optional.items() if file is not None}

    @property
    def n_removed(self) -> int:
        """Number of subjects that were removed from the database but remain in the arrays."""
        return 0 if self.removed is None else self.removed.n_subjects

    @property
    def n_removed_residues(self) -> int:
        """Number of residues of the removed subjects."""
        return 0 if self.removed is None else self.removed.n_residues


@dataclass(frozen=True)
class TaxonomyEntry:
    """The taxonomy of a database: the name of its folder, and its files by the names of their arrays.

    ``n_rows`` is the number of rows when it was made, ``n_assigned`` the number of those with an id.
    """

    name: str
    n_taxa: int
    n_rows: int
    n_assigned: int
    files: dict[str, FileEntry]

    @property
    def digest(self) -> str:
        """SHA-256 of the content."""
        files = sorted((name, file.sha256) for name, file in self.files.items())
        return hashlib.sha256(repr(files).encode()).hexdigest()


@dataclass(frozen=True)
class Catalogue:
    """The content of ``catalogue.json``.

    Attributes
    ----------
    alphabet : str
        ``protein`` or ``dna``.
    digest : str
        SHA-256 of the digests of all files; equal digests mean equal content. After additions and removals, the digest
        differs from that of a fresh build until the database is compacted.
    generation : int
        1 for a fresh build; increased by one with each change of the database.
    sources : tuple of str
        Names of the files from which the sequences were read, without folders.
    program : str
        Name and version of the program that wrote this generation.
    created : str
        UTC time of writing in ISO 8601; not part of the digest.
    segments : tuple of SegmentEntry
    former_digests : tuple of str
        Digests that this content had before it was compacted, oldest first. Runs that name one of
        these digests searched the same content.
    whole : SegmentEntry or None
        The segment of which the first segments are slices; its files do not exist. None if there are no slices.
    taxonomy : TaxonomyEntry or None
        The organisms of the sequences; None if they are not stored. Not part of the digest.
    """

    alphabet: str
    digest: str
    generation: int
    sources: tuple[str, ...]
    program: str
    created: str
    segments: tuple[SegmentEntry, ...]
    former_digests: tuple[str, ...] = ()
    whole: SegmentEntry | None = None
    taxonomy: TaxonomyEntry | None = None

    @property
    def n_slices(self) -> int:
        """Number of slices; 0 if the database is not sliced."""
        return sum(segment.is_slice for segment in self.segments)

    @property
    def content(self) -> tuple[SegmentEntry, ...]:
        """The segments with the whole segment in place of its slices."""
        return self.segments if self.whole is None else (self.whole, *self.segments[self.n_slices :])

    @property
    def layout(self) -> str:
        """SHA-256 that also depends on the division into segments and slices, which the digest does not."""
        files = sorted((name, file.sha256) for name, file in self._segment_files.items())
        return hashlib.sha256(f"{self.digest} {files}".encode()).hexdigest()

    @property
    def taxonomy_digest(self) -> str | None:
        """SHA-256 of the stored organisms, in hexadecimal; None if they are not stored."""
        return None if self.taxonomy is None else self.taxonomy.digest

    @property
    def n_subjects(self) -> int:
        """Number of subjects in all segments, without removed ones."""
        return sum(segment.n_subjects - segment.n_removed for segment in self.segments)

    @property
    def n_residues(self) -> int:
        """Number of residues in all segments, without padding and removed subjects."""
        return sum(segment.n_residues - segment.n_removed_residues for segment in self.segments)

    @property
    def n_removed(self) -> int:
        """Number of subjects that were removed from the database but remain in the arrays."""
        return sum(segment.n_removed for segment in self.segments)

    @property
    def n_bytes(self) -> int:
        """Size in bytes of all files that the catalogue names."""
        return sum(file.size for file in self.files.values())

    @property
    def files(self) -> dict[str, FileEntry]:
        """All files that the catalogue names, by their paths below the folder of the database."""
        taxonomy = self.taxonomy
        extra = {} if taxonomy is None else {f"{taxonomy.name}/{name}.bin": one for name, one in taxonomy.files.items()}
        return {**self._segment_files, **extra}

    def files_of(self, numbers: Collection[int]) -> dict[str, FileEntry]:
        """The files for a reader of the segments with these numbers, from 0: all but those of other segments."""
        others = {segment.name for number, segment in enumerate(self.segments) if number not in numbers}
        return {name: file for name, file in self.files.items() if name.partition("/")[0] not in others}

    @property
    def _segment_files(self) -> dict[str, FileEntry]:
        found: dict[str, FileEntry] = {}
        for segment in self.segments:
            names = {f"{name}.bin": file for name, file in segment.arrays.items()}
            if segment.removed is not None:
                names[segment.removed.name] = segment.removed.file
            found.update({f"{segment.name}/{name}": file for name, file in names.items()})
        if self.whole is not None and self.whole.removed is not None:
            found[self.whole.removed.name] = self.whole.removed.file
        return found


def content_digest(alphabet: str, segments: tuple[SegmentEntry, ...]) -> str:
    """The database's identity: SHA-256 over alphabet and file digests, in a fixed order.

    ``segments`` are those of :attr:`Catalogue.content`.
    """
    # The 1 is the version of this digest, not of the format; it must not change, or digests of databases would change.
    digest = hashlib.sha256(f"{FORMAT_NAME} 1 {alphabet}\n".encode())
    for segment in segments:
        for name in ARRAY_DTYPES:
            digest.update(f"{name} {segment.files[name].sha256}\n".encode())
        if segment.removed is not None:
            digest.update(f"removed {segment.removed.file.sha256}\n".encode())
    return digest.hexdigest()


def padded(length: Any) -> Any:
    """Size in bytes, padding included, of a subject of this length, or of each of several in an integer array.

    >>> padded(0), padded(1), padded(16), padded(17)
    (0, 16, 16, 32)
    """
    return (length + (SUBJECT_ALIGNMENT - 1)) // SUBJECT_ALIGNMENT * SUBJECT_ALIGNMENT


def array_path(segment: Path, name: str) -> Path:
    """The file of one array of a segment."""
    return segment / f"{name}.bin"


def segment_name(generation: int, slice_number: int | None = None) -> str:
    """The folder of the segment that a generation adds, or of a slice of it; slices are numbered from 1.

    >>> segment_name(12), segment_name(12, 3)
    ('segment-000012', 'segment-000012-slice-003')
    """
    return f"segment-{generation:06}" + ("" if slice_number is None else f"-slice-{slice_number:03}")


def taxonomy_name(generation: int) -> str:
    """The folder of the taxonomy that a generation has stored.

    >>> taxonomy_name(2)
    'taxonomy-000002'
    """
    return f"taxonomy-{generation:06}"


def tombstones_name(generation: int) -> str:
    """The file with the FASTA indices of a segment's removed subjects, as written by a generation.

    >>> tombstones_name(3)
    'removed-000003.bin'
    """
    return f"removed-{generation:06}.bin"


SEGMENT_NAME: Final = re.compile(r"segment-[0-9]{6,18}(-slice-[0-9]{3})?")
TAXONOMY_NAME: Final = re.compile(r"taxonomy-[0-9]{6,18}")
TOMBSTONES_NAME: Final = re.compile(r"removed-([0-9]{6,18})\.bin")
"""What the functions of these names return."""
GENERATION: Final = re.compile(f"{SEGMENT_NAME.pattern}|{TAXONOMY_NAME.pattern}")
"""The names of the folders that generations add."""
