"""``swsearch query`` and ``swsearch batch``: their databases, the search, and what each says at its end.

Query files and databases stand among the arguments. The packed databases and the URLs that stand last are the
databases, and so are those of ``--db``, which follow them. Without either, those of ``db`` in the configuration file
are; if there is none, the last argument is the database: a sequence file. All other arguments are query files.

:func:`execute` calls :mod:`swsearch.run` with the options of the command line and returns the outcome.
"""

from __future__ import annotations

import json
import logging
import os
import shlex
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from swsearch.cli import options
from swsearch.cli.command_line import follows
from swsearch.cli.command_run import CommandRun
from swsearch.cli.output import inform, note, say
from swsearch.command_log import append
from swsearch.errors import InputError, UsageError
from swsearch.file_registry import CATALOGUE, is_url
from swsearch.output_files import COMPRESSED, check_plot
from swsearch.words import counted

if TYPE_CHECKING:
    from swsearch.run import Run, RunOutcome
    from swsearch.search.queries import QueryFiles
    from swsearch.search.score_check import SampleCheck, ScoreCheck
    from swsearch.sequences.alphabet import Alphabet


def query(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="QUERY… DB…",
            click_type=options.INPUT_NAME,
            help="Query files (- is stdin), then databases made by `swsearch index`, their URLs, or, without --db, a "
            "sequence file.",
        ),
    ] = None,
    *,
    context: typer.Context,
) -> None:
    """Search a database with every sequence of the files; print ranked hits and store them.

    Each query is aligned with every subject, so no hit is lost. Results go to stdout, messages to stderr. With
    --translate, DNA is searched as protein in six frames: DNA against proteins, proteins against a genome, or both.

    Example: swsearch query queries.fasta proteins.db --top 10

    Example: swsearch query queries.fasta subjects.fasta.gz

    Example: swsearch query queries.fasta swissprot.db trembl.db

    Example: swsearch query family.sto proteins.db --min-query-coverage 60

    Example: swsearch query proteins.fasta genome.db --translate subject --genetic-code 11

    Example: swsearch query queries.fasta proteins.db --mask tantan --composition bias --plot scores.png

    Example: swsearch query queries.fasta proteins.db --server auto
    """
    arguments: options.Arguments = context.obj
    if (server := arguments.server) is not None:
        from swsearch.cli.remote import execute_on_running_server, execute_on_server

        if server != "auto":
            execute_on_server(server, files or [], arguments)
            return
        if execute_on_running_server(files or [], arguments):
            return

    outcome = execute(files or [], arguments)
    if outcome.run_id is not None:
        inform(f"stored as run {outcome.run_id} in {outcome.store}")


def batch(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FASTA… DB…",
            click_type=options.INPUT_NAME,
            help="Query files, then one or more databases as for `swsearch query`.",
        ),
    ] = None,
    *,
    context: typer.Context,
) -> None:
    """Search a database with every sequence of many files, and store the hits of each query when it is finished.

    A batch that was killed loses no finished query: --resume latest computes only what is missing. Identical queries
    are computed once. An invalid record fails alone; it is named at the end, and the exit code is 1. With --shard, each
    job of an array writes its shard to a store of its own; `swsearch runs merge` joins them. Queries may be profiles;
    PSSMs and Stockholm files are recognised by their first line.

    Example: swsearch batch genome1.faa genome2.faa proteins.db --store hits.sqlite --resume latest

    Example: swsearch batch Pfam-A.seed.gz proteins.db --store pfam.sqlite --shard 3/8

    Example: swsearch batch reads.fasta s3://bucket/genome.db --store 'hits-{shard}.sqlite' --shard auto --resume latest
    """
    arguments: options.Arguments = context.obj
    is_printed = arguments.format != "none" or arguments.out is not None
    if not is_printed:
        options.refuse_none(arguments.store, ", or print them with --format")
    outcome = execute(files or [], arguments)
    there = "was" if outcome.n_before == 1 else "were"
    before = f", {outcome.n_before:,} {there} there before" if outcome.resumed else ""
    done = f"{counted(outcome.n_done, 'query', 'queries')} done{before}, {len(outcome.failed):,} failed"
    summary = done if outcome.run_id is None else f"run {outcome.run_id} in {outcome.store}: {done}"
    if (is_printed and arguments.out is None) or "-" in map(str, (arguments.unaligned, arguments.aligned_queries)):
        say(summary)  # stdout is used by the report or by queries
    else:
        print(summary)
        note(summary)
    for refused in outcome.failed:
        say(f"failed: {refused.line}")
    if outcome.failed:
        raise typer.Exit(1)


MANY_RESIDUES: Final = 10**9
"""Residues of queries that come through a pipe, whose number is not known before the engine is chosen."""


def execute(files: list[str], arguments: options.Arguments) -> RunOutcome:
    """Search databases with the queries of files.

    Parameters
    ----------
    files : list of str
        Query files, then the databases (:mod:`swsearch.cli.query`).
    arguments : Arguments
        The options of the command line.

    Returns
    -------
    RunOutcome
    """
    paths, databases = queries_and_databases(files, arguments)
    paths += map(str, arguments.in_pssm or [])
    running = CommandRun(arguments, paths)
    arguments = running.arguments
    query_residues = _about_residues(paths)
    are_many = partial(_are_many, paths, arguments.query_format)
    with running.gpus_started(about_subjects(databases) * query_residues, are_many), ExitStack() as stack:
        _check_outputs(arguments)  # this imports modules, which takes time, so it is done while GPUs start
        running.check()
        from swsearch.cli.databases import open_databases  # the first modules that import NumPy

        subjects = stack.enter_context(open_databases(databases, threads=arguments.threads))
        from swsearch.search.queries import QueryFiles

        queries = QueryFiles.of(paths, arguments.query_format)
        arguments = running.arguments = translating(arguments, queries, subjects.name, subjects.alphabet)

        from swsearch.cli.report import CutMessage, FastaOutputs, SavedProfiles
        from swsearch.run import survey
        from swsearch.search.score_check import SampleCheck, ScoreCheck
        from swsearch.search.searcher import Searcher

        with running.opened(subjects, query_residues):
            searcher = running.searcher
            options.check_alphabet(arguments.alphabet, searcher.requirements)
            if arguments.in_pssm:
                _refuse_sequences(queries)
            force_alphabet = arguments.alphabet is not None
            found = survey(
                queries, searcher, running.shard, force_alphabet=force_alphabet, skip_refused=running.skips_refused
            )
            if arguments.explain:
                for line in (searcher.engine_choice, *searcher.explain(found.sample)):
                    print(line)
                raise typer.Exit
            check = sample = None
            if arguments.plot is not None and isinstance(searcher, Searcher):
                check = ScoreCheck(searcher)
                searcher.observe = check.add
            elif arguments.plot is None and arguments.cluster is None and SampleCheck.applies(searcher):
                sample = SampleCheck(searcher)
                searcher.observe_batch = sample.add
            steps = running.report_steps()
            if arguments.save_pssm is not None:
                steps.insert(0, SavedProfiles(arguments.save_pssm, searcher.run_info(""), running.stack))
            if arguments.unaligned is not None or arguments.aligned_queries is not None:
                steps.append(FastaOutputs(running, queries))
            cut = CutMessage(is_search=True)
            outcome = running.execute(queries, found, [*steps, cut], stored_too=bool(steps))
            if sample is not None:
                _say_misfits(sample)
            if check is not None:
                scheme = searcher.scheme
                is_one = outcome.n_done == len(found.sample) == 1
                scored = found.sample[0].identifier if is_one else counted(outcome.n_done, "query", "queries")
                database = searcher.run_info("").database.name
                title = (
                    f"{scored or 'unnamed'} in {database}, {scheme.matrix.name} {scheme.gap.open}/{scheme.gap.extend}"
                )
                _plot_scores(check, running.run, title, arguments.plot)
        return outcome


def translating(
    arguments: options.Arguments,
    queries: QueryFiles,
    database: str,
    holds: Alphabet,
    tell: Callable[[str], None] = inform,
) -> options.Arguments:
    """The options with the translation that queries of the other alphabet need, of which ``tell`` is told; ``holds`` is
    the alphabet of the database. ``--translate none`` refuses such queries.
    """
    from swsearch.search.queries import offered_translation
    from swsearch.sequences.alphabet import ALPHABETS

    if arguments.translate is not None:
        return arguments.changed(translate=None if arguments.translate == "none" else arguments.translate)
    side = offered_translation(queries, holds, ALPHABETS.get(arguments.alphabet))
    if side is None:
        return arguments
    found = f"the queries are proteins, {database} is DNA: it is searched in six frames"
    if side == "query":
        found = f"the queries are DNA, {database} is protein: they are translated in six frames"
    tell(f"{found}; --translate none refuses")
    return arguments.changed(translate=side)


def _about_residues(paths: list[str]) -> int:
    """About the number of residues of the query files, from their sizes; that of a large search for pipes."""
    n_bytes = 0
    for path in map(Path, paths):
        if not path.is_file():
            return MANY_RESIDUES
        n_bytes += path.stat().st_size * (2 if path.suffix.lower() in COMPRESSED else 1)
    return n_bytes


def about_subjects(databases: list[str]) -> int:
    """About the number of residues of databases, from catalogues and the sizes of sequence files; 0 for others.

    A database need not be open for it, nor NumPy imported, so that GPUs can start before.
    """

    def residues(database: str) -> int:
        if os.path.isfile(database):
            return _about_residues([database])
        segments = json.loads(Path(database, CATALOGUE).read_bytes())["segments"]
        return sum(int(segment["n_residues"]) for segment in segments)

    try:
        return sum(map(residues, databases))
    except (OSError, ValueError, LookupError, TypeError, OverflowError, RecursionError):
        return 0  # the opening reports it, if it is a database


def _are_many(paths: list[str], query_format: str, n_queries: int) -> bool:
    """Whether the query files have ``n_queries`` or more; pipes, which can be read once, may have many."""
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
            name = shown_name(path)
            next(text_lines(path, name), None)
            advice = "a FASTA file of aligned sequences is a query file, with --query-format aligned or a3m"
            raise InputError(f"--in-pssm {name} is not a checkpoint, PSSM, model or Stockholm file; {advice}")


def _check_outputs(arguments: options.Arguments) -> None:
    """Refuse outputs that exclude each other, and plots that cannot be written."""
    from swsearch.cli.report import refuse_shared_stdout

    if arguments.plot is not None and arguments.resume is not None:
        raise InputError("--plot needs the scores of all queries, --resume does not search all again; leave one out")
    if arguments.plot is not None and arguments.iterations > 1:
        raise InputError("--plot shows the scores of one round; leave --iterations or --plot out")
    if arguments.plot is not None and arguments.sensitive:
        raise InputError("--plot shows scores, and --sensitive ranks by the sums of all alignments; leave one out")
    if arguments.plot is not None and arguments.cluster is not None:
        raise InputError(
            "--plot needs the scores of all subjects, which the workers of --cluster do not send; leave one out"
        )
    refuse_shared_stdout(arguments)
    if arguments.plot is not None:
        check_plot(arguments.plot)


def _say_misfits(check: SampleCheck) -> None:
    """Print one warning if queries do not follow the statistics; the log names all of them."""
    of_all = f"{check.n_checked:,} of {counted(check.n_queries, 'query', 'queries')}"
    append(f"the scores of {of_all} were compared with their statistics")
    for misfit in check.misfits if len(check.misfits) > 1 else ():
        append(str(misfit), logging.WARNING)
    if (message := check.warning) is not None:
        inform(f"warning: {message}; --mask tantan leaves repeats out, --plot shows the scores")


def _plot_scores(check: ScoreCheck, run: Run | None, title: str, path: Path) -> None:
    """Draw the counted scores; print and store the warning if they disagree with the statistics."""
    from swsearch.search.score_check import write_score_plot

    checked = check.result()
    write_score_plot(checked, title, path)
    if checked.fit is None:
        n_scores = counted(checked.n_scores, "score")
        inform(f"{n_scores}: too few to fit a distribution to; the plot has none")
    if checked.warning is not None:
        inform(checked.warning)
        if run is not None and run.open_store is not None and run.outcome.run_id is not None:
            run.open_store.runs.note_statistics(run.outcome.run_id, checked.warning)


def is_packed(path: str) -> bool:
    """Whether a path is a packed database of this machine."""
    return os.path.isfile(os.path.join(path, CATALOGUE))


def is_database(path: str) -> bool:
    """Whether an argument can only be a database: a packed one of this machine, or a URL."""
    return is_url(path) or is_packed(path)


def queries_and_databases(files: Sequence[str], arguments: options.Arguments) -> tuple[list[str], list[str]]:
    """The query files and the databases of a search, by the rule above.

    Databases among the files replace those of the configuration file.

    Raises
    ------
    UsageError
        There is no query file or no database, or a database stands before a query file.
    """
    command, further, has_queries = arguments.command, arguments.db or (), bool(arguments.in_pssm)
    n_last = _n_databases(files)
    if not arguments.gives("db") and any(map(is_database, files)):
        further = ()
    if not n_last and not further and files and (has_queries or len(files) > 1):
        # A name that does not exist is more probably that of a database than of a sequence file behind databases.
        n_last = 1 if files[-1] == "-" or os.path.exists(files[-1]) else 1 + _n_databases(files[:-1])
    for path in files:
        if follows("-q", path) and not (path == "-" or is_database(path) or os.path.exists(path)):
            advice = f"results go to a file with --out {shlex.quote(path)}"
            raise UsageError(f"there is no {path}, and -q before it is --quiet, which takes no value; {advice}")
    n_queries = len(files) - n_last
    queries, databases = list(files[:n_queries]), [*files[n_queries:], *further]
    if not databases:
        known = queries or ["QUERY…"]
        line = _line(command, known, ["DB"])
        raise UsageError(f"give query files, or - for standard input, and then the database: {line}")
    if early := [path for path in queries if is_packed(path)]:
        _refuse_early(early, queries, databases, command)
    if not queries and not has_queries:
        line = _line(command, ["QUERY…"], list(dict.fromkeys(databases)))
        if len(databases) == 1:
            advice = "give query files, or - for standard input, before it"
            raise UsageError(f"{databases[0]} is a database; {advice}: {line}")
        raise UsageError(f"{databases[0]} is a database, and there is no query file: {line}")
    return queries, databases


def _n_databases(files: Sequence[str]) -> int:
    """Number of arguments at the end that can only be databases."""
    return len(list(takewhile(is_database, reversed(files))))


def _refuse_early(early: Sequence[str], queries: Sequence[str], databases: Sequence[str], command: str) -> None:
    """Refuse databases that stand before query files; a sequence file at the end may be meant as either."""
    others = [path for path in queries if path not in early]
    files = [path for path in databases if not is_database(path)]
    packed = list(dict.fromkeys([*early, *filter(is_database, databases)]))
    line = _line(command, [*others, *files] or ["QUERY…"], packed)
    if others and files:
        also = [word for path in files for word in ("--db", path)]
        line += f"; with {files[0]} as a database: {_line(command, others, [*packed, *also])}"
    raise UsageError(f"{early[0]} is a database, which stands behind the query files: {line}")


def _line(command: str, queries: Sequence[str], databases: Sequence[str]) -> str:
    quoted = [word if word in ("QUERY…", "DB") else shlex.quote(word) for word in (*queries, *databases)]
    return " ".join(["swsearch", command, *quoted])
