"""CIGAR strings: parsing, counting, and the alignment rows and BTOP strings that reports print from them.

An operation is a count and a letter: ``=`` for columns of equal letters, ``X`` for columns of different letters, ``I``
for gaps that consume only the query, ``D`` for gaps that consume only the subject. The functions take the letters of
the aligned parts, without gaps, in the direction of the aligned strand. They need neither sequence files nor a
database, so stored hits can be printed on any machine.
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
from swsearch.words import quoted

GAP: Final = "-"
_OPERATION: Final = re.compile(r"([1-9][0-9]{0,17})([=XID])")
_WHOLE: Final = re.compile(r"(?:[1-9][0-9]{0,17}([=XID])(?![0-9]+\1))*")
_GAP_RUN: Final = re.compile(r"([0-9]+)([ID])")
_COUNT: Final = re.compile(r"[0-9]+")


@dataclass(frozen=True)
class CigarCounts:
    """The contents of a CIGAR: the numbers of columns of each kind, and the number of gaps."""

    identities: int
    mismatches: int
    insertions: int
    deletions: int
    gap_openings: int

    @property
    def columns(self) -> int:
        """Length of the alignment, including gaps."""
        return self.identities + self.mismatches + self.insertions + self.deletions

    @property
    def query_residues(self) -> int:
        """Number of residues of the query that the alignment covers."""
        return self.identities + self.mismatches + self.insertions

    @property
    def subject_residues(self) -> int:
        """Number of residues of the subject that the alignment covers."""
        return self.identities + self.mismatches + self.deletions


def parse(cigar: str) -> list[tuple[int, str]]:
    """The operations with their lengths, in order.

    Raises
    ------
    InputError
        A part of the string is not an operation, or two adjacent operations are of the same kind.

    >>> parse("12=1X3D")
    [(12, '='), (1, 'X'), (3, 'D')]
    """
    _check(cigar)
    return [(int(length), operation) for length, operation in _OPERATION.findall(cigar)]


def _check(cigar: str) -> None:
    """Raise the errors of :func:`parse`."""
    if _WHOLE.fullmatch(cigar) is None:
        raise InputError(f"CIGAR {quoted(cigar)}: {_flaw(cigar)}")


def _flaw(cigar: str) -> str:
    """The first problem of a string that is not a CIGAR, and its position."""
    position, before = 0, ""
    while found := _OPERATION.match(cigar, position):
        if found[2] == before:
            return f"two runs of {before} meet at character {position + 1}; join them"
        position, before = found.end(), found[2]
    return f"no operation at character {position + 1}; give counts with =, X, I, D"


def run_length(operations: str) -> str:
    """The CIGAR of a string with one operation letter per column.

    >>> run_length("===XDD=")
    '3=1X2D1='
    """
    return "".join(f"{len(list(run))}{operation}" for operation, run in groupby(operations))


def count(cigar: str) -> CigarCounts:
    """The number of columns of each kind, and of gaps.

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
        The CIGAR covers more or fewer letters than the arguments contain.

    >>> gapped("ACGT", "ACT", "2=1I1=")
    ('ACGT', 'AC-T')
    """
    _check(cigar)
    rows: tuple[list[str], list[str]] = ([], [])
    query = subject = 0
    # Gaps are few: the letters between two gaps, whether = or X, are copied in one step.
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
    """Raise an error that names the sequence that the CIGAR does not cover exactly, if they have these lengths."""
    totals = count(cigar)
    for name, covered, given in (
        ("query", totals.query_residues, n_query),
        ("subject", totals.subject_residues, n_subject),
    ):
        if covered != given:
            raise InputError(f"CIGAR {quoted(cigar)} covers {covered} {name} residues, {given} are given")


def midline(query_row: str, subject_row: str, matrix: SubstitutionMatrix) -> str:
    """The row between two rows of :func:`gapped`, as BLAST prints it.

    For protein, a column contains the letter if both letters are equal, and ``+`` if the score of the pair is above 0.
    For DNA, a column contains ``|`` if both letters are equal. All other columns are blank.
    """
    top, bottom = (np.frombuffer(row.upper().encode("ascii"), np.uint8) for row in (query_row, subject_row))
    return _marks(matrix)[top, bottom].tobytes().decode("ascii")


@lru_cache(maxsize=4)
def _marks(matrix: SubstitutionMatrix) -> Codes:
    """The midline's mark of each query letter (row) and subject letter (column); uint8, shape (128, 128).

    A lookup in this table takes 1 ns per column; a call of the matrix for each pair took a microsecond.
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
    """BLAST's traceback operations (BTOP): counts of equal letters, and the two letters of each other column.

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
