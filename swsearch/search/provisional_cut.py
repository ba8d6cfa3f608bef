"""The provisional E-value cut of a search for the N best subjects that has no E-value cut of its own.

Engines save most of their work where they know a floor, the lowest score that is needed (``docs/design/bound.md``). An
E-value cut gives one; the N best subjects of a search without a cut (``--evalue inf``) do not. But E is, by definition,
the number of subjects that reach a score by chance, so about E subjects have E-values of at most E, related ones not
counted. A search with the cut 4 N + 20 therefore finds N subjects or more, and because subjects are ranked by their
E-values, the N best of those are the N best of all. Where it finds fewer, the query is scored again without a cut.
``docs/design/bound.md`` has the argument and the limits.

The report also says how many subjects passed, and without a cut these are all that score at least 1:
:class:`PositiveSubjects` counts them without their scores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch.arrays import distinct
from swsearch.database.partition import Partition
from swsearch.query.profile import QueryProfile
from swsearch.sequences.alphabet import CODE_MASK
from swsearch.typing import SubjectIndex

SMALLEST_SHARE: Final = 8
"""Subjects per expected hit from which on a cut saves more than it costs."""
_POSITIONS: Final = 16
"""Residues of a subject that are looked up for all subjects at once; almost every subject scores with one of them."""


def provisional_evalue(top: int, n_subjects: int) -> float | None:
    """The E-value that N = ``top`` of ``n_subjects`` subjects very probably reach, or None if the database is small."""
    evalue = 4 * top + 20
    return float(evalue) if evalue * SMALLEST_SHARE <= n_subjects else None


class PositiveSubjects:
    """Counts the subjects of some partitions that score at least 1.

    Parameters
    ----------
    partitions : sequence of Partition
    subjects_of : callable, optional
        The subjects of rows, by their ``subject_index``, where several rows are frames of one subject.
    """

    def __init__(
        self, partitions: Sequence[Partition], subjects_of: Callable[[SubjectIndex], SubjectIndex] | None = None
    ) -> None:
        self._partitions = partitions
        self._subjects_of = subjects_of
        self._counts: dict[bytes, int] = {}

    def count(self, profiles: Iterable[QueryProfile]) -> int:
        """Number of subjects that score at least 1 with one of the profiles.

        A single pair of residues is an alignment, and no alignment without a pair of positive score has one. So these
        are the subjects with a letter that scores positively at a query position. Queries with the same such letters,
        as most have, are counted once.
        """
        positive = np.any(np.concatenate([profile.table for profile in profiles]) > 0, axis=0)
        key = positive.tobytes()
        if key not in self._counts:
            self._counts[key] = self._count(positive)
        return self._counts[key]

    def _count(self, positive: NDArray[np.bool_]) -> int:
        found = [_containing(partition, positive) for partition in self._partitions]
        if self._subjects_of is None:
            return sum(map(len, found))
        rows = [partition.subject_index[chosen] for partition, chosen in zip(self._partitions, found, strict=True)]
        return len(distinct(self._subjects_of(np.concatenate(rows))))


def _containing(partition: Partition, positive: NDArray[np.bool_]) -> NDArray[np.intp]:
    """The rows that contain one of the letters; ``positive`` has one element per residue code."""
    found = []
    remaining = np.arange(len(partition))  # without such a letter before the current position
    for position in range(_POSITIONS):
        remaining = remaining[partition.lengths[remaining] > position]
        codes = partition.residues[partition.starts[remaining] + np.uint64(position)] & CODE_MASK
        found.append(remaining[positive[codes]])
        remaining = remaining[~positive[codes]]
    later = [row for row in remaining.tolist() if positive[partition.codes(row) & CODE_MASK].any()]
    return np.concatenate([*found, np.array(later, np.intp)])
