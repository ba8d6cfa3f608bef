"""What a worker of a cluster keeps between tasks, and the two functions that a driver calls on it.

A worker is any process of ``dask worker`` in whose environment this program is installed; it needs no preparation.
The first task opens an engine, the database (or slices of it) and a searcher; further tasks find them open. They remain
open after the run, so that the next one starts warm, until others take their place.

All work is done by one thread, because a :class:`~swsearch.search.searcher.Searcher` must not be shared by threads. A
task that Dask starts meanwhile waits for this thread.
"""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Final, TypeAlias

from swsearch.cluster.tasks import (
    PROGRAM,
    Answer,
    DatabaseSpec,
    EngineSpec,
    Failed,
    Found,
    Ready,
    SearchSpec,
    failed,
    packed,
    unpacked,
)
from swsearch.cores import threads_to_use
from swsearch.database.joined import joined
from swsearch.database.object_store import is_url
from swsearch.database.reader import PackedDatabase, load_catalogue
from swsearch.engine.protocol import MemoryEngine, ScoreEngine
from swsearch.engine.registry import open_engine
from swsearch.errors import DatabaseError, InputError
from swsearch.search.searcher import Searcher
from swsearch.sequences.record import SequenceRecord

DATABASES_VARIABLE: Final = "SWSEARCH_DATABASES"
"""Environment variable of a worker: folders, separated as in ``PATH``, in which databases are looked for by name before
the driver's path."""
KEEP_SECONDS: Final = 600.0
"""Time after which an unused searcher is closed when another is opened; translated subjects take disk space."""


_Key: TypeAlias = tuple[tuple[str, tuple[int, ...] | None], ...]
"""Digest and segments of each database of a search."""


class Residents:
    """The engine, the databases and the searchers of one worker process."""

    def __init__(self) -> None:
        self._engine_spec: EngineSpec | None = None
        self._engine: ScoreEngine | None = None
        self._engine_choice = ""
        self._databases: OrderedDict[_Key, PackedDatabase] = OrderedDict()
        self._searchers: dict[bytes, Searcher] = {}
        self._used: dict[bytes, float] = {}
        """When each searcher was used last."""

    def ready(self, spec: EngineSpec) -> Ready:
        """Open an engine, unless it is open; another one is closed before.

        Raises
        ------
        EngineUnavailable
            The engine cannot be used on this machine.
        InputError
            There is no such engine, or it does not have this number of threads or these devices.
        """
        if self._engine is None or spec != self._engine_spec:
            self.close()
            self._engine, self._engine_choice = open_engine(
                spec.engine, spec.threads, spec.devices, None, spec.kernel, bound=spec.bound
            )
            self._engine_spec = spec
        from distributed.system import MEMORY_LIMIT

        memory = self._engine.memory_bytes if isinstance(self._engine, MemoryEngine) else None
        return Ready(self._engine_choice, memory, MEMORY_LIMIT)

    def found(self, spec: SearchSpec, key: bytes, queries: list[SequenceRecord], room_bytes: int | None) -> Found:
        """Search; ``key`` identifies the specification.

        Databases that were used least recently are closed until all fit ``room_bytes``, if it is not None.

        Raises
        ------
        SwSearchError
            As :func:`swsearch.search.api.open_searcher`; or the worker's database is another one than the driver's.
        """
        self.ready(spec.engine)
        self._used[key] = time.monotonic()
        searcher = self._searchers.get(key)
        if searcher is None:
            searcher = self._searchers[key] = self._new_searcher(spec, room_bytes)
            self._close_unused()
        self._databases.move_to_end(_key(spec))
        began = time.perf_counter()
        results = list(searcher.search_once(queries) if spec.one_round else searcher.search(queries))
        return Found(results, time.perf_counter() - began)

    def close(self) -> None:
        """Close everything."""
        self._searchers.clear()
        for database in self._databases.values():
            database.close()
        self._databases.clear()
        if self._engine is not None:
            engine, self._engine = self._engine, None
            engine.close()

    def _new_searcher(self, spec: SearchSpec, room_bytes: int | None) -> Searcher:
        database = self._database(spec, room_bytes)
        assert self._engine is not None
        searcher = Searcher(
            database,
            self._engine,
            spec.options,
            threads=threads_to_use(spec.engine.threads),
            partition_residues=spec.partition_residues,
            engine_choice=self._engine_choice,
        )
        found = searcher.run_info("")
        difference = spec.expected.differences(found)
        if not difference and (found.lam, found.k) != (spec.expected.lam, spec.expected.k):
            difference = "the statistics of the scoring scheme differ"
        if difference:
            advice = "give all workers the same program and the same files"
            raise InputError(f"this worker's search is another one than the driver's: {difference}; {advice}")
        return searcher

    def _database(self, spec: SearchSpec, room_bytes: int | None) -> PackedDatabase:
        known = self._databases.get(_key(spec))
        if known is not None:
            return known
        opened = _opened(spec.databases)
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
    return tuple((one.digest, one.segments) for one in spec.databases)


def _opened(databases: Sequence[DatabaseSpec]) -> PackedDatabase:
    with ExitStack() as stack:
        members = [
            stack.enter_context(
                PackedDatabase.open_content(database_path(one.path, one.digest), one.digest, one.segments, one.layout)
            )
            for one in databases
        ]
        database = joined(members)
        stack.pop_all()
        return database


def database_path(path: str, digest: str) -> Path | str:
    """The path of a database on this machine: in a folder of ``SWSEARCH_DATABASES``, or the given one.

    The result is the given URL for a database of an object store that is in none of these folders. A sequence file is
    the first of its name; its content is compared when it is opened.

    Raises
    ------
    DatabaseError
        There is no database of this digest; the message states what was found.
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
    problem = f"{other[0]} has other content (digest {other[1][:12]}) than the driver's database ({digest[:12]})"
    raise DatabaseError(f"{problem}; give the worker a copy of the same database")


def _n_bytes(database: PackedDatabase) -> int:
    return sum(file.size for segment in database.segments for file in segment.entry.files.values())


# --- the functions that a driver calls ---

_RESIDENTS = Residents()
_STARTING = threading.Lock()
_THREADS: list[ThreadPoolExecutor] = []


def prepare(program: str, engine: bytes) -> bytes:
    """Open the engine of an :class:`EngineSpec`; returns a packed :class:`Ready` or :class:`Failed`."""
    n_threads = _threads_of_dask()

    def work() -> Answer:
        return _RESIDENTS.ready(_with_threads(unpacked(engine), n_threads))

    return _answer(program, work)


def search(program: str, spec: bytes, queries: bytes, room_bytes: int | None) -> bytes:
    """Perform a task: a :class:`SearchSpec` and its queries; returns a packed :class:`Found` or :class:`Failed`."""
    n_threads = _threads_of_dask()

    def work() -> Answer:
        asked: SearchSpec = unpacked(spec)
        asked = replace(asked, engine=_with_threads(asked.engine, n_threads))
        return _RESIDENTS.found(asked, spec, unpacked(queries), room_bytes)

    return _answer(program, work)


def _threads_of_dask() -> int:
    """Number of threads that Dask gave to this worker; only a thread of Dask's may ask."""
    from distributed import get_worker

    return max(1, get_worker().state.nthreads)


def _with_threads(spec: EngineSpec, n_threads: int) -> EngineSpec:
    return spec if spec.threads is not None else replace(spec, threads=n_threads)


def _answer(program: str, work: Callable[[], Answer]) -> bytes:
    if program != PROGRAM:
        advice = "install the same version everywhere"
        return packed(Failed("InputError", f"this worker has {PROGRAM}, and the driver has {program}; {advice}"))
    with _STARTING:
        if not _THREADS:
            _THREADS.append(ThreadPoolExecutor(1, "swsearch"))
    try:
        return packed(_THREADS[0].submit(work).result())
    except Exception as error:
        return packed(failed(error))
