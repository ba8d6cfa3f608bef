"""``swsearch report``: output of a stored run in any format, without any computation."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from swsearch.cli import completion, options
from swsearch.errors import DatabaseError, InputError
from swsearch.options import SEQUENCES
from swsearch.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from swsearch.database.reader import PackedDatabase
    from swsearch.hits.result import QueryResult
    from swsearch.report.base import Report
    from swsearch.store.runs import StoredRun


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
    from swsearch.cli.output import say, say_if_named_otherwise, table_width
    from swsearch.cli.report_steps import (
        SavedProfiles,
        refuse_run_without_checkpoints,
        refuse_shared_stdout,
        refuse_unused,
        report_called,
        steps_of_report,
    )
    from swsearch.cli.runs import find_run, what_is_missing
    from swsearch.report.formats import new_report
    from swsearch.report.steps import perform
    from swsearch.report_context import report_context
    from swsearch.store.store import Store

    given = options.Arguments.of(context)
    out, save_pssm, taxonomy, taxid_map = given.out, given.save_pssm, given.taxonomy, given.taxid_map
    refuse_shared_stdout(save_pssm, out)
    width = table_width(given.format, out, given.width)
    fields = options.field_list(given.fields)
    chosen = new_report(given.format, fields, given.rows, given.part, width, given.lca_top)
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
            searched = _database(chosen, stored, database, (taxonomy, taxid_map), stack)
            beside = report_context(chosen, info, searched, taxonomy, taxid_map, report_called(chosen))
            steps = steps_of_report(chosen, beside, out, stack)
            if save_pssm is not None:
                refuse_run_without_checkpoints(stored.info)
                steps.insert(0, SavedProfiles(save_pssm, stack))
            perform(steps, info, narrowing.results(stored.info, results))
    if narrowing.n_incomplete:
        lists = counted(narrowing.n_incomplete, "list was", "lists were")
        cut = f"{lists} cut at --top {stored.info.parameters['top']} by the search"
        say(f"warning: {cut}, so further subjects may pass the filters; search with these filters to find all")


def _database(
    report: Report,
    stored: StoredRun,
    paths: list[str] | None,
    taxonomy_files: tuple[str | None, str | None],
    stack: ExitStack,
) -> PackedDatabase | None:
    """The database of a stored run, if its report reads it; open until ``stack`` is closed.

    If headers can take its place and it is not there any more, a warning is printed. ``paths`` are those of the
    databases now; ``taxonomy_files`` are the values of ``--taxonomy`` and ``--taxid-map``.
    """
    from swsearch.cli.output import say
    from swsearch.report_context import DatabaseUse, database_use

    use = database_use(report, stored.info, *taxonomy_files, is_named=bool(paths))
    if use is DatabaseUse.NONE:
        if paths:
            raise InputError(f"--database {paths[0]}: this report is written from the store alone; leave it out")
        return None
    try:
        return _run_database(stored, paths, stack)
    except DatabaseError as error:
        if use is DatabaseUse.NEEDED:
            raise
        there = "--database names the database if it has another path now"
        say(f"warning: {error.__cause__}; taxonomy ids are those that headers state; {there}")
        return None


def _run_database(stored: StoredRun, paths: list[str] | None, stack: ExitStack) -> PackedDatabase:
    """The database of a stored run, open until ``stack`` is closed; by default, where it was searched.

    Raises
    ------
    DatabaseError
        The database is not there any more, or its content has changed.
    """
    from swsearch.cli.databases import open_databases
    from swsearch.database.object_store import is_url

    searched = stored.info.database
    places = paths or searched.paths
    try:
        for place in places:
            if not is_url(place) and not Path(place).exists():
                raise DatabaseError(f"{place} does not exist")
        return stack.enter_context(open_databases(places, searched=searched.digests))
    except DatabaseError as error:
        several = len(searched.digests) > 1
        which = "the databases of the run" if several else "the database of the run"
        advice = "name the database with --database if it has another path now"
        if several:
            advice = "name each database with --database, in this order, if they have other paths now"
        raise DatabaseError(f"run {stored.id}: this report needs {which}; {error.marked}; {advice}") from error
