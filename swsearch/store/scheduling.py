"""Which queries a worker is given next, and their leases: the inner part of :meth:`~swsearch.store.queue.Queue.claim`.

Everything happens in the transaction of the caller. A batch may have one query of each of hundreds of searches, so
every step has a statement for all of them, not one for each.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any, Final, NamedTuple

from swsearch.store.driver import Rows, marks, marks_of_pairs
from swsearch.store.rows import LEASED, QUEUED, UNFINISHED, restored
from swsearch.store.search_records import MEGACELL, Lease

MAX_QUERIES: Final = 4096
"""Largest number of queries of a batch."""
_PAGE: Final = 256
"""Number of queries or searches that one statement reads."""
_SMALL: Final = 4
"""Largest number of queries of a search whose queries are read together with those of other searches."""

Query = tuple[int, int]
"""A search's ``id`` and the number of a query in it."""


class QueuedSearch(NamedTuple):
    """An unfinished search. Of an owner, the least one is served next; texts are as they are stored."""

    served: int
    cells: int
    id: int
    owner: str
    key: str
    fingerprint: str
    database_name: str
    database_digest: str
    asked_digest: str
    run_id: int | None
    n_queries: int
    n_done: int
    n_failed: int
    cells_done: int
    n_hits: int


_UNFINISHED: Final = f"SELECT {', '.join(QueuedSearch._fields)} FROM searches WHERE state IN {UNFINISHED}"
_NEVER_LOST: Final = f"state = '{QUEUED}' AND losses = 0"
_CANDIDATES: Final = f"""
    {_UNFINISHED} AND EXISTS (SELECT 1 FROM search_queries WHERE search_id = searches.id AND state = '{QUEUED}')
"""
_NEXT_OF_ONE: Final = f"""
    SELECT number, cells FROM search_queries WHERE search_id = ? AND {_NEVER_LOST} AND number > ?
    ORDER BY number LIMIT {_PAGE}
"""
_LOST: Final = f"""
    SELECT number FROM search_queries WHERE search_id = ? AND state = '{QUEUED}' ORDER BY losses, number LIMIT 1
"""
_CHARGE_OWNER: Final = """
    INSERT INTO owners (owner, served) VALUES (?, ?) ON CONFLICT (owner) DO UPDATE SET served = owners.served + ?
"""
LEASE_COLUMNS: Final = "search_id, number, header, letters, cells, losses"
"""The columns of a query, from which :func:`claimed` makes its lease."""


def candidates(rows: Rows) -> list[QueuedSearch]:
    """All searches with queued queries."""
    return list(map(QueuedSearch._make, rows.execute(_CANDIDATES)))


def counters(rows: Rows) -> dict[str, int]:
    """The virtual counters of the owners."""
    return dict(rows.execute("SELECT owner, served FROM owners").fetchall())


def choose(
    rows: Rows,
    together: Sequence[QueuedSearch],
    counters: Mapping[str, int],
    budget: int,
    overhead: int = 0,
    *,
    with_lost: bool,
) -> list[Query]:
    """The queries of the next batch; the first is of the search whose turn it is, whatever its cells are.

    Parameters
    ----------
    together : sequence of QueuedSearch
        Those whose queries may be in one batch, at least one.
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
    never_lost = _never_lost(rows, together)
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
            lost = rows.execute(_LOST, search_id).fetchone() if with_lost else None
            return [] if lost is None else [(search_id, lost[0])]
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


def _never_lost(rows: Rows, searches: Sequence[QueuedSearch]) -> dict[int, Iterator[tuple[int, int]]]:
    """Number and cells of the queued queries of each search that were never lost, in order."""
    small: dict[int, list[tuple[int, int]]] = {search.id: [] for search in searches if search.n_queries <= _SMALL}
    for ids in _pages(list(small)):
        of_many = f"SELECT search_id, number, cells FROM search_queries WHERE search_id IN {marks(len(ids))}"
        for search_id, number, cells in rows.execute(f"{of_many} AND {_NEVER_LOST} ORDER BY number", *ids):
            small[search_id].append((number, cells))
    return {
        search.id: iter(small[search.id]) if search.id in small else _pages_of_one(rows, search.id)
        for search in searches
    }


def _pages_of_one(rows: Rows, search_id: int) -> Iterator[tuple[int, int]]:
    last = -1
    while True:
        page = rows.execute(_NEXT_OF_ONE, search_id, last).fetchall()
        yield from page
        if len(page) < _PAGE:
            return
        last = page[-1][0]


def _pages(items: Sequence[Any]) -> Iterator[Sequence[Any]]:
    remaining = iter(items)
    while page := list(islice(remaining, _PAGE)):
        yield page


def locked(rows: Rows, search_ids: Iterable[int]) -> dict[int, QueuedSearch]:
    """Those searches that are unfinished, by their ids, locked against other changes.

    All transactions lock searches in the order of their ids, and before their queries.
    """
    found: dict[int, QueuedSearch] = {}
    for ids in _pages(sorted(set(search_ids))):
        these = rows.execute(f"{_UNFINISHED} AND id IN {marks(len(ids))} ORDER BY id{rows.lock}", *ids)
        found |= {search.id: search for search in map(QueuedSearch._make, these)}
    return found


def lease(rows: Rows, worker: str, chosen: Sequence[Query], until: datetime) -> list[Lease]:
    """Give a worker the leases of these queries, in this order; those that another has just taken are left out."""
    alive = locked(rows, (search_id for search_id, _ in chosen))
    leased: dict[Query, Lease] = {}
    for these in _pages([query for query in chosen if query[0] in alive]):
        give = f"UPDATE search_queries SET state = '{LEASED}', lease_owner = ?, lease_until = ?"
        free = f"(search_id, number) IN {marks_of_pairs(len(these))} AND state = '{QUEUED}'"
        given = f"{give} WHERE {free} RETURNING {LEASE_COLUMNS}"
        for row in rows.execute(given, worker, until, *(value for query in these for value in query)):
            query = claimed(row)
            leased[query.search_id, query.number] = query
    return [leased[query] for query in chosen if query in leased]


def claimed(row: tuple[Any, ...]) -> Lease:
    """The query of a row with :data:`LEASE_COLUMNS`."""
    search_id, number, header, letters, cells, losses = row
    return Lease(search_id, number, restored(header), restored(letters), cells, losses)


def charge(rows: Rows, queries: Sequence[Lease], searches: Mapping[int, QueuedSearch], sign: int) -> None:
    """Add the cells of queries to the counters of their searches and owners; with the sign -1, take them off.

    ``searches`` are those of the queries, by their ids.
    """
    by_search, by_owner = Counter[int](), Counter[str]()
    for query in queries:
        cost = sign * megacells(query.cells)
        by_search[query.search_id] += cost
        by_owner[searches[query.search_id].owner] += cost
    costs = [(cost, search_id) for search_id, cost in sorted(by_search.items())]
    rows.change_all("UPDATE searches SET served = served + ? WHERE id = ?", costs)
    rows.change_all(_CHARGE_OWNER, [(owner, max(0, cost), cost) for owner, cost in sorted(by_owner.items())])
