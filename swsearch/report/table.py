"""``table``: the hits of each query as a table for readers, at most 100 characters wide if its numbers fit.

Coordinates are 1-based and inclusive. In a hit of the minus strand of a DNA query, the positions of the subject
descend, as in BLAST; so do positions in a minus frame. Alignments of one subject follow each other under its number.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TextIO

from swsearch.hits.hit import Hit
from swsearch.hits.result import QueryResult, RunInfo
from swsearch.report.fields import FIELDS, identifier
from swsearch.report.numbers import blast_bits, blast_evalue, whole_percent
from swsearch.report.summary import database_line, frames_line, hits_line, query_line, rounds_line, scoring_line
from swsearch.report.text import cut, one_line
from swsearch.sequences.record import split_header

WIDTH: Final = 100
_MIN_NAME: Final = 12
_MAX_NAME: Final = 24
_MIN_DESCRIPTION: Final = 10


class TableReport:
    """A few lines per query and one line per hit."""

    name = "table"
    binary = False

    def write(self, run: RunInfo, queries: Iterable[QueryResult], stream: TextIO) -> None:
        """Write the report (:class:`swsearch.report.protocol.ReportFormat`)."""
        first = True
        for query in queries:
            if not first:
                stream.write("\n")
            first = False
            stream.write(f"Query:    {query_line(run, query, WIDTH - 10)}\n")
            stream.write(f"Database: {database_line(run)}\n")
            stream.write(f"Scoring:  {scoring_line(run)}\n")
            if run.translates:
                stream.write(f"Frames:   {frames_line(run)}\n")
            if (rounds := rounds_line(run, query)) is not None:
                stream.write(f"Rounds:   {rounds}\n")
            stream.write(f"Hits:     {hits_line(run, query)}\n")
            if query.hits:
                stream.write("\n")
                stream.writelines(line + "\n" for line in _table(run, query))


def number_titles(run: RunInfo) -> list[str]:
    """Column titles of :func:`number_cells`; ``round`` is that in which a subject was included first."""
    titles = ["length", "score", "bits", "E-value", "ident", "cover", "query", "subject"]
    if run.iterations > 1:
        titles.append("round")
    if run.translates:
        return [*titles, "frames"]
    return [*titles, "strand"] if run.aligned_alphabet == "dna" else titles


def number_cells(run: RunInfo, query: QueryResult, hit: Hit) -> list[str]:
    """The numbers of a hit as text without padding; empty if unknown."""
    alignment = hit.alignment
    cells = [
        str(hit.subject_length),
        str(hit.score),
        "" if hit.bits is None else blast_bits(hit.bits).strip(),
        "" if hit.evalue is None else blast_evalue(hit.evalue),
        f"{whole_percent(alignment.identities, alignment.columns)}%",
        f"{whole_percent(alignment.query_end - alignment.query_start, query.length)}%",
        f"{FIELDS['qstart'].value(run, query, hit)}-{FIELDS['qend'].value(run, query, hit)}",
        f"{FIELDS['sstart'].value(run, query, hit)}-{FIELDS['send'].value(run, query, hit)}",
    ]
    if run.iterations > 1:
        cells.append(str(hit.round or ""))
    if run.translates:
        return [*cells, str(FIELDS["frames"].value(run, query, hit))]
    return [*cells, hit.strand] if run.aligned_alphabet == "dna" else cells


def _table(run: RunInfo, query: QueryResult) -> list[str]:
    """The lines of the table; names and descriptions share the width that the numbers do not use."""
    titles = number_titles(run)
    numbers = [titles, *(number_cells(run, query, hit) for hit in query.hits)]
    widths = [max(len(line[column]) for line in numbers) for column in range(len(titles))]
    ranks = ["#", *(str(hit.rank) for hit in query.hits)]
    names = ["id", *(one_line(identifier(hit.subject_header)) for hit in query.hits)]
    described = ["description", *(one_line(split_header(hit.subject_header)[1]) for hit in query.hits)]
    rank_width = max(map(len, ranks))
    left = WIDTH - rank_width - sum(widths) - len(widths) - 2
    name_width = min(max(map(len, names)), _MAX_NAME, max(_MIN_NAME, left - _MIN_DESCRIPTION))
    description_width = min(max(map(len, described)), max(_MIN_DESCRIPTION, left - name_width))
    lines = []
    for rank, name, description, cells in zip(ranks, names, described, numbers, strict=True):
        texts = f"{cut(name, name_width):<{name_width}} {cut(description, description_width):<{description_width}}"
        padded = " ".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
        lines.append(f"{rank:>{rank_width}} {texts} {padded}".rstrip())
    return lines
