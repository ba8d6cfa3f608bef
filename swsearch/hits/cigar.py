"""CIGAR strings: ``=`` and ``X`` take a residue of both sequences, ``I`` one of the query, ``D`` one of the subject."""

from __future__ import annotations

import re
from typing import Final

GAP: Final = "-"
_RUN: Final = re.compile("([0-9]+)([=XID])")


def parse(cigar: str) -> list[tuple[int, str]]:
    """Runs of equal operations: length, then ``=``, ``X``, ``I`` or ``D``.

    >>> parse("3=1X2D")
    [(3, '='), (1, 'X'), (2, 'D')]
    """
    runs = [(int(length), operation) for length, operation in _RUN.findall(cigar)]
    if "".join(f"{length}{operation}" for length, operation in runs) != cigar:
        raise ValueError(f"{cigar!r} is not a CIGAR of =, X, I and D")
    return runs


def gapped(query_letters: str, subject_letters: str, cigar: str) -> tuple[str, str]:
    """The aligned letters of query and subject as two rows of one length, ``-`` where the other has an insertion.

    >>> gapped("ACGT", "AGTT", "1=1I2=1D")
    ('ACGT-', 'A-GTT')
    """
    query_row: list[str] = []
    subject_row: list[str] = []
    query_place = subject_place = 0
    for length, operation in parse(cigar):
        if operation == "D":
            query_row.append(GAP * length)
        else:
            query_row.append(query_letters[query_place : query_place + length])
            query_place += length
        if operation == "I":
            subject_row.append(GAP * length)
        else:
            subject_row.append(subject_letters[subject_place : subject_place + length])
            subject_place += length
    return "".join(query_row), "".join(subject_row)
