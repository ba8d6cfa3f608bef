"""``swsearch batch``: many queries in one run that can be interrupted, resumed and sharded."""

from __future__ import annotations

import shlex
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from swsearch.cli import options
from swsearch.cli.search_arguments import SearchArguments, takes_search_arguments
from swsearch.words import counted


@takes_search_arguments
def batch(
    files: Annotated[
        list[str], typer.Argument(metavar="FASTA… DB", help="Query files, then a database made by `swsearch index`.")
    ],
    query_format: options.QueryFormat = "auto",
    resume: Annotated[
        str | None, typer.Option(help="Go on with a run: its number, or latest. A new run starts where none fits.")
    ] = None,
    shard: Annotated[str, typer.Option(help="Search one share of the queries: i/n, i from 1 to n.")] = "1/1",
    events: Annotated[Path | None, typer.Option(help="File that takes a line of JSON for each event.")] = None,
    *,
    search: SearchArguments,
) -> None:
    """Search a database with every sequence of many files, and store the hits of each query as it ends.

    A batch that was killed loses no finished query: --resume latest computes only what is missing. Identical queries
    are computed once. A record that is no sequence fails alone; it is named at the end, and the exit code is 1. With
    --shard, the jobs of an array each take their share into a store of their own; `swsearch runs merge` joins them.
    Queries may be profiles; PSSMs and Stockholm files are known by their first line.

    Example: swsearch batch genome1.faa genome2.faa proteins.db --store hits.sqlite --resume latest

    Example: swsearch batch Pfam-A.seed.gz proteins.db --store pfam.sqlite --shard 3/8
    """
    from swsearch.errors import InputError

    if len(files) < 2:
        raise typer.BadParameter("give at least one query file and the database")
    if search.store == "none":
        raise InputError("--store none: a batch is what it stores; name a file")
    *paths, database = files
    from swsearch.cli.collisions import refuse_collisions
    from swsearch.output_files import log_file, refuse_compressed

    refuse_collisions({"--events": events}, inputs=[*paths, *search.files], databases=[database], store=search.store)
    refuse_compressed(events, "--events", "each event is appended as it happens, which no archive can take")
    search.wake_gpus(database)

    from swsearch.batch import Shard, run_batch, survey
    from swsearch.cli.output import say
    from swsearch.cli.progress import ProgressReport, say_plan
    from swsearch.search.query_file import QueryFiles
    from swsearch.store.repository import HitStore

    share = Shard.parse(shard)
    queries = QueryFiles.of(paths, query_format)
    with ExitStack() as stack:
        searcher, why = stack.enter_context(search.open_searcher(database))
        options.check_alphabet(search.alphabet, searcher.query_alphabet.name, database, search.translate)
        notify = None if search.quiet else say
        cells = survey(queries, searcher, share, as_asked=search.alphabet is not None, notify=notify)
        if not search.quiet:
            for line in (why, *searcher.notes):
                say(line)
            say_plan(searcher.forecast(cells))
        log = None
        if events is not None:
            to_stdout = str(events) == "-"
            log = stack.enter_context(log_file(Path("/dev/stdout") if to_stdout else events, "--events"))
        opened = stack.enter_context(HitStore(search.store, create=True))
        progress = stack.enter_context(ProgressReport("searching", cells, "GCUPS", 1e9, search.quiet))
        report = run_batch(
            queries,
            searcher,
            opened,
            shlex.join(["swsearch", *sys.argv[1:]]),
            resume=resume,
            shard=share,
            notify=notify,
            events=log,
            progress=progress.advance,
            told=lambda so_far: progress.note(f"{counted(so_far.n_before + so_far.n_done, 'query', 'queries')} done"),
        )
    before = f", {report.n_before:,} {'was' if report.n_before == 1 else 'were'} there before" if report.resumed else ""
    done = f"{counted(report.n_done, 'query', 'queries')} done{before}, {len(report.failed):,} failed"
    print(f"run {report.run_id} in {search.store}: {done}")
    for refused in report.failed:
        say(f"failed: {refused}")
    if report.failed:
        raise typer.Exit(1)
