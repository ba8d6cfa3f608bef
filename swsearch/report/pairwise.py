"""``pairwise``: every alignment in the blocks of :mod:`swsearch.hits.blocks`, as in BLAST's own report.

The alignments of one subject follow each other under its header.
"""

from __future__ import annotations

from typing import TextIO

from swsearch.hits.blocks import hit_text, subject_lines
from swsearch.hits.result import QueryResult
from swsearch.report.base import Report, ReportContext
from swsearch.report.summary import database_line, frames_line, hits_line, query_line, rounds_line, scoring_line


class PairwiseReport(Report):
    """The alignments as text for readers."""

    name = "pairwise"

    def begin(self, context: ReportContext, stream: TextIO) -> None:
        """Write the description of the search."""
        super().begin(context, stream)
        run = context.run
        stream.write(f"Database: {database_line(run)}\n")
        stream.write(f"Scoring:  {scoring_line(run)}\n")
        if run.translates:
            stream.write(f"Frames:   {frames_line(run)}\n")

    def write(self, query: QueryResult) -> None:
        """Write the alignments of a query."""
        run, stream = self.run, self.stream
        stream.write(f"\n\nQuery= {query_line(run, query)}\n")
        if (rounds := rounds_line(run, query)) is not None:
            stream.write(f"Rounds: {rounds}\n")
        stream.write(f"Hits: {hits_line(run, query)}\n")
        for hit in query.hits:
            stream.write(f"\n\n{subject_lines(hit)}\n" if hit.hsp == 1 else "\n\n")
            stream.write(hit_text(run, query.letters, hit))
