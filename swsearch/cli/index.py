"""``swsearch index``: construction of a packed database; where the sequences of a database come from.

``swsearch index`` and ``swsearch db add`` share the options for sequence files and BLAST databases, and for records
that are left out.
"""

from __future__ import annotations

import shlex
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TextIO

import typer

from swsearch.cli import options
from swsearch.cli.options import INPUT_PATH
from swsearch.cli.output import inform, result_stream
from swsearch.errors import InputError, OutputClosed, UsageError
from swsearch.file_registry import registry
from swsearch.output_files import COMPRESSED
from swsearch.words import as_options, counted, one_line

if TYPE_CHECKING:
    from swsearch.sequences.alphabet import Alphabet
    from swsearch.sequences.record import InvalidRecord
    from swsearch.sequences.source import HeldFile

N_SHOWN: Final = 10
"""Number of skipped records that are printed."""
SEQUENCE_SUFFIXES: Final = (".fa", ".faa", ".fas", ".fasta", ".fastq", ".ffn", ".fna", ".fq", ".frn", ".mfa", ".pep")
"""Endings of names of sequence files, which the usual name of a database does not have."""

Fasta = Annotated[
    list[Path] | None,
    typer.Argument(
        click_type=INPUT_PATH, help="FASTA or FASTQ files, also compressed with gzip, bzip2, xz or zstd; - is stdin."
    ),
]
Blastdb = Annotated[list[str] | None, options.declared("blastdb")]
SkipBad = Annotated[bool, options.declared("skip_bad")]
Skipped = Annotated[Path | None, options.declared("skipped")]


def refuse_unused_list(skipped: Path | None, *, skip_bad: bool) -> None:
    """Refuse ``--skipped`` without ``--skip-bad``.

    Raises
    ------
    InputError
        There is a list, and no record is left out.
    """
    if skipped is not None and not skip_bad:
        raise InputError("--skipped lists what --skip-bad leaves out; give both, or leave it out")


class LeftOut:
    """The records that were left out: their number, the first ones, and a list of all in a file, if there is one.

    Each line of the list is written at once, so that a full disk ends the command before the database is changed. If
    the reader of stdout leaves, the list ends, but not the command, whose result is the database.
    """

    def __init__(self, path: Path | None, stack: ExitStack) -> None:
        self._path = path
        self._first: list[InvalidRecord] = []
        self._n = 0
        self._file: TextIO | None = None
        if path is not None:
            stack.enter_context(suppress(OutputClosed))
            self._file = stack.enter_context(result_stream(path, option="--skipped"))
        self._list("file", "record", "identifier", "reason")

    def add(self, record: InvalidRecord) -> None:
        """Count and list a record.

        Raises
        ------
        InputError
            The list cannot be written.
        """
        self._n += 1
        if self._n <= N_SHOWN:
            self._first.append(record)
        self._list(record.path, record.record, record.identifier, as_options(record.marked))

    def _list(self, *values: object) -> None:
        if self._file is None:
            return
        try:
            print(*(one_line(str(value)) for value in values), sep="\t", file=self._file, flush=True)
        except OutputClosed:
            self._file = None
        except OSError as error:
            raise InputError(f"--skipped {self._path}: {error.strerror or error}; choose another file") from error

    def lines(self) -> list[str]:
        """What is reported about them; nothing if there are none."""
        if not self._n:
            return []
        which = "; the first of them:" if self._n > N_SHOWN else ":"
        listed = f" (all in {self._path})" if self._path is not None else ""
        if str(self._path) == "-":
            listed = " (all on stdout)"
        told = counted(self._n, "record was", "records were")
        return [f"warning: {told} left out{listed}{which}", *(f"  {record}" for record in self._first)]


def sources_of(
    paths: list[Path], blast_names: list[str], alphabet: Alphabet | None
) -> tuple[list[Path | HeldFile], Alphabet | None]:
    """The sequence files and the exports of BLAST databases, in order, and the alphabet, if it is known.

    Parameters
    ----------
    paths : list of Path
        Sequence files, and BLAST databases by the paths of their files.
    blast_names : list of str
        BLAST databases as BLAST's ``-db`` names them.
    alphabet : Alphabet or None
        That of the BLAST databases, if it is known.

    Raises
    ------
    DatabaseError
        ``blastdbcmd`` is not installed, or fails.
    """
    from swsearch.database.blastdb import blast_name, exported

    sources: list[Path | HeldFile] = []
    named = [(path, None if path.exists() else blast_name(path)) for path in paths]
    for path, name in [*named, *((Path(name), name) for name in blast_names)]:
        if name is None:
            sources.append(path)
            continue

        def begin(alphabet: Alphabet, n_sequences: int, name: str = name) -> None:
            sequences = counted(n_sequences, f"{alphabet.name} sequence")
            inform(f"{name}: a BLAST database of {sequences}, read with blastdbcmd")

        source, alphabet = exported(name, alphabet, begin=begin)
        sources.append(source)
    return sources, alphabet


def index(fasta: Fasta = None, *, context: typer.Context) -> None:
    """Pack FASTA files into a database, which searches open without delay.

    The database appears under its name when it is complete.

    With --taxonomy, the organisms of the sequences are stored with their names and lineages, for filters and reports.

    Example: swsearch index proteins.fasta.gz -o proteins.db

    Example: swsearch index uniprot.fasta.gz -o uniprot.db --taxonomy taxdump.tar.gz
    """
    from swsearch.cli.databases import built_lines, reading
    from swsearch.database.builder import build_database
    from swsearch.database.opening import refuse_url
    from swsearch.sequences.alphabet import ALPHABETS

    given: options.Arguments = context.obj
    if not fasta and not given.blastdb:
        raise UsageError(f"give FASTA files or --blastdb: swsearch index FASTA… --out {given.out or 'DB'}")
    out = given.out or _usual_name([*(fasta or []), *map(Path, given.blastdb or [])])
    refuse_unused_list(given.skipped, skip_bad=given.skip_bad)
    refuse_url(str(out))
    sources, chosen = sources_of(fasta or [], given.blastdb or [], ALPHABETS.get(given.alphabet))
    with ExitStack() as stack:
        left_out = LeftOut(given.skipped, stack)
        built = build_database(
            sources,
            out,
            chosen,
            overwrite=given.force,
            slices=int(given.slices),
            threads=given.threads,
            taxonomy=given.taxonomy,
            taxid_map=given.taxid_map,
            progress=stack.enter_context(reading("indexing")),
            skip=left_out.add if given.skip_bad else None,
        )
    for line in [*built_lines(out, built, is_asked=given.alphabet is not None), *left_out.lines()]:
        inform(line)


def _usual_name(sources: list[Path]) -> Path:
    """The database of one source, if none is named: in this folder, ``x.db`` for ``x.fasta.gz``."""
    if len(sources) > 1 or str(sources[0]) == "-":
        given = " ".join(shlex.quote(str(source)) for source in sources)
        raise UsageError(f"name the database: swsearch index {given} --out DB")
    name = Path(sources[0].name)
    for suffixes in (COMPRESSED, SEQUENCE_SUFFIXES):
        if name.suffix.lower() in suffixes and name.stem:
            name = Path(name.stem)
    out = Path(f"{name}.db")
    registry().write_database("--out", str(out))
    return out
