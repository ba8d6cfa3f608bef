"""The common part of ``swsearch query`` and ``swsearch batch``: open, survey, search, store and report.

:func:`execute` calls :mod:`swsearch.run` with the options of the command line and returns the outcome. The messages of
the two commands after a run differ, and are in their own modules.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

import typer

from swsearch.cli import options
from swsearch.cli.argument_order import refuse_lonely, refuse_wrong_order
from swsearch.cli.command_line import command_line, resuming_line
from swsearch.cli.databases import opened
from swsearch.cli.search_arguments import BatchArguments, RunArguments, SearchArguments
from swsearch.errors import InputError, OutputClosed, StoreError
from swsearch.words import counted

if TYPE_CHECKING:
    from swsearch.database.reader import PackedDatabase
    from swsearch.hits.share import AskedQueries, Shard
    from swsearch.hits.subjects import SubjectReader
    from swsearch.report.protocol import ReportFormat
    from swsearch.run import RunOutcome, WriteReport
    from swsearch.search.query_file import QueryFiles
    from swsearch.search.score_check import ScoreCheck
    from swsearch.search.searcher import Searcher
    from swsearch.store.repository import HitStore


MANY_RESIDUES: Final = 10**9
"""Residues of queries that come through a pipe, whose number is not known before the engine is chosen."""


def execute(files: list[str], search: SearchArguments, run: RunArguments, *, skip_refused: bool) -> RunOutcome:
    """Search with the queries of all files but the last, which is the database.

    Parameters
    ----------
    files : list of str
        Query files, then the database.
    search, run
        The options of the command line.
    skip_refused : bool
        Whether to continue after a record that cannot be searched, and list it in the outcome. Otherwise, such a record
        raises an error before anything is searched.

    Returns
    -------
    RunOutcome
    """
    command = "batch" if isinstance(run, BatchArguments) else "query"
    if not run.in_pssm:
        refuse_lonely(files, command)
    from swsearch.hits.job_arrays import asked_shard
    from swsearch.sequences.source import refuse_repeated_pipes

    shard = asked_shard(run.shard, os.environ)
    search, run = _named_by_share(search, run, shard)
    must_store = search.store != options.DEFAULT_STORE or run.resume is not None or isinstance(run, BatchArguments)
    search = _with_named_store(search, must_store=must_store)
    *paths, database = files
    refuse_wrong_order(paths, database, command)
    paths += map(str, run.in_pssm or [])
    _refuse_contradictions(paths, database, search, run)
    refuse_repeated_pipes([*paths, database])
    query_residues = _about_residues(paths)
    if not os.path.isdir(database):  # fetching or packing it may take long, so wrong options are refused before
        _report_format(run)
        _ = search.asked
    with opened(database, threads=search.threads, quiet=search.quiet) as subjects:
        return _execute(
            paths, subjects, search, run, shard, query_residues, skip_refused=skip_refused, must_store=must_store
        )


def _execute(
    paths: list[str],
    subjects: PackedDatabase,
    search: SearchArguments,
    run: RunArguments,
    shard: Shard,
    query_residues: int,
    *,
    skip_refused: bool,
    must_store: bool,
) -> RunOutcome:
    """Search with the queries of ``paths``; the options were checked."""
    if run.place is None:
        search.warm_up_gpus(subjects, query_residues)

    from swsearch.cli.output import say
    from swsearch.cli.progress import ProgressReport, say_plan
    from swsearch.cli.sequences import query_fastas
    from swsearch.run import run_search, survey
    from swsearch.search.query_file import QueryFiles
    from swsearch.search.searcher import Searcher

    report = _report_format(run)
    if run.plot is not None:
        from swsearch.plots import check_plot

        check_plot(run.plot)
    opened: list[RunOutcome] = []
    try:
        with ExitStack() as stack:
            searcher = stack.enter_context(run.open_searcher(search, subjects, query_residues))
            options.check_alphabet(search.alphabet, searcher.needs)
            queries = QueryFiles.of(paths, run.query_format)
            if run.in_pssm:
                _refuse_sequences(queries)
            force_alphabet = search.alphabet is not None
            found = survey(queries, searcher, shard, force_alphabet=force_alphabet, skip_refused=skip_refused)
            if run.explain:
                for line in (searcher.engine_choice, *searcher.explain(found.sample)):
                    print(line)
                raise typer.Exit
            check = _score_check(searcher) if run.plot is not None and isinstance(searcher, Searcher) else None
            if report is not None:
                from swsearch.report.registry import check_fits

                check_fits(report, searcher.run_info(""))
            if not search.quiet:
                for line in (searcher.engine_choice, *searcher.notes, *found.notes):
                    say(line)
                say_plan(searcher.forecast(found.cells, found.sample))
                statistics = searcher.run_info("")
                if statistics.lam is None:
                    say(f"no E-values: {statistics.statistics}")
            write = None if report is None else write_report(report, run.out, stack, searcher.database)
            if run.save_pssm is not None:
                from swsearch.cli.checkpoints import refuse_run_without_checkpoints, with_checkpoints

                refuse_run_without_checkpoints(searcher.run_info(""))
                write = with_checkpoints(write, run.save_pssm, stack)
            fastas = query_fastas(run.unaligned, run.aligned_queries, queries, stack)
            if fastas is not None:
                write = fastas.observing(write)
            events = None if run.events is None else _event_stream(run.events, stack)
            # A bound may take the place of the scores of some cells.
            every_cell = search.no_bound or check is not None or searcher.engine_name == "reference"
            unit = "GCUPS" if every_cell else "effective GCUPS"
            progress = stack.enter_context(ProgressReport("searching", found.cells, unit, 1e9, search.quiet))
            stores: list[HitStore] = []
            total = found.asked.n_of_share

            def do_without_store(error: StoreError) -> None:
                is_open = bool(opened) and opened[0].run_id is not None  # only its last states are not published
                _say_not_stored(error, opened[0].n_done if opened and not is_open else 0)
                if is_open:
                    opened[0].run_id = None

            on_store_failure = None if must_store else do_without_store

            def done_of(so_far: RunOutcome) -> str:
                n_done = so_far.n_before + so_far.n_done
                if total is None:
                    return f"{counted(n_done, 'query', 'queries')} done"
                return f"{n_done:,} of {counted(total, 'query', 'queries')} done"

            outcome = run_search(
                queries,
                searcher,
                command=command_line(),
                store=_store_opener(search.store, run.stage_store, stack, stores, on_store_failure),
                resume=run.resume,
                shard=shard,
                asked=found.asked,
                report=write,
                skip_refused=skip_refused,
                search_repeated=check is not None,
                events=events,
                progress=progress.advance,
                notify=None if search.quiet else say,
                on_query_done=lambda so_far: progress.note(done_of(so_far)),
                on_run_open=opened.append,
                on_store_failure=on_store_failure,
            )
            if fastas is not None:
                fastas.write(queries, searcher)
            if outcome.n_bounded and not search.quiet:
                scores = f"{outcome.n_bounded:,} of {counted(outcome.n_scores, 'score')}"
                say(f"{scores} were proved too low to report, the others were computed")
            if run.plot is not None and check is not None:
                scheme = searcher.scheme
                scored = counted(outcome.n_done, "query", "queries")
                title = f"{scored}, {scheme.matrix.name} {scheme.gap.open}/{scheme.gap.extend}"
                _plot_scores(check, outcome, title, run.plot, search, stores[0] if stores else None)
    except (typer.Exit, StoreError):  # nothing was searched, or nobody knows what the store keeps
        raise
    except BaseException as error:
        if opened and opened[0].run_id is not None:
            _say_what_is_kept(opened[0], opened[0].run_id, found.asked, error, paths)
        elif isinstance(error, KeyboardInterrupt | SystemExit):
            say("nothing was stored")
        raise
    return outcome


def _with_named_store(search: SearchArguments, *, must_store: bool) -> SearchArguments:
    """The options with the path of the user's store if no store is named, and a folder for it.

    Where there can be no such folder, nothing is stored, unless ``must_store``.
    """
    if search.store != options.DEFAULT_STORE:
        return search
    from swsearch.store.user_store import make_user_folder

    try:
        store = str(make_user_folder())
    except StoreError as error:
        if must_store:
            raise
        _say_not_stored(error)
        return replace(search, store="none")
    if not search.quiet:
        options.say_if_former_default_is_here()
    return replace(search, store=store)


def _say_not_stored(error: StoreError, n_stored: int = 0) -> None:
    """Print why the user's store does not keep the hits, or those of more than ``n_stored`` queries."""
    from swsearch.cli.output import say

    verb = "is" if n_stored == 1 else "are"
    kept = f"no more than {counted(n_stored, 'query', 'queries')} {verb} stored" if n_stored else "nothing is stored"
    say(f"warning: {kept}: {error}")


def _named_by_share(search: SearchArguments, run: RunArguments, shard: Shard) -> tuple[SearchArguments, RunArguments]:
    """The options with the share in place of ``{shard}`` in the names of all outputs."""

    def named(path: Path | None) -> Path | None:
        return None if path is None else Path(shard.named(str(path)))

    search = replace(search, store=shard.named(search.store))
    run = replace(
        run,
        out=named(run.out),
        plot=named(run.plot),
        save_pssm=named(run.save_pssm),
        unaligned=named(run.unaligned),
        aligned_queries=named(run.aligned_queries),
        events=named(run.events),
    )
    return search, run


def _about_residues(paths: list[str]) -> int:
    """About the number of residues of the query files, from their sizes; that of a large search for pipes."""
    from swsearch.output_files import COMPRESSED

    n_bytes = 0
    for path in map(Path, paths):
        if not path.is_file():
            return MANY_RESIDUES
        n_bytes += path.stat().st_size * (2 if path.suffix.lower() in COMPRESSED else 1)
    return n_bytes


def _refuse_sequences(queries: QueryFiles) -> None:
    """Refuse files of ``--in-pssm`` that are not profiles; a file that cannot be read has its own message."""
    from swsearch.sequences.lines import text_lines
    from swsearch.sequences.source import shown_name

    for path, form in zip(queries.paths, queries.formats, strict=True):
        if form == "fasta":
            next(text_lines(path, shown_name(path)), None)
            advice = "a FASTA file of aligned sequences is a query file, with --query-format aligned or a3m"
            raise InputError(f"--in-pssm {shown_name(path)} is no checkpoint, PSSM, model or Stockholm file; {advice}")


def _refuse_contradictions(paths: list[str], database: str, search: SearchArguments, run: RunArguments) -> None:
    """Refuse options that exclude each other, and outputs that must not be written."""
    from swsearch.cli.checkpoints import refuse_shared_stdout
    from swsearch.cli.collisions import refuse_collisions
    from swsearch.output_files import refuse_compressed

    if search.store == "none" and run.resume is not None:
        raise InputError("--resume goes on with a stored run; name its store with --store")
    if run.plot is not None and run.resume is not None:
        raise InputError("--plot needs the scores of all queries, --resume does not search all again; leave one out")
    if run.plot is not None and search.iterations > 1:
        raise InputError("--plot shows the scores of one round; leave --iterations or --plot out")
    if run.plot is not None and run.place is not None:
        raise InputError(
            "--plot needs the scores of all subjects, which the workers of --cluster do not send; leave one out"
        )
    if run.place is None and isinstance(run, BatchArguments):
        for name in ("slices", "deadline"):
            if getattr(run, name) != getattr(BatchArguments, name):
                raise InputError(f"--{name} is for the workers of a cluster; name one with --cluster, or leave it out")
    printed = run.format_name != "none" or run.out is not None
    refuse_shared_stdout(run.save_pssm, run.out, printed=printed)
    outputs = {
        "--out": (run.out or "-") if printed else None,
        "--plot": run.plot,
        "--save-pssm": run.save_pssm,
        "--unaligned": run.unaligned,
        "--aligned-queries": run.aligned_queries,
        "--events": run.events,
    }
    on_stdout = [option for option, path in outputs.items() if str(path) == "-"]
    for option in ("--unaligned", "--aligned-queries"):
        if option in on_stdout and len(on_stdout) > 1:
            others = [{"--out": "the report"}.get(other, other) for other in on_stdout if other != option]
            raise InputError(f"{option} -: {others[0]} is written to stdout, too; name a file for one of them")
    refuse_collisions(outputs, inputs=[*paths, *search.files], databases=[database], store=search.store)
    refuse_compressed(run.events, "--events", "each event is appended as it happens, which no archive can take")


def _report_format(run: RunArguments) -> ReportFormat | None:
    """The format of the report, or None if no report is requested."""
    from swsearch.cli.output import table_width
    from swsearch.report.registry import get_format

    name = run.format_name
    if name == "none":
        if run.fields is not None:
            raise InputError("--fields chooses the columns of a report; name its --format")
        if run.out is None:
            if run.rows:
                raise InputError("--msa-… chooses the rows of a report; name its --format")
            if run.part is not None:
                raise InputError("--aligned and --flank choose the sequences of a report; say --format fasta")
            if run.width is not None:
                raise InputError(f"--width {run.width} is that of a report; say --format table")
            return None
        name = "table"
    width = table_width(name, run.out, run.width)
    return get_format(name, options.field_list(run.fields), run.rows, run.part, width)


def write_report(
    report: ReportFormat, out: Path | None, stack: ExitStack, subjects: SubjectReader | None
) -> WriteReport:
    """A function that writes the report to ``out``; a file is complete when ``stack`` is closed.

    ``subjects`` is the database, for formats that read more of the subjects than the hits contain.
    """
    from swsearch.cli.output import result_stream
    from swsearch.hits.result import with_subjects

    stream = stack.enter_context(result_stream(out, binary=report.binary))
    if subjects is None:
        return lambda run, results: report.write(run, results, stream)
    return lambda run, results: report.write(run, with_subjects(results, subjects), stream)


def _event_stream(path: Path, stack: ExitStack) -> TextIO:
    from swsearch.output_files import log_file

    return stack.enter_context(log_file(Path("/dev/stdout") if str(path) == "-" else path, "--events"))


def _store_opener(
    store: str, stage: str, stack: ExitStack, opened: list[HitStore], on_failure: Callable[[StoreError], None] | None
) -> Callable[[], HitStore] | None:
    """A function that opens the store and adds it to ``opened``; None if nothing is stored.

    The store is opened late because the import of SQLAlchemy takes a third of a second, during which a GPU can work.
    ``stack`` closes it; an error is then passed to ``on_failure``, if that is a function.
    """
    if store == "none":
        return None

    def close() -> None:
        try:
            opened[0].close()
        except StoreError as error:  # of a staged store, whose last states cannot be published
            if on_failure is None:
                raise
            on_failure(error)

    def open_store() -> HitStore:
        from swsearch.store.staging import open_store

        opened.append(open_store(store, create=True, stage=stage))
        stack.callback(close)
        return opened[0]

    return open_store


def _say_what_is_kept(
    outcome: RunOutcome, run_id: int, asked: AskedQueries, error: BaseException, paths: list[str]
) -> None:
    """Print how many queries are stored and how to go on, if the search ended before all were searched."""
    from swsearch.cli.output import say

    n_kept = outcome.n_before + outcome.n_done
    total = asked.n_of_share
    if total is not None and n_kept >= total:
        return
    why = "nobody reads the results any more: " if isinstance(error, OutputClosed) else ""
    of_total = (
        counted(n_kept, "query", "queries") if total is None else f"{n_kept:,} of {counted(total, 'query', 'queries')}"
    )
    say(f"{why}run {run_id} in {outcome.store} keeps {of_total} and is marked interrupted")
    again = "" if all(Path(path).is_file() for path in paths) else ", with the same queries as input"
    say(f"to go on{again}: {resuming_line(run_id)}")


def _score_check(searcher: Searcher) -> ScoreCheck:
    """A counter of the scores of all subjects for the plot; the searcher adds the scores to it."""
    from swsearch.search.score_check import ScoreCheck

    check = ScoreCheck(searcher)
    searcher.observe = check.add
    return check


def _plot_scores(
    check: ScoreCheck, outcome: RunOutcome, title: str, path: Path, search: SearchArguments, store: HitStore | None
) -> None:
    """Draw the counted scores; print and store the warning if they disagree with the statistics."""
    from swsearch.cli.output import say
    from swsearch.search.score_plot import write_score_plot

    checked = check.result()
    write_score_plot(checked, title, path)
    if checked.fit is None and not search.quiet:
        say(f"{counted(checked.n_scores, 'score')}: too few to fit a distribution to; the plot has none")
    if checked.warning is not None:
        if not search.quiet:
            say(checked.warning)
        if store is not None and outcome.run_id is not None:
            store.note_statistics(outcome.run_id, checked.warning)
