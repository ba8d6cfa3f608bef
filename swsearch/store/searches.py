"""The searches of a service as its web process sees them: submitted, looked at, cancelled, deleted when they expire.

A worker sees them as :class:`~swsearch.store.queue.Queue`. Each method is one transaction. On PostgreSQL, a
transaction that changes an existing search locks its row of ``searches`` before any other, so that no two wait for each
other.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Connection, bindparam, case, delete, func, insert, or_, select, update

from swsearch.errors import Refused, SearchNotFound
from swsearch.store.connections import rows_of, upsert
from swsearch.store.models import OWNERS, QUERIES, RUNS, SEARCH_QUERIES, SEARCHES, USAGE, WORKERS
from swsearch.store.results import as_fasta, letters_of_run
from swsearch.store.rows import CANCELLED, DONE, FAILED, INTERRUPTED, QUEUED, UNFINISHED, storable, utc_now
from swsearch.store.search_records import (
    NewSearch,
    Parameters,
    StoredSearch,
    UsageOfDay,
    parameters_of,
    stored_search,
)

if TYPE_CHECKING:
    from swsearch.store.store import Store

_WITH_KEY: Final = select(SEARCHES).where(SEARCHES.c.key == bindparam("key"))
_LOCKED_WITH_KEY: Final = _WITH_KEY.with_for_update()
_WITH_KEYS: Final = select(SEARCHES).where(SEARCHES.c.key.in_(bindparam("keys", expanding=True)))
_FINISHED_WITH_KEYS: Final = _WITH_KEYS.where(SEARCHES.c.state.not_in(UNFINISHED))
_WAITING: Final = (
    select(SEARCHES.c.key, SEARCHES.c.owner, SEARCHES.c.cells, SEARCHES.c.cells_done)
    .where(SEARCHES.c.state.in_(UNFINISHED))
    .order_by(SEARCHES.c.id)
)
_IN_TURN: Final = select(func.pg_advisory_xact_lock(bindparam("key")))
_SUBMISSION_LOCK: Final = 0x73775366
"""Key of PostgreSQL's advisory lock of submissions: several web processes must not pass a limit together."""
_SEEN_WORKERS: Final = select(WORKERS).where(WORKERS.c.seen_at >= bindparam("since")).order_by(WORKERS.c.id)


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
_QUERIES_LEFT: Final = (
    select(
        SEARCHES.c.database_name,
        SEARCHES.c.options,
        func.sum(SEARCHES.c.n_queries - SEARCHES.c.n_done - SEARCHES.c.n_failed),
    )
    .where(_IS_UNFINISHED)
    .group_by(SEARCHES.c.database_name, SEARCHES.c.options)
)
_CELLS_OF_DAY = select(USAGE.c.cells).where(USAGE.c.owner == bindparam("owner"), USAGE.c.day == bindparam("day"))
_HITS_OF_RUNS = (
    select(func.max(SEARCHES.c.n_hits).label("n_hits"))
    .where(SEARCHES.c.owner == bindparam("owner"), SEARCHES.c.run_id.is_not(None))
    .group_by(SEARCHES.c.run_id)
    .subquery()
)
_OF_OWNER: Final = select(
    func.coalesce(func.sum(SEARCHES.c.cells - SEARCHES.c.cells_done), 0),
    func.coalesce(_CELLS_OF_DAY.scalar_subquery(), 0),
    func.min(SEARCHES.c.served),
).where(_IS_UNFINISHED)
"""The fields of :class:`_Owner`."""
_STORED_HITS: Final = select(func.coalesce(func.sum(_HITS_OF_RUNS.c.n_hits), 0))
"""The alignments of an owner's runs; all searches of the owner are read."""
_REMEMBERED: Final = 50.0
"""Time for which the number of an owner's alignments is remembered, in units of the time that counting them took."""
_MOST_OWNERS: Final = 1000
"""Number of owners whose alignments are remembered."""
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
    """What an owner has: cells that are left of unfinished searches, and cells of today.

    ``served`` is the smallest counter of the unfinished searches, None if there are none.
    """

    cells: int
    cells_today: int
    served: int | None


class Searches:
    """The searches that were submitted to a service."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known_hits: dict[str, tuple[float, int]] = {}
        """Numbers of alignments of owners, each with the time until which it is remembered."""

    def submit(
        self, submitted: Sequence[NewSearch], limits: OwnerLimits | None = None, keep: timedelta | None = None
    ) -> list[tuple[StoredSearch, bool] | Refused]:
        """Store searches in one transaction; returns each with whether it is new, or why it is refused.

        It is not new if the owner submitted it before with the same idempotency key. If the store has the results of a
        search with the same content, the new one has them too, and is done at once. A refused search changes nothing.

        Parameters
        ----------
        submitted : sequence of NewSearch
        limits : OwnerLimits, optional
            How much each owner may have.
        keep : timedelta, optional
            Time from the end of a search to its deletion.
        """
        with self._store.writing() as connection:
            if not self._store.is_sqlite:
                connection.execute(_IN_TURN, {"key": _SUBMISSION_LOCK})
            if len(self._known_hits) > _MOST_OWNERS:
                self._known_hits.clear()
            submission = _Submission(connection, limits or OwnerLimits(), keep, utc_now(), self._known_hits)
            return [submission.added(new) for new in submitted]

    def get(self, key: str, owner: str | None = None) -> StoredSearch:
        """A search by its key; if ``owner`` is given, only one of this owner.

        Raises
        ------
        SearchNotFound
            There is no such search.
        """
        with self._store.reading() as connection:
            return stored_search(row_of(connection, key, owner))

    def with_keys(self, keys: Sequence[str], *, finished: bool = False) -> dict[str, StoredSearch]:
        """The searches with these keys that exist; with ``finished``, those that are finished."""
        with self._store.reading() as connection:
            rows = connection.execute(_FINISHED_WITH_KEYS if finished else _WITH_KEYS, {"keys": list(keys)})
            return {row.key: stored_search(row) for row in rows}

    def of_owner(self, owner: str, limit: int = 100, before: int | None = None) -> list[StoredSearch]:
        """The newest searches of an owner, at most ``limit``; with ``before``, those submitted before that ``id``."""
        with self._store.reading() as connection:
            found = select(SEARCHES).where(SEARCHES.c.owner == owner).order_by(SEARCHES.c.id.desc()).limit(limit)
            if before is not None:
                found = found.where(SEARCHES.c.id < before)
            return [stored_search(row) for row in connection.execute(found)]

    def cancel(self, key: str, owner: str | None = None, keep: timedelta | None = None) -> StoredSearch:
        """Cancel a search, unless it is finished; what was searched stays for ``keep``, and its run is interrupted.

        The queries that a worker holds are taken from it: it cannot commit them any more.

        Raises
        ------
        SearchNotFound
            There is no such search.
        """
        with self._store.writing() as connection:
            row = row_of(connection, key, owner, locked=True)
            if row.state in UNFINISHED:
                end_early(connection, row, keep, state=CANCELLED)
            return stored_search(connection.execute(select(SEARCHES).where(SEARCHES.c.id == row.id)).one())

    def waiting(self) -> dict[str, tuple[str, int]]:
        """The unfinished searches by their keys, oldest first: the owner of each, and the cells that are left."""
        with self._store.reading() as connection:
            found = connection.execute(_WAITING)
            return {row.key: (row.owner, row.cells - row.cells_done) for row in found}

    def counts(self) -> dict[str, int]:
        """Number of searches by their state."""
        with self._store.reading() as connection:
            found = select(SEARCHES.c.state, func.count()).group_by(SEARCHES.c.state)
            return {str(state): int(count) for state, count in connection.execute(found)}

    def usage(self, owner: str, n_days: int = 30) -> list[UsageOfDay]:
        """What an owner submitted on the last days with any submission, newest first."""
        with self._store.reading() as connection:
            found = select(USAGE).where(USAGE.c.owner == owner).order_by(USAGE.c.day.desc()).limit(n_days)
            return [UsageOfDay(row.day, row.n_searches, row.n_queries, row.cells) for row in connection.execute(found)]

    def speeds(self, seen_within: timedelta) -> list[float]:
        """The cells per second of each worker that was alive within this time."""
        with self._store.reading() as connection:
            since = store_time(connection) - seen_within
            return [row.cells_per_second for row in connection.execute(_SEEN_WORKERS, {"since": since})]

    def databases(self) -> set[str]:
        """The names of the databases of all searches."""
        with self._store.reading() as connection:
            return set(connection.execute(select(SEARCHES.c.database_name).distinct()).scalars())

    def databases_of(self, owner: str) -> dict[str, bool]:
        """The names of the databases of an owner's searches, and whether a search of each is unfinished."""
        is_unfinished = func.max(case((SEARCHES.c.state.in_(UNFINISHED), 1), else_=0))
        found = select(SEARCHES.c.database_name, is_unfinished).where(SEARCHES.c.owner == owner)
        with self._store.reading() as connection:
            rows = connection.execute(found.group_by(SEARCHES.c.database_name))
            return {str(name): bool(unfinished) for name, unfinished in rows}

    def under(self, owner: str, keys: Sequence[str]) -> list[StoredSearch | None]:
        """The owner's searches with these idempotency keys, in their order; None where there is none."""
        with self._store.reading() as connection:
            mine = (SEARCHES.c.owner == owner) & SEARCHES.c.idempotency_key.in_(keys)
            found = {
                row.idempotency_key: stored_search(row) for row in connection.execute(select(SEARCHES).where(mine))
            }
        return [found.get(key) for key in keys]

    def release_failed(self, owner: str, keys: Sequence[str]) -> None:
        """Take these idempotency keys from the owner's searches that failed, wholly or in part, or were cancelled.

        The searches remain; a new submission under such a key is then a new search.
        """
        with self._store.writing() as connection:
            mine = (SEARCHES.c.owner == owner) & SEARCHES.c.idempotency_key.in_(keys)
            failed = or_(SEARCHES.c.state.in_((FAILED, CANCELLED)), SEARCHES.c.n_failed > 0)
            rows = select(SEARCHES.c.id).where(mine & failed).order_by(SEARCHES.c.id).with_for_update()
            ids = connection.execute(rows).scalars().all()
            connection.execute(update(SEARCHES).where(SEARCHES.c.id.in_(ids)).values(idempotency_key=None))

    def titles(self, searches: Sequence[StoredSearch]) -> dict[int, str]:
        """The header of the first query that is known of each search, by the search's ``id``."""
        ids = [search.id for search in searches]
        runs = [search.run_id for search in searches if search.run_id is not None]
        with self._store.reading() as connection:
            waiting = _first(connection, SEARCH_QUERIES.c.search_id, SEARCH_QUERIES, ids)
            searched = _first(connection, QUERIES.c.run_id, QUERIES, runs)
        titles = {}
        for search in searches:
            known = [found for found in (waiting.get(search.id), searched.get(search.run_id or 0)) if found is not None]
            titles[search.id] = min(known)[1] if known else ""
        return titles

    def fasta(self, search: StoredSearch) -> str:
        """The queries of a search as FASTA, in their order; of a cancelled search, those that were searched."""
        with self._store.reading() as connection:
            waiting = select(SEARCH_QUERIES.c.number, SEARCH_QUERIES.c.header, SEARCH_QUERIES.c.letters)
            rows = connection.execute(waiting.where(SEARCH_QUERIES.c.search_id == search.id))
            found = {row.number: (row.header, row.letters) for row in rows}
            if search.run_id is not None:
                found |= letters_of_run(connection, search.run_id)
        return as_fasta(found)

    def delete_expired(self) -> int:
        """Delete the searches whose time has come, and the runs that belong to no other search; returns how many."""
        with self._store.writing() as connection:
            old = select(SEARCHES.c.id, SEARCHES.c.run_id).where(SEARCHES.c.expires_at < utc_now())
            rows = connection.execute(old.order_by(SEARCHES.c.id).limit(100).with_for_update()).all()
            for row in rows:
                connection.execute(delete(SEARCHES).where(SEARCHES.c.id == row.id))
                others = select(func.count()).where(SEARCHES.c.run_id == row.run_id)
                if row.run_id is not None and connection.execute(others).scalar() == 0:
                    connection.execute(delete(RUNS).where(RUNS.c.id == row.run_id))
            return len(rows)


class _Submission:
    """Searches that are submitted together, in one transaction, while nobody else can write.

    What an owner has is therefore read once, when the first search of the owner comes, and then counted. The alignments
    of all searches of an owner are not counted for each submission: their number is remembered in ``known_hits``.
    """

    def __init__(
        self,
        connection: Connection,
        limits: OwnerLimits,
        keep: timedelta | None,
        now: datetime,
        known_hits: dict[str, tuple[float, int]],
    ) -> None:
        self._connection = connection
        self._limits = limits
        self._keep = keep
        self._now = now
        self._known_hits = known_hits
        self._today = now.date().isoformat()
        self._owners: dict[str, _Owner] = {}

    def added(self, new: NewSearch) -> tuple[StoredSearch, bool] | Refused:
        """Store a search; returns it with whether it is new, or why it is refused."""
        try:
            return self._add(new)
        except Refused as refusal:
            return refusal

    def _add(self, new: NewSearch) -> tuple[StoredSearch, bool]:
        """Store a search, or find one that was submitted before with its key; Refused is raised before any change."""
        before = self._submitted_before(new)
        if before is not None:
            return before, False
        same = self._connection.execute(_SAME_CONTENT, {"content": new.content}).first()
        if same is not None:
            done = {"state": DONE, "run_id": same.run_id, "n_hits": same.n_hits, "n_done": len(new.queries)}
            times = {"started_at": self._now, "finished_at": self._now}
            expires = None if self._keep is None else self._now + self._keep
            self._add_hits(new.owner, same.n_hits)
            return self._stored(new, **done, **times, expires_at=expires, cells_done=new.cells), True
        owner = self._owner(new.owner)
        hits = len(new.queries) * self._limits.hits_of_query(new.database.name, new.options)
        self._check_limits(new, owner, hits)
        if owner.served is None:
            self._enter_queue(new.owner)
            owner.served = 0
        owner.cells += new.cells
        owner.cells_today += new.cells
        self._add_hits(new.owner, hits)
        # The counters of an owner's searches are lifted among each other, too.
        stored = self._stored(new, served=owner.served)
        rows = [
            (stored.id, number, storable(query.header), storable(query.letters), query.cells, QUEUED, None, None, 0)
            for number, query in enumerate(new.queries)
        ]
        rows_of(self._connection).insert_all(SEARCH_QUERIES.name, SEARCH_QUERIES.columns.keys(), rows)
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
            "created_at": self._now,
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
            of_owner = {"owner": name, "day": self._today}
            cells, today, served = self._connection.execute(_OF_OWNER, of_owner).one()
            self._owners[name] = _Owner(int(cells), int(today), served)
        return self._owners[name]

    def _hits(self, name: str, *, count: bool = False) -> int:
        """How many alignments an owner has, with those that unfinished searches may add; with ``count``, exactly."""
        until, hits = self._known_hits.get(name, (0.0, 0))
        began = time.monotonic()
        if count or began >= until:
            hits = int(self._connection.execute(_STORED_HITS, {"owner": name}).scalar_one())
            of_query = self._limits.hits_of_query
            left = self._connection.execute(_QUERIES_LEFT, {"owner": name})
            hits += sum(int(n) * of_query(database, parameters_of(options)) for database, options, n in left)
            now = time.monotonic()
            self._known_hits[name] = (now + _REMEMBERED * (now - began), hits)
        return hits

    def _add_hits(self, name: str, hits: int) -> None:
        if name in self._known_hits:
            until, known = self._known_hits[name]
            self._known_hits[name] = (until, known + hits)

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
        if limits.hits is None or self._hits(new.owner) + hits <= limits.hits:
            return
        known = self._hits(new.owner, count=True)
        if known + hits > limits.hits:
            raise Refused(
                "too_many_hits",
                f"your searches have or may get {known:,} alignments, and this one {hits:,}, together more than "
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


def row_of(connection: Connection, key: str, owner: str | None, *, locked: bool = False) -> Any:
    """The row of a search; if ``owner`` is given, only of this owner. Raises SearchNotFound if there is none."""
    row = connection.execute(_LOCKED_WITH_KEY if locked else _WITH_KEY, {"key": key}).first()
    if row is None or owner not in (None, row.owner):
        raise SearchNotFound(key)
    return row


def end_early(connection: Connection, row: Any, keep: timedelta | None, **values: Any) -> None:
    """End a search of which the rest is not searched, with these values, and interrupt its run if it has one.

    It is deleted after the time ``keep``, with None never.
    """
    now = utc_now()
    ended = {"finished_at": now, "expires_at": None if keep is None else now + keep, **values}
    connection.execute(update(SEARCHES).where(SEARCHES.c.id == row.id).values(**ended))
    connection.execute(delete(SEARCH_QUERIES).where(SEARCH_QUERIES.c.search_id == row.id))
    if row.run_id is not None:
        connection.execute(update(RUNS).where(RUNS.c.id == row.run_id).values(state=INTERRUPTED))


def _first(connection: Connection, group: Any, table: Any, ids: Sequence[int]) -> dict[int, tuple[int, str]]:
    """Number and header of the first row of each group."""
    first: dict[int, tuple[int, str]] = {}
    for number in ids:
        found = select(table.c.number, table.c.header).where(group == number).order_by(table.c.number).limit(1)
        row = connection.execute(found).first()
        if row is not None:
            first[number] = (row.number, row.header)
    return first


def store_time(connection: Connection) -> datetime:
    """The current time by the clock that leases are measured with: the server's, or that of the store's only host."""
    if connection.dialect.name == "postgresql":
        found: Any = connection.execute(select(func.clock_timestamp())).scalar_one()
        return found  # type: ignore[no-any-return]
    return utc_now()
