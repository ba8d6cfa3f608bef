"""``pairwise``: every alignment in blocks of 60 columns, with the query above the subject, as in BLAST's own report.

Coordinates are 1-based. A hit of the minus strand of a DNA query shows the query forward and the subject reversed, with
positions from high to low. Residues of a translated sequence have the positions of their bases. The alignments of one
subject follow each other under its header.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, TextIO

from swsearch.hits.cigar import GAP, gapped, row_midline
from swsearch.hits.hit import Hit
from swsearch.hits.result import QueryResult, RunInfo
from swsearch.report.base import Report, ReportContext
from swsearch.report.formatting import blast_bits, blast_evalue, matrix_of, one_line, shown, whole_percent
from swsearch.report.summary import database_line, frames_line, hits_line, query_line, rounds_line, scoring_line
from swsearch.sequences.genetic_code import CODON

BLOCK: Final = 60


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
            _write_hit(run, query, hit, stream)


def _write_hit(run: RunInfo, query: QueryResult, hit: Hit, stream: TextIO) -> None:
    if hit.hsp == 1:
        stream.write(f"\n\n>{one_line(hit.subject_header) or 'unnamed'}\nLength={hit.subject_length}\n")
    stream.write("\n" if hit.hsp == 1 else "\n\n")
    stream.writelines(f" {line}\n" for line in value_lines(run, hit))
    stream.writelines(f"\n{block.text()}" for block in blocks(run, query, hit))


def value_lines(run: RunInfo, hit: Hit) -> list[str]:
    """Score, E-value and counts of an alignment."""
    alignment = hit.alignment
    lines = [f"Score = {hit.score}"]
    if hit.bits is not None and hit.evalue is not None:
        bits = blast_bits(hit.bits).strip()
        lines = [f"Score = {bits} bits ({hit.score}),  Expect = {blast_evalue(hit.evalue)}"]
    counts = [("Identities", alignment.identities), ("Gaps", alignment.gap_residues)]
    if run.aligned_alphabet != "dna":
        counts.insert(1, ("Positives", alignment.positives))
    shares = [f"{name} = {n}/{alignment.columns} ({whole_percent(n, alignment.columns)}%)" for name, n in counts]
    lines.append(", ".join(shares))
    if run.aligned_alphabet == "dna":
        lines.append(f"Strand=Plus/{hit.strand.capitalize()}")
    frames = [f"{frame:+d}" for frame in (hit.query_frame, hit.subject_frame) if frame]
    if frames:
        lines.append(f"Frame = {'/'.join(frames)}")
    return lines


class Block(NamedTuple):
    """Some columns of an alignment: the letters of both rows, their first and last positions, and the row between.

    ``width`` is the number of characters of the largest position of the alignment.
    """

    width: int
    query: str
    query_from: int
    query_to: int
    marks: str
    subject: str
    subject_from: int
    subject_to: int

    def text(self, row: Callable[[str, str], str] = lambda letters, marks: letters) -> str:
        """The three lines of the block; ``row`` makes the text of a row of its letters and the marks between."""
        between = f"       {'':<{self.width}}  {self.marks}".rstrip()
        query, subject = row(self.query, self.marks), row(self.subject, self.marks)
        return (
            f"Query  {self.query_from:<{self.width}}  {query}  {self.query_to}\n{between}\n"
            f"Sbjct  {self.subject_from:<{self.width}}  {subject}  {self.subject_to}\n"
        )


def blocks(run: RunInfo, query: QueryResult, hit: Hit) -> Iterator[Block]:
    """The rows with their coordinates in blocks of :data:`BLOCK` columns.

    A row of a block that has no residues of its sequence repeats the preceding position.
    """
    alignment = hit.alignment
    query_row, subject_row = gapped(*shown(query, hit))
    marks = row_midline(query_row, subject_row, matrix_of(run))
    query_place, subject_place = hit.qstart, hit.sstart
    query_sign = -1 if hit.query_frame < 0 else 1
    subject_sign = -1 if hit.is_turned or hit.subject_frame < 0 else 1
    query_step = query_sign * (CODON if hit.query_frame else 1)
    subject_step = subject_sign * (CODON if hit.subject_frame else 1)
    width = len(str(max(alignment.query_end, alignment.subject_end)))
    for start in range(0, len(marks), BLOCK):
        upper, lower = query_row[start : start + BLOCK], subject_row[start : start + BLOCK]
        n_query, n_subject = len(upper) - upper.count(GAP), len(lower) - lower.count(GAP)
        query_from = query_place if n_query else query_place - query_sign
        subject_from = subject_place if n_subject else subject_place - subject_sign
        query_place += query_step * n_query
        subject_place += subject_step * n_subject
        yield Block(
            width, upper, query_from, query_place - query_sign, marks[start : start + BLOCK],
            lower, subject_from, subject_place - subject_sign,
        )  # fmt: skip
