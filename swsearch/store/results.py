"""The results of a store's runs: queries with their hits, and the repository :class:`Results`.

A query and its hits are committed together, so every query in the store is complete, even after the process was killed.
:meth:`Results.committed` lists these queries, so that the run can be resumed. Every row is checked before it is
converted to a record.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Row, select

from swsearch.errors import HitsNotFound, StoreError
from swsearch.hits.hit import Alignment, Hit
from swsearch.hits.result import Pssm, QueryResult, SearchStats
from swsearch.hits.shards import Failure, Shard
from swsearch.sequences.headers import names_of
from swsearch.sequences.record import split_header
from swsearch.store.models import FAILURES, HITS, QUERIES, checked
from swsearch.store.rows import ALIGNMENT_FIELDS, HIT_FIELDS
from swsearch.store.run_file import HitWriter
from swsearch.store.runs import Runs, find_run
from swsearch.words import quoted

if TYPE_CHECKING:
    from swsearch.store.store import Store


class Results(HitWriter):
    """The queries and hits of a store's runs, and the queries that could not be searched."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._store = store

    def queries(self, run: str | int = "latest") -> Iterator[QueryResult]:
        """Results of a run's committed queries, in order of their numbers, one at a time.

        The results are those in the store when the first one was read. Only one query with its hits is in memory at a
        time.

        Raises
        ------
        RunNotFound
            There is no such run.
        """
        with self._store.reading() as connection:
            run_id = find_run(connection, run, self._store.name)
            of_run = select(QUERIES.c.id).where(QUERIES.c.run_id == run_id).order_by(QUERIES.c.number)
            for query_id in connection.execute(of_run).scalars().all():
                row = connection.execute(select(QUERIES).where(QUERIES.c.id == query_id)).one()
                yield query_result(row, _hits_of(connection, row))

    def query(self, run_id: int, number: int) -> QueryResult:
        """The result of one committed query.

        Raises
        ------
        HitsNotFound
            The run has no query with this number.
        """
        with self._store.reading() as connection:
            wanted = (QUERIES.c.run_id == run_id) & (QUERIES.c.number == number)
            row = connection.execute(select(QUERIES).where(wanted)).first()
            if row is None:
                raise HitsNotFound(self._store.name, run_id, number)
            return query_result(row, _hits_of(connection, row))

    def find(self, run_id: int, identifiers: Collection[str]) -> list[int]:
        """Numbers of a run's committed queries that have one of these identifiers or accessions.

        The names of a query are those of a subject with its header (:func:`swsearch.filters.subject_filters.names_of`).

        Raises
        ------
        StoreError
            No query has one of the identifiers.
        """
        wanted = set(identifiers)
        with self._store.reading() as connection:
            headers = select(QUERIES.c.number, QUERIES.c.header).where(QUERIES.c.run_id == run_id)
            rows = connection.execute(headers.order_by(QUERIES.c.number)).all()
        names = {row.number: set(names_of(split_header(row.header)[0])) for row in rows}
        known = set[str]().union(*names.values())
        for name in sorted(wanted - known):
            near = get_close_matches(name, sorted(known), n=1)
            similar = f"; {quoted(near[0])} is similar" if near else ""
            raise StoreError(f"{self._store.name}: run {run_id} has no query {quoted(name)}{similar}")
        return [number for number, names_of_query in names.items() if names_of_query & wanted]

    def committed(self, run_id: int) -> dict[int, str]:
        """Numbers of a run's committed queries, each with its :func:`query_digest`."""
        with self._store.reading() as connection:
            found = select(QUERIES.c.number, QUERIES.c.digest).where(QUERIES.c.run_id == run_id)
            return {row.number: row.digest for row in connection.execute(found.order_by(QUERIES.c.number))}

    def failures(self, run_id: int) -> list[Failure]:
        """The queries of a run that could not be searched, in the order of their numbers."""
        with self._store.reading() as connection:
            found = select(FAILURES.c.number, FAILURES.c.reason).where(FAILURES.c.run_id == run_id)
            return [Failure(row.number, row.reason) for row in connection.execute(found.order_by(FAILURES.c.number))]

    def missing(self, run_id: int) -> list[int]:
        """Numbers of the queries that a run is to search and has neither searched nor refused.

        Where it is not known which queries a run is to search, the result is the absent numbers below the largest
        present one: it includes queries that failed, and does not include queries at the end.
        """
        asked = Runs(self._store).get(run_id).asked
        there = {*self.committed(run_id), *(failed.number for failed in self.failures(run_id))}
        if asked is None or asked.n_queries is None:
            shard = Shard() if asked is None else asked.shard
            return [number for number in shard.numbers(max(there, default=-1)) if number not in there]
        return [number for number in asked.shard.numbers(asked.n_queries) if number not in there]

    def fasta(self, run_id: int) -> str:
        """The searched queries of a run as FASTA, in their order."""
        with self._store.reading() as connection:
            return as_fasta(letters_of_run(connection, run_id))


def letters_of_run(connection: Connection, run_id: int) -> dict[int, tuple[str, str]]:
    """Header and letters of the searched queries of a run, by number."""
    searched = select(QUERIES.c.number, QUERIES.c.header, QUERIES.c.letters).where(QUERIES.c.run_id == run_id)
    return {row.number: (row.header, row.letters) for row in connection.execute(searched)}


def as_fasta(queries: Mapping[int, tuple[str, str]]) -> str:
    """Queries as FASTA, in the order of their numbers."""
    return "".join(f">{header}\n{letters}\n" for _, (header, letters) in sorted(queries.items()))


def _hits_of(connection: Connection, query: Row[Any]) -> tuple[Hit, ...]:
    """All hits of a query, in the order of the list."""
    found = select(HITS).where(HITS.c.query_id == query.id).order_by(HITS.c.rank, HITS.c.hsp)
    return tuple(hit_of(row, query.header) for row in connection.execute(found))


def query_result(row: Row[Any], hits: tuple[Hit, ...]) -> QueryResult:
    """The result of a query, from its row and its hits.

    Raises
    ------
    ValueError
        A value is not valid in its column.
    """
    checked(row, QUERIES)
    stats = SearchStats(row.cells, row.score_seconds, row.total_seconds, row.n_rescored)
    try:
        pssm = None if row.pssm is None else Pssm.from_text(row.pssm, len(row.letters))
    except ValueError as error:
        raise ValueError(f"table queries, column pssm: {error}") from error
    return QueryResult(
        row.number, row.header, row.letters, hits, row.n_passed, stats, row.n_rounds, bool(row.converged), pssm
    )


def hit_of(row: Row[Any], query_header: str) -> Hit:
    """The hit of a row; ``query_header`` is the header of its query.

    Raises
    ------
    ValueError
        A value is not valid in its column.
    """
    checked(row, HITS)
    alignment = Alignment(**{name: getattr(row, name) for name in ALIGNMENT_FIELDS})
    own = {name: getattr(row, name) for name in HIT_FIELDS}
    return Hit(alignment=alignment, query_header=query_header, **own)
