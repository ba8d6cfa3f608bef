"""``swsearch rbh``: reciprocal best hits of two sets of sequences."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from swsearch.cli import options
from swsearch.errors import InputError
from swsearch.words import counted

if TYPE_CHECKING:
    from swsearch.cli.comparison import Comparison, Prepared
    from swsearch.database.reader import PackedDatabase
    from swsearch.run import RunOutcome, Step

_HELP = "A database made by `swsearch index`, its URL in an object store, or a sequence file."


def rbh(
    first: Annotated[str, typer.Argument(metavar="A", click_type=options.INPUT_NAME, help=_HELP)],
    second: Annotated[
        str,
        typer.Argument(
            metavar="B", click_type=options.INPUT_NAME, help="The second set, of the same kind and alphabet as A."
        ),
    ],
    *,
    context: typer.Context,
) -> None:
    """Report the reciprocal best hits of two sets of sequences, such as the proteins of two species.

    A sequence of A and one of B are reciprocal best hits if each is the best hit of the other: the first one by
    E-value, score and order in the file. A line is that of the sequence of A in a search of B. All sequences are
    compared with all, so no best hit is missed. Both searches are stored; --resume latest computes what is missing.

    Example: swsearch rbh human.fasta mouse.fasta --out orthologues.tsv

    Example: swsearch rbh a.db b.db --evalue 1e-5 --min-query-coverage 50 --fields "qseqid sseqid pident evalue"
    """
    arguments = options.Arguments.of(context)
    from swsearch.cli.comparison import prepared
    from swsearch.cli.databases import open_databases
    from swsearch.cli.output import say
    from swsearch.run.reciprocal import BestHits, ReciprocalHits

    if arguments.resume not in (None, "latest"):
        raise InputError(
            f"--resume {arguments.resume}: the best hits of A and those of B are two runs; say --resume latest"
        )
    asked = prepared(arguments)
    with (
        open_databases(first, threads=arguments.threads, quiet=arguments.quiet) as a,
        open_databases(second, threads=arguments.threads, quiet=arguments.quiet) as b,
    ):
        if a.alphabet is not b.alphabet:
            raise InputError(f"{first} is {a.alphabet.name} and {second} is {b.alphabet.name}; give two of the same")
        best = BestHits()
        backward = _searched(asked, b, a, lambda _: best)
        reciprocal: list[ReciprocalHits] = []

        def reporting(comparison: Comparison) -> Step:
            steps = comparison.running.report_steps(comparison.searcher, asked.report)
            reciprocal.append(ReciprocalHits(best, steps))
            return reciprocal[0]

        forward = _searched(asked, a, b, reporting)
        sets = f"{counted(a.n_subjects, 'sequence')} and {b.n_subjects:,}"
        say(f"{counted(reciprocal[0].n_pairs, 'pair')} of reciprocal best hits among {sets}", quiet=arguments.quiet)
    if forward.run_id is not None:
        kept = f"run {forward.run_id} has the best hits of {first}, run {backward.run_id} those of {second}"
        say(kept, quiet=arguments.quiet)


def _searched(
    asked: Prepared, queries: PackedDatabase, subjects: PackedDatabase, step_of: Callable[[Comparison], Step]
) -> RunOutcome:
    """Search the best hits of all sequences of one database in another."""
    from swsearch.cli.comparison import compared
    from swsearch.search.queries import DatabaseQueries

    with compared(asked, subjects, queries.n_residues, lambda _: DatabaseQueries(queries)) as comparison:
        return comparison.execute([step_of(comparison)], resume_finished=True)
