"""What the limits of a report need: the number of an alignment before any was left out, and the E-value of a soft mask.

Stored alignments are numbered as they are listed. Softly masked queries of older programs have no masked E-values, so
their reports are limited by the E-values of their hits alone.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0.1.0_i"
down_revision = "0.1.0_h"

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Columns at the end of the hits."""
    op.add_column("hits", sa.Column("number", BIG, nullable=False, server_default="1"))
    op.add_column("hits", sa.Column("masked_evalue", sa.Double))
    op.execute("UPDATE hits SET number = hsp WHERE hsp > 1")
