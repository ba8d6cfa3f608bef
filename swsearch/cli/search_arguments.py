"""The options of ``swsearch query`` and ``swsearch batch``, declared once: those of the search and those of the run.

:func:`takes_arguments` adds the options of these dataclasses to a command. They have no comparison and no text of their
own, since Python would compile both from their hundred fields at the start of each command.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from swsearch.cli import options, store_options
from swsearch.errors import InputError
from swsearch.search import defaults

if TYPE_CHECKING:
    from pathlib import Path

    from swsearch.cli.progress import ProgressReport
    from swsearch.cluster.processes import WorkerProcesses
    from swsearch.database.reader import PackedDatabase
    from swsearch.engine.registry import Machine
    from swsearch.hits.subjects import SubjectPart
    from swsearch.report.narrowing import Narrowing
    from swsearch.report.row_filter import RowFilter
    from swsearch.search.options import SearchOptions
    from swsearch.search.planned_search import PlannedSearch
    from swsearch.search.searcher import Searcher


SEPARATE_QUERIES: Final = 8
"""Queries for each GPU from which a process for each is worthwhile."""
SEPARATE_CELLS: Final = 10**13
"""Cells from which this is so: about a second of one GPU."""


class SearchChoice:
    """The options of a search and of the machine that runs it, whichever of them a command offers.

    Those of :class:`SearchOptions` that are not among a command's fields have their default.
    """

    matrix: str | None
    include: str | None
    exclude: str | None
    taxid: str | None
    taxid_map: str | None
    taxonomy: str | None
    engine: str
    threads: int | None
    devices: str | None
    kernel: str
    no_bound: bool
    partition_residues: int | None
    store: str
    quiet: bool

    @property
    def cuts_lists(self) -> bool:
        """Whether a list of hits may end where a larger ``--top`` would continue it."""
        return True

    @property
    def asked(self) -> SearchOptions:
        """The options of the search, checked."""
        from swsearch.search.options import SearchOptions

        names = [field.name for field in fields(SearchOptions) if hasattr(self, field.name)]
        return SearchOptions(**{name: getattr(self, name) for name in names})

    @property
    def machine(self) -> Machine:
        """What of this machine the search uses."""
        from swsearch.engine.registry import Machine

        return Machine(
            self.engine,
            self.threads,
            options.device_list(self.devices),
            self.kernel,
            not self.no_bound,
            self.partition_residues,
        )

    def warm_up_gpus(self, database: PackedDatabase, query_residues: int) -> None:
        """Start the GPUs of this search while the program imports its other modules; never raises an error.

        ``query_residues`` is about the number of residues of all queries.
        """
        from swsearch.errors import SwSearchError
        from swsearch.threads import SWITCH_SECONDS

        # open_searcher raises the errors of the options again.
        with contextlib.suppress(SwSearchError):
            if self.machine.warm_up_gpus(database.n_residues * query_residues):
                sys.setswitchinterval(SWITCH_SECONDS)

    def separate_gpus(self, n_residues: int, query_residues: int, are_many: Callable[[int], bool]) -> list[int]:
        """The GPUs that get a process each; empty if this process uses the GPUs, if any.

        The processor time of the results of many queries is more than one process has. With fewer queries, the GPUs
        divide the subjects of each query, which needs one process.

        Parameters
        ----------
        n_residues, query_residues : int
            About the numbers of residues of the database and of all queries.
        are_many : callable
            Whether there are at least so many queries.
        """
        devices = options.device_list(self.devices) or []
        if len(devices) < 2 or self.engine not in ("auto", "cuda") or self.kernel != "strip":
            return []
        if n_residues * query_residues < SEPARATE_CELLS:
            return []
        if getattr(self, "translate", None) in ("subject", "both"):  # each process would translate the database
            return []
        from swsearch.engine.cuda.runtime.presence import look_for_gpus

        gpus = look_for_gpus()
        return devices if gpus.plugged_in and gpus.pycuda and are_many(SEPARATE_QUERIES * len(devices)) else []

    @contextlib.contextmanager
    def open_separate(
        self, processes: WorkerProcesses, database: PackedDatabase, query_residues: int
    ) -> Iterator[PlannedSearch]:
        """Open a searcher with a process for each GPU.

        If these cannot be used, or if a GPU has too little memory for the database, this process opens the engine, or
        reports what is wrong.
        """
        from swsearch.cli.output import say
        from swsearch.cluster.searcher import ClusterSearcher
        from swsearch.engine.registry import Machine
        from swsearch.errors import SwSearchError

        searcher = None
        with contextlib.suppress(SwSearchError):
            searcher = ClusterSearcher(
                database,
                self.asked,
                processes,
                Machine("cuda", bound=not self.no_bound, partition_residues=self.partition_residues),
                slices="no",
                threads=self.threads,
                engine_name="cuda",
                is_scored_here=True,
                notify=functools.partial(say, quiet=self.quiet),
                when_answered=processes.end,  # the run searches once
            )
        if searcher is not None and searcher.is_kept:
            yield searcher
            return
        processes.close()
        with self.open_searcher(database, query_residues) as own:
            yield own

    @contextlib.contextmanager
    def open_searcher(self, database: PackedDatabase, query_residues: int) -> Iterator[Searcher]:
        """Open an engine for these options and an open database; see :func:`swsearch.search.api.searcher_on`.

        If subjects are translated, the progress of the translation is reported.
        """
        from swsearch.search.api import searcher_on

        asked = self.asked
        with contextlib.ExitStack() as stack:
            with self._translation_report(database, asked) as report:
                opened = stack.enter_context(
                    searcher_on(
                        self.machine, database, asked, query_residues, None if report is None else report.advance
                    )
                )
            yield opened

    def _translation_report(
        self, database: PackedDatabase, asked: SearchOptions
    ) -> AbstractContextManager[ProgressReport | None]:
        from swsearch.cli.progress import ProgressReport

        if asked.translate not in ("subject", "both"):
            return contextlib.nullcontext()
        return ProgressReport("translating", database.n_residues, "M bases/s", 1e6, self.quiet)


@dataclass(frozen=True, eq=False, repr=False)
class SearchArguments(SearchChoice):
    """The options of a search and of the machine that runs it. Each field is an option of the same name."""

    alphabet: options.Alphabet = None
    top: options.Top = defaults.TOP
    evalue: options.Evalue = defaults.EVALUE
    ties: options.Ties = defaults.TIES
    strand: options.Strand = defaults.STRAND
    translate: options.Translate = None
    genetic_code: options.GeneticCode = None
    max_hsps: options.MaxHsps = defaults.MAX_HSPS
    matrix: options.Matrix = None
    match: options.Match = None
    mismatch: options.Mismatch = None
    gap_open: options.GapOpen = None
    gap_extend: options.GapExtend = None
    dbsize: options.DbSize = None
    mask: options.Mask = defaults.MASK
    mask_mode: options.MaskMode = defaults.MASK_MODE
    composition: options.Composition = defaults.COMPOSITION
    min_score: options.MinScore = None
    min_bits: options.MinBits = None
    min_identity: options.MinIdentity = None
    min_query_coverage: options.MinQueryCoverage = None
    min_subject_coverage: options.MinSubjectCoverage = None
    min_alignment_length: options.MinAlignmentLength = None
    min_length: options.MinLength = None
    max_length: options.MaxLength = None
    id_pattern: options.IdPattern = None
    include: options.Include = None
    exclude: options.Exclude = None
    taxid: options.Taxid = None
    taxid_map: options.TaxidMap = None
    taxonomy: options.Taxonomy = None
    iterations: options.Iterations = defaults.ITERATIONS
    inclusion_evalue: options.InclusionEvalue = defaults.INCLUSION_EVALUE
    engine: options.Engine = "auto"
    threads: options.Threads = None
    devices: options.Devices = None
    kernel: options.Kernel = "strip"
    no_bound: options.NoBound = False
    partition_residues: options.PartitionResidues = None
    store: store_options.Store = store_options.DEFAULT_STORE
    quiet: options.Quiet = False


@dataclass(frozen=True, eq=False, repr=False)
class RowArguments:
    """The conditions on the rows of a multiple alignment. Each field is an option of the same name."""

    msa_coverage: options.MsaCoverage = 0.0
    msa_query_identity: options.MsaQueryIdentity = 0.0
    msa_max_identity: options.MsaMaxIdentity = 100
    msa_diff: options.MsaDiff = 0
    msa_filter_above: options.MsaFilterAbove = 0

    @property
    def rows(self) -> RowFilter:
        """The conditions, checked."""
        from swsearch.report.row_filter import RowFilter

        names = [field.name for field in fields(RowArguments)]
        return RowFilter(**{name.removeprefix("msa_"): getattr(self, name) for name in names})


@dataclass(frozen=True, eq=False, repr=False)
class NarrowingArguments:
    """The limits by which a stored result is narrowed. Each field is an option of the same name."""

    top: options.FewerTop = None
    evalue: options.SmallerEvalue = None
    max_hsps: options.FewerHsps = None
    min_score: options.MinScore = None
    min_bits: options.MinBits = None
    min_identity: options.MinIdentity = None
    min_query_coverage: options.MinQueryCoverage = None
    min_subject_coverage: options.MinSubjectCoverage = None
    min_alignment_length: options.MinAlignmentLength = None

    @property
    def narrowing(self) -> Narrowing:
        """The limits, checked."""
        from swsearch.report.narrowing import Narrowing

        limits = Narrowing(**{field.name: getattr(self, field.name) for field in fields(self)})
        if limits.given:
            from swsearch.search.options import SearchOptions

            SearchOptions(**limits.given)  # type: ignore[arg-type]
        return limits


@dataclass(frozen=True, eq=False, repr=False)
class PartArguments:
    """The part of each subject that the format ``fasta`` writes. Each field is an option of the same name."""

    aligned: options.Aligned = False
    flank: options.Flank = None

    @property
    def part(self) -> SubjectPart | None:
        """The part, checked; None if no option is given."""
        from swsearch.cli.sequences import subject_part

        return subject_part(self.aligned, self.flank)


class RunChoice:
    """The options of a run that every command has: its store entry, its share and its report.

    Those with a value here have it in commands without such an option.
    """

    resume: str | None
    shard: str = "1/1"
    format_name: str = "none"
    fields: str | None = None
    width: int | None = None
    lca_top: float | None = None
    out: Path | None
    events: Path | None
    stage_store: str

    @property
    def rows(self) -> RowFilter | None:
        """The conditions on the rows of a multiple alignment, if the command has options for them."""
        return None

    @property
    def part(self) -> SubjectPart | None:
        """The part of each subject that is written, if the command has options for it."""
        return None

    @property
    def place(self) -> str | None:
        """The place of the cluster that searches; None if this process does."""
        return None

    @property
    def needs_this_process(self) -> bool:
        """Whether no other process may search."""
        return False

    @contextlib.contextmanager
    def gpu_processes(
        self, search: SearchChoice, n_residues: int, query_residues: int, are_many: Callable[[int], bool]
    ) -> Iterator[WorkerProcesses | None]:
        """Start a process for each GPU of a search, if that is worthwhile; they end with the context.

        The parameters are those of :meth:`SearchChoice.separate_gpus`.
        """
        is_here = self.place is not None or self.needs_this_process
        gpus = [] if is_here else search.separate_gpus(n_residues, query_residues, are_many)
        if not gpus:
            yield None
            return
        from swsearch.cluster.processes import WorkerProcesses

        threads = None if search.threads is None else max(1, search.threads // len(gpus))
        with WorkerProcesses(len(gpus), threads, gpus) as processes:
            yield processes

    def warm_up(
        self, search: SearchChoice, database: PackedDatabase, query_residues: int, processes: WorkerProcesses | None
    ) -> None:
        """Start the GPUs of this process, if it uses any; see :meth:`SearchChoice.warm_up_gpus`."""
        if self.place is None and processes is None:
            search.warm_up_gpus(database, query_residues)

    def open_searcher(
        self, search: SearchChoice, database: PackedDatabase, query_residues: int, processes: WorkerProcesses | None
    ) -> AbstractContextManager[PlannedSearch]:
        """Open an engine for an open database, unless the :meth:`gpu_processes` have them."""
        if processes is not None:
            return search.open_separate(processes, database, query_residues)
        return search.open_searcher(database, query_residues)


class ClusterRunChoice(RunChoice):
    """The options of a run that the workers of a cluster may search."""

    cluster: str | None
    slices: str
    deadline: float

    @property
    def place(self) -> str | None:
        """The place of the cluster that searches; None if this process does."""
        return self.cluster

    def open_searcher(
        self, search: SearchChoice, database: PackedDatabase, query_residues: int, processes: WorkerProcesses | None
    ) -> AbstractContextManager[PlannedSearch]:
        """Open a connection to the cluster if there is one, or else an engine."""
        if self.cluster is None:
            return super().open_searcher(search, database, query_residues, processes)
        from swsearch.cli.output import say
        from swsearch.cluster import open_cluster_searcher

        return open_cluster_searcher(
            database,
            search.asked,
            self.cluster,
            machine=search.machine,
            slices=self.slices,
            deadline_seconds=self.deadline,
            notify=functools.partial(say, quiet=search.quiet),
        )

    def refuse_options_of_clusters(self) -> None:
        """Refuse options for the workers of a cluster if there is none.

        Raises
        ------
        InputError
            Such an option is given without ``--cluster``.
        """
        for name in ("slices", "deadline"):
            if self.cluster is None and getattr(self, name) != getattr(type(self), name):
                raise InputError(f"--{name} is for the workers of a cluster; name one with --cluster, or leave it out")


@dataclass(frozen=True, eq=False, repr=False)
class RunArguments(PartArguments, RowArguments, RunChoice):
    """The options of a run: its queries, its store entry and its report. Each field is an option of the same name."""

    query_format: options.QueryFormat = "auto"
    in_pssm: options.InPssm = None
    db: options.Db = None
    resume: options.Resume = None
    shard: options.Shard = "1/1"
    format_name: options.Format = "table"
    fields: options.Fields = None
    width: options.Width = None
    lca_top: options.LcaTop = None
    out: options.Out = None
    plot: options.Plot = None
    save_pssm: options.SavePssm = None
    unaligned: options.Unaligned = None
    aligned_queries: options.AlignedQueries = None
    events: options.Events = None
    explain: options.Explain = False
    stage_store: store_options.StageStore = "auto"

    @property
    def needs_this_process(self) -> bool:
        """Whether no other process may search: for the scores of all subjects, and the plan of the engine."""
        return self.explain or self.plot is not None


@dataclass(frozen=True, eq=False, repr=False)
class BatchArguments(ClusterRunChoice, RunArguments):
    """The options of a run with the defaults of ``swsearch batch``, which prints a report only on request."""

    format_name: options.BatchFormat = "none"
    cluster: options.Cluster = None
    slices: options.Slices = "auto"
    deadline: options.Deadline = defaults.DEADLINE_SECONDS


def takes_arguments(command: Callable[..., None]) -> Callable[..., None]:
    """Add an option to ``command`` for each field of the dataclasses among its parameters.

    A parameter whose annotation is a dataclass, such as ``search: SearchArguments``, is replaced by the options of its
    fields in the help of the command. The command receives an instance of the dataclass with the values of the options.
    """
    signature = inspect.signature(command, eval_str=True)
    bundles: dict[str, tuple[type[Any], list[str]]] = {}
    parameters: list[inspect.Parameter] = []
    for parameter in signature.parameters.values():
        if isinstance(parameter.annotation, type) and is_dataclass(parameter.annotation):
            of_bundle = inspect.signature(parameter.annotation, eval_str=True).parameters.values()
            bundles[parameter.name] = (cast(type[Any], parameter.annotation), [field.name for field in of_bundle])
            parameters += [field.replace(kind=inspect.Parameter.KEYWORD_ONLY) for field in of_bundle]
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))

    @functools.wraps(command)
    def wrapped(**given: Any) -> None:
        bundled = {
            name: kind(**{field: given.pop(field) for field in names}) for name, (kind, names) in bundles.items()
        }
        command(**given, **bundled)

    wrapped.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    wrapped.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return wrapped
