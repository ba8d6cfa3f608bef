"""``blast6`` and ``blast7``: the tabular output of NCBI BLAST+, identical byte for byte if the values are equal.

``blast6`` has one line per hit; ``blast7`` adds comment lines for each query, including queries without hits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TextIO

from swsearch.hits.hit import Hit
from swsearch.hits.result import QueryResult, RunInfo
from swsearch.report.columns import ColumnsReport
from swsearch.report.fields import STANDARD, Field
from swsearch.report.lca import DEFAULT_PERCENT
from swsearch.report.numbers import UNKNOWN, blast_bits, blast_evalue
from swsearch.report.text import one_line


def blast_cell(field: Field, run: RunInfo, query: QueryResult, hit: Hit) -> str:
    """The value of a field as BLAST prints it in a table."""
    value = field.value(run, query, hit)
    if field.name == "evalue":
        return blast_evalue(hit.evalue, digits=2)
    if field.name == "bitscore":
        return blast_bits(hit.bits)
    if value is None:
        return UNKNOWN
    return f"{value:.{field.decimals}f}" if field.decimals is not None else one_line(str(value))


class Blast6Report(ColumnsReport):
    """One line per hit, with columns separated by tabs and without a header line."""

    name = "blast6"
    binary = False

    def __init__(self, fields: Sequence[str] | None = None, lca_percent: float = DEFAULT_PERCENT) -> None:
        super().__init__(STANDARD if fields is None else fields, lca_percent)

    def write(self, run: RunInfo, queries: Iterable[QueryResult], stream: TextIO) -> None:
        """Write the report (:class:`swsearch.report.protocol.ReportFormat`)."""
        for query in queries:
            self._write_hits(run, query, stream)

    def _write_hits(self, run: RunInfo, query: QueryResult, stream: TextIO) -> None:
        for hit in query.hits:
            stream.write("\t".join(blast_cell(field, run, query, hit) for field in self.asked or ()) + "\n")


class Blast7Report(Blast6Report):
    """``blast6`` with comment lines before each query and one at the end."""

    name = "blast7"

    def write(self, run: RunInfo, queries: Iterable[QueryResult], stream: TextIO) -> None:
        """Write the report (:class:`swsearch.report.protocol.ReportFormat`)."""
        n_queries = 0
        for query in queries:
            n_queries += 1
            stream.write(f"# {run.program}\n")
            stream.write(f"# Query: {one_line(query.header) or 'unnamed'}\n")
            stream.write(f"# Database: {one_line(run.database.name)}\n")
            if query.hits:
                stream.write(f"# Fields: {', '.join(field.title for field in self.asked or ())}\n")
            stream.write(f"# {len(query.hits)} hits found\n")
            self._write_hits(run, query, stream)
        stream.write(f"# BLAST processed {n_queries} queries\n")  # parsers search for this text
