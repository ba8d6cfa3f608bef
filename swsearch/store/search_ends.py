"""The end of a query and of a search, in the transaction of the caller, which has locked the row of the search."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

from sqlalchemy import Connection, and_, bindparam, delete, insert, select, update

from swsearch.hits.shards import FailedQuery
from swsearch.store.models import FAILURES, FINISHED, INTERRUPTED, RUNS
from swsearch.store.records import utc_now
from swsearch.store.search_records import ClaimedQuery
from swsearch.store.service_models import DONE, FAILED, LEASED, SEARCH_QUERIES, SEARCHES, UNFINISHED

_LOCK: Final = (
    select(SEARCHES).where(SEARCHES.c.id == bindparam("of"), SEARCHES.c.state.in_(UNFINISHED)).with_for_update()
)
_CHANGE: Final = update(SEARCHES).where(SEARCHES.c.id == bindparam("of"))
_CHANGE_RUN: Final = update(RUNS).where(RUNS.c.id == bindparam("of"))
_DELETE_QUERIES: Final = delete(SEARCH_QUERIES).where(SEARCH_QUERIES.c.search_id == bindparam("of"))
_QUERY = and_(SEARCH_QUERIES.c.search_id == bindparam("of"), SEARCH_QUERIES.c.number == bindparam("query"))
_GIVE_BACK: Final = (
    update(SEARCH_QUERIES)
    .where(_QUERY, SEARCH_QUERIES.c.state == LEASED, SEARCH_QUERIES.c.lease_owner == bindparam("worker"))
    .values(state=bindparam("new_state"), lease_owner=None, lease_until=None)
)
_END_QUERY: Final = update(SEARCH_QUERIES).where(_QUERY).values(state=FAILED, lease_owner=None, lease_until=None)
_FIRST_REASON: Final = (
    select(FAILURES.c.reason).where(FAILURES.c.run_id == bindparam("of")).order_by(FAILURES.c.number).limit(1)
)
_THIS_FAILURE: Final = delete(FAILURES).where(
    FAILURES.c.run_id == bindparam("of"), FAILURES.c.number == bindparam("query")
)


def locked(connection: Connection, search_id: int) -> Any:
    """The row of an unfinished search, locked against other changes; None if it is finished or gone."""
    return connection.execute(_LOCK, {"of": search_id}).first()


def give_back(connection: Connection, worker: str, query: ClaimedQuery, state: str) -> bool:
    """Give a lease back, with the query in this state; False if the worker does not hold it."""
    values = {"of": query.search_id, "query": query.number, "worker": worker, "new_state": state}
    return connection.execute(_GIVE_BACK, values).rowcount == 1


def count_done(connection: Connection, row: Any, query: ClaimedQuery, keep: timedelta | None) -> None:
    """Count a query whose result is stored; ``row`` is that of its search."""
    done = {"n_done": row.n_done + 1, "cells_done": row.cells_done + query.cells}
    _count(connection, row, row.n_done + 1, row.n_failed, done, keep)


def count_all_done(
    connection: Connection, done: Sequence[tuple[Any, ClaimedQuery]], worker: str, keep: timedelta | None
) -> None:
    """Count queries whose results are stored and whose leases a worker holds; each comes with the row of its search.

    The same as :func:`give_back` and :func:`count_done` for each of them, with a statement for all of a kind. It is for
    SQLite, whose writer is alone.
    """
    rows = {row.id: row for row, _ in done}
    n_new = Counter(row.id for row, _ in done)
    cells = Counter[int]()
    for row, query in done:
        cells[row.id] += query.cells
    is_end = {id: row.n_done + n_new[id] + row.n_failed == row.n_queries for id, row in rows.items()}
    now = utc_now()
    ended = {"state": DONE, "reason": None, "finished_at": now, "expires_at": None if keep is None else now + keep}
    counts = {
        id: {"n_done": row.n_done + n_new[id], "cells_done": row.cells_done + cells[id]} for id, row in rows.items()
    }
    if going_on := [id for id in rows if not is_end[id]]:
        connection.execute(_CHANGE, [{"of": id, **counts[id]} for id in going_on])
        given = [query for row, query in done if not is_end[row.id]]
        leases = [{"of": query.search_id, "query": query.number} for query in given]
        connection.execute(_GIVE_BACK, [{**lease, "worker": worker, "new_state": DONE} for lease in leases])
    if at_end := [id for id in rows if is_end[id]]:
        connection.execute(_CHANGE, [{"of": id, **ended, **counts[id]} for id in at_end])
        connection.execute(_DELETE_QUERIES, [{"of": id} for id in at_end])
        runs = [{"of": rows[id].run_id, "state": FINISHED, "finished_at": now} for id in at_end]
        connection.execute(_CHANGE_RUN, runs)


def fail(connection: Connection, row: Any, failed: FailedQuery, cells: int, keep: timedelta | None) -> None:
    """Store a failed query of a search that has a run."""
    connection.execute(_THIS_FAILURE, {"of": row.run_id, "query": failed.number})
    connection.execute(insert(FAILURES), {"run_id": row.run_id, "number": failed.number, "reason": failed.reason})
    connection.execute(_END_QUERY, {"of": row.id, "query": failed.number})
    done = {"n_failed": row.n_failed + 1, "cells_done": row.cells_done + cells}
    _count(connection, row, row.n_done, row.n_failed + 1, done, keep)


def _count(
    connection: Connection, row: Any, n_done: int, n_failed: int, counts: dict[str, int], keep: timedelta | None
) -> None:
    if n_done + n_failed < row.n_queries:
        connection.execute(_CHANGE, {"of": row.id, **counts})
        return
    reason = None if n_done else connection.execute(_FIRST_REASON, {"of": row.run_id}).scalar()
    _end(connection, row, DONE if n_done else FAILED, reason, keep, FINISHED, counts)


def end_failed(connection: Connection, row: Any, reason: str, keep: timedelta | None) -> None:
    """End a search of which the rest cannot be searched, and its run if it has one."""
    _end(connection, row, FAILED, reason, keep, INTERRUPTED, {})


def _end(
    connection: Connection,
    row: Any,
    state: str,
    reason: str | None,
    keep: timedelta | None,
    run_state: str,
    counts: dict[str, int],
) -> None:
    now = utc_now()
    ended = {"state": state, "reason": reason, "finished_at": now, "expires_at": None if keep is None else now + keep}
    connection.execute(_CHANGE, {"of": row.id, **ended, **counts})
    connection.execute(_DELETE_QUERIES, {"of": row.id})
    if row.run_id is not None:
        finished = {"finished_at": now} if run_state == FINISHED else {}
        connection.execute(_CHANGE_RUN, {"of": row.run_id, "state": run_state, **finished})
