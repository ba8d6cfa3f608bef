"""The store of hits: stores the records of runs and returns them unchanged.

:mod:`swsearch.run` opens a :class:`HitStore`, starts or resumes a run, adds each query when its search ends, and
finishes the run. Reports of stored runs read :meth:`HitStore.queries`.

A query and its hits are committed together, so every query in the store is complete, even after the process was killed.
``committed`` lists these queries, so that the run can be resumed. A run also stores which queries it is to search and
which of them cannot be searched, so that the missing queries are known exactly (``missing``).
"""

from __future__ import annotations

import copy
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any, Final, Self

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from swsearch.arguments import flag, number, path
from swsearch.closeable import Closeable
from swsearch.errors import RunNotFound, RunTaken, StoreError
from swsearch.file_registry import registry
from swsearch.hits.result import QueryResult, RunInfo
from swsearch.hits.shards import AskedQueries, FailedQuery, Shard
from swsearch.sequences.headers import names_of
from swsearch.sequences.record import split_header
from swsearch.store.models import FAILURES, FINISHED, HITS, INTERRUPTED, QUERIES, RUNS
from swsearch.store.records import (
    StoredRun,
    asked_values,
    claim_values,
    hit_of,
    hit_values,
    query_result,
    query_values,
    run_values,
    state_of,
    stored_run,
    utc_now,
)
from swsearch.store.schema import create_or_check
from swsearch.store.session import (
    BUSY_SECONDS,
    StorePlace,
    display_name,
    insert_rows,
    insert_with_ids,
    make_engine,
    reading,
    store_url,
    translated,
    writing,
)
from swsearch.store.workers import Worker
from swsearch.words import option, quoted

_DELETE_FAILURES: Final = delete(FAILURES).where(
    FAILURES.c.run_id == bindparam("run"), FAILURES.c.number == bindparam("query")
)
_LIST_ORDER = (HITS.c.rank, HITS.c.hsp)

LATEST: Final = "latest"
"""The name of the newest finished run, or of the newest run if none is finished."""


class HitStore(Closeable):
    """Runs, queries and hits in one SQLite file or PostgreSQL database.

    Threads may share a store; each call is one transaction on a separate connection. Several processes may write to
    one file; each waits for the others. The store must be closed or used as a context manager; the returned records
    remain valid.

    Parameters
    ----------
    target : str or path
        A file, or a URL (:mod:`swsearch.store.session`).
    create : bool
        Create the store if there is none; otherwise a missing store is an error.
    busy_seconds : float
        Longest time to wait for another process that writes to the same file, in seconds.
    only_read : bool
        Whether this object reads only, so that a store on a network file system needs no locks
        (:mod:`swsearch.store.staging`).

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
        if create:
            registry().write_store("", os.fspath(target))
        else:
            registry().keep_store(os.fspath(target))
        self.name = display_name(url)
        self._engine = make_engine(url, busy_seconds=busy_seconds, only_read=only_read)
        self._whole: Connection | None = None
        try:
            create_or_check(self._engine, create=create)
            self._place = StorePlace(url)
        except BaseException:
            self._engine.dispose()
            raise

    def check_place(self) -> None:
        """Raise :class:`StoreError` if the file of the store was deleted, moved or replaced since it was opened."""
        self._place.check()

    def close(self) -> None:
        """Close the connections."""
        self._engine.dispose()

    # Writing

    @contextmanager
    def whole(self) -> Iterator[Self]:
        """A store whose changes form one transaction: they are committed together at the end of the ``with`` statement.

        Before that, they are invisible to others; an exception, or the death of the process, discards them. Other
        writers wait until the transaction ends.
        """
        with self._writing() as connection:
            within = copy.copy(self)
            within._whole = connection
            yield within

    def start_run(self, info: RunInfo, asked: AskedQueries | None = None) -> int:
        """Store a new run of this process with the queries that it is to search; returns its id."""
        with self._writing() as connection:
            values = {**run_values(info), **asked_values(asked), **claim_values(), "started_at": utc_now()}
            return int(connection.execute(insert(RUNS).returning(RUNS.c.id), values).scalar_one())

    def add_query(self, run_id: int, result: QueryResult) -> None:
        """Commit one query with all its hits, or nothing.

        Raises
        ------
        StoreError
            The run already has a query with this number, there is no such run, or the store cannot be written.
        """
        try:
            with self._writing() as connection:
                insert_query(connection, run_id, result)
        except StoreError as error:
            if isinstance(error.__cause__, IntegrityError) and self._whole is None:
                self._explain_refusal(run_id, result, error)
            raise

    def _explain_refusal(self, run_id: int, result: QueryResult, error: StoreError) -> None:
        """Which constraint of the tables a query violated."""
        with reading(self._engine) as connection:
            if connection.execute(select(RUNS.c.id).where(RUNS.c.id == run_id)).first() is None:
                raise RunNotFound(str(run_id), self.name) from error
        if result.number in self.committed(run_id):
            raise StoreError(f"{self.name}: run {run_id} has its query {result.number} already") from error

    def add_failure(self, run_id: int, failed: FailedQuery) -> None:
        """Store that a query of the run cannot be searched, with the reason, which replaces an earlier one.

        Raises
        ------
        StoreError
            There is no such run, or the store cannot be written.
        """
        try:
            with self._writing() as connection:
                connection.execute(_DELETE_FAILURES, {"run": run_id, "query": failed.number})
                values = {"run_id": run_id, "number": failed.number, "reason": failed.reason}
                connection.execute(insert(FAILURES), values)
        except StoreError as error:
            if isinstance(error.__cause__, IntegrityError):
                raise RunNotFound(str(run_id), self.name) from error
            raise

    def note_asked(self, run_id: int, asked: AskedQueries) -> None:
        """Store which queries the run is to search, if they have become known or have changed."""
        self._set_values(run_id, **asked_values(asked))

    def note_remark(self, run_id: int, remark: str) -> None:
        """Store a remark on the run for the user."""
        self._set_values(run_id, remark=remark)

    def finish_run(self, run_id: int) -> None:
        """Mark a run as finished: every query has been added."""
        self._set_values(run_id, state=FINISHED, finished_at=utc_now())

    def interrupt_run(self, run_id: int) -> None:
        """Mark a run as interrupted: it was stopped before its last query."""
        self._set_values(run_id, state=INTERRUPTED)

    def resume_run(self, run_id: int, seen: StoredRun | None = None) -> None:
        """Mark a run as resumed by this process. Its failures are deleted, because they will be found again.

        Raises
        ------
        RunTaken
            Another process has resumed or ended the run since it was read as ``seen``.
        """
        with self._writing() as connection:
            found = select(RUNS.c.state, RUNS.c.host, RUNS.c.process, RUNS.c.process_began)
            now: Any = connection.execute(found.where(RUNS.c.id == run_id).with_for_update()).first()
            if now is None:
                raise RunNotFound(str(run_id), self.name)
            if seen is not None:
                worker = Worker(now.host, now.process, now.process_began)
                if worker != seen.worker or state_of(now, worker) != seen.state:
                    raise RunTaken(f"run {run_id} of {self.name} has just been taken up by {worker}; try again")
            values = {**claim_values(), "finished_at": None}
            connection.execute(update(RUNS).where(RUNS.c.id == run_id).values(**values))
            connection.execute(delete(FAILURES).where(FAILURES.c.run_id == run_id))

    def note_statistics(self, run_id: int, sentence: str) -> None:
        """Append a sentence to the description of the run's statistics."""
        with self._writing() as connection:
            found = connection.execute(select(RUNS.c.statistics).where(RUNS.c.id == run_id)).scalar()
            if found is None:
                raise RunNotFound(str(run_id), self.name)
            connection.execute(update(RUNS).where(RUNS.c.id == run_id).values(statistics=f"{found}; {sentence}"))

    def _set_values(self, run_id: int, **values: Any) -> None:
        with self._writing() as connection:
            changed = connection.execute(update(RUNS).where(RUNS.c.id == run_id).values(**values))
            if changed.rowcount == 0:
                raise RunNotFound(str(run_id), self.name)

    def delete_run(self, run: str | int, *, force: bool = False) -> int:
        """Delete one run; :meth:`delete_runs` describes the parameters and the errors. Returns its id."""
        return self.delete_runs([run], force=force)[0]

    def delete_runs(self, runs: Iterable[str | int], *, force: bool = False) -> list[int]:
        """Delete runs with their queries and hits, or none of them; returns their ids.

        SQLite reuses the space for later runs.

        Parameters
        ----------
        runs : iterable of str or int
            Ids, or ``latest``. ``latest`` requires that the newest run is also the newest finished one, or that none is
            finished. One that is named twice is deleted once.
        force : bool
            Whether to delete a run even if a process works on it or may work on it. That process then ends with an
            error.

        Raises
        ------
        RunNotFound
            There is no such run.
        StoreError
            A process works on a run or may work on it, or ``latest`` is ambiguous.
        """
        with self._writing() as connection:
            run_ids = list(dict.fromkeys(self._deletable(connection, run, force=force) for run in runs))
            for run_id in run_ids:
                connection.execute(delete(RUNS).where(RUNS.c.id == run_id))
            return run_ids

    def _deletable(self, connection: Connection, run: str | int, *, force: bool) -> int:
        """Return the id of a run that may be deleted."""
        run_id = self._find(connection, run)
        newest = stored_run(connection.execute(_select_runs().order_by(RUNS.c.id.desc()).limit(1)).one())
        if run == LATEST and run_id != newest.id:
            known = f"the newest run of {self.name} is {newest.id} ({_at_work(newest)})"
            raise StoreError(f"{known}, its newest finished one {run_id}; give the number of the run to delete")
        stored = stored_run(connection.execute(_select_runs().where(RUNS.c.id == run_id)).one())
        if stored.is_at_work and not force:
            advice = f"stop that process first, or delete the run all the same with `runs delete {run_id} --force`"
            raise StoreError(f"run {run_id} of {self.name} is not deleted: {_at_work(stored)}; {advice}")
        return run_id

    def compact(self) -> None:
        """Return the space of deleted runs to the file system. PostgreSQL reuses it by itself (autovacuum).

        Raises
        ------
        StoreError
            Another process is writing, or the disk has no room for a second copy of what is stored.
        """
        if self._engine.dialect.name != "sqlite":
            return
        self._place.check()
        with translated(self._engine.url), self._engine.connect() as connection:
            driver: Any = connection.connection.driver_connection
            driver.execute("VACUUM")  # not in a transaction, which SQLAlchemy would begin
            driver.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    # Reading

    def size(self) -> tuple[int, int]:
        """Bytes of the runs with their indexes, and bytes among them that are free for later runs.

        PostgreSQL does not say how much is free; the second number is then 0.
        """
        with reading(self._engine) as connection:
            if self._engine.dialect.name != "sqlite":
                sizes = " + ".join(f"pg_total_relation_size('{table.name}')" for table in (RUNS, QUERIES, HITS))
                return connection.exec_driver_sql(f"SELECT {sizes}").scalar_one(), 0
            page_size, n_pages, n_free = (
                connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()
                for name in ("page_size", "page_count", "freelist_count")
            )
            return page_size * n_pages, page_size * n_free

    def runs(self) -> list[StoredRun]:
        """All runs, oldest first."""
        with reading(self._engine) as connection:
            return [stored_run(row) for row in connection.execute(_select_runs().order_by(RUNS.c.id))]

    def run(self, run: str | int = "latest") -> StoredRun:
        """One run, by its id or as ``latest``: the newest finished one, or the newest if none is finished.

        Raises
        ------
        RunNotFound
            There is no such run.
        """
        with reading(self._engine) as connection:
            run_id = self._find(connection, run)
            found = stored_run(connection.execute(_select_runs().where(RUNS.c.id == run_id)).one())
        registry().read_sources(found.info.sources)
        return found

    def newest_run(self) -> StoredRun:
        """The run that was started last, whatever its state.

        Raises
        ------
        RunNotFound
            The store has no run.
        """
        with reading(self._engine) as connection:
            row = connection.execute(_select_runs().order_by(RUNS.c.id.desc()).limit(1)).first()
            if row is None:
                raise RunNotFound(LATEST, self.name)
            return stored_run(row)

    def queries(self, run: str | int = "latest") -> Iterator[QueryResult]:
        """Results of a run's committed queries, in order of their numbers, one at a time.

        The results are those in the store when the first one was read. Only one query with its hits is in memory at a
        time.

        Raises
        ------
        RunNotFound
            There is no such run.
        """
        with reading(self._engine) as connection:
            run_id = self._find(connection, run)
            of_run = select(QUERIES.c.id).where(QUERIES.c.run_id == run_id).order_by(QUERIES.c.number)
            for query_id in connection.execute(of_run).scalars().all():
                row = connection.execute(select(QUERIES).where(QUERIES.c.id == query_id)).one()
                hits = connection.execute(select(HITS).where(HITS.c.query_id == query_id).order_by(*_LIST_ORDER))
                yield query_result(row, tuple(hit_of(hit, row.header) for hit in hits))

    def query(self, run_id: int, number: int) -> QueryResult:
        """The result of one committed query.

        Raises
        ------
        StoreError
            The run has no query with this number.
        """
        with reading(self._engine) as connection:
            wanted = (QUERIES.c.run_id == run_id) & (QUERIES.c.number == number)
            row = connection.execute(select(QUERIES).where(wanted)).first()
            if row is None:
                raise StoreError(f"{self.name}: run {run_id} has no query {number}")
            hits = connection.execute(select(HITS).where(HITS.c.query_id == row.id).order_by(*_LIST_ORDER))
            return query_result(row, tuple(hit_of(hit, row.header) for hit in hits))

    def find_queries(self, run_id: int, identifiers: Collection[str]) -> list[int]:
        """Numbers of a run's committed queries that have one of these identifiers or accessions.

        The names of a query are those of a subject with its header (:func:`swsearch.filters.subject_filters.names_of`).

        Raises
        ------
        StoreError
            No query has one of the identifiers.
        """
        wanted = set(identifiers)
        with reading(self._engine) as connection:
            headers = select(QUERIES.c.number, QUERIES.c.header).where(QUERIES.c.run_id == run_id)
            rows = connection.execute(headers.order_by(QUERIES.c.number)).all()
        names = {row.number: set(names_of(split_header(row.header)[0])) for row in rows}
        known = set[str]().union(*names.values())
        for name in sorted(wanted - known):
            near = get_close_matches(name, sorted(known), n=1)
            similar = f"; {quoted(near[0])} is similar" if near else ""
            raise StoreError(f"{self.name}: run {run_id} has no query {quoted(name)}{similar}")
        return [number for number, names_of_query in names.items() if names_of_query & wanted]

    def committed(self, run_id: int) -> dict[int, str]:
        """Numbers of a run's committed queries, each with its :func:`query_digest`."""
        with reading(self._engine) as connection:
            found = select(QUERIES.c.number, QUERIES.c.digest).where(QUERIES.c.run_id == run_id)
            return {row.number: row.digest for row in connection.execute(found.order_by(QUERIES.c.number))}

    def failures(self, run_id: int) -> list[FailedQuery]:
        """The queries of a run that could not be searched, in the order of their numbers."""
        with reading(self._engine) as connection:
            found = select(FAILURES.c.number, FAILURES.c.reason).where(FAILURES.c.run_id == run_id)
            return [
                FailedQuery(row.number, row.reason) for row in connection.execute(found.order_by(FAILURES.c.number))
            ]

    def missing(self, run_id: int) -> list[int]:
        """Numbers of the queries that a run is to search and has neither searched nor refused.

        Where it is not known which queries a run is to search, the result is the absent numbers below the largest
        present one: it includes queries that failed, and does not include queries at the end.
        """
        asked = self.run(run_id).asked
        there = {*self.committed(run_id), *(failed.number for failed in self.failures(run_id))}
        if asked is None or asked.n_queries is None:
            shard = Shard() if asked is None else asked.shard
            return [number for number in shard.numbers(max(there, default=-1)) if number not in there]
        return [number for number in asked.shard.numbers(asked.n_queries) if number not in there]

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        """A connection to the file that was opened, in a transaction that commits completely or not at all."""
        if self._whole is not None:
            with translated(self._engine.url):
                yield self._whole
            return
        self._place.check()
        with writing(self._engine) as connection:
            yield connection
        self._place.check()

    def _find(self, connection: Connection, run: str | int) -> int:
        """The id of the run that ``run`` denotes."""
        found: int | None = None
        if run == LATEST:
            newest = select(func.max(RUNS.c.id))
            found = connection.execute(newest.where(RUNS.c.state == FINISHED)).scalar()
            if found is None:
                found = connection.execute(newest).scalar()
        elif str(run).isascii() and str(run).isdigit() and len(str(run)) < 19:
            found = connection.execute(select(RUNS.c.id).where(RUNS.c.id == int(run))).scalar()
        if found is None:
            raise RunNotFound(str(run), self.name)
        return int(found)


def insert_query(connection: Connection, run_id: int, result: QueryResult) -> None:
    """Insert a query with all its hits, in place of a failure of this query."""
    insert_queries(connection, [(run_id, result)])


def insert_queries(connection: Connection, results: Sequence[tuple[int, QueryResult]]) -> None:
    """Insert queries with all their hits, each with its run, in place of failures of these queries."""
    connection.execute(_DELETE_FAILURES, [{"run": run_id, "query": result.number} for run_id, result in results])
    values = [{"run_id": run_id, **query_values(result)} for run_id, result in results]
    ids = insert_with_ids(connection, QUERIES, values)
    hits = [
        hit_values(query_id, hit) for query_id, (_, result) in zip(ids, results, strict=True) for hit in result.hits
    ]
    if hits:
        insert_rows(connection, HITS, hits)


def _at_work(run: StoredRun) -> str:
    """A sentence for messages about a run that is not finished."""
    if not run.is_at_work:
        return run.state
    if run.worker.is_here:
        return f"{run.worker} is at work on it"
    return f"it was left to {run.worker}, which cannot be seen from here and may be at work on it"


def _select_runs() -> Any:
    """The columns of all runs, with their numbers of queries and hits."""
    n_queries = select(func.count()).where(QUERIES.c.run_id == RUNS.c.id).scalar_subquery()
    n_hits = select(func.coalesce(func.sum(QUERIES.c.n_hits), 0)).where(QUERIES.c.run_id == RUNS.c.id)
    n_failed = select(func.count()).where(FAILURES.c.run_id == RUNS.c.id).scalar_subquery()
    return select(
        RUNS,
        n_queries.label("n_queries"),
        n_hits.scalar_subquery().label("n_hits"),
        n_failed.label("n_failed"),
    )
