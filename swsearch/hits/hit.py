"""A hit: a local alignment of a query with a subject, with its scores and E-value.

Coordinates are 0-based and half-open, as Python slices; reports convert them if their format is 1-based and inclusive.
On the minus strand of a DNA query, the alignment is that of the reverse complement, but ``query_start`` and
``query_end`` are positions on the forward query, with ``query_start < query_end``.

If the query or the subject was translated, its coordinates are in bases of the forward DNA, again with start < end; its
letters are residues, and the CIGAR counts residues: one column is three bases.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from swsearch.sequences.record import split_header

if TYPE_CHECKING:
    from swsearch.hits.result import RunInfo


@dataclass(frozen=True)
class Alignment:
    """One local alignment.

    Attributes
    ----------
    query_start, query_end : int
        Aligned part of the forward query, 0-based, half-open.
    subject_start, subject_end : int
        Aligned part of the subject, 0-based, half-open.
    cigar : str
        ``=`` match, ``X`` mismatch, ``I`` consumes the query, ``D`` the subject; in the direction of the aligned
        strand.
    identities : int
        Number of columns of equal letters; case is ignored, and ``U`` of RNA equals ``T``.
    positives : int
        Number of columns whose pair of residues has a score above 0, including such identities.
    columns : int
        Length of the alignment, including gaps.
    gap_openings, gap_residues : int
        Number of gaps, and number of gap columns.
    subject_letters : str
        The aligned part of the subject, as written or translated, without gaps; with it, a stored hit can be printed.
    query_letters : str
        The aligned part of a translated query; empty if the query was not translated.
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
        """Number of columns of two different letters."""
        return self.columns - self.identities - self.gap_residues


class HitSource(NamedTuple):
    """What is needed beside a hit to show its alignment: the search, and the letters of the query as written."""

    run: RunInfo
    query_letters: str


@dataclass(frozen=True)
class Hit:
    """One alignment of one query with one subject; the alignments of a subject are adjacent in the list of hits.

    Attributes
    ----------
    rank : int
        The rank of the subject in the query's list, from 1: by ascending E-value, descending score and ascending
        subject index, where E-value and score are those of the subject's best alignment.
    subject_index : int
        Index of the subject in the database's FASTA order, from 0.
    subject_header : str
        Complete header without ``>``.
    subject_length : int
        Length of the subject in the database, in residues or bases.
    score : int
        Raw score.
    bits : float or None
        Bit score; None if the scoring scheme has no statistics.
    evalue : float or None
        Expected number of subjects that reach the score by chance; None if there are no statistics.
    strand : str
        ``plus`` or ``minus``: the aligned strand of a DNA query; ``plus`` for protein.
    alignment : Alignment
    hsp : int
        The alignment's rank among the listed ones of its subject, from 1: by ascending E-value, then descending score.
    query_frame, subject_frame : int
        1, 2, 3, -1, -2 or -3 for a translated sequence (:mod:`swsearch.sequences.genetic_code`), 0 for an untranslated
        one.
    query_header : str
        Complete header of the query without ``>``; it is ignored in comparisons of hits.
    round : int
        The round of an iterated search in which the subject was first included in the query's profile, from 1; 0 if it
        was never included.
    number : int
        The alignment's rank among all of its subject, before any was left out by a filter on alignments, from 1.
    masked_evalue : float or None
        For a softly masked query, the E-value of the score of the masked query with the subject, without adjustment;
        the subject is listed only if it reaches ``--evalue``. None if the query has no soft mask.
    n_hsps : int or None
        Number of alignments of the subject that meet all limits but ``max_hsps``; the same in all hits of the subject.
        None if they were not counted (``count_hsps``), or if the limits of a stored run were narrowed and the store
        does not have all of them.
    forward_bits : float or None
        The Forward score of the subject in a sensitive search, in bits (``docs/design/sensitivity.md``), the same in
        all hits of the subject; None in other searches.
    source : HitSource or None
        With it, ``str`` and ``print`` show the alignment. All hits of :class:`swsearch.search_results.SearchResults`
        have it; it is ignored in comparisons of hits.
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
    round: int = 0
    number: int = 1
    masked_evalue: float | None = None
    n_hsps: int | None = None
    forward_bits: float | None = None
    source: HitSource | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        """The alignment as in the report ``pairwise``, under the header of its subject; without a source, the repr."""
        if self.source is None:
            return repr(self)
        from swsearch.hits.formatting import hit_text

        return hit_text(*self.source, self, with_subject=True).rstrip("\n")

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
        """The bit score, under BLAST's name of the column."""
        return self.bits

    @property
    def pident(self) -> float:
        """Columns of equal letters in percent of all columns of the alignment, 0 to 100, not rounded."""
        return 100 * self.alignment.identities / self.alignment.columns

    @property
    def length(self) -> int:
        """Number of columns of the alignment, including gaps."""
        return self.alignment.columns

    @property
    def mismatch(self) -> int:
        """Number of columns of two different letters."""
        return self.alignment.mismatches

    @property
    def gapopen(self) -> int:
        """Number of gaps."""
        return self.alignment.gap_openings

    @property
    def qstart(self) -> int:
        """First aligned position of the query in its reading direction, counted from 1."""
        return self._query_positions[0]

    @property
    def qend(self) -> int:
        """Last aligned position of the query in its reading direction, counted from 1."""
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
    def subject_direction(self) -> str:
        """``-`` if the aligned strand of the subject is the reverse of the stored one, else ``+``.

        As in :attr:`sstart`, the query of a DNA search is forward, and the subject reversed on its minus strand.
        """
        return "-" if self.is_turned or self.subject_frame < 0 else "+"

    @property
    def query_direction(self) -> str:
        """``-`` if the query was aligned in a minus frame, else ``+``."""
        return "-" if self.query_frame < 0 else "+"

    @property
    def direction(self) -> str:
        """``-`` if one of both forward sequences is reversed in the alignment, else ``+``."""
        return "+" if self.subject_direction == self.query_direction else "-"

    @property
    def is_turned(self) -> bool:
        """Whether reports show the subject reversed: for DNA against DNA on the query's minus strand."""
        return self.strand == "minus" and self.query_frame == 0
