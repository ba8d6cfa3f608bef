"""The runs of a store: their records, and the repository :class:`Runs`.

A run stores which queries it is to search and which of them cannot be searched, so that the missing queries are known
exactly (:mod:`swsearch.store.results`). Every row is checked before it is converted to a record.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from swsearch.errors import RunNotFound, RunTaken, StoreError
from swsearch.file_registry import registry
from swsearch.hits.result import DatabaseInfo, RunInfo
from swsearch.hits.shards import AskedQueries, Shard
from swsearch.sequences.alphabet import ALPHABETS
from swsearch.store.driver import Rows
from swsearch.store.rows import FINISHED, INTERRUPTED, RUN_FIELDS, RUNNING, asked_values, run_values, storable, utc_now

if TYPE_CHECKING:
    from swsearch.store.store import Store

LATEST: Final = "latest"
"""The name of the newest finished run, or of the newest run if none is finished."""
_NUMBERS: Final = {
    "n_queries": "(SELECT COUNT(*) FROM queries WHERE run_id = runs.id)",
    "n_hits": "(SELECT COALESCE(SUM(n_hits), 0) FROM queries WHERE run_id = runs.id)",
    "n_failed": "(SELECT COUNT(*) FROM failures WHERE run_id = runs.id)",
}
"""Numbers that are read with a run."""
_WITH_ID: Final = "WHERE id = ?"
_NEWEST: Final = "ORDER BY id DESC LIMIT ?"
_OF_NO_SEARCH: Final = "NOT EXISTS (SELECT 1 FROM searches WHERE run_id = runs.id)"


# --- the process at work on a run ---


_START_FIELD: Final = 19
"""Index, among the fields of ``/proc/PID/stat`` after the program's name, of the start in clock ticks since boot."""


@dataclass(frozen=True)
class HostProcess:
    """The process that works on a run.

    Its id is not sufficient to tell whether it runs: ids are reused, at the latest after a restart of the machine, and
    in containers many programs have the id 1. Therefore its start is stored, too. The processes of another machine
    cannot be observed; the user must decide whether they are running.

    Attributes
    ----------
    host : str
        Name of its machine.
    process : int
        Its process id there.
    began : str or None
        Its start: the boot id of the machine and the clock ticks since boot. None if unknown (not Linux).
    """

    host: str
    process: int
    began: str | None

    @classmethod
    def this(cls) -> Self:
        """The calling process."""
        return cls(host_name(), os.getpid(), _began_own(os.getpid()))

    def __str__(self) -> str:
        return f"process {self.process} on {self.host}"

    @property
    def is_here(self) -> bool:
        """Whether it is or was a process of this machine."""
        return self.host == host_name()

    @property
    def has_ended(self) -> bool:
        """Whether it was a process of this machine and has ended; False if unknown.

        A process that was killed remains as a zombie until its parent has asked for its exit code.
        """
        if not self.is_here:
            return False
        try:
            os.kill(self.process, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            pass
        if _fields(self.process)[:1] in ([b"Z"], [b"X"]):
            return True
        began = _began(self.process)
        return None not in (self.began, began) and self.began != began


def host_name() -> str:
    """The name of this machine."""
    return os.uname().nodename


@lru_cache(maxsize=1)
def _began_own(process: int) -> str | None:
    """The start of this process; a worker asks for it with each run, and a forked process has another id."""
    return _began(process)


def _began(process: int) -> str | None:
    try:
        machine = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None
    fields = _fields(process)
    return f"{machine} {int(fields[_START_FIELD])}" if fields else None


def _fields(process: int) -> list[bytes]:
    """The fields of ``/proc/PID/stat`` after the program's name, the state first; empty if there is no such process."""
    try:
        return Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return []


def claim_values() -> dict[str, Any]:
    """The columns that identify the process that works on a run, namely this process."""
    process = HostProcess.this()
    return {"state": RUNNING, "host": process.host, "process": process.process, "process_began": process.began}


# --- runs ---


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


class Runs:
    """The runs of a store, without their queries."""

    def __init__(self, store: Store) -> None:
        self._store = store

    # --- written ---

    def start(self, info: RunInfo, asked: AskedQueries | None = None) -> int:
        """Store a new run of this process with the queries that it is to search; returns its id."""
        with self._store.writing() as rows:
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
        with self._store.writing() as rows:
            appended = "UPDATE runs SET statistics = statistics || ? WHERE id = ?"
            if not rows.execute(appended, storable(f"; {sentence}"), run_id).rowcount:
                raise RunNotFound(str(run_id), self._store.name)

    def finish(self, run_id: int) -> None:
        """Mark a run as finished: every query has been added."""
        self._change(run_id, state=FINISHED, finished_at=utc_now())

    def interrupt(self, run_id: int) -> None:
        """Mark a run as interrupted: it was stopped before its last query."""
        self._change(run_id, state=INTERRUPTED)

    def _change(self, run_id: int, **values: Any) -> None:
        with self._store.writing() as rows:
            if not rows.change("runs", run_id, values):
                raise RunNotFound(str(run_id), self._store.name)

    def resume(self, run_id: int, seen: StoredRun | None = None) -> None:
        """Mark a run as resumed by this process. Its failures are deleted, because they will be found again.

        Raises
        ------
        RunTaken
            Another process has resumed or ended the run since it was read as ``seen``.
        """
        with self._store.writing() as rows:
            process_of_run = f"SELECT state, host, process, process_began FROM runs WHERE id = ?{rows.lock}"
            now = rows.execute(process_of_run, run_id).fetchone()
            if now is None:
                raise RunNotFound(str(run_id), self._store.name)
            state, *worker = now
            process = HostProcess(*worker)
            if seen is not None and (process != seen.process or state_of(state, process) != seen.state):
                name = f"run {run_id} of {self._store.name}"
                raise RunTaken(f"{name} has just been taken up by {process}; try again")
            rows.change("runs", run_id, {**claim_values(), "finished_at": None})
            rows.execute("DELETE FROM failures WHERE run_id = ?", run_id)

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
        with self._store.writing() as rows:
            run_ids = list(dict.fromkeys(self._deletable(rows, run, force=force) for run in runs))
            rows.change_all("DELETE FROM runs WHERE id = ?", [(run_id,) for run_id in run_ids])
            return run_ids

    def _deletable(self, rows: Rows, run: str | int, *, force: bool) -> int:
        """Return the id of a run that may be deleted."""
        run_id = find_run(rows, run, self._store.name)
        (newest,) = _runs(rows, _NEWEST, 1)
        if run == LATEST and run_id != newest.id:
            known = f"the newest run of {self._store.name} is {newest.id} ({_at_work(newest)})"
            raise StoreError(f"{known}, its newest finished one {run_id}; give the number of the run to delete")
        (stored,) = _runs(rows, _WITH_ID, run_id)
        if stored.is_at_work and not force:
            advice = f"stop that process first, or delete the run all the same with `runs delete {run_id} --force`"
            raise StoreError(f"run {run_id} of {self._store.name} is not deleted: {_at_work(stored)}; {advice}")
        return run_id

    # --- read ---

    def all(self) -> list[StoredRun]:
        """All runs, oldest first."""
        with self._store.reading() as rows:
            return _runs(rows, "ORDER BY id")

    def get(self, run: str | int = "latest") -> StoredRun:
        """One run, by its id or as ``latest``: the newest finished one, or the newest if none is finished.

        Raises
        ------
        RunNotFound
            There is no such run.
        """
        with self._store.reading() as rows:
            (found,) = _runs(rows, _WITH_ID, find_run(rows, run, self._store.name))
        registry().read_sources(found.info.sources)
        return found

    def newest(self) -> StoredRun:
        """The run that was started last, whatever its state.

        Raises
        ------
        RunNotFound
            The store has no run.
        """
        with self._store.reading() as rows:
            found = _runs(rows, _NEWEST, 1)
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
        with self._store.reading() as rows:
            runs = _runs(rows, f"WHERE {_OF_NO_SEARCH} ORDER BY id")
        return [
            run
            for run in runs[: max(0, len(runs) - keep)]
            if not run.is_at_work and (before is None or run.started < before)
        ]

    def without_search(self, limit: int) -> list[StoredRun]:
        """The newest runs that commands made."""
        with self._store.reading() as rows:
            return _runs(rows, f"WHERE {_OF_NO_SEARCH} {_NEWEST}", limit)


def insert_runs(rows: Rows, info: RunInfo, asked: Iterable[AskedQueries | None]) -> list[int]:
    """Insert new runs of this process with one record, each with the queries it is to search; returns their ids."""
    values = {**run_values(info), **claim_values(), "started_at": utc_now()}
    return [rows.insert("runs", {**values, **asked_values(queries)}) for queries in asked]


def find_run(rows: Rows, run: str | int, name: str) -> int:
    """The id of the run that ``run`` denotes, in the store of this name; raises :class:`RunNotFound`."""
    found = None
    if run == LATEST:
        newest_finished = f"SELECT MAX(id) FROM runs WHERE state = '{FINISHED}'"
        found = rows.execute(f"SELECT COALESCE(({newest_finished}), MAX(id)) FROM runs").fetchone()[0]
    elif str(run).isascii() and str(run).isdigit() and len(str(run)) < 19:
        (found,) = rows.execute("SELECT id FROM runs WHERE id = ?", int(run)).fetchone() or (None,)
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


def _runs(rows: Rows, rest: str, *values: Any) -> list[StoredRun]:
    """The runs of a statement that ends so."""
    return [stored_run(row) for row in rows.records("runs", rest, *values, more=_NUMBERS)]


def state_of(state: str, process: HostProcess) -> str:
    """The state of a run; a run whose process on this machine has ended is interrupted."""
    return INTERRUPTED if state == RUNNING and process.has_ended else state


def _from_json(row: Any, column: str) -> Any:
    try:
        return json.loads(getattr(row, column))
    except ValueError as error:
        raise ValueError(f"table runs, column {column}: {error}") from error


def _texts(row: Any, column: str) -> tuple[str, ...]:
    """The texts of a column that is a JSON array, of at least one."""
    texts = _from_json(row, column)
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        raise ValueError(f"table runs, column {column}: no JSON array of texts")
    return tuple(texts)


def stored_run(row: Any) -> StoredRun:
    """The run of a row, which also contains the numbers of its queries, hits and failures.

    Raises
    ------
    ValueError
        A value is not valid in its column.
    """
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
        state=state_of(row.state, process),
        process=process,
        started=row.started_at,
        finished=row.finished_at,
        n_queries=int(row.n_queries),
        n_hits=int(row.n_hits),
        n_failed=int(row.n_failed),
        asked=asked,
        remark=row.remark,
    )
