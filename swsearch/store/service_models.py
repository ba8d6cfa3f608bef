"""The tables of the search service, beside those of the runs: ``searches``, ``search_queries``, ``owners``, ``usage``,
``workers``, ``tokens`` and ``links``.

A search is what somebody submitted; its results are a run like any other. ``search_queries`` has the queries of
unfinished searches alone, so it stays small. The conventions are those of :mod:`swsearch.store.models`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final, cast

from sqlalchemy import Double, ForeignKey, Index, Integer, String, Table, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from swsearch.store.models import Base, Big, FileText, UtcTime

QUEUED: Final = "queued"
RUNNING: Final = "running"
DONE: Final = "done"
FAILED: Final = "failed"
CANCELLED: Final = "cancelled"
UNFINISHED: Final = (QUEUED, RUNNING)
LEASED: Final = "leased"


class SearchRow(Base):
    """One search: who submitted it, what is searched, how far it is, and the run with its results."""

    __tablename__ = "searches"
    __table_args__ = (
        UniqueConstraint("key", name="uq_searches_key"),
        UniqueConstraint("owner", "idempotency_key", name="uq_searches_owner_idempotency_key"),
        Index("ix_searches_state", "state"),
        Index("ix_searches_content", "content"),
        Index("ix_searches_run", "run_id"),
        {"sqlite_autoincrement": True},
    )

    id: Mapped[int] = mapped_column(Big, primary_key=True)
    key: Mapped[str] = mapped_column(String(32))
    owner: Mapped[str] = mapped_column(FileText)
    database_name: Mapped[str] = mapped_column(FileText)
    database_digest: Mapped[str] = mapped_column(String(64))
    database_generation: Mapped[int] = mapped_column(Big)
    options: Mapped[str] = mapped_column(Text)
    fingerprint: Mapped[str] = mapped_column(String(64))
    content: Mapped[str] = mapped_column(String(64))
    asked_digest: Mapped[str] = mapped_column(String(64))
    idempotency_key: Mapped[str | None] = mapped_column(FileText)
    state: Mapped[str] = mapped_column(String(16))
    reason: Mapped[str | None] = mapped_column(FileText)
    created_at: Mapped[datetime] = mapped_column(UtcTime)
    started_at: Mapped[datetime | None] = mapped_column(UtcTime)
    finished_at: Mapped[datetime | None] = mapped_column(UtcTime)
    expires_at: Mapped[datetime | None] = mapped_column(UtcTime)
    run_id: Mapped[int | None] = mapped_column(Big, ForeignKey("runs.id", ondelete="CASCADE", name="fk_searches_run"))
    n_queries: Mapped[int] = mapped_column(Big)
    n_done: Mapped[int] = mapped_column(Big)
    n_failed: Mapped[int] = mapped_column(Big)
    cells: Mapped[int] = mapped_column(Big)
    cells_done: Mapped[int] = mapped_column(Big)
    served: Mapped[int] = mapped_column(Big)


class SearchQueryRow(Base):
    """One query of an unfinished search: its letters, and the lease of the worker that searches it."""

    __tablename__ = "search_queries"
    __table_args__ = (
        Index("ix_search_queries_next", "search_id", "state", "losses", "number"),
        Index("ix_search_queries_lease", "lease_owner"),
    )

    search_id: Mapped[int] = mapped_column(
        Big, ForeignKey("searches.id", ondelete="CASCADE", name="fk_search_queries_search"), primary_key=True
    )
    number: Mapped[int] = mapped_column(Big, primary_key=True)
    header: Mapped[str] = mapped_column(FileText)
    letters: Mapped[str] = mapped_column(FileText)
    cells: Mapped[int] = mapped_column(Big)
    state: Mapped[str] = mapped_column(String(16))
    lease_owner: Mapped[str | None] = mapped_column(String(64))
    lease_until: Mapped[datetime | None] = mapped_column(UtcTime)
    losses: Mapped[int] = mapped_column(Integer)


class OwnerRow(Base):
    """The virtual counter of an owner: millions of cells that were searched for the owner, or forgone while idle."""

    __tablename__ = "owners"

    owner: Mapped[str] = mapped_column(FileText, primary_key=True)
    served: Mapped[int] = mapped_column(Big)


class UsageRow(Base):
    """What an owner submitted on one day (UTC, ``YYYY-MM-DD``)."""

    __tablename__ = "usage"

    owner: Mapped[str] = mapped_column(FileText, primary_key=True)
    day: Mapped[str] = mapped_column(String(10), primary_key=True)
    n_searches: Mapped[int] = mapped_column(Big)
    n_queries: Mapped[int] = mapped_column(Big)
    cells: Mapped[int] = mapped_column(Big)


class WorkerRow(Base):
    """A worker process, how fast it searches, and when it was last alive."""

    __tablename__ = "workers"

    id: Mapped[str] = mapped_column(String(64), primary_key=True)
    host: Mapped[str] = mapped_column(Text)
    process: Mapped[int] = mapped_column(Integer)
    process_began: Mapped[str | None] = mapped_column(Text)
    engine: Mapped[str] = mapped_column(Text)
    cells_per_second: Mapped[float] = mapped_column(Double)
    started_at: Mapped[datetime] = mapped_column(UtcTime)
    seen_at: Mapped[datetime] = mapped_column(UtcTime)


class TokenRow(Base):
    """A token of an owner; the token itself is not stored, only its SHA-256."""

    __tablename__ = "tokens"
    __table_args__ = (UniqueConstraint("digest", name="uq_tokens_digest"),)

    id: Mapped[str] = mapped_column(String(16), primary_key=True)
    owner: Mapped[str] = mapped_column(FileText)
    digest: Mapped[str] = mapped_column(String(64))
    created_at: Mapped[datetime] = mapped_column(UtcTime)
    revoked_at: Mapped[datetime | None] = mapped_column(UtcTime)


class LinkRow(Base):
    """A link that shows one search to everybody who has it; its key is not stored, only the key's SHA-256."""

    __tablename__ = "links"
    __table_args__ = (UniqueConstraint("digest", name="uq_links_digest"), Index("ix_links_search", "search_id"))

    id: Mapped[str] = mapped_column(String(16), primary_key=True)
    search_id: Mapped[int] = mapped_column(Big, ForeignKey("searches.id", ondelete="CASCADE", name="fk_links_search"))
    digest: Mapped[str] = mapped_column(String(64))
    created_at: Mapped[datetime] = mapped_column(UtcTime)


SEARCHES = cast(Table, SearchRow.__table__)
SEARCH_QUERIES = cast(Table, SearchQueryRow.__table__)
OWNERS = cast(Table, OwnerRow.__table__)
USAGE = cast(Table, UsageRow.__table__)
WORKERS = cast(Table, WorkerRow.__table__)
TOKENS = cast(Table, TokenRow.__table__)
LINKS = cast(Table, LinkRow.__table__)
