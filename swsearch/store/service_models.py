"""The tables of the search service, beside those of the runs: ``searches``, ``search_queries``, ``owners``, ``usage``,
``workers``, ``tokens`` and ``links``.

A search is what somebody submitted; its results are a run like any other. ``search_queries`` has the queries of
unfinished searches alone, so it stays small. The conventions are those of :mod:`swsearch.store.models`.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import Column, Double, ForeignKey, Index, Integer, String, Table, Text, UniqueConstraint

from swsearch.store.models import METADATA, Big, FileText, UtcTime

QUEUED: Final = "queued"
RUNNING: Final = "running"
DONE: Final = "done"
FAILED: Final = "failed"
CANCELLED: Final = "cancelled"
STATES: Final = (QUEUED, RUNNING, DONE, FAILED, CANCELLED)
UNFINISHED: Final = (QUEUED, RUNNING)
LEASED: Final = "leased"


SEARCHES: Final = Table(
    "searches",
    METADATA,
    Column("id", Big, primary_key=True),
    Column("key", String(32), nullable=False),
    Column("owner", FileText, nullable=False),
    Column("database_name", FileText, nullable=False),
    Column("database_digest", String(64), nullable=False),
    Column("database_generation", Big, nullable=False),
    Column("options", Text, nullable=False),
    Column("fingerprint", String(64), nullable=False),
    Column("content", String(64), nullable=False),
    Column("asked_digest", String(64), nullable=False),
    Column("idempotency_key", FileText),
    Column("state", String(16), nullable=False),
    Column("reason", FileText),
    Column("created_at", UtcTime, nullable=False),
    Column("started_at", UtcTime),
    Column("finished_at", UtcTime),
    Column("expires_at", UtcTime),
    Column("run_id", Big, ForeignKey("runs.id", ondelete="CASCADE", name="fk_searches_run")),
    Column("n_queries", Big, nullable=False),
    Column("n_done", Big, nullable=False),
    Column("n_failed", Big, nullable=False),
    Column("cells", Big, nullable=False),
    Column("cells_done", Big, nullable=False),
    Column("served", Big, nullable=False),
    UniqueConstraint("key", name="uq_searches_key"),
    UniqueConstraint("owner", "idempotency_key", name="uq_searches_owner_idempotency_key"),
    Index("ix_searches_state", "state"),
    Index("ix_searches_content", "content"),
    Index("ix_searches_run", "run_id"),
    sqlite_autoincrement=True,
)
"""One search: who submitted it, what is searched, how far it is, and the run with its results."""

SEARCH_QUERIES: Final = Table(
    "search_queries",
    METADATA,
    Column(
        "search_id",
        Big,
        ForeignKey("searches.id", ondelete="CASCADE", name="fk_search_queries_search"),
        primary_key=True,
    ),
    Column("number", Big, primary_key=True),
    Column("header", FileText, nullable=False),
    Column("letters", FileText, nullable=False),
    Column("cells", Big, nullable=False),
    Column("state", String(16), nullable=False),
    Column("lease_owner", String(64)),
    Column("lease_until", UtcTime),
    Column("losses", Integer, nullable=False),
    Index("ix_search_queries_next", "search_id", "state", "losses", "number"),
    Index("ix_search_queries_lease", "lease_owner"),
)
"""One query of an unfinished search: its letters, and the lease of the worker that searches it."""

OWNERS: Final = Table(
    "owners",
    METADATA,
    Column("owner", FileText, primary_key=True),
    Column("served", Big, nullable=False),
)
"""The virtual counter of an owner: millions of cells that were searched for the owner, or forgone while idle."""

USAGE: Final = Table(
    "usage",
    METADATA,
    Column("owner", FileText, primary_key=True),
    Column("day", String(10), primary_key=True),
    Column("n_searches", Big, nullable=False),
    Column("n_queries", Big, nullable=False),
    Column("cells", Big, nullable=False),
)
"""What an owner submitted on one day (UTC, ``YYYY-MM-DD``)."""

WORKERS: Final = Table(
    "workers",
    METADATA,
    Column("id", String(64), primary_key=True),
    Column("host", Text, nullable=False),
    Column("process", Integer, nullable=False),
    Column("process_began", Text),
    Column("engine", Text, nullable=False),
    Column("cells_per_second", Double, nullable=False),
    Column("started_at", UtcTime, nullable=False),
    Column("seen_at", UtcTime, nullable=False),
)
"""A worker process, how fast it searches, and when it was last alive."""

TOKENS: Final = Table(
    "tokens",
    METADATA,
    Column("id", String(16), primary_key=True),
    Column("owner", FileText, nullable=False),
    Column("digest", String(64), nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("revoked_at", UtcTime),
    UniqueConstraint("digest", name="uq_tokens_digest"),
)
"""A token of an owner; the token itself is not stored, only its SHA-256."""

LINKS: Final = Table(
    "links",
    METADATA,
    Column("id", String(16), primary_key=True),
    Column("search_id", Big, ForeignKey("searches.id", ondelete="CASCADE", name="fk_links_search"), nullable=False),
    Column("digest", String(64), nullable=False),
    Column("created_at", UtcTime, nullable=False),
    UniqueConstraint("digest", name="uq_links_digest"),
    Index("ix_links_search", "search_id"),
)
"""A link that shows one search to everybody who has it; its key is not stored, only the key's SHA-256."""
