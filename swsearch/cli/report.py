"""``swsearch report``: output of a stored run in any format, without any computation."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Annotated

import typer

from swsearch.cli import options
from swsearch.cli.search_arguments import PartArguments, RowArguments, takes_arguments
from swsearch.words import counted


@takes_arguments
def report(
    run: Annotated[str, typer.Argument(metavar="RUN", help="Number of a run, or latest finished one: latest.")],
    *,
    rows: RowArguments,
    part: PartArguments,
    format_name: options.Format = "table",
    fields: options.Fields = None,
    width: options.Width = None,
    out: options.Out = None,
    save_pssm: options.SavePssm = None,
    database: Annotated[
        str | None,
        typer.Option(
            metavar="DB",
            help="The run's database, if it has another path now; for whole sequences of subjects.",
            rich_help_panel=options.SEQUENCES,
        ),
    ] = None,
    store: options.KeptStore = options.DEFAULT_STORE,
) -> None:
    """Print the stored hits of a run, exactly as the search printed them.

    Whole sequences of subjects (--format fasta, the column full_sseq) come from the database of the run.

    Example: swsearch report latest --format blast6

    Example: swsearch report latest --format fasta --flank 50
    """
    from swsearch.cli.checkpoints import refuse_shared_stdout
    from swsearch.cli.collisions import refuse_collisions
    from swsearch.cli.command_run import write_report
    from swsearch.cli.output import say, table_width
    from swsearch.cli.runs import find_run, what_is_missing
    from swsearch.cli.sequences import open_subjects
    from swsearch.report.registry import get_format
    from swsearch.store.repository import HitStore

    refuse_shared_stdout(save_pssm, out)
    outputs = {"--out": out or "-", "--save-pssm": save_pssm}
    refuse_collisions(outputs, databases=[] if database is None else [database], stores=[store])
    chosen = get_format(
        format_name, options.field_list(fields), rows.rows, part.part, table_width(format_name, out, width)
    )
    with HitStore(store, only_read=True) as opened:
        stored = find_run(opened, run)
        if stored.state != "finished":
            so_far = f"this is the report of the {counted(stored.n_queries, 'query', 'queries')} that it has so far"
            missing = what_is_missing(stored)
            say(f"warning: run {stored.id} is {stored.state}; {so_far}{missing and ', '}{missing}")
        with ExitStack() as stack:
            write = write_report(chosen, out, stack, open_subjects(chosen, stored, database, stack))
            if save_pssm is not None:
                from swsearch.cli.checkpoints import refuse_run_without_checkpoints, with_checkpoints

                refuse_run_without_checkpoints(stored.info)
                write = with_checkpoints(write, save_pssm, stack)
            write(stored.info, opened.queries(stored.id))
