"""The catalogue of a packed database as JSON text: written, read, and checked.

A text is accepted only if every field is there that its version requires, with a value that a catalogue can have
(:mod:`swsearch.database.format`), so that no name refers to a path outside the database and no number leads outside of
an array.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final, NoReturn

from swsearch.database.format import (
    ARRAY_DTYPES,
    CATALOGUE,
    FORMAT_NAME,
    FORMAT_VERSIONS,
    MAX_CATALOGUE_BYTES,
    MAX_SUBJECT_LENGTH,
    MAX_SUBJECTS,
    TAXONOMY_DTYPES,
    Catalogue,
    FileEntry,
    SegmentEntry,
    TaxonomyEntry,
    Tombstones,
)
from swsearch.errors import InputError
from swsearch.hits.result import DIGEST_JOINT
from swsearch.words import shortened


def _checksum(fields: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()


def write_catalogue(catalogue: Catalogue) -> str:
    """The catalogue as JSON text, checksum included."""
    version = 3 if catalogue.whole else 2 if catalogue.n_removed else 1
    fields = {"format": FORMAT_NAME, "version": version, **json.loads(json.dumps(asdict(catalogue)))}
    if not catalogue.former_digests:
        del fields["former_digests"]
    if catalogue.taxonomy is None:
        del fields["taxonomy"]
    if version < 3:
        del fields["whole"]
    else:
        del fields["whole"]["indices"]
    for segment in fields["segments"]:
        if version < 3:
            del segment["indices"]
        if version == 1:
            del segment["removed"]
    return json.dumps({**fields, "checksum": _checksum(fields)}, indent=1) + "\n"


def catalogue_text(folder: Path) -> str:
    """The text of a folder's ``catalogue.json``.

    Raises
    ------
    OSError
        The file does not exist or cannot be read.
    ValueError
        The file is not a regular file, is too long, or not UTF-8; the message says which.
    """
    path = folder / CATALOGUE
    # O_NONBLOCK: opening a pipe without a writer would otherwise block forever.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError(f"{CATALOGUE} is no regular file")
        with open(descriptor, "rb", closefd=False) as file:
            text = file.read(MAX_CATALOGUE_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(text) > MAX_CATALOGUE_BYTES:
        raise ValueError(f"{CATALOGUE} has more than {MAX_CATALOGUE_BYTES:,} bytes")
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{CATALOGUE} is not UTF-8") from error


def read_catalogue(text: str) -> Catalogue:
    """The catalogue from JSON text.

    Raises
    ------
    ValueError
        The text is no catalogue, is of another version, fails its checksum, or has a field that no catalogue of the
        version can have; the message says which.
    """
    try:
        fields = json.loads(text, parse_constant=_no_constant)
        if not isinstance(fields, dict) or fields.get("format") != FORMAT_NAME:
            raise ValueError(f"{CATALOGUE} is not that of a {FORMAT_NAME}")
        version = fields.get("version")
        if type(version) is not int or version not in FORMAT_VERSIONS:
            known = f"{', '.join(map(str, FORMAT_VERSIONS[:-1]))} and {FORMAT_VERSIONS[-1]}"
            raise ValueError(f"format version {shortened(repr(version), 40)}, this program reads versions {known}")
        checksum = fields.pop("checksum", None)
        if checksum != _checksum(fields):
            raise ValueError(f"{CATALOGUE} fails its checksum")
    except json.JSONDecodeError as error:
        raise ValueError(f"{CATALOGUE} is not JSON ({error})") from error
    except RecursionError as error:
        raise ValueError(f"{CATALOGUE} is not that of a {FORMAT_NAME}: it is nested too deeply") from error
    return _Fields(fields, "").catalogue()


def joined_catalogue(catalogues: Sequence[Catalogue]) -> Catalogue:
    """The catalogue of one or several databases: all segments, whose names begin with the number of the database.

    The generation of several is the sum of theirs, so that it also increases by one with each change.

    Raises
    ------
    InputError
        There are more than 2^32 - 1 subjects.
    """
    if len(catalogues) == 1:
        return catalogues[0]
    joined = Catalogue(
        alphabet=catalogues[0].alphabet,
        digest=DIGEST_JOINT.join(one.digest for one in catalogues),
        generation=sum(one.generation for one in catalogues),
        sources=tuple(source for one in catalogues for source in one.sources),
        program=catalogues[0].program,
        created=max(one.created for one in catalogues),
        segments=tuple(
            replace(segment, name=f"{number}/{segment.name}")
            for number, one in enumerate(catalogues, 1)
            for segment in one.segments
        ),
    )
    if joined.n_subjects > MAX_SUBJECTS:
        problem = f"the databases have {joined.n_subjects:,} subjects together"
        raise InputError(f"{problem}, of which one search takes {MAX_SUBJECTS:,}; search them one by one")
    return joined


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{CATALOGUE} is not JSON ({name} is no number)")


_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_SEGMENT_NAME: Final = re.compile(r"segment-[0-9]{6,18}(-slice-[0-9]{3})?")
_TAXONOMY_NAME: Final = re.compile(r"taxonomy-[0-9]{6,18}")
_TOMBSTONES_NAME: Final = re.compile(r"removed-[0-9]{6,18}\.bin")
_MAX_NUMBER: Final = 2**62
"""Largest count or size, chosen so that sums of them fit in signed 64 bits."""


class _Fields:
    """An object of the catalogue's JSON, with methods that check and return its fields; ``where`` begins messages."""

    def __init__(self, fields: object, where: str) -> None:
        if not isinstance(fields, dict):
            raise ValueError(f"{CATALOGUE}: {where.removesuffix(', ') or 'it'} is no object")
        self._fields: dict[str, Any] = fields
        self._where = where

    def catalogue(self) -> Catalogue:
        alphabet = self._text("alphabet")
        segments = tuple(
            _Fields(fields, f"segment {number}, ").segment() for number, fields in enumerate(self._list("segments"), 1)
        )
        made = Catalogue(
            alphabet=alphabet,
            digest=self._text("digest", _SHA256),
            generation=self._number("generation", 1, 10**18 - 1),
            sources=tuple(self._texts("sources")),
            program=self._text("program"),
            created=self._text("created"),
            segments=segments,
            former_digests=tuple(self._texts("former_digests", _SHA256)) if "former_digests" in self._fields else (),
            whole=None if self._fields.get("whole") is None else self._entry("whole").segment(),
            taxonomy=None if self._fields.get("taxonomy") is None else self._entry("taxonomy")._taxonomy(),
        )
        if len({segment.name for segment in segments}) < len(segments):
            raise ValueError(f"{CATALOGUE}: two segments have one name")
        if not 1 <= made.n_subjects <= MAX_SUBJECTS:
            raise ValueError(f"{CATALOGUE}: {made.n_subjects:,} subjects in all; 1 to {MAX_SUBJECTS:,} are possible")
        _check_slices(made)
        return made

    def segment(self) -> SegmentEntry:
        n_subjects = self._number("n_subjects", 1, MAX_SUBJECTS)
        longest = self._number("longest", 1, MAX_SUBJECT_LENGTH)
        files = self._entry("files")
        removed = None if self._fields.get("removed") is None else self._entry("removed")._tombstones(n_subjects)
        return SegmentEntry(
            name=self._text("name", _SEGMENT_NAME),
            n_subjects=n_subjects,
            n_residues=self._number("n_residues", n_subjects, _MAX_NUMBER),
            shortest=self._number("shortest", 1, longest),
            longest=longest,
            files={name: files._entry(name)._file() for name in ARRAY_DTYPES},
            removed=removed,
            indices=None if self._fields.get("indices") is None else self._entry("indices")._file(),
        )

    def _tombstones(self, n_subjects: int) -> Tombstones:
        return Tombstones(
            name=self._text("name", _TOMBSTONES_NAME),
            n_subjects=self._number("n_subjects", 1, n_subjects),
            n_residues=self._number("n_residues", 1, _MAX_NUMBER),
            file=self._entry("file")._file(),
        )

    def _taxonomy(self) -> TaxonomyEntry:
        files = self._entry("files")
        n_rows = self._number("n_rows", 1, _MAX_NUMBER)
        return TaxonomyEntry(
            name=self._text("name", _TAXONOMY_NAME),
            n_taxa=self._number("n_taxa", 1, MAX_SUBJECTS),
            n_rows=n_rows,
            n_assigned=self._number("n_assigned", 0, n_rows),
            files={name: files._entry(name)._file() for name in TAXONOMY_DTYPES},
        )

    def _file(self) -> FileEntry:
        return FileEntry(size=self._number("size", 0, _MAX_NUMBER), sha256=self._text("sha256", _SHA256))

    def _entry(self, name: str) -> _Fields:
        return _Fields(self._fields.get(name), f"{self._where}{name}, ")

    def _number(self, name: str, least: int, most: int) -> int:
        value = self._fields.get(name)
        if type(value) is not int or not least <= value <= most:
            raise ValueError(
                f"{CATALOGUE}: {self._where}{name} is {shortened(repr(value), 40)}; {least} to {most} is possible"
            )
        return value

    def _text(self, name: str, form: re.Pattern[str] | None = None) -> str:
        return _checked_text(self._fields.get(name), f"{self._where}{name}", form)

    def _texts(self, name: str, form: re.Pattern[str] | None = None) -> list[str]:
        return [_checked_text(value, f"{self._where}{name}", form) for value in self._list(name)]

    def _list(self, name: str) -> list[Any]:
        value = self._fields.get(name)
        if not isinstance(value, list):
            raise ValueError(f"{CATALOGUE}: {self._where}{name} is {shortened(repr(value), 40)}, no list")
        return value


def _check_slices(catalogue: Catalogue) -> None:
    """Refuse slices that are not the first segments, or whose numbers are not those of the whole segment."""
    n_slices = catalogue.n_slices
    slices, others = catalogue.segments[:n_slices], catalogue.segments[n_slices:]
    whole = catalogue.whole
    if any(segment.is_slice for segment in others) or (whole is None) != (n_slices == 0):
        raise ValueError(f"{CATALOGUE}: the slices are not the first segments, or are slices of nothing")
    if whole is None:
        return

    def numbers(*segments: SegmentEntry) -> tuple[int, ...]:
        found = [(one.n_subjects, one.n_residues, one.n_removed, one.n_removed_residues) for one in segments]
        return tuple(map(sum, zip(*found, strict=True)))

    lengths = min(one.shortest for one in slices), max(one.longest for one in slices)
    if numbers(*slices) != numbers(whole) or lengths != (whole.shortest, whole.longest):
        raise ValueError(f"{CATALOGUE}: the slices together are not the whole segment")


def _checked_text(value: object, where: str, form: re.Pattern[str] | None) -> str:
    if not isinstance(value, str) or (form is not None and form.fullmatch(value) is None):
        raise ValueError(f"{CATALOGUE}: {where} is {shortened(repr(value), 40)}, which it cannot be")
    return value
