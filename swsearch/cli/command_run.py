"""The run of a command line: its engine, its store, its report, its progress, and its messages on stderr.

All commands that search and store use it: ``query``, ``batch`` and those of all against all. :class:`CommandRun` takes
their options, :meth:`CommandRun.gpus_started` starts GPUs, :meth:`CommandRun.check` refuses wrong options,
:meth:`CommandRun.opened` opens the engine (this process, a process for each GPU, or the workers of a cluster), and
:meth:`CommandRun.execute` searches.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from swsearch.cli import options
from swsearch.cli.command_line import command_line, resuming_line
from swsearch.cli.output import ProgressReport, inform, say
from swsearch.command_log import append, log_path
from swsearch.errors import InputError, OutputClosed, StoreError, SwSearchError
from swsearch.file_registry import is_store_url
from swsearch.folders import make_user_folder
from swsearch.options import COMPARISONS, DEFAULT_STORE, offered
from swsearch.output_files import log_file, refuse_compressed
from swsearch.words import counted, duration

if TYPE_CHECKING:
    from swsearch.cluster.processes import WorkerProcesses
    from swsearch.database.reader import PackedDatabase
    from swsearch.hits.result import QueryResult
    from swsearch.report.base import Report
    from swsearch.run import Run, RunOutcome, Step, Survey
    from swsearch.search.planned_search import PlannedSearch
    from swsearch.search.queries import Queries
    from swsearch.search.searcher import Searcher
    from swsearch.store.store import Store

LONG_SECONDS: Final = 10.0
"""The plan of a search is printed before it starts if it is expected to take longer than this."""
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


class CommandRun:
    """A search of a command: made of its options, which are checked; then opened, then executed.

    Parameters
    ----------
    arguments : Arguments
        The options.
    paths : sequence of str
        The query files, for the advice how to go on.

    Attributes
    ----------
    arguments : Arguments
        The options, with the store that is used.
    shard : Shard
        The shard of the queries that is searched.
    skips_refused : bool
        Whether a record that cannot be searched is listed in the outcome. Otherwise, it raises an error before anything
        is searched.
    must_store : bool
        Whether it is an error if the hits cannot be stored; otherwise, the search continues without a store.
    report : Report or None
        The report, if one is requested, once the options were checked.
    searcher : PlannedSearch
        The engine, while the search is open.
    stack : ExitStack
        Closes the engine, the store and the output files.
    run : Run or None
        The run, once it was made.
    """

    searcher: PlannedSearch
    stack: ExitStack

    def __init__(self, arguments: options.Arguments, paths: Sequence[str] = ()) -> None:
        from swsearch.hits.shards import asked_shard

        self.paths = paths
        self.shard = asked_shard(arguments.shard, os.environ)
        is_named = arguments.store != DEFAULT_STORE
        self.skips_refused: bool = arguments.command == "batch"
        self.must_store: bool = arguments.command == "batch" or is_named or arguments.resume is not None
        self.arguments = arguments.changed(store=_named_store(arguments, must_store=self.must_store))
        self.report: Report | None = None
        self.run: Run | None = None
        self._processes: WorkerProcesses | None = None

    @contextmanager
    def gpus_started(self, cells: int, are_many: Callable[[int], bool]) -> Iterator[None]:
        """Start the GPUs of a search, if it uses any, while the program opens its databases and imports its modules.

        Each GPU has a process of its own, which ends with the context, if that is worthwhile: the processor time of the
        results of many queries is more than one process has. With fewer queries, the GPUs divide the subjects of each
        query, which needs one process: this one.

        No error of an option is raised, because :meth:`opened` raises it again.

        Parameters
        ----------
        cells : int
            About the number of cells of the search.
        are_many : callable
            Whether there are this many queries or more.
        """
        arguments = self.arguments
        self._processes = None
        gpus = _separate_gpus(arguments, cells, are_many)
        if not gpus:
            if arguments.cluster is None:
                _warm_up(arguments, cells)
            yield
            return
        from swsearch.cluster.processes import WorkerProcesses

        threads = None if arguments.threads is None else max(1, arguments.threads // len(gpus))
        with WorkerProcesses(len(gpus), threads, gpus) as self._processes:
            yield

    def check(self) -> None:
        """Refuse wrong options, before databases are packed or fetched, which may take long.

        Raises
        ------
        InputError
            An option is out of its range, options exclude each other, there is no such format, or an option that
            chooses a part of a report, or a taxonomy, is given for none.
        """
        arguments = self.arguments
        if arguments.store == "none" and arguments.resume is not None:
            raise InputError("--resume goes on with a stored run; name its store with --store")
        for row in offered(arguments.command):
            if row.needs == ("cluster",) and arguments.cluster is None and getattr(arguments, row.name) != row.default:
                of_workers = f"{row.flags[0]} is for the workers of a cluster"
                raise InputError(f"{of_workers}; name one with --cluster, or leave it out")
        appended = "each event is appended as it happens, which no archive can take"
        refuse_compressed(arguments.events, "--events", appended)
        self.report = requested_report(arguments)
        if arguments.translate is None:  # the alphabets may call for one, and only then are its options judged
            arguments = arguments.changed(genetic_code=None, max_intron=None)
        _ = arguments.asked

    @contextmanager
    def opened(self, subjects: PackedDatabase, query_residues: int) -> Iterator[None]:
        """The search of an open database with its engine open; after an error, what is stored of it is printed.

        ``query_residues`` is about the number of residues of all queries.
        """
        self.run = None
        try:
            with ExitStack() as self.stack:
                self.searcher = self.stack.enter_context(self._open_searcher(subjects, query_residues))
                yield
        except (typer.Exit, StoreError):  # nothing was searched, or nobody knows what the store keeps
            raise
        except BaseException as error:
            _say_what_is_kept(self.run, error, self.paths)
            raise

    def _open_searcher(self, database: PackedDatabase, query_residues: int) -> AbstractContextManager[PlannedSearch]:
        """The engine: the workers of a cluster, the processes that were started, or this process."""
        arguments = self.arguments
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
        if self._processes is not None:
            return _open_separate(arguments, self._processes, database, query_residues)
        return _open_here(arguments, database, query_residues)

    def report_steps(self) -> list[Step]:
        """The steps that write the report of this search, if there is one, to the output.

        Raises
        ------
        InputError
            The format cannot represent the search, needs a taxonomy and there is none, or the output cannot be created.
        """
        from swsearch.cli.report import steps_of_report

        if self.report is None:
            return []
        run, database = self.searcher.run_info(""), self.searcher.database
        return steps_of_report(self.report, self.arguments, run, database, self.stack)

    def execute(
        self,
        queries: Queries,
        found: Survey,
        steps: Sequence[Step],
        of_each: Callable[[QueryResult], QueryResult] | None = None,
        *,
        stored_too: bool = True,
    ) -> RunOutcome:
        """Search, with the plan, the progress and the numbers of the search on stderr.

        Parameters
        ----------
        queries, stored_too
            As for :class:`swsearch.run.Run`.
        found : Survey
            The survey of the queries.
        steps, of_each
            As for :meth:`swsearch.run.Run.execute`.
        """
        from swsearch.run import Run

        arguments, searcher = self.arguments, self.searcher
        if not arguments.quiet or log_path() is not None:  # otherwise nobody would read it, and the forecast takes time
            _say_plan(searcher, found)
        events = None
        if arguments.events is not None:
            path = Path("/dev/stdout") if str(arguments.events) == "-" else arguments.events
            events = self.stack.enter_context(log_file(path, "--events"))
        # A bound may take the place of the scores of some cells.
        every_score = arguments.plot is not None
        every_cell = arguments.no_bound or every_score or searcher.engine_name == "reference"
        unit = "GCUPS" if every_cell else "effective GCUPS"
        progress = self.stack.enter_context(ProgressReport("searching", found.cells, unit, 1e9))
        total = found.asked.n_of_shard

        self.run = Run(
            queries,
            searcher,
            command=command_line(),
            store=None if arguments.store == "none" else self._open_store,
            resume=arguments.resume,
            resume_finished=arguments.command in ("cluster", "rbh"),  # they need all pairs, also those stored before
            asked=found.asked,
            skip_refused=self.skips_refused,
            search_repeated=every_score or arguments.command in COMPARISONS,  # equal sequences have other partners
            stored_too=stored_too,
            events=events,
            progress=progress.advance,
            notify=inform,
            on_query_done=lambda so_far: progress.note(f"{_n_of(so_far.n_before + so_far.n_done, total)} done"),
            on_store_failure=None if self.must_store else self._do_without_store,
        )
        outcome = self.run.execute(steps, of_each)
        if outcome.n_bounded:
            scores = f"{outcome.n_bounded:,} of {counted(outcome.n_scores, 'score')}"
            inform(f"{scores} were proved too low to report, the others were computed")
        return outcome

    def _open_store(self) -> Store:
        """Open the store, which is done while a GPU starts or works."""
        from swsearch.store.store import open_store

        opened = open_store(self.arguments.store, create=True, stage=self.arguments.stage_store, notify=inform)
        self.stack.callback(self._close_store, opened)
        return opened

    def _close_store(self, store: Store) -> None:
        try:
            store.close()
        except StoreError as error:  # of a staged store, whose last states cannot be published
            if self.must_store:
                raise
            self._do_without_store(error)

    def _do_without_store(self, error: StoreError) -> None:
        assert self.run is not None
        outcome = self.run.outcome
        is_open = outcome.run_id is not None  # only its last states are not published
        _say_not_stored(error, 0 if is_open else outcome.n_done)
        outcome.run_id = None


# --- what computes the search ---


def _warm_up(arguments: options.Arguments, cells: int) -> None:
    """Start the GPUs of this process in the background, and import what the search needs meanwhile."""
    from swsearch.threads import SWITCH_SECONDS

    with suppress(SwSearchError):
        if arguments.machine.warm_up_gpus(cells):
            sys.setswitchinterval(SWITCH_SECONDS)
            for module in _SEARCH_MODULES:
                importlib.import_module(module)


def _separate_gpus(arguments: options.Arguments, cells: int, are_many: Callable[[int], bool]) -> list[int]:
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


@contextmanager
def _open_separate(
    arguments: options.Arguments, processes: WorkerProcesses, database: PackedDatabase, query_residues: int
) -> Iterator[PlannedSearch]:
    """Open a searcher with a process for each GPU.

    If these cannot be used, or if a GPU has too little memory for the database, this process opens the engine, or
    reports what is wrong.
    """
    from swsearch.cluster.cluster_searcher import ClusterSearcher
    from swsearch.engine.registry import Machine

    searcher = None
    with suppress(SwSearchError):
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


@contextmanager
def _open_here(arguments: options.Arguments, database: PackedDatabase, query_residues: int) -> Iterator[Searcher]:
    """Open an engine of this process; if subjects are translated, the progress of the translation is reported."""
    from swsearch.search.searcher import searcher_on

    with ExitStack() as stack:
        with ProgressReport("translating", database.n_residues, "M bases/s", 1e6) as report:
            opened = searcher_on(arguments.machine, database, arguments.asked, query_residues, report.advance)
            searcher = stack.enter_context(opened)
        yield searcher


# --- the store and the report ---


def _say_plan(searcher: PlannedSearch, found: Survey) -> None:
    for line in (searcher.engine_choice, *searcher.notes, *found.notes):
        inform(line)
    forecast = searcher.forecast(found.cells, found.sample)
    if forecast is not None and forecast.seconds >= LONG_SECONDS:
        inform(f"plan: {forecast}; about {duration(forecast.seconds)}")
    run = searcher.run_info("")
    held = run.database
    sizes = f"{counted(held.n_subjects, 'sequence')}, {counted(held.n_residues, 'residue')}"
    append(f"database {held.name}: {held.alphabet}, {sizes}, SHA-256 {held.digest}")
    if run.lam is None:
        inform(f"no E-values: {run.statistics}")


def _named_store(arguments: options.Arguments, *, must_store: bool) -> str:
    """The store of a search: the one that is named, or the user's store, with a folder for it.

    Where there can be no such folder, nothing is stored, unless ``must_store``. A store whose driver is missing is
    refused here, before databases and engines are opened.
    """
    store: str = arguments.store
    if store != DEFAULT_STORE:
        if is_store_url(store):
            from swsearch.store.connections import check_url

            check_url(store)
        return store

    try:
        return str(make_user_folder())
    except StoreError as error:
        if must_store:
            raise
        _say_not_stored(error)
        return "none"


def _say_not_stored(error: StoreError, n_stored: int = 0) -> None:
    """Print why the user's store does not keep the hits, or those of more than ``n_stored`` queries."""
    verb = "is" if n_stored == 1 else "are"
    kept = f"no more than {counted(n_stored, 'query', 'queries')} {verb} stored" if n_stored else "nothing is stored"
    say(f"warning: {kept}: {error.marked}")


def requested_report(arguments: options.Arguments) -> Report | None:
    """The report of a search; None if none is requested.

    Raises
    ------
    InputError
        There is no such format, or an option that concerns reports is given for none or does not fit the format.
    """
    from swsearch.cli.report import asked_report, refuse_unused

    if arguments.format == "none" and arguments.fields is not None:
        raise InputError("--fields chooses the columns of a report; name its --format")
    if arguments.format == "none" and arguments.out is None:
        if arguments.rows:
            raise InputError("--msa-… chooses the rows of a report; name its --format")
        if arguments.part is not None:
            raise InputError("--aligned and --flank choose the sequences of a report; say --format fasta")
        if arguments.width is not None:
            raise InputError(f"--width {arguments.width} is that of a report; say --format table")
        if arguments.lca_top is not None:
            raise InputError(f"--lca-top {arguments.lca_top:g} is that of a report; say --format lca")
        refuse_unused(None, arguments)
        return None
    report = asked_report(arguments.changed(format="table") if arguments.format == "none" else arguments)
    refuse_unused(report, arguments)
    return report


def _say_what_is_kept(run: Run | None, error: BaseException, paths: Sequence[str]) -> None:
    """Print how many queries are stored and how to go on, if ``error`` ended the search before all were searched."""
    if run is None or not run.is_open or run.outcome.run_id is None:
        if isinstance(error, KeyboardInterrupt | SystemExit):
            say("nothing was stored")
        return
    outcome = run.outcome
    n_kept = outcome.n_before + outcome.n_done
    total = None if run.asked is None else run.asked.n_of_shard
    if total is not None and n_kept >= total:
        return
    why = "nobody reads the results any more: " if isinstance(error, OutputClosed) else ""
    say(f"{why}run {outcome.run_id} in {outcome.store} keeps {_n_of(n_kept, total)} and is marked interrupted")
    again = "" if all(Path(path).is_file() for path in paths) else ", with the same queries as input"
    say(f"to go on{again}: {resuming_line(run.outcome.run_id)}")


def _n_of(n_queries: int, total: int | None) -> str:
    """A number of queries, of all if their number is known."""
    if total is None:
        return counted(n_queries, "query", "queries")
    return f"{n_queries:,} of {counted(total, 'query', 'queries')}"
