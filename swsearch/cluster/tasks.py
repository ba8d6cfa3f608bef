"""What travels between the driver and the workers of a cluster, as plain records.

A worker is told the search by a :class:`SearchSpec`, and gets the queries of one task with it. It answers with a
:class:`Found` or a :class:`Failed`; an exception never travels, because the class of one may be unknown or different at
the other side. All records are pickled here rather than by Dask, so that a worker with another version of the program
reads none of them before the versions are compared.
"""

from __future__ import annotations

import gc
import pickle
from dataclasses import dataclass
from typing import Any, Final

from swsearch import __version__
from swsearch.engine.registry import Machine
from swsearch.errors import DatabaseError, EngineError, InputError, SwSearchError
from swsearch.hits.result import QueryResult, RunInfo
from swsearch.search.options import SearchOptions

PROGRAM: Final = f"swsearch {__version__}"


@dataclass(frozen=True)
class DatabaseSpec:
    """A database that a worker opens; the fields are arguments of :meth:`PackedDatabase.open_content`.

    Attributes
    ----------
    path : str
        Its path on the driver's machine, absolute; or its URL in an object store.
    digest : str
    segments : tuple of int or None
        The segments of a slice; None for the whole database.
    layout : str or None
        The division of the database into segments to which these numbers refer (:attr:`Catalogue.layout`).
    """

    path: str
    digest: str
    segments: tuple[int, ...] | None
    layout: str | None


@dataclass(frozen=True)
class SearchSpec:
    """The search that a worker performs, of the whole database or of one slice.

    Attributes
    ----------
    databases : tuple of DatabaseSpec
        The databases that are searched as one, at least one.
    options : SearchOptions
        Its files have absolute paths.
    machine : Machine
        What a worker uses; its share of its machine (:class:`swsearch.cluster.residents.WorkerShare`) where ``threads``
        or ``devices`` are None.
    one_round : bool
        Whether each task is one round of an iterated search.
    expected : RunInfo
        The record of the run as a search of this slice must describe it.
    """

    databases: tuple[DatabaseSpec, ...]
    options: SearchOptions
    machine: Machine
    one_round: bool
    expected: RunInfo


@dataclass(frozen=True)
class Ready:
    """A worker that can search.

    Attributes
    ----------
    engine_choice : str
        Which engine it uses, and why.
    engine_bytes : int or None
        Memory of its engine, if it has memory of its own, such as that of a GPU.
    host_bytes : int
        Memory of its machine or container.
    is_background : bool
        Whether its engine works in the background; it then begins each task before it has finished the one before.
    cells_per_second : float or None
        The rate that its engine is expected to have, if that is known.
    kept_bytes : int or None
        Size of the largest database that stays in the memory of its engine, if it has memory of its own.
    """

    engine_choice: str
    engine_bytes: int | None
    host_bytes: int
    is_background: bool = False
    cells_per_second: float | None = None
    kept_bytes: int | None = None


@dataclass(frozen=True)
class Found:
    """The results of one task.

    Attributes
    ----------
    results : list of QueryResult
        In the order of the queries.
    seconds : float
        Time of the search, without that of opening.
    """

    results: list[QueryResult]
    seconds: float


@dataclass(frozen=True)
class Failed:
    """A task that a worker could not perform.

    Attributes
    ----------
    kind : str
        Name of the exception's class.
    message : str
    """

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

    Python does not look for garbage cycles meanwhile: records have none, and the looks take a third of the time.
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
