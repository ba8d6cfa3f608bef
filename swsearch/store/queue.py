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

from swsearch.hits.result import RunInfo
from swsearch.hits.shards import AskedQueries, Failure, Shard
from swsearch.store.driver import Rows, marks, marks_of_pairs
from swsearch.store.results import insert_failure, insert_queries
from swsearch.store.rows import DONE, FAILED, FINISHED, LEASED, QUEUED, RUNNING, UNFINISHED, restored, storable, utc_now
from swsearch.store.runs import HostProcess, claim_values, insert_runs
from swsearch.store.scheduling import (
    LEASE_COLUMNS,
    Query,
    QueuedSearch,
    candidates,
    charge,
    choose,
    claimed,
    counters,
    locked,
)
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
    searches_where,
)
from swsearch.store.searches import end_early

if TYPE_CHECKING:
    from swsearch.store.store import Store

MAX_LOSSES: Final = 3
"""Number of workers that may die with a query before it fails."""
_FREED: Final = "lease_owner = NULL, lease_until = NULL"
"""The lease of a query that no worker holds."""
_END_SEARCH: Final = """
    UPDATE searches SET n_done = ?, n_failed = ?, cells_done = ?, n_hits = ?,
    state = ?, reason = ?, finished_at = ?, expires_at = ? WHERE id = ?
"""
_GO_ON: Final = "UPDATE searches SET n_done = ?, n_failed = ?, cells_done = ?, n_hits = ? WHERE id = ?"


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
        with self._store.writing() as rows:
            found = [
                search
                for search in candidates(rows)
                if (generation := generations.get(restored(search.database_name))) is not None
                and generation.digest == search.database_digest
            ]
            if not found:
                return None
            served = counters(rows)
            lead = min(found, key=lambda search: (served.get(search.owner, 0), search.owner, *search))
            together = [search for search in found if search.fingerprint == lead.fingerprint]
            ((options,),) = rows.execute("SELECT options FROM searches WHERE id = ?", lead.id).fetchall()
            database, parameters = generations[restored(lead.database_name)], parameters_of(options)
            cells = (budget[database.name], overhead(database, parameters))
            chosen = choose(rows, together, served, *cells, with_lost=with_lost)
            queries = lease_queries(rows, worker, chosen, rows.now() + lease)
            if not queries:
                return None
            charge(rows, queries, {search.id: search for search in together}, 1)
            keys = {search.id: search.key for search in together}
            return Batch(lead.fingerprint, database, parameters, tuple(queries), keys)

    def has_work(self) -> bool:
        """Whether a query is queued; a look that takes no lock."""
        with self._store.reading() as rows:
            queued = f"SELECT 1 FROM search_queries WHERE state = '{QUEUED}' LIMIT 1"
            return rows.execute(queued).fetchone() is not None

    def begin(self, searches: Iterable[int], info: RunInfo) -> dict[int, tuple[int, RunInfo | None]]:
        """The runs of claimed searches; a search that has none gets one with the record ``info``.

        A run that was there comes with its own record, which the caller compares with ``info``. Searches that were
        cancelled in the meantime are missing from the result.
        """
        with self._store.writing() as rows:
            found = locked(rows, searches).values()
            runs = {search.id: search.run_id for search in found if search.run_id is not None}
            for run_id in runs.values():
                rows.change("runs", run_id, claim_values())
            fresh = [search for search in found if search.run_id is None]
            asked = [AskedQueries(Shard(), search.n_queries, search.asked_digest) for search in fresh]
            new = insert_runs(rows, info, asked)
            begun = {search.id: run_id for search, run_id in zip(fresh, new, strict=True)}
            begin = f"UPDATE searches SET run_id = ?, state = '{RUNNING}', reason = NULL, started_at = ? WHERE id = ?"
            now = utc_now()
            rows.change_all(begin, [(run_id, now, search_id) for search_id, run_id in begun.items()])
        known = {search_id: (run_id, self._store.runs.get(run_id).info) for search_id, run_id in runs.items()}
        return known | {search_id: (run_id, None) for search_id, run_id in begun.items()}

    # --- completing ---

    def complete(self, worker: str, completed: Sequence[Completed], keep: timedelta | None) -> dict[int, bool]:
        """Commit the results of queries and end their leases, in one transaction.

        Parameters
        ----------
        worker : str
        completed : sequence of Completed
        keep : timedelta or None
            Time from the end of a search to its deletion.

        Returns
        -------
        dict of int to bool
            The searches of which results were stored, each with whether it has ended. None is stored of a search that
            was cancelled or deleted, or of a query whose lease was lost.
        """
        these = [(each.query.search_id, each.query.number) for each in completed]
        with self._store.writing() as rows:
            searches, held = _held_by(rows, worker, these)
            kept = [each for each, query in zip(completed, these, strict=True) if query in held]
            # `swsearch batch --resume` may have gone on with a run; it stores the same results.
            results = {(each.run_id, each.result.number): each.result for each in kept}
            found = f"SELECT run_id, number FROM queries WHERE (run_id, number) IN {marks_of_pairs(len(results))}"
            there = set(rows.execute(found, *_values(results))) if results else set()
            insert_queries(rows, [(query[0], result) for query, result in results.items() if query not in there])
            hits = Counter[int]()
            for each in kept:
                hits[each.query.search_id] += len(each.result.hits)
            ended = _count(rows, searches, [each.query for each in kept], DONE, keep, hits)
        return {search_id: search_id in ended for search_id, _ in held}

    def fail(self, worker: str, query: Lease, reason: str, keep: timedelta | None) -> bool:
        """Store that a query cannot be searched; returns whether the lease was still held."""
        with self._store.writing() as rows:
            searches, held = _held_by(rows, worker, [(query.search_id, query.number)])
            _fail(rows, searches, [query] if held else [], reason, keep)
        return bool(held)

    def fail_search(self, search_id: int, reason: str, keep: timedelta | None) -> None:
        """End a search that cannot be searched at all."""
        with self._store.writing() as rows:
            for search in locked(rows, [search_id]).values():
                end_early(rows, search.id, search.run_id, keep, FAILED, reason)

    def give_back(self, worker: str) -> int:
        """Return all queries that a worker holds to the queue, as if it had not taken them; returns their number."""
        with self._store.writing() as rows:
            return _returned(rows, "lease_owner = ?", worker)

    def put_off(self, worker: str, searches: Collection[int], reason: str) -> None:
        """Return what a worker holds of some searches to the queue, and say why those that are queued wait."""
        with self._store.writing() as rows:
            ids = sorted(searches)
            _returned(rows, f"lease_owner = ? AND search_id IN {marks(len(ids))}", worker, *ids)
            waiting = f"UPDATE searches SET reason = ? WHERE id = ? AND state = '{QUEUED}'"
            rows.change_all(waiting, [(storable(reason), search_id) for search_id in ids])

    # --- workers ---

    def enter(self, worker: str, engine: str) -> None:
        """Announce this process as a worker."""
        this = HostProcess.this()
        columns = "id, host, process, process_began, engine, cells_per_second, started_at, seen_at"
        with self._store.writing() as rows:
            now = rows.now()
            values = (worker, this.host, this.process, this.began, engine, 0.0, now, now)
            rows.execute(f"INSERT INTO workers ({columns}) VALUES {marks(len(values))}", *values)

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
        with self._store.writing() as rows:
            now = rows.now()
            seen = "UPDATE workers SET seen_at = ?, cells_per_second = ? WHERE id = ?"
            rows.execute(seen, now - silence, cells_per_second, worker)
            held = f"WHERE lease_owner = ? AND state = '{LEASED}'"
            queries = set(rows.execute(f"SELECT search_id, number FROM search_queries {held}", worker))
            if queries:
                rows.execute(f"UPDATE search_queries SET lease_until = ? {held}", now + lease, worker)
            return queries

    def leave(self, worker: str) -> None:
        """Return what a worker holds, and forget it."""
        self.give_back(worker)
        with self._store.writing() as rows:
            rows.execute("DELETE FROM workers WHERE id = ?", worker)

    def recover(self, keep: timedelta | None, max_losses: int = MAX_LOSSES) -> int:
        """Take the leases of dead workers away; returns the number of queries.

        A worker of this host is dead if its process has ended, one of another host if its leases have ended. A query
        that was lost ``max_losses`` times fails.
        """
        with self._store.reading() as rows:
            workers = rows.execute("SELECT id, host, process, process_began FROM workers").fetchall()
        dead = [worker for worker, *process in workers if HostProcess(*process).has_ended]
        with self._store.writing() as rows:
            now = rows.now()
            is_lost = " OR ".join(["lease_until < ?", *["lease_owner = ?"] * len(dead)])
            searches, queries = _held(rows, f"({is_lost})", now, *dead)
            given_up = [query for query in queries if query.losses + 1 >= max_losses]
            _requeue(rows, [query for query in queries if query not in given_up], lost=True)
            died = f"given up: {max_losses} workers died while they"
            for search_id in {query.search_id for query in given_up if searches[query.search_id].run_id is None}:
                end_early(rows, search_id, None, keep, FAILED, f"{died} prepared this search")
            begun = [query for query in given_up if searches[query.search_id].run_id is not None]
            _fail(rows, searches, begun, f"{died} searched this query; the others are not affected", keep)
            rows.execute("DELETE FROM workers WHERE seen_at < ?", now - timedelta(days=1))
            rows.change_all("DELETE FROM workers WHERE id = ?", [(worker,) for worker in dead])
            return len(queries)

    # --- new generations of a database ---

    def outdated(self, database: SearchedDatabase) -> list[StoredSearch]:
        """The unfinished searches of earlier generations of a database."""
        with self._store.reading() as rows:
            earlier = "database_name = ? AND database_generation < ? AND database_digest <> ?"
            unfinished = f"{earlier} AND state IN {UNFINISHED} ORDER BY id"
            return searches_where(rows, unfinished, storable(database.name), database.generation, database.digest)

    def begin_again(self, search_id: int, database: SearchedDatabase, fingerprint: str) -> None:
        """Begin an unfinished search anew, with another generation of its database or another program.

        What it had is deleted, since one search has one database.
        """
        with self._store.writing() as rows:
            search = locked(rows, [search_id]).get(search_id)
            if search is None:
                return
            values = {
                "database_digest": database.digest,
                "database_generation": database.generation,
                "fingerprint": fingerprint,
                "content": content(fingerprint, search.asked_digest),
                "run_id": None,
                "state": QUEUED,
                "started_at": None,
                "n_done": 0,
                "n_failed": 0,
                "cells_done": 0,
                "n_hits": 0,
            }
            rows.change("searches", search_id, values)
            rows.execute("DELETE FROM runs WHERE id = ?", search.run_id)
            fresh = f"UPDATE search_queries SET {_FREED}, state = '{QUEUED}', losses = 0 WHERE search_id = ?"
            rows.execute(fresh, search_id)


def _values(queries: Iterable[Query]) -> list[int]:
    """The values of :func:`marks_of_pairs`."""
    return [value for query in queries for value in query]


def _held_by(rows: Rows, worker: str, queries: Sequence[Query]) -> tuple[dict[int, QueuedSearch], set[Query]]:
    """The searches of these queries, which are locked, and those queries that a worker still holds."""
    searches = locked(rows, (search_id for search_id, _ in queries))
    these = f"(search_id, number) IN {marks_of_pairs(len(queries))}"
    held = f"SELECT search_id, number FROM search_queries WHERE {these} AND state = '{LEASED}' AND lease_owner = ?"
    found = rows.execute(held, *_values(queries), worker) if queries else ()
    return searches, {query for query in found if query[0] in searches}


def _fail(
    rows: Rows,
    searches: Mapping[int, QueuedSearch],
    queries: Sequence[Lease],
    reason: str,
    keep: timedelta | None,
) -> None:
    """Store that queries of searches with runs cannot be searched."""
    for query in queries:
        run_id = searches[query.search_id].run_id
        assert run_id is not None
        insert_failure(rows, run_id, Failure(query.number, reason))
    _count(rows, searches, queries, FAILED, keep, Counter())


def _count(
    rows: Rows,
    searches: Mapping[int, QueuedSearch],
    queries: Sequence[Lease],
    state: str,
    keep: timedelta | None,
    hits: Counter[int],
) -> set[int]:
    """Count queries that are done or failed, end their leases, and end the searches of which they were the last.

    Returns the searches that have ended.

    ``hits`` are the numbers of their stored alignments by the search.
    """
    n_new = Counter(query.search_id for query in queries)
    cells = Counter[int]()
    for query in queries:
        cells[query.search_id] += query.cells
    now = utc_now()
    expires = None if keep is None else now + keep
    going_on: list[tuple[Any, ...]] = []
    ended: list[tuple[Any, ...]] = []
    for id, n in sorted(n_new.items()):
        search = searches[id]
        n_done, n_failed = (
            (search.n_done + n, search.n_failed) if state == DONE else (search.n_done, search.n_failed + n)
        )
        counts = (n_done, n_failed, search.cells_done + cells[id], search.n_hits + hits[id])
        if n_done + n_failed < search.n_queries:
            going_on.append((*counts, id))
        elif n_done:
            ended.append((*counts, DONE, None, now, expires, id))
        else:
            first = "SELECT reason FROM failures WHERE run_id = ? ORDER BY number LIMIT 1"
            (reason,) = rows.execute(first, search.run_id).fetchone() or (None,)
            ended.append((*counts, FAILED, reason, now, expires, id))
    rows.change_all(_GO_ON, going_on)
    remain = {values[-1] for values in going_on}
    these = sorted((query.search_id, query.number) for query in queries if query.search_id in remain)
    rows.change_all(f"UPDATE search_queries SET {_FREED}, state = '{state}' WHERE search_id = ? AND number = ?", these)
    rows.change_all(_END_SEARCH, ended)
    ids = [values[-1] for values in ended]
    rows.change_all("DELETE FROM search_queries WHERE search_id = ?", [(id,) for id in ids])
    finish = f"UPDATE runs SET state = '{FINISHED}', finished_at = ? WHERE id = ?"
    rows.change_all(finish, [(now, searches[id].run_id) for id in ids])
    return set(ids)


def _held(rows: Rows, which: str, *values: Any) -> tuple[dict[int, QueuedSearch], list[Lease]]:
    """The leased queries of a condition, in order, and their searches, which are locked."""
    leased = f"FROM search_queries WHERE state = '{LEASED}' AND {which}"
    ids = rows.execute(f"SELECT search_id {leased}", *values).fetchall()
    searches = locked(rows, [search_id for (search_id,) in ids])
    found = rows.execute(f"SELECT {LEASE_COLUMNS} {leased} ORDER BY search_id, number", *values)
    return searches, [query for query in map(claimed, found) if query.search_id in searches]


def _returned(rows: Rows, which: str, *values: Any) -> int:
    """Return leased queries of a condition to the queue, as if nobody had taken them; returns their number."""
    searches, queries = _held(rows, which, *values)
    charge(rows, queries, searches, -1)
    _requeue(rows, queries)
    return len(queries)


def _requeue(rows: Rows, queries: Sequence[Lease], *, lost: bool = False) -> None:
    these = [(each.losses + lost, each.search_id, each.number) for each in queries]
    free = f"UPDATE search_queries SET {_FREED}, state = '{QUEUED}', losses = ? WHERE search_id = ? AND number = ?"
    rows.change_all(free, these)
