r"""``a3m``: the hits of a query as a multiple alignment that is anchored to the query, as structure predictors read it.

The first row of a block is the query. Each hit adds a row, in the order of the list: upper-case letters and ``-`` are
the columns of the query, lower-case letters are residues between two of them. Only the aligned part of a subject is in
its row, and the columns before and after it are ``-``; without its lower-case letters, every row has the length of the
query. Several alignments of one subject are several rows.

The header of a row is that of MMseqs2's ``result2msa --msa-format-mode 6``, which ColabFold's server uses: identifier,
bit score, identity (0 to 1), E-value, first and last position and length of the query, the same of the subject,
separated by tabs. Positions count from 0, and the last one is included. The blocks of several queries are separated by
a NUL byte, as in the files of that server.

A stop (``*``) is written as ``X``, because readers of this format do not know it. A search whose query was translated
cannot be written: a row has residues, and its query has bases.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Final, TextIO

from swsearch.errors import InputError
from swsearch.hits.cigar import GAP, gapped
from swsearch.hits.hit import Hit
from swsearch.hits.result import QueryResult, RunInfo
from swsearch.report.fields import identifier
from swsearch.report.rows import shown
from swsearch.report.text import one_line

SEPARATOR: Final = "\0"
"""What separates the blocks of two queries."""
_GAPS: Final = re.compile(f"{GAP}+")


class AnchoredReport(ABC):
    """A report with the alignment of each query's hits, one after another, in the order of queries and ranks."""

    name: str
    binary = False

    def write(self, run: RunInfo, queries: Iterable[QueryResult], stream: TextIO) -> None:
        """Write the report (:class:`swsearch.report.protocol.ReportFormat`).

        Raises
        ------
        InputError
            The query was translated.
        """
        refuse_translated_query(run, self.name)
        for place, query in enumerate(queries):
            self.write_query(place, query, stream)

    @abstractmethod
    def write_query(self, place: int, query: QueryResult, stream: TextIO) -> None:
        """Write the alignment of a query; ``place`` is its index in the report."""


class A3mReport(AnchoredReport):
    """Blocks of ``a3m``, divided by :data:`SEPARATOR`."""

    name = "a3m"

    def write_query(self, place: int, query: QueryResult, stream: TextIO) -> None:
        """Write one block."""
        if place:
            stream.write(SEPARATOR)
        stream.write(query_row(query))
        stream.writelines(hit_row(query, hit) for hit in query.hits)


def refuse_translated_query(run: RunInfo, name: str) -> None:
    """Raise :class:`InputError` if the query was translated."""
    if run.translates in ("query", "both"):
        raise InputError(
            f"format {name} cannot hold a search with a translated query: a row of residues does not fit a query of "
            "bases; choose blast6, pairwise or another format"
        )


def query_row(query: QueryResult) -> str:
    """Header and letters of the query, two lines."""
    return f">{name_of(query.header)}\n{query_letters(query)}\n"


def query_letters(query: QueryResult) -> str:
    """The row of the query without its header."""
    return _residues(query.letters).upper()


def hit_row(query: QueryResult, hit: Hit) -> str:
    """Header and aligned letters of a hit, two lines."""
    return f">{row_header(query, hit)}\n{aligned_letters(query, hit)}\n"


def row_header(query: QueryResult, hit: Hit) -> str:
    """The ten columns of a row's header.

    The score is the bit score, rounded; without statistics, the raw score, and the E-value is ``NaN``. The identity is
    cut after three decimals. The positions of a reversed subject descend.
    """
    alignment = hit.alignment
    score = hit.score if hit.bits is None else int(hit.bits + 0.5)
    identity = 1000 * alignment.identities // alignment.columns
    evalue = "NaN" if hit.evalue is None else f"{hit.evalue:.3E}"
    columns = [
        name_of(hit.subject_header), score, f"{identity // 1000}.{identity % 1000:03}", evalue,
        alignment.query_start, alignment.query_end - 1, query.length, hit.sstart - 1, hit.send - 1, hit.subject_length,
    ]  # fmt: skip
    return "\t".join(map(str, columns))


def aligned_letters(query: QueryResult, hit: Hit) -> str:
    """The row of a hit without its header.

    Raises
    ------
    InputError
        The stored alignment does not cover its letters.
    """
    alignment = hit.alignment
    above, row = gapped(*shown(query, hit))
    row = _residues(row).upper()
    parts: list[str] = []
    end = 0
    for gap in _GAPS.finditer(above):
        parts += (row[end : gap.start()], row[gap.start() : gap.end()].lower())
        end = gap.end()
    row = "".join((*parts, row[end:]))
    return GAP * alignment.query_start + row + GAP * (query.length - alignment.query_end)


def name_of(header: str) -> str:
    """The identifier of a header, without control characters."""
    return one_line(identifier(header)).replace(" ", "_")


def _residues(letters: str) -> str:
    return letters.replace("*", "X")
