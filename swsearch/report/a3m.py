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

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Final, TextIO

from swsearch.errors import InputError
from swsearch.hits.result import QueryResult, RunInfo
from swsearch.msa.row_filter import EVERY_ROW, RowFilter
from swsearch.report.anchored_rows import hit_row, query_row, with_kept_rows
from swsearch.sequences.alphabet import ALPHABETS

SEPARATOR: Final = "\0"
"""What separates the blocks of two queries."""


class AnchoredReport(ABC):
    """A report with the alignment of each query's hits, one after another, in the order of queries and ranks.

    Parameters
    ----------
    rows : RowFilter
        The conditions on the hits that have a row; those without keep their order.
    """

    name: str
    binary = False

    def __init__(self, rows: RowFilter = EVERY_ROW) -> None:
        self._rows = rows

    def write(self, run: RunInfo, queries: Iterable[QueryResult], stream: TextIO) -> None:
        """Write the report (:class:`swsearch.report.protocol.ReportFormat`).

        Raises
        ------
        InputError
            The query was translated.
        """
        refuse_translated_query(run, self.name)
        alphabet = ALPHABETS[run.aligned_alphabet]
        for place, query in enumerate(queries):
            self.write_query(place, with_kept_rows(query, self._rows, alphabet), stream)

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
