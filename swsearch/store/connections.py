"""SQLAlchemy's connections to a store: opening them, and transactions.

A store is specified by a file path or a URL: ``sqlite:///hits.sqlite``, ``postgresql://user@host/database``.
:mod:`swsearch.store.driver` has the settings of SQLite, and what the errors of the drivers mean.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from sqlalchemy import Connection, Engine, PoolProxiedConnection, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError

from swsearch.errors import StoreError, SwSearchError
from swsearch.file_registry import is_store_url
from swsearch.folders import is_shared
from swsearch.store.driver import BUSY_SECONDS, Rows, begin_writing, explained, is_writable, message, set_up

# Errors of a connection are raised, and the caller reports them. The pool also logs them with a traceback, for example
# when SIGTERM or Ctrl-C arrives while it closes a connection; without a handler, Python would print that to stderr.
logging.getLogger("sqlalchemy.pool").addHandler(logging.NullHandler())


def store_url(target: str | os.PathLike[str]) -> URL:
    """The URL of a store that is specified by a path or a URL.

    Raises
    ------
    StoreError
        The URL cannot be read, or names a database that is neither SQLite nor PostgreSQL.
    """
    given = os.fspath(target)
    if not is_store_url(given):
        return URL.create("sqlite", database=given)
    try:
        url = make_url(given)
    except (ArgumentError, ValueError) as error:
        raise StoreError(f"{given!r} is not a store; give a file, or postgresql://user@host/database") from error
    if url.drivername in ("postgresql", "postgres", "postgresql+psycopg"):
        return url.set(drivername="postgresql+psycopg")
    if url.drivername in ("sqlite", "sqlite+pysqlite"):
        return url.set(drivername="sqlite")
    raise StoreError(f"a store cannot be kept in {url.drivername}; give a file, or postgresql://user@host/database")


def display_name(url: URL) -> str:
    """The name of a store in messages: its file, or its URL without the password."""
    if url.drivername != "sqlite":
        return url.render_as_string(hide_password=True)
    return unquote(str(url.database).removeprefix("file://")) if "uri" in url.query else str(url.database)


def check_url(url: str) -> None:
    """Refuse the URL of a store that cannot be opened on this machine, before anything else is opened.

    Raises
    ------
    StoreError
        The URL is none of a store, or PostgreSQL's driver is not installed.
    """
    make_engine(store_url(url)).dispose()  # this imports the driver, and connects to nothing


def make_engine(url: URL, *, busy_seconds: float = BUSY_SECONDS, only_read: bool = False) -> Engine:
    """An SQLAlchemy engine whose connections have the settings described above; no connection is opened yet.

    With ``only_read``, a published file of a network file system is read without locks, which may be missing there.

    Raises
    ------
    StoreError
        PostgreSQL's driver is not installed.
    """
    if url.drivername != "sqlite":
        try:
            return create_engine(url, pool_pre_ping=True)  # its connections end when the server is started again
        except (ModuleNotFoundError, NoSuchModuleError) as error:
            advice = "`pip install 'swsearch[postgresql]'` adds it"
            raise StoreError(f"{display_name(url)} needs psycopg, which is not installed; {advice}") from error
    path = Path(str(url.database))
    if _is_frozen(path) or (only_read and "uri" not in url.query and _is_published(path)):
        frozen = Path(str(url.database)).absolute().as_uri()
        url = url.set(database=frozen, query={"mode": "ro", "immutable": "1", "uri": "true"})
    engine = create_engine(url, connect_args={"timeout": busy_seconds})

    @event.listens_for(engine, "connect")
    def connect(driver: Any, _record: Any) -> None:
        set_up(driver)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get("swsearch_writes", False)
        if writes:
            begin_writing(connection.connection.driver_connection, busy_seconds)
        else:
            connection.exec_driver_sql("BEGIN")

    return engine


def _is_frozen(path: Path) -> bool:
    """Whether a store can only be read, and no log contains a part of it, so that SQLite must not use its side files.

    These files could not be created, or would have an owner that prevents the store's owner from writing.
    """
    return path.is_file() and not is_writable(path) and not _has_log(path)


def _has_log(path: Path) -> bool:
    """Whether a process uses SQLite's log beside a store, or one was killed and left a part of the store in it."""
    log, index = Path(f"{path}-wal"), Path(f"{path}-shm")
    return log.exists() and (index.exists() or log.stat().st_size > 0)


def _is_published(path: Path) -> bool:
    """Whether a store is on a network file system and no process writes to it: it is replaced, never changed.

    Side files belong to a process that writes to the file itself, which needs locks.
    """
    return (
        path.is_file()
        and is_shared(Path(os.path.realpath(path)))
        and not any(Path(f"{path}{end}").exists() for end in ("-wal", "-journal"))
    )


def file_of(url: URL) -> Path | None:
    """The file of a store; None for a store in a database server, and for URLs that SQLite itself interprets."""
    return Path(str(url.database)).absolute() if url.drivername == "sqlite" and "uri" not in url.query else None


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """A connection that reads the current state of the store, even while others write."""
    with translated(engine):
        if engine.dialect.name == "postgresql":
            engine = engine.execution_options(isolation_level="REPEATABLE READ")
        with engine.begin() as connection:
            yield connection


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """A connection in a transaction that commits completely or not at all."""
    with translated(engine), engine.connect() as connection:
        writer = connection.execution_options(swsearch_writes=True)
        with writer.begin():
            yield writer


def rows_of(connection: Connection) -> Rows:
    """What writes rows in the transaction of a connection."""
    return Rows(connection.connection.driver_connection, "?" if connection.dialect.name == "sqlite" else "%s")


@contextmanager
def file_rows(engine: Engine, free: list[PoolProxiedConnection], begin: Callable[[Any], object]) -> Iterator[Rows]:
    """What reads and writes rows of a store's file in a transaction, which ``begin`` begins with SQLite's connection.

    SQLAlchemy's code for a transaction with one statement took three times as long as that of a connection itself, and
    seven times as long where other work had taken its place in the processor's caches. ``free`` has the connections
    that were used before and are used by nobody.
    """
    with translated(engine):
        try:
            connection = free.pop()
        except IndexError:
            connection = engine.raw_connection()
            connection.detach()
        driver: Any = connection.dbapi_connection
        try:
            begin(driver)
            yield Rows(driver)
            driver.execute("COMMIT")
        finally:
            if driver.in_transaction:
                driver.execute("ROLLBACK")
            free.append(connection)


@contextmanager
def translated(engine: Engine) -> Iterator[None]:
    """A context that raises database errors as :class:`StoreError`, with one line on the problem and its remedy."""
    name = display_name(engine.url)
    try:
        # The driver's own errors come from statements that SQLAlchemy does not execute.
        with explained(name, engine.dialect.loaded_dbapi):
            yield
    except DBAPIError as error:
        raise StoreError(message(error.orig, name)) from error
    except AssertionError as error:
        # SIGTERM or Ctrl-C within a commit leaves SQLAlchemy's transaction open, which it asserts not to happen.
        if isinstance(error.__context__, (SystemExit, KeyboardInterrupt)):
            raise error.__context__ from None
        raise
    except (ValueError, TypeError, RecursionError) as error:  # raised by the conversion of columns to values
        if isinstance(error, SwSearchError):
            raise
        problem = f"the store is damaged, or another program wrote to it: {error}"
        raise StoreError(f"{name}: {problem}".splitlines()[0]) from error
