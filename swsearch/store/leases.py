"""The searches of a service as its workers see them: queries are taken under a lease, committed, failed or given back.

A lease is a worker's name and a time on the row of a query. The worker extends it while it lives
(:meth:`WorkStore.heartbeat`). A lease that ends is taken away (:meth:`WorkStore.recover`), and the query returns to the
queue; one that was lost so :data:`MAX_LOSSES` times fails, alone. A query's hits, its state and its lease change in one
transaction that requires the lease, so its result is stored exactly once, whoever else searched it.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from sqlalchemy import Connection, and_, delete, exists, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from swsearch.errors import StoreError
from swsearch.hits.result import QueryResult, RunInfo
from swsearch.hits.share import AskedQueries, FailedQuery, Shard
from swsearch.store.models import FAILURES, FINISHED, INTERRUPTED, QUERIES, RUNS
from swsearch.store.records import asked_values, claim_values, run_values, utc_now
from swsearch.store.repository import HitStore, insert_query
from swsearch.store.search_records import (
    MEGACELL,
    Batch,
    ClaimedQuery,
    SearchedDatabase,
    StoredSearch,
    parameters_of,
    stored_search,
)
from swsearch.store.searches import store_time, upsert
from swsearch.store.service_models import (
    DONE,
    FAILED,
    LEASED,
    OWNERS,
    QUEUED,
    RUNNING,
    SEARCH_QUERIES,
    SEARCHES,
    UNFINISHED,
    WORKERS,
)
from swsearch.store.session import reading
from swsearch.store.workers import Worker

MAX_LOSSES: Final = 3
"""Number of workers that may die with a query before it fails."""
_PAGE: Final = 256
"""Number of queries of a search that are read at a time while a batch is put together."""
_MAX_QUERIES: Final = 4096
"""Largest number of queries of a batch."""

Query = tuple[int, int]
"""A search's ``id`` and the number of a query in it."""


@dataclass(order=True)
class _Candidate:
    """A search with queued queries; the smallest of an owner is served next."""

    served: int
    cells: int
    id: int
    owner: str = field(compare=False)
    fingerprint: str = field(compare=False)


class WorkStore(HitStore):
    """A store with the work of a service; parameters and errors are those of ``HitStore``."""

    # --- taking ---

    def claim(
        self, worker: str, databases: Iterable[SearchedDatabase], budget: Mapping[str, int], lease: timedelta
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

        Returns
        -------
        Batch or None
            None if there is nothing to do, or if other workers have just taken it.
        """
        served = [
            and_(SEARCHES.c.database_name == database.name, SEARCHES.c.database_digest == database.digest)
            for database in databases
        ]
        if not served:
            return None
        with self._writing() as connection:
            counters = {row.owner: row.served for row in connection.execute(select(OWNERS))}
            of_search = SEARCH_QUERIES.c.search_id == SEARCHES.c.id
            queued = exists().where(of_search, SEARCH_QUERIES.c.state == QUEUED)
            columns = (SEARCHES.c.served, SEARCHES.c.cells, SEARCHES.c.id, SEARCHES.c.owner, SEARCHES.c.fingerprint)
            found = select(*columns).where(SEARCHES.c.state.in_(UNFINISHED), or_(*served), queued)
            candidates = [_Candidate(*row) for row in connection.execute(found)]
            if not candidates:
                return None
            lead = min(candidates, key=lambda search: (counters.get(search.owner, 0), search.owner, search))
            row = connection.execute(select(SEARCHES).where(SEARCHES.c.id == lead.id)).one()
            together = [search for search in candidates if search.fingerprint == lead.fingerprint]
            chosen = _choose(connection, lead, together, counters, budget[row.database_name])
            queries = _lease(connection, worker, chosen, store_time(connection) + lease)
            if not queries:
                return None
            _charge(connection, queries, {search.id: search.owner for search in together}, 1)
            database = SearchedDatabase(row.database_name, row.database_digest, row.database_generation)
            return Batch(lead.fingerprint, database, parameters_of(row.options), tuple(queries))

    def has_work(self) -> bool:
        """Whether a query is queued; a look that takes no lock."""
        with reading(self._engine) as connection:
            queued = select(SEARCH_QUERIES.c.number).where(SEARCH_QUERIES.c.state == QUEUED)
            return connection.execute(queued.limit(1)).first() is not None

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
        runs = {}
        fresh = set()
        with self._writing() as connection:
            for search_id in sorted(set(searches)):
                row = _locked(connection, search_id)
                if row is None:
                    continue
                run_id = row.run_id
                if run_id is None:
                    asked = AskedQueries(Shard(), row.n_queries, row.asked_digest)
                    values = {**run_values(info), **asked_values(asked), "started_at": utc_now(), **claim_values()}
                    run_id = connection.execute(insert(RUNS).returning(RUNS.c.id), values).scalar_one()
                    started = {"run_id": run_id, "state": RUNNING, "started_at": utc_now()}
                    connection.execute(update(SEARCHES).where(SEARCHES.c.id == search_id).values(**started))
                    fresh.add(search_id)
                else:
                    connection.execute(update(RUNS).where(RUNS.c.id == run_id).values(**claim_values()))
                runs[search_id] = int(run_id)
        return {
            search_id: (run_id, None if search_id in fresh else self.run(run_id).info)
            for search_id, run_id in runs.items()
        }

    # --- giving back ---

    def complete(
        self, worker: str, query: ClaimedQuery, run_id: int, result: QueryResult, keep: timedelta | None
    ) -> bool:
        """Commit the result of a query and give its lease back, or do nothing if the lease was lost.

        Parameters
        ----------
        worker : str
        query : ClaimedQuery
        run_id : int
            The run of its search.
        result : QueryResult
            ``number`` is the query's number in the search.
        keep : timedelta or None
            Time from the end of the search to its deletion.

        Returns
        -------
        bool
            Whether the result was stored. It was not if the search was cancelled or deleted, or if the lease was lost.
        """
        try:
            with self._writing() as connection:
                if connection.dialect.name == "sqlite" and not _holds(connection, worker, query):
                    return False
                # PostgreSQL: the hits are written before anything is locked, because there may be many.
                insert_query(connection, run_id, result)
                row = _locked(connection, query.search_id)
                if row is None or not _give_back(connection, worker, query, DONE):
                    raise _LeaseLost
                _count_done(connection, row, query, keep)
        except _LeaseLost:
            return False
        except StoreError as error:
            if isinstance(error.__cause__, IntegrityError):
                return self._adopt(worker, query, run_id, keep)
            raise
        return True

    def _adopt(self, worker: str, query: ClaimedQuery, run_id: int, keep: timedelta | None) -> bool:
        """Count a query whose result is in the run already, since `swsearch batch --resume` went on with the run.

        False if it is not there: the run was deleted, and the search with it.
        """
        with self._writing() as connection:
            row = _locked(connection, query.search_id)
            there = and_(QUERIES.c.run_id == run_id, QUERIES.c.number == query.number)
            is_there = connection.execute(select(QUERIES.c.id).where(there)).first() is not None
            if row is None or not is_there or not _give_back(connection, worker, query, DONE):
                return False
            _count_done(connection, row, query, keep)
        return True

    def fail(self, worker: str, query: ClaimedQuery, reason: str, keep: timedelta | None) -> bool:
        """Store that a query cannot be searched; returns whether the lease was still held."""
        with self._writing() as connection:
            row = _locked(connection, query.search_id)
            if row is None or not _give_back(connection, worker, query, FAILED):
                return False
            _fail(connection, row, FailedQuery(query.number, reason), query.cells, keep)
        return True

    def fail_search(self, search_id: int, reason: str, keep: timedelta | None) -> None:
        """End a search that cannot be searched at all."""
        with self._writing() as connection:
            row = _locked(connection, search_id)
            if row is not None:
                _end(connection, row, FAILED, reason, keep)

    def give_back(self, worker: str) -> int:
        """Return all queries that a worker holds to the queue, as if it had not taken them; returns their number."""
        with self._writing() as connection:
            queries = _held(connection, SEARCH_QUERIES.c.lease_owner == worker)
            owners = _owners(connection, queries)
            _charge(connection, queries, owners, -1)
            _requeue(connection, queries)
            return len(queries)

    # --- workers ---

    def enter(self, worker: str, engine: str) -> None:
        """Announce this process as a worker."""
        this = Worker.this()
        with self._writing() as connection:
            now = store_time(connection)
            values = {"host": this.host, "process": this.process, "process_began": this.began, "engine": engine}
            row = {"id": worker, **values, "cells_per_second": 0.0, "started_at": now, "seen_at": now}
            connection.execute(insert(WORKERS), row)

    def heartbeat(self, worker: str, cells_per_second: float, lease: timedelta) -> set[Query]:
        """Say that a worker is alive, extend its leases, and return the queries that it still holds."""
        with self._writing() as connection:
            now = store_time(connection)
            seen = {"seen_at": now, "cells_per_second": cells_per_second}
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
                row = _locked(connection, query.search_id)
                died = f"given up: {max_losses} workers died while they"
                if row is not None and row.run_id is None:
                    _end(connection, row, FAILED, f"{died} prepared this search", keep)
                elif row is not None:
                    reason = f"{died} searched this query; the others are not affected"
                    _fail(connection, row, FailedQuery(query.number, reason), query.cells, keep)
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
            row = _locked(connection, search_id)
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


# --- which queries come next ---


def _choose(
    connection: Connection, lead: _Candidate, together: Sequence[_Candidate], counters: Mapping[str, int], budget: int
) -> list[Query]:
    """The queries of the next batch, of which the first is that of ``lead``."""
    unspoilt = {search.id: _queued(connection, search.id) for search in together}
    first = next(unspoilt[lead.id], None)
    if first is None:
        lost = select(SEARCH_QUERIES.c.number).where(
            SEARCH_QUERIES.c.search_id == lead.id, SEARCH_QUERIES.c.state == QUEUED
        )
        number = connection.execute(lost.order_by(SEARCH_QUERIES.c.losses, SEARCH_QUERIES.c.number).limit(1)).scalar()
        return [] if number is None else [(lead.id, number)]
    chosen = [(lead.id, first[0])]
    n_cells = first[1]
    by_owner: dict[str, list[_Candidate]] = {}
    for search in together:
        if search is lead:
            search.served += megacells(first[1])
        by_owner.setdefault(search.owner, []).append(search)
    owners = [(counters.get(owner, 0), owner) for owner in by_owner]
    owners = [(n + (megacells(first[1]) if owner == lead.owner else 0), owner) for n, owner in owners]
    heapq.heapify(owners)
    for searches in by_owner.values():
        heapq.heapify(searches)
    while owners and len(chosen) < _MAX_QUERIES:
        counter, owner = owners[0]
        searches = by_owner[owner]
        found = next(unspoilt[searches[0].id], None)
        if found is None:
            heapq.heappop(searches)
            if not searches:
                heapq.heappop(owners)
            continue
        number, cells = found
        if n_cells + cells > budget:
            break
        n_cells += cells
        chosen.append((searches[0].id, number))
        searches[0].served += megacells(cells)
        heapq.heapreplace(searches, searches[0])
        heapq.heapreplace(owners, (counter + megacells(cells), owner))
    return chosen


def megacells(cells: int) -> int:
    """Millions of cells, rounded up, so that every query counts."""
    return -(-cells // MEGACELL)


def _queued(connection: Connection, search_id: int) -> Iterator[tuple[int, int]]:
    """Number and cells of a search's queued queries that were never lost, in order."""
    last = -1
    while True:
        found = select(SEARCH_QUERIES.c.number, SEARCH_QUERIES.c.cells).where(
            SEARCH_QUERIES.c.search_id == search_id,
            SEARCH_QUERIES.c.state == QUEUED,
            SEARCH_QUERIES.c.losses == 0,
            SEARCH_QUERIES.c.number > last,
        )
        page = connection.execute(found.order_by(SEARCH_QUERIES.c.number).limit(_PAGE)).all()
        for row in page:
            yield row.number, row.cells
        if len(page) < _PAGE:
            return
        last = page[-1].number


# --- leases ---


def _lease(connection: Connection, worker: str, chosen: Sequence[Query], until: Any) -> list[ClaimedQuery]:
    """Give a worker the leases of these queries; those that another worker has just taken are left out."""
    leased = []
    by_search: dict[int, list[int]] = {}
    for search_id, number in chosen:
        by_search.setdefault(search_id, []).append(number)
    for search_id in sorted(by_search):
        if _locked(connection, search_id) is None:
            continue
        for numbers in _pages(by_search[search_id]):
            free = and_(
                SEARCH_QUERIES.c.search_id == search_id,
                SEARCH_QUERIES.c.number.in_(numbers),
                SEARCH_QUERIES.c.state == QUEUED,
            )
            rows = select(SEARCH_QUERIES).where(free).order_by(SEARCH_QUERIES.c.number)
            found = [_claimed(row) for row in connection.execute(rows.with_for_update(skip_locked=True))]
            taken = SEARCH_QUERIES.c.number.in_([query.number for query in found])
            values = {"state": LEASED, "lease_owner": worker, "lease_until": until}
            connection.execute(
                update(SEARCH_QUERIES).where(SEARCH_QUERIES.c.search_id == search_id, taken).values(**values)
            )
            leased += found
    return leased


def _pages(numbers: Sequence[int]) -> Iterator[Sequence[int]]:
    for first in range(0, len(numbers), _PAGE):
        yield numbers[first : first + _PAGE]


def _claimed(row: Any) -> ClaimedQuery:
    return ClaimedQuery(row.search_id, row.number, row.header, row.letters, row.cells, row.losses)


def _locked(connection: Connection, search_id: int) -> Any:
    """The row of an unfinished search, locked against other changes; None if it is finished or gone."""
    wanted = and_(SEARCHES.c.id == search_id, SEARCHES.c.state.in_(UNFINISHED))
    return connection.execute(select(SEARCHES).where(wanted).with_for_update()).first()


def _of(query: ClaimedQuery) -> Any:
    return and_(SEARCH_QUERIES.c.search_id == query.search_id, SEARCH_QUERIES.c.number == query.number)


def _holds(connection: Connection, worker: str, query: ClaimedQuery) -> bool:
    held = and_(_of(query), SEARCH_QUERIES.c.state == LEASED, SEARCH_QUERIES.c.lease_owner == worker)
    return connection.execute(select(SEARCH_QUERIES.c.number).where(held)).first() is not None


def _give_back(connection: Connection, worker: str, query: ClaimedQuery, state: str) -> bool:
    """Give a lease back, with the query in this state; False if the worker does not hold it."""
    held = and_(_of(query), SEARCH_QUERIES.c.state == LEASED, SEARCH_QUERIES.c.lease_owner == worker)
    values = {"state": state, "lease_owner": None, "lease_until": None}
    return connection.execute(update(SEARCH_QUERIES).where(held).values(**values)).rowcount == 1


def _held(connection: Connection, which: Any) -> list[ClaimedQuery]:
    """The leased queries of a condition; their searches are locked, in order."""
    leased = and_(SEARCH_QUERIES.c.state == LEASED, which)
    ids = connection.execute(select(SEARCH_QUERIES.c.search_id).where(leased).distinct()).scalars()
    for search_id in sorted(ids):
        _locked(connection, search_id)
    found = select(SEARCH_QUERIES).where(leased).order_by(SEARCH_QUERIES.c.search_id, SEARCH_QUERIES.c.number)
    return [_claimed(row) for row in connection.execute(found)]


def _requeue(connection: Connection, queries: Sequence[ClaimedQuery], *, lost: bool = False) -> None:
    for query in queries:
        values = {"state": QUEUED, "lease_owner": None, "lease_until": None, "losses": query.losses + lost}
        connection.execute(update(SEARCH_QUERIES).where(_of(query)).values(**values))


def _owners(connection: Connection, queries: Sequence[ClaimedQuery]) -> dict[int, str]:
    ids = {query.search_id for query in queries}
    rows = connection.execute(select(SEARCHES.c.id, SEARCHES.c.owner).where(SEARCHES.c.id.in_(ids)))
    return {row.id: row.owner for row in rows}


def _charge(connection: Connection, queries: Sequence[ClaimedQuery], owners: Mapping[int, str], sign: int) -> None:
    """Add the cells of queries to the counters of their searches and owners; with the sign -1, take them off."""
    by_search: dict[int, int] = {}
    by_owner: dict[str, int] = {}
    for query in queries:
        cost = sign * megacells(query.cells)
        by_search[query.search_id] = by_search.get(query.search_id, 0) + cost
        by_owner[owners[query.search_id]] = by_owner.get(owners[query.search_id], 0) + cost
    for search_id, cost in sorted(by_search.items()):
        connection.execute(update(SEARCHES).where(SEARCHES.c.id == search_id).values(served=SEARCHES.c.served + cost))
    for owner, cost in sorted(by_owner.items()):
        row = upsert(connection, OWNERS).values(owner=owner, served=max(0, cost))
        sums = {"served": OWNERS.c.served + cost}
        connection.execute(row.on_conflict_do_update(index_elements=["owner"], set_=sums))


# --- the end of a query and of a search ---


def _count_done(connection: Connection, row: Any, query: ClaimedQuery, keep: timedelta | None) -> None:
    """Count a query of a locked search whose result is stored."""
    done = {"n_done": row.n_done + 1, "cells_done": row.cells_done + query.cells}
    connection.execute(update(SEARCHES).where(SEARCHES.c.id == row.id).values(**done))
    _finish_if_complete(connection, row.id, keep)


def _fail(connection: Connection, row: Any, failed: FailedQuery, cells: int, keep: timedelta | None) -> None:
    """Store a failed query of a locked search that has a run."""
    of_query = and_(FAILURES.c.run_id == row.run_id, FAILURES.c.number == failed.number)
    connection.execute(delete(FAILURES).where(of_query))
    values = {"run_id": row.run_id, "number": failed.number, "reason": failed.reason}
    connection.execute(insert(FAILURES), values)
    of_row = and_(SEARCH_QUERIES.c.search_id == row.id, SEARCH_QUERIES.c.number == failed.number)
    ended = {"state": FAILED, "lease_owner": None, "lease_until": None}
    connection.execute(update(SEARCH_QUERIES).where(of_row).values(**ended))
    counted = {"n_failed": SEARCHES.c.n_failed + 1, "cells_done": SEARCHES.c.cells_done + cells}
    connection.execute(update(SEARCHES).where(SEARCHES.c.id == row.id).values(**counted))
    _finish_if_complete(connection, row.id, keep)


def _finish_if_complete(connection: Connection, search_id: int, keep: timedelta | None) -> None:
    row: Any = connection.execute(select(SEARCHES).where(SEARCHES.c.id == search_id)).one()
    if row.n_done + row.n_failed < row.n_queries:
        return
    first = select(FAILURES.c.reason).where(FAILURES.c.run_id == row.run_id).order_by(FAILURES.c.number).limit(1)
    reason = None if row.n_done else connection.execute(first).scalar()
    _end(connection, row, DONE if row.n_done else FAILED, reason, keep)


def _end(connection: Connection, row: Any, state: str, reason: str | None, keep: timedelta | None) -> None:
    """End a locked search, and its run if it has one."""
    now = utc_now()
    expires = None if keep is None else now + keep
    values = {"state": state, "reason": reason, "finished_at": now, "expires_at": expires}
    connection.execute(update(SEARCHES).where(SEARCHES.c.id == row.id).values(**values))
    connection.execute(delete(SEARCH_QUERIES).where(SEARCH_QUERIES.c.search_id == row.id))
    if row.run_id is not None:
        complete = row.n_done + row.n_failed >= row.n_queries
        ended = {"state": FINISHED, "finished_at": now} if complete else {"state": INTERRUPTED}
        connection.execute(update(RUNS).where(RUNS.c.id == row.run_id).values(**ended))
