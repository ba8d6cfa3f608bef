"""``swsearch index``: construction of a packed database from FASTA files and BLAST databases."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TextIO

import typer

from swsearch.cli import options
from swsearch.words import counted

if TYPE_CHECKING:
    from swsearch.sequences.alphabet import Alphabet
    from swsearch.sequences.refused import RefusedRecord
    from swsearch.sequences.source import HeldFile

_N_SHOWN: Final = 10
"""Number of skipped records that are printed."""


def index(
    out: Annotated[Path, typer.Option(*options.names("out"), help="Database to build, a folder that does not exist.")],
    fasta: Annotated[
        list[Path] | None, typer.Argument(help="FASTA or FASTQ files; gzip, bzip2, xz and zstd are read; - is stdin.")
    ] = None,
    blastdb: Annotated[
        list[str] | None,
        typer.Option(help="Import this BLAST database, as BLAST's -db names it; needs blastdbcmd. May be repeated."),
    ] = None,
    alphabet: Annotated[
        str | None,
        options.one_of("protein", "dna", help="What the files hold; detected and shown where it is not given."),
    ] = None,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Leave out records with wrong letters or none; list the first ten.")
    ] = False,
    skipped: Annotated[
        Path | None,
        typer.Option(help="With --skip-bad: list all records that are left out in this file, or - for stdout."),
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
    from swsearch.cli.collisions import refuse_collisions, refuse_database
    from swsearch.cli.databases import contents, repetitions
    from swsearch.cli.output import say
    from swsearch.cli.progress import ProgressReport
    from swsearch.cli.taxonomy import taxonomy_line
    from swsearch.database.builder import build_database
    from swsearch.database.object_store import refuse_url
    from swsearch.errors import InputError, UsageError
    from swsearch.sequences.alphabet import ALPHABETS

    if not fasta and not blastdb:
        raise UsageError(f"give FASTA files or --blastdb: swsearch index FASTA… --out {out}")
    if alphabet is not None and alphabet not in ALPHABETS:
        raise InputError(f"--alphabet {alphabet!r}: choose {' or '.join(ALPHABETS)}")
    if skipped is not None and not skip_bad:
        raise InputError("--skipped lists what --skip-bad leaves out; give both, or leave it out")
    chosen = None if alphabet is None else ALPHABETS[alphabet]
    refuse_url(str(out))
    kept: list[str | Path] = [*(fasta or []), *(path for path in (taxonomy, taxid_map) if path is not None)]
    refuse_database("--out", out, kept)
    refuse_collisions({"--skipped": skipped}, inputs=kept)
    sources, chosen = _sources(fasta or [], blastdb or [], chosen, quiet)
    with ExitStack() as stack:
        left_out = _LeftOut(skipped, stack)
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


class _LeftOut:
    """The records that were left out: their number, the first ones, and a list of all in a file, if there is one."""

    def __init__(self, path: Path | None, stack: ExitStack) -> None:
        from swsearch.cli.output import result_stream

        self._first: list[RefusedRecord] = []
        self._n = 0
        self._file: TextIO | None = None
        if path is not None:
            self._file = stack.enter_context(result_stream(path, option="--skipped"))
        if self._file is not None:
            print("file", "record", "identifier", "reason", sep="\t", file=self._file)

    def add(self, record: RefusedRecord) -> None:
        """Count and list a record."""
        self._n += 1
        if self._n <= _N_SHOWN:
            self._first.append(record)
        if self._file is not None:
            print(record.path, record.record, record.identifier, record.reason, sep="\t", file=self._file)

    def lines(self, path: Path | None) -> list[str]:
        """What is told of them; nothing if there are none."""
        if not self._n:
            return []
        which = "; the first of them:" if self._n > _N_SHOWN else ":"
        listed = "" if path is None else " (all on stdout)" if str(path) == "-" else f" (all in {path})"
        told = counted(self._n, "record was", "records were")
        return [f"warning: {told} left out{listed}{which}", *(f"  {record}" for record in self._first)]


def _sources(
    paths: list[Path], blast_names: list[str], alphabet: Alphabet | None, quiet: bool
) -> tuple[list[Path | HeldFile], Alphabet | None]:
    """The sequence files and the exports of BLAST databases, in order, and the alphabet, if it is known."""
    from swsearch.cli.output import say
    from swsearch.database.blast import BlastContent, blast_name, exported

    sources: list[Path | HeldFile] = []
    named = [(path, None if path.exists() else blast_name(path)) for path in paths]
    for path, name in [*named, *((Path(name), name) for name in blast_names)]:
        if name is None:
            sources.append(path)
            continue

        def begin(content: BlastContent, name: str = name) -> None:
            n_sequences = counted(content.n_sequences, f"{content.alphabet.name} sequence")
            say(f"{name}: a BLAST database of {n_sequences}, read with blastdbcmd", quiet=quiet)

        source, alphabet = exported(name, alphabet, begin=begin)
        sources.append(source)
    return sources, alphabet
