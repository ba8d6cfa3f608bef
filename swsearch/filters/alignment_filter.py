"""Filters on alignments, by identity, coverage and length.

They are applied to computed alignments before the list is cut to the top N: candidates are aligned in the order of
their rank until enough of them pass. Percentages are those that reports print (``pident``, ``qcovs``), unrounded.
"""

from __future__ import annotations

from dataclasses import dataclass

from swsearch.hits.hit import Alignment


@dataclass(frozen=True)
class AlignmentFilter:
    """Lower bounds on an alignment.

    ``min_identity`` is in percent of all columns, ``min_query_coverage`` and ``min_subject_coverage`` count the
    residues between the alignment's ends, in percent of the length of the query or subject. ``min_columns`` counts gaps
    as well.
    """

    min_identity: float = 0.0
    min_query_coverage: float = 0.0
    min_subject_coverage: float = 0.0
    min_columns: int = 0

    def __bool__(self) -> bool:
        return self != AlignmentFilter()

    def passes(self, alignment: Alignment, query_length: int, subject_length: int) -> bool:
        """Whether an alignment of two sequences of these lengths meets all bounds."""
        on_query = alignment.query_end - alignment.query_start
        on_subject = alignment.subject_end - alignment.subject_start
        return (
            alignment.columns >= self.min_columns
            and 100 * alignment.identities >= self.min_identity * alignment.columns
            and 100 * on_query >= self.min_query_coverage * query_length
            and 100 * on_subject >= self.min_subject_coverage * subject_length
        )
