"""The run of a command line: its store, its report, its progress, and its messages on stderr.

:func:`command_run` is used by all commands that search and store: ``query``, ``batch`` and those of all against all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import typer

from swsearch.cli import options
from swsearch.cli.command_line import command_line, resuming_line
from swsearch.command_log import append, log_path
from swsearch.errors import InputError, OutputClosed, StoreError
from swsearch.options import DEFAULT_STORE, offered, option_of
from swsearch.words import counted

if TYPE_CHECKING:
    from swsearch.hits.shards import AskedQueries, Shard
    from swsearch.report.base import Report
    from swsearch.run import Run, RunOutcome, Step, Survey
    from swsearch.search.planned_search import PlannedSearch
    from swsearch.search.queries import Queries
    from swsearch.store.run_file import RunFile
    from swsearch.store.store import Store


def must_store(arguments: options.Arguments) -> bool:
    """Whether the search ends with an error if its hits cannot be stored."""
    return arguments.store != DEFAULT_STORE or arguments.resume is not None


@dataclass
class CommandRun:
    """A search of a command, in progress.

    Attributes
    ----------
    arguments : Arguments
        The options of the command line.
    shard : Shard
        The shard of the queries that is searched.
    paths : sequence of str
        The query files, for the advice how to go on.
    must_store : bool
        Whether it is an error if the hits cannot be stored; otherwise, the search continues without a store.
    stack : ExitStack
        Closes the store and the output files.
    stores : list of Store or RunFile
        The store, once it is open.
    """

    arguments: options.Arguments
    shard: Shard
    paths: Sequence[str]
    must_store: bool
    stack: ExitStack
    stores: list[Store | RunFile] = field(default_factory=list)
    _opened: tuple[RunOutcome, AskedQueries] | None = None

    def report_steps(self, searcher: PlannedSearch, report: Report | None) -> list[Step]:
        """The steps that write the report of this search, if there is one, to the output.

        Raises
        ------
        InputError
            The format cannot represent the search, needs a taxonomy and there is none, or the output cannot be created.
        """
        if report is None:
            return []
        from swsearch.cli.report import report_called, steps_of_report
        from swsearch.report_context import report_context

        arguments, info = self.arguments, searcher.run_info("")
        report.check_fits(info)
        called = report_called(report)
        context = report_context(report, info, searcher.database, arguments.taxonomy, arguments.taxid_map, called)
        return steps_of_report(
            report, context, arguments.out, self.stack, quiet=arguments.quiet, cuts_lists=arguments.cuts_lists
        )

    @contextmanager
    def searching(
        self,
        queries: Queries,
        searcher: PlannedSearch,
        found: Survey,
        *,
        skip_refused: bool = False,
        search_repeated: bool = False,
        resume_finished: bool = False,
        stored_too: bool = True,
    ) -> Iterator[Run]:
        """The run, in progress, with the plan, the progress and the numbers of the search on stderr.

        Parameters
        ----------
        queries, searcher, skip_refused, stored_too
            As for :class:`swsearch.run.Run`.
        found : Survey
            The survey of the queries.
        search_repeated : bool
            Whether queries with the same letters have different hits.
        resume_finished : bool
            Whether ``--resume latest`` also takes up a finished run.
        """
        from swsearch.cli.output import ProgressReport, say
        from swsearch.run import Run

        arguments = self.arguments
        _say_plan(searcher, found, quiet=arguments.quiet)
        events = None if arguments.events is None else _event_stream(arguments.events, self.stack)
        # A bound may take the place of the scores of some cells.
        every_score = arguments.plot is not None
        every_cell = arguments.no_bound or every_score or searcher.engine_name == "reference"
        unit = "GCUPS" if every_cell else "effective GCUPS"
        progress = self.stack.enter_context(ProgressReport("searching", found.cells, unit, 1e9, arguments.quiet))
        total = found.asked.n_of_shard
        on_store_failure = None if self.must_store else self._do_without_store

        def done_of(so_far: RunOutcome) -> str:
            n_done = so_far.n_before + so_far.n_done
            if total is None:
                return f"{counted(n_done, 'query', 'queries')} done"
            return f"{n_done:,} of {counted(total, 'query', 'queries')} done"

        def note_open(outcome: RunOutcome) -> None:
            self._opened = outcome, found.asked

        with Run(
            queries,
            searcher,
            command=command_line(),
            store=_store_opener(arguments, self.stack, self.stores, on_store_failure),
            resume=arguments.resume,
            resume_finished=resume_finished,
            shard=self.shard,
            asked=found.asked,
            skip_refused=skip_refused,
            search_repeated=every_score or search_repeated,
            stored_too=stored_too,
            events=events,
            progress=progress.advance,
            notify=partial(say, quiet=arguments.quiet),
            on_query_done=lambda so_far: progress.note(done_of(so_far)),
            on_run_open=note_open,
            on_store_failure=on_store_failure,
        ) as run:
            yield run
        outcome = run.outcome
        if outcome.n_bounded:
            scores = f"{outcome.n_bounded:,} of {counted(outcome.n_scores, 'score')}"
            say(f"{scores} were proved too low to report, the others were computed", quiet=arguments.quiet)

    def _do_without_store(self, error: StoreError) -> None:
        outcome = None if self._opened is None else self._opened[0]
        is_open = outcome is not None and outcome.run_id is not None  # only its last states are not published
        _say_not_stored(error, outcome.n_done if outcome is not None and not is_open else 0)
        if outcome is not None and is_open:
            outcome.run_id = None

    def say_what_is_kept(self, error: BaseException) -> None:
        """Print what is stored of the search that ``error`` has ended, and how to go on."""
        from swsearch.cli.output import say

        if self._opened is not None and self._opened[0].run_id is not None:
            outcome, asked = self._opened
            _say_what_is_kept(outcome, self._opened[0].run_id, asked, error, self.paths)
        elif isinstance(error, KeyboardInterrupt | SystemExit):
            say("nothing was stored")


@contextmanager
def command_run(
    arguments: options.Arguments, shard: Shard, paths: Sequence[str] = (), *, must_store: bool
) -> Iterator[CommandRun]:
    """A search of a command; after an error, what is stored of it is printed. The parameters are its attributes."""
    opened: list[CommandRun] = []
    try:
        with ExitStack() as stack:
            opened.append(CommandRun(arguments, shard, paths, must_store, stack))
            yield opened[0]
    except (typer.Exit, StoreError):  # nothing was searched, or nobody knows what the store keeps
        raise
    except BaseException as error:
        opened[0].say_what_is_kept(error)
        raise


def _say_plan(searcher: PlannedSearch, found: Survey, *, quiet: bool) -> None:
    if quiet and log_path() is None:  # nobody would read it, and the forecast takes time
        return
    from swsearch.cli.output import say, say_plan

    for line in (searcher.engine_choice, *searcher.notes, *found.notes):
        say(line, quiet=quiet)
    say_plan(searcher.forecast(found.cells, found.sample), quiet=quiet)
    run = searcher.run_info("")
    held = run.database
    sizes = f"{counted(held.n_subjects, 'sequence')}, {counted(held.n_residues, 'residue')}"
    append(f"database {held.name}: {held.alphabet}, {sizes}, SHA-256 {held.digest}")
    if run.lam is None:
        say(f"no E-values: {run.statistics}", quiet=quiet)


def named_by_share(arguments: options.Arguments, shard: Shard) -> options.Arguments:
    """The options with the shard in place of ``{shard}`` in the names of all outputs."""
    named: dict[str, Any] = {}
    for row in offered(arguments.command):
        value = getattr(arguments, row.name)
        if row.file == "output" and value is not None:
            named[row.name] = Path(shard.named(str(value)))
        elif row.file == "store":
            named[row.name] = shard.named(value)
    return arguments.changed(**named)


def named_store(arguments: options.Arguments, *, must_store: bool) -> str:
    """The store of a search: the one that is named, or the user's store, with a folder for it.

    Where there can be no such folder, nothing is stored, unless ``must_store``. A store whose driver is missing is
    refused here, before databases and engines are opened.
    """
    if arguments.store != DEFAULT_STORE:
        if "://" in arguments.store:  # a file needs no SQLAlchemy
            from swsearch.store.connections import check_url

            check_url(arguments.store)
        return arguments.store
    from swsearch.folders import make_user_folder

    try:
        return str(make_user_folder())
    except StoreError as error:
        if must_store:
            raise
        _say_not_stored(error)
        return "none"


def _say_not_stored(error: StoreError, n_stored: int = 0) -> None:
    """Print why the user's store does not keep the hits, or those of more than ``n_stored`` queries."""
    from swsearch.cli.output import say

    verb = "is" if n_stored == 1 else "are"
    kept = f"no more than {counted(n_stored, 'query', 'queries')} {verb} stored" if n_stored else "nothing is stored"
    say(f"warning: {kept}: {error.marked}")


def asked_report(arguments: options.Arguments) -> Report | None:
    """The report, or None if no report is requested.

    Raises
    ------
    InputError
        There is no such format, or an option that chooses a part of a report, or a taxonomy, is given for none.
    """
    from swsearch.cli.output import format_by_name, table_width
    from swsearch.cli.report import refuse_unused
    from swsearch.report.formats import new_report

    name = arguments.format
    if name == "none":
        if arguments.fields is not None:
            raise InputError("--fields chooses the columns of a report; name its --format")
        if arguments.out is None:
            if arguments.rows:
                raise InputError("--msa-… chooses the rows of a report; name its --format")
            if arguments.part is not None:
                raise InputError("--aligned and --flank choose the sequences of a report; say --format fasta")
            if arguments.width is not None:
                raise InputError(f"--width {arguments.width} is that of a report; say --format table")
            if arguments.lca_top is not None:
                raise InputError(f"--lca-top {arguments.lca_top:g} is that of a report; say --format lca")
            refuse_unused(None, arguments.taxid, arguments.taxonomy, arguments.taxid_map)
            return None
        name = "table"
    usual = option_of("format", arguments.command).default_in(arguments.command)
    name = format_by_name(name, "table" if usual == "none" else usual, arguments.out)
    width = table_width(name, arguments.out, arguments.width)
    report = new_report(
        name, options.field_list(arguments.fields), arguments.rows, arguments.part, width, arguments.lca_top
    )
    refuse_unused(report, arguments.taxid, arguments.taxonomy, arguments.taxid_map)
    return report


def _event_stream(path: Path, stack: ExitStack) -> TextIO:
    from swsearch.output_files import log_file

    return stack.enter_context(log_file(Path("/dev/stdout") if str(path) == "-" else path, "--events"))


def _store_opener(
    arguments: options.Arguments,
    stack: ExitStack,
    opened: list[Store | RunFile],
    on_failure: Callable[[StoreError], None] | None,
) -> Callable[[], Store | RunFile] | None:
    """A function that opens the store and adds it to ``opened``; None if nothing is stored.

    The store is opened late, while a GPU starts or works. ``stack`` closes it; an error is then passed to
    ``on_failure``, if that is a function.
    """
    if arguments.store == "none":
        return None

    def close() -> None:
        try:
            opened[0].close()
        except StoreError as error:  # of a staged store, whose last states cannot be published
            if on_failure is None:
                raise
            on_failure(error)

    def open_store() -> Store | RunFile:
        from swsearch.cli.output import say
        from swsearch.store.run_file import open_run_store

        notify = partial(say, quiet=arguments.quiet)
        opened.append(open_run_store(arguments.store, stage=arguments.stage_store, notify=notify))
        stack.callback(close)
        return opened[0]

    return open_store


def _say_what_is_kept(
    outcome: RunOutcome, run_id: int, asked: AskedQueries, error: BaseException, paths: Sequence[str]
) -> None:
    """Print how many queries are stored and how to go on, if the search ended before all were searched."""
    from swsearch.cli.output import say

    n_kept = outcome.n_before + outcome.n_done
    total = asked.n_of_shard
    if total is not None and n_kept >= total:
        return
    why = "nobody reads the results any more: " if isinstance(error, OutputClosed) else ""
    of_total = (
        counted(n_kept, "query", "queries") if total is None else f"{n_kept:,} of {counted(total, 'query', 'queries')}"
    )
    say(f"{why}run {run_id} in {outcome.store} keeps {of_total} and is marked interrupted")
    again = "" if all(Path(path).is_file() for path in paths) else ", with the same queries as input"
    say(f"to go on{again}: {resuming_line(run_id)}")
