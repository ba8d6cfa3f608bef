"""The schema of a store: creates it, checks its revision, and upgrades it by the migrations."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, Engine, insert, inspect, select, text
from sqlalchemy.engine import URL

from swsearch.errors import SchemaOutdated, StoreError
from swsearch.folders import is_user_store, resource_folder
from swsearch.store.connections import display_name, file_of, make_engine, reading, store_url, translated, writing
from swsearch.store.driver import create_tables, statements
from swsearch.store.models import METADATA, SCHEMA_TABLE
from swsearch.store.rows import SCHEMA
from swsearch.words import option

_CREATION_LOCK: Final = 0x73775365
"""Key of the advisory lock of PostgreSQL that is held while a store is created or upgraded."""


def revision_of(connection: Connection) -> str | None:
    """The schema revision of a database; None if it contains no store."""
    if not inspect(connection).has_table(SCHEMA_TABLE.name):
        return None
    return connection.execute(select(SCHEMA_TABLE.c.version_num)).scalar()


def create_or_check(engine: Engine, *, create: bool) -> None:
    """Create the store if it is missing and ``create`` is true, and check its schema.

    A new store is created in one transaction and marked with the revision of the models, so that Alembic need not be
    imported; tests compare the tables with those of the models and with those of the migrations.

    Raises
    ------
    StoreError
        There is no store and ``create`` is False; or the file is not a store, or cannot be read or written.
    SchemaOutdated
        The store has another schema.
    """
    check_file(engine.url, create=create)
    with reading(engine) as connection:
        found = revision_of(connection)
        foreign = found is None and engine.dialect.name == "sqlite" and bool(inspect(connection).get_table_names())
    if foreign:
        name = display_name(engine.url)
        raise StoreError(f"{name} is another program's SQLite database, not a store of hits; choose another file")
    if found is None:
        if not create:
            raise StoreError(f"{display_name(engine.url)} holds no runs yet; `swsearch query --store` makes a store")
        found = _create(engine)
    if found != SCHEMA:
        raise _outdated(engine.url, str(found))


def check_file(url: URL, *, create: bool) -> None:
    """Refuse a missing file if the store is only read, and a folder.

    SQLite itself refuses a file of another kind. The file is not opened here, since closing it would release all locks
    of this process on it (POSIX), those of other connections to the store included: the next process that closes the
    store would then delete the log that is in use.
    """
    if file_of(url) is None:
        return
    path = Path(str(url.database))
    try:
        if path.is_dir():
            raise StoreError(f"{path} is a folder; a store is a file, choose one with {option('store')}")
        if not path.exists() and not create:
            named = "" if is_user_store(str(path)) else f" --store {shlex.quote(str(path))}"
            raise StoreError(f"there is no store {path}; `swsearch query{named}` makes one")
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}") from error


def _create(engine: Engine) -> str | None:
    """Create the tables unless another process has just done so; returns the revision."""
    if engine.dialect.name == "sqlite":
        with translated(engine), engine.connect() as connection:
            driver: Any = connection.connection.driver_connection
            create_tables(driver, driver.execute("PRAGMA busy_timeout").fetchone()[0] / 1000)
        with reading(engine) as connection:
            return revision_of(connection)
    with writing(engine) as connection:
        _lock_schema(connection)
        found = revision_of(connection)
        if found is None:
            for index in (index for table in METADATA.tables.values() for index in table.indexes):
                index.dialect_kwargs.update(index.info)
            METADATA.create_all(connection)
            connection.exec_driver_sql(statements()[-1])
            connection.execute(insert(SCHEMA_TABLE).values(version_num=SCHEMA))
        return found or SCHEMA


def _lock_schema(connection: Connection) -> None:
    """Prevent other processes from creating or upgrading at the same time; SQLite has only one writer anyway."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _CREATION_LOCK})


def _outdated(url: URL, found: str) -> SchemaOutdated:
    """The error for a schema of another version."""
    name = display_name(url)
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
    url = store_url(target)
    check_file(url, create=False)
    engine = make_engine(url)
    try:
        with writing(engine) as connection:
            _lock_schema(connection)
            found = revision_of(connection)
            if found is None:
                raise StoreError(f"{display_name(url)} is not a store of hits; there is nothing to upgrade")
            if found not in known_revisions():
                raise _outdated(url, found)
            if found != SCHEMA:
                migrate(connection)
        return found, SCHEMA
    finally:
        engine.dispose()


def migrate(connection: Connection) -> None:
    """Run the migrations that the database of ``connection`` lacks, inside its transaction."""
    from alembic import command

    config = alembic_config()
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
