"""Alignments as text for readers, as BLAST shows them: blocks of 60 columns, with the query above the subject.

The report ``pairwise``, the pages with alignments, ``swsearch align`` and ``print(hit)`` take their blocks from here.

Coordinates are 1-based. A hit of the minus strand of a DNA query shows the query forward and the subject reversed, with
positions from high to low. Residues of a translated sequence have the positions of their bases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from swsearch.hits.cigar import GAP, gapped, midline
from swsearch.hits.formatting import blast_bits, blast_evalue, matrix_of, one_line, shown, whole_percent
from swsearch.hits.hit import Hit
from swsearch.hits.result import RunInfo
from swsearch.sequences.genetic_code import CODON

BLOCK: Final = 60
"""Number of columns of a block."""


class GappedRow(NamedTuple):
    """One row of an alignment: its letters with gaps, and the position of the first letter, counted from 1.

    The position of the next letter is greater by ``step``, which is negative in the reverse direction; a residue of a
    translated sequence has three bases.
    """

    letters: str
    first: int
    step: int = 1


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


def row_blocks(query: GappedRow, subject: GappedRow, marks: str, largest: int) -> Iterator[Block]:
    """Two rows, and the marks between them, in blocks of :data:`BLOCK` columns; ``largest`` is the largest position.

    A row of a block that has no letters of its sequence repeats the preceding position.
    """
    width = len(str(largest))
    places = [query.first, subject.first]
    for start in range(0, len(marks), BLOCK):
        sides: list[tuple[str, int, int]] = []
        for side, row in enumerate((query, subject)):
            letters = row.letters[start : start + BLOCK]
            n_letters = len(letters) - letters.count(GAP)
            sign = -1 if row.step < 0 else 1
            first = places[side] if n_letters else places[side] - sign
            places[side] += row.step * n_letters
            sides.append((letters, first, places[side] - sign))
        above, below = sides
        yield Block(width, *above, marks[start : start + BLOCK], *below)


def blocks(run: RunInfo, query_letters: str, hit: Hit) -> Iterator[Block]:
    """The alignment of a hit of a query in blocks; ``query_letters`` is the whole query as written."""
    alignment = hit.alignment
    query_row, subject_row = gapped(*shown(query_letters, hit))
    query_sign = -1 if hit.query_frame < 0 else 1
    subject_sign = -1 if hit.is_turned or hit.subject_frame < 0 else 1
    return row_blocks(
        GappedRow(query_row, hit.qstart, query_sign * (CODON if hit.query_frame else 1)),
        GappedRow(subject_row, hit.sstart, subject_sign * (CODON if hit.subject_frame else 1)),
        midline(query_row, subject_row, matrix_of(run)),
        max(alignment.query_end, alignment.subject_end),
    )


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


def subject_lines(hit: Hit) -> str:
    """The header and the length of a hit's subject, as two lines."""
    return f">{one_line(hit.subject_header) or 'unnamed'}\nLength={hit.subject_length}\n"


def hit_text(run: RunInfo, query_letters: str, hit: Hit) -> str:
    """The values of an alignment and its blocks, as lines."""
    values = "".join(f" {line}\n" for line in value_lines(run, hit))
    return values + "".join(f"\n{block.text()}" for block in blocks(run, query_letters, hit))
