"""The opening of databases: :func:`open_database` takes one or several folders, URLs, sequence files or pipes.

A database of an object store is fetched into the cache of this node (:mod:`swsearch.database.object_store`), and a
sequence file or pipe is packed there (:mod:`swsearch.database.sequence_files`). Nothing is done if the cache has it.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Collection, Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import replace
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING, Final, TypeAlias

from swsearch.arguments import path
from swsearch.database.catalogue import catalogue_text, read_catalogue
from swsearch.database.format import CATALOGUE, Catalogue
from swsearch.database.reader import PIPES, DatabasePart, Member, PackedDatabase
from swsearch.database.segment import map_segments, mapped_taxonomy
from swsearch.errors import DatabaseError, WrongType
from swsearch.file_registry import SCHEMES, is_building, is_url, registry
from swsearch.sequences.source import HeldFile, is_sequence_file, seekable, shown_name, source_name
from swsearch.typing import Progress
from swsearch.words import a_kind

if TYPE_CHECKING:
    from swsearch.database.builder import BuildReport
    from swsearch.database.segment_writer import ReadProgress

Database: TypeAlias = str | os.PathLike[str] | PackedDatabase
"""The path of a database, or an open one."""
Databases: TypeAlias = Database | Sequence[Database]
"""A database, or several that are searched as one."""

_COLLAPSED: Final = re.compile(rf"({'|'.join(SCHEMES)}):/(?!/)")
MAX_ATTEMPTS: Final = 20
"""Largest number of attempts to open a database that is changed at the same time."""


def refuse_url(path: str) -> None:
    """Raise DatabaseError for a URL where only a folder of this machine is possible; :class:`Path` shortens ``//``."""
    if is_url(path) or _COLLAPSED.match(path):
        readers = "`query`, `batch`, `msa`, `db info`, `db verify` and `db export`"
        url = _COLLAPSED.sub(r"\1://", path)
        raise DatabaseError(
            f"{url}: this must be a folder of this machine; databases in object stores are for {readers}"
        )


class CachingReport:
    """What a program shows while databases are fetched or packed; nothing, unless a subclass overrides the methods."""

    def fetching(self, url: str, n_bytes: int) -> AbstractContextManager[Progress]:
        """Around the fetch of ``n_bytes``; yields what is called with the number of bytes since the last call."""
        return nullcontext(lambda _: None)

    def packing(self) -> AbstractContextManager[ReadProgress | None]:
        """Around the packing of a sequence file; yields its progress."""
        return nullcontext(None)

    def packed(self, name: str, built: BuildReport, cache: Path) -> None:
        """After a sequence file was packed into the folder of the cache."""


def open_database(
    sources: Databases,
    *,
    parts: Sequence[DatabasePart] | None = None,
    searched: Sequence[str] | None = None,
    threads: int | None = None,
    caching: CachingReport | None = None,
) -> PackedDatabase:
    """Open one or several databases as one.

    Parameters
    ----------
    sources : path, PackedDatabase, or a sequence of these
        A path is that of a folder, or the URL of one in an object store; or that of a file of FASTA or FASTQ, where
        ``-`` is standard input. A database that is open already stays open when the result is closed, which shares its
        maps.
    parts : sequence of DatabasePart, optional
        What is wanted of each; by default, all of it.
    searched : sequence of str, optional
        The digests of a search, which had the same subjects (:meth:`PackedDatabase.check_searched`).
    threads : int, optional
        Number of threads that pack a sequence file.
    caching : CachingReport, optional

    Raises
    ------
    DatabaseError
        There is no database of this program's format, or one of its files is missing or truncated; it cannot be fetched
        or packed; or its content is not the one that is wanted or was searched.
    InputError
        A sequence file cannot be read; or databases have different alphabets, or one is named twice.
    WrongType
        A source is neither a path nor a database.
    """
    members: list[Member] = []
    entries = ExitStack()
    try:
        for number, source in enumerate(_several(sources)):
            if isinstance(source, PackedDatabase):
                source.check_open()
                members += source.members
            else:
                part = DatabasePart() if parts is None else parts[number]
                members.append(_member(source, part, threads, caching or CachingReport(), entries))
        database = PackedDatabase(members, entries.close)
        if searched is not None:
            database.check_searched(searched)
        return database
    except BaseException:
        entries.close()
        raise


def opened(database: Databases) -> AbstractContextManager[PackedDatabase]:
    """A context manager of :func:`open_database`, or of a single open database, which stays open."""
    several = _several(database)
    if len(several) == 1 and isinstance(several[0], PackedDatabase):
        return nullcontext(several[0])
    return open_database(several)


def _several(sources: Databases) -> list[Database]:
    if isinstance(sources, (str, os.PathLike, PackedDatabase)):
        return [sources]
    if not isinstance(sources, Iterable) or isinstance(sources, (bytes, bytearray)):
        raise WrongType(f"database is {a_kind(sources)}; give a path, an open database, or a list of these")
    return list(sources)


def _member(
    source: str | os.PathLike[str],
    part: DatabasePart,
    threads: int | None,
    caching: CachingReport,
    entries: ExitStack,
) -> Member:
    """Open the database of a path; ``entries`` releases its entry in the cache."""
    name = path("database", source)
    if not name:
        raise DatabaseError("the name of the database is empty; give its path")
    if is_url(name):
        from swsearch.database.object_store import fetch

        entry = entries.enter_context(fetch(name, part.segments, caching))
        url = name.rstrip("/")
        member = replace(_of_folder(entry.folder, url, url, part.segments), is_cached=True)
    elif is_sequence_file(source):
        from swsearch.database.sequence_files import packed

        file = seekable(source)
        entry = entries.enter_context(packed(file, threads, caching))
        member = _of_folder(entry.folder, shown_name(file), _address_of_file(file), part.segments)
        # The entry may have been made of an equal file with another name.
        catalogue = replace(member.catalogue, sources=(source_name(file),))
        member = replace(member, catalogue=catalogue, is_cached=True)
    else:
        folder = Path(source)
        member = _of_folder(folder, str(folder), os.path.abspath(folder), part.segments)
    if part.digest is not None and member.catalogue.digest != part.digest:
        raise DatabaseError(f"{name} has been changed since it was opened; run the search again")
    if part.layout is not None and member.catalogue.layout != part.layout:
        raise DatabaseError(f"{name} has its content in other segments than those that were named; copy the database")
    return member


def _address_of_file(file: str | os.PathLike[str]) -> str:
    """That of a sequence file: a path, or the copy of a pipe from :func:`swsearch.sequences.source.seekable`."""
    if isinstance(file, HeldFile):
        name = source_name(file)
        return name if name in PIPES else PIPES[1]
    return os.path.realpath(file)


def _of_folder(folder: Path, name: str, address: str, segments: Collection[int] | None) -> Member:
    catalogue = load_catalogue(folder)
    for _ in range(MAX_ATTEMPTS):
        failure = None
        try:
            mapped = map_segments(folder, catalogue, segments)
            taxonomy = mapped_taxonomy(folder, catalogue)
        except DatabaseError as error:
            failure = error
        # A concurrent change may have mixed two generations or removed files.
        before, catalogue = catalogue, load_catalogue(folder)
        if catalogue == before:
            if failure is not None:
                raise failure
            numbers = range(len(catalogue.segments)) if segments is None else sorted(set(segments))
            return Member(name, address, folder, catalogue, mapped, tuple(numbers), taxonomy)
    raise DatabaseError(f"{folder} changes so often that it cannot be opened; wait until its writers have ended")


def load_catalogue(folder: Path) -> Catalogue:
    """The catalogue of a database.

    Raises
    ------
    DatabaseError
        There is no database, or none of this program's format; the message says what was found instead.
    InputError
        An output of the same command is a file of it.
    """
    refuse_url(os.fspath(folder))
    if is_building(Path(os.path.abspath(folder))):
        raise DatabaseError(f"{folder} is the leftover of an unfinished build, no database; index the FASTA again")
    try:
        if not folder.is_dir():
            _refuse_blast(folder)
        if not folder.exists():
            raise DatabaseError(
                f"{folder} does not exist; `swsearch index FASTA -o {shlex.quote(str(folder))}` makes a database"
            )
        if not folder.is_dir():
            if is_sequence_file(folder):
                raise DatabaseError(
                    f"{folder} is a sequence file, not a packed database; index it first: "
                    f"`swsearch index {shlex.quote(str(folder))} -o {_proposed(folder)}`"
                )
            raise DatabaseError(
                f"{folder} is neither a packed database (a folder with {CATALOGUE}) nor a sequence file"
            )
        catalogue = read_catalogue(catalogue_text(folder))
    except FileNotFoundError as error:
        raise DatabaseError(f"{folder} is not a packed database: it has no {CATALOGUE}") from error
    except OSError as error:
        raise DatabaseError(f"{folder} cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise DatabaseError(f"{folder} cannot be used: {error}; index the FASTA again") from error
    registry().read_folder(folder)
    return catalogue


def _refuse_blast(path: Path) -> None:
    """Refuse a BLAST database, with the line that imports it."""
    from swsearch.database.blastdb import blast_name

    if (name := blast_name(path)) is not None:
        line = f"swsearch index --blastdb {shlex.quote(name)} -o {_proposed(Path(name))}"
        raise DatabaseError(f"{path} is a BLAST database; import it: `{line}`")


def _proposed(source: Path) -> str:
    """A name for the database of a sequence file, in quotes: beside it, or else where something can be written."""
    places = [source.absolute().parent, Path.cwd(), Path.home(), Path(gettempdir())]
    place = next((place for place in places if os.access(place, os.W_OK)), None)
    name = f"{source.name}.swdb"
    return shlex.quote(f"{source}.swdb" if place in (places[0], None) else str(place / name))
