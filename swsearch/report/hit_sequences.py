"""``fasta``: the sequences of the hits, in the order of the hits, for programs that align or compare them.

**Whole sequences** (the default) are written once for each subject, although several alignments or several queries of
the run may have found it, with the header that they have in the database.

**Aligned parts** are written once for each alignment. Their first word is that of ``samtools faidx``
(:mod:`swsearch.sequences.fasta_text`); the identifier of the query, the E-value and the description of the subject
follow::

    >sp|P02232|LGB1_VICFA:5-140 query=Q1 evalue=1.53e-40 Leghemoglobin-1 OS=Vicia faba

Letters are those of the database in the direction of the query: of a hit on the minus strand, the reverse complement.
The part of a translated subject is its nucleotides, which translate from the first on to the aligned residues.

More than the aligned part of an untranslated subject is read from the database (:mod:`swsearch.sequences.fasta_text`).
"""

from __future__ import annotations

from collections.abc import Iterable

from swsearch.hits.formatting import blast_evalue
from swsearch.hits.hit import Hit
from swsearch.hits.result import QueryResult, RunInfo
from swsearch.report.base import Report, ReportContext
from swsearch.sequences.fasta_text import (
    WHOLE,
    SubjectPart,
    letters_in_pieces,
    part_header,
    reverse_complement_letters,
    write_pieces,
)
from swsearch.sequences.record import identifier


class FastaReport(Report):
    """The sequences of the hits.

    Parameters
    ----------
    part : SubjectPart
        The part of each subject to write.
    """

    def __init__(self, part: SubjectPart = WHOLE) -> None:
        self._part = part

    def needs_subjects(self, run: RunInfo) -> bool:  # noqa: D102
        return not self._part.aligned or self._part.flank > 0 or run.translates in ("subject", "both")

    def begin(self, run: RunInfo) -> None:
        """Write nothing yet."""
        super().begin(run)
        self._written = bytearray(run.database.n_subjects // 8 + 1)
        """A bit for each subject."""

    def write(self, query: QueryResult) -> None:
        """Write the sequences of the hits of a query.

        Raises
        ------
        InputError
            The context has no reader of subjects, and one is needed.
        """
        for hit in self.run.listed(query):
            if not self._part.aligned:
                byte, bit = divmod(hit.subject_index, 8)
                if self._written[byte] >> bit & 1:
                    continue
                self._written[byte] |= 1 << bit
            write_pieces(self.stream, *hit_record(self.context, query, hit, self._part))


def hit_record(context: ReportContext, query: QueryResult, hit: Hit, part: SubjectPart) -> tuple[str, Iterable[str]]:
    """Header and letters (in pieces) of one hit.

    Raises
    ------
    InputError
        The letters are those of the database, and the context has no reader of subjects.
    """
    if not part.aligned:
        whole = letters_in_pieces(context.needed_subjects, hit.subject_index, 0, hit.subject_length)
        return hit.subject_header or "unnamed", whole
    alignment = hit.alignment
    start = max(0, alignment.subject_start - part.flank)
    end = min(hit.subject_length, alignment.subject_end + part.flank)
    is_reversed = hit.is_turned or hit.subject_frame < 0
    letters: Iterable[str]
    if hit.subject_frame or part.flank:
        letters = letters_in_pieces(context.needed_subjects, hit.subject_index, start, end, is_reversed=is_reversed)
    else:
        stored = alignment.subject_letters
        letters = (reverse_complement_letters(stored) if is_reversed else stored,)
    remark = f"query={identifier(query.header)}"
    if hit.evalue is not None:
        remark += f" evalue={blast_evalue(hit.evalue, digits=2).strip()}"
    header = part_header(hit.subject_header, start, end, is_reversed=is_reversed, remark=remark)
    return header, letters
