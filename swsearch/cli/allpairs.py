"""``swsearch allpairs``: all sequences of a database against all others, each pair once."""

from __future__ import annotations

from typing import Annotated

import typer

from swsearch.cli import options
from swsearch.words import counted


def allpairs(
    database: Annotated[
        str,
        typer.Argument(
            metavar="DB",
            click_type=options.INPUT_NAME,
            help="A database made by `swsearch index`, its URL in an object store, or a sequence file.",
        ),
    ],
    *,
    context: typer.Context,
) -> None:
    """Compare all sequences of a database with each other, and report each pair once.

    The longer sequence of a pair is its query, the shorter one its subject; of two equally long ones, the later one in
    the database is the query. Scores, E-values and alignments are those of this query in `swsearch query`. No sequence
    is compared with itself, and no pair is left out that has the E-value. Filters on subjects choose the sequences on
    both sides. Each query is stored as it ends: --resume latest computes only what is missing.

    Example: swsearch allpairs proteins.db --evalue 1e-5 --out pairs.tsv

    Example: swsearch allpairs proteins.db --min-identity 30 --format blast6 --fields "qseqid sseqid evalue"

    Example: swsearch allpairs proteins.db --store 'pairs-{shard}.sqlite' --shard 3/8 --format none
    """
    arguments = options.Arguments.of(context)
    from swsearch.cli.comparison import compared, prepared
    from swsearch.cli.databases import open_databases
    from swsearch.cli.output import say
    from swsearch.search.queries import SubjectQueries

    asked = prepared(arguments)
    with (
        open_databases(database, threads=arguments.threads, quiet=arguments.quiet) as subjects,
        # A query is compared with half of the subjects.
        compared(asked, subjects, subjects.n_residues // 2, SubjectQueries.of) as comparison,
    ):
        outcome = comparison.execute(comparison.running.report_steps(comparison.searcher, asked.report))
    if outcome.run_id is not None:
        before = f", {outcome.n_before:,} of them before" if outcome.resumed else ""
        n_done = counted(outcome.n_done + outcome.n_before, "sequence")
        say(f"run {outcome.run_id} in {outcome.store}: {n_done} compared{before}", quiet=arguments.quiet)
