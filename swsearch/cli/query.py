"""``swsearch query``: a search of a database with the sequences of files; the hits are printed and stored."""

from __future__ import annotations

from typing import Annotated

import typer

from swsearch.cli import options
from swsearch.options import MACHINE


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
    server: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Search on this server (`swsearch serve`); DB is then the name of one of its databases. "
            "SWSEARCH_TOKEN "
            "provides the token.",
            rich_help_panel=MACHINE,
        ),
    ] = None,
) -> None:
    """Search a database with every sequence of the files; print ranked hits and store them.

    Each query is aligned with every subject, so no hit is lost. Results go to stdout, talk to stderr. Several databases
    are searched as one. With --translate, DNA is searched as protein in its six frames: a DNA query against proteins,
    proteins against a genome, or both.

    Example: swsearch query queries.fasta proteins.db --top 10

    Example: swsearch query queries.fasta subjects.fasta.gz

    Example: swsearch query queries.fasta swissprot.db trembl.db

    Example: swsearch query family.sto proteins.db --min-query-coverage 60

    Example: swsearch query proteins.fasta genome.db --translate subject --genetic-code 11

    Example: swsearch query queries.fasta proteins.db --mask tantan --composition bias --plot scores.png

    Example: swsearch query queries.fasta proteins.db --server http://127.0.0.1:8765
    """
    arguments = options.Arguments.of(context)
    if server is not None:
        from swsearch.cli.remote import execute_on_server

        execute_on_server(server, files or [], arguments)
        return
    from swsearch.cli.output import say
    from swsearch.cli.run import execute

    outcome = execute(files or [], arguments, context, skip_refused=False)
    if outcome.run_id is not None:
        say(f"stored as run {outcome.run_id} in {outcome.store}", quiet=arguments.quiet)
