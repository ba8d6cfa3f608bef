"""CIGAR strings: reading, counting, and the alignment rows and BTOP strings that reports print from them.

An operation is a count and a letter: ``=`` a column of equal letters, ``X`` of different ones, ``I`` consumes the query
alone, ``D`` the subject alone. Letters are given without gaps, for the aligned part only, along the strand that
aligned. Needs nothing but the records, so a stored hit can be shown where nothing can be computed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from swsearch.errors import InputError
from swsearch.scoring.matrix import SubstitutionMatrix

GAP: Final = "-"
_OPERATION: Final = re.compile(r"([1-9][0-9]*)([=XID])")


@dataclass(frozen=True)
class CigarCounts:
    """What a CIGAR holds: columns of each kind, and the number of gaps."""

    identities: int
    mismatches: int
    insertions: int
    deletions: int
    gap_openings: int

    @property
    def columns(self) -> int:
        """Length of the alignment, gaps included."""
        return self.identities + self.mismatches + self.insertions + self.deletions

    @property
    def query_residues(self) -> int:
        """Residues of the query that the alignment covers."""
        return self.identities + self.mismatches + self.insertions

    @property
    def subject_residues(self) -> int:
        """Residues of the subject that the alignment covers."""
        return self.identities + self.mismatches + self.deletions


def parse(cigar: str) -> list[tuple[int, str]]:
    """The operations with their lengths, in order.

    Raises
    ------
    InputError
        Something in the string is no operation, or two neighbours are of one kind and should be one.

    >>> parse("12=1X3D")
    [(12, '='), (1, 'X'), (3, 'D')]
    """
    operations: list[tuple[int, str]] = []
    place = 0
    while place < len(cigar):
        found = _OPERATION.match(cigar, place)
        if found is None:
            raise InputError(
                f"CIGAR {_short(cigar)}: no operation at character {place + 1}; give counts with =, X, I, D"
            )
        if operations and operations[-1][1] == found[2]:
            raise InputError(f"CIGAR {_short(cigar)}: two runs of {found[2]} meet at character {place + 1}; join them")
        operations.append((int(found[1]), found[2]))
        place = found.end()
    return operations


def run_length(operations: str) -> str:
    """The CIGAR of one operation letter a column.

    >>> run_length("===XDD=")
    '3=1X2D1='
    """
    return "".join(f"{len(list(run))}{operation}" for operation, run in groupby(operations))


def count(cigar: str) -> CigarCounts:
    """Columns by kind, and gaps.

    >>> count("5=1X2D3=").columns
    11
    """
    totals = dict.fromkeys("=XID", 0)
    gaps = 0
    for length, operation in parse(cigar):
        totals[operation] += length
        gaps += operation in "ID"
    return CigarCounts(totals["="], totals["X"], totals["I"], totals["D"], gaps)


def gapped(query_letters: str, subject_letters: str, cigar: str) -> tuple[str, str]:
    """The two rows of the alignment, of equal length, with ``-`` in gaps.

    Raises
    ------
    InputError
        The CIGAR covers more or fewer letters than are given.

    >>> gapped("ACGT", "ACT", "2=1I1=")
    ('ACGT', 'AC-T')
    """
    operations = parse(cigar)
    rows: tuple[list[str], list[str]] = ([], [])
    query = subject = 0
    for length, operation in operations:
        if operation == "D":
            rows[0].append(GAP * length)
        else:
            rows[0].append(query_letters[query : query + length])
            query += length
        if operation == "I":
            rows[1].append(GAP * length)
        else:
            rows[1].append(subject_letters[subject : subject + length])
            subject += length
    for name, covered, given in (("query", query, query_letters), ("subject", subject, subject_letters)):
        if covered != len(given):
            raise InputError(f"CIGAR {_short(cigar)} covers {covered} {name} residues, {len(given)} are given")
    return "".join(rows[0]), "".join(rows[1])


def midline(query_letters: str, subject_letters: str, cigar: str, matrix: SubstitutionMatrix) -> str:
    """The row between the two, as BLAST prints it.

    Protein: the letter where both are the same, ``+`` where the pair scores above 0. DNA: ``|`` where both are the
    same. A blank elsewhere.
    """
    top, bottom = gapped(query_letters.upper(), subject_letters.upper(), cigar)
    marks: list[str] = []
    column = 0
    for length, operation in parse(cigar):
        for a, b in zip(top[column : column + length], bottom[column : column + length], strict=True):
            if operation == "=":
                marks.append("|" if matrix.alphabet.name == "dna" else a)
            elif operation == "X" and matrix.alphabet.name != "dna" and matrix.score(a, b) > 0:
                marks.append("+")
            else:
                marks.append(" ")
        column += length
    return "".join(marks)


def btop(query_letters: str, subject_letters: str, cigar: str) -> str:
    """BLAST's trace-back operations: counts of equal letters, and the two letters of each other column.

    >>> btop("ACGTA", "ATGA", "1=1X1=1I1=")
    '1CT1T-1'
    """
    top, bottom = gapped(query_letters.upper(), subject_letters.upper(), cigar)
    parts: list[str] = []
    column = 0
    for length, operation in parse(cigar):
        if operation == "=":
            parts.append(str(length))
        else:
            pairs = zip(top[column : column + length], bottom[column : column + length], strict=True)
            parts.extend(a + b for a, b in pairs)
        column += length
    return "".join(parts)


def _short(cigar: str) -> str:
    """A CIGAR as a message can hold it."""
    return repr(cigar if len(cigar) <= 40 else cigar[:37] + "...")
