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
from collections.abc import Callable, Sequence
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
    SEGMENT_NAME,
    TAXONOMY_DTYPES,
    TAXONOMY_NAME,
    TOMBSTONES_NAME,
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
    for segment in [*fields["segments"], *([fields["whole"]] if version == 3 else [])]:
        if segment["repeats"] is None:
            del segment["repeats"]
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
            raise ValueError(f"{CATALOGUE} is not a regular file")
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
        The text is not a catalogue, is of another version, fails its checksum, or has a field that no catalogue of the
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
    catalogue: Catalogue = _FIELDS(fields, "")
    _check_consistency(catalogue)
    return catalogue


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
    raise ValueError(f"{CATALOGUE} is not JSON ({name} is not a number)")


_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_MAX_NUMBER: Final = 2**62
"""Largest count or size, chosen so that sums of them fit in signed 64 bits."""


_Check = Callable[[object, str], Any]
"""Returns a value of the JSON as the catalogue has it, or raises ValueError; its second argument begins the message."""


def _number(least: int, most: int) -> _Check:
    def check(value: object, where: str) -> int:
        if type(value) is not int or not least <= value <= most:
            raise ValueError(f"{CATALOGUE}: {where} is {shortened(repr(value), 40)}; {least} to {most} is possible")
        return value

    return check


def _text(form: re.Pattern[str] | None = None) -> _Check:
    def check(value: object, where: str) -> str:
        if not isinstance(value, str) or (form is not None and form.fullmatch(value) is None):
            raise ValueError(f"{CATALOGUE}: {where} is {shortened(repr(value), 40)}, which it cannot be")
        return value

    return check


def _several(one: _Check, name: str = "") -> _Check:
    """A list; each element has the number, from 1, behind ``name`` in messages."""

    def check(value: object, where: str) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise ValueError(f"{CATALOGUE}: {where} is {shortened(repr(value), 40)}, no list")
        return tuple(one(each, f"{name} {number}" if name else where) for number, each in enumerate(value, 1))

    return check


def _optional(one: _Check, missing: object = None) -> _Check:
    return lambda value, where: missing if value is None else one(value, where)


def _record(make: Callable[..., Any], **checks: _Check) -> _Check:
    """An object with these fields, of which ``make`` is called with the values."""

    def check(value: object, where: str) -> Any:
        if not isinstance(value, dict):
            raise ValueError(f"{CATALOGUE}: {where or 'it'} is not an object")
        begin = f"{where}, " if where else ""
        return make(**{name: one(value.get(name), f"{begin}{name}") for name, one in checks.items()})

    return check


_COUNT: Final = _number(1, _MAX_NUMBER)
_N_SUBJECTS: Final = _number(1, MAX_SUBJECTS)
_LENGTH: Final = _number(1, MAX_SUBJECT_LENGTH)
_FILE: Final = _record(FileEntry, size=_number(0, _MAX_NUMBER), sha256=_text(_SHA256))
_TOMBSTONES: Final = _record(
    Tombstones, name=_text(TOMBSTONES_NAME), n_subjects=_N_SUBJECTS, n_residues=_COUNT, file=_FILE
)
_SEGMENT: Final = _record(
    SegmentEntry,
    name=_text(SEGMENT_NAME),
    n_subjects=_N_SUBJECTS,
    n_residues=_COUNT,
    shortest=_LENGTH,
    longest=_LENGTH,
    files=_record(dict, **dict.fromkeys(ARRAY_DTYPES, _FILE)),
    removed=_optional(_TOMBSTONES),
    indices=_optional(_FILE),
    repeats=_optional(_FILE),
)
_TAXONOMY: Final = _record(
    TaxonomyEntry,
    name=_text(TAXONOMY_NAME),
    n_taxa=_N_SUBJECTS,
    n_rows=_COUNT,
    n_assigned=_number(0, _MAX_NUMBER),
    files=_record(dict, **dict.fromkeys(TAXONOMY_DTYPES, _FILE)),
)
_FIELDS: Final = _record(
    Catalogue,
    alphabet=_text(),
    digest=_text(_SHA256),
    generation=_number(1, 10**18 - 1),
    sources=_several(_text()),
    program=_text(),
    created=_text(),
    segments=_several(_SEGMENT, "segment"),
    former_digests=_optional(_several(_text(_SHA256)), ()),
    whole=_optional(_SEGMENT),
    taxonomy=_optional(_TAXONOMY),
)
"""All fields of a catalogue, with the values that each of them can have."""


def _check_consistency(made: Catalogue) -> None:
    """Refuse numbers that contradict each other."""
    for place, segment in enumerate((*made.segments, made.whole), 1):
        if segment is None:
            continue
        where = "whole" if segment is made.whole else f"segment {place}"
        for problem, is_there in (
            ("it has fewer residues than subjects", segment.n_residues < segment.n_subjects),
            ("its shortest subject is longer than its longest one", segment.shortest > segment.longest),
            ("more subjects are removed than it has", segment.n_removed > segment.n_subjects),
            (
                "fewer residues are left than subjects",
                segment.n_residues - segment.n_removed_residues < segment.n_subjects - segment.n_removed,
            ),
        ):
            if is_there:
                raise ValueError(f"{CATALOGUE}: {where}, {problem}")
    if made.taxonomy is not None and made.taxonomy.n_assigned > made.taxonomy.n_rows:
        raise ValueError(f"{CATALOGUE}: taxonomy, more sequences have organisms than there are")
    if len({segment.name for segment in made.segments}) < len(made.segments):
        raise ValueError(f"{CATALOGUE}: two segments have one name")
    if not 1 <= made.n_subjects <= MAX_SUBJECTS:
        raise ValueError(f"{CATALOGUE}: {made.n_subjects:,} subjects in all; 1 to {MAX_SUBJECTS:,} are possible")
    _check_slices(made)


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
