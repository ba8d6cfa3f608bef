"""``blast6``, ``blast7``, ``tsv`` and ``csv``: a line for each hit, with columns that can be selected.

``blast6`` and ``blast7`` are the tabular output of NCBI BLAST+, identical byte for byte if the values are equal:
``blast6`` has the lines alone; ``blast7`` adds comment lines for each query, including queries without hits.

``tsv`` and ``csv`` have a header line, for spreadsheets and data frames. Unknown values are empty. Real numbers have
fixed decimals; E-values have three significant digits.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from typing import Final, TextIO

from swsearch.hits.hit import Hit
from swsearch.hits.result import QueryResult, RunInfo
from swsearch.report.fields import STANDARD, Field, select_fields
from swsearch.report.formatting import UNKNOWN, blast_bits, blast_evalue, one_line
from swsearch.report.protocol import TaxonomyUse
from swsearch.report.taxa import DEFAULT_PERCENT, greatest_use


class ColumnsReport:
    """The selected fields of a table.

    Parameters
    ----------
    fields : sequence of str, optional
        Names of fields; by default, those of the format.
    lca_percent : float
        For the fields of the query's taxon (:class:`swsearch.report.taxa.CommonAncestors`).

    Attributes
    ----------
    asked : tuple of Field or None
        The fields that were selected; None for those of the format.
    """

    def __init__(self, fields: Sequence[str] | None = None, lca_percent: float = DEFAULT_PERCENT) -> None:
        self.asked = None if fields is None else select_fields(fields, lca_percent)
        self._lca_percent = lca_percent

    def needs_subjects(self, run: RunInfo) -> bool:
        """Whether a column is read from the database (:class:`swsearch.report.protocol.SubjectReport`)."""
        return any(field.needs_subjects for field in self.asked or ())

    def taxonomy_use(self) -> TaxonomyUse:
        """What the columns take from a taxonomy (:class:`swsearch.report.protocol.TaxonomyReport`)."""
        return greatest_use(field.use for field in self.asked or ())

    def lca_percent(self) -> float | None:
        """The percentage for the query's taxon (:class:`swsearch.report.protocol.AncestorReport`)."""
        return self._lca_percent if any(field.is_lca for field in self.asked or ()) else None


# --- tables of BLAST ---


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


# --- tables with a header line ---


DEFAULT_FIELDS: Final = (
    "qseqid", "sseqid", "rank", "score", "bitscore", "evalue", "pident", "qcovs", "length", "mismatch", "gapopen",
    "gaps", "qstart", "qend", "sstart", "send", "qlen", "slen", "strand", "cigar", "stitle",
)  # fmt: skip


def default_fields(run: RunInfo) -> tuple[Field, ...]:
    """The default columns.

    They include the frames if a side was translated, and the number of the alignment if a subject may have several.
    """
    frames = ("qframe", "sframe") if run.translates else ()
    several = ("hsp",) if run.parameters.get("max_hsps", 1) != 1 else ()
    return select_fields((*DEFAULT_FIELDS, *frames, *several))


def plain_cell(field: Field, run: RunInfo, query: QueryResult, hit: Hit) -> str:
    """The value of a field as text; empty if unknown."""
    value = field.value(run, query, hit)
    if value is None:
        return ""
    if field.name == "evalue":
        return blast_evalue(hit.evalue, digits=2)
    if field.name == "bitscore":
        return f"{value:.1f}"
    return f"{value:.{field.decimals}f}" if field.decimals is not None else str(value)


class _HeadedReport(ColumnsReport):
    """The common part of both formats: the header line and the lines of the hits."""

    def _lines(self, run: RunInfo, queries: Iterable[QueryResult]) -> Iterable[list[str]]:
        fields = self.asked or default_fields(run)
        yield [field.name for field in fields]
        for query in queries:
            for hit in query.hits:
                yield [plain_cell(field, run, query, hit) for field in fields]


class TsvReport(_HeadedReport):
    """Columns separated by tabs; a tab or line end inside a value becomes a space."""

    name = "tsv"
    binary = False

    def write(self, run: RunInfo, queries: Iterable[QueryResult], stream: TextIO) -> None:
        """Write the report (:class:`swsearch.report.protocol.ReportFormat`)."""
        for line in self._lines(run, queries):
            stream.write("\t".join(one_line(cell) for cell in line) + "\n")


class CsvReport(_HeadedReport):
    """Columns separated by commas, quoted as RFC 4180 requires; lines end with a line feed."""

    name = "csv"
    binary = False

    def write(self, run: RunInfo, queries: Iterable[QueryResult], stream: TextIO) -> None:
        """Write the report (:class:`swsearch.report.protocol.ReportFormat`)."""
        writer = csv.writer(stream, lineterminator="\n")
        for line in self._lines(run, queries):
            writer.writerow(line)
