"""Searches that are submitted together, in the transaction of the caller: :class:`SubmittedGroup`.

While it writes, nobody else can, so what all of them need is read once, and the rows of a table are written together.
"""

from __future__ import annotations

import json
import secrets
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from typing import Any, Final

from sqlalchemy import Connection, Table, bindparam, delete, func, select, tuple_, update

from swsearch.errors import Refused
from swsearch.store.connections import insert_rows, insert_with_ids
from swsearch.store.models import (
    DONE,
    OWNERS,
    QUERIES,
    QUEUED,
    SEARCH_QUERIES,
    SEARCHES,
    UNFINISHED,
    USAGE,
    storable,
    utc_now,
)
from swsearch.store.search_records import (
    NewQuery,
    NewSearch,
    Parameters,
    StoredSearch,
    parameters_of,
    search_of,
    stored_search,
)

_SUBMITTED_BEFORE: Final = select(SEARCHES).where(
    tuple_(SEARCHES.c.owner, SEARCHES.c.idempotency_key).in_(bindparam("these", expanding=True))
)
_RUNS_WITH_RESULTS: Final = (
    select(SEARCHES.c.content, SEARCHES.c.run_id)
    .where(SEARCHES.c.content.in_(bindparam("contents", expanding=True)), SEARCHES.c.state == DONE)
    .where(SEARCHES.c.n_failed == 0, SEARCHES.c.run_id.is_not(None))
    .order_by(SEARCHES.c.id)
)
_OF_OWNERS: Final = (
    select(SEARCHES.c.owner, func.sum(SEARCHES.c.cells - SEARCHES.c.cells_done), func.min(SEARCHES.c.served))
    .where(SEARCHES.c.state.in_(UNFINISHED))
    .group_by(SEARCHES.c.owner)
)
_CELLS_OF_DAY: Final = select(USAGE.c.cells).where(USAGE.c.owner == bindparam("owner"), USAGE.c.day == bindparam("day"))
_QUERIES_LEFT: Final = (
    select(
        SEARCHES.c.database_name,
        SEARCHES.c.options,
        func.sum(SEARCHES.c.n_queries - SEARCHES.c.n_done - SEARCHES.c.n_failed),
    )
    .where(SEARCHES.c.owner == bindparam("owner"), SEARCHES.c.state.in_(UNFINISHED))
    .group_by(SEARCHES.c.database_name, SEARCHES.c.options)
)
_RUNS_OF_OWNER: Final = (
    select(SEARCHES.c.run_id, SEARCHES.c.state)
    .where(SEARCHES.c.owner == bindparam("owner"), SEARCHES.c.run_id.is_not(None))
    .distinct()
)
_HITS_OF_RUNS: Final = (
    select(QUERIES.c.run_id, func.sum(QUERIES.c.n_hits))
    .where(QUERIES.c.run_id.in_(bindparam("runs", expanding=True)))
    .group_by(QUERIES.c.run_id)
)
_PAGE: Final = 256
"""Number of runs whose alignments one statement counts."""
_MOST_COUNTED: Final = 100_000
"""Number of runs whose alignments are remembered."""
_COUNTER: Final = select(OWNERS.c.served).where(OWNERS.c.owner == bindparam("of"))


@dataclass(frozen=True)
class HitLimit:
    """How many alignments an owner may have: those in the store, and those that unfinished searches may add.

    Attributes
    ----------
    most : int
    of_query : callable
        The largest number of alignments that a query adds, from the name of its database and the options.
    counted : dict of int to int
        Alignments of finished runs, which are counted once.
    """

    most: int
    of_query: Callable[[str, Parameters], int]
    counted: dict[int, int] = field(default_factory=dict)


@dataclass
class _Unfinished:
    """The unfinished searches of an owner: cells that are left, and the smallest of their counters."""

    cells: int
    served: int


class SubmittedGroup:
    """The searches of one transaction; :meth:`finish` comes after all of them were added.

    Parameters
    ----------
    connection : Connection
    searches : sequence of NewSearch
        Those that will be added.
    queued_cells, daily_cells : int or None
        Limits on an owner, as in :meth:`swsearch.store.searches.Searches.submit`.
    keep : timedelta or None
        Time from the end of a search to its deletion.
    hits : HitLimit or None
        A limit on an owner, too.
    """

    def __init__(
        self,
        connection: Connection,
        searches: Sequence[NewSearch],
        queued_cells: int | None,
        daily_cells: int | None,
        keep: timedelta | None,
        hits: HitLimit | None = None,
    ) -> None:
        self._connection = connection
        self._hits = hits
        self._hits_of: dict[str, int] = {}
        """The alignments of owners, those that searches of this group may add included."""
        self._queued_cells = queued_cells
        self._daily_cells = daily_cells
        self._keep = keep
        self._now = utc_now()
        self._today = self._now.date().isoformat()
        self._owners: dict[str, _Unfinished] | None = None
        self._used_today: dict[str, int] = {}
        self._rows: list[dict[str, Any]] = []
        self._queries: list[Sequence[NewQuery]] = []
        self._with_key: dict[tuple[str, str], StoredSearch | int] = {}
        """The searches with an idempotency key: those of the store, and the indices of those in ``_rows``."""
        self._n_searches: Counter[str] = Counter()
        self._n_queries: Counter[str] = Counter()
        self._cells: Counter[str] = Counter()
        contents = {"contents": sorted({new.content for new in searches})}
        self._run_of: dict[str, int] = {
            row.content: row.run_id for row in connection.execute(_RUNS_WITH_RESULTS, contents)
        }
        keys = {(new.owner, new.idempotency_key) for new in searches if new.idempotency_key is not None}
        if keys:
            for row in connection.execute(_SUBMITTED_BEFORE, {"these": sorted(keys)}):
                self._with_key[row.owner, row.idempotency_key] = stored_search(row)

    def add(self, new: NewSearch) -> StoredSearch | int:
        """Add a search; returns one that was submitted before with its key, or the place in the list of :meth:`finish`.

        Raises
        ------
        Refused
            A limit is exceeded, or the idempotency key belongs to another search of the owner. Nothing was changed.
        """
        same = self._submitted_before(new)
        if same is not None:
            return same
        row: dict[str, Any] = {
            "key": secrets.token_urlsafe(16),
            "owner": new.owner,
            "database_name": new.database.name,
            "database_digest": new.database.digest,
            "database_generation": new.database.generation,
            "options": json.dumps(dict(new.options)),
            "fingerprint": new.fingerprint,
            "content": new.content,
            "asked_digest": new.asked_digest,
            "idempotency_key": new.idempotency_key,
            "state": QUEUED,
            "reason": None,
            "created_at": self._now,
            "started_at": None,
            "finished_at": None,
            "expires_at": None,
            "run_id": None,
            "n_queries": len(new.queries),
            "n_done": 0,
            "n_failed": 0,
            "cells": new.cells,
            "cells_done": 0,
            "served": 0,
        }
        run_id = self._run_of.get(new.content)
        if run_id is not None:
            expires = None if self._keep is None else self._now + self._keep
            known = {"state": DONE, "run_id": run_id, "n_done": len(new.queries), "cells_done": new.cells}
            return self._added(
                {**row, **known, "started_at": self._now, "finished_at": self._now, "expires_at": expires}
            )
        owners = self._unfinished()
        mine = owners.get(new.owner)
        self._check_limits(new, 0 if mine is None else mine.cells)
        if mine is None:
            self._enter_queue(new.owner, owners)
            mine = owners[new.owner] = _Unfinished(0, 0)
        mine.cells += new.cells
        if self._hits is not None:
            self._hits_of[new.owner] += self._new_hits(new, self._hits)
        self._n_searches[new.owner] += 1
        self._n_queries[new.owner] += len(new.queries)
        self._cells[new.owner] += new.cells
        # The counters of an owner's searches are lifted among each other, too.
        return self._added({**row, "served": mine.served}, new.queries)

    def finish(self) -> list[StoredSearch]:
        """Store the added searches with their queries, and count them in the usage of their owners."""
        ids = insert_with_ids(self._connection, SEARCHES, self._rows)
        queued = [
            (search_id, number, storable(query.header), storable(query.letters), query.cells, QUEUED, None, None, 0)
            for search_id, queries in zip(ids, self._queries, strict=True)
            for number, query in enumerate(queries)
        ]
        if queued:
            insert_rows(self._connection, SEARCH_QUERIES, queued)
        for owner, n_searches in sorted(self._n_searches.items()):
            counts = {"n_searches": n_searches, "n_queries": self._n_queries[owner], "cells": self._cells[owner]}
            values = {"owner": owner, "day": self._today, **counts}
            self._connection.execute(_usage_statement(self._connection.dialect.name), values)
        return [search_of({**row, "id": search_id}) for search_id, row in zip(ids, self._rows, strict=True)]

    def _added(self, row: dict[str, Any], queries: Sequence[NewQuery] = ()) -> int:
        place = len(self._rows)
        self._rows.append(row)
        self._queries.append(queries)
        if row["idempotency_key"] is not None:
            self._with_key[row["owner"], row["idempotency_key"]] = place
        return place

    def _submitted_before(self, new: NewSearch) -> StoredSearch | int | None:
        if new.idempotency_key is None:
            return None
        found = self._with_key.get((new.owner, new.idempotency_key))
        if found is None:
            return None
        known = found if isinstance(found, StoredSearch) else search_of({**self._rows[found], "id": 0})
        if (known.asked_digest, known.database.name, known.options) != (
            new.asked_digest,
            new.database.name,
            json.loads(json.dumps(dict(new.options))),
        ):
            raise Refused("idempotency_conflict", "this Idempotency-Key belongs to another search; choose a new one")
        return found

    def _unfinished(self) -> dict[str, _Unfinished]:
        """The owners with unfinished searches."""
        if self._owners is None:
            found = self._connection.execute(_OF_OWNERS)
            self._owners = {owner: _Unfinished(int(cells), served) for owner, cells, served in found}
        return self._owners

    def _check_limits(self, new: NewSearch, queued: int) -> None:
        if self._queued_cells is not None and queued + new.cells > self._queued_cells:
            raise Refused(
                "queue_full",
                f"your unfinished searches have {queued:,} cells, and with this one's {new.cells:,} more "
                f"than the {self._queued_cells:,} that an owner may have; wait until some are done, or send fewer "
                "queries",
            )
        if self._daily_cells is not None:
            used = self._cells_today(new.owner)
            if used + new.cells > self._daily_cells:
                raise Refused(
                    "daily_limit",
                    f"you have submitted {used:,} cells today, and with this search's {new.cells:,} more than the "
                    f"{self._daily_cells:,} of a day; the day ends at midnight UTC",
                )

        if self._hits is not None:
            known, added = self._known_hits(new.owner, self._hits), self._new_hits(new, self._hits)
            if known + added > self._hits.most:
                raise Refused(
                    "too_many_hits",
                    f"your searches have or may get {known:,} alignments, and this one {added:,}, together more than "
                    f"the {self._hits.most:,} that an owner may have; lower top or max_hsps, send fewer queries, or "
                    "wait until earlier searches have ended or expired",
                )

    @staticmethod
    def _new_hits(new: NewSearch, limit: HitLimit) -> int:
        return len(new.queries) * limit.of_query(new.database.name, new.options)

    def _known_hits(self, owner: str, limit: HitLimit) -> int:
        """Alignments of an owner: those of the store, and those that unfinished searches and this group may add."""
        if owner not in self._hits_of:
            left = self._connection.execute(_QUERIES_LEFT, {"owner": owner})
            predicted = sum(int(n) * limit.of_query(name, parameters_of(options)) for name, options, n in left)
            self._hits_of[owner] = predicted + self._stored_hits(owner, limit.counted)
        return self._hits_of[owner]

    def _stored_hits(self, owner: str, counted: dict[int, int]) -> int:
        runs = self._connection.execute(_RUNS_OF_OWNER, {"owner": owner}).all()
        fresh = [row.run_id for row in runs if row.run_id not in counted]
        hits = dict.fromkeys(fresh, 0)
        for first in range(0, len(fresh), _PAGE):
            page = self._connection.execute(_HITS_OF_RUNS, {"runs": fresh[first : first + _PAGE]})
            hits |= {run_id: int(n) for run_id, n in page}
        total = sum(hits.values()) + sum(counted.get(row.run_id, 0) for row in runs)
        if len(counted) > _MOST_COUNTED:
            counted.clear()
        counted.update((row.run_id, hits[row.run_id]) for row in runs if row.run_id in hits and row.state == DONE)
        return total

    def _cells_today(self, owner: str) -> int:
        """Cells that an owner has submitted today, those of this group included."""
        if owner not in self._used_today:
            today = {"owner": owner, "day": self._today}
            self._used_today[owner] = int(self._connection.execute(_CELLS_OF_DAY, today).scalar() or 0)
        return self._used_today[owner] + self._cells[owner]

    def _enter_queue(self, owner: str, owners: dict[str, _Unfinished]) -> None:
        """Lift the counter of an owner who was idle; ``owners`` are those who wait.

        As in the virtual token counter of Sheng et al. (arXiv 2401.00588): whoever comes back continues at the smallest
        counter of those who wait, so idle time earns no credit. If nobody waits, all start at zero again.
        """
        if not owners:
            self._connection.execute(delete(OWNERS))
        counters = select(func.min(OWNERS.c.served)).where(OWNERS.c.owner.in_(list(owners)))
        least = (self._connection.execute(counters).scalar() or 0) if owners else 0
        found = self._connection.execute(_COUNTER, {"of": owner}).scalar()
        if found is None:
            row = upsert(self._connection.dialect.name, OWNERS).values(owner=owner, served=least)
            self._connection.execute(row.on_conflict_do_nothing())
        elif found < least:
            self._connection.execute(update(OWNERS).where(OWNERS.c.owner == owner).values(served=least))


def upsert(dialect: str, table: Table) -> Any:
    """The INSERT of this kind of database that has ``on_conflict_do_nothing`` and ``on_conflict_do_update``."""
    if dialect == "postgresql":
        from sqlalchemy.dialects import postgresql

        return postgresql.insert(table)
    from sqlalchemy.dialects import sqlite

    return sqlite.insert(table)


@cache
def _usage_statement(dialect: str) -> Any:
    """Adds to the usage of an owner and a day, with a statement of its own for each kind of database."""
    row = upsert(dialect, USAGE)
    sums = {name: USAGE.c[name] + row.excluded[name] for name in ("n_searches", "n_queries", "cells")}
    return row.on_conflict_do_update(index_elements=["owner", "day"], set_=sums)
