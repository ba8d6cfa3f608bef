"""What a worker keeps between tasks, and the two requests of a driver that it performs.

The first request opens an engine, the database (or slices of it) and a searcher; further requests find them open. In a
worker of Dask they remain open after the run, so that the next one starts warm, until others take their place.

All work is done by one thread, because a :class:`~swsearch.search.searcher.Searcher` must not be shared by threads. A
request that comes meanwhile waits for this thread. An engine that works in the background, such as a GPU's, gets the
queries of the next task when it has all those of the present one, so that it does not wait while the last results of a
task are ranked and aligned; therefore Dask is told to start the next task at once (``secede``).
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeAlias

from swsearch.cluster.connection import PREPARE
from swsearch.cluster.tasks import Answer, Found, Ready, SearchSpec, failed, packed, unpacked
from swsearch.database.opening import load_catalogue, open_database
from swsearch.database.reader import DatabasePart, PackedDatabase
from swsearch.engine.protocol import BackgroundEngine, ScoreEngine
from swsearch.engine.registry import Machine, open_engine
from swsearch.errors import DatabaseError, InputError, SwSearchError
from swsearch.file_registry import is_url
from swsearch.hits.result import QueryResult
from swsearch.search.searcher import Searcher
from swsearch.sequences.record import SequenceRecord
from swsearch.threads import SWITCH_SECONDS

DATABASES_VARIABLE: Final = "SWSEARCH_DATABASES"
"""Environment variable of a worker: folders, separated as in ``PATH``, in which databases are looked for by name before
the driver's path."""
KEEP_SECONDS: Final = 600.0
"""Time after which an unused searcher is closed when another is opened; translated subjects take disk space."""


FORECAST_CELLS: Final = 10**12
"""Cells of the forecast by which the rate of an engine is estimated."""

_Key: TypeAlias = tuple[DatabasePart, ...]
"""Digest, segments and layout of each database of a search; a compaction that deals the subjects into other slices
changes the layout alone."""


@dataclass(eq=False)
class Task:
    """Queries to search, from their arrival at the worker to the last result.

    ``key`` identifies the specification. ``room_bytes`` is the memory for databases, None if it is not limited. The
    engine has all queries if ``is_read``.
    """

    spec: SearchSpec
    key: bytes
    queries: list[SequenceRecord]
    room_bytes: int | None
    results: Generator[QueryResult, None, None] | None = None
    is_read: bool = False

    def start(self, searcher: Searcher) -> None:
        """Pass the queries to the engine, unless it has them; raises :class:`InputError` if one does not fit the
        search.
        """
        if self.results is not None:
            return
        if self.spec.one_round:  # the driver has checked the queries; those of later rounds are profiles
            self.results = searcher.search_once(self._reading())
        else:
            for query in self.queries:
                searcher.check(query)
            self.results = searcher.search(self._reading())

    def stop(self) -> None:
        """Take the queries from the engine; :meth:`start` passes them to another one."""
        if self.results is not None:
            self.results.close()
        self.results = None
        self.is_read = False

    def _reading(self) -> Iterator[SequenceRecord]:
        yield from self.queries
        self.is_read = True


class Residents:
    """The engine, the databases and the searchers of one worker process, and the one thread that works with them.

    Requests are performed in the order of the calls of :meth:`prepare` and :meth:`search`. Each waits for its turn and
    returns when its work is done. They are called by several threads.

    ``open_engine`` is :func:`swsearch.engine.registry.open_engine`; ``host_bytes`` the memory of the machine or
    container.
    """

    def __init__(self, open_engine: Callable[..., tuple[ScoreEngine, str]] = open_engine, host_bytes: int = 0) -> None:
        self._open_engine = open_engine
        self._host_bytes = host_bytes
        self._machine: Machine | None = None
        self._engine: ScoreEngine | None = None
        self._engine_choice = ""
        self._databases: OrderedDict[_Key, PackedDatabase] = OrderedDict()
        self._searchers: dict[bytes, Searcher] = {}
        self._used: dict[bytes, float] = {}
        """When each searcher was used last."""
        self._started: Task | None = None
        """A task whose turn has not come, but whose queries the engine has."""
        self._thread = ThreadPoolExecutor(1, "swsearch")
        self._asking = threading.Lock()
        self._waiting: deque[Task | None] = deque()
        """The calls whose turn has not come, by their tasks; None is one that opens an engine."""

    @property
    def is_background(self) -> bool:
        """Whether the engine is open and works in the background."""
        return isinstance(self._engine, BackgroundEngine)

    # --- requests ---

    def prepare(self, machine: Machine, first: tuple[SearchSpec, bytes] | None = None) -> Answer:
        """Open an engine, unless it is open; another one is closed before.

        What ``first``, the search that probably comes first, needs besides the engine is loaded while a GPU starts; and
        what else it needs, with its key, is opened after the answer. The answer is a :class:`Failed` if there is no
        such engine, it cannot be used on this machine, or it does not have this number of threads or these devices.
        """
        answer = self._in_turn(lambda: self._ready(machine, None if first is None else first[0]), None)
        if first is not None and isinstance(answer, Ready):
            self._thread.submit(self._open_search, *first)
        return answer

    def search(self, task: Task) -> Answer:
        """Search the queries of a task.

        Databases that were used least recently are closed until all fit the task's memory, if it is limited. If there
        is a next task already, an engine that works in the background gets its queries before the last results of this
        task. The answer is a :class:`Failed` for the errors of :func:`swsearch.search.searcher.open_searcher`, and if
        the worker's database is not the driver's.
        """
        return self._in_turn(lambda: self._found(task), task)

    def close(self) -> None:
        """End the thread after the present requests, and close the engine and the databases."""
        self._thread.shutdown()
        self._close_engine()

    def _in_turn(self, work: Callable[[], Answer], task: Task | None) -> Answer:
        def take_turn() -> Answer:
            with self._asking:
                self._waiting.popleft()
            return work()

        with self._asking:
            self._waiting.append(task)
            turn = self._thread.submit(take_turn)
        try:
            return turn.result()
        except Exception as error:
            return failed(error)

    def _following(self) -> Task | None:
        with self._asking:
            return next((task for task in self._waiting if task is not None), None)

    # --- the work of the thread ---

    def _ready(self, machine: Machine, first: SearchSpec | None) -> Ready:
        engine = self._opened(machine, first)
        rate = kept = None
        if isinstance(engine, BackgroundEngine):
            rate = FORECAST_CELLS / engine.forecast((), (), FORECAST_CELLS).seconds
            kept = engine.kept_bytes
        return Ready(self._engine_choice, self._host_bytes, self.is_background, rate, kept)

    def _opened(self, machine: Machine, first: SearchSpec | None = None) -> ScoreEngine:
        """The engine, which is opened unless it is open; see :meth:`prepare`."""
        if self._engine is None or machine != self._machine:
            self._close_engine()
            if first is not None:
                with suppress(SwSearchError):
                    first.options.scheme(first.options.aligned_alphabet(self._database(first, None).alphabet))
            self._engine, self._engine_choice = self._open_engine(machine)
            self._machine = machine
            if self.is_background:
                sys.setswitchinterval(SWITCH_SECONDS)
        return self._engine

    def _open_search(self, spec: SearchSpec, key: bytes) -> None:
        """Open what a search of the whole database needs, and let a GPU load it; failures are reported by the
        search.
        """
        with suppress(SwSearchError):
            searcher = self._searcher(spec, key, None)
            if isinstance(self._engine, BackgroundEngine):
                for partition in searcher.usual_partitions[:1]:
                    self._engine.preload(partition)

    def _found(self, task: Task) -> Found:
        searcher = self._searcher(task.spec, task.key, task.room_bytes)
        self._started = None
        began = time.perf_counter()
        task.start(searcher)
        assert task.results is not None
        results = []
        self._start_next(task, searcher)
        for result in task.results:
            results.append(result)
            self._start_next(task, searcher)
        return Found(results, time.perf_counter() - began)

    def _start_next(self, task: Task, searcher: Searcher) -> None:
        """Start the following task on the engine if it has all queries of this one; its errors are raised when it is
        performed.
        """
        if task.is_read and self.is_background:
            after = self._following()
            if after is not None and after.key == task.key:
                with suppress(SwSearchError):
                    after.start(searcher)
                    self._started = after

    def _close_engine(self) -> None:
        """Close everything but the thread; a task that was started before its turn will be started again."""
        if self._started is not None:
            self._started.stop()
            self._started = None
        self._searchers.clear()
        for database in self._databases.values():
            database.close()
        self._databases.clear()
        if self._engine is not None:
            engine, self._engine = self._engine, None
            engine.close()

    def _searcher(self, spec: SearchSpec, key: bytes, room_bytes: int | None) -> Searcher:
        """The searcher of a specification, which ``key`` identifies; opened unless it is open."""
        self._opened(spec.machine)
        self._used[key] = time.monotonic()
        searcher = self._searchers.get(key)
        if searcher is None:
            searcher = self._searchers[key] = self._new_searcher(spec, room_bytes)
            self._close_unused()
        self._databases.move_to_end(_key(spec))
        return searcher

    def _new_searcher(self, spec: SearchSpec, room_bytes: int | None) -> Searcher:
        database = self._database(spec, room_bytes)
        assert self._engine is not None
        searcher = Searcher(
            database,
            self._engine,
            spec.options,
            machine=spec.machine,
            engine_choice=self._engine_choice,
        )
        found = searcher.run_info("")
        difference = spec.expected.differences(found)
        if not difference and (found.lam, found.k) != (spec.expected.lam, spec.expected.k):
            difference = "the statistics of the scoring scheme differ"
        if difference:
            advice = "give all workers the same program and the same files"
            raise InputError(f"this worker's search differs from the driver's: {difference}; {advice}")
        return searcher

    def _database(self, spec: SearchSpec, room_bytes: int | None) -> PackedDatabase:
        known = self._databases.get(_key(spec))
        if known is not None:
            return known
        paths = [database_path(path, part.digest) for path, part in spec.databases]
        opened = open_database(paths, parts=_key(spec))
        if room_bytes is not None:
            needed = _n_bytes(opened)
            while self._databases and needed + sum(map(_n_bytes, self._databases.values())) > room_bytes:
                self._close_oldest()
        self._databases[_key(spec)] = opened
        return opened

    def _close_oldest(self) -> None:
        _, closed = self._databases.popitem(last=False)
        for key in [key for key, searcher in self._searchers.items() if searcher.database is closed]:
            del self._searchers[key]
        closed.close()

    def _close_unused(self) -> None:
        """Close the searchers that have not been used for a while, and databases that no searcher has."""
        now = time.monotonic()
        for key in [key for key in self._searchers if now - self._used[key] > KEEP_SECONDS]:
            del self._searchers[key]
        in_use = {id(searcher.database) for searcher in self._searchers.values()}
        for name in [name for name, database in self._databases.items() if id(database) not in in_use]:
            self._databases.pop(name).close()


def _key(spec: SearchSpec) -> _Key:
    return tuple(part for _, part in spec.databases)


def database_path(path: str, digest: str | None) -> Path | str:
    """The path of a database on this machine: in a folder of ``SWSEARCH_DATABASES``, or the given one.

    For a database of an object store that is in none of these folders, the result is its URL. A sequence file is the
    first of its name; its content is compared when it is opened. Raises :class:`DatabaseError`, with what was found, if
    there is no database of this digest.
    """
    folders = filter(None, os.environ.get(DATABASES_VARIABLE, "").split(os.pathsep))
    candidates = [Path(folder, Path(path).name) for folder in folders]
    if not is_url(path):
        candidates.append(Path(path))
    other = None
    for candidate in candidates:
        if candidate.is_file():
            return candidate
        with suppress(DatabaseError):
            found = load_catalogue(candidate).digest
            if found == digest:
                return candidate
            other = other or (candidate, found)
    if is_url(path):
        return path
    if other is None:
        load_catalogue(candidates[-1])  # raises the error that names what is wrong
    assert other is not None
    problem = f"{other[0]} has other content (digest {other[1][:12]}) than the driver's database ({str(digest)[:12]})"
    raise DatabaseError(f"{problem}; give the worker a copy of the same database")


def _n_bytes(database: PackedDatabase) -> int:
    return sum(file.size for segment in database.segments for file in segment.entry.files.values())


# --- the requests of a driver ---


def performed(residents: Residents, share: Machine, request: str, *arguments: Any) -> bytes:
    """Perform a request of a driver (:mod:`swsearch.cluster.connection`); returns its packed answer.

    ``share`` has the threads and the devices of this worker, which it uses where the driver leaves them to it.
    """
    if request == PREPARE:
        machine, first = arguments
        expected = None if first is None else (_specified(first, share), first)
        return packed(residents.prepare(_completed(unpacked(machine), share), expected))
    spec, queries, room_bytes = arguments
    return packed(residents.search(Task(_specified(spec, share), spec, unpacked(queries), room_bytes)))


def _specified(spec: bytes, share: Machine) -> SearchSpec:
    asked: SearchSpec = unpacked(spec)
    return replace(asked, machine=_completed(asked.machine, share))


def _completed(machine: Machine, share: Machine) -> Machine:
    threads = share.threads if machine.threads is None else machine.threads
    return replace(machine, threads=threads, devices=share.devices if machine.devices is None else machine.devices)
