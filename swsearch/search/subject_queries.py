"""Queries that are sequences of a database.

:class:`SubjectQueries` are those of a search of all against all: the subjects themselves, each compared with those
before it. :class:`DatabaseQueries` are those of a search of another database.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from swsearch.database.reader import PackedDatabase
from swsearch.errors import InputError
from swsearch.hits.result import ALL_AGAINST_ALL
from swsearch.query.subject_query import SubjectQuery
from swsearch.scoring.scheme import ScoringScheme
from swsearch.search.needs import QueryNeeds
from swsearch.search.planned_search import PlannedSearch
from swsearch.search.search_subjects import SearchSubjects
from swsearch.sequences.record import SequenceRecord
from swsearch.typing import Lengths, SubjectIndex
from swsearch.words import option


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
            raise InputError(
                f"{option('translate', options.translate)}: all against all compares sequences as they are"
            )
        if options.iterations > 1:
            raise InputError(
                f"{option('iterations', options.iterations)}: all against all is not iterated; leave it out"
            )
        return cls(search.search_subjects)

    @property
    def order(self) -> tuple[SubjectIndex, Lengths]:
        """Index and length of each query in order, two uint32 arrays of shape (n_queries,)."""
        order = self.subjects.order
        return order.subject_index[::-1], order.lengths[::-1]

    def records(self, scheme: ScoringScheme, needs: QueryNeeds) -> Iterator[SubjectQuery]:
        """All queries in order."""
        database = self.subjects.database
        for index in self.order[0].tolist():
            yield SubjectQuery(database.header(index), database.codes(index), database.alphabet, index)

    def by_file(
        self, scheme: ScoringScheme, needs: QueryNeeds
    ) -> Iterator[tuple[str | os.PathLike[str], str, Iterator[SubjectQuery]]]:
        """The database in place of a file of sequences, with all queries."""
        yield self.subjects.database.location, "fasta", self.records(scheme, needs)

    def parameters(self, scheme: ScoringScheme) -> dict[str, str | bool]:
        """The parameter by which the run differs from a search with the same sequences."""
        return {ALL_AGAINST_ALL: True}


@dataclass(frozen=True, eq=False)
class DatabaseQueries:
    """All sequences of a database as queries, in FASTA order.

    Attributes
    ----------
    database : PackedDatabase
    """

    database: PackedDatabase

    def records(self, scheme: ScoringScheme, needs: QueryNeeds) -> Iterator[SequenceRecord]:
        """All queries in order."""
        for index in range(self.database.n_subjects):
            yield SequenceRecord(self.database.header(index), self.database.codes(index), self.database.alphabet)

    def by_file(
        self, scheme: ScoringScheme, needs: QueryNeeds
    ) -> Iterator[tuple[str | os.PathLike[str], str, Iterator[SequenceRecord]]]:
        """The database in place of a file of sequences, with all queries."""
        yield self.database.location, "fasta", self.records(scheme, needs)

    def parameters(self, scheme: ScoringScheme) -> dict[str, str | bool]:
        """Empty: the run is that of a file with the same sequences."""
        return {}
