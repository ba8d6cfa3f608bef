"""The packed database on disk: the written specification, as constants and as words.

A database is a folder. ``catalogue.json`` names everything else in it, and a folder without a valid catalogue is no
database. The sequences lie in one or more *segments*, folders of flat little-endian arrays:

=====================  =======================  ============================================================
file                   dtype, shape             meaning
=====================  =======================  ============================================================
``residues.bin``       uint8                    residue codes of all subjects in stored order, each subject at
                                                a multiple of 16 bytes, gaps filled with code 31; 64 bytes of
                                                code 31 before the end of the file
``starts.bin``         uint64 (n,)              first byte of each stored subject in ``residues.bin``
``lengths.bin``        uint32 (n,)              residues of each stored subject
``order.bin``          uint32 (n,)              place in the FASTA of each stored subject
``positions.bin``      uint32 (n,)              stored place of each subject of the FASTA
``headers.bin``        bytes                    headers without ``>``, in the order of the FASTA
``header_ends.bin``    uint64 (n,)              byte after each header in ``headers.bin``
``removed-G.bin``      uint32 (r,)              places in the FASTA of the subjects that were removed, growing;
                                                only where some were
=====================  =======================  ============================================================

*Stored order* is by length, shortest first, and by place in the FASTA among equals: subjects that stand side by side
are of like length, so the lanes of a SIMD batch or the threads of a warp end together, and any range of stored places
is a partition. A residue byte is what :mod:`swsearch.sequences.alphabet` says; four residues are one 32-bit word of a
subject, lowest byte first. 16-byte starts let the CPU load whole vectors and the GPU 128-bit words; the tail of padding
lets a vector load at the last residue stay inside the file. Engines read these arrays as they are, mapped into memory.

A *change* (:mod:`swsearch.database.changes`) makes a new *generation*: it adds files and then replaces the catalogue,
and never writes to a file that a catalogue named. An added FASTA is a new segment, ``segment-G``, behind the others; a
removal writes ``removed-G.bin`` into each segment concerned, with the segment's earlier removals in it; G is the
generation in six digits or more. Removed subjects are not there for a reader: ``subject_index`` counts those that are
left, over the segments in the catalogue's order, so that it is at any time the place in the FASTA that an export gives.
The arrays of a segment keep the removed ones until a compaction rewrites what is left as one segment, the same to the
byte as that of a fresh build of the exported FASTA.

A catalogue without removals is of version 1, one with removals of version 2, whose segments have the field ``removed``
(null or the file): a program that knows version 1 alone would count the removed, and refuses it instead. The field
``former_digests`` is there where a compaction has changed the digest of the same content; programs may pass over it.

A reader MUST refuse a catalogue whose ``format`` or ``version`` it does not know, whose ``checksum`` is not that of its
other fields, or which names a file that is missing or not of the stated size. ``swsearch db verify`` MUST also compare
each file's SHA-256. The catalogue is the only thing written last and by one rename, so a folder that has one is whole.
A reader MUST read the catalogue again when it has mapped the files: where it is another now, files of two generations
may be mixed, and the reader begins again. A writer MUST hold the lock (``flock``) of ``writer.lock`` in the folder. It
removes what writers that died left: segments that the catalogue does not name, and removals of a later generation.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

FORMAT_NAME: Final = "swsearch packed database"
FORMAT_VERSIONS: Final = (1, 2)
"""Versions that are read; the lower one is written where it can say all."""
CATALOGUE: Final = "catalogue.json"
SUBJECT_ALIGNMENT: Final = 16
TAIL_PADDING: Final = 64
MAX_SUBJECT_LENGTH: Final = 2**31 - 2**16
"""Longest subject in residues: positions and scores stay in signed 32 bits."""
MAX_SUBJECTS: Final = 2**32 - 1

ARRAY_DTYPES: Final = {
    "residues": "<u1",
    "starts": "<u8",
    "lengths": "<u4",
    "order": "<u4",
    "positions": "<u4",
    "headers": "<u1",
    "header_ends": "<u8",
}
"""Arrays of a segment; the file of each is its name with ``.bin``."""
TOMBSTONE_DTYPE: Final = "<u4"


@dataclass(frozen=True)
class FileEntry:
    """One array's file: its size in bytes and its SHA-256 in hexadecimal."""

    size: int
    sha256: str


@dataclass(frozen=True)
class Tombstones:
    """Subjects of a segment that were removed: how many, the residues they have, and the file that names them."""

    name: str
    n_subjects: int
    n_residues: int
    file: FileEntry


@dataclass(frozen=True)
class SegmentEntry:
    """One segment: its folder's name, what its arrays hold (the removed counted), its files by array name."""

    name: str
    n_subjects: int
    n_residues: int
    shortest: int
    longest: int
    files: dict[str, FileEntry]
    removed: Tombstones | None = None

    @property
    def n_removed(self) -> int:
        """Subjects in the arrays that are no part of the database any more."""
        return 0 if self.removed is None else self.removed.n_subjects

    @property
    def n_removed_residues(self) -> int:
        """Residues of those."""
        return 0 if self.removed is None else self.removed.n_residues


@dataclass(frozen=True)
class Catalogue:
    """What ``catalogue.json`` says.

    Attributes
    ----------
    alphabet : str
        ``protein`` or ``dna``.
    digest : str
        SHA-256 over the files' own digests: equal digests are equal content, whoever built it, whenever. Content that
        came by additions and removals has another digest than a fresh build until it is compacted.
    generation : int
        1 for a fresh build; grows by one with each change to the database.
    sources : tuple of str
        Names of the files the sequences came from, without folders.
    program : str
        Name and version of the program that wrote this generation.
    created : str
        UTC time of that in ISO 8601; not part of the digest.
    segments : tuple of SegmentEntry
    former_digests : tuple of str
        Digests that this content had before it was compacted, oldest first: runs that name one searched the same.
    """

    alphabet: str
    digest: str
    generation: int
    sources: tuple[str, ...]
    program: str
    created: str
    segments: tuple[SegmentEntry, ...]
    former_digests: tuple[str, ...] = ()

    @property
    def n_subjects(self) -> int:
        """Subjects in all segments, without the removed."""
        return sum(segment.n_subjects - segment.n_removed for segment in self.segments)

    @property
    def n_residues(self) -> int:
        """Residues in all segments, without padding and the removed."""
        return sum(segment.n_residues - segment.n_removed_residues for segment in self.segments)

    @property
    def n_removed(self) -> int:
        """Subjects in the arrays that are no part of the database any more."""
        return sum(segment.n_removed for segment in self.segments)

    @property
    def n_bytes(self) -> int:
        """Bytes of all files that the catalogue names."""
        arrays = sum(file.size for segment in self.segments for file in segment.files.values())
        return arrays + sum(segment.removed.file.size for segment in self.segments if segment.removed)


def content_digest(alphabet: str, segments: tuple[SegmentEntry, ...]) -> str:
    """The database's identity: SHA-256 over alphabet and file digests, in a fixed order."""
    # The 1 is that of the digest's own recipe; it stays, so that a database keeps its digest.
    digest = hashlib.sha256(f"{FORMAT_NAME} 1 {alphabet}\n".encode())
    for segment in segments:
        for name in ARRAY_DTYPES:
            digest.update(f"{name} {segment.files[name].sha256}\n".encode())
        if segment.removed is not None:
            digest.update(f"removed {segment.removed.file.sha256}\n".encode())
    return digest.hexdigest()


def array_path(segment: Path, name: str) -> Path:
    """The file of one array of a segment."""
    return segment / f"{name}.bin"


def segment_name(generation: int) -> str:
    """The folder of the segment that a generation adds.

    >>> segment_name(12)
    'segment-000012'
    """
    return f"segment-{generation:06}"


def tombstones_name(generation: int) -> str:
    """The file of a segment that names the removed ones from a generation on.

    >>> tombstones_name(3)
    'removed-000003.bin'
    """
    return f"removed-{generation:06}.bin"


def _checksum(fields: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()


def write_catalogue(catalogue: Catalogue) -> str:
    """The catalogue as JSON text, checksum included."""
    version = 2 if catalogue.n_removed else 1
    fields = {"format": FORMAT_NAME, "version": version, **json.loads(json.dumps(asdict(catalogue)))}
    if not catalogue.former_digests:
        del fields["former_digests"]
    if version == 1:
        for segment in fields["segments"]:
            del segment["removed"]
    return json.dumps({**fields, "checksum": _checksum(fields)}, indent=1) + "\n"


def read_catalogue(text: str) -> Catalogue:
    """The catalogue from JSON text.

    Raises
    ------
    ValueError
        The text is no catalogue, is of another version, or fails its checksum; the message says which.
    """
    try:
        fields = json.loads(text)
    except ValueError as error:
        raise ValueError(f"{CATALOGUE} is not JSON ({error})") from error
    if not isinstance(fields, dict) or fields.get("format") != FORMAT_NAME:
        raise ValueError(f"{CATALOGUE} is not that of a {FORMAT_NAME}")
    if fields.get("version") not in FORMAT_VERSIONS:
        known = " and ".join(map(str, FORMAT_VERSIONS))
        raise ValueError(f"format version {fields.get('version')!r}, this program reads versions {known}")
    checksum = fields.pop("checksum", None)
    if checksum != _checksum(fields):
        raise ValueError(f"{CATALOGUE} fails its checksum")
    return Catalogue(
        alphabet=fields["alphabet"],
        digest=fields["digest"],
        generation=fields["generation"],
        sources=tuple(fields["sources"]),
        program=fields["program"],
        created=fields["created"],
        segments=tuple(map(_segment_entry, fields["segments"])),
        former_digests=tuple(fields.get("former_digests", ())),
    )


def _segment_entry(fields: dict[str, Any]) -> SegmentEntry:
    files = {name: FileEntry(**file) for name, file in fields["files"].items()}
    removed = fields.get("removed")
    if removed is not None:
        removed = Tombstones(**{**removed, "file": FileEntry(**removed["file"])})
    return SegmentEntry(**{**fields, "files": files, "removed": removed})
