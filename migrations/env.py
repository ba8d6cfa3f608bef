"""Alembic's door: runs the revisions on the connection that :func:`swsearch.store.schema.upgrade` hands in.

The version table has a name of its own, so that a store can share a PostgreSQL database with another program's tables.
"""

from __future__ import annotations

from alembic import context

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    version_table="swsearch_schema",
    render_as_batch=connection.dialect.name == "sqlite",  # SQLite alters a table by copying it
    transaction_per_migration=False,
)
context.run_migrations()
