"""``blast6``, ``blast7``, ``tsv`` and ``csv``: a line for each hit, with columns that can be selected.

``blast6`` and ``blast7`` are the tabular output of NCBI BLAST+, identical byte for byte if the values are equal:
``blast6`` has the lines alone; ``blast7`` adds comment lines for each query, including queries without hits.

``tsv`` and ``csv`` have a header line, for spreadsheets and data frames. Unknown values are empty. Real numbers have
fixed decimals; E-values have three significant digits.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from typing import Final

from swsearch.errors import InputError
from swsearch.hits.formatting import UNKNOWN, blast_bits, blast_evalue, one_line
from swsearch.hits.hit import Hit
from swsearch.hits.result import QueryResult, RunInfo
from swsearch.report.base import Report
from swsearch.report.fields import STANDARD, Field, select_fields
from swsearch.report.formats import Use
from swsearch.report.taxa import DEFAULT_PERCENT, LCA, CommonAncestors
from swsearch.words import option


class ColumnsReport(Report):
    """The selected fields of a table.

    Parameters
    ----------
    fields : sequence of str, optional
        Names of fields; by default, those of the format.
    lca_top : float
        For the fields of the query's taxon (:class:`swsearch.report.taxa.CommonAncestors`).

    Attributes
    ----------
    asked : tuple of Field
        The fields that were selected; empty for those of the format.
    """

    def __init__(self, fields: Sequence[str] | None = None, lca_top: float = DEFAULT_PERCENT) -> None:
        self.asked: tuple[Field, ...] = ()
        if fields is not None:
            self.asked = select_fields(fields)
            ancestors = CommonAncestors(lca_top)
            self.ancestors = ancestors if any(field.name in LCA for field in self.asked) else None

    def fields(self, run: RunInfo) -> tuple[Field, ...]:
        """The fields of the report of a run."""
        return self.asked or default_fields(run)

    def begin(self, run: RunInfo) -> None:  # noqa: D102
        super().begin(run)
        self._fields = self.fields(run)

    def check_fits(self, run: RunInfo) -> None:  # noqa: D102
        super().check_fits(run)
        asked = {field.name for field in self.asked}
        if "n_hsps" in asked and not run.counts_alignments:
            lack = "n_hsps: the search did not count the alignments of its subjects"
            raise InputError(f"{lack}; search with {option('count_hsps', True)}")
        if "forward_bits" in asked and not run.is_sensitive:
            lack = "forward_bits: the search has no Forward scores"
            raise InputError(f"{lack}; search with {option('sensitive', True)}")

    def needs_subjects(self, run: RunInfo) -> bool:  # noqa: D102
        return any(field.needs_subjects for field in self.asked)

    @property
    def taxonomy_use(self) -> Use:  # noqa: D102
        return max((field.use for field in self.asked), default=Use.NONE)


class LinesReport(ColumnsReport):
    """A line for each hit, with columns separated by tabs; a tab or line end inside a value becomes a space."""

    unknown = ""
    """Stands for an unknown value."""
    bits: Callable[[float | None], str] = staticmethod("{:.1f}".format)
    """The text of a bit score."""

    def write(self, query: QueryResult) -> None:
        """Write the lines of the hits."""
        for hit in self.run.listed(query):
            self.write_line([self._cell(field, query, hit) for field in self._fields])

    def write_line(self, cells: Sequence[str]) -> None:
        """Write one line."""
        self.stream.write("\t".join(map(one_line, cells)) + "\n")

    def _cell(self, field: Field, query: QueryResult, hit: Hit) -> str:
        value = field.value(self.context, query, hit)
        if value is None:
            return self.unknown
        if field.name == "evalue":
            return blast_evalue(hit.evalue, digits=2)
        if field.name in ("bitscore", "forward_bits"):
            return self.bits(float(value))
        return str(value) if field.decimals is None else f"{value:.{field.decimals}f}"


# --- tables of BLAST ---


class Blast6Report(LinesReport):
    """The lines alone, with numbers as BLAST prints them."""

    unknown = UNKNOWN
    bits = staticmethod(blast_bits)

    def __init__(self, fields: Sequence[str] | None = None, lca_top: float = DEFAULT_PERCENT) -> None:
        super().__init__(STANDARD if fields is None else fields, lca_top)


class Blast7Report(Blast6Report):
    """``blast6`` with comment lines before each query and one at the end."""

    def begin(self, run: RunInfo) -> None:
        """Write nothing, as the header is that of each query."""
        super().begin(run)
        self._n_queries = 0

    def write(self, query: QueryResult) -> None:
        """Write the comments and the lines of the hits."""
        self._n_queries += 1
        stream = self.stream
        stream.write(f"# {self.run.program}\n")
        stream.write(f"# Query: {one_line(query.header) or 'unnamed'}\n")
        stream.write(f"# Database: {one_line(self.run.database.name)}\n")
        if query.hits:
            stream.write(f"# Fields: {', '.join(field.title for field in self.asked)}\n")
        stream.write(f"# {len(query.hits)} hits found\n")
        super().write(query)

    def end(self) -> None:
        """Write the last comment."""
        self.stream.write(f"# BLAST processed {self._n_queries} queries\n")  # parsers search for this text


# --- tables with a header line ---


DEFAULT_FIELDS: Final = (
    "qseqid", "sseqid", "rank", "score", "bitscore", "evalue", "pident", "qcovs", "length", "mismatch", "gapopen",
    "gaps", "qstart", "qend", "sstart", "send", "qlen", "slen", "strand", "cigar", "stitle",
)  # fmt: skip


def default_fields(run: RunInfo) -> tuple[Field, ...]:
    """The default columns.

    They include the frames if a side was translated, the number of the alignment if a subject may have several, how
    many it has if they were counted, and the Forward score if the search was sensitive.
    """
    frames = ("qframe", "sframe") if run.translates else ()
    several = ("hsp",) if run.lists_several else ()
    counts = ("n_hsps",) if run.counts_alignments else ()
    forward = ("forward_bits",) if run.is_sensitive else ()
    return select_fields((*DEFAULT_FIELDS, *frames, *several, *counts, *forward))


class TsvReport(LinesReport):
    """A header line, then the lines."""

    def begin(self, run: RunInfo) -> None:
        """Write the header line."""
        super().begin(run)
        self.write_line([field.name for field in self._fields])


class CsvReport(TsvReport):
    """The same lines, with columns separated by commas, quoted as RFC 4180 requires; lines end with a line feed."""

    def begin(self, run: RunInfo) -> None:
        """Write the header line."""
        self._writer = csv.writer(self.stream, lineterminator="\n")
        super().begin(run)

    def write_line(self, cells: Sequence[str]) -> None:
        """Write one line."""
        self._writer.writerow(cells)
