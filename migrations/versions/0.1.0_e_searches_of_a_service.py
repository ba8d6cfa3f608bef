"""A service keeps its searches in the store: what was submitted, which query is being searched, by whom and for whom.

Results stay where they are, in runs. Nothing of the tables of runs changes.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0.1.0_e"
down_revision = "0.1.0_d"

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Six tables."""
    op.create_table(
        "searches",
        sa.Column("id", BIG, primary_key=True),
        sa.Column("key", sa.String(32), nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("database_name", sa.Text, nullable=False),
        sa.Column("database_digest", sa.String(64), nullable=False),
        sa.Column("database_generation", BIG, nullable=False),
        sa.Column("options", sa.Text, nullable=False),
        sa.Column("fingerprint", sa.String(64), nullable=False),
        sa.Column("content", sa.String(64), nullable=False),
        sa.Column("asked_digest", sa.String(64), nullable=False),
        sa.Column("idempotency_key", sa.Text),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("reason", sa.Text),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("started_at", TIME),
        sa.Column("finished_at", TIME),
        sa.Column("expires_at", TIME),
        sa.Column("run_id", BIG, sa.ForeignKey("runs.id", ondelete="CASCADE", name="fk_searches_run")),
        sa.Column("n_queries", BIG, nullable=False),
        sa.Column("n_done", BIG, nullable=False),
        sa.Column("n_failed", BIG, nullable=False),
        sa.Column("cells", BIG, nullable=False),
        sa.Column("cells_done", BIG, nullable=False),
        sa.Column("served", BIG, nullable=False),
        sa.UniqueConstraint("key", name="uq_searches_key"),
        sa.UniqueConstraint("owner", "idempotency_key", name="uq_searches_owner_idempotency_key"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_searches_state", "searches", ["state"])
    op.create_index("ix_searches_content", "searches", ["content"])
    op.create_index("ix_searches_run", "searches", ["run_id"])
    search = sa.ForeignKey("searches.id", ondelete="CASCADE", name="fk_search_queries_search")
    op.create_table(
        "search_queries",
        sa.Column("search_id", BIG, search, primary_key=True, autoincrement=False),
        sa.Column("number", BIG, primary_key=True, autoincrement=False),
        sa.Column("header", sa.Text, nullable=False),
        sa.Column("letters", sa.Text, nullable=False),
        sa.Column("cells", BIG, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("lease_owner", sa.String(64)),
        sa.Column("lease_until", TIME),
        sa.Column("losses", sa.Integer, nullable=False),
    )
    op.create_index("ix_search_queries_next", "search_queries", ["search_id", "state", "losses", "number"])
    op.create_index("ix_search_queries_lease", "search_queries", ["lease_owner"])
    op.create_table(
        "owners",
        sa.Column("owner", sa.Text, primary_key=True),
        sa.Column("served", BIG, nullable=False),
    )
    op.create_table(
        "usage",
        sa.Column("owner", sa.Text, primary_key=True),
        sa.Column("day", sa.String(10), primary_key=True),
        sa.Column("n_searches", BIG, nullable=False),
        sa.Column("n_queries", BIG, nullable=False),
        sa.Column("cells", BIG, nullable=False),
    )
    op.create_table(
        "workers",
        sa.Column("id", sa.String(64), primary_key=True),
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("process", sa.Integer, nullable=False),
        sa.Column("process_began", sa.Text),
        sa.Column("engine", sa.Text, nullable=False),
        sa.Column("cells_per_second", sa.Double, nullable=False),
        sa.Column("started_at", TIME, nullable=False),
        sa.Column("seen_at", TIME, nullable=False),
    )
    op.create_table(
        "tokens",
        sa.Column("id", sa.String(16), primary_key=True),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("revoked_at", TIME),
        sa.UniqueConstraint("digest", name="uq_tokens_digest"),
    )
