"""The schema of a store: creates it, checks its revision, and upgrades it by the migrations."""

from __future__ import annotations

import os
import shlex
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from swsearch.errors import SchemaOutdated, StoreError
from swsearch.folders import is_user_store, resource_folder
from swsearch.store.connections import Address, Connections, FileConnections, connections_of
from swsearch.store.driver import Rows
from swsearch.store.rows import SCHEMA, statements
from swsearch.words import option

if TYPE_CHECKING:
    from sqlalchemy import Connection

_CREATION_LOCK: Final = 0x73775365
"""Key of the advisory lock of PostgreSQL that is held while a store is created or upgraded."""


def revision_of(rows: Rows) -> str | None:
    """The schema revision of a database; None if it contains no store."""
    if not rows.has_table("swsearch_schema"):
        return None
    found = rows.execute("SELECT version_num FROM swsearch_schema").fetchone()
    return None if found is None else found[0]


def create_or_check(connections: Connections, *, create: bool) -> None:
    """Create the store if it is missing and ``create`` is true, and check its schema.

    A new store is created in one transaction and marked with the revision of its tables, so that Alembic need not be
    imported; a test compares the tables with those of the migrations.

    Raises
    ------
    StoreError
        There is no store and ``create`` is False; or the file is not a store, or cannot be read or written.
    SchemaOutdated
        The store has another schema.
    """
    address = connections.address
    check_file(address, create=create)
    with connections.transaction(writes=False) as rows:
        found = revision_of(rows)
        foreign = found is None and address.database is not None and rows.tables()
    if foreign:
        problem = "is another program's SQLite database, not a store of hits; choose another file"
        raise StoreError(f"{address.name} {problem}")
    if found is None:
        if not create:
            raise StoreError(f"{address.name} holds no runs yet; `swsearch query --store` makes a store")
        found = _create(connections)
    if found != SCHEMA:
        raise _outdated(address.name, str(found))


def check_file(address: Address, *, create: bool) -> None:
    """Refuse a missing file if the store is only read, and a folder.

    SQLite itself refuses a file of another kind. The file is not opened here, since closing it would release all locks
    of this process on it (POSIX), those of other connections to the store included: the next process that closes the
    store would then delete the log that is in use.
    """
    if address.file is None:
        return
    path = Path(str(address.database))
    try:
        if path.is_dir():
            raise StoreError(f"{path} is a folder; a store is a file, choose one with {option('store')}")
        if not path.exists() and not create:
            named = "" if is_user_store(str(path)) else f" --store {shlex.quote(str(path))}"
            raise StoreError(f"there is no store {path}; `swsearch query{named}` makes one")
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}") from error


def _create(connections: Connections) -> str | None:
    """Create the tables unless another process has just done so; returns the revision."""
    if isinstance(connections, FileConnections):
        connections.choose_wal()
    with connections.transaction(writes=True) as rows:
        _lock_schema(rows)
        found = revision_of(rows)
        if found is None:
            for statement in statements(in_sqlite=rows.in_sqlite):
                rows.execute(statement)
            rows.execute("INSERT INTO swsearch_schema VALUES (?)", SCHEMA)
        return found or SCHEMA


def _lock_schema(rows: Rows) -> None:
    """Prevent other processes from creating or upgrading at the same time; SQLite has only one writer anyway."""
    if not rows.in_sqlite:
        rows.execute("SELECT pg_advisory_xact_lock(?)", _CREATION_LOCK)


def _outdated(name: str, found: str) -> SchemaOutdated:
    """The error for a schema of another version."""
    advice = f"`swsearch runs upgrade --store {name}` brings it up to date"
    if found not in known_revisions():
        advice = "a newer swsearch wrote it; install that version or a later one"
    return SchemaOutdated(name, found, SCHEMA, advice)


def alembic_config() -> Any:
    """Return Alembic's configuration for the migrations of stores, a ``Config``."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(resource_folder("migrations")).replace("%", "%%"))
    return config


def known_revisions() -> set[str]:
    """All revisions that this program can upgrade, including the current one."""
    from alembic.script import ScriptDirectory

    return {script.revision for script in ScriptDirectory.from_config(alembic_config()).walk_revisions()}


def upgrade(target: str | os.PathLike[str]) -> tuple[str, str]:
    """Upgrade a store to this program's schema, in one transaction.

    Returns
    -------
    tuple of str
        The revisions before and after; equal if there was nothing to do.

    Raises
    ------
    StoreError
        There is no store, or it cannot be written.
    SchemaOutdated
        A newer program wrote it.
    """
    address = Address.of(target)
    check_file(address, create=False)
    with closing(connections_of(address)) as connections, connections.for_alembic() as connection:
        rows = Rows(connection.connection.driver_connection, connections.mark)
        _lock_schema(rows)
        found = revision_of(rows)
        if found is None:
            raise StoreError(f"{address.name} is not a store of hits; there is nothing to upgrade")
        if found not in known_revisions():
            raise _outdated(address.name, found)
        if found != SCHEMA:
            migrate(connection)
        return found, SCHEMA


def migrate(connection: Connection) -> None:
    """Run the migrations that the database of ``connection`` lacks, inside its transaction."""
    from alembic import command

    config = alembic_config()
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
