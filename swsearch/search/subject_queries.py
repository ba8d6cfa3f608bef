"""The queries of a search of all against all: the subjects themselves, each compared with those before it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from swsearch.errors import InputError
from swsearch.hits.result import ALL_AGAINST_ALL
from swsearch.query.subject_query import SubjectQuery
from swsearch.scoring.scheme import ScoringScheme
from swsearch.search.needs import QueryNeeds
from swsearch.search.planned_search import PlannedSearch
from swsearch.search.search_subjects import SearchSubjects


@dataclass(frozen=True, eq=False)
class SubjectQueries:
    """The searched subjects of a database as queries, the longest first.

    Queries of similar length are scored together, and every share of the queries has about the same work.

    Attributes
    ----------
    subjects : SearchSubjects
        The subjects that pass the filters.
    """

    subjects: SearchSubjects

    @classmethod
    def of(cls, search: PlannedSearch) -> Self:
        """The queries of a search of all against all.

        Raises
        ------
        InputError
            The search translates sequences or is iterated, so that query and subject are not treated alike.
        """
        options = search.options
        if options.translate is not None:
            raise InputError(f"--translate {options.translate}: all against all compares sequences as they are")
        if options.iterations > 1:
            raise InputError(f"--iterations {options.iterations}: all against all is not iterated; leave it out")
        return cls(search.search_subjects)

    def records(self, scheme: ScoringScheme, needs: QueryNeeds) -> Iterator[SubjectQuery]:
        """All queries in order."""
        database = self.subjects.database
        for index in reversed(self.subjects.order.subject_index.tolist()):
            yield SubjectQuery(database.header(index), database.codes(index), database.alphabet, index)

    def by_file(
        self, scheme: ScoringScheme, needs: QueryNeeds
    ) -> Iterator[tuple[str | os.PathLike[str], str, Iterator[SubjectQuery]]]:
        """The database in place of a file of sequences, with all queries."""
        yield self.subjects.database.location, "fasta", self.records(scheme, needs)

    def parameters(self, scheme: ScoringScheme) -> dict[str, str | bool]:
        """The parameter by which the run differs from a search with the same sequences."""
        return {ALL_AGAINST_ALL: True}
