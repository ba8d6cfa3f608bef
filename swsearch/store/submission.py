"""The submission of searches, in the transaction of the caller: :func:`submit`.

While it writes, nobody else can. What an owner has is therefore read once, when the first search of the owner comes,
and then counted.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Final

from sqlalchemy import Connection, Table, bindparam, case, delete, func, insert, select

from swsearch.errors import Refused
from swsearch.store.connections import insert_rows
from swsearch.store.models import (
    DONE,
    OWNERS,
    QUEUED,
    SEARCH_QUERIES,
    SEARCHES,
    UNFINISHED,
    USAGE,
    storable,
    utc_now,
)
from swsearch.store.search_records import NewSearch, Parameters, StoredSearch, parameters_of, stored_search

_SUBMITTED_BEFORE: Final = select(SEARCHES).where(
    SEARCHES.c.owner == bindparam("owner"), SEARCHES.c.idempotency_key == bindparam("key")
)
_SAME_CONTENT: Final = (
    select(SEARCHES.c.run_id, SEARCHES.c.n_hits)
    .where(SEARCHES.c.content == bindparam("content"), SEARCHES.c.state == DONE)
    .where(SEARCHES.c.n_failed == 0, SEARCHES.c.run_id.is_not(None))
    .order_by(SEARCHES.c.id.desc())
    .limit(1)
)
_IS_UNFINISHED = (SEARCHES.c.owner == bindparam("owner")) & SEARCHES.c.state.in_(UNFINISHED)
_UNFINISHED: Final = select(func.sum(SEARCHES.c.cells - SEARCHES.c.cells_done), func.min(SEARCHES.c.served)).where(
    _IS_UNFINISHED
)
_CELLS_OF_DAY: Final = select(USAGE.c.cells).where(USAGE.c.owner == bindparam("owner"), USAGE.c.day == bindparam("day"))
_QUERIES_LEFT: Final = (
    select(
        SEARCHES.c.database_name,
        SEARCHES.c.options,
        func.sum(SEARCHES.c.n_queries - SEARCHES.c.n_done - SEARCHES.c.n_failed),
    )
    .where(_IS_UNFINISHED)
    .group_by(SEARCHES.c.database_name, SEARCHES.c.options)
)
_HITS_OF_RUNS = (
    select(func.max(SEARCHES.c.n_hits).label("n_hits"))
    .where(SEARCHES.c.owner == bindparam("owner"), SEARCHES.c.run_id.is_not(None))
    .group_by(SEARCHES.c.run_id)
    .subquery()
)
_STORED_HITS: Final = select(func.coalesce(func.sum(_HITS_OF_RUNS.c.n_hits), 0))
_LEAST_COUNTER: Final = select(func.min(OWNERS.c.served)).where(
    OWNERS.c.owner.in_(select(SEARCHES.c.owner).where(SEARCHES.c.state.in_(UNFINISHED)))
)
_INSERT: Final = insert(SEARCHES).returning(SEARCHES)


@dataclass(frozen=True)
class OwnerLimits:
    """How much an owner may have; None for any amount.

    Attributes
    ----------
    queued_cells, daily_cells : int or None
        Largest number of cells of the owner's unfinished searches, and of those submitted on one day.
    hits : int or None
        Largest number of alignments that are stored, or that unfinished searches may add.
    hits_of_query : callable
        The largest number of alignments that a query adds, from the name of its database and the options.
    """

    queued_cells: int | None = None
    daily_cells: int | None = None
    hits: int | None = None
    hits_of_query: Callable[[str, Parameters], int] = lambda database, options: 0


@dataclass
class _Owner:
    """What an owner has: cells that are left of unfinished searches, cells of today, and alignments.

    ``hits`` are those that are stored, and those that unfinished searches may add. ``served`` is the smallest counter
    of the unfinished searches, None if there are none.
    """

    cells: int
    cells_today: int
    hits: int
    served: int | None


def submit(
    connection: Connection, submitted: Sequence[NewSearch], limits: OwnerLimits, keep: timedelta | None
) -> list[tuple[StoredSearch, bool] | Refused]:
    """Store searches; returns each with whether it is new, or why it is refused.

    The parameters are those of :meth:`swsearch.store.searches.Searches.submit`.
    """
    submission = _Submission(connection, limits, keep, utc_now())
    found: list[tuple[StoredSearch, bool] | Refused] = []
    for new in submitted:
        try:
            found.append(submission.add(new))
        except Refused as refusal:
            found.append(refusal)
    return found


class _Submission:
    """Searches that are submitted together, at one time."""

    def __init__(self, connection: Connection, limits: OwnerLimits, keep: timedelta | None, now: datetime) -> None:
        self._connection = connection
        self._limits = limits
        self._keep = keep
        self._now = now
        self._today = now.date().isoformat()
        self._owners: dict[str, _Owner] = {}

    def add(self, new: NewSearch) -> tuple[StoredSearch, bool]:
        """Store a search; returns it, or one that was submitted before with its key, and whether it is new.

        Raises
        ------
        Refused
            A limit is exceeded, or the idempotency key belongs to another search of the owner. Nothing was changed.
        """
        before = self._submitted_before(new)
        if before is not None:
            return before, False
        same = self._connection.execute(_SAME_CONTENT, {"content": new.content}).first()
        if same is not None:
            done = {"state": DONE, "run_id": same.run_id, "n_hits": same.n_hits, "n_done": len(new.queries)}
            times = {"started_at": self._now, "finished_at": self._now}
            expires = None if self._keep is None else self._now + self._keep
            return self._stored(new, **done, **times, expires_at=expires, cells_done=new.cells), True
        owner = self._owner(new.owner)
        hits = len(new.queries) * self._limits.hits_of_query(new.database.name, new.options)
        self._check_limits(new, owner, hits)
        if owner.served is None:
            self._enter_queue(new.owner)
            owner.served = 0
        owner.cells += new.cells
        owner.cells_today += new.cells
        owner.hits += hits
        # The counters of an owner's searches are lifted among each other, too.
        stored = self._stored(new, served=owner.served)
        rows = [
            (stored.id, number, storable(query.header), storable(query.letters), query.cells, QUEUED, None, None, 0)
            for number, query in enumerate(new.queries)
        ]
        insert_rows(self._connection, SEARCH_QUERIES, rows)
        used = {"n_searches": 1, "n_queries": len(new.queries), "cells": new.cells}
        usage = _usage_statement(self._connection.dialect.name)
        self._connection.execute(usage, {"owner": new.owner, "day": self._today, **used})
        return stored, True

    def _submitted_before(self, new: NewSearch) -> StoredSearch | None:
        if new.idempotency_key is None:
            return None
        row = self._connection.execute(_SUBMITTED_BEFORE, {"owner": new.owner, "key": new.idempotency_key}).first()
        if row is None:
            return None
        known = stored_search(row)
        options = json.loads(json.dumps(dict(new.options)))
        if (known.asked_digest, known.database.name, known.options) != (new.asked_digest, new.database.name, options):
            raise Refused("idempotency_conflict", "this Idempotency-Key belongs to another search; choose a new one")
        return known

    def _stored(self, new: NewSearch, **values: Any) -> StoredSearch:
        """Store the row of a search, with these values in place of those of one that waits."""
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
            "n_hits": 0,
            "served": 0,
        }
        return stored_search(self._connection.execute(_INSERT, {**row, **values}).one())

    def _owner(self, name: str) -> _Owner:
        """What an owner has, with what was submitted in this transaction."""
        if name not in self._owners:
            of_owner = {"owner": name}
            cells, served = self._connection.execute(_UNFINISHED, of_owner).one()
            today = self._connection.execute(_CELLS_OF_DAY, {**of_owner, "day": self._today}).scalar()
            hits = 0
            if self._limits.hits is not None:
                left = self._connection.execute(_QUERIES_LEFT, of_owner)
                of_query = self._limits.hits_of_query
                hits = sum(int(n) * of_query(database, parameters_of(options)) for database, options, n in left)
                hits += int(self._connection.execute(_STORED_HITS, of_owner).scalar_one())
            self._owners[name] = _Owner(int(cells or 0), int(today or 0), hits, served)
        return self._owners[name]

    def _check_limits(self, new: NewSearch, owner: _Owner, hits: int) -> None:
        limits = self._limits
        if limits.queued_cells is not None and owner.cells + new.cells > limits.queued_cells:
            raise Refused(
                "queue_full",
                f"your unfinished searches have {owner.cells:,} cells, and with this one's {new.cells:,} more "
                f"than the {limits.queued_cells:,} that an owner may have; wait until some are done, or send fewer "
                "queries",
            )
        if limits.daily_cells is not None and owner.cells_today + new.cells > limits.daily_cells:
            raise Refused(
                "daily_limit",
                f"you have submitted {owner.cells_today:,} cells today, and with this search's {new.cells:,} more than "
                f"the {limits.daily_cells:,} of a day; the day ends at midnight UTC",
            )
        if limits.hits is not None and owner.hits + hits > limits.hits:
            raise Refused(
                "too_many_hits",
                f"your searches have or may get {owner.hits:,} alignments, and this one {hits:,}, together more than "
                f"the {limits.hits:,} that an owner may have; lower top or max_hsps, send fewer queries, or "
                "wait until earlier searches have ended or expired",
            )

    def _enter_queue(self, owner: str) -> None:
        """Lift the counter of an owner who was idle.

        As in the virtual token counter of Sheng et al. (arXiv 2401.00588): whoever comes back continues at the smallest
        counter of those who wait, so idle time earns no credit. If nobody waits, all start at zero again.
        """
        least = self._connection.execute(_LEAST_COUNTER).scalar()
        if least is None:
            self._connection.execute(delete(OWNERS))
        lift = _lift_statement(self._connection.dialect.name)
        self._connection.execute(lift, {"owner": owner, "served": least or 0})


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


@cache
def _lift_statement(dialect: str) -> Any:
    """Gives an owner a counter that is at least ``served``."""
    row = upsert(dialect, OWNERS)
    least = row.excluded.served
    lifted = {"served": case((OWNERS.c.served < least, least), else_=OWNERS.c.served)}
    return row.on_conflict_do_update(index_elements=["owner"], set_=lifted)
