"""The common part of ``swsearch query`` and ``swsearch batch``: open, survey, search, store and report.

:func:`execute` calls :mod:`swsearch.run` with the options of the command line and returns the outcome. The messages of
the two commands after a run differ, and are in their own modules.
"""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from swsearch.cli import options
from swsearch.cli.argument_order import queries_and_databases
from swsearch.cli.command import is_on_command_line
from swsearch.cli.command_run import asked_report, command_run, must_store, named_by_share, named_store
from swsearch.cli.databases import open_databases
from swsearch.cli.searchers import gpu_processes, open_searcher, warm_up
from swsearch.command_log import append
from swsearch.errors import InputError
from swsearch.words import counted

if TYPE_CHECKING:
    from swsearch.run import RunOutcome
    from swsearch.search.planned_search import PlannedSearch
    from swsearch.search.queries import QueryFiles
    from swsearch.search.score_check import SampleCheck, ScoreCheck
    from swsearch.search.searcher import Searcher
    from swsearch.store.store import Store


MANY_RESIDUES: Final = 10**9
"""Residues of queries that come through a pipe, whose number is not known before the engine is chosen."""


def execute(
    files: list[str], arguments: options.Arguments, context: typer.Context, *, skip_refused: bool
) -> RunOutcome:
    """Search databases with the queries of files.

    Parameters
    ----------
    files : list of str
        Query files, then the databases (:mod:`swsearch.cli.argument_order`).
    arguments : Arguments
        The options of the command line.
    context : typer.Context
        That of the command, which tells the options of the command line from those of the configuration file.
    skip_refused : bool
        Whether to continue after a record that cannot be searched, and list it in the outcome. Otherwise, such a record
        raises an error before anything is searched.

    Returns
    -------
    RunOutcome
    """
    paths, databases = queries_and_databases(
        files,
        arguments.db or (),
        arguments.command,
        has_queries=bool(arguments.in_pssm),
        are_defaults=not is_on_command_line(context, "db"),
    )
    from swsearch.hits.shards import asked_shard
    from swsearch.sequences.source import refuse_repeated_pipes

    shard = asked_shard(arguments.shard, os.environ)
    arguments = named_by_share(arguments, shard)
    needs_store = must_store(arguments) or arguments.command == "batch"
    arguments = arguments.changed(store=named_store(arguments, must_store=needs_store))
    paths += map(str, arguments.in_pssm or [])
    _refuse_contradictions(arguments)
    refuse_repeated_pipes([*paths, *databases])
    query_residues = _about_residues(paths)
    if not all(
        map(os.path.isdir, databases)
    ):  # fetching or packing it may take long, so wrong options are refused before
        asked_report(arguments)
        _ = arguments.asked
    are_many = partial(_are_many, paths, arguments.query_format)
    with (
        gpu_processes(arguments, _about_subjects(databases), query_residues, are_many) as processes,
        open_databases(databases, threads=arguments.threads, quiet=arguments.quiet) as subjects,
    ):
        warm_up(arguments, subjects, query_residues, processes)

        from swsearch.cli.report_steps import SavedProfiles, query_fastas, refuse_run_without_checkpoints
        from swsearch.run import perform, survey
        from swsearch.search.queries import QueryFiles
        from swsearch.search.searcher import Searcher

        report = asked_report(arguments)
        with command_run(arguments, shard, paths, must_store=needs_store) as running:
            searcher = running.stack.enter_context(open_searcher(arguments, subjects, query_residues, processes))
            options.check_alphabet(arguments.alphabet, searcher.needs)
            queries = QueryFiles.of(paths, arguments.query_format)
            if arguments.in_pssm:
                _refuse_sequences(queries)
            force_alphabet = arguments.alphabet is not None
            found = survey(queries, searcher, shard, force_alphabet=force_alphabet, skip_refused=skip_refused)
            if arguments.explain:
                for line in (searcher.engine_choice, *searcher.explain(found.sample)):
                    print(line)
                raise typer.Exit
            check = _score_check(searcher) if arguments.plot is not None and isinstance(searcher, Searcher) else None
            sample = _sample_check(searcher) if arguments.plot is None and arguments.cluster is None else None
            steps = running.report_steps(searcher, report)
            if arguments.save_pssm is not None:
                refuse_run_without_checkpoints(searcher.run_info(""))
                steps.insert(0, SavedProfiles(arguments.save_pssm, running.stack))
            fastas = query_fastas(arguments.unaligned, arguments.aligned_queries, queries, running.stack)
            if fastas is not None:
                steps.insert(0, fastas)
            with running.searching(
                queries,
                searcher,
                found,
                skip_refused=skip_refused,
                every_score=check is not None,
                stored_too=bool(steps),
            ) as searched:
                perform(steps, searched.info, searched)
            outcome = searched.outcome
            if fastas is not None:
                fastas.write_queries(queries, searcher)
            if sample is not None:
                _say_misfits(sample, quiet=arguments.quiet)
            if arguments.plot is not None and check is not None:
                scheme = searcher.scheme
                scored = counted(outcome.n_done, "query", "queries")
                title = f"{scored}, {scheme.matrix.name} {scheme.gap.open}/{scheme.gap.extend}"
                _plot_scores(
                    check, outcome, title, arguments.plot, arguments, running.stores[0] if running.stores else None
                )
        return outcome


def _about_residues(paths: list[str]) -> int:
    """About the number of residues of the query files, from their sizes; that of a large search for pipes."""
    from swsearch.output_files import COMPRESSED

    n_bytes = 0
    for path in map(Path, paths):
        if not path.is_file():
            return MANY_RESIDUES
        n_bytes += path.stat().st_size * (2 if path.suffix.lower() in COMPRESSED else 1)
    return n_bytes


def _about_subjects(databases: list[str]) -> int:
    """About the number of residues of packed databases, from the sizes of their files; 0 for others.

    A database need not be open for it, so that GPUs can start before.
    """
    folders = [Path(database) for database in databases]
    if not all(folder.is_dir() for folder in folders):
        return 0
    return sum(file.stat().st_size for folder in folders for file in folder.rglob("*") if file.is_file())


def _are_many(paths: list[str], query_format: str, n_queries: int) -> bool:
    """Whether the query files have at least so many queries; pipes, which can be read once, may have many."""
    from swsearch.sequences.source import text_lines

    if len(paths) >= n_queries or not all(map(os.path.isfile, paths)):
        return True
    if query_format in ("aligned", "a3m"):
        return False
    n_found = 0
    for path in paths:
        with suppress(InputError):  # the reader of the complete file reports the error
            for line in text_lines(path, ""):
                n_found += line.startswith((">", "@", "# STOCKHOLM", "HMMER3"))
                if n_found >= n_queries:
                    return True
    return False


def _refuse_sequences(queries: QueryFiles) -> None:
    """Refuse files of ``--in-pssm`` that are not profiles; a file that cannot be read has its own message."""
    from swsearch.sequences.source import shown_name, text_lines

    for path, form in zip(queries.paths, queries.formats, strict=True):
        if form == "fasta":
            next(text_lines(path, shown_name(path)), None)
            advice = "a FASTA file of aligned sequences is a query file, with --query-format aligned or a3m"
            raise InputError(f"--in-pssm {shown_name(path)} is no checkpoint, PSSM, model or Stockholm file; {advice}")


def _refuse_contradictions(arguments: options.Arguments) -> None:
    """Refuse options that exclude each other, and plots and logs of events that cannot be written."""
    from swsearch.cli.report_steps import refuse_shared_stdout
    from swsearch.output_files import refuse_compressed

    if arguments.store == "none" and arguments.resume is not None:
        raise InputError("--resume goes on with a stored run; name its store with --store")
    if arguments.plot is not None and arguments.resume is not None:
        raise InputError("--plot needs the scores of all queries, --resume does not search all again; leave one out")
    if arguments.plot is not None and arguments.iterations > 1:
        raise InputError("--plot shows the scores of one round; leave --iterations or --plot out")
    if arguments.plot is not None and arguments.cluster is not None:
        raise InputError(
            "--plot needs the scores of all subjects, which the workers of --cluster do not send; leave one out"
        )
    arguments.refuse_options_of_clusters()
    printed = arguments.format != "none" or arguments.out is not None
    refuse_shared_stdout(arguments.save_pssm, arguments.out, printed=printed)
    outputs = {
        "--out": (arguments.out or "-") if printed else None,
        "--save-pssm": arguments.save_pssm,
        "--unaligned": arguments.unaligned,
        "--aligned-queries": arguments.aligned_queries,
        "--events": arguments.events,
    }
    on_stdout = [option for option, path in outputs.items() if str(path) == "-"]
    for option in ("--unaligned", "--aligned-queries"):
        if option in on_stdout and len(on_stdout) > 1:
            others = [{"--out": "the report"}.get(other, other) for other in on_stdout if other != option]
            raise InputError(f"{option} -: {others[0]} is written to stdout, too; name a file for one of them")
    refuse_compressed(arguments.events, "--events", "each event is appended as it happens, which no archive can take")
    if arguments.plot is not None:
        from swsearch.output_files import check_plot

        check_plot(arguments.plot)


def _score_check(searcher: Searcher) -> ScoreCheck:
    """A counter of the scores of all subjects for the plot; the searcher adds the scores to it."""
    from swsearch.search.score_check import ScoreCheck

    check = ScoreCheck(searcher)
    searcher.observe = check.add
    return check


def _sample_check(searcher: PlannedSearch) -> SampleCheck | None:
    """A check of each query's scores with a sample of the subjects; None if there is none for this search."""
    from swsearch.engine.protocol import BackgroundEngine
    from swsearch.search.score_check import SampleCheck
    from swsearch.search.searcher import Searcher

    if not SampleCheck.applies(searcher):
        return None
    if isinstance(searcher, Searcher):
        check = SampleCheck(searcher, in_background=isinstance(searcher.engine, BackgroundEngine))
        searcher.observe_batch = check.add
        return check
    from swsearch.cluster.searcher import ClusterSearcher  # only here: most searches have no other processes

    assert isinstance(searcher, ClusterSearcher)
    check = SampleCheck(searcher, in_background=searcher.works_in_background)
    searcher.observe_batch = check.add
    return check


def _say_misfits(check: SampleCheck, *, quiet: bool) -> None:
    """Print one warning if queries do not follow the statistics; the log names all of them."""
    from swsearch.cli.output import say

    of_all = f"{check.n_checked:,} of {counted(check.n_queries, 'query', 'queries')}"
    append(f"the scores of {of_all} were compared with their statistics")
    for misfit in check.misfits if len(check.misfits) > 1 else ():
        append(str(misfit), logging.WARNING)
    if (message := check.warning) is not None:
        say(f"warning: {message}; --mask tantan leaves repeats out, --plot shows the scores", quiet=quiet)


def _plot_scores(
    check: ScoreCheck, outcome: RunOutcome, title: str, path: Path, arguments: options.Arguments, store: Store | None
) -> None:
    """Draw the counted scores; print and store the warning if they disagree with the statistics."""
    from swsearch.cli.output import say
    from swsearch.search.score_check import write_score_plot

    checked = check.result()
    write_score_plot(checked, title, path)
    if checked.fit is None:
        n_scores = counted(checked.n_scores, "score")
        say(f"{n_scores}: too few to fit a distribution to; the plot has none", quiet=arguments.quiet)
    if checked.warning is not None:
        say(checked.warning, quiet=arguments.quiet)
        if store is not None and outcome.run_id is not None:
            store.runs.note_statistics(outcome.run_id, checked.warning)
