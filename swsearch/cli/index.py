"""``swsearch index``: construction of a packed database from FASTA files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from swsearch.cli import options
from swsearch.words import counted


def index(
    fasta: Annotated[
        list[Path], typer.Argument(help="FASTA or FASTQ files; gzip, bzip2, xz and zstd are read; - is stdin.")
    ],
    out: Annotated[Path, typer.Option(*options.names("out"), help="Database to build, a folder that does not exist.")],
    alphabet: Annotated[
        str | None,
        options.one_of("protein", "dna", help="What the files hold; detected and shown where it is not given."),
    ] = None,
    slices: Annotated[
        int, typer.Option(help="Deal the sequences into this many slices, so that as many workers can hold one each.")
    ] = 1,
    threads: options.Threads = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing database.")] = False,
    quiet: options.Quiet = False,
) -> None:
    """Pack FASTA files into a database that every query opens in no time.

    Nothing is visible under the database's name until it is whole.

    Example: swsearch index proteins.fasta.gz -o proteins.db
    """
    from swsearch.cli.collisions import refuse_database
    from swsearch.cli.databases import contents, repetitions
    from swsearch.cli.output import say
    from swsearch.cli.progress import ProgressReport
    from swsearch.database.builder import build_database
    from swsearch.database.object_store import refuse_url
    from swsearch.errors import InputError
    from swsearch.sequences.alphabet import ALPHABETS

    if alphabet is not None and alphabet not in ALPHABETS:
        raise InputError(f"--alphabet {alphabet!r}: choose {' or '.join(ALPHABETS)}")
    chosen = None if alphabet is None else ALPHABETS[alphabet]
    refuse_url(str(out))
    refuse_database("--out", out, fasta)
    with ProgressReport("indexing", 0, "M residues/s", 1e6, quiet) as progress:
        built = build_database(
            fasta,
            out,
            chosen,
            overwrite=force,
            slices=slices,
            threads=threads,
            progress=lambda _, residues: progress.reach(residues),
        )
    if quiet:
        return
    n_slices = built.catalogue.n_slices
    sliced = f", {counted(n_slices, 'slice')}" if n_slices else ""
    say(f"{out}: {contents(built, is_asked=alphabet is not None)}{sliced}")
    if repeated := repetitions(built):
        say(f"warning: {repeated}")
