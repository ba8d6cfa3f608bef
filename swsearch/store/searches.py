"""The searches of a service as its web process sees them: submitted, looked at, cancelled, deleted when they expire.

A worker sees them as :class:`~swsearch.store.queue.Queue`. Each method is one transaction. On PostgreSQL, a
transaction that changes an existing search locks its row of ``searches`` before any other, so that no two wait for each
other.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import Connection, bindparam, case, delete, func, or_, select, update

from swsearch.errors import Refused, SearchNotFound
from swsearch.store.models import (
    CANCELLED,
    FAILED,
    INTERRUPTED,
    QUERIES,
    RUNS,
    SEARCH_QUERIES,
    SEARCHES,
    UNFINISHED,
    USAGE,
    WORKERS,
    utc_now,
)
from swsearch.store.results import as_fasta, letters_of_run
from swsearch.store.search_records import (
    NewSearch,
    SeenWorker,
    StoredSearch,
    UsageOfDay,
    Waiting,
    stored_search,
)
from swsearch.store.session import Session
from swsearch.store.submission import OwnerLimits, submit

_WITH_KEY: Final = select(SEARCHES).where(SEARCHES.c.key == bindparam("key"))
_WITH_KEYS: Final = select(SEARCHES).where(SEARCHES.c.key.in_(bindparam("keys", expanding=True)))
_WAITING: Final = (
    select(SEARCHES.c.key, SEARCHES.c.owner, SEARCHES.c.cells, SEARCHES.c.cells_done)
    .where(SEARCHES.c.state.in_(UNFINISHED))
    .order_by(SEARCHES.c.id)
)
_IN_TURN: Final = select(func.pg_advisory_xact_lock(bindparam("key")))
_SUBMISSION_LOCK: Final = 0x73775366
"""Key of PostgreSQL's advisory lock of submissions: several web processes must not pass a limit together."""
_SEEN_WORKERS: Final = select(WORKERS).where(WORKERS.c.seen_at >= bindparam("since")).order_by(WORKERS.c.id)


class Searches:
    """The searches that were submitted to a service."""

    def __init__(self, session: Session) -> None:
        self._session = session

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
        with self._session.writing() as connection:
            if not self._session.is_sqlite:
                connection.execute(_IN_TURN, {"key": _SUBMISSION_LOCK})
            return submit(connection, submitted, limits or OwnerLimits(), keep)

    def get(self, key: str, owner: str | None = None) -> StoredSearch:
        """A search by its key; if ``owner`` is given, only one of this owner.

        Raises
        ------
        SearchNotFound
            There is no such search.
        """
        with self._session.reading() as connection:
            row = connection.execute(_WITH_KEY, {"key": key}).first()
            if row is None or owner not in (None, row.owner):
                raise SearchNotFound(key)
            return stored_search(row)

    def with_keys(self, keys: Sequence[str]) -> dict[str, StoredSearch]:
        """The searches with these keys that exist."""
        with self._session.reading() as connection:
            rows = connection.execute(_WITH_KEYS, {"keys": list(keys)})
            return {row.key: stored_search(row) for row in rows}

    def of_owner(self, owner: str, limit: int = 100, before: int | None = None) -> list[StoredSearch]:
        """The newest searches of an owner, at most ``limit``; with ``before``, those submitted before that ``id``."""
        with self._session.reading() as connection:
            found = select(SEARCHES).where(SEARCHES.c.owner == owner).order_by(SEARCHES.c.id.desc()).limit(limit)
            if before is not None:
                found = found.where(SEARCHES.c.id < before)
            return [stored_search(row) for row in connection.execute(found)]

    def cancel(self, key: str, owner: str | None = None) -> StoredSearch:
        """Cancel a search, unless it is finished; what was searched stays, and its run is interrupted.

        The queries that a worker holds are taken from it: it cannot commit them any more.

        Raises
        ------
        SearchNotFound
            There is no such search.
        """
        with self._session.writing() as connection:
            row = connection.execute(select(SEARCHES).where(SEARCHES.c.key == key).with_for_update()).first()
            if row is None or owner not in (None, row.owner):
                raise SearchNotFound(key)
            if row.state in UNFINISHED:
                values = {"state": CANCELLED, "finished_at": utc_now()}
                connection.execute(update(SEARCHES).where(SEARCHES.c.id == row.id).values(**values))
                connection.execute(delete(SEARCH_QUERIES).where(SEARCH_QUERIES.c.search_id == row.id))
                if row.run_id is not None:
                    connection.execute(update(RUNS).where(RUNS.c.id == row.run_id).values(state=INTERRUPTED))
            return stored_search(connection.execute(select(SEARCHES).where(SEARCHES.c.id == row.id)).one())

    def waiting(self) -> list[Waiting]:
        """All unfinished searches, oldest first."""
        with self._session.reading() as connection:
            found = connection.execute(_WAITING)
            return [Waiting(row.key, row.owner, row.cells - row.cells_done) for row in found]

    def counts(self) -> dict[str, int]:
        """Number of searches by their state."""
        with self._session.reading() as connection:
            found = select(SEARCHES.c.state, func.count()).group_by(SEARCHES.c.state)
            return {str(state): int(count) for state, count in connection.execute(found)}

    def usage(self, owner: str, n_days: int = 30) -> list[UsageOfDay]:
        """What an owner submitted on the last days with any submission, newest first."""
        with self._session.reading() as connection:
            found = select(USAGE).where(USAGE.c.owner == owner).order_by(USAGE.c.day.desc()).limit(n_days)
            return [UsageOfDay(row.day, row.n_searches, row.n_queries, row.cells) for row in connection.execute(found)]

    def workers(self, seen_within: timedelta) -> list[SeenWorker]:
        """The workers that were alive within this time."""
        with self._session.reading() as connection:
            since = store_time(connection) - seen_within
            return [
                SeenWorker(row.id, row.host, row.engine, row.cells_per_second, row.seen_at)
                for row in connection.execute(_SEEN_WORKERS, {"since": since})
            ]

    def databases(self) -> set[str]:
        """The names of the databases of all searches."""
        with self._session.reading() as connection:
            return set(connection.execute(select(SEARCHES.c.database_name).distinct()).scalars())

    def databases_of(self, owner: str) -> dict[str, bool]:
        """The names of the databases of an owner's searches, and whether a search of each is unfinished."""
        is_unfinished = func.max(case((SEARCHES.c.state.in_(UNFINISHED), 1), else_=0))
        found = select(SEARCHES.c.database_name, is_unfinished).where(SEARCHES.c.owner == owner)
        with self._session.reading() as connection:
            rows = connection.execute(found.group_by(SEARCHES.c.database_name))
            return {str(name): bool(unfinished) for name, unfinished in rows}

    def under(self, owner: str, keys: Sequence[str]) -> list[StoredSearch | None]:
        """The owner's searches with these idempotency keys, in their order; None where there is none."""
        with self._session.reading() as connection:
            mine = (SEARCHES.c.owner == owner) & SEARCHES.c.idempotency_key.in_(keys)
            found = {
                row.idempotency_key: stored_search(row) for row in connection.execute(select(SEARCHES).where(mine))
            }
        return [found.get(key) for key in keys]

    def release_failed(self, owner: str, keys: Sequence[str]) -> None:
        """Take these idempotency keys from the owner's searches that failed, wholly or in part, or were cancelled.

        The searches remain; a new submission under such a key is then a new search.
        """
        with self._session.writing() as connection:
            mine = (SEARCHES.c.owner == owner) & SEARCHES.c.idempotency_key.in_(keys)
            failed = or_(SEARCHES.c.state.in_((FAILED, CANCELLED)), SEARCHES.c.n_failed > 0)
            rows = select(SEARCHES.c.id).where(mine & failed).order_by(SEARCHES.c.id).with_for_update()
            ids = connection.execute(rows).scalars().all()
            connection.execute(update(SEARCHES).where(SEARCHES.c.id.in_(ids)).values(idempotency_key=None))

    def titles(self, searches: Sequence[StoredSearch]) -> dict[int, str]:
        """The header of the first query that is known of each search, by the search's ``id``."""
        ids = [search.id for search in searches]
        runs = [search.run_id for search in searches if search.run_id is not None]
        with self._session.reading() as connection:
            waiting = _first(connection, SEARCH_QUERIES.c.search_id, SEARCH_QUERIES, ids)
            searched = _first(connection, QUERIES.c.run_id, QUERIES, runs)
        titles = {}
        for search in searches:
            known = [found for found in (waiting.get(search.id), searched.get(search.run_id or 0)) if found is not None]
            titles[search.id] = min(known)[1] if known else ""
        return titles

    def fasta(self, search: StoredSearch) -> str:
        """The queries of a search as FASTA, in their order; of a cancelled search, those that were searched."""
        with self._session.reading() as connection:
            waiting = select(SEARCH_QUERIES.c.number, SEARCH_QUERIES.c.header, SEARCH_QUERIES.c.letters)
            rows = connection.execute(waiting.where(SEARCH_QUERIES.c.search_id == search.id))
            found = {row.number: (row.header, row.letters) for row in rows}
            if search.run_id is not None:
                found |= letters_of_run(connection, search.run_id)
        return as_fasta(found)

    def delete_expired(self) -> int:
        """Delete the searches whose time has come, and the runs that belong to no other search; returns how many."""
        with self._session.writing() as connection:
            old = select(SEARCHES.c.id, SEARCHES.c.run_id).where(SEARCHES.c.expires_at < utc_now())
            rows = connection.execute(old.order_by(SEARCHES.c.id).limit(100).with_for_update()).all()
            for row in rows:
                connection.execute(delete(SEARCHES).where(SEARCHES.c.id == row.id))
                others = select(func.count()).where(SEARCHES.c.run_id == row.run_id)
                if row.run_id is not None and connection.execute(others).scalar() == 0:
                    connection.execute(delete(RUNS).where(RUNS.c.id == row.run_id))
            return len(rows)


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
