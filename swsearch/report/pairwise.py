"""``pairwise``: every alignment in blocks of 60 columns, query above subject, in the manner of BLAST's own report.

Coordinates are 1-based. A hit of the minus strand of a DNA query shows the query as given and the subject turned, its
places from high to low.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TextIO

from swsearch.hits.cigar import GAP, gapped, midline
from swsearch.hits.hit import Hit
from swsearch.hits.result import QueryResult, RunInfo
from swsearch.report.numbers import blast_bits, blast_evalue, whole_percent
from swsearch.report.rows import matrix_of, shown
from swsearch.report.summary import database_line, hits_line, query_line, scoring_line
from swsearch.report.text import one_line

BLOCK: Final = 60


class PairwiseReport:
    """The alignments themselves, for reading."""

    name = "pairwise"

    def write(self, run: RunInfo, queries: Iterable[QueryResult], stream: TextIO) -> None:
        """Write the report (:class:`swsearch.report.protocol.ReportFormat`)."""
        stream.write(f"Database: {database_line(run)}\n")
        stream.write(f"Scoring:  {scoring_line(run)}\n")
        for query in queries:
            stream.write(f"\n\nQuery= {query_line(run, query)}\n")
            stream.write(f"Hits: {hits_line(run, query)}\n")
            for hit in query.hits:
                _write_hit(run, query, hit, stream)


def _write_hit(run: RunInfo, query: QueryResult, hit: Hit, stream: TextIO) -> None:
    alignment = hit.alignment
    stream.write(f"\n\n>{one_line(hit.subject_header) or 'unnamed'}\nLength={hit.subject_length}\n\n")
    if hit.bits is None or hit.evalue is None:
        stream.write(f" Score = {hit.score}\n")
    else:
        bits = blast_bits(hit.bits).strip()
        stream.write(f" Score = {bits} bits ({hit.score}),  Expect = {blast_evalue(hit.evalue)}\n")
    counts = [("Identities", alignment.identities), ("Gaps", alignment.gap_residues)]
    if run.database.alphabet != "dna":
        counts.insert(1, ("Positives", alignment.positives))
    shares = [f"{name} = {n}/{alignment.columns} ({whole_percent(n, alignment.columns)}%)" for name, n in counts]
    stream.write(f" {', '.join(shares)}\n")
    if run.database.alphabet == "dna":
        stream.write(f" Strand=Plus/{hit.strand.capitalize()}\n")
    _write_blocks(run, query, hit, stream)


def _write_blocks(run: RunInfo, query: QueryResult, hit: Hit, stream: TextIO) -> None:
    """The rows with their coordinates. A block without residues of a sequence repeats the place before it."""
    alignment = hit.alignment
    alignment_shown = shown(query, hit)
    query_row, subject_row = gapped(*alignment_shown)
    marks = midline(*alignment_shown, matrix_of(run))
    step = 1 if hit.strand == "plus" else -1
    query_place = alignment.query_start + 1
    subject_place = alignment.subject_start + 1 if step == 1 else alignment.subject_end
    width = len(str(max(alignment.query_end, alignment.subject_end)))
    for start in range(0, len(marks), BLOCK):
        upper, lower = query_row[start : start + BLOCK], subject_row[start : start + BLOCK]
        n_query, n_subject = len(upper) - upper.count(GAP), len(lower) - lower.count(GAP)
        query_from = query_place if n_query else query_place - 1
        subject_from = subject_place if n_subject else subject_place - step
        query_place += n_query
        subject_place += step * n_subject
        stream.write(f"\nQuery  {query_from:<{width}}  {upper}  {query_place - 1}\n")
        stream.write(f"       {'':<{width}}  {marks[start : start + BLOCK]}".rstrip() + "\n")
        stream.write(f"Sbjct  {subject_from:<{width}}  {lower}  {subject_place - step}\n")
