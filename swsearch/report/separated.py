"""``tsv`` and ``csv``: a header line and one line per hit, for spreadsheets and data frames.

Unknown values are empty. Real numbers have fixed decimals; E-values have three significant digits.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from typing import Final, TextIO

from swsearch.hits.hit import Hit
from swsearch.hits.result import QueryResult, RunInfo
from swsearch.report.columns import ColumnsReport
from swsearch.report.fields import Field, select_fields
from swsearch.report.numbers import blast_evalue
from swsearch.report.text import one_line

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
