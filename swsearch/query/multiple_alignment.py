"""Multiple alignments, from files and from the hits of a query.

In *aligned FASTA*, all records have the same length, and gaps are ``-`` or ``.``. In *A2M and A3M*, lower-case letters
and ``.`` are insertions between the columns of the alignment; they are discarded. Several alignments in these formats
are separated by NUL bytes, as in the files of ColabFold's server. A *Stockholm* file contains one or several
alignments, each terminated by ``//``; a sequence may be continued in a later block, ``#=GF ID`` is the name of the
alignment, and other annotation is ignored.

The rows of hits have a column for each position of the query (:func:`anchored_rows`);
:mod:`swsearch.query.estimation` uses them. A row has one code for each position: that of a residue, or :data:`GAP`
where the subject lacks the position, or :data:`OUTSIDE` before and after the aligned part. Residues that a subject has
between two positions of the query are left out.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch import _native
from swsearch.errors import InputError
from swsearch.hits.hit import Hit
from swsearch.sequences.alphabet import CODE_MASK, INVALID, PAD_CODE, PROTEIN
from swsearch.sequences.source import shown_name, text_lines
from swsearch.typing import Codes
from swsearch.words import counted, first_word

_GAPS: Final = b"-."
_TABLE: Final = PROTEIN.encode_table.copy()
for _gap in _GAPS:
    _TABLE[_gap] = PAD_CODE
_INSERTIONS: Final = bytes(range(ord("a"), ord("z") + 1)) + b"."
_BLOCK_END: Final = "\0"
_STOCKHOLM: Final = "# STOCKHOLM 1."


@dataclass(frozen=True, eq=False)
class MultipleAlignment:
    """Aligned protein sequences.

    Attributes
    ----------
    name : str
        The name of the alignment in the file, or the header of the first sequence; empty if there is none.
    codes : uint8 array, shape (n_sequences, n_columns)
        Residue codes without soft-mask flags; 31 for a gap.
    all_columns : bool
        Whether every column is a position of the profile, as in A2M and A3M. Otherwise, columns with few residues are
        not positions.
    """

    name: str
    codes: Codes
    all_columns: bool


def read_aligned_fasta(path: str | os.PathLike[str], *, insertions: bool) -> Iterator[MultipleAlignment]:
    """The alignments of an aligned FASTA file or, with ``insertions``, of an A2M or A3M file, in order.

    There is one alignment, or there are several, with a NUL byte between them.

    Raises
    ------
    InputError
        The file is not in this format; the message names the record or the line.
    """
    name = shown_name(path)
    records: list[tuple[str, list[str]]] = []
    n_found = 0

    def alignment() -> MultipleAlignment:
        title = records[0][0] if insertions else ""
        place = name if n_found == 1 else f"{name}, alignment {n_found}"
        return _alignment(title, records, place, insertions=insertions)

    for number, line in enumerate(text_lines(path, name), 1):
        content = line.strip()
        if content.startswith(_BLOCK_END):
            if records:
                n_found += 1
                yield alignment()
            records = []
            content = content.lstrip(_BLOCK_END)
        if content.startswith(">"):
            records.append((content[1:].strip(), []))
        elif content and not (content.startswith("#") and not records):  # A3M of HH-suite may begin with a name
            if not records:
                raise InputError(f"{name}, line {number}: expected '>' at the beginning of an aligned FASTA file")
            records[-1][1].append(content)
    if records:
        n_found += 1
        yield alignment()
    elif not n_found:
        raise InputError(f"{name} holds no aligned sequence; a FASTA file begins with '>'")


def read_stockholm(path: str | os.PathLike[str]) -> Iterator[MultipleAlignment]:
    """The alignments of a Stockholm file, in order.

    Raises
    ------
    InputError
        The file is not in this format; the message names the line, or the alignment and the sequence.
    """
    name = shown_name(path)
    rows: dict[str, list[str]] = {}
    title = ""
    inside = False
    n_found = 0
    for number, line in enumerate(text_lines(path, name), 1):
        content = line.strip()
        if content.startswith(_STOCKHOLM):
            if inside:
                raise InputError(f"{name}, line {number}: the alignment before has no end; put // behind it")
            inside, rows, title = True, {}, ""
        elif not content:
            continue
        elif not inside:
            raise InputError(f"{name}, line {number}: expected '# STOCKHOLM 1.0' at the beginning of an alignment")
        elif content == "//":
            n_found, inside = n_found + 1, False
            yield _alignment(title, list(rows.items()), f"{name}, alignment {n_found}", insertions=False)
        elif content.startswith("#"):
            fields = content.split(None, 2)
            if fields[:2] == ["#=GF", "ID"] and len(fields) == 3:
                title = fields[2]
        else:
            fields = content.split()
            if len(fields) != 2:
                raise InputError(f"{name}, line {number}: expected a name and its row, separated by blanks")
            rows.setdefault(fields[0], []).append(fields[1])
    if inside:
        raise InputError(f"{name}: the last alignment has no end (//); the file may be cut short")
    if not n_found:
        raise InputError(f"{name} holds no alignment; a Stockholm file begins with '# STOCKHOLM 1.0'")


def _alignment(title: str, records: list[tuple[str, list[str]]], name: str, *, insertions: bool) -> MultipleAlignment:
    """The alignment of named rows in pieces, which must have the same length and consist of protein letters and gaps.

    With ``insertions``, these are discarded, and all columns are positions.
    """
    rows = [(header, "".join(pieces).encode("utf-8", "surrogateescape")) for header, pieces in records]
    if insertions:
        rows = [(header, row.translate(None, _INSERTIONS)) for header, row in rows]
    if not rows or not rows[0][1]:
        raise InputError(f"{name}: there is no aligned sequence")
    n_columns = len(rows[0][1])
    for number, (header, row) in enumerate(rows):
        if len(row) != n_columns:
            problem = f"{counted(len(row), 'column')}, the first sequence has {n_columns}"
            raise InputError(f"{_which(name, number, header)}: {problem}; align them to one length")
    codes = np.empty((len(rows), n_columns), dtype=np.uint8)
    for number, (header, row) in enumerate(rows):
        codes[number] = _TABLE[np.frombuffer(row, dtype=np.uint8)]
        bad = np.flatnonzero(codes[number] == INVALID)
        if bad.size:
            which = _which(name, number, header)
            raise InputError(f"{which}, column {bad[0] + 1}: {PROTEIN.reject(row[bad[0]])}")
    codes &= np.uint8(CODE_MASK)
    return MultipleAlignment(title, codes, insertions)


def _which(name: str, number: int, header: str) -> str:
    """The name of a row of a file in messages."""
    return f"{name}, sequence {number + 1} ({first_word(header)})"


OUTSIDE: Final = 30
"""Code of a column before or after the aligned part of a row."""
GAP: Final = PAD_CODE
"""Code of a gap inside the aligned part of a row."""
NEARLY_IDENTICAL: Final = 94
"""Percentage of equal residues from which on a row adds nothing to an earlier one, as in PSI-BLAST."""


def anchored_rows(query_length: int, hits: Sequence[Hit]) -> NDArray[np.uint8]:
    """The rows of protein hits, in the order of the hits.

    Parameters
    ----------
    query_length : int
        Number of positions of the query, which is not translated.
    hits : sequence of Hit
        Hits with ``subject_letters``.

    Returns
    -------
    uint8 array, shape (n_hits, query_length)

    Raises
    ------
    InputError
        An alignment does not fit its letters or the query.
    """
    rows = np.empty((len(hits), query_length), dtype=np.uint8)
    letters = "".join([hit.alignment.subject_letters for hit in hits]).encode("latin-1", "replace")
    cigars = "".join([hit.alignment.cigar for hit in hits]).encode("latin-1", "replace")
    codes = PROTEIN.encode_table[np.frombuffer(letters, dtype=np.uint8)] & np.uint8(CODE_MASK)
    failed = _native.write_rows(
        codes,
        np.cumsum([len(hit.alignment.subject_letters) for hit in hits], dtype=np.int64),
        np.frombuffer(cigars, dtype=np.uint8),
        np.cumsum([len(hit.alignment.cigar) for hit in hits], dtype=np.int64),
        np.array([hit.alignment.query_start for hit in hits], dtype=np.int64),
        rows,
    )
    if failed >= 0:
        raise InputError(f"the alignment with {hits[failed].subject_id} does not fit its letters; search again")
    return rows


def distinct_rows(rows: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The rows that add something to those before them.

    The first row is the query. A further row is left out if it equals the query in all its residues, or an earlier
    remaining row in at least :data:`NEARLY_IDENTICAL` percent of them. The percentage refers to the residues of the
    later row, so a long row is not left out because of a short one.
    """
    keep = np.empty(len(rows), dtype=np.uint8)
    _native.keep_distinct(np.ascontiguousarray(rows), NEARLY_IDENTICAL, keep)
    distinct: NDArray[np.uint8] = rows[keep.astype(bool)]
    return distinct


def rows_of_alignment(codes: Codes) -> NDArray[np.uint8]:
    """The rows of an alignment from a file, whose gaps before the first and after the last residue are outside."""
    rows = codes.copy()
    is_gap = rows == GAP
    before = np.logical_and.accumulate(is_gap, axis=1)
    after = np.logical_and.accumulate(is_gap[:, ::-1], axis=1)[:, ::-1]
    rows[before | after] = OUTSIDE
    return rows
