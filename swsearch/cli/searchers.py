"""What computes the search of a command: this process, a process for each GPU, or the workers of a cluster."""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from swsearch.cli.options import Arguments
from swsearch.cli.output import ProgressReport, inform
from swsearch.errors import SwSearchError

if TYPE_CHECKING:
    from swsearch.cluster.processes import WorkerProcesses
    from swsearch.database.reader import PackedDatabase
    from swsearch.search.planned_search import PlannedSearch
    from swsearch.search.searcher import Searcher

SEPARATE_QUERIES: Final = 8
"""Queries for each GPU from which a process for each is worthwhile."""
SEPARATE_CELLS: Final = 10**13
"""Cells from which this is so: about a second of one GPU."""
_SEARCH_MODULES: Final = (
    "swsearch.engine.cuda.search.multi_gpu",
    "swsearch.search.searcher",
    "swsearch.search.score_check",
    "swsearch.run",
    "swsearch.store.store",
    "swsearch.report_context",
)
"""What a search by a GPU of this process needs, which would otherwise be imported when the GPU has started."""


@contextlib.contextmanager
def gpus_started(arguments: Arguments, cells: int, are_many: Callable[[int], bool]) -> Iterator[WorkerProcesses | None]:
    """Start the GPUs of a search, if it uses any, while the program opens its databases and imports its modules.

    Each GPU has a process of its own, which ends with the context, if that is worthwhile: the processor time of the
    results of many queries is more than one process has. With fewer queries, the GPUs divide the subjects of each
    query, which needs one process: this one.

    No error of an option is raised, because :func:`open_searcher` raises it again.

    Parameters
    ----------
    arguments : Arguments
    cells : int
        About the number of cells of the search.
    are_many : callable
        Whether there are this many queries or more.
    """
    gpus = _separate_gpus(arguments, cells, are_many)
    if not gpus:
        if arguments.cluster is None:
            _warm_up(arguments, cells)
        yield None
        return
    from swsearch.cluster.processes import WorkerProcesses

    threads = None if arguments.threads is None else max(1, arguments.threads // len(gpus))
    with WorkerProcesses(len(gpus), threads, gpus) as processes:
        yield processes


def _warm_up(arguments: Arguments, cells: int) -> None:
    """Start the GPUs of this process in the background, and import what the search needs meanwhile."""
    from swsearch.threads import SWITCH_SECONDS

    with contextlib.suppress(SwSearchError):
        if arguments.machine.warm_up_gpus(cells):
            sys.setswitchinterval(SWITCH_SECONDS)
            for module in _SEARCH_MODULES:
                importlib.import_module(module)


def _separate_gpus(arguments: Arguments, cells: int, are_many: Callable[[int], bool]) -> list[int]:
    """The GPUs that get a process each; empty if this process uses the GPUs, if any."""
    if arguments.cluster is not None or arguments.explain or arguments.plot is not None:
        return []
    devices = arguments.devices or []
    if len(devices) < 2 or arguments.engine not in ("auto", "cuda"):
        return []
    if cells < SEPARATE_CELLS:
        return []
    if arguments.translate in ("subject", "both"):  # each process would translate the database
        return []
    from swsearch.engine.cuda.runtime.presence import look_for_gpus

    gpus = look_for_gpus()
    return devices if gpus.plugged_in and gpus.pycuda and are_many(SEPARATE_QUERIES * len(devices)) else []


def open_searcher(
    arguments: Arguments, database: PackedDatabase, query_residues: int, processes: WorkerProcesses | None
) -> AbstractContextManager[PlannedSearch]:
    """Open the engine of a search of an open database: the workers of a cluster, the processes, or this process."""
    if arguments.cluster is not None:
        from swsearch.cluster import open_cluster_searcher

        return open_cluster_searcher(
            database,
            arguments.asked,
            arguments.cluster,
            machine=arguments.machine,
            slices=arguments.slices,
            deadline_seconds=arguments.deadline,
            notify=inform,
        )
    if processes is not None:
        return _open_separate(arguments, processes, database, query_residues)
    return _open_here(arguments, database, query_residues)


@contextlib.contextmanager
def _open_separate(
    arguments: Arguments, processes: WorkerProcesses, database: PackedDatabase, query_residues: int
) -> Iterator[PlannedSearch]:
    """Open a searcher with a process for each GPU.

    If these cannot be used, or if a GPU has too little memory for the database, this process opens the engine, or
    reports what is wrong.
    """
    from swsearch.cluster.cluster_searcher import ClusterSearcher
    from swsearch.engine.registry import Machine

    searcher = None
    with contextlib.suppress(SwSearchError):
        of_worker = Machine("cuda", bound=not arguments.no_bound, partition_residues=arguments.partition_residues)
        searcher = ClusterSearcher(
            database,
            arguments.asked,
            processes,
            of_worker,
            own=replace(of_worker, threads=arguments.threads),
            slices="no",
            notify=inform,
        )
        searcher.when_answered = processes.end  # the run searches once
    if searcher is not None and searcher.is_kept:
        yield searcher
        return
    processes.close()
    with _open_here(arguments, database, query_residues) as own:
        yield own


@contextlib.contextmanager
def _open_here(arguments: Arguments, database: PackedDatabase, query_residues: int) -> Iterator[Searcher]:
    """Open an engine of this process; if subjects are translated, the progress of the translation is reported."""
    from swsearch.search.searcher import searcher_on

    with contextlib.ExitStack() as stack:
        with ProgressReport("translating", database.n_residues, "M bases/s", 1e6) as report:
            opened = searcher_on(arguments.machine, database, arguments.asked, query_residues, report.advance)
            searcher = stack.enter_context(opened)
        yield searcher
