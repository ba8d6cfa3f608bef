"""The runs of a store: their records, and the repository :class:`Runs`.

A run stores which queries it is to search and which of them cannot be searched, so that the missing queries are known
exactly (:mod:`swsearch.store.results`). Every row is checked before it is converted to a record.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import ColumnElement, Connection, Row, delete, func, select, update

from swsearch.errors import RunNotFound, RunTaken, StoreError
from swsearch.file_registry import registry
from swsearch.hits.result import DatabaseInfo, RunInfo
from swsearch.hits.shards import AskedQueries, Shard
from swsearch.sequences.alphabet import ALPHABETS
from swsearch.store.models import FAILURES, QUERIES, RUNS, SEARCHES, checked
from swsearch.store.rows import FINISHED, INTERRUPTED, RUN_FIELDS, RUNNING, HostProcess, claim_values
from swsearch.store.run_file import RunWriter

if TYPE_CHECKING:
    from swsearch.store.store import Store

LATEST: Final = "latest"
"""The name of the newest finished run, or of the newest run if none is finished."""


@dataclass(frozen=True)
class StoredRun:
    """A stored run.

    Attributes
    ----------
    id : int
        Its number in the store, from 1; it is never reused for another run.
    info : RunInfo
    state : str
        ``finished``; ``running``; or ``interrupted``: it was stopped, or its process on this machine has ended. A run
        of another machine is ``running`` until that machine stores its end.
    process : HostProcess
        The process that worked on it last.
    started, finished : datetime
        Times in UTC; ``finished`` is None if the run is not finished.
    n_queries, n_hits : int
        Numbers of queries and hits committed so far.
    n_failed : int
        Number of queries found so far that cannot be searched.
    asked : AskedQueries or None
        The queries that the run is to search; None if that is not known.
    remark : str or None
        A remark on the run for the user.
    """

    id: int
    info: RunInfo
    state: str
    process: HostProcess
    started: datetime
    finished: datetime | None
    n_queries: int
    n_hits: int
    n_failed: int
    asked: AskedQueries | None
    remark: str | None

    @property
    def is_at_work(self) -> bool:
        """Whether a process works on the run, or may work on it on another machine."""
        return self.state == RUNNING

    @property
    def n_missing(self) -> int | None:
        """Number of queries that the run is to search and has neither searched nor refused; None if unknown."""
        n_asked = None if self.asked is None else self.asked.n_of_shard
        return None if n_asked is None else n_asked - self.n_queries - self.n_failed


class Runs(RunWriter):
    """The runs of a store, without their queries."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._store = store

    def resume(self, run_id: int, seen: StoredRun | None = None) -> None:
        """Mark a run as resumed by this process. Its failures are deleted, because they will be found again.

        Raises
        ------
        RunTaken
            Another process has resumed or ended the run since it was read as ``seen``.
        """
        with self._store.writing() as connection:
            found = select(RUNS.c.state, RUNS.c.host, RUNS.c.process, RUNS.c.process_began)
            now: Any = connection.execute(found.where(RUNS.c.id == run_id).with_for_update()).first()
            if now is None:
                raise RunNotFound(str(run_id), self._store.name)
            if seen is not None:
                process = HostProcess(now.host, now.process, now.process_began)
                if process != seen.process or state_of(now, process) != seen.state:
                    name = f"run {run_id} of {self._store.name}"
                    raise RunTaken(f"{name} has just been taken up by {process}; try again")
            values = {**claim_values(), "finished_at": None}
            connection.execute(update(RUNS).where(RUNS.c.id == run_id).values(**values))
            connection.execute(delete(FAILURES).where(FAILURES.c.run_id == run_id))

    def delete(self, *runs: str | int, force: bool = False) -> list[int]:
        """Delete runs with their queries and hits, or none of them; returns their ids.

        SQLite reuses the space for later runs.

        Parameters
        ----------
        *runs : str or int
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
        with self._store.writing() as connection:
            run_ids = list(dict.fromkeys(self._deletable(connection, run, force=force) for run in runs))
            for run_id in run_ids:
                connection.execute(delete(RUNS).where(RUNS.c.id == run_id))
            return run_ids

    def _deletable(self, connection: Connection, run: str | int, *, force: bool) -> int:
        """Return the id of a run that may be deleted."""
        run_id = find_run(connection, run, self._store.name)
        newest = _runs(connection, newest=1)[0]
        if run == LATEST and run_id != newest.id:
            known = f"the newest run of {self._store.name} is {newest.id} ({_at_work(newest)})"
            raise StoreError(f"{known}, its newest finished one {run_id}; give the number of the run to delete")
        stored = _runs(connection, RUNS.c.id == run_id)[0]
        if stored.is_at_work and not force:
            advice = f"stop that process first, or delete the run all the same with `runs delete {run_id} --force`"
            raise StoreError(f"run {run_id} of {self._store.name} is not deleted: {_at_work(stored)}; {advice}")
        return run_id

    def all(self) -> list[StoredRun]:
        """All runs, oldest first."""
        with self._store.reading() as connection:
            return _runs(connection)

    def get(self, run: str | int = "latest") -> StoredRun:
        """One run, by its id or as ``latest``: the newest finished one, or the newest if none is finished.

        Raises
        ------
        RunNotFound
            There is no such run.
        """
        with self._store.reading() as connection:
            run_id = find_run(connection, run, self._store.name)
            found = _runs(connection, RUNS.c.id == run_id)[0]
        registry().read_sources(found.info.sources)
        return found

    def newest(self) -> StoredRun:
        """The run that was started last, whatever its state.

        Raises
        ------
        RunNotFound
            The store has no run.
        """
        with self._store.reading() as connection:
            found = _runs(connection, newest=1)
        if not found:
            raise RunNotFound(LATEST, self._store.name)
        return found[0]

    def old(self, *, keep: int = 0, before: datetime | None = None) -> list[StoredRun]:
        """The runs that may be deleted, so that a store that is used every day does not grow for ever, oldest first.

        They are not among the newest ``keep`` and began before ``before``. Runs that a process works on, or may work on
        where this cannot be seen, are not among them, nor are those of a service's searches, which have a time of
        expiry of their own.

        Parameters
        ----------
        keep : int
            Number of runs to keep, counted from the newest one; runs of every state count.
        before : datetime, optional
            By default, runs of every age are old.
        """
        with self._store.reading() as connection:
            runs = _runs(connection, _OF_NO_SEARCH)
        return [
            run
            for run in runs[: max(0, len(runs) - keep)]
            if not run.is_at_work and (before is None or run.started < before)
        ]

    def without_search(self, limit: int) -> list[StoredRun]:
        """The newest runs that commands made."""
        with self._store.reading() as connection:
            return _runs(connection, _OF_NO_SEARCH, newest=limit)


def find_run(connection: Connection, run: str | int, name: str) -> int:
    """The id of the run that ``run`` denotes, in the store of this name; raises :class:`RunNotFound`."""
    found: int | None = None
    if run == LATEST:
        newest = select(func.max(RUNS.c.id))
        found = connection.execute(newest.where(RUNS.c.state == FINISHED)).scalar()
        if found is None:
            found = connection.execute(newest).scalar()
    elif str(run).isascii() and str(run).isdigit() and len(str(run)) < 19:
        found = connection.execute(select(RUNS.c.id).where(RUNS.c.id == int(run))).scalar()
    if found is None:
        raise RunNotFound(str(run), name)
    return int(found)


def _at_work(run: StoredRun) -> str:
    """A sentence for messages about a run that is not finished."""
    if not run.is_at_work:
        return run.state
    if run.process.is_here:
        return f"{run.process} is at work on it"
    return f"it was left to {run.process}, which cannot be seen from here and may be at work on it"


_OF_NO_SEARCH: Final = ~select(SEARCHES.c.run_id).where(SEARCHES.c.run_id == RUNS.c.id).exists()


def _runs(connection: Connection, *conditions: ColumnElement[bool], newest: int | None = None) -> list[StoredRun]:
    """The runs that fulfil the conditions, oldest first; or at most so many of the newest, newest first."""
    n_queries = select(func.count()).where(QUERIES.c.run_id == RUNS.c.id).scalar_subquery()
    n_hits = select(func.coalesce(func.sum(QUERIES.c.n_hits), 0)).where(QUERIES.c.run_id == RUNS.c.id)
    n_failed = select(func.count()).where(FAILURES.c.run_id == RUNS.c.id).scalar_subquery()
    columns = (n_queries.label("n_queries"), n_hits.scalar_subquery().label("n_hits"), n_failed.label("n_failed"))
    found = select(RUNS, *columns).where(*conditions)
    found = found.order_by(RUNS.c.id) if newest is None else found.order_by(RUNS.c.id.desc()).limit(newest)
    return [stored_run(row) for row in connection.execute(found)]


def state_of(row: Row[Any], process: HostProcess) -> str:
    """The state of a run; a run whose process on this machine has ended is interrupted."""
    return INTERRUPTED if row.state == RUNNING and process.has_ended else str(row.state)


def _from_json(row: Row[Any], column: str) -> Any:
    try:
        return json.loads(getattr(row, column))
    except ValueError as error:
        raise ValueError(f"table runs, column {column}: {error}") from error


def _texts(row: Row[Any], column: str) -> tuple[str, ...]:
    """The texts of a column that is a JSON array, of at least one."""
    texts = _from_json(row, column)
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        raise ValueError(f"table runs, column {column}: no JSON array of texts")
    return tuple(texts)


def stored_run(row: Row[Any]) -> StoredRun:
    """The run of a row, which also contains the numbers of its queries, hits and failures.

    Raises
    ------
    ValueError
        A value is not valid in its column.
    """
    checked(row, RUNS)
    parameters = _from_json(row, "parameters")
    if not isinstance(parameters, dict):
        raise ValueError("table runs, column parameters: no JSON object")
    if row.database_alphabet not in ALPHABETS:
        raise ValueError(f"table runs, column database_alphabet: {row.database_alphabet[:40]!r} is not an alphabet")
    if len({value is None for value in (row.shard_index, row.shard_count, row.asked_n_queries, row.asked_digest)}) > 1:
        raise ValueError("table runs: of shard_index, shard_count, asked_n_queries and asked_digest, some are empty")
    if isinstance(row.n_hits, float):
        raise ValueError("table queries, column n_hits: no whole numbers")
    database = DatabaseInfo(
        paths=_texts(row, "database_paths"),
        digests=_texts(row, "database_digests"),
        generation=row.database_generation,
        alphabet=row.database_alphabet,
        n_subjects=row.database_n_subjects,
        n_residues=row.database_n_residues,
    )
    info = RunInfo(parameters=parameters, database=database, **{name: getattr(row, name) for name in RUN_FIELDS})
    process = HostProcess(row.host, row.process, row.process_began)
    asked = None
    if row.shard_index is not None:
        asked = AskedQueries(Shard(row.shard_index, row.shard_count), row.asked_n_queries, row.asked_digest)
    return StoredRun(
        id=row.id,
        info=info,
        state=state_of(row, process),
        process=process,
        started=row.started_at,
        finished=row.finished_at,
        n_queries=int(row.n_queries),
        n_hits=int(row.n_hits),
        n_failed=int(row.n_failed),
        asked=asked,
        remark=row.remark,
    )
