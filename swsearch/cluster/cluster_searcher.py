"""A search whose engines are those of workers: of a Dask cluster, or of processes of this machine.

:func:`open_cluster_searcher` takes a database, options and the place of the workers, and yields a
:class:`ClusterSearcher`. A run uses it like a :class:`swsearch.search.searcher.Searcher`, so its order, its store,
resumption and reports are the same, to the byte.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import replace
from typing import Final

from swsearch.cluster.connection import Connection, WorkerInfo
from swsearch.cluster.dispatcher import Dispatcher, SliceTask
from swsearch.cluster.processes import PREFIX, WorkerProcesses
from swsearch.cluster.tasks import Ready, SearchSpec, packed
from swsearch.database.opening import Databases, opened
from swsearch.database.reader import PackedDatabase
from swsearch.engine.protocol import Forecast
from swsearch.engine.registry import ANY_MACHINE, ENGINES, Machine
from swsearch.errors import InputError
from swsearch.hits.result import QueryResult
from swsearch.options import DEADLINE_SECONDS, EVERY_SUBJECT, SEARCH_FILES
from swsearch.search.options import SearchOptions
from swsearch.search.planned_search import BatchObserver, PlannedSearch
from swsearch.search.rounds import search_in_rounds
from swsearch.search.slices import Slice, merge_results, slices_of, whole
from swsearch.sequences.record import SequenceRecord
from swsearch.threads import check_threads
from swsearch.typing import Progress
from swsearch.words import counted

SLICES: Final = ("auto", "yes", "no")
GROUP_QUERIES: Final = 256
"""Queries of an iterated search by slices that are in the same round."""
GROUP_ROWS: Final = 200_000
USUAL_LIST: Final = 1000
"""Assumed length of a list that is not cut to the best subjects, for the size of tasks."""
OBSERVED_QUERIES: Final = 64
"""Queries that an observer gets at a time."""
GROUPS: Final = 2
"""Number of such groups at a time: one is searched while the profiles of the other are estimated."""


class ClusterSearcher(PlannedSearch):
    """Searches one database with one set of options and the workers of a connection.

    Parameters
    ----------
    database : PackedDatabase
        An open database; the caller closes it.
    options : SearchOptions
    connection : Connection
        An open connection; the caller closes it.
    machine : Machine
        What every worker uses; its partitions are those of this process too.
    own : Machine, optional
        What this process uses, if it has the subjects as well, for checks of the statistics. The record of the run then
        names its engine.
    slices : str
        ``no``: each worker holds the whole database. ``yes``: each holds some slices of it. ``auto``: slices, if the
        database has several and does not fit the memory of the smallest worker.
    deadline_seconds : float
        Shortest time after which a worker that does not answer counts as silent.
    notify : callable
        Called with messages for the user about workers and the scheduler.

    Attributes
    ----------
    when_answered : callable
        Called when all results of a search are there, before the last are returned; possibly more than once.
    is_kept : bool
        Whether the engine of each worker keeps the database in its memory, if it has memory of its own.

    Raises
    ------
    InputError
        ``slices`` is ``yes`` and the database has one slice; or a worker has another version of the program.
    EngineError
        A worker cannot use the engine.
    """

    def __init__(
        self,
        database: PackedDatabase,
        options: SearchOptions,
        connection: Connection,
        machine: Machine,
        *,
        own: Machine | None = None,
        slices: str = "auto",
        deadline_seconds: float = DEADLINE_SECONDS,
        notify: Callable[[str], None] = lambda _: None,
    ) -> None:
        super().__init__(
            database,
            options,
            machine=own or replace(machine, threads=None),
            is_scored_here=own is not None,
        )
        self.when_answered: Callable[[], None] = lambda: None
        # Workers may have different engines, and all give the same hits.
        self.engine_name = "cluster" if own is None else own.engine
        self._machine = machine
        self.dispatcher = Dispatcher(
            connection,
            machine,
            cells_of=self._cells_of_part,
            top=USUAL_LIST if options.top == EVERY_SUBJECT else options.top,
            deadline_seconds=deadline_seconds,
            notify=notify,
        )
        complete = whole(self.search_subjects)
        self.slices = [complete]
        parts = [complete] if slices == "no" else slices_of(self.search_subjects)
        if slices == "yes" and len(parts) == 1:
            advice = "leave it out, or index the FASTA again with `swsearch index --slices`"
            raise InputError(f"--slices yes: {database.name} has one slice with residues to search; {advice}")
        only = self._task(complete) if len(parts) == 1 else None
        workers = self.dispatcher.meet(only)
        if only is None and (slices == "yes" or any(self._n_bytes(complete) > room for *_, room in workers)):
            self.slices = parts
        self.works_in_background = all(ready.is_background for _, ready, _ in workers)
        self.is_kept = all(
            ready.kept_bytes is None or self._n_bytes(complete) <= ready.kept_bytes for _, ready, _ in workers
        )
        self.dispatcher.slices = [only or self._task(one) for one in self.slices]
        self.engine_choice = self._described(connection.title, workers)

    @property
    def is_sliced(self) -> bool:
        """Whether the database is searched slice by slice."""
        return len(self.slices) > 1

    def forecast(self, n_cells: int, queries: Sequence[SequenceRecord] = ()) -> Forecast | None:
        """Always None: workers come and go."""
        return None

    def explain(self, queries: Sequence[SequenceRecord]) -> list[str]:
        """The slices, if the database is searched slice by slice."""
        n_all = self.search_subjects.n_residues
        return [
            f"slice {number}: {counted(len(one.segments), 'segment')}, {100 * one.n_residues / n_all:.1f}% of the cells"
            for number, one in enumerate(self.slices if self.is_sliced else [], 1)
        ]

    def search(
        self, queries: Iterable[SequenceRecord], progress: Progress | None = None
    ) -> Generator[QueryResult, None, None]:
        """See :meth:`PlannedSearch.search`. Whole iterated searches are tasks, unless the database is sliced."""
        if isinstance(queries, Sequence):
            for query in queries:
                self.check(query)
        if self.observe_batch is not None:
            return self._observed(queries, progress, self.observe_batch)
        if self.options.iterations == 1 or not self.is_sliced:
            return self.search_once(queries, progress)
        return search_in_rounds(self, queries, progress, GROUP_QUERIES, GROUP_ROWS, GROUPS)

    def search_once(
        self, queries: Iterable[SequenceRecord], progress: Progress | None = None
    ) -> Generator[QueryResult, None, None]:
        """See :meth:`PlannedSearch.search_once`."""

        def merge(parts: Sequence[QueryResult]) -> QueryResult:
            return merge_results(parts, self.limits) if self.is_sliced else parts[0]

        return self.dispatcher.search(queries, progress, merge, self.when_answered)

    def _observed(
        self, queries: Iterable[SequenceRecord], progress: Progress | None, observe: BatchObserver
    ) -> Generator[QueryResult, None, None]:
        """Search once; ``observe`` gets groups of queries while the workers search."""
        read: deque[SequenceRecord] = deque()

        def noted() -> Iterator[SequenceRecord]:
            for query in queries:
                read.append(query)
                yield query

        def observe_some() -> None:
            some = [self.as_searched(read.popleft()) for _ in range(min(OBSERVED_QUERIES, len(read)))]
            if some:
                observe([(query, self.preparer.frames(query)) for query in some])

        def results(found: Generator[QueryResult, None, None]) -> Generator[QueryResult, None, None]:
            with closing(found):
                observe_some()
                for result in found:
                    yield result
                    observe_some()
            while read:
                observe_some()

        return results(self.search_once(noted(), progress))

    # --- slices ---

    def _cells_of_part(self, query: SequenceRecord) -> int:
        return self.cells_of_round(query) if self.is_sliced else self.cells(query)

    def _n_bytes(self, one: Slice) -> int:
        """Memory for a slice: that of its files and, if subjects are translated, of all frames."""
        return one.n_bytes + (one.n_residues if self.search_subjects.frames != (0,) else 0)

    def _task(self, one: Slice) -> SliceTask:
        info = self.run_info("")
        expected = replace(info, parameters={**info.parameters, **one.parameters})
        part = self.database.part(one.segments)
        spec = SearchSpec(
            databases=tuple((each.reopened_from, each.opened_part) for each in part.members),
            options=_with_absolute_paths(self.options),
            machine=self._machine,
            one_round=self.is_sliced,
            expected=expected,
        )
        n_residues = self.search_subjects.n_residues  # a subject of two bases has none in any frame
        return SliceTask(packed(spec), self._n_bytes(one), one.n_residues / n_residues if n_residues else 1.0)

    def _described(self, title: str, workers: Sequence[tuple[WorkerInfo, Ready, int]]) -> str:
        engines = sorted({ready.engine_choice.split(";")[0] for _, ready, _ in workers})
        there = f"{counted(len(workers), 'worker')} with {counted(sum(info.threads for info, *_ in workers), 'thread')}"
        held = "each holds the whole database"
        if self.is_sliced:
            held = f"each holds some of {counted(len(self.slices), 'slice')} of the database"
        return f"{title}: {there}; {', '.join(engines)}; {held}"


def _connected(cluster: str, machine: Machine, notify: Callable[[str], None]) -> AbstractContextManager[Connection]:
    """A connection to the workers at a place, as a context manager that ends it."""
    if cluster.startswith(PREFIX):
        return WorkerProcesses.of(cluster, machine.threads, machine.devices)
    from swsearch.cluster.dask_connection import DaskConnection  # only here: it loads asyncio

    return DaskConnection(cluster, notify)


def _with_absolute_paths(options: SearchOptions) -> SearchOptions:
    """The options with absolute paths of files, since the working directory of a worker is another one."""
    files = {name: getattr(options, name) for name in SEARCH_FILES}
    changed = {name: os.path.abspath(path) for name, path in files.items() if path is not None}
    if options.matrix is not None and os.path.isfile(options.matrix):
        changed["matrix"] = os.path.abspath(options.matrix)
    return replace(options, **changed)


@contextmanager
def open_cluster_searcher(
    database: Databases,
    options: SearchOptions | None,
    cluster: str,
    *,
    machine: Machine = ANY_MACHINE,
    slices: str = "auto",
    deadline_seconds: float = DEADLINE_SECONDS,
    notify: Callable[[str], None] = lambda _: None,
) -> Iterator[ClusterSearcher]:
    """A searcher with its database and its connection open, as a context manager that closes both on exit.

    Parameters
    ----------
    database : path, PackedDatabase, or sequence of these
        An open database stays open; several are searched as one. Each worker opens the database of the same content, at
        the same path or in a folder that its environment variable ``SWSEARCH_DATABASES`` names.
    options : SearchOptions, optional
    cluster : str
        ``tcp://host:port`` or a scheduler file (:mod:`swsearch.cluster.dask_connection`), or ``local:N`` for N
        processes of this machine.
    machine : Machine
        What each worker uses. By default, a worker has as many threads as Dask gave it, or a share of the cores of this
        machine. Each worker of ``local:N`` has one of the devices.
    slices, deadline_seconds, notify
        As for :class:`ClusterSearcher`.

    Raises
    ------
    DatabaseError
        The database cannot be opened.
    EngineError
        A worker cannot use the engine.
    InputError
        An option is out of range or does not fit the database, there is no scheduler, or a worker has another version
        of the program.
    """
    if machine.engine not in ENGINES:
        raise InputError(f"--engine {machine.engine!r}: choose {', '.join(ENGINES)}")
    if slices not in SLICES:
        raise InputError(f"--slices {slices}: choose {', '.join(SLICES)}")
    if machine.threads is not None:
        check_threads(machine.threads)
    of_worker = replace(machine, devices=None) if cluster.startswith(PREFIX) else machine
    with opened(database) as subjects, _connected(cluster, machine, notify) as connection:
        yield ClusterSearcher(
            subjects,
            SearchOptions() if options is None else options,
            connection,
            of_worker,
            slices=slices,
            deadline_seconds=deadline_seconds,
            notify=notify,
        )
