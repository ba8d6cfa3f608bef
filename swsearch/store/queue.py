"""The job queue of a service: its workers claim queries under a lease, complete them, or return them to be tried again.

A lease is a worker's name and a time on the row of a query. The worker extends it while it lives
(:meth:`Queue.heartbeat`). A lease that ends is taken away (:meth:`Queue.recover`), and the query returns to the queue.
A query whose worker died :data:`MAX_LOSSES` times is marked as failed; the other queries of its search are not. A
query's hits, its state and its lease change in one transaction that requires the lease, so its result is stored exactly
once, whoever else searched it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Connection, and_, bindparam, delete, insert, or_, select, tuple_, update

from swsearch.hits.result import RunInfo
from swsearch.hits.shards import AskedQueries, Failure, Shard
from swsearch.store.connections import rows_of
from swsearch.store.models import FAILURES, QUERIES, RUNS, SEARCH_QUERIES, SEARCHES, WORKERS
from swsearch.store.rows import (
    DONE,
    FAILED,
    FINISHED,
    LEASED,
    QUEUED,
    RUNNING,
    UNFINISHED,
    HostProcess,
    claim_values,
    utc_now,
)
from swsearch.store.run_file import insert_failure, insert_queries, insert_runs
from swsearch.store.scheduling import Query, candidates, charge, choose, claimed, counters, locked
from swsearch.store.scheduling import lease as lease_queries
from swsearch.store.search_records import (
    Batch,
    Completed,
    Lease,
    Parameters,
    SearchedDatabase,
    StoredSearch,
    content,
    parameters_of,
    stored_search,
)
from swsearch.store.searches import end_early, store_time

if TYPE_CHECKING:
    from swsearch.store.store import Store

MAX_LOSSES: Final = 3
"""Number of workers that may die with a query before it fails."""
_ANY_QUEUED: Final = select(SEARCH_QUERIES.c.number).where(SEARCH_QUERIES.c.state == QUEUED).limit(1)
_OPTIONS: Final = select(SEARCHES.c.options).where(SEARCHES.c.id == bindparam("of"))
_HELD_OF_THESE: Final = select(SEARCH_QUERIES.c.search_id, SEARCH_QUERIES.c.number).where(
    tuple_(SEARCH_QUERIES.c.search_id, SEARCH_QUERIES.c.number).in_(bindparam("these", expanding=True)),
    SEARCH_QUERIES.c.state == LEASED,
    SEARCH_QUERIES.c.lease_owner == bindparam("by"),
)
_RESULTS_OF_THESE: Final = select(QUERIES.c.run_id, QUERIES.c.number).where(
    tuple_(QUERIES.c.run_id, QUERIES.c.number).in_(bindparam("these", expanding=True))
)
_BEGIN_SEARCHES: Final = (
    update(SEARCHES)
    .where(SEARCHES.c.id == bindparam("of"))
    .values(run_id=bindparam("run"), state=RUNNING, reason=None, started_at=bindparam("now"))
)
_CHANGE_SEARCH: Final = update(SEARCHES).where(SEARCHES.c.id == bindparam("of"))
_CHANGE_RUN: Final = update(RUNS).where(RUNS.c.id == bindparam("of"))
_DELETE_QUERIES: Final = delete(SEARCH_QUERIES).where(SEARCH_QUERIES.c.search_id == bindparam("of"))
_CHANGE_QUERY: Final = update(SEARCH_QUERIES).where(
    SEARCH_QUERIES.c.search_id == bindparam("of"), SEARCH_QUERIES.c.number == bindparam("query")
)
_FREE: Final = {"lease_owner": None, "lease_until": None}
"""The lease of a query that no worker holds."""
_FIRST_REASON: Final = (
    select(FAILURES.c.reason).where(FAILURES.c.run_id == bindparam("of")).order_by(FAILURES.c.number).limit(1)
)


class Queue:
    """The queries of unfinished searches, as the workers of a service see them."""

    def __init__(self, store: Store) -> None:
        self._store = store

    # --- claiming ---

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
        with self._store.writing() as connection:
            found = [
                search
                for search in candidates(connection)
                if (generation := generations.get(search.database_name)) is not None
                and generation.digest == search.database_digest
            ]
            if not found:
                return None
            served = counters(connection)
            lead = min(found, key=lambda search: (served.get(search.owner, 0), search.owner, *search))
            together = [search for search in found if search.fingerprint == lead.fingerprint]
            options = parameters_of(connection.execute(_OPTIONS, {"of": lead.id}).scalar_one())
            database = generations[lead.database_name]
            cells = (budget[database.name], overhead(database, options))
            chosen = choose(connection, together, served, *cells, with_lost=with_lost)
            queries = lease_queries(connection, worker, chosen, store_time(connection) + lease)
            if not queries:
                return None
            charge(connection, queries, {search.id: search.owner for search in together}, 1)
            keys = {search.id: search.key for search in together}
            return Batch(lead.fingerprint, database, options, tuple(queries), keys)

    def has_work(self) -> bool:
        """Whether a query is queued; a look that takes no lock."""
        with self._store.reading() as connection:
            return connection.execute(_ANY_QUEUED).first() is not None

    def begin(self, searches: Iterable[int], info: RunInfo) -> dict[int, tuple[int, RunInfo | None]]:
        """The runs of claimed searches; a search that has none gets one with the record ``info``.

        A run that was there comes with its own record, which the caller compares with ``info``. Searches that were
        cancelled in the meantime are missing from the result.
        """
        with self._store.writing() as connection:
            rows = locked(connection, searches).values()
            runs = {row.id: int(row.run_id) for row in rows if row.run_id is not None}
            if runs:
                connection.execute(_CHANGE_RUN, [{"of": run_id, **claim_values()} for run_id in runs.values()])
            fresh = [row for row in rows if row.run_id is None]
            asked = [AskedQueries(Shard(), row.n_queries, row.asked_digest) for row in fresh]
            new = insert_runs(rows_of(connection), info, asked)
            begun = {row.id: run_id for row, run_id in zip(fresh, new, strict=True)}
            if begun:
                now = utc_now()
                values = [{"of": search_id, "run": run_id, "now": now} for search_id, run_id in begun.items()]
                connection.execute(_BEGIN_SEARCHES, values)
        known = {search_id: (run_id, self._store.runs.get(run_id).info) for search_id, run_id in runs.items()}
        return known | {search_id: (run_id, None) for search_id, run_id in begun.items()}

    # --- completing ---

    def complete(self, worker: str, completed: Sequence[Completed], keep: timedelta | None) -> list[bool]:
        """Commit the results of queries and end their leases, in one transaction.

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
        these = [(each.query.search_id, each.query.number) for each in completed]
        with self._store.writing() as connection:
            rows, held = _held_by(connection, worker, these)
            kept = [each for each, query in zip(completed, these, strict=True) if query in held]
            # `swsearch batch --resume` may have gone on with a run; it stores the same results.
            results = {(each.run_id, each.result.number): each.result for each in kept}
            there = {tuple(row) for row in connection.execute(_RESULTS_OF_THESE, {"these": list(results)})}
            new = [(query[0], result) for query, result in results.items() if query not in there]
            insert_queries(rows_of(connection), new)
            hits = Counter[int]()
            for each in kept:
                hits[each.query.search_id] += len(each.result.hits)
            _count(connection, rows, [each.query for each in kept], DONE, keep, hits)
        return [query in held for query in these]

    def fail(self, worker: str, query: Lease, reason: str, keep: timedelta | None) -> bool:
        """Store that a query cannot be searched; returns whether the lease was still held."""
        with self._store.writing() as connection:
            rows, held = _held_by(connection, worker, [(query.search_id, query.number)])
            _fail(connection, rows, [query] if held else [], reason, keep)
        return bool(held)

    def fail_search(self, search_id: int, reason: str, keep: timedelta | None) -> None:
        """End a search that cannot be searched at all."""
        with self._store.writing() as connection:
            for row in locked(connection, [search_id]).values():
                end_early(connection, row, keep, state=FAILED, reason=reason)

    def give_back(self, worker: str) -> int:
        """Return all queries that a worker holds to the queue, as if it had not taken them; returns their number."""
        with self._store.writing() as connection:
            return _returned(connection, SEARCH_QUERIES.c.lease_owner == worker)

    def put_off(self, worker: str, searches: Collection[int], reason: str) -> None:
        """Return what a worker holds of some searches to the queue, and say why those that are queued wait."""
        with self._store.writing() as connection:
            ids = sorted(searches)
            _returned(connection, and_(SEARCH_QUERIES.c.lease_owner == worker, SEARCH_QUERIES.c.search_id.in_(ids)))
            waiting = and_(SEARCHES.c.id.in_(ids), SEARCHES.c.state == QUEUED)
            connection.execute(update(SEARCHES).where(waiting).values(reason=reason))

    # --- workers ---

    def enter(self, worker: str, engine: str) -> None:
        """Announce this process as a worker."""
        this = HostProcess.this()
        with self._store.writing() as connection:
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
        with self._store.writing() as connection:
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
        with self._store.writing() as connection:
            connection.execute(delete(WORKERS).where(WORKERS.c.id == worker))

    def recover(self, keep: timedelta | None, max_losses: int = MAX_LOSSES) -> int:
        """Take the leases of dead workers away; returns the number of queries.

        A worker of this host is dead if its process has ended, one of another host if its leases have ended. A query
        that was lost ``max_losses`` times fails.
        """
        with self._store.reading() as connection:
            workers = connection.execute(select(WORKERS)).all()
        dead = [row.id for row in workers if HostProcess(row.host, row.process, row.process_began).has_ended]
        with self._store.writing() as connection:
            now = store_time(connection)
            is_lost = or_(SEARCH_QUERIES.c.lease_until < now, SEARCH_QUERIES.c.lease_owner.in_(dead))
            queries = _held(connection, is_lost)
            given_up = [query for query in queries if query.losses + 1 >= max_losses]
            _requeue(connection, [query for query in queries if query not in given_up], lost=True)
            rows = locked(connection, (query.search_id for query in given_up))
            died = f"given up: {max_losses} workers died while they"
            begun = {id: row for id, row in rows.items() if row.run_id is not None}
            for row in (row for id, row in rows.items() if id not in begun):
                end_early(connection, row, keep, state=FAILED, reason=f"{died} prepared this search")
            reason = f"{died} searched this query; the others are not affected"
            _fail(connection, begun, [query for query in given_up if query.search_id in begun], reason, keep)
            gone = or_(WORKERS.c.id.in_(dead), WORKERS.c.seen_at < now - timedelta(days=1))
            connection.execute(delete(WORKERS).where(gone))
            return len(queries)

    # --- new generations of a database ---

    def outdated(self, database: SearchedDatabase) -> list[StoredSearch]:
        """The unfinished searches of earlier generations of a database."""
        with self._store.reading() as connection:
            earlier = and_(
                SEARCHES.c.database_name == database.name,
                SEARCHES.c.database_generation < database.generation,
                SEARCHES.c.database_digest != database.digest,
            )
            found = select(SEARCHES).where(earlier, SEARCHES.c.state.in_(UNFINISHED)).order_by(SEARCHES.c.id)
            return [stored_search(row) for row in connection.execute(found)]

    def begin_again(self, search_id: int, database: SearchedDatabase, fingerprint: str) -> None:
        """Begin an unfinished search anew, with another generation of its database or another program.

        What it had is deleted, since one search has one database.
        """
        with self._store.writing() as connection:
            row = locked(connection, [search_id]).get(search_id)
            if row is None:
                return
            values = {
                "database_digest": database.digest,
                "database_generation": database.generation,
                "fingerprint": fingerprint,
                "content": content(fingerprint, row.asked_digest),
                "run_id": None,
                "state": QUEUED,
                "started_at": None,
                "n_done": 0,
                "n_failed": 0,
                "cells_done": 0,
                "n_hits": 0,
            }
            connection.execute(update(SEARCHES).where(SEARCHES.c.id == search_id).values(**values))
            if row.run_id is not None:
                connection.execute(delete(RUNS).where(RUNS.c.id == row.run_id))
            fresh = update(SEARCH_QUERIES).where(SEARCH_QUERIES.c.search_id == search_id)
            connection.execute(fresh.values(**_FREE, state=QUEUED, losses=0))


def _held_by(connection: Connection, worker: str, queries: Sequence[Query]) -> tuple[dict[int, Any], set[Query]]:
    """The rows of the searches of these queries, which are locked, and those queries that a worker still holds."""
    rows = locked(connection, (search_id for search_id, _ in queries))
    found = connection.execute(_HELD_OF_THESE, {"these": list(queries), "by": worker})
    return rows, {(row.search_id, row.number) for row in found if row.search_id in rows}


def _fail(
    connection: Connection,
    rows: Mapping[int, Any],
    queries: Sequence[Lease],
    reason: str,
    keep: timedelta | None,
) -> None:
    """Store that queries of searches with runs cannot be searched; ``rows`` are those of their searches."""
    if not queries:
        return
    for query in queries:
        insert_failure(rows_of(connection), rows[query.search_id].run_id, Failure(query.number, reason))
    _count(connection, rows, queries, FAILED, keep, Counter())


def _count(
    connection: Connection,
    rows: Mapping[int, Any],
    queries: Sequence[Lease],
    state: str,
    keep: timedelta | None,
    hits: Counter[int],
) -> None:
    """Count queries that are done or failed, end their leases, and end the searches of which they were the last.

    ``hits`` are the numbers of their stored alignments by the search. Every step has a statement for all queries or
    searches, because a batch may have hundreds of them.
    """
    n_new = Counter(query.search_id for query in queries)
    cells = Counter[int]()
    for query in queries:
        cells[query.search_id] += query.cells
    going_on: list[dict[str, int]] = []
    ended: list[dict[str, int]] = []
    for id, n in sorted(n_new.items()):
        row = rows[id]
        n_done, n_failed = (row.n_done + n, row.n_failed) if state == DONE else (row.n_done, row.n_failed + n)
        sums = {"cells_done": row.cells_done + cells[id], "n_hits": row.n_hits + hits[id]}
        counts = {"of": id, "n_done": n_done, "n_failed": n_failed, **sums}
        (going_on if n_done + n_failed < row.n_queries else ended).append(counts)
    if going_on:
        connection.execute(_CHANGE_SEARCH, going_on)
        remain = {counts["of"] for counts in going_on}
        these = sorted((query.search_id, query.number) for query in queries if query.search_id in remain)
        connection.execute(
            _CHANGE_QUERY, [{"of": id, "query": number, **_FREE, "state": state} for id, number in these]
        )
    if ended:
        _end(connection, [(rows[counts["of"]], counts) for counts in ended], keep)


def _end(connection: Connection, ended: Sequence[tuple[Any, Mapping[str, int]]], keep: timedelta | None) -> None:
    """End searches and their runs; each has its row and its counts."""
    now = utc_now()
    same = {"finished_at": now, "expires_at": None if keep is None else now + keep}
    values = []
    for row, counts in ended:
        is_done = counts["n_done"] > 0
        reason = None if is_done else connection.execute(_FIRST_REASON, {"of": row.run_id}).scalar()
        values.append({**counts, **same, "state": DONE if is_done else FAILED, "reason": reason})
    connection.execute(_CHANGE_SEARCH, values)
    connection.execute(_DELETE_QUERIES, [{"of": row.id} for row, _ in ended])
    runs = [{"of": row.run_id, "state": FINISHED, "finished_at": now} for row, _ in ended]
    connection.execute(_CHANGE_RUN, runs)


def _held(connection: Connection, which: Any) -> list[Lease]:
    """The leased queries of a condition; their searches are locked, in order."""
    leased = and_(SEARCH_QUERIES.c.state == LEASED, which)
    ids = connection.execute(select(SEARCH_QUERIES.c.search_id).where(leased).distinct()).scalars()
    locked(connection, ids)
    found = select(SEARCH_QUERIES).where(leased).order_by(SEARCH_QUERIES.c.search_id, SEARCH_QUERIES.c.number)
    return [claimed(row) for row in connection.execute(found)]


def _returned(connection: Connection, which: Any) -> int:
    """Return leased queries of a condition to the queue, as if nobody had taken them; returns their number."""
    queries = _held(connection, which)
    charge(connection, queries, _owners(connection, queries), -1)
    _requeue(connection, queries)
    return len(queries)


def _requeue(connection: Connection, queries: Sequence[Lease], *, lost: bool = False) -> None:
    if queries:
        these = [{"of": each.search_id, "query": each.number, "losses": each.losses + lost} for each in queries]
        connection.execute(_CHANGE_QUERY, [{**query, **_FREE, "state": QUEUED} for query in these])


def _owners(connection: Connection, queries: Sequence[Lease]) -> dict[int, str]:
    ids = {query.search_id for query in queries}
    rows = connection.execute(select(SEARCHES.c.id, SEARCHES.c.owner).where(SEARCHES.c.id.in_(ids)))
    return {row.id: row.owner for row in rows}
