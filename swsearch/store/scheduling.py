"""Which queries a worker is given next, and their leases: the inner part of :meth:`~swsearch.store.queue.Queue.claim`.

Everything happens in the transaction of the caller. A batch may have one query of each of hundreds of searches, so
every step has a statement for all of them, not one for each.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from itertools import islice
from typing import Any, Final

from sqlalchemy import Connection, and_, bindparam, exists, select, tuple_, update

from swsearch.store.connections import upsert
from swsearch.store.models import OWNERS, SEARCH_QUERIES, SEARCHES
from swsearch.store.rows import LEASED, QUEUED, UNFINISHED
from swsearch.store.search_records import MEGACELL, Lease

MAX_QUERIES: Final = 4096
"""Largest number of queries of a batch."""
_PAGE: Final = 256
"""Number of queries or searches that one statement reads."""
_SMALL: Final = 4
"""Largest number of queries of a search whose queries are read together with those of other searches."""

Query = tuple[int, int]
"""A search's ``id`` and the number of a query in it."""

_OF_SEARCH = SEARCH_QUERIES.c.search_id == SEARCHES.c.id
_CANDIDATES: Final = select(
    SEARCHES.c.served, SEARCHES.c.cells, SEARCHES.c.id, SEARCHES.c.owner, SEARCHES.c.fingerprint, SEARCHES.c.key,
    SEARCHES.c.database_name, SEARCHES.c.database_digest, SEARCHES.c.n_queries,
).where(SEARCHES.c.state.in_(UNFINISHED), exists().where(_OF_SEARCH, SEARCH_QUERIES.c.state == QUEUED))  # fmt: skip
_COUNTERS: Final = select(OWNERS.c.owner, OWNERS.c.served)
_NEVER_LOST = and_(SEARCH_QUERIES.c.state == QUEUED, SEARCH_QUERIES.c.losses == 0)
_NEXT_OF_ONE: Final = (
    select(SEARCH_QUERIES.c.number, SEARCH_QUERIES.c.cells)
    .where(SEARCH_QUERIES.c.search_id == bindparam("of"), _NEVER_LOST, SEARCH_QUERIES.c.number > bindparam("after"))
    .order_by(SEARCH_QUERIES.c.number)
    .limit(_PAGE)
)
_NEXT_OF_MANY: Final = (
    select(SEARCH_QUERIES.c.search_id, SEARCH_QUERIES.c.number, SEARCH_QUERIES.c.cells)
    .where(SEARCH_QUERIES.c.search_id.in_(bindparam("of", expanding=True)), _NEVER_LOST)
    .order_by(SEARCH_QUERIES.c.number)
)
_LOST: Final = (
    select(SEARCH_QUERIES.c.number)
    .where(SEARCH_QUERIES.c.search_id == bindparam("of"), SEARCH_QUERIES.c.state == QUEUED)
    .order_by(SEARCH_QUERIES.c.losses, SEARCH_QUERIES.c.number)
    .limit(1)
)
_LOCK: Final = (
    select(
        SEARCHES.c.id,
        SEARCHES.c.run_id,
        SEARCHES.c.asked_digest,
        SEARCHES.c.n_queries,
        SEARCHES.c.n_done,
        SEARCHES.c.n_failed,
        SEARCHES.c.cells_done,
        SEARCHES.c.n_hits,
    )
    .where(SEARCHES.c.id.in_(bindparam("of", expanding=True)), SEARCHES.c.state.in_(UNFINISHED))
    .order_by(SEARCHES.c.id)
    .with_for_update()
)
_THESE = tuple_(SEARCH_QUERIES.c.search_id, SEARCH_QUERIES.c.number).in_(bindparam("these", expanding=True))
_FREE: Final = (
    select(SEARCH_QUERIES)
    .where(_THESE, SEARCH_QUERIES.c.state == QUEUED)
    .order_by(SEARCH_QUERIES.c.search_id, SEARCH_QUERIES.c.number)
    .with_for_update(skip_locked=True)
)
_GIVE: Final = (
    update(SEARCH_QUERIES)
    .where(_THESE)
    .values(state=LEASED, lease_owner=bindparam("worker"), lease_until=bindparam("until"))
)
_CHARGE: Final = (
    update(SEARCHES).where(SEARCHES.c.id == bindparam("of")).values(served=SEARCHES.c.served + bindparam("cost"))
)


def candidates(connection: Connection) -> Sequence[Any]:
    """All searches with queued queries; of an owner, the one with the smallest counter, cells and id is served next."""
    return connection.execute(_CANDIDATES).all()


def counters(connection: Connection) -> dict[str, int]:
    """The virtual counters of the owners."""
    return {row.owner: row.served for row in connection.execute(_COUNTERS)}


def choose(
    connection: Connection,
    together: Sequence[Any],
    counters: Mapping[str, int],
    budget: int,
    overhead: int = 0,
    *,
    with_lost: bool,
) -> list[Query]:
    """The queries of the next batch; the first is of the search whose turn it is, whatever its cells are.

    Parameters
    ----------
    together : sequence of rows
        The :func:`candidates` whose queries may be in one batch, at least one.
    counters : mapping of str to int
    budget : int
        Number of cells of the batch.
    overhead : int
        Number of cells that take as long as what a query costs besides its own cells.
    with_lost : bool
        Whether a query that was lost before may be chosen.

    Returns
    -------
    list of Query
        A query that was lost before is alone, and comes after all others of its search.
    """
    never_lost = _never_lost(connection, together)
    by_owner: dict[str, list[tuple[int, int, int]]] = {}
    for search in together:
        by_owner.setdefault(search.owner, []).append((search.served, search.cells, search.id))
    owners = [(counters.get(owner, 0), owner) for owner in by_owner]
    heapq.heapify(owners)
    for searches in by_owner.values():
        heapq.heapify(searches)
    chosen: list[Query] = []
    n_cells = 0
    while owners and len(chosen) < MAX_QUERIES:
        counter, owner = owners[0]
        searches = by_owner[owner]
        served, size, search_id = searches[0]
        found = next(never_lost[search_id], None)
        if found is None and not chosen:
            lost = connection.execute(_LOST, {"of": search_id}).scalar() if with_lost else None
            return [] if lost is None else [(search_id, lost)]
        if found is None:
            heapq.heappop(searches)
            if not searches:
                heapq.heappop(owners)
            continue
        number, cells = found
        if chosen and n_cells + cells + overhead > budget:
            break
        n_cells += cells + overhead
        chosen.append((search_id, number))
        heapq.heapreplace(searches, (served + megacells(cells), size, search_id))
        heapq.heapreplace(owners, (counter + megacells(cells), owner))
    return chosen


def megacells(cells: int) -> int:
    """Millions of cells, rounded up, so that every query counts."""
    return -(-cells // MEGACELL)


def _never_lost(connection: Connection, searches: Sequence[Any]) -> dict[int, Iterator[tuple[int, int]]]:
    """Number and cells of the queued queries of each search that were never lost, in order."""
    small: dict[int, list[tuple[int, int]]] = {search.id: [] for search in searches if search.n_queries <= _SMALL}
    for ids in _pages(list(small)):
        for search_id, number, cells in connection.execute(_NEXT_OF_MANY, {"of": ids}):
            small[search_id].append((number, cells))
    return {
        search.id: iter(small[search.id]) if search.id in small else _pages_of_one(connection, search.id)
        for search in searches
    }


def _pages_of_one(connection: Connection, search_id: int) -> Iterator[tuple[int, int]]:
    last = -1
    while True:
        page = connection.execute(_NEXT_OF_ONE, {"of": search_id, "after": last}).all()
        for row in page:
            yield row.number, row.cells
        if len(page) < _PAGE:
            return
        last = page[-1].number


def _pages(items: Sequence[Any]) -> Iterator[Sequence[Any]]:
    remaining = iter(items)
    while page := list(islice(remaining, _PAGE)):
        yield page


def locked(connection: Connection, search_ids: Iterable[int]) -> dict[int, Any]:
    """The rows of those searches that are unfinished, by their ids, locked against other changes.

    All transactions lock searches in the order of their ids, and before their queries.
    """
    rows: dict[int, Any] = {}
    for ids in _pages(sorted(set(search_ids))):
        rows |= {row.id: row for row in connection.execute(_LOCK, {"of": ids})}
    return rows


def lease(connection: Connection, worker: str, chosen: Sequence[Query], until: datetime) -> list[Lease]:
    """Give a worker the leases of these queries, in this order; those that another has just taken are left out."""
    alive = locked(connection, (search_id for search_id, _ in chosen))
    leased: dict[Query, Lease] = {}
    for these in _pages([query for query in chosen if query[0] in alive]):
        found = [claimed(row) for row in connection.execute(_FREE, {"these": these})]
        taken = {(query.search_id, query.number): query for query in found}
        if taken:
            connection.execute(_GIVE, {"these": list(taken), "worker": worker, "until": until})
        leased |= taken
    return [leased[query] for query in chosen if query in leased]


def claimed(row: Any) -> Lease:
    """The query of a row of ``search_queries``."""
    return Lease(row.search_id, row.number, row.header, row.letters, row.cells, row.losses)


def charge(connection: Connection, queries: Sequence[Lease], owners: Mapping[int, str], sign: int) -> None:
    """Add the cells of queries to the counters of their searches and owners; with the sign -1, take them off.

    Parameters
    ----------
    queries : sequence of Lease
    owners : mapping of int to str
        The owners of their searches, by the ``id`` of the search.
    sign : int
    """
    by_search: dict[int, int] = {}
    by_owner: dict[str, int] = {}
    for query in queries:
        cost = sign * megacells(query.cells)
        by_search[query.search_id] = by_search.get(query.search_id, 0) + cost
        by_owner[owners[query.search_id]] = by_owner.get(owners[query.search_id], 0) + cost
    if by_search:
        connection.execute(_CHARGE, [{"of": search_id, "cost": cost} for search_id, cost in sorted(by_search.items())])
    statement = _charge_owner(connection.dialect.name)
    for owner, cost in sorted(by_owner.items()):
        connection.execute(statement, {"owner": owner, "served": max(0, cost), "cost": cost})


@cache
def _charge_owner(dialect: str) -> Any:
    """Adds ``cost`` to the counter of an owner, which begins with ``served``."""
    row = upsert(dialect, OWNERS).values(owner=bindparam("owner"), served=bindparam("served"))
    sums = {"served": OWNERS.c.served + bindparam("cost", type_=OWNERS.c.served.type)}
    return row.on_conflict_do_update(index_elements=["owner"], set_=sums)
