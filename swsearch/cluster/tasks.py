"""The messages between the driver and the workers of a cluster, as plain records.

A worker gets the search as a :class:`SearchSpec`, with the queries of one task. It answers with a
:class:`Found` or a :class:`Failed`; an exception is never sent, because its class may be unknown or different at the
other side. All records are pickled here rather than by Dask, so that a worker with another version of the program reads
none of them before the versions are compared.
"""

from __future__ import annotations

import gc
import pickle
from dataclasses import dataclass
from typing import Any, Final

from swsearch import __version__
from swsearch.database.reader import DatabasePart
from swsearch.engine.registry import Machine
from swsearch.errors import DatabaseError, EngineError, InputError, SwSearchError
from swsearch.hits.result import QueryResult, RunInfo
from swsearch.search.options import SearchOptions

PROGRAM: Final = f"swsearch {__version__}"


@dataclass(frozen=True)
class SearchSpec:
    """The search that a worker performs, of the whole database or of one slice.

    The ``databases``, at least one, are searched as one. Each has its absolute path on the driver's machine, or its URL
    in an object store, and a part with the digest, and with the segments of a slice. Files of the options have absolute
    paths. Where ``threads`` or ``devices`` of the machine are None, a worker uses those that it was given. With
    ``one_round``, each task is one round of an iterated search. ``expected`` is the record of the run as a search of
    this slice must describe it.
    """

    databases: tuple[tuple[str, DatabasePart], ...]
    options: SearchOptions
    machine: Machine
    one_round: bool
    expected: RunInfo


@dataclass(frozen=True)
class Ready:
    """A worker that can search.

    ``host_bytes`` is the memory of its machine or container. If the engine ``is_background``, it begins each task
    before it has finished the one before. ``cells_per_second`` is the rate that it is expected to have, if that is
    known, and ``kept_bytes`` the size of the largest database that stays in the memory of an engine that has its own.
    """

    engine_choice: str
    host_bytes: int
    is_background: bool = False
    cells_per_second: float | None = None
    kept_bytes: int | None = None


@dataclass(frozen=True)
class Found:
    """The results of one task, in the order of its queries, and the seconds of the search without those of opening."""

    results: list[QueryResult]
    seconds: float


@dataclass(frozen=True)
class Failed:
    """A task that a worker could not perform: name of the exception's class, and message."""

    kind: str
    message: str

    @property
    def is_of_engine(self) -> bool:
        """Whether the worker's engine failed, so that another worker may succeed."""
        return self.kind in ("EngineError", "KernelCompileError")

    def error(self, worker: str) -> SwSearchError:
        """The error as the driver raises it; ``worker`` names the worker."""
        kinds: dict[str, type[SwSearchError]] = {"InputError": InputError, "DatabaseError": DatabaseError}
        return kinds.get(self.kind, EngineError)(f"{worker}: {self.message}")


Answer = Ready | Found | Failed


def packed(record: Any) -> bytes:
    """A record as bytes."""
    return pickle.dumps(record, protocol=5)


def unpacked(data: bytes) -> Any:
    """The record that :func:`packed` made into bytes; only of data from the driver, or from one of its workers.

    Garbage collection is suspended meanwhile: records have no cycles, and it would take a third of the time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return pickle.loads(data)
    finally:
        if was_enabled:
            gc.enable()


def failed(error: BaseException) -> Failed:
    """The answer of a worker whose task ended with an exception."""
    if isinstance(error, SwSearchError):
        kind = next(one.__name__ for one in type(error).__mro__ if one.__module__ == SwSearchError.__module__)
        if isinstance(error, InputError):
            kind = "InputError"
        return Failed(kind, error.marked)
    if isinstance(error, MemoryError):
        return Failed("EngineError", "the worker has too little memory; give it fewer slices, or a larger machine")
    return Failed("Unexpected", f"{type(error).__name__}: {error}")
