"""The store of hits: :class:`Store`, whose attributes are repositories that share its connections.

:mod:`swsearch.run` opens a store, starts or resumes a run, adds each query when its search ends, and finishes the run.
Reports of stored runs read its results. A service also uses the searches, the queue and the accounts.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from typing import TYPE_CHECKING

from swsearch.arguments import flag, number, path
from swsearch.errors import InputError, StoreError
from swsearch.options import option_of
from swsearch.store.connections import Address, FileConnections, connections_of
from swsearch.store.driver import BUSY_SECONDS, Rows, register_store
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
        address = Address.of(target)
        register_store(target, create=create)
        self.name = address.name
        self._connections = connections_of(address, busy_seconds=busy_seconds, only_read=only_read)
        self._within = threading.local()
        self._busy_seconds = busy_seconds
        self._turn = threading.Lock()
        try:
            create_or_check(self._connections, create=create)
            self._file = address.file
            self._identity = self._identity_of_file()
        except BaseException:
            self._connections.close()
            raise
        self.runs = Runs(self)
        self.results = Results(self)

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
        return isinstance(self._connections, FileConnections)

    def check_place(self) -> None:
        """Raise :class:`StoreError` if the file of the store was deleted, moved or replaced since it was opened.

        SQLite would silently continue to write to a deleted file.
        """
        if self._identity_of_file() != self._identity:
            problem = "it was deleted or replaced while it was in use; what was written to it since is lost"
            raise StoreError(f"{self.name}: {problem}; run the command again")

    def _identity_of_file(self) -> tuple[int, int] | None:
        """Device and inode of the file; None if there is none."""
        try:
            found = None if self._file is None else self._file.stat()
        except OSError:
            return None
        return None if found is None else (found.st_dev, found.st_ino)

    def close(self) -> None:
        """Close the connections."""
        self._connections.close()

    def reading(self) -> AbstractContextManager[Rows]:
        """A transaction that reads the current state of the store, even while others write."""
        return self._connections.transaction(writes=False)

    @contextmanager
    def writing(self) -> Iterator[Rows]:
        """A transaction that commits completely or not at all. Inside of :meth:`whole`, it is that transaction."""
        within: Rows | None = getattr(self._within, "rows", None)
        if within is not None:
            with self._connections.translated():
                yield within
            return
        with self.changing(), self._connections.transaction(writes=True) as rows:
            yield rows

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
    def whole(self) -> Iterator[None]:
        """A block in which the changes of this thread form one transaction, committed at the end of the block.

        Before that, they are invisible to others; an exception, or the death of the process, discards them. Other
        writers wait until the transaction ends.
        """
        with self.writing() as rows:
            self._within.rows = rows
            try:
                yield
            finally:
                self._within.rows = None

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
        with self._connections.translated(), self._connections.borrowed() as driver:
            driver.execute("VACUUM")
            driver.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def size(self) -> tuple[int, int]:
        """Bytes of the runs with their indexes, and bytes among them that are free for later runs.

        PostgreSQL does not say how much is free; the second number is then 0.
        """
        with self.reading() as rows:
            if not self.is_sqlite:
                sizes = " + ".join(f"pg_total_relation_size('{name}')" for name in ("runs", "queries", "hits"))
                (n_bytes,) = rows.execute(f"SELECT {sizes}").fetchone()
                return n_bytes, 0
            page_size, n_pages, n_free = (
                rows.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_size", "page_count", "freelist_count")
            )
            return page_size * n_pages, page_size * n_free


def is_staged(target: str | os.PathLike[str], stage: str) -> bool:
    """Whether a store is to be staged (:mod:`swsearch.store.staged_store`); ``stage`` is that of :func:`open_store`."""
    option_of("stage_store").check(stage)
    address = Address.of(target)
    if stage == "always" and not address.can_be_staged:
        raise InputError(f"--stage-store always: {address.name} is not a file; leave the option out")
    return stage == "always" or (stage == "auto" and address.is_on_network)


def open_store(
    target: str | os.PathLike[str],
    *,
    create: bool = False,
    stage: str = "auto",
    notify: Callable[[str], None] | None = None,
) -> Store:
    """Open a store to write to it; close it, or use it as a context manager.

    Parameters
    ----------
    target, create
        As for :class:`Store`.
    stage : str
        ``auto`` to stage a file that is on a network file system, ``always`` to stage every file, ``never`` to write
        to the file itself.
    notify : callable, optional
        Is called with a line if another process of this machine has staged the store, before this one waits for it. By
        default, the line is printed on stderr.

    Raises
    ------
    InputError
        ``stage`` has another value, or is ``always`` for a store that is not a file.
    StoreError
        The store cannot be opened.
    """
    if not is_staged(target, stage):
        return Store(target, create=create)
    from swsearch.store.staged_store import StagedStore

    return StagedStore(target, create=create, notify=notify)
