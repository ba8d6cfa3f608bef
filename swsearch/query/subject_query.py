"""A query that is itself a subject of the searched database, for searches of all against all.

Such a query is compared only with the subjects before it, in ascending order of length and, for equal lengths, of
``subject_index``. If every subject is a query, each pair of subjects is therefore compared once, with the longer one
as the query, and none with itself.
"""

from __future__ import annotations

from dataclasses import dataclass

from swsearch.sequences.record import SequenceRecord


@dataclass(frozen=True, eq=False)
class SubjectQuery(SequenceRecord):
    """A subject as a query.

    Attributes
    ----------
    subject_index : int
        Its index in the database's FASTA order.
    """

    subject_index: int

    @property
    def place(self) -> tuple[int, int]:
        """Its length and its index, by which subjects are ordered."""
        return len(self), self.subject_index
