"""A hit: one subject's best local alignment with a query, and what it is worth.

Coordinates are 0-based and half-open, as Python slices; reports that want them 1-based and inclusive convert. On the
minus strand of a DNA query the alignment runs along the reverse complement, and ``query_start`` and ``query_end`` are
still places on the query as given, ``query_start < query_end``; the reports print them as their format demands.
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
        Columns whose pair scores above 0, identities among them where they do.
    columns : int
        Length of the alignment, gaps included.
    gap_openings, gap_residues : int
        Number of gaps, and columns that they fill.
    subject_letters : str
        The aligned part of the subject as written, without gaps, so that a stored hit can be shown.
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

    @property
    def mismatches(self) -> int:
        """Columns of two different letters."""
        return self.columns - self.identities - self.gap_residues


@dataclass(frozen=True)
class Hit:
    """One subject found by one query.

    Attributes
    ----------
    rank : int
        Place in the query's list, from 1: smaller E-value, then higher score, then smaller subject index.
    subject_index : int
        Place in the database's FASTA order, from 0.
    subject_header : str
        Whole header without ``>``.
    subject_length : int
        Residues.
    score : int
        Raw score.
    bits : float or None
        Bit score; None where the scoring scheme has no statistics.
    evalue : float or None
        Expected number of subjects with a score as good by chance; None where there are no statistics.
    strand : str
        ``plus`` or ``minus``: the strand of a DNA query that aligned; ``plus`` for protein.
    alignment : Alignment
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
