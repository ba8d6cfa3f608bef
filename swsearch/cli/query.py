"""``swsearch query``: search a database with the sequences of a file, print the hits and store them."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Annotated

import typer

from swsearch.cli import options
from swsearch.cli.search_arguments import SearchArguments, takes_search_arguments

if TYPE_CHECKING:
    from swsearch.hits.result import QueryResult
    from swsearch.search.score_check import ScoreCheck
    from swsearch.store.recorder import RunRecorder


@takes_search_arguments
def query(
    query_file: Annotated[str, typer.Argument(metavar="QUERY.fasta", help="Queries, see --query-format; - is stdin.")],
    database_path: Annotated[str, typer.Argument(metavar="DB", help="A database made by `swsearch index`.")],
    query_format: options.QueryFormat = "auto",
    format_name: options.Format = "table",
    fields: options.Fields = None,
    out: options.Out = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            help="File for a histogram of all scores beside the statistics (.png, .svg, .pdf); computes every score.",
            rich_help_panel=options.OUTPUT,
        ),
    ] = None,
    *,
    search: SearchArguments,
) -> None:
    """Search a database with every sequence of a file; print ranked hits and store them.

    Each query is aligned with every subject, so no hit is lost. Results go to stdout, talk to stderr. With --translate,
    DNA is searched as protein in its six frames: a DNA query against proteins, proteins against a genome, or both.

    Example: swsearch query queries.fasta proteins.db --top 10

    Example: swsearch query family.sto proteins.db --min-query-coverage 60

    Example: swsearch query proteins.fasta genome.db --translate subject --genetic-code 11

    Example: swsearch query queries.fasta proteins.db --mask tantan --composition bias --plot scores.png
    """
    search.wake_gpus(database_path)
    from swsearch.cli.output import OutputClosed, result_stream, say
    from swsearch.cli.progress import ProgressReport, say_plan
    from swsearch.hits.share import all_of
    from swsearch.report.registry import check_fits, get_format
    from swsearch.search.query_file import read_queries_as

    report = get_format(format_name, options.field_list(fields))
    if plot is not None:
        from swsearch.plots import check_plot

        check_plot(plot)
    with ExitStack() as stack:
        searcher, why = stack.enter_context(search.open_searcher(database_path))
        expected = searcher.query_alphabet
        options.check_alphabet(search.alphabet, expected.name, database_path, search.translate)
        as_asked = search.alphabet is not None
        read = read_queries_as(query_file, query_format, searcher.scheme, alphabet=expected, as_asked=as_asked)
        queries = read.records
        for record in queries:
            searcher.check(record)
        check = None
        if plot is not None:
            from swsearch.search.score_check import ScoreCheck

            check = ScoreCheck(searcher)
            searcher.observe = check.add
        run = searcher.run_info(shlex.join(["swsearch", *sys.argv[1:]]))
        total = sum(searcher.cells(record) for record in queries)
        run = replace(run, parameters={**run.parameters, **read.parameters})
        check_fits(report, run)
        if not search.quiet:
            for line in (why, *searcher.notes, *read.notes):
                say(line)
            say_plan(searcher.forecast(total, queries))
            if run.lam is None:
                say(f"no E-values: {run.statistics}")
        recorder: RunRecorder | None = None

        def tell_what_is_kept(
            kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
        ) -> None:
            if isinstance(error, OutputClosed) and recorder is not None and recorder.n_added < len(queries):
                kept = (
                    f"run {recorder.run_id} in {recorder.store.name} keeps {recorder.n_added} of {len(queries)} queries"
                )
                say(f"nobody reads the results any more: {kept} and is marked interrupted")

        stack.push(tell_what_is_kept)
        stream = stack.enter_context(result_stream(out, binary=report.binary))
        progress = stack.enter_context(ProgressReport("searching", total, "GCUPS", 1e9, search.quiet))
        found = stack.enter_context(closing(searcher.search(queries, progress.advance)))
        if search.store != "none":
            # Loading SQLAlchemy takes a third of a second: a GPU is at work meanwhile.
            from swsearch.store.recorder import recorded_run
            from swsearch.store.repository import HitStore

            opened = stack.enter_context(HitStore(search.store, create=True))
            asked = all_of((record.header, record.letters) for record in queries)
            recorder = stack.enter_context(recorded_run(opened, run, asked))

        def results() -> Iterator[QueryResult]:
            for result in found:
                if recorder is not None:
                    recorder.add(result)
                progress.note(f"{result.number + 1} of {len(queries)} queries done")
                yield result

        report.write(run, results(), stream)
        if plot is not None and check is not None:
            title = f"{len(queries)} queries, {run.matrix} {run.gap_open}/{run.gap_extend}"
            _plot_scores(check, title, plot, recorder, quiet=search.quiet)
    if recorder is not None and not search.quiet:
        say(f"stored as run {recorder.run_id} in {recorder.store.name}")


def _plot_scores(check: ScoreCheck, title: str, path: Path, recorder: RunRecorder | None, *, quiet: bool) -> None:
    """Draw what was counted; say and store what is wrong with it."""
    from swsearch.cli.output import say
    from swsearch.search.score_plot import write_score_plot

    checked = check.result()
    write_score_plot(checked, title, path)
    if checked.fit is None and not quiet:
        say(f"{checked.n_scores:,} scores are too few to fit a distribution to them; the plot has none")
    if checked.warning is not None:
        if not quiet:
            say(checked.warning)
        if recorder is not None:
            recorder.note(checked.warning)
