"""The store of hits: :class:`Store`, whose attributes are repositories that share its connections.

:mod:`swsearch.run` opens a store, starts or resumes a run, adds each query when its search ends, and finishes the run.
Reports of stored runs read its results. A service also uses the searches, the queue and the accounts.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, PoolProxiedConnection

from swsearch.arguments import flag, number, path
from swsearch.errors import StoreError
from swsearch.store.connections import (
    display_name,
    file_of,
    file_rows,
    make_engine,
    reading,
    rows_of,
    store_url,
    translated,
    writing,
)
from swsearch.store.driver import BUSY_SECONDS, Rows, begin_writing, check_place, identity_of, register_store
from swsearch.store.models import HITS, QUERIES, RUNS
from swsearch.store.results import Results
from swsearch.store.runs import Runs
from swsearch.store.schema import create_or_check
from swsearch.typing import Closeable
from swsearch.words import option

if TYPE_CHECKING:
    from swsearch.store.accounts import Accounts
    from swsearch.store.queue import Queue
    from swsearch.store.searches import Searches


class Store(Closeable):
    """Runs, queries and hits in one SQLite file or PostgreSQL database, and the searches of a service.

    Threads may share a store; each call of its repositories is one transaction on a separate connection. Several
    processes may write to one file; each waits for the others. The store must be closed or used as a context manager;
    the returned records remain valid.

    Parameters
    ----------
    target : str or path
        A file, or a URL (:mod:`swsearch.store.connections`).
    create : bool
        Create the store if there is none; otherwise a missing store is an error.
    busy_seconds : float
        Longest time to wait for another process that writes to the same file, in seconds.
    only_read : bool
        Whether this object reads only, so that a store on a network file system needs no locks
        (:mod:`swsearch.store.staged_store`).

    Attributes
    ----------
    name : str
        The store in messages: its file, or its URL without the password.
    runs : Runs
    results : Results
        Queries and hits of runs, and pages of them.
    searches : Searches
        What was submitted to a service.
    queue : Queue
        The queries that the workers of a service are to search.
    accounts : Accounts
        The tokens of a service's owners, and links to searches.

    Raises
    ------
    StoreError
        There is no store and ``create`` is False, or it cannot be opened, read or written.
    SchemaOutdated
        Another version of the program wrote it.
    InputError
        The file is read or written by the same command for something else, or is inside a packed database.
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
        self._free: list[PoolProxiedConnection] = []
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
        self.runs = Runs(self)
        self.results = Results(self)

    @property
    def full(self) -> Store:
        """The store itself; a :class:`~swsearch.store.run_file.RunFile` opens it when it is needed."""
        return self

    # Most commands need none of these, and their modules take time to import.

    @cached_property
    def searches(self) -> Searches:
        """What was submitted to a service."""
        from swsearch.store.searches import Searches

        return Searches(self)

    @cached_property
    def queue(self) -> Queue:
        """The queries that the workers of a service are to search."""
        from swsearch.store.queue import Queue

        return Queue(self)

    @cached_property
    def accounts(self) -> Accounts:
        """The tokens of a service's owners, and links to searches."""
        from swsearch.store.accounts import Accounts

        return Accounts(self)

    @property
    def is_sqlite(self) -> bool:
        """Whether the store is a file of SQLite, not a database of PostgreSQL."""
        return self._engine.dialect.name == "sqlite"

    def check_place(self) -> None:
        """Raise :class:`StoreError` if the file of the store was deleted, moved or replaced since it was opened.

        SQLite would silently continue to write to a deleted file.
        """
        check_place(self.name, self._file, self._identity)

    def close(self) -> None:
        """Close the connections."""
        while self._free:
            self._free.pop().close()
        self._engine.dispose()

    def reading(self) -> AbstractContextManager[Connection]:
        """A connection that reads the current state of the store, even while others write."""
        return reading(self._engine)

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A connection in a transaction that commits completely or not at all.

        Inside of :meth:`whole`, it is the connection of that transaction.
        """
        if self.is_within_whole:
            with translated(self._engine):
                yield self._within.connection
            return
        with self.changing(), writing(self._engine) as connection:
            yield connection

    @contextmanager
    def changing(self) -> Iterator[None]:
        """The turn of this thread to change the store.

        SQLite has one writer at a time. Threads therefore take turns before they ask SQLite, where those who wait look
        again after a pause.
        """
        self.check_place()
        has_turn = self.is_sqlite and self._turn.acquire(timeout=self._busy_seconds)
        try:
            yield
        finally:
            if has_turn:
                self._turn.release()
        self.check_place()

    @contextmanager
    def reading_rows(self) -> Iterator[Rows]:
        """As :meth:`reading`, for plain statements."""
        if self.is_sqlite:
            with file_rows(self._engine, self._free, lambda driver: driver.execute("BEGIN")) as rows:
                yield rows
        else:
            with self.reading() as connection:
                yield rows_of(connection)

    @contextmanager
    def writing_rows(self) -> Iterator[Rows]:
        """As :meth:`writing`, for plain statements."""
        if self.is_sqlite and not self.is_within_whole:
            begin = partial(begin_writing, busy_seconds=self._busy_seconds)
            with self.changing(), file_rows(self._engine, self._free, begin) as rows:
                yield rows
        else:
            with self.writing() as connection:
                yield rows_of(connection)

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
        with translated(self._engine), self._engine.connect() as connection:
            driver: Any = connection.connection.driver_connection
            driver.execute("VACUUM")  # not in a transaction, which SQLAlchemy would begin
            driver.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def size(self) -> tuple[int, int]:
        """Bytes of the runs with their indexes, and bytes among them that are free for later runs.

        PostgreSQL does not say how much is free; the second number is then 0.
        """
        with self.reading() as connection:
            if not self.is_sqlite:
                sizes = " + ".join(f"pg_total_relation_size('{table.name}')" for table in (RUNS, QUERIES, HITS))
                return connection.exec_driver_sql(f"SELECT {sizes}").scalar_one(), 0
            page_size, n_pages, n_free = (
                connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()
                for name in ("page_size", "page_count", "freelist_count")
            )
            return page_size * n_pages, page_size * n_free
