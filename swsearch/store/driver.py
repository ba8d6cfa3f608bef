"""What a store asks of the drivers of its databases: SQLite's settings and locks, rows by plain statements, and what
the errors mean.

SQLite is used in WAL mode (readers and one writer do not block each other) with ``synchronous=NORMAL``: if a process is
killed, no committed data is lost; a power failure may lose the last commits but never damages the file. A writer takes
the lock when its transaction begins, and waits for another writer up to :data:`BUSY_SECONDS`.

This module needs no SQLAlchemy, so that a search can be stored without it (:mod:`swsearch.store.connections`).
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from swsearch.errors import StoreError, SwSearchError
from swsearch.file_registry import registry
from swsearch.store.rows import reader_of, utc_now
from swsearch.words import option

BUSY_SECONDS: Final = 60.0
"""Longest time that a writer waits for another, in seconds."""

_FIRST_PAUSE: Final = 0.0002
_LONGEST_PAUSE: Final = 0.005
"""Seconds between two attempts to become SQLite's writer."""
_UNKNOWN_NAME: Final = ("42703", "42P01")
"""PostgreSQL's codes for a column and for a table that does not exist."""
_DAMAGED: Final = "the database is damaged; `sqlite3 FILE .recover` may save what is left"


class RowRefused(StoreError):
    """A row that a constraint of the tables does not allow."""


# --- SQLite ---


def set_up(driver: Any) -> None:
    """Give a new connection to SQLite the settings of stores."""
    driver.isolation_level = None  # statements begin transactions, not the driver
    driver.execute("PRAGMA foreign_keys = ON")
    driver.execute("PRAGMA synchronous = NORMAL")


def begin_writing(driver: Any, busy_seconds: float) -> None:
    """Begin a transaction of SQLite's writer, when no other process has one.

    SQLite itself looks for the end of the other transaction after pauses of 1, 2, 5 and up to 100 ms. Two processes
    that write a hundred times a second, such as those of a service, would pause most of the time.
    """
    driver.execute("PRAGMA busy_timeout = 0")
    try:
        _repeat_while_busy(driver, "BEGIN IMMEDIATE", busy_seconds)
    finally:
        driver.execute(f"PRAGMA busy_timeout = {round(busy_seconds * 1000)}")


def choose_wal(driver: Any, busy_seconds: float) -> None:
    """Choose WAL mode, which is stored in the file, and cannot be chosen inside a transaction.

    If several processes create a store at once, SQLite reports at once that it is busy, without waiting for the others.
    """
    _repeat_while_busy(driver, "PRAGMA journal_mode = WAL", busy_seconds)


def _repeat_while_busy(driver: Any, statement: str, busy_seconds: float) -> None:
    ends = time.monotonic() + busy_seconds
    pause = _FIRST_PAUSE
    while True:
        try:
            driver.execute(statement)
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > ends:
                raise
        time.sleep(pause)
        pause = min(_LONGEST_PAUSE, 1.5 * pause)


# --- files ---


def is_writable(path: Path) -> bool:
    """Whether a store and SQLite's side files can be written; the store need not exist."""
    return os.access(path.parent, os.W_OK) and (not path.exists() or os.access(path, os.W_OK))


def register_store(target: str | os.PathLike[str], *, create: bool) -> None:
    """Tell the registry of files that this store is opened.

    Raises
    ------
    InputError
        The file is read or written by the same command for something else, or is inside a packed database.
    """
    if create:
        registry().write_store("", os.fspath(target))
    else:
        registry().keep_store(os.fspath(target))


# --- rows ---


def marks(n: int) -> str:
    """The marks of a list of values in a statement.

    >>> marks(3)
    '(?, ?, ?)'
    """
    return f"({', '.join('?' * n)})"


def marks_of_pairs(n: int) -> str:
    """The marks of a list of pairs.

    >>> marks_of_pairs(2)
    '(VALUES (?, ?), (?, ?))'
    """
    return f"(VALUES {', '.join([marks(2)] * n)})"


class Rows:
    """Reads and writes rows in an open transaction by plain statements.

    Parameters
    ----------
    driver : sqlite3.Connection or psycopg.Connection
    mark : str
        What stands for a value in a statement of this driver: ``?`` or ``%s``.
    """

    def __init__(self, driver: Any, mark: str = "?") -> None:
        self._driver = driver
        self._mark = mark

    def execute(self, statement: str, *values: Any) -> Any:
        """The cursor of a statement, in which ``?`` stands for each value."""
        return self._driver.execute(statement.replace("?", self._mark), [self._stored(value) for value in values])

    def records(
        self, table: str, rest: str, *values: Any, more: Mapping[str, str] = MappingProxyType({})
    ) -> Iterator[Any]:
        """The checked rows of a table, one at a time, with their values by the names of the columns.

        Parameters
        ----------
        table : str
        rest : str
            What follows the name of the table in the statement: conditions, order and limits.
        *values
            Those of the marks in ``rest``.
        more : mapping of str to str
            Further values of a row by their names, each an expression, which are not checked.

        Raises
        ------
        ValueError
            A value has no place in its column.
        """
        columns, read = reader_of(table, tuple(more))
        expressions = [columns, *(f"{expression} AS {name}" for name, expression in more.items())]
        return map(read, self.execute(f"SELECT {', '.join(expressions)} FROM {table} {rest}", *values))

    def change_all(self, statement: str, values: Sequence[Sequence[Any]]) -> None:
        """Execute a statement with each of some lists of values."""
        if values:
            stored = [[self._stored(value) for value in one] for one in values]
            cursor = self._driver.cursor()
            cursor.executemany(statement.replace("?", self._mark), stored)
            cursor.close()

    @property
    def in_sqlite(self) -> bool:
        """Whether the transaction is one of SQLite, not of PostgreSQL."""
        return self._mark == "?"

    @property
    def lock(self) -> str:
        """The end of a SELECT of rows that the transaction will change; SQLite's writer is alone in any case."""
        return "" if self.in_sqlite else " FOR UPDATE"

    def now(self) -> datetime:
        """The time by the clock that leases are measured with: the server's, or that of the store's only host."""
        if self.in_sqlite:
            return utc_now()
        found: datetime = self.execute("SELECT clock_timestamp()").fetchone()[0]
        return found

    def tables(self) -> set[str]:
        """The tables of an SQLite file, without those of SQLite itself."""
        names = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT GLOB 'sqlite_*'"
        return {name for (name,) in self.execute(names)}

    def has_table(self, table: str) -> bool:
        """Whether there is a table of this name."""
        if self.in_sqlite:
            return table in self.tables()
        # Unlike to_regclass, this also finds a table that another process has created since the transaction began.
        visible = "SELECT 1 FROM pg_class WHERE relname = ? AND relkind = 'r' AND pg_table_is_visible(oid)"
        return self.execute(visible, table).fetchone() is not None

    def insert(self, table: str, values: Mapping[str, Any]) -> int:
        """Insert a row into a table that numbers its rows; returns its number."""
        statement = f"INSERT INTO {table} ({', '.join(values)}) VALUES {marks(len(values))} RETURNING id"
        inserted = self.execute(statement, *values.values())
        return int(inserted.fetchone()[0])

    def insert_all(self, table: str, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
        """Insert rows whose values are numbers and texts, by the driver's fastest method.

        PostgreSQL: ``COPY`` took 14 µs per hit, ``INSERT`` 50 µs.
        """
        if self.in_sqlite:
            self._driver.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES {marks(len(columns))}", rows)
            return
        with self._driver.cursor() as cursor, cursor.copy(f"COPY {table} ({', '.join(columns)}) FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)

    def change(self, table: str, number: int, values: Mapping[str, Any]) -> bool:
        """Change values of the row with this number; returns whether there is one."""
        changes = ", ".join(f"{column} = ?" for column in values)
        return bool(self.execute(f"UPDATE {table} SET {changes} WHERE id = ?", *values.values(), number).rowcount)

    def _stored(self, value: Any) -> Any:
        """A value as the driver takes it; SQLite has no type for times, which are texts in UTC."""
        if isinstance(value, datetime) and self.in_sqlite:
            return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
        return value


# --- errors ---


@contextmanager
def explained(name: str, driver: Any = sqlite3) -> Iterator[None]:
    """A context that raises a driver's errors as :class:`StoreError`, with one line on the problem and its remedy.

    ``name`` is the store in messages, ``driver`` a module with the exceptions of Python's DB-API.
    """
    try:
        yield
    except driver.IntegrityError as error:
        raise RowRefused(message(error, name)) from error
    except driver.Error as error:
        raise StoreError(message(error, name)) from error
    except UnicodeDecodeError as error:  # raised by the driver for a message of SQLite that quotes damaged bytes
        raise StoreError(f"{name}: {_DAMAGED}") from error
    except (ValueError, TypeError, RecursionError) as error:  # raised by the conversion of columns to values
        if isinstance(error, SwSearchError):
            raise
        problem = f"the store is damaged, or another program wrote to it: {error}"
        raise StoreError(f"{name}: {problem}".splitlines()[0]) from error


def message(error: BaseException | None, name: str) -> str:
    """The message for an error of a driver."""
    if str(getattr(error, "sqlite_errorname", "")).startswith("SQLITE_NOTADB"):
        return f"{name} is not an SQLite database; choose another file with {option('store')}"
    return f"{name}: {_explain(error, name)}"


def _explain(error: BaseException | None, name: str) -> str:
    """What went wrong, and what to do."""
    code = str(getattr(error, "sqlite_errorname", ""))
    first_line = next((line.strip() for line in str(error).splitlines() if line.strip()), "no message")
    folder = Path(name).parent
    if code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return "another process is writing to it and does not finish; try again when it is done"
    if code.startswith("SQLITE_FULL"):
        return "the disk is full; nothing of this query was stored, what was stored before is intact; free some space"
    if code.startswith("SQLITE_READONLY"):
        return f"it cannot be written to; change its permissions, or choose another file with {option('store')}"
    if code.startswith("SQLITE_CANTOPEN"):
        if not folder.is_dir():
            return f"the folder {folder} does not exist; create it, or choose another file with {option('store')}"
        if Path(f"{name}-wal").exists():
            advice = "copy both to a folder where you can write, or ask the owner of the store to list its runs once"
            return f"the last writes are in the log {name}-wal, which cannot be read here; {advice}"
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
