"""``swsearch query``: search a database with the sequences of a file, print the hits and store them."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

import typer

from swsearch.cli import options
from swsearch.cli.search_arguments import SearchArguments, takes_search_arguments

if TYPE_CHECKING:
    from swsearch.hits.result import QueryResult


@takes_search_arguments
def query(
    query_file: Annotated[str, typer.Argument(metavar="QUERY.fasta", help="Queries as FASTA or FASTQ; - is stdin.")],
    database_path: Annotated[str, typer.Argument(metavar="DB", help="A database made by `swsearch index`.")],
    format_name: options.Format = "table",
    fields: options.Fields = None,
    out: options.Out = None,
    *,
    search: SearchArguments,
) -> None:
    """Search a database with every sequence of a file; print ranked hits and store them.

    Each query is aligned with every subject, so no hit is lost. Results go to stdout, talk to stderr.

    Example: swsearch query queries.fasta proteins.db --top 10
    """
    search.wake_gpus(database_path)
    if search.store != "none":
        from swsearch.store.recorder import recorded_run
        from swsearch.store.repository import HitStore
    from swsearch.cli.output import result_stream, say
    from swsearch.cli.progress import ProgressReport, say_plan
    from swsearch.report.registry import get_format
    from swsearch.search.api import read_queries

    report = get_format(format_name, options.field_list(fields))
    with ExitStack() as stack:
        searcher, why = stack.enter_context(search.open_searcher(database_path))
        expected = searcher.database.alphabet
        options.check_alphabet(search.alphabet, expected.name, database_path)
        queries = read_queries(query_file, expected, as_asked=search.alphabet is not None)
        for record in queries:
            searcher.check(record)
        run = searcher.run_info(shlex.join(["swsearch", *sys.argv[1:]]))
        total = sum(searcher.cells(record) for record in queries)
        if not search.quiet:
            say(why)
            say_plan(searcher.forecast(total, queries))
            if run.lam is None:
                say(f"no E-values: {run.statistics}")
        stream = stack.enter_context(result_stream(out, binary=report.binary))
        recorder = None
        if search.store != "none":
            opened = stack.enter_context(HitStore(search.store, create=True))
            recorder = stack.enter_context(recorded_run(opened, run))
        progress = stack.enter_context(ProgressReport("searching", total, "GCUPS", 1e9, search.quiet))

        def results() -> Iterator[QueryResult]:
            for result in searcher.search(queries, progress.advance):
                if recorder is not None:
                    recorder.add(result)
                progress.note(f"{result.number + 1} of {len(queries)} queries done")
                yield result

        report.write(run, results(), stream)
    if recorder is not None and not search.quiet:
        say(f"stored as run {recorder.run_id} in {search.store}")
