"""Connections to a store: opening them, transactions, fast inserts, and error messages for failures.

A store is specified by a file path or a URL: ``sqlite:///hits.sqlite``, ``postgresql://user@host/database``.

SQLite is used in WAL mode (readers and one writer do not block each other) with ``synchronous=NORMAL``: if a process is
killed, no committed data is lost; a power failure may lose the last commits but never damages the file. A writer takes
the lock when its transaction begins, and waits for another writer up to :data:`BUSY_SECONDS`.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from sqlalchemy import Connection, Engine, Table, create_engine, event, insert
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError

from swsearch.errors import StoreError, SwSearchError
from swsearch.folders import is_shared
from swsearch.words import option

BUSY_SECONDS: Final = 60.0
"""Longest time that a writer waits for another, in seconds."""

_FIRST_PAUSE: Final = 0.0002
_LONGEST_PAUSE: Final = 0.005
"""Seconds between two attempts to become SQLite's writer."""
_UNKNOWN_NAME: Final = ("42703", "42P01")
"""PostgreSQL's codes for a column and for a table that does not exist."""
_DAMAGED: Final = "the database is damaged; `sqlite3 FILE .recover` may save what is left"

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
    if "://" not in given:
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


def check_target(target: str | os.PathLike[str]) -> None:
    """Refuse a store that cannot be opened on this machine, before anything else is opened; it need not exist.

    Raises
    ------
    StoreError
        The URL is none of a store, or PostgreSQL's driver is not installed.
    """
    if "://" in os.fspath(target):
        make_engine(store_url(target)).dispose()  # this imports the driver, and connects to nothing


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
    def set_up(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # `begin` below starts transactions, not the driver
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA synchronous = NORMAL")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get("swsearch_writes", False)
        if writes:
            _begin_writing(connection, busy_seconds)
        else:
            connection.exec_driver_sql("BEGIN")

    return engine


def _begin_writing(connection: Connection, busy_seconds: float) -> None:
    """Begin a transaction of SQLite's writer, when no other process has one.

    SQLite itself looks for the end of the other transaction after pauses of 1, 2, 5 and up to 100 ms. Two processes
    that write a hundred times a second, such as those of a service, would pause most of the time.
    """
    driver: Any = connection.connection.driver_connection
    ends = time.monotonic() + busy_seconds
    pause = _FIRST_PAUSE
    driver.execute("PRAGMA busy_timeout = 0")
    try:
        while True:
            try:
                driver.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > ends:
                    raise
            time.sleep(pause)
            pause = min(_LONGEST_PAUSE, 1.5 * pause)
    finally:
        driver.execute(f"PRAGMA busy_timeout = {round(busy_seconds * 1000)}")


def _is_frozen(path: Path) -> bool:
    """Whether a store can only be read, and no log contains a part of it, so that SQLite must not use its side files.

    These files could not be created, or would have an owner that prevents the store's owner from writing.
    """
    writable = os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)
    return path.is_file() and not writable and not _has_log(path)


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


def identity_of(path: Path | None) -> tuple[int, int] | None:
    """Device and inode of a file; None if there is none."""
    try:
        found = None if path is None else path.stat()
    except OSError:
        return None
    return None if found is None else (found.st_dev, found.st_ino)


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """A connection that reads the current state of the store, even while others write."""
    with translated(engine.url):
        if engine.dialect.name == "postgresql":
            engine = engine.execution_options(isolation_level="REPEATABLE READ")
        with engine.begin() as connection:
            yield connection


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """A connection in a transaction that commits completely or not at all."""
    with translated(engine.url), engine.connect() as connection:
        writer = connection.execution_options(swsearch_writes=True)
        with writer.begin():
            yield writer


@contextmanager
def translated(url: URL) -> Iterator[None]:
    """A context that raises database errors as :class:`StoreError`, with one line on the problem and its remedy."""
    try:
        yield
    except DBAPIError as error:
        raise StoreError(_message(error.orig, url)) from error
    except sqlite3.Error as error:  # SQLAlchemy does not wrap errors that occur while a connection is set up
        raise StoreError(_message(error, url)) from error
    except UnicodeDecodeError as error:  # raised by the driver for a message of SQLite that quotes damaged bytes
        raise StoreError(f"{display_name(url)}: {_DAMAGED}") from error
    except AssertionError as error:
        # SIGTERM or Ctrl-C within a commit leaves SQLAlchemy's transaction open, which it asserts not to happen.
        if isinstance(error.__context__, (SystemExit, KeyboardInterrupt)):
            raise error.__context__ from None
        raise
    except (ValueError, TypeError, RecursionError) as error:  # raised by the conversion of columns to values
        if isinstance(error, SwSearchError):
            raise
        problem = f"the store is damaged, or another program wrote to it: {error}"
        raise StoreError(f"{display_name(url)}: {problem}".splitlines()[0]) from error


def insert_rows(connection: Connection, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert many rows, each with the table's columns in their order, by the fastest method of the driver.

    SQLite: tuples passed directly to the driver took 5 µs per hit, ``insert(table)`` with dicts 11 µs.
    PostgreSQL: ``COPY`` took 14 µs per hit, ``INSERT`` 50 µs.
    """
    columns = ", ".join(table.columns.keys())
    if connection.dialect.name == "sqlite":
        places = ", ".join("?" * len(table.columns))
        connection.exec_driver_sql(f"INSERT INTO {table.name} ({columns}) VALUES ({places})", list(rows))
        return
    driver: Any = connection.connection.driver_connection
    try:
        with driver.cursor() as cursor, cursor.copy(f"COPY {table.name} ({columns}) FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)
    except connection.dialect.loaded_dbapi.Error as error:  # not wrapped, because the call bypasses SQLAlchemy
        raise StoreError(_message(error, connection.engine.url)) from error


def insert_numbered(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> list[int]:
    """Insert rows, all with the same columns, into a table that numbers them; returns their numbers, in their order."""
    if not rows:
        return []
    statement = insert(table).returning(table.c.id, sort_by_parameter_order=True)
    return list(connection.execute(statement, list(rows)).scalars())


def upsert(dialect: str, table: Table) -> Any:
    """The INSERT of this kind of database that has ``on_conflict_do_nothing`` and ``on_conflict_do_update``."""
    if dialect == "postgresql":
        from sqlalchemy.dialects import postgresql

        return postgresql.insert(table)
    from sqlalchemy.dialects import sqlite

    return sqlite.insert(table)


def _message(error: BaseException | None, url: URL) -> str:
    """The message for an error of the driver."""
    if str(getattr(error, "sqlite_errorname", "")).startswith("SQLITE_NOTADB"):
        return f"{display_name(url)} is not an SQLite database; choose another file with {option('store')}"
    return f"{display_name(url)}: {_explain(error, url)}"


def _explain(error: BaseException | None, url: URL) -> str:
    """What went wrong, and what to do."""
    code = str(getattr(error, "sqlite_errorname", ""))
    first_line = next((line.strip() for line in str(error).splitlines() if line.strip()), "no message")
    folder = Path(display_name(url)).parent
    if code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return "another process is writing to it and does not finish; try again when it is done"
    if code.startswith("SQLITE_FULL"):
        return "the disk is full; nothing of this query was stored, what was stored before is intact; free some space"
    if code.startswith("SQLITE_READONLY"):
        return f"it cannot be written to; change its permissions, or choose another file with {option('store')}"
    if code.startswith("SQLITE_CANTOPEN"):
        if not folder.is_dir():
            return f"the folder {folder} does not exist; create it, or choose another file with {option('store')}"
        if Path(f"{display_name(url)}-wal").exists():
            advice = "copy both to a folder where you can write, or ask the owner of the store to list its runs once"
            return f"the last writes are in the log {display_name(url)}-wal, which cannot be read here; {advice}"
        permissions = "check its permissions and its folder's"
        return f"it cannot be opened or created; {permissions}, or choose another with {option('store')}"
    if code.startswith("SQLITE_CORRUPT"):
        return _DAMAGED
    if code.startswith("SQLITE_IOERR"):
        return f"the disk does not answer as it should ({code}); check it and its free space"
    is_unknown = first_line.startswith(("no such column", "no such table")) or "has no column named" in first_line
    if is_unknown or getattr(error, "sqlstate", None) in _UNKNOWN_NAME:
        advice = f"use the swsearch that wrote it, or choose another store with {option('store')}"
        return f"its tables are not those of this swsearch ({first_line}); {advice}"
    return first_line
