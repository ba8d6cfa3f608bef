"""Entries: subjects, or parts of them, by the identifiers that denote them, for ``swsearch db fetch``.

A list of entries has one a line: an identifier, then optionally a range (``10-200``, counted from 1, both ends
included; ``10-`` goes to the end) and a strand (``plus`` or ``minus``), in any order, as for ``blastdbcmd
-entry_batch``. An identifier denotes a subject by the rules of :mod:`swsearch.sequences.headers`; if it is the
whole first word of a header, it denotes the subjects with this header alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from swsearch.database.reader import PackedDatabase
from swsearch.errors import InputError
from swsearch.filters.subject_filters import identifier_lines
from swsearch.sequences.alphabet import DNA
from swsearch.sequences.fasta_text import REVERSED, letters_in_pieces, part_header
from swsearch.sequences.headers import names_of
from swsearch.sequences.record import split_header
from swsearch.words import quoted, shortened

STRANDS: Final = ("plus", "minus")
_RANGE: Final = re.compile(r"([0-9]{1,12})-([0-9]{0,12})")
_SEPARATORS: Final = re.compile(r"[|.]")


@dataclass(frozen=True)
class SubjectRange:
    """A range of a subject, 0-based and half-open; ``stop`` is None for its end."""

    start: int
    stop: int | None

    @classmethod
    def parse(cls, text: str) -> SubjectRange:
        """A range as users write it: counted from 1, both ends included.

        Raises
        ------
        InputError
            The text is not a range.

        >>> SubjectRange.parse("10-200")
        SubjectRange(start=9, stop=200)
        """
        found = _RANGE.fullmatch(text)
        if found is not None:
            start, stop = int(found[1]) - 1, int(found[2]) if found[2] else None
            if start >= 0 and (stop is None or stop > start):
                return cls(start, stop)
        raise InputError(f"range {quoted(text)}: give two positions from 1 on, such as 10-200, or 10- for the rest")


@dataclass(frozen=True)
class Entry:
    """A request for the sequence that an identifier denotes, or for a ``part`` of it, or for its reverse complement."""

    name: str
    part: SubjectRange | None = None
    is_reversed: bool = False


def is_minus(strand: str) -> bool:
    """Whether a strand is ``minus``; InputError if it is neither ``plus`` nor ``minus``."""
    if strand not in STRANDS:
        raise InputError(f"strand {quoted(strand)}: choose {' or '.join(STRANDS)}")
    return strand == "minus"


def read_entries(path: str, part: SubjectRange | None = None, strand: str = "plus") -> Iterator[Entry]:
    """The entries of a file, which may be compressed; ``-`` is stdin.

    Empty lines and lines that begin with ``#`` are ignored. ``part`` and ``strand`` hold for lines without their own.

    Raises
    ------
    InputError
        The file cannot be read, has headers of FASTA, or a line is not an entry.
    """
    for number, (name, *others) in identifier_lines("--ids", path):
        strands = [word for word in others if word in STRANDS]
        ranges = [word for word in others if word not in STRANDS]
        try:
            if len(strands) > 1 or len(ranges) > 1:
                raise InputError("give an identifier, at most one range and at most one strand")
            own_part = SubjectRange.parse(ranges[0]) if ranges else part
            yield Entry(name, own_part, is_minus(strands[0] if strands else strand))
        except InputError as error:
            raise InputError(f"--ids {path}, line {number}: {error}") from error


def find_subjects(database: PackedDatabase, names: Iterable[str]) -> Mapping[str, list[int]]:
    """The indices of the subjects that each name denotes, ascending; names that denote none are left out.

    The headers of the database are read once. Memory grows with the names and the subjects found.
    """
    wanted = frozenset(names)
    # A subject has a name only if its identifier contains the name's longest word between bars and points. This test
    # of a header takes a tenth of the time of deriving all its names.
    telling = frozenset(max(_SEPARATORS.split(name), key=len) for name in wanted)
    whole: dict[str, list[int]] = {}
    by_part: dict[str, list[int]] = {}
    for subject_index, header in database.headers():
        words = header.split(None, 1)
        if not words or telling.isdisjoint(words[0].replace(".", "|").split("|")):
            continue
        for name in dict.fromkeys(names_of(words[0])):
            if name in wanted:
                found = whole if name == words[0] else by_part
                found.setdefault(name, []).append(subject_index)
    return {name: sorted(found) for name, found in {**by_part, **whole}.items()}


def fetch(
    database: PackedDatabase, entries: Sequence[Entry], found: Mapping[str, list[int]], problems: list[str]
) -> Iterator[tuple[str, Iterator[str]]]:
    """Header and letters (in pieces) of the entries, in their order; of all subjects that an identifier denotes.

    A part has a header as ``samtools faidx`` writes it (:func:`swsearch.sequences.fasta_text.part_header`); a range
    that goes beyond the end of its subject ends there.

    Parameters
    ----------
    database : PackedDatabase
    entries : sequence of Entry
    found : mapping
        The result of :func:`find_subjects` for the names of the entries.
    problems : list of str
        Receives a text for each entry that is not there: an unknown identifier, or a range that begins beyond the end.

    Raises
    ------
    InputError
        A reverse complement of a protein is asked for.
    """
    if database.alphabet is not DNA and (entry := next((one for one in entries if one.is_reversed), None)) is not None:
        raise InputError(f"{shortened(entry.name)}: a protein has no minus strand; leave the strand out")
    for entry in entries:
        if entry.name not in found:
            problems.append(f"no sequence {quoted(entry.name)}")
        for subject_index in found.get(entry.name, ()):
            header, length = database.header(subject_index), database.length(subject_index)
            part = entry.part or SubjectRange(0, None)
            if part.start >= length:
                problems.append(f"no position {part.start + 1:,} in {quoted(entry.name)} ({length:,} letters)")
                continue
            stop = min(length, part.stop or length)
            letters = letters_in_pieces(database, subject_index, part.start, stop, is_reversed=entry.is_reversed)
            if entry.part is not None:
                header = part_header(header, part.start, stop, is_reversed=entry.is_reversed)
            elif entry.is_reversed:
                identifier, description = split_header(header)
                header = f"{identifier or 'unnamed'}{REVERSED} {description}".rstrip()
            yield header, letters
