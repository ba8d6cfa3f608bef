"""Options that several commands share, each defined once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from swsearch.errors import AlphabetMismatch, InputError

DEFAULT_STORE: Final = "hits.sqlite"

_SCORING = "Scoring"
_CHOICE = "Which hits"
_OUTPUT = "Output"
_MACHINE = "Machine"

Top = Annotated[int, typer.Option(min=1, help="Subjects reported for each query.", rich_help_panel=_CHOICE)]
Evalue = Annotated[float, typer.Option(help="Largest E-value reported.", rich_help_panel=_CHOICE)]
Ties = Annotated[
    str, typer.Option(help="cut: exactly --top; all: also those equal to the last.", rich_help_panel=_CHOICE)
]
Strand = Annotated[str, typer.Option(help="both, plus or minus; for DNA.", rich_help_panel=_CHOICE)]
Matrix = Annotated[
    str | None, typer.Option(help="An NCBI matrix by name, or a file. [protein: BLOSUM62]", rich_help_panel=_SCORING)
]
Match = Annotated[int | None, typer.Option(help="Score of equal bases. [DNA: 2]", rich_help_panel=_SCORING)]
Mismatch = Annotated[int | None, typer.Option(help="Score of different bases. [DNA: -3]", rich_help_panel=_SCORING)]
GapOpen = Annotated[
    int | None,
    typer.Option(help="A gap of k residues costs open + k * extend. [protein: 11, DNA: 5]", rich_help_panel=_SCORING),
]
GapExtend = Annotated[int | None, typer.Option(help="See --gap-open. [protein: 1, DNA: 2]", rich_help_panel=_SCORING)]
Alphabet = Annotated[
    str | None, typer.Option(help="protein or dna: what the queries are. [detected]", rich_help_panel=_CHOICE)
]
DbSize = Annotated[
    int | None,
    typer.Option(help="Residues that E-values are scaled to. [those of the database]", rich_help_panel=_SCORING),
]
Engine = Annotated[str, typer.Option(help="auto, cuda, cpu or reference.", rich_help_panel=_MACHINE)]
Threads = Annotated[
    int | None, typer.Option(help="CPU threads. [the cores this process may use]", rich_help_panel=_MACHINE)
]
Devices = Annotated[
    str, typer.Option(help="GPUs by their CUDA numbers, such as 0,1; for the cuda engine.", rich_help_panel=_MACHINE)
]
Kernel = Annotated[
    str,
    typer.Option(
        help="strip, or CUDASW++ 2.0's simt, striped or partitioned; of the cuda engine, never changes the hits.",
        rich_help_panel=_MACHINE,
    ),
]
PartitionResidues = Annotated[
    int | None,
    typer.Option(help="Residues given to the engine at a time; never changes the hits.", rich_help_panel=_MACHINE),
]
Format = Annotated[
    str,
    typer.Option(
        "--format",
        help="table, pairwise, html, blast6, blast7, xml (BLAST's), tsv, csv, parquet, json, jsonl or sam.",
        rich_help_panel=_OUTPUT,
    ),
]
Fields = Annotated[
    str | None,
    typer.Option(help="Columns by BLAST's names, separated by blanks or commas.", rich_help_panel=_OUTPUT),
]
Out = Annotated[Path | None, typer.Option("--out", help="File for the results. [stdout]", rich_help_panel=_OUTPUT)]
Store = Annotated[
    str,
    typer.Option(
        envvar="SWSEARCH_STORE",
        help="SQLite file or database URL that keeps the hits, or none.",
        rich_help_panel=_OUTPUT,
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.", rich_help_panel=_OUTPUT)]


def check_alphabet(alphabet: str | None, of_database: str, database: str) -> None:
    """Refuse an ``--alphabet`` that is not the database's.

    Raises
    ------
    AlphabetMismatch
        It is another.
    """
    if alphabet not in (None, of_database):
        advice = f"leave --alphabet out or search a database of {alphabet}"
        raise AlphabetMismatch(str(alphabet), of_database, database, advice)


def device_list(devices: str) -> list[int]:
    """Device numbers from ``--devices``.

    Raises
    ------
    InputError
        It is no list of numbers.

    >>> device_list("0,1")
    [0, 1]
    """
    parts = devices.split(",")
    if not all(part.strip().isdecimal() for part in parts):
        raise InputError(f"--devices {devices!r}: give CUDA numbers separated by commas, such as 0,1")
    return [int(part) for part in parts]


def field_list(fields: str | None) -> list[str] | None:
    """Field names from ``--fields``.

    >>> field_list("qseqid sseqid,evalue")
    ['qseqid', 'sseqid', 'evalue']
    """
    return None if fields is None else fields.replace(",", " ").split()
