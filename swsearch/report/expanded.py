"""``sto`` and ``afasta``: the alignment of ``a3m`` with columns for inserted residues, as alignment editors read it.

Between two columns of the query, there are as many columns as the longest insertion of any row has residues. In
Stockholm format (``sto``), inserted residues are lower case and the other rows have ``.``; the line ``#=GC RF`` marks
the columns of the query with ``x``. In aligned FASTA (``afasta``), letters are upper case and every gap is ``-``.

A Stockholm file has an alignment for each query, ended by ``//``. Its rows have names like ``P02232/5-140``, with
the positions of the aligned part, counted from 1; ``#=GS`` lines have their bit scores (``SC``), E-values (``EV``) and
descriptions (``DE``). Aligned FASTA has the row headers of ``a3m``, and a NUL byte between two queries.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final, TextIO

from swsearch.hits.cigar import GAP
from swsearch.hits.hit import Hit
from swsearch.hits.result import QueryResult
from swsearch.report.a3m import SEPARATOR, AnchoredReport
from swsearch.report.anchored_rows import aligned_letters, name_of, query_letters, row_header
from swsearch.report.text import one_line
from swsearch.sequences.record import split_header

_INSERTION: Final = re.compile("[a-z]+")
_NO_RESIDUE: Final = "."
_NOT_IN_FRONT: Final = re.compile("^(?:#|//)")
"""What a name of a row must not begin with, because such lines are remarks and ends."""


class StockholmReport(AnchoredReport):
    """Alignments of ``sto``, each ended by its own line."""

    name = "sto"

    def write_query(self, place: int, query: QueryResult, stream: TextIO) -> None:
        """Write one alignment."""
        _write_stockholm(query, stream)


class AlignedFastaReport(AnchoredReport):
    """Blocks of ``afasta``, divided like those of ``a3m``."""

    name = "afasta"

    def write_query(self, place: int, query: QueryResult, stream: TextIO) -> None:
        """Write one block."""
        widths = _widths(query)
        stream.write(f"{SEPARATOR if place else ''}>{name_of(query.header)}\n")
        stream.write(f"{expanded(query_letters(query), widths, GAP)}\n")
        for hit in query.hits:
            row = expanded(aligned_letters(query, hit), widths, GAP)
            stream.write(f">{row_header(query, hit)}\n{row.upper()}\n")


def _write_stockholm(query: QueryResult, stream: TextIO) -> None:
    widths = _widths(query)
    query_name, *hit_names = _row_names(query)
    stream.write(f"# STOCKHOLM 1.0\n#=GF ID {name_of(query.header)}\n")
    if query_description := one_line(split_header(query.header)[1]):
        stream.write(f"#=GF DE {query_description}\n")
    for name, hit in zip(hit_names, query.hits, strict=True):
        stream.writelines(f"#=GS {name} {line}\n" for line in _remarks(hit))
    width = max(map(len, [query_name, *hit_names, "#=GC RF"]))
    stream.write(f"{query_name:<{width}} {expanded(query_letters(query), widths, _NO_RESIDUE)}\n")
    for name, hit in zip(hit_names, query.hits, strict=True):
        stream.write(f"{name:<{width}} {expanded(aligned_letters(query, hit), widths, _NO_RESIDUE)}\n")
    reference = expanded("X" * query.length, widths, _NO_RESIDUE).lower()
    stream.write(f"{'#=GC RF':<{width}} {reference}\n//\n")


def _remarks(hit: Hit) -> Iterable[str]:
    if hit.bits is not None:
        yield f"SC {hit.bits:.1f}"
    if hit.evalue is not None:
        yield f"EV {hit.evalue:.3E}"
    if description := one_line(split_header(hit.subject_header)[1]):
        yield f"DE {description}"


def _row_names(query: QueryResult) -> list[str]:
    """The names of the rows, each of them once, that of the query first."""
    taken: dict[str, None] = {}
    hits = (f"{name_of(hit.subject_header)}/{hit.sstart}-{hit.send}" for hit in query.hits)
    for wanted in (name_of(query.header), *hits):
        first = name = _NOT_IN_FRONT.sub("_", wanted)
        number = 2
        while name in taken:
            name, number = f"{first}~{number}", number + 1
        taken[name] = None
    return list(taken)


def _widths(query: QueryResult) -> dict[int, int]:
    """The number of columns before a column of the query, or after its last one, for those that have any."""
    widths: dict[int, int] = {}
    for hit in query.hits:
        for column, letters in insertions(aligned_letters(query, hit)):
            widths[column] = max(widths.get(column, 0), len(letters))
    return widths


def insertions(row: str) -> list[tuple[int, str]]:
    """The insertions of a row of ``a3m``: the number of columns before each, and its letters.

    >>> insertions("MKaaW-c")
    [(2, 'aa'), (4, 'c')]
    """
    found = []
    inserted = 0
    for match in _INSERTION.finditer(row):
        found.append((match.start() - inserted, match[0]))
        inserted += len(match[0])
    return found


def expanded(row: str, widths: Mapping[int, int], gap: str) -> str:
    """A row of ``a3m`` with all columns between those of the query; ``gap`` stands where it has no residue there.

    >>> expanded("MKaW-", {2: 2, 4: 1}, ".")
    'MKa.W-.'
    """
    inserted = dict(insertions(row))
    columns = _INSERTION.sub("", row)
    parts: list[str] = []
    start = 0
    for column, width in sorted(widths.items()):
        parts += (columns[start:column], inserted.get(column, "").ljust(width, gap))
        start = column
    return "".join((*parts, columns[start:]))
