"""The records of the search service's tables, and their conversion from rows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Final

from swsearch.hits.result import QueryResult
from swsearch.store.driver import Rows
from swsearch.store.rows import UNFINISHED

Parameters = Mapping[str, str | int | float | bool | None]
MEGACELL: Final = 10**6
"""The unit of virtual counters, so that they stay within 64 bits for centuries."""


@dataclass(frozen=True)
class SearchedDatabase:
    """One generation of a database, as searches name it."""

    name: str
    """The name under which it is offered; no path."""
    digest: str
    """SHA-256 of the content."""
    generation: int


@dataclass(frozen=True)
class NewQuery:
    """A query as it was submitted: its header, its letters, and the number of cells of its search."""

    header: str
    letters: str
    cells: int


@dataclass(frozen=True)
class NewSearch:
    """A search to be stored."""

    owner: str
    database: SearchedDatabase
    options: Parameters
    """The fields of :class:`~swsearch.search.options.SearchOptions` as a run stores them."""
    fingerprint: str
    """Equal for searches whose queries one engine call may score: the same database content, options and program."""
    content: str
    """Equal for searches with equal results: the same fingerprint and queries."""
    asked_digest: str
    """The digest of the queries that the run stores (:class:`~swsearch.hits.shards.AskedQueries`)."""
    queries: Sequence[NewQuery]
    idempotency_key: str | None = None
    """A second submission of the owner with the same key gives the same search."""

    @property
    def cells(self) -> int:
        """Number of cells of all queries."""
        return sum(query.cells for query in self.queries)


@dataclass(frozen=True)
class StoredSearch:
    """A search of the store. Times are in UTC, and None while they are not reached."""

    id: int
    """Its number in the store, which nobody outside sees."""
    key: str
    """Its unguessable name."""
    owner: str
    database: SearchedDatabase
    options: Parameters
    asked_digest: str
    content: str
    state: str
    """One of :data:`~swsearch.store.rows.STATES`; ``failed``: no query could be searched."""
    reason: str | None
    """The reason why it failed, or why it waits although it is its turn."""
    created: datetime
    started: datetime | None
    finished: datetime | None
    expires: datetime | None
    run_id: int | None
    """The run with its results; None until a worker begins."""
    n_queries: int
    n_done: int
    n_failed: int
    cells: int
    cells_done: int
    n_hits: int
    """Number of stored alignments."""

    @property
    def is_finished(self) -> bool:
        """Whether nothing of it will change any more."""
        return self.state not in UNFINISHED


@dataclass(frozen=True)
class Lease:
    """A query under a lease, with what is needed to search it."""

    search_id: int
    number: int
    """Its index in the search."""
    header: str
    letters: str
    cells: int
    losses: int
    """Number of workers that died while they held it."""


@dataclass(frozen=True)
class Completed:
    """A query that was searched, the run of its search, and its result under its number in the search."""

    query: Lease
    run_id: int
    result: QueryResult


@dataclass(frozen=True)
class Batch:
    """Queries of one database generation and one set of options, under leases of one worker."""

    fingerprint: str
    database: SearchedDatabase
    options: Parameters
    queries: tuple[Lease, ...]
    keys: Mapping[int, str]
    """The keys of their searches, by the ``id`` of the search."""


_PLAIN_FIELDS: Final = tuple(
    field.name
    for field in fields(StoredSearch)
    if field.name not in ("database", "options", "created", "started", "finished", "expires")
)
"""The fields of a search that are the values of a column of their name."""


def searches_where(rows: Rows, rest: str, *values: Any) -> list[StoredSearch]:
    """The searches that fulfil a condition, which the order and limits of the statement may follow.

    Raises
    ------
    ValueError
        A value is not valid in its column.
    """
    return [
        StoredSearch(
            database=SearchedDatabase(row.database_name, row.database_digest, row.database_generation),
            options=parameters_of(row.options),
            created=row.created_at,
            started=row.started_at,
            finished=row.finished_at,
            expires=row.expires_at,
            **{name: getattr(row, name) for name in _PLAIN_FIELDS},
        )
        for row in rows.records("searches", f"WHERE {rest}", *values)
    ]


def parameters_of(text: str) -> Parameters:
    """The options of a search from their column.

    Raises
    ------
    ValueError
        The text is not a JSON object.
    """
    options = json.loads(text)
    if not isinstance(options, dict):
        raise ValueError("table searches, column options: no JSON object")
    return options


def content(fingerprint: str, asked_digest: str) -> str:
    """SHA-256 of a fingerprint and the digest of the queries: equal searches have equal results."""
    return hashlib.sha256(f"{fingerprint} {asked_digest}".encode()).hexdigest()
