"""Public databases by name: the table of their addresses, and how they are fetched, checked and packed.

The table is ``public_databases.toml``, whose head explains its keys. ``SWSEARCH_DOWNLOADS`` names a file of the same
form with further names; one that both have is that of this file.
"""

from __future__ import annotations

import os
import re
import shutil
import tomllib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from swsearch.database.builder import BuildReport, build_database
from swsearch.database.download import HttpFile, file_name, published
from swsearch.database.staging import check_target
from swsearch.errors import FastaFormatError, InputError
from swsearch.file_registry import registry
from swsearch.output_files import binary_file
from swsearch.sequences.fasta import Skip
from swsearch.taxonomy.subject_taxa import TAXONOMY_VARIABLE
from swsearch.typing import Progress

TABLE_VARIABLE: Final = "SWSEARCH_DOWNLOADS"
"""Environment variable that names a file with further names."""
NO_TAXONOMY: Final = "none"
_TABLE: Final = Path(__file__).with_name("public_databases.toml")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_KINDS: Final = ("protein", "dna", "file")
_OPTIONAL: Final = ("checksums", "headers", "taxonomy")

Fetching = Callable[[HttpFile], AbstractContextManager[Progress]]
"""Around a download; yields what is called with the number of bytes that have arrived."""


@dataclass(frozen=True)
class PublicDatabase:
    """A row of the table; the attributes are its keys."""

    name: str
    title: str
    source: str
    licence: str
    size: str
    address: str
    holds: str
    checksums: str = ""
    headers: str = ""
    taxonomy: str = ""

    @property
    def is_file(self) -> bool:
        """Whether the file is kept as it is."""
        return self.holds == "file"

    @property
    def usual_target(self) -> Path:
        """Where it is put if no place is named: in the working folder."""
        return Path(file_name(self.address) if self.is_file else f"{self.name}.db")


def public_databases() -> dict[str, PublicDatabase]:
    """The rows of the table by their names: those of the package, and of the file that ``SWSEARCH_DOWNLOADS`` names.

    Raises
    ------
    InputError
        The file cannot be read, or one of its rows cannot be used.
    """
    given = os.environ.get(TABLE_VARIABLE)
    rows = _rows(_TABLE, "")
    if given:
        registry().read(given, is_source=False)
        rows |= _rows(Path(given), f"{TABLE_VARIABLE}={given}: ")
    for row in rows.values():
        if row.taxonomy and not (row.taxonomy in rows and rows[row.taxonomy].is_file):
            problem = f"[{row.name}]: taxonomy = {row.taxonomy!r} is not a name of a file in the table"
            raise InputError(f"{TABLE_VARIABLE}={given}: {problem}")
    return rows


def _rows(path: Path, place: str) -> dict[str, PublicDatabase]:
    try:
        with path.open("rb") as file:
            tables = tomllib.load(file)
    except (OSError, ValueError) as error:  # TOMLDecodeError and UnicodeDecodeError are ValueErrors
        raise InputError(f"{place}the file cannot be read: {error}") from error
    return {name: _row(name, table, f"{place}[{name}]") for name, table in tables.items()}


def _row(name: str, table: Any, place: str) -> PublicDatabase:
    known = [field.name for field in fields(PublicDatabase) if field.name != "name"]
    if _NAME.fullmatch(name) is None or not isinstance(table, dict):
        raise InputError(f"{place}: give a table, whose name has letters, digits, dots and hyphens")
    if wrong := [key for key, value in table.items() if key not in known or not isinstance(value, str)]:
        raise InputError(f"{place}: {wrong[0]} is none of {', '.join(known)}, or is not a string")
    if missing := [key for key in known if key not in table and key not in _OPTIONAL]:
        raise InputError(f"{place}: {missing[0]} is missing")
    row = PublicDatabase(name, **table)
    try:
        re.compile(row.headers.encode())
        parts = [urlsplit(address) for address in (row.address, row.checksums) if address]
    except (re.error, ValueError) as error:
        raise InputError(f"{place}: {error}") from error
    if any(part.scheme not in ("http", "https") or not part.hostname for part in parts) or not file_name(row.address):
        raise InputError(f"{place}: address and checksums must be addresses of files of http or https")
    if row.holds not in _KINDS:
        raise InputError(f"{place}: holds = {row.holds!r}: choose {', '.join(_KINDS)}")
    return row


def get_file(row: PublicDatabase, target: Path, fetching: Fetching, *, overwrite: bool = False) -> None:
    """Fetch a file that is kept as it is, such as profiles for queries.

    The target appears when it is complete and has its checksum.

    Raises
    ------
    DatabaseError, InputError
        It cannot be fetched or does not have its checksum, or ``target`` exists or cannot be written.
    """
    if not overwrite:
        check_target(target, overwrite=False)
    with _fetched(row, fetching) as download, binary_file(target, "--out") as file, download.opened() as stream:
        shutil.copyfileobj(stream, file)


def get_database(
    row: PublicDatabase,
    target: Path,
    fetching: Fetching,
    *,
    taxdump: PublicDatabase | None = None,
    taxonomy: str | None = None,
    overwrite: bool = False,
    threads: int | None = None,
    skip: Skip | None = None,
) -> BuildReport:
    """Fetch sequences and pack them into a database while they arrive.

    Parameters
    ----------
    row : PublicDatabase
    target : Path
        Folder to create, which appears when the file is complete and has its checksum.
    fetching : callable
    taxdump : PublicDatabase, optional
        What is fetched first for names and lineages, unless ``taxonomy`` or ``SWSEARCH_TAXONOMY`` says otherwise.
    taxonomy : path, optional
        NCBI's taxdump; ``none`` for no taxonomy.
    overwrite, threads, skip
        As for :func:`swsearch.database.builder.build_database`.

    Raises
    ------
    DatabaseError, InputError
        A file cannot be fetched or read or does not have its checksum, or ``target`` exists or cannot be written. What
        has arrived stays in the cache, unless it is damaged.
    """
    check_target(Path(os.path.realpath(target)), overwrite=overwrite)
    given = taxonomy or os.environ.get(TAXONOMY_VARIABLE) or None
    with _taxdump_of(taxdump, given, fetching) as names, _fetched(row, fetching) as download:
        return build_database(
            [download],
            target,
            row.holds,
            overwrite=overwrite,
            threads=threads,
            taxonomy=names,
            skip=skip,
            headers=re.compile(row.headers.encode()) if row.headers else None,
        )


@contextmanager
def _taxdump_of(row: PublicDatabase | None, given: str | None, fetching: Fetching) -> Iterator[str | Path | None]:
    """The path of the taxdump: as given, or fetched; None if there is none."""
    if row is None or given is not None:
        yield None if given == NO_TAXONOMY else given
        return
    with _fetched(row, fetching) as download:
        download.await_all()
        yield download.path


@contextmanager
def _fetched(row: PublicDatabase, fetching: Fetching) -> Iterator[HttpFile]:
    """A download, which leaves the cache when the block ends well, or when the file is damaged."""
    download = HttpFile(row.address, published(row.checksums, file_name(row.address)) if row.checksums else None)
    with fetching(download) as reach, download.ending_at_signals():
        download.reach = reach
        try:
            yield download
        except FastaFormatError:
            download.remove()
            raise
    download.remove()
