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
=====================  =======================  ============================================================

*Stored order* is by length, shortest first, and by place in the FASTA among equals: subjects that stand side by side
are of like length, so the lanes of a SIMD batch or the threads of a warp end together, and any range of stored places
is a partition. A residue byte is what :mod:`swsearch.sequences.alphabet` says; four residues are one 32-bit word of a
subject, lowest byte first. 16-byte starts let the CPU load whole vectors and the GPU 128-bit words; the tail of padding
lets a vector load at the last residue stay inside the file. Engines read these arrays as they are, mapped into memory.

A reader MUST refuse a catalogue whose ``format`` or ``version`` it does not know, whose ``checksum`` is not that of its
other fields, or which names a file that is missing or not of the stated size. ``swsearch db verify`` MUST also compare
each file's SHA-256. The catalogue is the only thing written last and by one rename, so a folder that has one is whole.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any, Final

FORMAT_NAME: Final = "swsearch packed database"
FORMAT_VERSION: Final = 1
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


@dataclass(frozen=True)
class FileEntry:
    """One array's file: its size in bytes and its SHA-256 in hexadecimal."""

    size: int
    sha256: str


@dataclass(frozen=True)
class SegmentEntry:
    """One segment: its folder's name, what it holds, and its files by array name."""

    name: str
    n_subjects: int
    n_residues: int
    shortest: int
    longest: int
    files: dict[str, FileEntry]


@dataclass(frozen=True)
class Catalogue:
    """What ``catalogue.json`` says.

    Attributes
    ----------
    alphabet : str
        ``protein`` or ``dna``.
    digest : str
        SHA-256 over the files' own digests: the identity of the content, whoever built it, whenever.
    generation : int
        Grows by one with each change to the database.
    sources : tuple of str
        Names of the files the sequences came from, without folders.
    program : str
        Name and version of the program that wrote it.
    created : str
        UTC time in ISO 8601; not part of the digest.
    segments : tuple of SegmentEntry
    """

    alphabet: str
    digest: str
    generation: int
    sources: tuple[str, ...]
    program: str
    created: str
    segments: tuple[SegmentEntry, ...]

    @property
    def n_subjects(self) -> int:
        """Subjects in all segments."""
        return sum(segment.n_subjects for segment in self.segments)

    @property
    def n_residues(self) -> int:
        """Residues in all segments, padding left out."""
        return sum(segment.n_residues for segment in self.segments)


def content_digest(alphabet: str, segments: tuple[SegmentEntry, ...]) -> str:
    """The database's identity: SHA-256 over alphabet and file digests, in a fixed order."""
    digest = hashlib.sha256(f"{FORMAT_NAME} {FORMAT_VERSION} {alphabet}\n".encode())
    for segment in segments:
        for name in ARRAY_DTYPES:
            digest.update(f"{name} {segment.files[name].sha256}\n".encode())
    return digest.hexdigest()


def _checksum(fields: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()


def write_catalogue(catalogue: Catalogue) -> str:
    """The catalogue as JSON text, checksum included."""
    fields = {"format": FORMAT_NAME, "version": FORMAT_VERSION, **json.loads(json.dumps(asdict(catalogue)))}
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
    if fields.get("version") != FORMAT_VERSION:
        raise ValueError(f"format version {fields.get('version')!r}, this program reads version {FORMAT_VERSION}")
    checksum = fields.pop("checksum", None)
    if checksum != _checksum(fields):
        raise ValueError(f"{CATALOGUE} fails its checksum")
    segments = tuple(
        SegmentEntry(**{**entry, "files": {name: FileEntry(**file) for name, file in entry["files"].items()}})
        for entry in fields["segments"]
    )
    return Catalogue(
        alphabet=fields["alphabet"],
        digest=fields["digest"],
        generation=fields["generation"],
        sources=tuple(fields["sources"]),
        program=fields["program"],
        created=fields["created"],
        segments=segments,
    )
