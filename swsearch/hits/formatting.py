"""How a result is printed: text in one line, numbers as BLAST prints them, and alignments in blocks of 60 columns.

Numbers are the same on every machine. The functions ``blast_*`` use the number formats of NCBI BLAST+ 2.12, checked
against its output: fewer digits for less significant values, an E-value below 1e-180 as ``0.0``, and a bit score above
99.9 without decimals, truncated rather than rounded.

In the records, an alignment is in the direction of the aligned query strand. BLAST prints the forward query and the
reversed subject instead. Therefore, for the minus strand, the CIGAR is reversed and the subject's letters are
reverse-complemented; the query's letters remain exactly as written. Translated residues are printed in the direction of
their frame.

The blocks have the query above the subject, as in BLAST's reports. The report ``pairwise``, the pages with alignments,
``swsearch align`` and ``print(hit)`` take them from here. Their coordinates are 1-based. A hit of the minus strand of a
DNA query shows the subject with positions from high to low, and residues of a translated sequence have the positions of
their bases.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from swsearch.hits.cigar import GAP, gapped, midline, parse
from swsearch.hits.hit import Hit
from swsearch.hits.result import RunInfo
from swsearch.scoring.matrix import SubstitutionMatrix, parse_matrix_text
from swsearch.sequences.alphabet import ALPHABETS
from swsearch.sequences.fasta_text import reverse_complement_letters
from swsearch.sequences.genetic_code import CODON

# --- text ---


_CONTROL = re.compile("[\0-\x1f\x7f\x85\u2028\u2029]")


def one_line(text: str) -> str:
    r"""Text with a space for each tab, line end and other control character, so that it cannot break a table.

    >>> one_line("a\tb\r\n")
    'a b  '
    """
    return text if text.isprintable() else _CONTROL.sub(" ", text)  # the test takes a tenth of the time


def cut(text: str, width: int) -> str:
    """Text of at most ``width`` characters; ``…`` replaces the omitted end.

    >>> cut("Leghemoglobin", 8)
    'Leghemo…'
    """
    return text if len(text) <= width else text[: max(0, width - 1)] + "…"


# --- numbers ---


UNKNOWN: Final = "N/A"
"""BLAST's text for an unknown value, also in the BLAST formats here."""

_ZERO_BELOW = 1e-180


def blast_evalue(evalue: float | None, *, digits: int = 0) -> str:
    """An E-value as BLAST prints it, with ``digits`` decimals if it is in scientific notation.

    BLAST uses 0 decimals in its pairwise reports and 2 in its tabular reports.

    >>> [blast_evalue(value) for value in (1e-200, 2.58e-103, 1.2e-5, 0.0123, 0.5, 3.14, 138.4)]
    ['0.0', '3e-103', '1e-05', '0.012', '0.50', '3.1', '138']
    """
    if evalue is None:
        return UNKNOWN
    if evalue < _ZERO_BELOW:
        return "0.0"
    if evalue < 0.0009:
        return f"{evalue:.{digits}e}"
    if evalue < 0.1:
        return f"{evalue:.3f}"
    if evalue < 1.0:
        return f"{evalue:.2f}"
    if evalue < 10.0:
        return f"{evalue:.1f}"
    return f"{evalue:.0f}"


def blast_bits(bits: float | None) -> str:
    """A bit score as BLAST prints it; a score below 100 has at least four characters.

    >>> [blast_bits(value) for value in (8.81, 99.9, 175.9, 123456.0)]
    [' 8.8', '99.9', '175', '1.235e+05']
    """
    if bits is None:
        return UNKNOWN
    if bits > 99_999:
        return f"{bits:.3e}"
    if bits > 99.9:
        return str(int(bits))
    return f"{bits:4.1f}"


def shown_bits(bits: float | None) -> str:
    """A bit score without padding; empty if there is none."""
    return "" if bits is None else blast_bits(bits).strip()


def shown_evalue(evalue: float | None) -> str:
    """An E-value; empty if there is none."""
    return "" if evalue is None else blast_evalue(evalue)


def percent(part: int, whole: int) -> float:
    """``part`` of ``whole`` in percent; 0 if ``whole`` is 0.

    >>> percent(1, 3)
    33.333333333333336
    """
    return 100 * part / whole if whole else 0.0


def whole_percent(part: int, whole: int) -> int:
    """``part`` of ``whole`` in percent, rounded to an integer as by BLAST: half up, and 100 only if they are equal.

    >>> whole_percent(299, 300), whole_percent(300, 300), whole_percent(1, 8)
    (99, 100, 13)
    """
    if part >= whole:
        return 100
    return min(99, (200 * part + whole) // (2 * whole))


# --- the two rows of an alignment ---


def shown(query_letters: str, hit: Hit) -> tuple[str, str, str]:
    """A hit's alignment in the direction of the forward query, whose letters are given as written.

    The aligned letters of query and subject, and the CIGAR: the arguments of the functions of
    :mod:`swsearch.hits.cigar`.
    """
    alignment = hit.alignment
    letters = alignment.query_letters or query_letters[alignment.query_start : alignment.query_end]
    if not hit.is_turned:
        return letters, alignment.subject_letters, alignment.cigar
    backwards = "".join(f"{length}{operation}" for length, operation in reversed(parse(alignment.cigar)))
    return letters, reverse_complement_letters(alignment.subject_letters), backwards


def matrix_of(run: RunInfo) -> SubstitutionMatrix:
    """The matrix of a run, from its stored text."""
    return _parsed(run.matrix_scores, run.matrix, run.aligned_alphabet)


@lru_cache(maxsize=4)
def _parsed(text: str, name: str, alphabet: str) -> SubstitutionMatrix:
    return parse_matrix_text(text, name, ALPHABETS[alphabet])


def frames(hit: Hit) -> tuple[int, int]:
    """Frames of query and subject; 0 for an untranslated side of a translated search.

    Without any translation, the frames are 1, and -1 for a reversed subject. Protein has no frames, and BLAST 2.12
    prints 1.
    """
    if hit.query_frame or hit.subject_frame:
        return hit.query_frame, hit.subject_frame
    return 1, -1 if hit.is_turned else 1


# --- alignments in blocks of columns ---


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


RowText = Callable[[str, str], str]
"""A function of the letters of a row and the marks between both rows, of one block, that returns the row's text."""


def row_blocks(
    query: GappedRow, subject: GappedRow, marks: str, largest: int, row: RowText = lambda letters, _: letters
) -> Iterator[str]:
    """Two rows with the marks between them, in blocks of :data:`BLOCK` columns, each as three lines.

    ``largest`` is the largest position. A row of a block that has no letters of its sequence repeats the preceding
    position.
    """
    width = len(str(largest))
    places = [query.first, subject.first]
    for start in range(0, len(marks), BLOCK):
        between = marks[start : start + BLOCK]
        lines: list[str] = []
        for side, (name, one) in enumerate((("Query", query), ("Sbjct", subject))):
            letters = one.letters[start : start + BLOCK]
            n_letters = len(letters) - letters.count(GAP)
            sign = -1 if one.step < 0 else 1
            first = places[side] if n_letters else places[side] - sign
            places[side] += one.step * n_letters
            lines.append(f"{name}  {first:<{width}}  {row(letters, between)}  {places[side] - sign}\n")
        middle = f"       {'':<{width}}  {between}".rstrip()
        yield f"{lines[0]}{middle}\n{lines[1]}"


def blocks(run: RunInfo, query_letters: str, hit: Hit, row: RowText = lambda letters, _: letters) -> Iterator[str]:
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
        row,
    )


def value_lines(run: RunInfo, hit: Hit) -> list[str]:
    """Score, E-value and counts of an alignment."""
    alignment = hit.alignment
    lines = [f"Score = {hit.score}"]
    if hit.bits is not None and hit.evalue is not None:
        forward = "" if hit.forward_bits is None else f"  Forward = {shown_bits(hit.forward_bits)} bits,"
        lines = [f"Score = {shown_bits(hit.bits)} bits ({hit.score}),{forward}  Expect = {blast_evalue(hit.evalue)}"]
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


def hit_text(run: RunInfo, query_letters: str, hit: Hit, *, with_subject: bool = False) -> str:
    """The values of an alignment and its blocks, as lines; before them, the header and the length of its subject."""
    subject = f">{one_line(hit.subject_header) or 'unnamed'}\nLength={hit.subject_length}\n\n" if with_subject else ""
    values = "".join(f" {line}\n" for line in value_lines(run, hit))
    return subject + values + "".join(f"\n{block}" for block in blocks(run, query_letters, hit))
