"""The subjects of a search of all against all, each of which is compared with those before it.

The order is that of the packed format: by length, then by ``subject_index``. The subjects before another one are
therefore the first ones of each partition, and a search of all against all scores about half of the cells of a search
of the database with all its sequences.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from swsearch.database.partition import Partition
from swsearch.query.subject_query import SubjectQuery
from swsearch.typing import Lengths, SubjectIndex

STEPS: Final = 128
"""Number of lengths to which a partition is cut. Engines keep what they have prepared for a partition, so that a cut
for each query would cost more than the few subjects that a query is scored against in vain."""


def n_before(lengths: Lengths, subject_index: SubjectIndex, query: SubjectQuery) -> int:
    """Number of subjects before a query.

    Parameters
    ----------
    lengths, subject_index : uint32 array, shape (n,)
        Lengths and indices of subjects in the order of this module.
    query : SubjectQuery
    """
    length = len(query)
    first, stop = np.searchsorted(lengths, np.array([length, length + 1], dtype=np.uint32))
    return int(first + np.searchsorted(subject_index[first:stop], np.uint32(query.subject_index)))


class SubjectOrder:
    """The subjects of a search in order.

    Parameters
    ----------
    lengths : uint32 array, shape (n_subjects,)
    subject_index : uint32 array, shape (n_subjects,)
        In any order.

    Attributes
    ----------
    subject_index, lengths : uint32 arrays, shape (n_subjects,)
        In the order of this module.
    """

    def __init__(self, lengths: Lengths, subject_index: SubjectIndex) -> None:
        rows = np.lexsort((subject_index, lengths))
        self.subject_index = subject_index[rows]
        self.lengths = lengths[rows]
        self._residues_before = np.concatenate(([0], np.cumsum(self.lengths, dtype=np.int64)))

    def residues_before(self, query: SubjectQuery) -> int:
        """Number of residues of the subjects before a query."""
        return int(self._residues_before[n_before(self.lengths, self.subject_index, query)])


class LeadingParts:
    """The first subjects of some partitions, cut to a few lengths.

    Parameters
    ----------
    partitions : sequence of Partition
        Each in the order of this module.
    """

    def __init__(self, partitions: Sequence[Partition]) -> None:
        self._partitions = partitions
        self._parts: dict[tuple[int, int], Partition] = {}

    def before(self, queries: Iterable[SubjectQuery]) -> list[Partition]:
        """Partitions with all subjects before one of the queries, and perhaps a few more; no partition is empty.

        Equal arguments give the same objects.
        """
        last = max(queries, key=lambda query: query.place)
        return [part for number in range(len(self._partitions)) if len(part := self._part(number, last))]

    def _part(self, number: int, query: SubjectQuery) -> Partition:
        whole = self._partitions[number]
        step = max(1, -(-len(whole) // STEPS))
        stop = -(-n_before(whole.lengths, whole.subject_index, query) // step) * step
        if stop >= len(whole):
            return whole
        if (number, stop) not in self._parts:
            self._parts[number, stop] = whole[:stop]
        return self._parts[number, stop]
