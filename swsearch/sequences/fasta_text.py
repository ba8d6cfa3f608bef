"""FASTA as text: the lines of a record, the names of parts of a sequence, and the letters of subjects.

The name of a part is that of ``samtools faidx``: ``id:from-to``, counted from 1, both ends included, followed by
``/rc`` if the letters are the reverse complement (``samtools faidx -i``).

The record of a hit has the aligned part of its subject. A report that writes more of it, such as the whole sequence,
reads it through a :class:`SubjectReader`, so that reports need not know what a database is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Protocol, TextIO

from swsearch.arguments import flag, whole_number
from swsearch.errors import InputError
from swsearch.sequences.alphabet import COMPLEMENT
from swsearch.sequences.record import split_header
from swsearch.words import option

LINE_WIDTH: Final = 60
"""Residues on a line."""
REVERSED: Final = "/rc"
"""What follows the name of a reverse complement."""
_PRINTED_LINE: Final = re.compile(r"\s*(?:[0-9]+\s+)?([A-Za-z*-]+(?:[ \t]+[A-Za-z*-]+)*)(?:\s+[0-9]+)?\s*", re.ASCII)
"""A line of residues as databases print it: groups of letters, and a number before or behind them."""
_COMPLEMENT: Final = str.maketrans({**COMPLEMENT, **{one.lower(): other.lower() for one, other in COMPLEMENT.items()}})


def write_pieces(stream: TextIO, header: str, pieces: Iterable[str], width: int = LINE_WIDTH) -> None:
    r"""Write one record whose letters come in pieces of any length, so that a chromosome need not be in memory.

    ``width`` is the number of residues on a line, 0 for all of them on one line. ``stream`` must accept surrogate
    escapes (``errors="surrogateescape"``), and translate no line ends.

    >>> import sys
    >>> write_pieces(sys.stdout, "P1 a kinase", ["MKV", "LLWY", "R"], 5)
    >P1 a kinase
    MKVLL
    WYR
    """
    stream.write(f">{header}\n")
    rest = ""
    for piece in pieces:
        letters = rest + piece
        whole = len(letters) - len(letters) % width if width else 0
        stream.write("".join([f"{letters[at : at + width]}\n" for at in range(0, whole, width or 1)]))
        rest = letters[whole:]
        if not width:
            stream.write(rest)
            rest = ""
    if rest or not width:
        stream.write(f"{rest}\n")


def part_header(header: str, start: int, end: int, *, is_reversed: bool = False, remark: str = "") -> str:
    """The header of a part of a sequence.

    Parameters
    ----------
    header : str
        The header of the sequence without ``>``; its first word is the identifier, ``unnamed`` if it is empty.
    start, end : int
        The part, 0-based and half-open, on the forward strand.
    is_reversed : bool
        Whether the letters are the reverse complement.
    remark : str
        Words between the name of the part and the description of the sequence.

    >>> part_header("chr1 a chromosome", 9, 200, is_reversed=True)
    'chr1:10-200/rc a chromosome'
    """
    identifier, description = split_header(header)
    name = f"{identifier or 'unnamed'}:{start + 1}-{end}{REVERSED if is_reversed else ''}"
    return " ".join(word for word in (name, remark, description) if word)


def reverse_complement_letters(letters: str) -> str:
    """The other strand of DNA letters; each letter retains its case.

    >>> reverse_complement_letters("AACgN")
    'NcGTT'
    """
    return letters.translate(_COMPLEMENT)[::-1]


def without_layout(text: str, *, has_headers: bool = False) -> str | None:
    r"""Sequences as people copy and type them, as FASTA; None if the text is something else.

    Lines of letters alone are one sequence without a header. GenBank and UniProt print blanks between groups of letters
    and a number at an end of each line; both are left out. With ``has_headers``, the text may also be FASTA, in whose
    records the same is left out; a line that is none of this stays as it is.

    >>> print(without_layout("        1 acgtac gtacgt\n       13 ttga\n"), end="")
    >
    acgtacgtacgt
    ttga
    >>> print(without_layout(">one\nMKV LLA\n", has_headers=True), end="")
    >one
    MKVLLA
    >>> without_layout(">one\nMKV\n"), without_layout("a file, line 1\n")
    (None, None)
    """
    lines = text.removeprefix("\ufeff").splitlines()
    first = next((line.lstrip() for line in lines if line.strip()), "")
    has_header = first.startswith(">")
    if not first or (has_header and not has_headers):
        return None
    found = [] if has_header else [">"]
    for line in lines:
        printed = None if line.startswith(">") else _PRINTED_LINE.fullmatch(line)
        if printed is None and line.strip() and not has_header:
            return None
        found.append(line if printed is None else "".join(printed[1].split()))
    return "\n".join([*found, ""])


MAX_FLANK: Final = 1_000_000
"""Largest number of residues on each side of an aligned part."""
_PIECE: Final = 1 << 20


class SubjectReader(Protocol):
    """Gives the letters of subjects; :class:`swsearch.database.reader.PackedDatabase` is one."""

    def letters(self, subject_index: int, start: int = 0, stop: int | None = None) -> str:
        """The letters of a subject from ``start`` to ``stop``, 0-based and half-open, as they were written."""
        ...


def letters_in_pieces(
    subjects: SubjectReader, subject_index: int, start: int, stop: int, *, is_reversed: bool = False
) -> Iterator[str]:
    """The letters of a part of a subject, or of its reverse complement, in pieces of at most 2^20 letters.

    ``start`` and ``stop`` are positions on the forward strand, 0-based and half-open, within the subject.
    """
    if is_reversed:
        for last in range(stop, start, -_PIECE):
            yield reverse_complement_letters(subjects.letters(subject_index, max(start, last - _PIECE), last))
    else:
        for first in range(start, stop, _PIECE):
            yield subjects.letters(subject_index, first, min(stop, first + _PIECE))


@dataclass(frozen=True)
class SubjectPart:
    """The part of each hit subject that is written: the whole sequence, or an aligned part with flanks.

    Attributes
    ----------
    aligned : bool
        Whether the aligned parts are written, one for each alignment, in place of the whole sequences.
    flank : int
        Number of residues, 0 to 1,000,000, on each side of an aligned part; fewer at the ends of a subject.

    Raises
    ------
    InputError
        ``flank`` is out of its range, or given without ``aligned``.
    """

    aligned: bool = False
    flank: int = 0

    def __post_init__(self) -> None:
        flag("aligned", self.aligned)
        if not 0 <= whole_number("flank", self.flank) <= MAX_FLANK:
            raise InputError(f"{option('flank', self.flank)}: give a number of residues, 0 to {MAX_FLANK:,}")
        if self.flank and not self.aligned:
            needed = option("aligned", True)
            raise InputError(f"{option('flank', self.flank)}: flanks are beside an aligned part; give {needed}")


WHOLE: Final = SubjectPart()
"""The whole sequence of each subject."""
