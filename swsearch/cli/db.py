"""``swsearch db``: public databases by name; inspection, verification, export and changes of a database."""

from __future__ import annotations

import shlex
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swsearch.cli import options
from swsearch.cli.command import CommandGroup
from swsearch.cli.index import Blastdb, Fasta, LeftOut, SkipBad, Skipped, refuse_unused_list, sources_of
from swsearch.cli.output import inform, result_stream, say
from swsearch.errors import AlphabetMismatch, DatabaseError, InputError, UsageError
from swsearch.file_registry import registry
from swsearch.words import counted, quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from swsearch.database.format import Catalogue

app = CommandGroup(help="Fetch public databases; inspect, verify, export and change databases.", no_args_is_help=True)

AnyDatabases = Annotated[
    list[str],
    typer.Argument(
        metavar="DB…",
        click_type=options.INPUT_NAME,
        help="Databases made by `swsearch index`, their URLs in an object store, or sequence files.",
    ),
]
Database = Annotated[
    Path, typer.Argument(metavar="DB", click_type=options.INPUT_PATH, help="A database made by `swsearch index`.")
]


@app.command()
def get(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="A name of the list.")] = None,
    out: Annotated[
        Path | None,
        options.declared(
            "out", "index", help="Database to build, or file to write. [NAME.db, or the name of the file]"
        ),
    ] = None,
    taxonomy: Annotated[
        str | None,
        options.declared("taxonomy", "index", help="NCBI's taxdump, or none. [SWSEARCH_TAXONOMY, or else fetched]"),
    ] = None,
    force: Annotated[bool, options.declared("force", help="Replace an existing database or file.")] = False,
    threads: options.Threads = None,
    quiet: options.Quiet = False,
) -> None:
    """Fetch a public database by its name, or list all names; it is packed while it arrives, and verified.

    A download that ends early continues when the command is repeated. With UniProt and UniRef, NCBI's taxdump is
    fetched and stored, for filters and reports. pfam is a file of profiles, which are used as queries.

    The file that SWSEARCH_DOWNLOADS names adds databases to the list.

    Example: swsearch db get

    Example: swsearch db get swissprot

    Example: swsearch db get pfam && swsearch query Pfam-A.hmm.gz swissprot.db
    """
    from swsearch.cli.databases import built_lines, fetching
    from swsearch.database.public_databases import TABLE_VARIABLE, get_database, get_file, public_databases

    rows = public_databases()
    if name is None:
        if out is not None:
            raise UsageError(f"name what --out is to be: {', '.join(rows)}")
        columns = [("name", "size", "title", "source", "licence")]
        columns += [(row.name, row.size, row.title, row.source, row.licence) for row in rows.values()]
        widths = [max(map(len, column)) for column in zip(*columns, strict=True)]
        for values in columns:
            print("  ".join(map(str.ljust, values, widths)).rstrip())
        return
    if name not in rows:
        raise UsageError(
            f"{quoted(name)} is not a public database: choose {', '.join(rows)}, or add it to {TABLE_VARIABLE}"
        )
    row = rows[name]
    target = out or row.usual_target
    registry().write_database("--out", str(target))
    if row.is_file:
        get_file(row, target, fetching, overwrite=force)
        inform(f"{target}: {row.title}")
        return
    with ExitStack() as stack:
        left_out = LeftOut(None, stack)
        built = get_database(
            row,
            target,
            fetching,
            taxdump=rows.get(row.taxonomy),
            taxonomy=taxonomy,
            overwrite=force,
            threads=threads,
            skip=left_out.add,
        )
    for line in [*built_lines(target, built, is_asked=True), *left_out.lines()]:
        inform(line)


@app.command()
def info(
    databases: AnyDatabases,
    format_name: options.TableFormat = "table",
) -> None:
    """Show the contents of databases; of several, also the totals of a search of all.

    Example: swsearch db info proteins.db

    Example: swsearch db info swissprot.db trembl.db

    Example: swsearch db info proteins.db --format json
    """
    from swsearch.cli.databases import open_databases
    from swsearch.cli.documents import describe_database, describe_databases, write_document

    with ExitStack() as stack:
        members = [stack.enter_context(open_databases(path)) for path in databases]
        several = describe_databases(databases, members) if len(members) > 1 else None
        each = [describe_database(databases[0], members[0])] if several is None else several["databases"]
        if format_name == "json":
            write_document(several or each[0])
            return
        for described, subjects in zip(each, members, strict=True):
            _print_rows(_rows(described, subjects.catalogue))
            if several is not None:
                print()
    if several is not None:
        _print_rows(_rows_together(several))


def _print_rows(rows: Iterable[tuple[str, str]]) -> None:
    for name, value in rows:
        print(f"{name:<12}{value}")


def _rows(described: dict[str, Any], catalogue: Catalogue) -> Iterator[tuple[str, str]]:
    """What a database holds, as names and values."""
    from swsearch.cli.databases import taxonomy_line

    def amount(of: str) -> str:
        n_subjects, n_residues = described[f"n_{of}_subjects"], described[f"n_{of}_residues"]
        return f"{counted(n_subjects, 'sequence')}, {counted(n_residues, 'residue')}" if n_subjects else ""

    yield "database", described["database"]
    yield from _totals(described)
    yield "sources", ", ".join(catalogue.sources)
    yield "digest", catalogue.digest
    yield "generation", str(catalogue.generation)
    yield "segments", f"{len(catalogue.segments):,}"
    yield "slices", _slices(catalogue)
    yield "taxonomy", "none" if catalogue.taxonomy is None else taxonomy_line(catalogue.taxonomy)
    yield "repeats", f"{equal}, equal to others or part of them" if (equal := amount("repeated")) else "none"
    yield "removed", f"{gone}, in the files until a compaction" if (gone := amount("removed")) else "none"
    yield "made by", f"{catalogue.program}, {catalogue.created}"


def _totals(described: dict[str, Any]) -> Iterator[tuple[str, str]]:
    lengths = f"{described['shortest']:,} to {described['longest']:,}"
    yield "alphabet", described["alphabet"]
    yield "sequences", f"{described['n_subjects']:,}"
    yield "residues", f"{described['n_residues']:,}"
    yield "lengths", f"{lengths}, mean {described['mean_length']:,.1f}"
    yield "size", counted(described["n_bytes"], "byte")


def _rows_together(several: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What a search of several databases together would search, as names and values."""
    together = several["together"]
    if together is None:
        yield "together", f"cannot be searched: {several['reason']}"
        return
    yield "together", counted(len(several["databases"]), "database")
    yield from _totals(together)
    yield "digest", together["digest"]


@app.command()
def verify(databases: AnyDatabases, threads: options.Threads = None) -> None:
    """Read all files of databases and compare their checksums; the exit code is 1 if one differs.

    Each database has its own line; those after a damaged one are verified, too.

    Example: swsearch db verify proteins.db

    Example: swsearch db verify swissprot.db trembl.db
    """
    n_failed = 0
    for database in databases:
        try:
            _verify(database, threads)
        except (DatabaseError, InputError) as error:
            if len(databases) == 1:
                raise
            say(f"error: {error.marked}")
            n_failed += 1
        else:
            print(f"{database} is whole", flush=True)
    if n_failed:
        raise typer.Exit(1)


def _verify(database: str, threads: int | None) -> None:
    """Check one database, and refuse it if it is damaged."""
    from swsearch.cli.databases import open_databases
    from swsearch.database.verify import verify_path

    with open_databases(database, threads=threads) as subjects:
        problems = verify_path(subjects.path, threads=threads)
    if problems:
        is_cached = subjects.members[0].is_cached
        advice = f"remove {subjects.path} from the cache" if is_cached else "index its FASTA again"
        raise DatabaseError(f"{database} is damaged: {'; '.join(problems)}; {advice}")


@app.command()
def export(
    database: options.AnyDatabase,
    out: options.Out = None,
    width: Annotated[int, typer.Option(min=0, help="Letters on each line; 0 writes each sequence on one line.")] = 60,
    threads: options.Threads = None,
) -> None:
    """Write the sequences back as FASTA: letters, their case, headers and order as they were read.

    Example: swsearch db export proteins.db --out proteins.fasta
    """
    from swsearch.cli.databases import open_databases
    from swsearch.database.export import export as write_fasta

    with open_databases(database, threads=threads) as subjects, result_stream(out) as stream:
        write_fasta(subjects, stream, width, threads=threads)


@app.command()
def fetch(
    database: options.AnyDatabase,
    identifiers: Annotated[
        list[str] | None, typer.Argument(metavar="[IDENTIFIER]...", help="First words of headers, or accessions.")
    ] = None,
    ids: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            click_type=options.INPUT_NAME,
            help="File with an entry on each line: identifier, and optionally range and strand; - is stdin.",
        ),
    ] = None,
    part: Annotated[
        str | None,
        typer.Option(
            "--range",
            metavar="FROM-TO",
            help="Write only this part of each sequence, counted from 1: 10-200, or 10- for the rest.",
        ),
    ] = None,
    strand: Annotated[
        str, typer.Option(help="Strand to write: plus, or minus for the reverse complement of DNA.")
    ] = "plus",
    out: options.Out = None,
    width: Annotated[
        int, typer.Option("--line-width", min=0, help="Letters on each line; 0 writes each sequence on one line.")
    ] = 60,
) -> None:
    """Write the sequences with some identifiers, or parts of them, as FASTA, in the order of the identifiers.

    An accession without its version denotes every version. If some are not in the database, the others are written, a
    message names the first missing one, and the exit code is 1.

    Example: swsearch db fetch proteins.db P02232 NP_000537.3

    Example: swsearch db fetch genome.db chr1 --range 1000-2000 --strand minus

    Example: swsearch db fetch proteins.db --ids list.txt --out some.fasta
    """
    from swsearch.cli.databases import open_databases
    from swsearch.filters.entries import Entry, SubjectRange, fetch, find_subjects, is_minus, read_entries
    from swsearch.sequences.fasta_text import write_pieces

    if not identifiers and ids is None:
        raise UsageError("give identifiers, or a file of them with --ids")
    chosen = None if part is None else SubjectRange.parse(part)
    entries = [Entry(name, chosen, is_minus(strand)) for name in identifiers or ()]
    if ids is not None:
        entries += read_entries(ids, chosen, strand)
    if not entries:
        raise InputError(f"--ids {ids}: the file names no identifier; give one a line")
    problems: list[str] = []
    n_written = 0
    with open_databases(database) as subjects:
        found = find_subjects(subjects, (entry.name for entry in entries))
        records = fetch(subjects, entries, found, problems)
        if (record := next(records, None)) is not None:  # otherwise no file is made
            with result_stream(out) as stream:
                for header, letters in chain([record], records):
                    write_pieces(stream, header, letters, width)
                    n_written += 1
    if problems:
        others = f", nor {len(problems) - 1:,} more of the {len(entries):,} entries" if len(problems) > 1 else ""
        written = f"{counted(n_written, 'sequence')} written" if n_written else "nothing was written"
        raise InputError(f"{database} has {problems[0]}{others}; {written}")


@app.command()
def add(
    database: Database,
    fasta: Fasta = None,
    blastdb: Blastdb = None,
    alphabet: Annotated[
        str | None,
        options.declared("alphabet", "index", help="Alphabet of the files, if it could be mistaken."),
    ] = None,
    skip_bad: SkipBad = False,
    skipped: Skipped = None,
    threads: options.Threads = None,
    quiet: options.Quiet = False,
) -> None:
    """Add sequences to the end of a database: all of them, or none if a file cannot be read.

    Running searches continue with the database as it was. One process at a time may change a database.

    Example: swsearch db add proteins.db new.fasta.gz

    Example: swsearch db add proteins.db --blastdb swissprot --skip-bad
    """
    from swsearch.cli.databases import reading
    from swsearch.database.changes import add_to_database
    from swsearch.database.opening import load_catalogue
    from swsearch.sequences.alphabet import ALPHABETS

    if not fasta and not blastdb:
        raise UsageError(f"give FASTA files or --blastdb: swsearch db add {shlex.quote(str(database))} FASTA…")
    refuse_unused_list(skipped, skip_bad=skip_bad)
    holds = load_catalogue(database).alphabet
    if alphabet not in (None, holds):
        advice = f"leave --alphabet out or take a database of {alphabet}"
        raise AlphabetMismatch(str(alphabet), holds, str(database), advice)
    sources, _ = sources_of(fasta or [], blastdb or [], ALPHABETS[holds])
    with ExitStack() as stack:
        left_out = LeftOut(skipped, stack)
        added = add_to_database(
            database,
            sources,
            force_alphabet=alphabet is not None,
            threads=threads,
            progress=stack.enter_context(reading("adding")),
            skip=left_out.add if skip_bad else None,
        )
    new = added.catalogue.segments[-1]
    come = f"{counted(new.n_subjects, 'sequence')}, {counted(new.n_residues, 'residue')} added"
    inform(f"{database}: {come}; {_now_holds(added.catalogue)}")
    if added.catalogue.taxonomy is not None:
        inform(
            "what was added has the taxonomy ids of its headers; `swsearch db taxonomy` stores them with their names"
        )
    if added.n_duplicates:
        inform(
            f"warning: {added.n_duplicates:,} of the added identifiers "
            f"{'occurs' if added.n_duplicates == 1 else 'occur'} more than once in the database, "
            f"{added.first_duplicate!r} for one"
        )
    for line in left_out.lines():
        inform(line)


@app.command()
def remove(
    database: Database,
    identifiers: Annotated[
        list[str] | None, typer.Argument(metavar="[IDENTIFIER]...", help="First words of headers.")
    ] = None,
    from_file: Annotated[
        Path | None,
        typer.Option(
            "--from-file", click_type=options.INPUT_PATH, help="File of identifiers, one on each line; - is stdin."
        ),
    ] = None,
    quiet: options.Quiet = False,
) -> None:
    """Remove the sequences with these identifiers: all of them, or none if an identifier is unknown.

    Later searches leave them out, and E-values do not count them. `swsearch db compact` frees their space.

    Example: swsearch db remove proteins.db "sp|P02232|LGB1_VICFA" NP_000537.3

    Example: swsearch db remove proteins.db --from-file obsolete.txt
    """
    from swsearch.database.changes import remove_from_database
    from swsearch.filters.subject_filters import identifier_lines

    wanted = list(identifiers or [])
    if from_file is not None:
        wanted += [words[0] for _, words in identifier_lines("--from-file", str(from_file))]
    elif not wanted:
        raise UsageError("give identifiers, or a file of them with --from-file")
    done = remove_from_database(database, wanted)
    n_subjects = done.before.n_subjects - done.catalogue.n_subjects
    n_residues = done.before.n_residues - done.catalogue.n_residues
    gone = f"{counted(n_subjects, 'sequence')}, {counted(n_residues, 'residue')} removed"
    inform(f"{database}: {gone}; {_now_holds(done.catalogue)}")


@app.command()
def compact(
    database: Database,
    slices: Annotated[
        int | None, typer.Option(help="Divide the sequences into this many slices. [as many as before]")
    ] = None,
    threads: options.Threads = None,
    quiet: options.Quiet = False,
) -> None:
    """Rewrite a changed database as `swsearch index` would write it, and free the space of removed sequences.

    Searches find the same as before. Meanwhile, the disk needs space for two copies of the remaining sequences.

    Example: swsearch db compact proteins.db

    Example: swsearch db compact proteins.db --slices 8
    """
    from swsearch.cli.databases import reading
    from swsearch.database.changes import compact_database

    with reading("compacting") as progress:
        done = compact_database(database, slices=slices, threads=threads, progress=progress)
    if done.catalogue is done.before:
        inform(f"{database} is compact already")
        return
    freed = done.before.n_bytes - done.catalogue.n_bytes
    made = counted(done.catalogue.n_slices, "slice") if done.catalogue.n_slices else "one"
    room = f"{counted(freed, 'byte')} freed" if freed >= 0 else f"{counted(-freed, 'byte')} more"
    merged = f"{counted(len(done.before.segments), 'segment')} made {made}, {room}"
    inform(f"{database}: {merged}; {_now_holds(done.catalogue)}")


@app.command()
def taxonomy(
    database: Database,
    taxdump: Annotated[
        str,
        typer.Argument(
            metavar="TAXDUMP",
            click_type=options.INPUT_NAME,
            help="NCBI's taxdump: folder, taxdump.tar.gz, taxdmp.zip or nodes.dmp.",
        ),
    ],
    taxid_map: options.DatabaseTaxidMap = None,
    quiet: options.Quiet = False,
) -> None:
    """Store the organisms of the sequences with a database: taxonomy ids, names and lineages.

    Filters (--taxid) and reports (the columns sscinames, slineage …) then need no other file. An earlier taxonomy is
    replaced. Running searches continue, and all searches find the same as before.

    Example: swsearch db taxonomy proteins.db taxdump.tar.gz

    Example: swsearch db taxonomy nr.db taxdump/ --taxid-map prot.accession2taxid.gz
    """
    from swsearch.cli.databases import taxonomy_line
    from swsearch.database.changes import set_taxonomy

    done = set_taxonomy(database, taxdump, taxid_map)
    if done.catalogue.taxonomy is None:
        return
    for line in (f"{database}: {taxonomy_line(done.catalogue.taxonomy)}", *done.notes):
        inform(line)


def _slices(catalogue: Catalogue) -> str:
    """The number of slices and their size."""
    slices = catalogue.segments[: catalogue.n_slices]
    if not slices:
        return "none"
    residues = [segment.n_residues for segment in slices]
    span = f"{min(residues):,} to {max(residues):,}" if min(residues) < max(residues) else f"{residues[0]:,}"
    return f"{len(slices)} of {span} residues each"


def _now_holds(catalogue: Catalogue) -> str:
    return f"generation {catalogue.generation} holds {counted(catalogue.n_subjects, 'sequence')}"
