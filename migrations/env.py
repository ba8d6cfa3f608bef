"""Alembic's door: runs the revisions on the connection that :func:`swsearch.store.schema.upgrade` hands in.

It sees the tables of :mod:`swsearch.store.models` alone. The version table has a name of its own, so that a store can
share a PostgreSQL database with another program's tables.
"""

from __future__ import annotations

from alembic import context

from swsearch.store.models import METADATA, SCHEMA_TABLE

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=METADATA,
    version_table=SCHEMA_TABLE.name,
    render_as_batch=connection.dialect.name == "sqlite",  # SQLite alters a table by copying it
    transaction_per_migration=False,
)
context.run_migrations()
