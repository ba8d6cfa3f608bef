"""Iterated searches: the number of rounds of a query, whether they converged, and the profile of the last one.

Each hit has the round in which its subject was first included, and 0 if it never was. Stored queries had one round.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0.1.0_g"
down_revision = "0.1.0_f"


def upgrade() -> None:
    """Columns at the end of the queries and of the hits."""
    op.add_column("queries", sa.Column("n_rounds", sa.Integer, nullable=False, server_default="1"))
    op.add_column("queries", sa.Column("converged", sa.Integer, nullable=False, server_default="0"))
    op.add_column("queries", sa.Column("pssm", sa.Text))
    op.add_column("hits", sa.Column("round", sa.Integer, nullable=False, server_default="0"))
