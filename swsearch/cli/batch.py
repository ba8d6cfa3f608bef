"""``swsearch batch``: ``swsearch query`` with defaults for scripts: all hits are stored, and none are printed."""

from __future__ import annotations

from typing import Annotated

import typer

from swsearch.cli import options, stores
from swsearch.words import counted


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
    """Search a database with every sequence of many files, and store the hits of each query as it ends.

    A batch that was killed loses no finished query: --resume latest computes only what is missing. Identical queries
    are computed once. A record that is no sequence fails alone; it is named at the end, and the exit code is 1. With
    --shard, the jobs of an array each take their shard into a store of their own; `swsearch runs merge` joins them.
    Queries may be profiles; PSSMs and Stockholm files are known by their first line.

    Example: swsearch batch genome1.faa genome2.faa proteins.db --store hits.sqlite --resume latest

    Example: swsearch batch Pfam-A.seed.gz proteins.db --store pfam.sqlite --shard 3/8

    Example: swsearch batch reads.fasta s3://bucket/genome.db --store 'hits-{shard}.sqlite' --shard auto --resume latest
    """
    from swsearch.cli.output import say
    from swsearch.cli.run import execute

    arguments = options.Arguments.of(context)
    is_printed = arguments.format != "none" or arguments.out is not None
    if not is_printed:
        stores.refuse_none(arguments.store)
    outcome = execute(files or [], arguments, context, skip_refused=True)
    there = "was" if outcome.n_before == 1 else "were"
    before = f", {outcome.n_before:,} {there} there before" if outcome.resumed else ""
    done = f"{counted(outcome.n_done, 'query', 'queries')} done{before}, {len(outcome.failed):,} failed"
    summary = done if outcome.run_id is None else f"run {outcome.run_id} in {outcome.store}: {done}"
    if (is_printed and arguments.out is None) or "-" in map(str, (arguments.unaligned, arguments.aligned_queries)):
        say(summary)  # stdout is used by the report or by queries
    else:
        print(summary)
        say(summary, quiet=True)
    for refused in outcome.failed:
        say(f"failed: {refused.line}")
    if outcome.failed:
        raise typer.Exit(1)
