"""The store of hits: :class:`Store`, whose attributes are repositories that share its connections.

:mod:`swsearch.run` opens a :class:`Store`, starts or resumes a run, adds each query when its search ends, and finishes
the run. Reports of stored runs read its results. A service also uses the searches, the queue and the accounts.
"""

from __future__ import annotations

import os
from functools import cached_property
from typing import TYPE_CHECKING

from swsearch.store.connections import BUSY_SECONDS
from swsearch.store.models import HITS, QUERIES, RUNS
from swsearch.store.results import Results
from swsearch.store.runs import Runs
from swsearch.store.session import Session

if TYPE_CHECKING:
    from swsearch.store.accounts import Accounts
    from swsearch.store.queue import Queue
    from swsearch.store.searches import Searches
    from swsearch.store.views import ResultViews


class Store(Session):
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
        Queries and hits of runs.
    views : ResultViews
        Pages and single columns of results.
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
        super().__init__(target, create=create, busy_seconds=busy_seconds, only_read=only_read)
        self.runs = Runs(self)
        self.results = Results(self)

    # Most commands need none of these, and their modules take time to import.

    @cached_property
    def views(self) -> ResultViews:
        """Pages and single columns of results."""
        from swsearch.store.views import ResultViews

        return ResultViews(self)

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
