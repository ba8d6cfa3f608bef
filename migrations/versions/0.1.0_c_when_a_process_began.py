"""A run remembers when its process began, for a process number is given to others once its process is gone.

Of stored runs that is not known, and their process number alone decides, as before.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0.1.0_c"
down_revision = "0.1.0_b"


def upgrade() -> None:
    """One more column, last of the table."""
    op.add_column("runs", sa.Column("process_began", sa.Text))
