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
    taxonomy: options.DatabaseTaxonomy = None,
    taxid_map: options.DatabaseTaxidMap = None,
    threads: options.Threads = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing database.")] = False,
    quiet: options.Quiet = False,
) -> None:
    """Pack FASTA files into a database that every query opens in no time.

    Nothing is visible under the database's name until it is whole.

    With --taxonomy, the organisms of the sequences are stored with their names and lineages, for filters and reports.

    Example: swsearch index proteins.fasta.gz -o proteins.db

    Example: swsearch index uniprot.fasta.gz -o uniprot.db --taxonomy taxdump.tar.gz
    """
    from swsearch.cli.collisions import refuse_database
    from swsearch.cli.databases import contents, repetitions
    from swsearch.cli.output import say
    from swsearch.cli.progress import ProgressReport
    from swsearch.cli.taxonomy import taxonomy_line
    from swsearch.database.builder import build_database
    from swsearch.database.object_store import refuse_url
    from swsearch.errors import InputError
    from swsearch.sequences.alphabet import ALPHABETS

    if alphabet is not None and alphabet not in ALPHABETS:
        raise InputError(f"--alphabet {alphabet!r}: choose {' or '.join(ALPHABETS)}")
    chosen = None if alphabet is None else ALPHABETS[alphabet]
    refuse_url(str(out))
    refuse_database("--out", out, [*fasta, *(path for path in (taxonomy, taxid_map) if path is not None)])
    with ProgressReport("indexing", 0, "M residues/s", 1e6, quiet) as progress:
        built = build_database(
            fasta,
            out,
            chosen,
            overwrite=force,
            slices=slices,
            threads=threads,
            taxonomy=taxonomy,
            taxid_map=taxid_map,
            progress=lambda _, residues: progress.reach(residues),
        )
    if quiet:
        return
    catalogue = built.catalogue
    sliced = f", {counted(catalogue.n_slices, 'slice')}" if catalogue.n_slices else ""
    say(f"{out}: {contents(built, is_asked=alphabet is not None)}{sliced}")
    if catalogue.taxonomy is not None:
        say(f"{out}: {taxonomy_line(catalogue.taxonomy)}")
        for note in built.notes:
            say(note)
    if repeated := repetitions(built):
        say(f"warning: {repeated}")
