"""The connections of an open store, which its repositories share: :class:`Session`."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from sqlalchemy import Connection

from swsearch.arguments import flag, number, path
from swsearch.errors import StoreError
from swsearch.file_registry import registry
from swsearch.store.connections import (
    BUSY_SECONDS,
    display_name,
    file_of,
    identity_of,
    make_engine,
    reading,
    store_url,
    translated,
    writing,
)
from swsearch.store.schema import create_or_check
from swsearch.typing import Closeable
from swsearch.words import option


class Session(Closeable):
    """The connections of an open store; threads may share it, and each of its transactions has one of its own.

    Parameters
    ----------
    target, create, busy_seconds, only_read
        As for :class:`~swsearch.store.store.Store`, whose errors it raises.

    Attributes
    ----------
    name : str
        The store in messages.
    """

    def __init__(
        self,
        target: str | os.PathLike[str],
        *,
        create: bool = False,
        busy_seconds: float = BUSY_SECONDS,
        only_read: bool = False,
    ) -> None:
        if not path("target", target):
            raise StoreError(f"{option('target', target)}: the name of the store is empty")
        flag("create", create)
        number("busy_seconds", busy_seconds)
        flag("only_read", only_read)
        url = store_url(target)
        register_store(target, create=create)
        self.name = display_name(url)
        self._engine = make_engine(url, busy_seconds=busy_seconds, only_read=only_read)
        self._within = threading.local()
        self._busy_seconds = busy_seconds
        self._turn = threading.Lock()
        try:
            create_or_check(self._engine, create=create)
            self._file = file_of(url)
            self._identity = identity_of(self._file)
        except BaseException:
            self._engine.dispose()
            raise

    @property
    def is_sqlite(self) -> bool:
        """Whether the store is a file of SQLite, not a database of PostgreSQL."""
        return self._engine.dialect.name == "sqlite"

    def check_place(self) -> None:
        """Raise :class:`StoreError` if the file of the store was deleted, moved or replaced since it was opened.

        SQLite would silently continue to write to a deleted file.
        """
        if identity_of(self._file) != self._identity:
            problem = "it was deleted or replaced while it was in use; what was written to it since is lost"
            raise StoreError(f"{self.name}: {problem}; run the command again")

    def close(self) -> None:
        """Close the connections."""
        self._engine.dispose()

    def reading(self) -> AbstractContextManager[Connection]:
        """A connection that reads the current state of the store, even while others write."""
        return reading(self._engine)

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A connection in a transaction that commits completely or not at all.

        Inside of :meth:`whole`, it is the connection of that transaction. SQLite has one writer at a time. Threads
        therefore take turns before they ask SQLite, where those who wait look again after a pause.
        """
        if self.is_within_whole:
            with translated(self._engine.url):
                yield self._within.connection
            return
        self.check_place()
        has_turn = self.is_sqlite and self._turn.acquire(timeout=self._busy_seconds)
        try:
            with writing(self._engine) as connection:
                yield connection
        finally:
            if has_turn:
                self._turn.release()
        self.check_place()

    @property
    def is_within_whole(self) -> bool:
        """Whether the changes of this thread belong to a transaction of :meth:`whole`."""
        return getattr(self._within, "connection", None) is not None

    @contextmanager
    def whole(self) -> Iterator[None]:
        """A block in which the changes of this thread form one transaction, committed at the end of the block.

        Before that, they are invisible to others; an exception, or the death of the process, discards them. Other
        writers wait until the transaction ends.
        """
        with self.writing() as connection:
            self._within.connection = connection
            try:
                yield
            finally:
                self._within.connection = None

    def compact(self) -> None:
        """Return the space of deleted runs to the file system. PostgreSQL reuses it by itself (autovacuum).

        Raises
        ------
        StoreError
            Another process is writing, or the disk has no room for a second copy of what is stored.
        """
        if not self.is_sqlite:
            return
        self.check_place()
        with translated(self._engine.url), self._engine.connect() as connection:
            driver: Any = connection.connection.driver_connection
            driver.execute("VACUUM")  # not in a transaction, which SQLAlchemy would begin
            driver.execute("PRAGMA wal_checkpoint(TRUNCATE)")


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
