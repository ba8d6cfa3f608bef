"""Where a store is, and its connections: their transactions are the only way to its rows.

A store is specified by a file path or a URL: ``sqlite:///hits.sqlite``, ``postgresql://user@host/database``.
SQLAlchemy reads URLs and keeps the connections to PostgreSQL. A path of a file needs Python's own driver alone, since
the import of SQLAlchemy takes 0.15 s, which is two fifths of a short command. :mod:`swsearch.store.driver` has the
settings of SQLite, and what the errors of the drivers mean.
"""

from __future__ import annotations

import os
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from swsearch.errors import StoreError
from swsearch.file_registry import is_store_url
from swsearch.folders import is_shared
from swsearch.store.driver import BUSY_SECONDS, Rows, begin_writing, choose_wal, explained, is_writable, set_up

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine
    from sqlalchemy.engine import URL


@dataclass(frozen=True)
class Address:
    """Where a store is.

    Attributes
    ----------
    name : str
        The store in messages: its file, or its URL without the password.
    database : str or None
        What SQLite opens; None for a store in a database server.
    url : URL or None
        SQLAlchemy's URL; None for a path.
    """

    name: str
    database: str | None
    url: URL | None = None

    @classmethod
    def of(cls, target: str | os.PathLike[str]) -> Address:
        """The address of a store that is specified by a path or a URL.

        Raises
        ------
        StoreError
            The URL cannot be read, or names a database that is neither SQLite nor PostgreSQL.
        """
        given = os.fspath(target)
        if not is_store_url(given):
            return cls(given, given)
        from sqlalchemy.engine import make_url
        from sqlalchemy.exc import ArgumentError

        try:
            url = make_url(given)
        except (ArgumentError, ValueError) as error:
            raise StoreError(f"{given!r} is not a store; give a file, or postgresql://user@host/database") from error
        if url.drivername in ("postgresql", "postgres", "postgresql+psycopg"):
            url = url.set(drivername="postgresql+psycopg")
            return cls(url.render_as_string(hide_password=True), None, url)
        if url.drivername in ("sqlite", "sqlite+pysqlite"):
            database = str(url.database)
            name = unquote(database.removeprefix("file://")) if "uri" in url.query else database
            return cls(name, database, url.set(drivername="sqlite"))
        raise StoreError(f"a store cannot be kept in {url.drivername}; give a file, or postgresql://user@host/database")

    @property
    def file(self) -> Path | None:
        """The file of a store; None for a store in a database server, and for URLs that SQLite itself interprets."""
        is_uri = self.url is not None and "uri" in self.url.query
        return None if self.database is None or is_uri else Path(self.database).absolute()

    @property
    def can_be_staged(self) -> bool:
        """Whether the store is a file that can be copied and replaced."""
        return self.file is not None and self.database not in ("", ":memory:")

    @property
    def is_on_network(self) -> bool:
        """Whether the store is a file on a network file system."""
        return self.can_be_staged and is_shared(Path(os.path.realpath(str(self.database))))


class Connections(ABC):
    """The connections to one store, which threads may share.

    Attributes
    ----------
    address : Address
    mark : str
        What stands for a value in a statement of the driver.
    errors : module
        The driver's module, which has its exceptions.
    """

    mark: str
    errors: Any

    def __init__(self, address: Address) -> None:
        self.address = address

    @contextmanager
    def transaction(self, *, writes: bool) -> Iterator[Rows]:
        """A transaction, which is committed at its end, or discarded by an exception.

        One that only reads has the state of the store at its begin, even while others write.
        """
        with self.translated(), self.borrowed() as driver:
            self._begin(driver, writes)
            yield Rows(driver, self.mark)
            driver.commit()

    def translated(self) -> AbstractContextManager[None]:
        """A context that raises database errors as :class:`StoreError`."""
        return explained(self.address.name, self.errors)

    @abstractmethod
    def borrowed(self) -> AbstractContextManager[Any]:
        """A driver's connection outside of a transaction; one that is begun and not committed is discarded."""

    @abstractmethod
    def _begin(self, driver: Any, writes: bool) -> None:
        """Begin a transaction."""

    @contextmanager
    def for_alembic(self) -> Iterator[Connection]:
        """A connection of SQLAlchemy in a transaction, for Alembic."""
        from sqlalchemy.exc import DBAPIError

        with self.translated():
            try:
                with self._alembic_engine().begin() as connection:
                    yield connection
            except DBAPIError as error:
                raise error.orig or error from error

    @abstractmethod
    def _alembic_engine(self) -> Engine:
        """What gives SQLAlchemy's connections."""

    @abstractmethod
    def close(self) -> None:
        """Close the connections."""


class FileConnections(Connections):
    """Connections to a store that SQLite opens; those that nobody uses are kept for the next transaction.

    With ``only_read``, a published file of a network file system is read without locks, which may be missing there.
    """

    mark = "?"
    errors = sqlite3

    def __init__(self, address: Address, busy_seconds: float = BUSY_SECONDS, *, only_read: bool = False) -> None:
        super().__init__(address)
        self._busy_seconds = busy_seconds
        self._only_read = only_read
        self._free: list[sqlite3.Connection] = []

    def _connect(self) -> sqlite3.Connection:
        filename, options = self._arguments()
        shared = {"timeout": self._busy_seconds, "check_same_thread": False}
        driver: sqlite3.Connection = sqlite3.connect(filename, **{**options, **shared})
        try:
            set_up(driver)
        except BaseException:
            driver.close()
            raise
        return driver

    def _arguments(self) -> tuple[str, Mapping[str, Any]]:
        """The name of the database and the options with which SQLite opens it."""
        database, url = str(self.address.database), self.address.url
        path = Path(database)
        if _is_frozen(path) or (self._only_read and self.address.file is not None and _is_published(path)):
            return f"{path.absolute().as_uri()}?mode=ro&immutable=1", {"uri": True}
        if url is None:
            return database if database == ":memory:" else os.path.abspath(database), {}
        (filename,), options = url.get_dialect()().create_connect_args(url)
        return filename, options

    @contextmanager
    def borrowed(self) -> Iterator[Any]:
        """A connection outside of a transaction; one that is begun and not committed is discarded."""
        try:
            driver = self._free.pop()
        except IndexError:
            driver = self._connect()
        try:
            yield driver
        finally:
            driver.rollback()
            self._free.append(driver)

    def choose_wal(self) -> None:
        """Choose WAL mode for a new store."""
        with self.translated(), self.borrowed() as driver:
            choose_wal(driver, self._busy_seconds)

    def _begin(self, driver: Any, writes: bool) -> None:
        if writes:
            begin_writing(driver, self._busy_seconds)
        else:
            driver.execute("BEGIN")

    def _alembic_engine(self) -> Engine:
        from sqlalchemy import NullPool, create_engine, event

        engine = create_engine("sqlite://", creator=self._connect, poolclass=NullPool)

        @event.listens_for(engine, "begin")
        def begin(connection: Connection) -> None:
            begin_writing(connection.connection.driver_connection, self._busy_seconds)

        return engine

    def close(self) -> None:
        """Close the connections."""
        while self._free:
            self._free.pop().close()


class ServerConnections(Connections):
    """Connections to a database of PostgreSQL, in SQLAlchemy's pool.

    Raises
    ------
    StoreError
        PostgreSQL's driver is not installed.
    """

    mark = "%s"

    def __init__(self, address: Address) -> None:
        import logging

        from sqlalchemy import create_engine
        from sqlalchemy.exc import NoSuchModuleError

        super().__init__(address)
        # Errors of a connection are raised, and the caller reports them. The pool also logs them with a traceback, for
        # example when SIGTERM or Ctrl-C arrives while it closes a connection; without a handler, Python would print
        # that to stderr.
        logging.getLogger("sqlalchemy.pool").addHandler(logging.NullHandler())
        assert address.url is not None
        try:
            # The pool looks whether a connection is alive: all end when the server is started again.
            self._engine = create_engine(address.url, pool_pre_ping=True)
        except (ModuleNotFoundError, NoSuchModuleError) as error:
            advice = "`pip install 'swsearch[postgresql]'` adds it"
            raise StoreError(f"{address.name} needs psycopg, which is not installed; {advice}") from error
        self.errors = self._engine.dialect.loaded_dbapi

    @contextmanager
    def borrowed(self) -> Iterator[Any]:
        """A connection outside of a transaction; the pool discards one that is begun and not committed."""
        connection = self._engine.raw_connection()
        try:
            yield connection.driver_connection
        finally:
            connection.close()

    def _begin(self, driver: Any, writes: bool) -> None:
        """Choose the isolation of the transaction that the driver begins with the first statement."""
        driver.isolation_level = None if writes else self.errors.IsolationLevel.REPEATABLE_READ

    def _alembic_engine(self) -> Engine:
        return self._engine.execution_options(isolation_level="READ COMMITTED")

    def close(self) -> None:
        """Close the connections."""
        self._engine.dispose()


def connections_of(
    address: Address, *, busy_seconds: float = BUSY_SECONDS, only_read: bool = False
) -> FileConnections | ServerConnections:
    """The connections to a store; none is opened yet.

    Raises
    ------
    StoreError
        PostgreSQL's driver is not installed.
    """
    if address.database is None:
        return ServerConnections(address)
    return FileConnections(address, busy_seconds, only_read=only_read)


def check_url(url: str) -> None:
    """Refuse the URL of a store that cannot be opened on this machine, before anything else is opened.

    Raises
    ------
    StoreError
        The URL is none of a store, or PostgreSQL's driver is not installed.
    """
    connections_of(Address.of(url)).close()  # this imports the driver, and connects to nothing


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
