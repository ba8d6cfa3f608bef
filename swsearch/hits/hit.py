"""A hit: a local alignment of a query with a subject, with its scores and E-value.

Coordinates are 0-based and half-open, as Python slices; reports convert them where their format is 1-based and
inclusive. On the minus strand of a DNA query the alignment runs along the reverse complement, but ``query_start`` and
``query_end`` are positions on the query as given, ``query_start < query_end``.

Where query or subject was translated, its coordinates are bases of the DNA as given, again with start < end; its
letters are residues, and the CIGAR counts residues: one column is three bases.
"""

from __future__ import annotations

from dataclasses import dataclass


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
        1, 2, 3, -1, -2 or -3 where the sequence was translated (:mod:`swsearch.sequences.genetic_code`); otherwise 0.
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

    @property
    def is_turned(self) -> bool:
        """Whether reports show the subject reversed: for DNA against DNA on the query's minus strand."""
        return self.strand == "minus" and self.query_frame == 0
