"""``swsearch index``: construction of a packed database from FASTA files and BLAST databases."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from swsearch.cli import options
from swsearch.cli.sequence_sources import Blastdb, Fasta, LeftOut, SkipBad, Skipped, refuse_unused_list, sources_of
from swsearch.words import counted

if TYPE_CHECKING:
    from swsearch.database.format import TaxonomyEntry


def index(
    out: Annotated[
        Path,
        typer.Option(
            *options.OUT,
            click_type=options.NEW_DATABASE,
            help="Database to build: a folder that does not exist yet.",
        ),
    ],
    fasta: Fasta = None,
    blastdb: Blastdb = None,
    alphabet: Annotated[
        str | None,
        options.one_of("protein", "dna", help="Alphabet of the sequences. [detected and printed]"),
    ] = None,
    skip_bad: SkipBad = False,
    skipped: Skipped = None,
    slices: Annotated[
        int,
        typer.Option(help="Divide the sequences into this many slices, so that each of as many workers can hold one."),
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
    from swsearch.cli.databases import contents, repetitions
    from swsearch.cli.output import say
    from swsearch.cli.progress import ProgressReport
    from swsearch.database.builder import build_database
    from swsearch.database.object_store import refuse_url
    from swsearch.errors import InputError, UsageError
    from swsearch.sequences.alphabet import ALPHABETS

    if not fasta and not blastdb:
        raise UsageError(f"give FASTA files or --blastdb: swsearch index FASTA… --out {out}")
    if alphabet is not None and alphabet not in ALPHABETS:
        raise InputError(f"--alphabet {alphabet!r}: choose {' or '.join(ALPHABETS)}")
    refuse_unused_list(skipped, skip_bad=skip_bad)
    chosen = None if alphabet is None else ALPHABETS[alphabet]
    refuse_url(str(out))
    sources, chosen = sources_of(fasta or [], blastdb or [], chosen, quiet)
    with ExitStack() as stack:
        left_out = LeftOut(skipped, stack)
        progress = stack.enter_context(ProgressReport("indexing", 0, "M residues/s", 1e6, quiet))
        built = build_database(
            sources,
            out,
            chosen,
            overwrite=force,
            slices=slices,
            threads=threads,
            taxonomy=taxonomy,
            taxid_map=taxid_map,
            progress=lambda _, residues: progress.reach(residues),
            skip=left_out.add if skip_bad else None,
        )
    tell = partial(say, quiet=quiet)
    catalogue = built.catalogue
    sliced = f", {counted(catalogue.n_slices, 'slice')}" if catalogue.n_slices else ""
    tell(f"{out}: {contents(built, is_asked=alphabet is not None)}{sliced}")
    if catalogue.taxonomy is not None:
        tell(f"{out}: {taxonomy_line(catalogue.taxonomy)}")
        for note in built.notes:
            tell(note)
    if repeated := repetitions(built):
        tell(f"warning: {repeated}")
    for line in left_out.lines(skipped):
        tell(line)


def taxonomy_line(taxonomy: TaxonomyEntry) -> str:
    """What a database has stored about the organisms of its sequences."""
    assigned = f"{taxonomy.n_assigned:,} of {counted(taxonomy.n_rows, 'sequence')}"
    return f"{counted(taxonomy.n_taxa, 'taxon', 'taxa')}; {assigned} with a taxonomy id"
