"""``swsearch report``: output of a stored run in any format, without any computation."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

import typer

from swsearch.cli import completion, options
from swsearch.options import SEQUENCES
from swsearch.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from swsearch.hits.result import QueryResult


def report(
    run: Annotated[
        str,
        typer.Argument(
            metavar="RUN",
            autocompletion=completion.runs,
            help="Number of a run, or latest for the newest finished run.",
        ),
    ],
    *,
    context: typer.Context,
    database: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DB",
            click_type=options.INPUT_NAME,
            help="Database of the run, if its path has changed; for whole sequences and organisms of subjects. "
            "For several "
            "databases, repeat the option in their order.",
            rich_help_panel=SEQUENCES,
        ),
    ] = None,
) -> None:
    """Print the stored hits of a run, exactly as the search printed them, or fewer of them.

    --top, --evalue and the filters narrow the stored lists; wider limits need another search. Whole sequences of
    subjects (--format fasta, the column full_sseq) come from the database of the run, and so do their organisms if it
    has a taxonomy.

    Example: swsearch report latest --format blast6

    Example: swsearch report latest --evalue 1e-10 --top 5 --query Q600K7

    Example: swsearch report latest --format fasta --flank 50
    """
    from swsearch.cli.checkpoints import refuse_shared_stdout
    from swsearch.cli.command_run import write_report
    from swsearch.cli.output import say, say_if_named_otherwise, table_width
    from swsearch.cli.runs import find_run, what_is_missing
    from swsearch.cli.sequences import open_subjects
    from swsearch.cli.taxonomy import database_for_taxonomy, refuse_unused, report_taxonomy, with_organisms
    from swsearch.errors import InputError
    from swsearch.report.registry import get_format
    from swsearch.store.store import Store

    given = options.Arguments.of(context)
    out, save_pssm, taxonomy, taxid_map = given.out, given.save_pssm, given.taxonomy, given.taxid_map
    refuse_shared_stdout(save_pssm, out)
    width = table_width(given.format, out, given.width)
    fields = options.field_list(given.fields)
    chosen = get_format(given.format, fields, given.rows, given.part, width, given.lca_top)
    narrowing = given.narrowing
    refuse_unused(chosen, None, taxonomy, taxid_map)
    say_if_named_otherwise(given.format, "table", out, quiet=False)
    with Store(given.store, only_read=True) as opened:
        stored = find_run(opened, run)
        if stored.state != "finished":
            so_far = f"this is the report of the {counted(stored.n_queries, 'query', 'queries')} that it has so far"
            missing = what_is_missing(stored)
            say(f"warning: run {stored.id} is {stored.state}; {so_far}{missing and ', '}{missing}")
        info = narrowing.of_run(stored.info)
        results: Iterable[QueryResult] = opened.results.queries(stored.id)
        if given.query:
            results = (
                opened.results.query(stored.id, number) for number in opened.results.find(stored.id, given.query)
            )
        with ExitStack() as stack:
            subjects = open_subjects(chosen, stored, database, stack)
            searched = subjects
            if searched is None:
                searched = database_for_taxonomy(chosen, stored, database, taxonomy, taxid_map, stack)
            if database and searched is None:
                raise InputError(f"--database {database[0]}: this report is written from the store alone; leave it out")
            organisms = report_taxonomy(chosen, searched, taxonomy, taxid_map)
            write = with_organisms(write_report(chosen, out, stack, subjects), chosen, organisms)
            if save_pssm is not None:
                from swsearch.cli.checkpoints import refuse_run_without_checkpoints, with_checkpoints

                refuse_run_without_checkpoints(stored.info)
                write = with_checkpoints(write, save_pssm, stack)
            write(info, narrowing.results(stored.info, results))
    if narrowing.n_incomplete:
        lists = counted(narrowing.n_incomplete, "list was", "lists were")
        cut = f"{lists} cut at --top {stored.info.parameters['top']} by the search"
        say(f"warning: {cut}, so further subjects may pass the filters; search with these filters to find all")
