"""CIGAR strings: reading, counting, and the alignment rows and BTOP strings that reports print from them.

An operation is a count and a letter: ``=`` a column of equal letters, ``X`` of different ones, ``I`` consumes the query
alone, ``D`` the subject alone. Letters are given without gaps, for the aligned part only, along the strand that
aligned. Needs nothing but the records, so a stored hit can be shown where nothing can be computed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Final

import numpy as np

from swsearch.errors import InputError
from swsearch.scoring.matrix import SubstitutionMatrix
from swsearch.typing import Codes

GAP: Final = "-"
_OPERATION: Final = re.compile(r"([1-9][0-9]{0,17})([=XID])")
_WHOLE: Final = re.compile(r"(?:[1-9][0-9]{0,17}([=XID])(?![0-9]+\1))*")
_GAP_RUN: Final = re.compile(r"([0-9]+)([ID])")
_COUNT: Final = re.compile(r"[0-9]+")


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
    _check(cigar)
    return [(int(length), operation) for length, operation in _OPERATION.findall(cigar)]


def _check(cigar: str) -> None:
    """Raise what :func:`parse` says."""
    if _WHOLE.fullmatch(cigar) is None:
        raise InputError(f"CIGAR {_short(cigar)}: {_flaw(cigar)}")


def _flaw(cigar: str) -> str:
    """What is wrong with a string that is no CIGAR, and where."""
    place, before = 0, ""
    while found := _OPERATION.match(cigar, place):
        if found[2] == before:
            return f"two runs of {before} meet at character {place + 1}; join them"
        place, before = found.end(), found[2]
    return f"no operation at character {place + 1}; give counts with =, X, I, D"


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
    _check(cigar)
    rows: tuple[list[str], list[str]] = ([], [])
    query = subject = 0
    # Gaps are few: what lies between two of them, whatever its = and X, is copied at once.
    parts = _GAP_RUN.split(cigar)
    for between, gap, operation in zip(parts[::3], [*parts[1::3], ""], [*parts[2::3], ""], strict=True):
        n_pairs = sum(map(int, _COUNT.findall(between)))
        rows[0].append(query_letters[query : query + n_pairs])
        rows[1].append(subject_letters[subject : subject + n_pairs])
        query, subject = query + n_pairs, subject + n_pairs
        if operation == "I":
            rows[0].append(query_letters[query : query + int(gap)])
            rows[1].append(GAP * min(int(gap), len(query_letters)))  # a longer one is refused below
            query += int(gap)
        elif operation == "D":
            rows[0].append(GAP * min(int(gap), len(subject_letters)))
            rows[1].append(subject_letters[subject : subject + int(gap)])
            subject += int(gap)
        if query > len(query_letters) or subject > len(subject_letters):
            break
    if query != len(query_letters) or subject != len(subject_letters):
        _refuse_cover(cigar, len(query_letters), len(subject_letters))
    return "".join(rows[0]), "".join(rows[1])


def _refuse_cover(cigar: str, n_query: int, n_subject: int) -> None:
    """Say which of two sequences of these lengths a CIGAR covers more or less of."""
    totals = count(cigar)
    for name, covered, given in (
        ("query", totals.query_residues, n_query),
        ("subject", totals.subject_residues, n_subject),
    ):
        if covered != given:
            raise InputError(f"CIGAR {_short(cigar)} covers {covered} {name} residues, {given} are given")


def midline(query_letters: str, subject_letters: str, cigar: str, matrix: SubstitutionMatrix) -> str:
    """The row between the two, as BLAST prints it.

    Protein: the letter where both are the same, ``+`` where the pair scores above 0. DNA: ``|`` where both are the
    same. A blank elsewhere.
    """
    return row_midline(*gapped(query_letters, subject_letters, cigar), matrix)


def row_midline(query_row: str, subject_row: str, matrix: SubstitutionMatrix) -> str:
    """:func:`midline` of rows that :func:`gapped` made."""
    top, bottom = (np.frombuffer(row.upper().encode("ascii"), np.uint8) for row in (query_row, subject_row))
    return _marks(matrix)[top, bottom].tobytes().decode("ascii")


@lru_cache(maxsize=4)
def _marks(matrix: SubstitutionMatrix) -> Codes:
    """uint8, shape (128, 128): the midline's mark between a letter of the query (row) and one of the subject.

    Looking columns up here took 1 ns each; asking the matrix for each pair in turn took a microsecond.
    """
    marks = np.full((128, 128), ord(" "), np.uint8)
    letters, same = matrix.alphabet.letters, matrix.alphabet.identity_table
    for row, a in enumerate(letters):
        for column, b in enumerate(letters):
            if same[row] == same[column]:
                marks[ord(a), ord(b)] = ord("|" if matrix.alphabet.name == "dna" else a)
            elif matrix.alphabet.name != "dna" and matrix.scores[row, column] > 0:
                marks[ord(a), ord(b)] = ord("+")
    marks.setflags(write=False)
    return marks


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
