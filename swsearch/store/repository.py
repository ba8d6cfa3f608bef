"""The store of hits: stores the records of runs and returns them unchanged.

:mod:`swsearch.run` opens a :class:`HitStore`, starts or resumes a run, adds each query when its search ends, and
finishes the run. Reports of stored runs read :meth:`HitStore.queries`.

A query and its hits are committed together, so every query in the store is complete, also after the process was killed.
``committed`` names these queries, so that the run can be resumed. A run also stores which queries it was asked to
search and which of them cannot be searched, so the missing ones are known exactly (``missing``).
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Final, Self, cast

from sqlalchemy import Connection, Delete, Row, Table, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from swsearch.errors import RunNotFound, RunTaken, StoreError
from swsearch.hits.hit import Alignment, Hit
from swsearch.hits.result import DatabaseInfo, QueryResult, RunInfo, SearchStats
from swsearch.hits.share import AskedQueries, FailedQuery, Shard
from swsearch.store.models import FINISHED, INTERRUPTED, RUNNING, FailureRow, HitRow, QueryRow, RunRow, storable
from swsearch.store.rows import checked
from swsearch.store.session import (
    BUSY_SECONDS,
    StorePlace,
    create_or_check,
    display_name,
    insert_rows,
    make_engine,
    reading,
    store_url,
    translated,
    without_passwords,
    writing,
)
from swsearch.store.workers import Worker

_RUNS = cast(Table, RunRow.__table__)
_QUERIES = cast(Table, QueryRow.__table__)
_HITS = cast(Table, HitRow.__table__)
_FAILURES = cast(Table, FailureRow.__table__)
_LIST_ORDER = (_HITS.c.rank, _HITS.c.hsp)


LATEST: Final = "latest"
"""The name of the newest finished run, or of the newest run if none is finished."""


@dataclass(frozen=True)
class StoredRun:
    """A stored run.

    Attributes
    ----------
    id : int
        Its number in the store, from 1; never given to another run.
    info : RunInfo
    state : str
        ``finished``; ``running``; or ``interrupted``: it was stopped, or its process on this machine has ended. A run
        of another machine is ``running`` until that machine records its end.
    worker : Worker
        The process that worked on it last.
    started, finished : datetime
        UTC; ``finished`` is None until then.
    n_queries, n_hits : int
        Committed so far.
    n_failed : int
        Queries that could not be searched, so far.
    asked : AskedQueries or None
        The queries that the run was asked to search; None in runs of older programs, which did not store them.
    remark : str or None
        A remark on the run for the user.
    """

    id: int
    info: RunInfo
    state: str
    worker: Worker
    started: datetime
    finished: datetime | None
    n_queries: int
    n_hits: int
    n_failed: int
    asked: AskedQueries | None
    remark: str | None

    @property
    def is_at_work(self) -> bool:
        """Whether a process works on it, or may do so on another machine."""
        return self.state == RUNNING

    @property
    def n_missing(self) -> int | None:
        """Queries that it was asked to search and has neither searched nor refused; None if unknown."""
        n_asked = None if self.asked is None else self.asked.n_of_share
        return None if n_asked is None else n_asked - self.n_queries - self.n_failed


def query_digest(header: str, letters: str) -> str:
    """SHA-256 of a query as it was written, in hexadecimal: the same text gives the same digest on every machine."""
    return hashlib.sha256(f"{header}\n{letters}".encode("utf-8", "surrogatepass")).hexdigest()


class HitStore:
    """Runs, queries and hits in one SQLite file or PostgreSQL database.

    Threads may share a store; each call is one transaction on a connection of its own. Several processes may write to
    one file; each waits for the others. Close it, or use it as a context manager; the returned records remain valid.

    Parameters
    ----------
    target : str or path
        A file, or a URL (:mod:`swsearch.store.session`).
    create : bool
        Create the store if there is none; otherwise a missing store is an error.
    busy_seconds : float
        How long to wait for another process that writes to the same file.

    Raises
    ------
    StoreError
        No store is there and ``create`` is False, or it cannot be opened, read or written.
    SchemaOutdated
        Another version of the program wrote it.
    """

    def __init__(
        self, target: str | os.PathLike[str], *, create: bool = False, busy_seconds: float = BUSY_SECONDS
    ) -> None:
        url = store_url(target)
        self.name = display_name(url)
        self._engine = make_engine(url, busy_seconds=busy_seconds)
        self._whole: Connection | None = None
        try:
            create_or_check(self._engine, create=create)
            self._place = StorePlace(url)
        except BaseException:
            self._engine.dispose()
            raise

    def close(self) -> None:
        """Give the connections back."""
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Writing

    @contextmanager
    def whole(self) -> Iterator[Self]:
        """A store whose changes are committed together when the block ends, or not at all; nobody sees them before.

        A process that is killed in the block leaves nothing. Other writers wait meanwhile, as for one transaction.
        """
        with self._writing() as connection:
            within = copy.copy(self)
            within._whole = connection
            yield within

    def start_run(self, info: RunInfo, asked: AskedQueries | None = None) -> int:
        """Store a new run of this process with the queries that it is to search; returns its id."""
        with self._writing() as connection:
            values = {**_run_values(info), **_asked_values(asked), **_claim(), "started_at": _now()}
            return int(connection.execute(insert(_RUNS).returning(_RUNS.c.id), values).scalar_one())

    def add_query(self, run_id: int, result: QueryResult) -> None:
        """Commit one query with all its hits, or nothing.

        Raises
        ------
        StoreError
            The run has a query of this number already, or there is no such run, or the store cannot be written.
        """
        try:
            with self._writing() as connection:
                connection.execute(_this_failure(run_id, result.number))
                values = {"run_id": run_id, **_query_values(result)}
                query_id = int(connection.execute(insert(_QUERIES).returning(_QUERIES.c.id), values).scalar_one())
                if result.hits:
                    insert_rows(connection, _HITS, [_hit_values(query_id, hit) for hit in result.hits])
        except StoreError as error:
            if isinstance(error.__cause__, IntegrityError) and self._whole is None:
                self._explain_refusal(run_id, result, error)
            raise

    def _explain_refusal(self, run_id: int, result: QueryResult, error: StoreError) -> None:
        """Which constraint of the tables a query violated."""
        with reading(self._engine) as connection:
            if connection.execute(select(_RUNS.c.id).where(_RUNS.c.id == run_id)).first() is None:
                raise RunNotFound(str(run_id), self.name) from error
        if result.number in self.committed(run_id):
            raise StoreError(f"{self.name}: run {run_id} has its query {result.number} already") from error

    def add_failure(self, run_id: int, failed: FailedQuery) -> None:
        """Store that a query of the run cannot be searched; replaces an earlier reason.

        Raises
        ------
        StoreError
            There is no such run, or the store cannot be written.
        """
        try:
            with self._writing() as connection:
                connection.execute(_this_failure(run_id, failed.number))
                values = {"run_id": run_id, "number": failed.number, "reason": failed.reason}
                connection.execute(insert(_FAILURES), values)
        except StoreError as error:
            if isinstance(error.__cause__, IntegrityError):
                raise RunNotFound(str(run_id), self.name) from error
            raise

    def note_asked(self, run_id: int, asked: AskedQueries) -> None:
        """Store which queries the run is to search, when they have become known or have changed."""
        self._set_values(run_id, **_asked_values(asked))

    def note_remark(self, run_id: int, remark: str) -> None:
        """Store a remark on the run for the user."""
        self._set_values(run_id, remark=remark)

    def finish_run(self, run_id: int) -> None:
        """Mark a run as finished: every query has been added."""
        self._set_values(run_id, state=FINISHED, finished_at=_now())

    def interrupt_run(self, run_id: int) -> None:
        """Mark a run as interrupted: it was stopped before its last query."""
        self._set_values(run_id, state=INTERRUPTED)

    def resume_run(self, run_id: int, seen: StoredRun | None = None) -> None:
        """Mark a run as resumed by this process. Its failures are deleted, since they will be found again.

        Raises
        ------
        RunTaken
            Another process has resumed or ended it since it was read as ``seen``.
        """
        with self._writing() as connection:
            found = select(_RUNS.c.state, _RUNS.c.host, _RUNS.c.process, _RUNS.c.process_began)
            now: Any = connection.execute(found.where(_RUNS.c.id == run_id).with_for_update()).first()
            if now is None:
                raise RunNotFound(str(run_id), self.name)
            if seen is not None:
                worker = Worker(now.host, now.process, now.process_began)
                if worker != seen.worker or _state(now, worker) != seen.state:
                    raise RunTaken(f"run {run_id} of {self.name} has just been taken up by {worker}; try again")
            values = {**_claim(), "finished_at": None}
            connection.execute(update(_RUNS).where(_RUNS.c.id == run_id).values(**values))
            connection.execute(delete(_FAILURES).where(_FAILURES.c.run_id == run_id))

    def note_statistics(self, run_id: int, sentence: str) -> None:
        """Add a sentence, found during the run, to the description of its statistics."""
        with self._writing() as connection:
            found = connection.execute(select(_RUNS.c.statistics).where(_RUNS.c.id == run_id)).scalar()
            if found is None:
                raise RunNotFound(str(run_id), self.name)
            connection.execute(update(_RUNS).where(_RUNS.c.id == run_id).values(statistics=f"{found}; {sentence}"))

    def _set_values(self, run_id: int, **values: Any) -> None:
        with self._writing() as connection:
            changed = connection.execute(update(_RUNS).where(_RUNS.c.id == run_id).values(**values))
            if changed.rowcount == 0:
                raise RunNotFound(str(run_id), self.name)

    def delete_run(self, run: str | int, *, force: bool = False) -> int:
        """Delete a run with its queries and hits; returns its id. SQLite reuses the space for later runs.

        Parameters
        ----------
        run : str or int
            An id, or ``latest``, where the newest run is also the newest finished one, or none is finished.
        force : bool
            Delete it even if a process works on it or may do so. That process then ends with an error.

        Raises
        ------
        RunNotFound
            There is no such run.
        StoreError
            A process is or may be at work on the run, or ``latest`` may mean two runs.
        """
        with self._writing() as connection:
            run_id = self._find(connection, run)
            newest = _stored_run(connection.execute(_select_runs().order_by(_RUNS.c.id.desc()).limit(1)).one())
            if run == LATEST and run_id != newest.id:
                known = f"the newest run of {self.name} is {newest.id} ({_at_work(newest)})"
                raise StoreError(f"{known}, its newest finished one {run_id}; give the number of the run to delete")
            stored = _stored_run(connection.execute(_select_runs().where(_RUNS.c.id == run_id)).one())
            if stored.is_at_work and not force:
                advice = f"stop that process first, or delete the run all the same with `runs delete {run_id} --force`"
                raise StoreError(f"run {run_id} of {self.name} is not deleted: {_at_work(stored)}; {advice}")
            connection.execute(delete(_RUNS).where(_RUNS.c.id == run_id))
            return run_id

    # Reading

    def runs(self) -> list[StoredRun]:
        """All runs, oldest first."""
        with reading(self._engine) as connection:
            return [_stored_run(row) for row in connection.execute(_select_runs().order_by(_RUNS.c.id))]

    def run(self, run: str | int = "latest") -> StoredRun:
        """One run, by its id or as ``latest``: the newest finished one, or the newest if none is finished.

        Raises
        ------
        RunNotFound
            There is no such run.
        """
        with reading(self._engine) as connection:
            run_id = self._find(connection, run)
            return _stored_run(connection.execute(_select_runs().where(_RUNS.c.id == run_id)).one())

    def newest_run(self) -> StoredRun:
        """The run that was started last, whatever its state.

        Raises
        ------
        RunNotFound
            The store has no run.
        """
        with reading(self._engine) as connection:
            row = connection.execute(_select_runs().order_by(_RUNS.c.id.desc()).limit(1)).first()
            if row is None:
                raise RunNotFound(LATEST, self.name)
            return _stored_run(row)

    def queries(self, run: str | int = "latest") -> Iterator[QueryResult]:
        """Results of a run's committed queries, in order of their numbers, one at a time.

        The results are those of the store when the first one was read. One query with its hits is in memory.

        Raises
        ------
        RunNotFound
            There is no such run.
        """
        with reading(self._engine) as connection:
            run_id = self._find(connection, run)
            of_run = select(_QUERIES.c.id).where(_QUERIES.c.run_id == run_id).order_by(_QUERIES.c.number)
            for query_id in connection.execute(of_run).scalars().all():
                row = connection.execute(select(_QUERIES).where(_QUERIES.c.id == query_id)).one()
                hits = connection.execute(select(_HITS).where(_HITS.c.query_id == query_id).order_by(*_LIST_ORDER))
                yield _query_result(row, tuple(_hit(hit, row.header) for hit in hits))

    def query(self, run_id: int, number: int) -> QueryResult:
        """The result of one committed query.

        Raises
        ------
        StoreError
            The run has no query of this number.
        """
        with reading(self._engine) as connection:
            wanted = (_QUERIES.c.run_id == run_id) & (_QUERIES.c.number == number)
            row = connection.execute(select(_QUERIES).where(wanted)).first()
            if row is None:
                raise StoreError(f"{self.name}: run {run_id} has no query {number}")
            hits = connection.execute(select(_HITS).where(_HITS.c.query_id == row.id).order_by(*_LIST_ORDER))
            return _query_result(row, tuple(_hit(hit, row.header) for hit in hits))

    def committed(self, run_id: int) -> dict[int, str]:
        """Numbers of a run's committed queries, each with its :func:`query_digest`."""
        with reading(self._engine) as connection:
            found = select(_QUERIES.c.number, _QUERIES.c.digest).where(_QUERIES.c.run_id == run_id)
            return {row.number: row.digest for row in connection.execute(found.order_by(_QUERIES.c.number))}

    def failures(self, run_id: int) -> list[FailedQuery]:
        """The queries of a run that could not be searched, in the order of their numbers."""
        with reading(self._engine) as connection:
            found = select(_FAILURES.c.number, _FAILURES.c.reason).where(_FAILURES.c.run_id == run_id)
            return [
                FailedQuery(row.number, row.reason) for row in connection.execute(found.order_by(_FAILURES.c.number))
            ]

    def missing(self, run_id: int) -> list[int]:
        """Numbers of the queries that a run was asked to search and has neither searched nor refused.

        In runs of older programs, which did not store the queries to search, the numbers below the largest that it has
        not: those of queries that failed are among them, and queries at the end are not.
        """
        asked = self.run(run_id).asked
        there = {*self.committed(run_id), *(failed.number for failed in self.failures(run_id))}
        if asked is None or asked.n_queries is None:
            shard = Shard() if asked is None else asked.shard
            return [number for number in shard.numbers(max(there, default=-1)) if number not in there]
        return [number for number in asked.shard.numbers(asked.n_queries) if number not in there]

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        """A connection in a transaction that commits completely or not at all, to the file that was opened."""
        if self._whole is not None:
            with translated(self._engine.url):
                yield self._whole
            return
        self._place.check()
        with writing(self._engine) as connection:
            yield connection
        self._place.check()

    def _find(self, connection: Connection, run: str | int) -> int:
        """The id that ``run`` names."""
        found: int | None = None
        if run == LATEST:
            newest = select(func.max(_RUNS.c.id))
            found = connection.execute(newest.where(_RUNS.c.state == FINISHED)).scalar()
            if found is None:
                found = connection.execute(newest).scalar()
        elif str(run).isascii() and str(run).isdigit() and len(str(run)) < 19:
            found = connection.execute(select(_RUNS.c.id).where(_RUNS.c.id == int(run))).scalar()
        if found is None:
            raise RunNotFound(str(run), self.name)
        return int(found)


def _at_work(run: StoredRun) -> str:
    """A sentence on a run that is not finished."""
    if not run.is_at_work:
        return run.state
    if run.worker.is_here:
        return f"{run.worker} is at work on it"
    return f"it was left to {run.worker}, which cannot be seen from here and may be at work on it"


def _this_failure(run_id: int, number: int) -> Delete:
    return delete(_FAILURES).where((_FAILURES.c.run_id == run_id) & (_FAILURES.c.number == number))


def _asked_values(asked: AskedQueries | None) -> dict[str, Any]:
    """The columns that say which queries a run is to search."""
    if asked is None:
        return {}
    return {
        "shard_index": asked.shard.index,
        "shard_count": asked.shard.count,
        "asked_n_queries": asked.n_queries,
        "asked_digest": asked.digest,
    }


def _now() -> datetime:
    return datetime.now(UTC)


def _claim() -> dict[str, Any]:
    """The columns that say which process works on a run."""
    worker = Worker.this()
    return {"state": RUNNING, "host": worker.host, "process": worker.process, "process_began": worker.began}


def _state(row: Row[Any], worker: Worker) -> str:
    """A run's state; a run whose process on this machine has ended is interrupted."""
    return INTERRUPTED if row.state == RUNNING and worker.has_ended else str(row.state)


def _run_values(info: RunInfo) -> dict[str, Any]:
    database = info.database
    return {
        "command": without_passwords(info.command),
        "parameters": json.dumps(info.parameters),
        "matrix": info.matrix,
        "matrix_scores": info.matrix_scores,
        "gap_open": info.gap_open,
        "gap_extend": info.gap_extend,
        "lam": info.lam,
        "k": info.k,
        "statistics": info.statistics,
        "search_space": info.search_space,
        "database_path": database.path,
        "database_digest": database.digest,
        "database_generation": database.generation,
        "database_alphabet": database.alphabet,
        "database_n_subjects": database.n_subjects,
        "database_n_residues": database.n_residues,
        "program": info.program,
        "engine": info.engine,
        "threads": info.threads,
    }


def _select_runs() -> Any:
    """Every run's columns, with how many queries and hits it has."""
    n_queries = select(func.count()).where(_QUERIES.c.run_id == _RUNS.c.id).scalar_subquery()
    n_hits = select(func.coalesce(func.sum(_QUERIES.c.n_hits), 0)).where(_QUERIES.c.run_id == _RUNS.c.id)
    n_failed = select(func.count()).where(_FAILURES.c.run_id == _RUNS.c.id).scalar_subquery()
    return select(
        _RUNS,
        n_queries.label("n_queries"),
        n_hits.scalar_subquery().label("n_hits"),
        n_failed.label("n_failed"),
    )


def _stored_run(row: Row[Any]) -> StoredRun:
    checked(row, _RUNS)
    try:
        parameters = json.loads(row.parameters)
    except ValueError as error:
        raise ValueError(f"table runs, column parameters: {error}") from error
    if not isinstance(parameters, dict):
        raise ValueError("table runs, column parameters: no JSON object")
    database = DatabaseInfo(
        path=row.database_path,
        digest=row.database_digest,
        generation=row.database_generation,
        alphabet=row.database_alphabet,
        n_subjects=row.database_n_subjects,
        n_residues=row.database_n_residues,
    )
    info = RunInfo(
        command=row.command,
        parameters=parameters,
        matrix=row.matrix,
        matrix_scores=row.matrix_scores,
        gap_open=row.gap_open,
        gap_extend=row.gap_extend,
        lam=row.lam,
        k=row.k,
        statistics=row.statistics,
        search_space=row.search_space,
        database=database,
        program=row.program,
        engine=row.engine,
        threads=row.threads,
    )
    worker = Worker(row.host, row.process, row.process_began)
    asked = None
    if row.shard_index is not None:
        asked = AskedQueries(Shard(row.shard_index, row.shard_count), row.asked_n_queries, row.asked_digest)
    return StoredRun(
        id=row.id,
        info=info,
        state=_state(row, worker),
        worker=worker,
        started=row.started_at,
        finished=row.finished_at,
        n_queries=int(row.n_queries),
        n_hits=int(row.n_hits),
        n_failed=int(row.n_failed),
        asked=asked,
        remark=row.remark,
    )


def _query_values(result: QueryResult) -> dict[str, Any]:
    return {
        "number": result.number,
        "digest": query_digest(result.header, result.letters),
        "header": result.header,
        "letters": result.letters,
        "n_hits": len(result.hits),
        "n_passed": result.n_passed,
        "cells": result.stats.cells,
        "score_seconds": result.stats.score_seconds,
        "total_seconds": result.stats.total_seconds,
        "n_rescored": result.stats.n_rescored,
        "committed_at": _now(),
    }


def _query_result(row: Row[Any], hits: tuple[Hit, ...]) -> QueryResult:
    checked(row, _QUERIES)
    stats = SearchStats(row.cells, row.score_seconds, row.total_seconds, row.n_rescored)
    return QueryResult(row.number, row.header, row.letters, hits, row.n_passed, stats)


def _hit_values(query_id: int, hit: Hit) -> tuple[Any, ...]:
    """A hit's row, in the order of the table's columns."""
    alignment = hit.alignment
    return (
        query_id,
        hit.rank,
        hit.hsp,
        hit.subject_index,
        storable(hit.subject_header),
        hit.subject_length,
        hit.score,
        hit.bits,
        hit.evalue,
        hit.strand,
        alignment.query_start,
        alignment.query_end,
        alignment.subject_start,
        alignment.subject_end,
        alignment.cigar,
        alignment.identities,
        alignment.positives,
        alignment.columns,
        alignment.gap_openings,
        alignment.gap_residues,
        storable(alignment.subject_letters),
        storable(alignment.query_letters),
        hit.query_frame,
        hit.subject_frame,
    )


def _hit(row: Row[Any], query_header: str) -> Hit:
    checked(row, _HITS)
    alignment = Alignment(
        query_start=row.query_start,
        query_end=row.query_end,
        subject_start=row.subject_start,
        subject_end=row.subject_end,
        cigar=row.cigar,
        identities=row.identities,
        positives=row.positives,
        columns=row.columns,
        gap_openings=row.gap_openings,
        gap_residues=row.gap_residues,
        subject_letters=row.subject_letters,
        query_letters=row.query_letters,
    )
    return Hit(
        rank=row.rank,
        subject_index=row.subject_index,
        subject_header=row.subject_header,
        subject_length=row.subject_length,
        score=row.score,
        bits=row.bits,
        evalue=row.evalue,
        strand=row.strand,
        alignment=alignment,
        hsp=row.hsp,
        query_frame=row.query_frame,
        subject_frame=row.subject_frame,
        query_header=query_header,
    )
