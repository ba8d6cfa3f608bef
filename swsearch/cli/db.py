"""``swsearch db``: look at, check and export a database."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from swsearch.cli import options

app = typer.Typer(help="Look at, check and export a database.", no_args_is_help=True, rich_markup_mode=None)

Database = Annotated[Path, typer.Argument(metavar="DB", help="A database made by `swsearch index`.")]


@app.command()
def info(database: Database) -> None:
    """Show what a database holds.

    Example: swsearch db info proteins.db
    """
    from swsearch.database.reader import PackedDatabase

    with PackedDatabase.open(database) as opened:
        catalogue = opened.catalogue
        lengths = [(segment.shortest, segment.longest) for segment in catalogue.segments if segment.n_subjects]
        shortest, longest = min(low for low, _ in lengths), max(high for _, high in lengths)
        mean = catalogue.n_residues / catalogue.n_subjects
        size = sum(file.size for segment in catalogue.segments for file in segment.files.values())
        for name, value in (
            ("database", str(database)),
            ("alphabet", catalogue.alphabet),
            ("sequences", f"{catalogue.n_subjects:,}"),
            ("residues", f"{catalogue.n_residues:,}"),
            ("lengths", f"{shortest:,} to {longest:,}, mean {mean:,.1f}"),
            ("size", f"{size:,} bytes"),
            ("sources", ", ".join(catalogue.sources)),
            ("digest", catalogue.digest),
            ("generation", str(catalogue.generation)),
            ("made by", f"{catalogue.program}, {catalogue.created}"),
        ):
            print(f"{name:<12}{value}")


@app.command()
def verify(database: Database) -> None:
    """Read every byte of a database and compare it with its checksums; exit code 1 where one differs.

    Example: swsearch db verify proteins.db
    """
    from swsearch.database.reader import PackedDatabase
    from swsearch.database.verify import verify as find_problems
    from swsearch.errors import DatabaseError

    with PackedDatabase.open(database) as opened:
        problems = find_problems(opened)
    if problems:
        raise DatabaseError(f"{database} is damaged: {'; '.join(problems)}; index its FASTA again")
    print(f"{database} is whole")


@app.command()
def export(
    database: Database,
    out: options.Out = None,
    width: Annotated[int, typer.Option(min=0, help="Letters on a line, 0 for one line a sequence.")] = 60,
) -> None:
    """Write the sequences back as FASTA: letters, their case, headers and order as they were read.

    Example: swsearch db export proteins.db --out proteins.fasta
    """
    from swsearch.cli.output import result_stream
    from swsearch.database.export import export as write_fasta
    from swsearch.database.reader import PackedDatabase

    with PackedDatabase.open(database) as opened, result_stream(out) as stream:
        write_fasta(opened, stream, width)
