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
from typing import TYPE_CHECKING, Any, Final

from swsearch.errors import Refused, SearchNotFound
from swsearch.store.driver import Rows, marks
from swsearch.store.results import as_fasta, letters_of_run
from swsearch.store.rows import CANCELLED, DONE, FAILED, INTERRUPTED, QUEUED, UNFINISHED, restored, storable, utc_now
from swsearch.store.search_records import NewSearch, Parameters, StoredSearch, parameters_of, searches_where

if TYPE_CHECKING:
    from swsearch.store.store import Store

_SUBMISSION_LOCK: Final = 0x73775366
"""Key of PostgreSQL's advisory lock of submissions: several web processes must not pass a limit together."""
_REMEMBERED: Final = 50.0
"""Time for which the number of an owner's alignments is remembered, in units of the time that counting them took."""
_MOST_OWNERS: Final = 1000
"""Number of owners whose alignments are remembered."""
_QUERY_COLUMNS: Final = (
    "search_id", "number", "header", "letters", "cells", "state", "lease_owner", "lease_until", "losses",
)  # fmt: skip
_SAME_CONTENT: Final = f"""
    SELECT run_id, n_hits FROM searches
    WHERE content = ? AND state = '{DONE}' AND n_failed = 0 AND run_id IS NOT NULL ORDER BY id DESC LIMIT 1
"""
_QUERIES_LEFT: Final = f"""
    SELECT database_name, options, SUM(n_queries - n_done - n_failed) FROM searches
    WHERE owner = ? AND state IN {UNFINISHED} GROUP BY database_name, options
"""
_OF_OWNER: Final = f"""
    SELECT COALESCE(SUM(cells - cells_done), 0),
    COALESCE((SELECT cells FROM usage WHERE owner = ? AND day = ?), 0), MIN(served)
    FROM searches WHERE owner = ? AND state IN {UNFINISHED}
"""
"""The fields of :class:`_Owner`."""
_STORED_HITS: Final = """
    SELECT COALESCE(SUM(of_run), 0) FROM
    (SELECT MAX(n_hits) AS of_run FROM searches WHERE owner = ? AND run_id IS NOT NULL GROUP BY run_id) AS runs
"""
"""The alignments of an owner's runs; all searches of the owner are read."""
_LEAST_COUNTER: Final = f"""
    SELECT MIN(served) FROM owners WHERE owner IN (SELECT owner FROM searches WHERE state IN {UNFINISHED})
"""
_LIFT: Final = """
    INSERT INTO owners (owner, served) VALUES (?, ?)
    ON CONFLICT (owner) DO UPDATE SET served = excluded.served WHERE owners.served < excluded.served
"""
_USE: Final = """
    INSERT INTO usage (owner, day, n_searches, n_queries, cells) VALUES (?, ?, 1, ?, ?)
    ON CONFLICT (owner, day) DO UPDATE SET n_searches = usage.n_searches + 1,
    n_queries = usage.n_queries + excluded.n_queries, cells = usage.cells + excluded.cells
"""


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
        with self._store.writing() as rows:
            if not self._store.is_sqlite:
                rows.execute("SELECT pg_advisory_xact_lock(?)", _SUBMISSION_LOCK)
            if len(self._known_hits) > _MOST_OWNERS:
                self._known_hits.clear()
            submission = _Submission(rows, limits or OwnerLimits(), keep, utc_now(), self._known_hits)
            return [submission.added(new) for new in submitted]

    def get(self, key: str, owner: str | None = None) -> StoredSearch:
        """A search by its key; if ``owner`` is given, only one of this owner.

        Raises
        ------
        SearchNotFound
            There is no such search.
        """
        with self._store.reading() as rows:
            return search_with(rows, key, owner)

    def with_keys(self, keys: Sequence[str], *, finished: bool = False) -> dict[str, StoredSearch]:
        """The searches with these keys that exist; with ``finished``, those that are finished."""
        if not keys:
            return {}
        these = f"key IN {marks(len(keys))}" + (f" AND state NOT IN {UNFINISHED}" if finished else "")
        with self._store.reading() as rows:
            return {search.key: search for search in searches_where(rows, these, *keys)}

    def of_owner(self, owner: str, limit: int = 100, before: int | None = None) -> list[StoredSearch]:
        """The newest searches of an owner, at most ``limit``; with ``before``, those submitted before that ``id``."""
        older, last = ("", []) if before is None else (" AND id < ?", [before])
        with self._store.reading() as rows:
            newest = f"owner = ?{older} ORDER BY id DESC LIMIT ?"
            return searches_where(rows, newest, storable(owner), *last, limit)

    def cancel(self, key: str, owner: str | None = None, keep: timedelta | None = None) -> StoredSearch:
        """Cancel a search, unless it is finished; what was searched stays for ``keep``, and its run is interrupted.

        The queries that a worker holds are taken from it: it cannot commit them any more.

        Raises
        ------
        SearchNotFound
            There is no such search.
        """
        with self._store.writing() as rows:
            search = search_with(rows, key, owner, locked=True)
            if not search.is_finished:
                end_early(rows, search.id, search.run_id, keep, CANCELLED, search.reason)
            return search_with(rows, key, owner)

    def waiting(self) -> dict[str, tuple[str, int]]:
        """The unfinished searches by their keys, oldest first: the owner of each, and the cells that are left."""
        with self._store.reading() as rows:
            unfinished = f"SELECT key, owner, cells - cells_done FROM searches WHERE state IN {UNFINISHED} ORDER BY id"
            return {key: (restored(owner), cells) for key, owner, cells in rows.execute(unfinished)}

    def counts(self) -> dict[str, int]:
        """Number of searches by their state."""
        with self._store.reading() as rows:
            return dict(rows.execute("SELECT state, COUNT(*) FROM searches GROUP BY state").fetchall())

    def usage(self, owner: str) -> list[Any]:
        """What an owner submitted on the last 30 days with any submission: rows of ``usage``, newest first."""
        with self._store.reading() as rows:
            return list(rows.records("usage", "WHERE owner = ? ORDER BY day DESC LIMIT 30", storable(owner)))

    def speeds(self, seen_within: timedelta) -> list[float]:
        """The cells per second of each worker that was alive within this time."""
        with self._store.reading() as rows:
            seen = "SELECT cells_per_second FROM workers WHERE seen_at >= ? ORDER BY id"
            return [speed for (speed,) in rows.execute(seen, rows.now() - seen_within)]

    def databases(self) -> set[str]:
        """The names of the databases of all searches."""
        with self._store.reading() as rows:
            return {restored(name) for (name,) in rows.execute("SELECT DISTINCT database_name FROM searches")}

    def databases_of(self, owner: str) -> dict[str, bool]:
        """The names of the databases of an owner's searches, and whether a search of each is unfinished."""
        is_unfinished = f"MAX(CASE WHEN state IN {UNFINISHED} THEN 1 ELSE 0 END)"
        found = f"SELECT database_name, {is_unfinished} FROM searches WHERE owner = ? GROUP BY database_name"
        with self._store.reading() as rows:
            return {restored(name): bool(unfinished) for name, unfinished in rows.execute(found, storable(owner))}

    def under(self, owner: str, keys: Sequence[str]) -> list[StoredSearch | None]:
        """The owner's searches with these idempotency keys, in their order; None where there is none."""
        with self._store.reading() as rows:
            return [_submitted_before(rows, owner, key) for key in keys]

    def release_failed(self, owner: str, keys: Sequence[str]) -> None:
        """Take these idempotency keys from the owner's searches that failed, wholly or in part, or were cancelled.

        The searches remain; a new submission under such a key is then a new search.
        """
        failed = f"(state IN ('{FAILED}', '{CANCELLED}') OR n_failed > 0)"
        mine = f"owner = ? AND idempotency_key IN {marks(len(keys))}"
        with self._store.writing() as rows:
            these = f"SELECT id FROM searches WHERE {mine} AND {failed} ORDER BY id{rows.lock}"
            ids = rows.execute(these, storable(owner), *map(storable, keys)).fetchall()
            rows.change_all("UPDATE searches SET idempotency_key = NULL WHERE id = ?", ids)

    def titles(self, searches: Sequence[StoredSearch]) -> dict[int, str]:
        """The header of the first query that is known of each search, by the search's ``id``."""
        first = """
            SELECT number, header FROM search_queries WHERE search_id = ? UNION ALL
            SELECT number, header FROM queries WHERE run_id = ? ORDER BY number LIMIT 1
        """
        with self._store.reading() as rows:
            found = {search.id: rows.execute(first, search.id, search.run_id).fetchone() for search in searches}
        return {id: restored(row[1]) if row else "" for id, row in found.items()}

    def fasta(self, search: StoredSearch) -> str:
        """The queries of a search as FASTA, in their order; of a cancelled search, those that were searched."""
        with self._store.reading() as rows:
            waiting = rows.execute("SELECT number, header, letters FROM search_queries WHERE search_id = ?", search.id)
            found = {number: (restored(header), restored(letters)) for number, header, letters in waiting}
            if search.run_id is not None:
                found |= letters_of_run(rows, search.run_id)
        return as_fasta(found)

    def delete_expired(self) -> int:
        """Delete the searches whose time has come, and the runs that belong to no other search; returns how many."""
        unused = "DELETE FROM runs WHERE id = ? AND NOT EXISTS (SELECT 1 FROM searches WHERE run_id = runs.id)"
        with self._store.writing() as rows:
            old = f"SELECT id, run_id FROM searches WHERE expires_at < ? ORDER BY id LIMIT 100{rows.lock}"
            expired = rows.execute(old, utc_now()).fetchall()
            for search_id, run_id in expired:
                rows.execute("DELETE FROM searches WHERE id = ?", search_id)
                rows.execute(unused, run_id)
            return len(expired)


class _Submission:
    """Searches that are submitted together, in one transaction, while nobody else can write.

    What an owner has is therefore read once, when the first search of the owner comes, and then counted. The alignments
    of all searches of an owner are not counted for each submission: their number is remembered in ``known_hits``.
    """

    def __init__(
        self,
        rows: Rows,
        limits: OwnerLimits,
        keep: timedelta | None,
        now: datetime,
        known_hits: dict[str, tuple[float, int]],
    ) -> None:
        self._rows = rows
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
        same = self._rows.execute(_SAME_CONTENT, new.content).fetchone()
        if same is not None:
            run_id, n_hits = same
            done = {"state": DONE, "run_id": run_id, "n_hits": n_hits, "n_done": len(new.queries)}
            times = {"started_at": self._now, "finished_at": self._now}
            expires = None if self._keep is None else self._now + self._keep
            self._add_hits(new.owner, n_hits)
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
        self._rows.insert_all("search_queries", _QUERY_COLUMNS, rows)
        self._rows.execute(_USE, storable(new.owner), self._today, len(new.queries), new.cells)
        return stored, True

    def _submitted_before(self, new: NewSearch) -> StoredSearch | None:
        if new.idempotency_key is None:
            return None
        known = _submitted_before(self._rows, new.owner, new.idempotency_key)
        if known is None:
            return None
        options = json.loads(json.dumps(dict(new.options)))
        if (known.asked_digest, known.database.name, known.options) != (new.asked_digest, new.database.name, options):
            raise Refused("idempotency_conflict", "this Idempotency-Key belongs to another search; choose a new one")
        return known

    def _stored(self, new: NewSearch, **values: Any) -> StoredSearch:
        """Store a search, with these values in place of those of one that waits."""
        row = {
            "key": secrets.token_urlsafe(16),
            "owner": storable(new.owner),
            "database_name": storable(new.database.name),
            "database_digest": new.database.digest,
            "database_generation": new.database.generation,
            "options": json.dumps(dict(new.options)),
            "fingerprint": new.fingerprint,
            "content": new.content,
            "asked_digest": new.asked_digest,
            "idempotency_key": None if new.idempotency_key is None else storable(new.idempotency_key),
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
        (stored,) = searches_where(self._rows, "id = ?", self._rows.insert("searches", row | values))
        return stored

    def _owner(self, name: str) -> _Owner:
        """What an owner has, with what was submitted in this transaction."""
        if name not in self._owners:
            owner = storable(name)
            cells, today, served = self._rows.execute(_OF_OWNER, owner, self._today, owner).fetchone()
            self._owners[name] = _Owner(int(cells), int(today), served)
        return self._owners[name]

    def _hits(self, name: str, *, count: bool = False) -> int:
        """How many alignments an owner has, with those that unfinished searches may add; with ``count``, exactly."""
        until, hits = self._known_hits.get(name, (0.0, 0))
        began = time.monotonic()
        if count or began >= until:
            hits = int(self._rows.execute(_STORED_HITS, storable(name)).fetchone()[0])
            of_query = self._limits.hits_of_query
            left = self._rows.execute(_QUERIES_LEFT, storable(name))
            hits += sum(int(n) * of_query(restored(database), parameters_of(options)) for database, options, n in left)
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
        (least,) = self._rows.execute(_LEAST_COUNTER).fetchone()
        if least is None:
            self._rows.execute("DELETE FROM owners")
        self._rows.execute(_LIFT, storable(owner), least or 0)


def _submitted_before(rows: Rows, owner: str, key: str) -> StoredSearch | None:
    """The owner's search with an idempotency key."""
    found = searches_where(rows, "owner = ? AND idempotency_key = ?", storable(owner), storable(key))
    return found[0] if found else None


def search_with(rows: Rows, key: str, owner: str | None, *, locked: bool = False) -> StoredSearch:
    """The search with a key; if ``owner`` is given, only of this owner. Raises SearchNotFound if there is none."""
    found = searches_where(rows, f"key = ?{rows.lock if locked else ''}", key)
    if not found or owner not in (None, found[0].owner):
        raise SearchNotFound(key)
    return found[0]


def end_early(
    rows: Rows, search_id: int, run_id: int | None, keep: timedelta | None, state: str, reason: str | None
) -> None:
    """End a search of which the rest is not searched, in this state, and interrupt its run if it has one.

    It is deleted after the time ``keep``, with None never.
    """
    now = utc_now()
    times = {"finished_at": now, "expires_at": None if keep is None else now + keep}
    reason = None if reason is None else storable(reason)
    rows.change("searches", search_id, {**times, "state": state, "reason": reason})
    rows.execute("DELETE FROM search_queries WHERE search_id = ?", search_id)
    if run_id is not None:
        rows.change("runs", run_id, {"state": INTERRUPTED})
