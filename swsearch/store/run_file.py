"""How runs are written: :class:`RunWriter` and :class:`HitWriter`, and a store's file as a search opens it.

A search writes a run and its results, and reads nothing. The statements for that are plain, and :class:`RunFile` needs
Python's own driver alone: the import of SQLAlchemy takes 0.15 s, which is two fifths of a short command. What else is
asked of a store, and a store that is not an ordinary file, is left to :class:`~swsearch.store.store.Store`, whose
``runs`` and ``results`` write with the same classes.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swsearch.errors import RunNotFound, StoreError
from swsearch.file_registry import is_store_url
from swsearch.folders import is_shared
from swsearch.hits.result import QueryResult, RunInfo
from swsearch.hits.shards import AskedQueries, Failure
from swsearch.store.driver import (
    BUSY_SECONDS,
    RowRefused,
    Rows,
    begin_writing,
    check_place,
    create_tables,
    explained,
    identity_of,
    is_writable,
    register_store,
    set_up,
    tables_of,
)
from swsearch.store.rows import (
    FINISHED,
    HIT_COLUMNS,
    INTERRUPTED,
    SCHEMA,
    asked_values,
    claim_values,
    hit_values,
    query_values,
    run_values,
    storable,
    utc_now,
)
from swsearch.typing import Closeable

if TYPE_CHECKING:
    from swsearch.store.store import Store


class RunWriter:
    """Writes the records of runs."""

    def __init__(self, target: Store | RunFile) -> None:
        self._target = target

    def start(self, info: RunInfo, asked: AskedQueries | None = None) -> int:
        """Store a new run of this process with the queries that it is to search; returns its id."""
        with self._target.writing_rows() as rows:
            (run_id,) = insert_runs(rows, info, [asked])
        return run_id

    def note_asked(self, run_id: int, asked: AskedQueries) -> None:
        """Store which queries the run is to search, if they have become known or have changed."""
        self._change(run_id, **asked_values(asked))

    def note_remark(self, run_id: int, remark: str) -> None:
        """Store a remark on the run for the user."""
        self._change(run_id, remark=storable(remark))

    def note_statistics(self, run_id: int, sentence: str) -> None:
        """Append a sentence to the description of the run's statistics."""
        with self._target.writing_rows() as rows:
            appended = "UPDATE runs SET statistics = statistics || ? WHERE id = ?"
            if not rows.execute(appended, storable(f"; {sentence}"), run_id).rowcount:
                raise RunNotFound(str(run_id), self._target.name)

    def finish(self, run_id: int) -> None:
        """Mark a run as finished: every query has been added."""
        self._change(run_id, state=FINISHED, finished_at=utc_now())

    def interrupt(self, run_id: int) -> None:
        """Mark a run as interrupted: it was stopped before its last query."""
        self._change(run_id, state=INTERRUPTED)

    def _change(self, run_id: int, **values: Any) -> None:
        with self._target.writing_rows() as rows:
            if not rows.change("runs", run_id, values):
                raise RunNotFound(str(run_id), self._target.name)


class HitWriter:
    """Writes the queries of runs with their hits, and the queries that cannot be searched.

    A query and its hits are committed together, so every query in the store is complete, even after the process was
    killed.
    """

    def __init__(self, target: Store | RunFile) -> None:
        self._target = target

    def add(self, run_id: int, result: QueryResult) -> None:
        """Commit one query with all its hits, or nothing.

        Raises
        ------
        StoreError
            The run already has a query with this number, there is no such run, or the store cannot be written.
        """
        try:
            with self._target.writing_rows() as rows:
                insert_queries(rows, [(run_id, result)])
        except RowRefused as error:
            reason = self._reason(run_id, result.number)
            if reason is None:
                raise
            raise reason from error

    def add_failure(self, run_id: int, failed: Failure) -> None:
        """Store that a query of the run cannot be searched, with the reason, which replaces an earlier one.

        Raises
        ------
        StoreError
            There is no such run, or the store cannot be written.
        """
        try:
            with self._target.writing_rows() as rows:
                insert_failure(rows, run_id, failed)
        except RowRefused as error:
            raise RunNotFound(str(run_id), self._target.name) from error

    def _reason(self, run_id: int, number: int) -> StoreError | None:
        """Which constraint of the tables a query violated, if that is known."""
        with suppress(StoreError), self._target.writing_rows() as rows:
            if rows.execute("SELECT 1 FROM runs WHERE id = ?", run_id).fetchone() is None:
                return RunNotFound(str(run_id), self._target.name)
            if rows.execute("SELECT 1 FROM queries WHERE run_id = ? AND number = ?", run_id, number).fetchone():
                return StoreError(f"{self._target.name}: run {run_id} has its query {number} already")
        return None


def insert_runs(rows: Rows, info: RunInfo, asked: Iterable[AskedQueries | None]) -> list[int]:
    """Insert new runs of this process with one record, each with the queries it is to search; returns their ids."""
    values = {**run_values(info), **claim_values(), "started_at": utc_now()}
    return [rows.insert("runs", {**values, **asked_values(queries)}) for queries in asked]


def insert_queries(rows: Rows, results: Sequence[tuple[int, QueryResult]]) -> None:
    """Insert queries with all their hits, each with its run, in place of failures of these queries."""
    hits = []
    for run_id, result in results:
        _delete_failure(rows, run_id, result.number)
        query_id = rows.insert("queries", {"run_id": run_id, **query_values(result)})
        hits += [hit_values(query_id, hit) for hit in result.hits]
    if hits:
        rows.insert_all("hits", HIT_COLUMNS, hits)


def insert_failure(rows: Rows, run_id: int, failed: Failure) -> None:
    """Insert a query that cannot be searched, in place of an earlier failure of it."""
    _delete_failure(rows, run_id, failed.number)
    rows.insert_all("failures", ("run_id", "number", "reason"), [(run_id, failed.number, storable(failed.reason))])


def _delete_failure(rows: Rows, run_id: int, number: int) -> None:
    rows.execute("DELETE FROM failures WHERE run_id = ? AND number = ?", run_id, number)


# --- the store's file ---


class RunFile(Closeable):
    """A store in an SQLite file, as a search writes a new run to it; :meth:`opened` opens it. Threads may share it.

    Attributes
    ----------
    name : str
        The store in messages.
    runs : RunWriter
    results : HitWriter
    """

    def __init__(self, name: str, driver: sqlite3.Connection) -> None:
        self.name = name
        self.runs = RunWriter(self)
        self.results = HitWriter(self)
        self._driver = driver
        self._path = Path(name).absolute()
        self._identity = identity_of(self._path)
        self._turn = threading.Lock()

    @classmethod
    def opened(cls, target: str | os.PathLike[str]) -> RunFile | None:
        """The file of a store, which is created if there is none.

        None for what :class:`~swsearch.store.store.Store` must open, or refuse: a URL, a file on a network file system,
        of another program or version, or that cannot be read or written.

        Raises
        ------
        InputError
            The file is read or written by the same command for something else, or is inside a packed database.
        """
        name = os.fspath(target)
        if not _is_ordinary(name):
            return None
        register_store(name, create=True)
        with suppress(sqlite3.Error), ExitStack() as stack:  # whoever opens it in the other way says what is wrong
            driver = stack.enter_context(closing(sqlite3.connect(name, BUSY_SECONDS, check_same_thread=False)))
            set_up(driver)
            if _revision(driver) == SCHEMA:
                opened = cls(name, driver)
                stack.pop_all()
                return opened
        return None

    @cached_property
    def full(self) -> Store:
        """The same store with all that can be asked of it."""
        from swsearch.store.store import Store

        return Store(self.name)

    def close(self) -> None:
        """Close the connections."""
        if "full" in vars(self):
            self.full.close()
        self._driver.close()

    @contextmanager
    def writing_rows(self) -> Iterator[Rows]:
        """A context whose rows are committed at its end, all of them or none."""
        check_place(self.name, self._path, self._identity)
        with self._turn, explained(self.name):
            begin_writing(self._driver, BUSY_SECONDS)
            try:
                yield Rows(self._driver)
                self._driver.execute("COMMIT")
            finally:
                if self._driver.in_transaction:
                    self._driver.execute("ROLLBACK")
        check_place(self.name, self._path, self._identity)


def _is_ordinary(name: str) -> bool:
    """Whether a store is a file of this machine that can be written, or that can be created."""
    path = Path(name)
    try:
        is_file = not path.exists() or path.is_file()  # another process may create it at this moment
        return not is_store_url(name) and is_file and is_writable(path) and not is_shared(path.resolve())
    except (OSError, ValueError):  # no path at all
        return False


def _revision(driver: sqlite3.Connection) -> str | None:
    """The revision of a store, which is created in a file without tables; None for a file with other tables."""
    tables = tables_of(driver)
    if not tables:
        create_tables(driver, BUSY_SECONDS)
    elif "swsearch_schema" not in tables:
        return None
    found = driver.execute("SELECT version_num FROM swsearch_schema").fetchone()
    return None if found is None else str(found[0])


def open_run_store(
    target: str | os.PathLike[str], *, stage: str = "auto", notify: Callable[[str], None] | None = None
) -> Store | RunFile:
    """Open a store to write a run to it, and create it if there is none.

    Parameters and errors are those of :func:`swsearch.store.staged_store.open_store`.
    """
    opened = None if stage == "always" else RunFile.opened(target)
    if opened is not None:
        return opened
    from swsearch.store.staged_store import open_store

    return open_store(target, create=True, stage=stage, notify=notify)
