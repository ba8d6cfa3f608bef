"""A run remembers which share of which queries it was asked to search, and which of them could not be searched.

So what a run lacks can be told exactly, and shards that are missing, doubled or of another batch are noticed when they
are merged. Of stored runs all that is not known, and stays empty. ``remark`` is for what a person should hear of a run.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0.1.0_d"
down_revision = "0.1.0_c"

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Columns at the end of the runs, and a table of failed queries."""
    op.add_column("runs", sa.Column("shard_index", sa.Integer))
    op.add_column("runs", sa.Column("shard_count", sa.Integer))
    op.add_column("runs", sa.Column("asked_n_queries", BIG))
    op.add_column("runs", sa.Column("asked_digest", sa.String(64)))
    op.add_column("runs", sa.Column("remark", sa.Text))
    op.create_table(
        "failures",
        sa.Column(
            "run_id",
            BIG,
            sa.ForeignKey("runs.id", ondelete="CASCADE", name="fk_failures_run"),
            primary_key=True,
            autoincrement=False,
        ),
        sa.Column("number", BIG, primary_key=True, autoincrement=False),
        sa.Column("reason", sa.Text, nullable=False),
    )
