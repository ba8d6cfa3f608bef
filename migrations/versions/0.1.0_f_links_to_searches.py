"""The owner of a search can make links that show it to everybody who has one; each has a key, which is stored hashed.

Links are rows of their own, because a search may have several, each of which can be withdrawn alone.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0.1.0_f"
down_revision = "0.1.0_e"

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """One table."""
    op.create_table(
        "links",
        sa.Column("id", sa.String(16), primary_key=True),
        sa.Column(
            "search_id",
            BIG,
            sa.ForeignKey("searches.id", ondelete="CASCADE", name="fk_links_search"),
            nullable=False,
        ),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.UniqueConstraint("digest", name="uq_links_digest"),
    )
    op.create_index("ix_links_search", "links", ["search_id"])
