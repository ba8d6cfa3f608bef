"""The stored taxonomies of joined databases as one (:mod:`swsearch.database.joined`)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from swsearch.database.taxonomy import DatabaseTaxonomy
from swsearch.taxonomy.joined import joined_tree
from swsearch.taxonomy.tree import Taxonomy
from swsearch.typing import SubjectIndex


class JoinedTaxonomy(DatabaseTaxonomy):
    """The organisms of all subjects of joined databases.

    The sets of ids of a member are numbered behind those of the members before it. Subjects of a member without a
    stored taxonomy are as those that were added to a database after its taxonomy was stored: their headers state their
    ids.

    Parameters
    ----------
    bounds : sequence of int
        ``subject_index`` of the first subject of each member, and the number of all subjects.
    members : sequence of DatabaseTaxonomy or None
        At least one is not None.
    """

    def __init__(self, bounds: Sequence[int], members: Sequence[DatabaseTaxonomy | None]) -> None:
        self._bounds = bounds
        self._members = members
        self._first_sets = list(accumulate((0 if one is None else one.n_sets for one in members), initial=0))

    @cached_property
    def tree(self) -> Taxonomy:  # type: ignore[override]
        """The taxa of all members; one that members place differently is placed as in the first of them."""
        return joined_tree([one.tree for one in self._members if one is not None])

    @property
    def n_sets(self) -> int:
        """Number of sets of ids, those of each member counted by themselves."""
        return self._first_sets[-1]

    def taxids_of_set(self, number: int) -> tuple[int, ...]:
        """The ids of a set, whose number counts from 1."""
        place = int(np.searchsorted(self._first_sets, number)) - 1
        member = self._members[place]
        assert member is not None
        return member.taxids_of_set(number - self._first_sets[place])

    def set_of(self, subject_index: SubjectIndex) -> NDArray[np.int64]:
        """The sets of subjects: numbers from 1, 0 for no id, -1 for subjects whose ids are not stored; int64."""
        sets = np.full(len(subject_index), -1, np.int64)
        for place, member in enumerate(self._members):
            first, stop = self._bounds[place], self._bounds[place + 1]
            inside = np.flatnonzero((subject_index >= first) & (subject_index < stop))
            if member is not None and inside.size:
                own = member.set_of(subject_index[inside] - np.uint32(first))
                sets[inside] = np.where(own > 0, own + self._first_sets[place], own)
        return sets
