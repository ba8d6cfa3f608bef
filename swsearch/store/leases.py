"""The searches of a service as its workers see them: queries are taken under a lease, committed, failed or given back.

A lease is a worker's name and a time on the row of a query. The worker extends it while it lives
(:meth:`WorkStore.heartbeat`). A lease that ends is taken away (:meth:`WorkStore.recover`), and the query returns to the
queue; one that was lost so :data:`MAX_LOSSES` times fails, alone. A query's hits, its state and its lease change in one
transaction that requires the lease, so its result is stored exactly once, whoever else searched it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from sqlalchemy import Connection, and_, bindparam, delete, insert, or_, select, tuple_, update
from sqlalchemy.exc import IntegrityError

from swsearch.errors import StoreError
from swsearch.hits.result import QueryResult, RunInfo
from swsearch.hits.shards import AskedQueries, FailedQuery, Shard
from swsearch.store.claims import Query, candidates, charge, choose, claimed, counters
from swsearch.store.claims import lease as lease_queries
from swsearch.store.models import QUERIES, RUNS
from swsearch.store.records import asked_values, claim_values, run_values, utc_now
from swsearch.store.repository import HitStore, insert_queries, insert_query
from swsearch.store.search_ends import count_all_done, count_done, end_failed, fail, give_back, locked
from swsearch.store.search_records import (
    Batch,
    ClaimedQuery,
    Parameters,
    SearchedDatabase,
    StoredSearch,
    parameters_of,
    stored_search,
)
from swsearch.store.searches import store_time
from swsearch.store.service_models import (
    DONE,
    FAILED,
    LEASED,
    QUEUED,
    RUNNING,
    SEARCH_QUERIES,
    SEARCHES,
    UNFINISHED,
    WORKERS,
)
from swsearch.store.session import insert_with_ids, reading
from swsearch.store.workers import Worker

MAX_LOSSES: Final = 3
"""Number of workers that may die with a query before it fails."""
_ANY_QUEUED: Final = select(SEARCH_QUERIES.c.number).where(SEARCH_QUERIES.c.state == QUEUED).limit(1)
_OPTIONS: Final = select(SEARCHES.c.options).where(SEARCHES.c.id == bindparam("of"))
_LOCK_SEARCHES: Final = (
    select(
        SEARCHES.c.id,
        SEARCHES.c.run_id,
        SEARCHES.c.asked_digest,
        SEARCHES.c.n_queries,
        SEARCHES.c.n_done,
        SEARCHES.c.n_failed,
        SEARCHES.c.cells_done,
    )
    .where(SEARCHES.c.id.in_(bindparam("of", expanding=True)), SEARCHES.c.state.in_(UNFINISHED))
    .order_by(SEARCHES.c.id)
    .with_for_update()
)
_HELD_OF_THESE: Final = select(SEARCH_QUERIES.c.search_id, SEARCH_QUERIES.c.number).where(
    tuple_(SEARCH_QUERIES.c.search_id, SEARCH_QUERIES.c.number).in_(bindparam("these", expanding=True)),
    SEARCH_QUERIES.c.state == LEASED,
    SEARCH_QUERIES.c.lease_owner == bindparam("by"),
)
_CLAIM_RUNS: Final = update(RUNS).where(RUNS.c.id == bindparam("of"))
_BEGIN_SEARCHES: Final = (
    update(SEARCHES)
    .where(SEARCHES.c.id == bindparam("of"))
    .values(run_id=bindparam("run"), state=RUNNING, reason=None, started_at=bindparam("now"))
)


@dataclass(frozen=True)
class Completed:
    """A query that was searched.

    Attributes
    ----------
    query : ClaimedQuery
    run_id : int
        The run of its search.
    result : QueryResult
        ``number`` is the query's number in the search.
    """

    query: ClaimedQuery
    run_id: int
    result: QueryResult


class WorkStore(HitStore):
    """A store with the work of a service; parameters and errors are those of ``HitStore``."""

    # --- taking ---

    def claim(
        self,
        worker: str,
        databases: Iterable[SearchedDatabase],
        budget: Mapping[str, int],
        lease: timedelta,
        *,
        overhead: Callable[[SearchedDatabase, Parameters], int] = lambda database, options: 0,
        with_lost: bool = True,
    ) -> Batch | None:
        """Take queries for one engine call: those whose turn it is, at once, without waiting for more.

        The owner with the smallest counter is served, and of this owner the search with the smallest counter. The
        batch is filled with compatible queries (the same fingerprint) of all owners in the same order, until it has the
        cells of its budget; it has at least one query. A query that was lost before is searched alone, because it may
        be what ended its worker, and after all others of its search.

        Parameters
        ----------
        worker : str
            The name of the worker, of :meth:`enter`.
        databases : iterable of SearchedDatabase
            The generations that this worker can search now.
        budget : mapping of str to int
            Number of cells for one batch, by database name.
        lease : timedelta
        overhead : callable
            Number of cells that take as long as what a query with these options costs besides its own cells.
        with_lost : bool
            Whether the batch may be a query that was lost before. A worker that has another batch in hand leaves it: if
            the worker dies, the query would be one that was lost once more, whichever of the two is the reason.

        Returns
        -------
        Batch or None
            None if there is nothing to do, or if other workers have just taken it.
        """
        generations = {database.name: database for database in databases}
        with self._writing() as connection:
            found = [
                search
                for search in candidates(connection)
                if (generation := generations.get(search.database_name)) is not None
                and generation.digest == search.database_digest
            ]
            if not found:
                return None
            served = counters(connection)
            lead = min(found, key=lambda search: (served.get(search.owner, 0), search.owner, search))
            together = [search for search in found if search.fingerprint == lead.fingerprint]
            options = parameters_of(connection.execute(_OPTIONS, {"of": lead.id}).scalar_one())
            database = generations[lead.database_name]
            cells = (budget[database.name], overhead(database, options))
            chosen = choose(connection, lead, together, served, *cells, with_lost=with_lost)
            queries = lease_queries(connection, worker, chosen, store_time(connection) + lease)
            if not queries:
                return None
            charge(connection, queries, {search.id: search.owner for search in together}, 1)
            keys = {search.id: search.key for search in together}
            return Batch(lead.fingerprint, database, options, tuple(queries), keys)

    def has_work(self) -> bool:
        """Whether a query is queued; a look that takes no lock."""
        with reading(self._engine) as connection:
            return connection.execute(_ANY_QUEUED).first() is not None

    def asked_digest(self, search_id: int) -> str:
        """The digest of the queries of a search; empty if there is no such search."""
        with reading(self._engine) as connection:
            found = select(SEARCHES.c.asked_digest).where(SEARCHES.c.id == search_id)
            return str(connection.execute(found).scalar() or "")

    def begin(self, searches: Iterable[int], info: RunInfo) -> dict[int, tuple[int, RunInfo | None]]:
        """The runs of claimed searches; a search that has none gets one with the record ``info``.

        A run that was there comes with its own record, which the caller compares with ``info``. Searches that were
        cancelled in the meantime are missing from the result.
        """
        with self._writing() as connection:
            rows = connection.execute(_LOCK_SEARCHES, {"of": sorted(set(searches))}).all()
            runs = {row.id: int(row.run_id) for row in rows if row.run_id is not None}
            if runs:
                connection.execute(_CLAIM_RUNS, [{"of": run_id, **claim_values()} for run_id in runs.values()])
            fresh = [row for row in rows if row.run_id is None]
            ids: list[int] = []
            if fresh:
                now = utc_now()
                same = {**run_values(info), **claim_values(), "started_at": now}
                asked = [asked_values(AskedQueries(Shard(), row.n_queries, row.asked_digest)) for row in fresh]
                ids = insert_with_ids(connection, RUNS, [{**same, **values} for values in asked])
                begun = [{"of": row.id, "run": run_id, "now": now} for row, run_id in zip(fresh, ids, strict=True)]
                connection.execute(_BEGIN_SEARCHES, begun)
        known = {search_id: (run_id, self.run(run_id).info) for search_id, run_id in runs.items()}
        return known | {row.id: (run_id, None) for row, run_id in zip(fresh, ids, strict=True)}

    # --- giving back ---

    def complete(
        self, worker: str, query: ClaimedQuery, run_id: int, result: QueryResult, keep: timedelta | None
    ) -> bool:
        """Commit the result of one query, as :meth:`complete_all` does; returns whether it was stored."""
        return self.complete_all(worker, [Completed(query, run_id, result)], keep)[0]

    def complete_all(self, worker: str, completed: Sequence[Completed], keep: timedelta | None) -> list[bool]:
        """Commit the results of queries and give their leases back, in one transaction.

        Parameters
        ----------
        worker : str
        completed : sequence of Completed
        keep : timedelta or None
            Time from the end of a search to its deletion.

        Returns
        -------
        list of bool
            Whether each result was stored. It was not if its search was cancelled or deleted, or if the lease was lost.
        """
        stored = [False] * len(completed)
        # Every transaction locks searches in the order of their ids.
        order = sorted(range(len(completed)), key=lambda index: completed[index].query.search_id)
        try:
            with self._writing() as connection:
                if connection.dialect.name == "sqlite":  # it has one writer, so nothing needs a lock of its own
                    return _complete_together(connection, worker, completed, keep)
                for index in order:
                    stored[index] = _complete(connection, worker, completed[index], keep)
        except StoreError as error:
            if not isinstance(error.__cause__, IntegrityError):
                raise
            if len(completed) > 1:
                return [self.complete_all(worker, [each], keep)[0] for each in completed]
            return [self._adopt(worker, completed[0].query, completed[0].run_id, keep)]
        return stored

    def _adopt(self, worker: str, query: ClaimedQuery, run_id: int, keep: timedelta | None) -> bool:
        """Count a query whose result is in the run already, since `swsearch batch --resume` went on with the run.

        False if it is not there: the run was deleted, and the search with it.
        """
        with self._writing() as connection:
            row = locked(connection, query.search_id)
            there = and_(QUERIES.c.run_id == run_id, QUERIES.c.number == query.number)
            is_there = connection.execute(select(QUERIES.c.id).where(there)).first() is not None
            if row is None or not is_there or not give_back(connection, worker, query, DONE):
                return False
            count_done(connection, row, query, keep)
        return True

    def fail(self, worker: str, query: ClaimedQuery, reason: str, keep: timedelta | None) -> bool:
        """Store that a query cannot be searched; returns whether the lease was still held."""
        with self._writing() as connection:
            row = locked(connection, query.search_id)
            if row is None or not give_back(connection, worker, query, FAILED):
                return False
            fail(connection, row, FailedQuery(query.number, reason), query.cells, keep)
        return True

    def fail_search(self, search_id: int, reason: str, keep: timedelta | None) -> None:
        """End a search that cannot be searched at all."""
        with self._writing() as connection:
            row = locked(connection, search_id)
            if row is not None:
                end_failed(connection, row, reason, keep)

    def give_back(self, worker: str) -> int:
        """Return all queries that a worker holds to the queue, as if it had not taken them; returns their number."""
        with self._writing() as connection:
            return _returned(connection, SEARCH_QUERIES.c.lease_owner == worker)

    def put_off(self, worker: str, searches: Collection[int], reason: str) -> None:
        """Return what a worker holds of some searches to the queue, and say why those that are queued wait."""
        with self._writing() as connection:
            ids = sorted(searches)
            _returned(connection, and_(SEARCH_QUERIES.c.lease_owner == worker, SEARCH_QUERIES.c.search_id.in_(ids)))
            waiting = and_(SEARCHES.c.id.in_(ids), SEARCHES.c.state == QUEUED)
            connection.execute(update(SEARCHES).where(waiting).values(reason=reason))

    # --- workers ---

    def enter(self, worker: str, engine: str) -> None:
        """Announce this process as a worker."""
        this = Worker.this()
        with self._writing() as connection:
            now = store_time(connection)
            values = {"host": this.host, "process": this.process, "process_began": this.began, "engine": engine}
            row = {"id": worker, **values, "cells_per_second": 0.0, "started_at": now, "seen_at": now}
            connection.execute(insert(WORKERS), row)

    def heartbeat(
        self, worker: str, cells_per_second: float, lease: timedelta, silence: timedelta = timedelta()
    ) -> set[Query]:
        """Say when a worker made progress, extend its leases, and return the queries that it still holds.

        Parameters
        ----------
        worker : str
        cells_per_second : float
        lease : timedelta
            Time from now to the end of its leases.
        silence : timedelta
            Time since its progress.
        """
        with self._writing() as connection:
            now = store_time(connection)
            seen = {"seen_at": now - silence, "cells_per_second": cells_per_second}
            connection.execute(update(WORKERS).where(WORKERS.c.id == worker).values(**seen))
            held = and_(SEARCH_QUERIES.c.lease_owner == worker, SEARCH_QUERIES.c.state == LEASED)
            rows = connection.execute(select(SEARCH_QUERIES.c.search_id, SEARCH_QUERIES.c.number).where(held)).all()
            if rows:
                connection.execute(update(SEARCH_QUERIES).where(held).values(lease_until=now + lease))
            return {(row.search_id, row.number) for row in rows}

    def leave(self, worker: str) -> None:
        """Return what a worker holds, and forget it."""
        self.give_back(worker)
        with self._writing() as connection:
            connection.execute(delete(WORKERS).where(WORKERS.c.id == worker))

    def recover(self, keep: timedelta | None, max_losses: int = MAX_LOSSES) -> int:
        """Take the leases of dead workers away; returns the number of queries.

        A worker of this host is dead if its process has ended, one of another host if its leases have ended. A query
        that was lost ``max_losses`` times fails.
        """
        with reading(self._engine) as connection:
            workers = connection.execute(select(WORKERS)).all()
        dead = [row.id for row in workers if Worker(row.host, row.process, row.process_began).has_ended]
        with self._writing() as connection:
            now = store_time(connection)
            is_lost = or_(SEARCH_QUERIES.c.lease_until < now, SEARCH_QUERIES.c.lease_owner.in_(dead))
            queries = _held(connection, is_lost)
            given_up = [query for query in queries if query.losses + 1 >= max_losses]
            _requeue(connection, [query for query in queries if query not in given_up], lost=True)
            for query in given_up:
                row = locked(connection, query.search_id)
                died = f"given up: {max_losses} workers died while they"
                if row is not None and row.run_id is None:
                    end_failed(connection, row, f"{died} prepared this search", keep)
                elif row is not None:
                    reason = f"{died} searched this query; the others are not affected"
                    fail(connection, row, FailedQuery(query.number, reason), query.cells, keep)
            gone = or_(WORKERS.c.id.in_(dead), WORKERS.c.seen_at < now - timedelta(days=1))
            connection.execute(delete(WORKERS).where(gone))
            return len(queries)

    # --- new generations of a database ---

    def outdated(self, database: SearchedDatabase) -> list[StoredSearch]:
        """The unfinished searches of earlier generations of a database."""
        with reading(self._engine) as connection:
            earlier = and_(
                SEARCHES.c.database_name == database.name,
                SEARCHES.c.database_generation < database.generation,
                SEARCHES.c.database_digest != database.digest,
            )
            found = select(SEARCHES).where(earlier, SEARCHES.c.state.in_(UNFINISHED)).order_by(SEARCHES.c.id)
            return [stored_search(row) for row in connection.execute(found)]

    def begin_again(self, search_id: int, database: SearchedDatabase, fingerprint: str, content: str) -> None:
        """Begin an unfinished search anew, with another generation of its database or another program.

        What it had is deleted, since one search has one database.
        """
        with self._writing() as connection:
            row = locked(connection, search_id)
            if row is None:
                return
            values = {
                "database_digest": database.digest,
                "database_generation": database.generation,
                "fingerprint": fingerprint,
                "content": content,
                "run_id": None,
                "state": QUEUED,
                "started_at": None,
                "n_done": 0,
                "n_failed": 0,
                "cells_done": 0,
            }
            connection.execute(update(SEARCHES).where(SEARCHES.c.id == search_id).values(**values))
            if row.run_id is not None:
                connection.execute(delete(RUNS).where(RUNS.c.id == row.run_id))
            fresh = {"state": QUEUED, "lease_owner": None, "lease_until": None, "losses": 0}
            connection.execute(update(SEARCH_QUERIES).where(SEARCH_QUERIES.c.search_id == search_id).values(**fresh))


class _LeaseLost(Exception):
    """Rolls the transaction of a result back."""


def _complete_together(
    connection: Connection, worker: str, completed: Sequence[Completed], keep: timedelta | None
) -> list[bool]:
    """Commit the results of those queries whose leases are held, with a statement for all of a kind."""
    searches = sorted({each.query.search_id for each in completed})
    rows = {row.id: row for row in connection.execute(_LOCK_SEARCHES, {"of": searches})}
    these = [(each.query.search_id, each.query.number) for each in completed]
    held = {(row.search_id, row.number) for row in connection.execute(_HELD_OF_THESE, {"these": these, "by": worker})}
    stored = [query in held and query[0] in rows for query in these]
    kept = [each for each, is_stored in zip(completed, stored, strict=True) if is_stored]
    if kept:
        insert_queries(connection, [(each.run_id, each.result) for each in kept])
        count_all_done(connection, [(rows[each.query.search_id], each.query) for each in kept], worker, keep)
    return stored


def _complete(connection: Connection, worker: str, completed: Completed, keep: timedelta | None) -> bool:
    """Commit the result of a query, or do nothing if its lease was lost."""
    query, run_id, result = completed.query, completed.run_id, completed.result
    try:
        with connection.begin_nested():
            # The hits are written before anything is locked, because there may be many.
            insert_query(connection, run_id, result)
            row = locked(connection, query.search_id)
            if row is None or not give_back(connection, worker, query, DONE):
                raise _LeaseLost
            count_done(connection, row, query, keep)
    except _LeaseLost:
        return False
    return True


def _held(connection: Connection, which: Any) -> list[ClaimedQuery]:
    """The leased queries of a condition; their searches are locked, in order."""
    leased = and_(SEARCH_QUERIES.c.state == LEASED, which)
    ids = connection.execute(select(SEARCH_QUERIES.c.search_id).where(leased).distinct()).scalars()
    for search_id in sorted(ids):
        locked(connection, search_id)
    found = select(SEARCH_QUERIES).where(leased).order_by(SEARCH_QUERIES.c.search_id, SEARCH_QUERIES.c.number)
    return [claimed(row) for row in connection.execute(found)]


def _returned(connection: Connection, which: Any) -> int:
    """Return leased queries of a condition to the queue, as if nobody had taken them; returns their number."""
    queries = _held(connection, which)
    charge(connection, queries, _owners(connection, queries), -1)
    _requeue(connection, queries)
    return len(queries)


def _requeue(connection: Connection, queries: Sequence[ClaimedQuery], *, lost: bool = False) -> None:
    for query in queries:
        values = {"state": QUEUED, "lease_owner": None, "lease_until": None, "losses": query.losses + lost}
        of_query = and_(SEARCH_QUERIES.c.search_id == query.search_id, SEARCH_QUERIES.c.number == query.number)
        connection.execute(update(SEARCH_QUERIES).where(of_query).values(**values))


def _owners(connection: Connection, queries: Sequence[ClaimedQuery]) -> dict[int, str]:
    ids = {query.search_id for query in queries}
    rows = connection.execute(select(SEARCHES.c.id, SEARCHES.c.owner).where(SEARCHES.c.id.in_(ids)))
    return {row.id: row.owner for row in rows}
