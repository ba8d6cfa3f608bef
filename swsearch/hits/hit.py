"""A hit: a local alignment of a query with a subject, with its scores and E-value.

Coordinates are 0-based and half-open, as Python slices; reports convert them where their format is 1-based and
inclusive. On the minus strand of a DNA query the alignment runs along the reverse complement, but ``query_start`` and
``query_end`` are positions on the query as given, ``query_start < query_end``.

Where query or subject was translated, its coordinates are bases of the DNA as given, again with start < end; its
letters are residues, and the CIGAR counts residues: one column is three bases.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from swsearch.sequences.record import split_header


@dataclass(frozen=True)
class Alignment:
    """One local alignment.

    Attributes
    ----------
    query_start, query_end : int
        Aligned part of the query as given, 0-based, half-open.
    subject_start, subject_end : int
        Aligned part of the subject, 0-based, half-open.
    cigar : str
        ``=`` match, ``X`` mismatch, ``I`` consumes the query, ``D`` the subject; along the strand that aligned.
    identities : int
        Columns of equal letters; case does not count, and ``U`` of RNA equals ``T``.
    positives : int
        Columns whose pair of residues scores above 0, including such identities.
    columns : int
        Length of the alignment, including gaps.
    gap_openings, gap_residues : int
        Number of gaps, and number of gap columns.
    subject_letters : str
        The aligned part of the subject, as written or translated, without gaps; with it a stored hit can be printed.
    query_letters : str
        The aligned part of a translated query; empty where the query was not translated.
    """

    query_start: int
    query_end: int
    subject_start: int
    subject_end: int
    cigar: str
    identities: int
    positives: int
    columns: int
    gap_openings: int
    gap_residues: int
    subject_letters: str
    query_letters: str = ""

    @property
    def mismatches(self) -> int:
        """Columns of two different letters."""
        return self.columns - self.identities - self.gap_residues


@dataclass(frozen=True)
class Hit:
    """One alignment of one query with one subject; the alignments of a subject are adjacent in the list of hits.

    Attributes
    ----------
    rank : int
        The subject's rank in the query's list, from 1: by ascending E-value, descending score and ascending subject
        index, all of the subject's best alignment.
    subject_index : int
        Index in the database's FASTA order, from 0.
    subject_header : str
        Whole header without ``>``.
    subject_length : int
        Length of the subject as given, in residues or bases.
    score : int
        Raw score.
    bits : float or None
        Bit score; None where the scoring scheme has no statistics.
    evalue : float or None
        Expected number of subjects that reach the score by chance; None where there are no statistics.
    strand : str
        ``plus`` or ``minus``: the strand of a DNA query that aligned; ``plus`` for protein.
    alignment : Alignment
    hsp : int
        The alignment's rank among those of its subject, from 1.
    query_frame, subject_frame : int
        1, 2, 3, -1, -2 or -3 of what was translated (:mod:`swsearch.sequences.genetic_code`); 0 of what was not.
    query_header : str
        Whole header of the query without ``>``; it does not count when hits are compared.
    """

    rank: int
    subject_index: int
    subject_header: str
    subject_length: int
    score: int
    bits: float | None
    evalue: float | None
    strand: str
    alignment: Alignment
    hsp: int = 1
    query_frame: int = 0
    subject_frame: int = 0
    query_header: str = field(default="", compare=False)

    @property
    def query_id(self) -> str:
        """First word of the query's header."""
        return split_header(self.query_header)[0]

    @property
    def subject_id(self) -> str:
        """First word of the subject's header."""
        return split_header(self.subject_header)[0]

    @property
    def bitscore(self) -> float | None:
        """The bit score by BLAST's name of the column."""
        return self.bits

    @property
    def pident(self) -> float:
        """Columns of equal letters in percent of all columns of the alignment, 0 to 100, not rounded."""
        return 100 * self.alignment.identities / self.alignment.columns

    @property
    def length(self) -> int:
        """Columns of the alignment, gaps included."""
        return self.alignment.columns

    @property
    def mismatch(self) -> int:
        """Columns of two different letters."""
        return self.alignment.mismatches

    @property
    def gapopen(self) -> int:
        """Number of gaps."""
        return self.alignment.gap_openings

    @property
    def qstart(self) -> int:
        """First aligned position of the query in reading direction, counted from 1."""
        return self._query_positions[0]

    @property
    def qend(self) -> int:
        """Last aligned position of the query in reading direction, counted from 1."""
        return self._query_positions[1]

    @property
    def sstart(self) -> int:
        """First aligned position of the subject in the direction in which BLAST shows it, counted from 1."""
        return self._subject_positions[0]

    @property
    def send(self) -> int:
        """Last aligned position of the subject in the direction in which BLAST shows it, counted from 1."""
        return self._subject_positions[1]

    @property
    def _query_positions(self) -> tuple[int, int]:
        positions = self.alignment.query_start + 1, self.alignment.query_end
        return positions if self.query_frame >= 0 else positions[::-1]

    @property
    def _subject_positions(self) -> tuple[int, int]:
        positions = self.alignment.subject_start + 1, self.alignment.subject_end
        return positions[::-1] if self.is_turned or self.subject_frame < 0 else positions

    @property
    def is_turned(self) -> bool:
        """Whether reports show the subject reversed: for DNA against DNA on the query's minus strand."""
        return self.strand == "minus" and self.query_frame == 0
