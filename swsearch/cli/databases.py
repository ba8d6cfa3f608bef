"""Opening of the databases of a command: folders, URLs of an object store, or sequence files in their place.

What takes long, fetching and packing, is reported on stderr. Afterwards, the node's cache has the database.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from swsearch.words import counted

if TYPE_CHECKING:
    from swsearch.database.builder import BuildReport
    from swsearch.database.reader import PackedDatabase


@contextmanager
def opened(database: str, *, threads: int | None = None, quiet: bool = False) -> Iterator[PackedDatabase]:
    """Open a database during a ``with`` statement.

    Parameters
    ----------
    database : str
        A folder, a URL, or a sequence file; ``-`` is standard input.
    threads : int, optional
        Number of threads that pack a sequence file.
    quiet : bool
        Whether to report nothing.

    Raises
    ------
    DatabaseError
        There is no database, or it cannot be fetched or packed.
    InputError
        A sequence file cannot be read.
    """
    from swsearch.database.object_store import is_url
    from swsearch.database.reader import PackedDatabase
    from swsearch.sequences.source import is_sequence_file

    if is_url(database):
        found = _fetched(database, quiet)
    elif is_sequence_file(database):
        found = _packed(database, threads, quiet)
    else:
        found = PackedDatabase.open(database)
    with found:
        yield found


@contextmanager
def opened_together(
    databases: Sequence[str], *, threads: int | None = None, quiet: bool = False
) -> Iterator[PackedDatabase]:
    """Open several databases, at least one, as one; parameters and errors as for :func:`opened`.

    Raises
    ------
    InputError
        They have different alphabets, or one is named twice.
    """
    with ExitStack() as stack:
        members = [stack.enter_context(opened(path, threads=threads, quiet=quiet)) for path in databases]
        if len(members) == 1:
            yield members[0]
            return
        from swsearch.database.joined import JoinedDatabase

        yield JoinedDatabase(members)


def contents(built: BuildReport, *, is_asked: bool) -> str:
    """What a new database holds; ``is_asked`` is whether its alphabet was asked for, otherwise it was detected."""
    catalogue = built.catalogue
    how = "as asked" if is_asked else "detected"
    n_subjects, n_residues = counted(catalogue.n_subjects, "sequence"), counted(catalogue.n_residues, "residue")
    return f"{n_subjects}, {n_residues}, {catalogue.alphabet} ({how})"


def repetitions(built: BuildReport) -> str:
    """The identifiers of a new database that occur more than once; empty if there are none."""
    if not built.n_duplicates:
        return ""
    repeated = counted(built.n_duplicates, "identifier occurs", "identifiers occur")
    return f"{repeated} more than once, {built.first_duplicate!r} for one"


def _fetched(url: str, quiet: bool) -> PackedDatabase:
    from swsearch.cli.output import say
    from swsearch.cli.progress import ProgressReport
    from swsearch.database.object_store import fetch
    from swsearch.database.opening import Origin, open_entry

    with ExitStack() as stack:
        reports: list[ProgressReport] = []

        def begin(n_bytes: int) -> None:
            say(f"fetching {url}, {counted(n_bytes, 'byte')}", quiet=quiet)
            reports.append(stack.enter_context(ProgressReport("fetching", n_bytes, "MB/s", 1e6, quiet)))

        def advance(n_bytes: int) -> None:
            reports[0].advance(n_bytes)

        entry = fetch(url, begin=begin, advance=advance)
    return open_entry(entry, Origin.of_url(url))


def _packed(path: str, threads: int | None, quiet: bool) -> PackedDatabase:
    from swsearch.cli.output import say
    from swsearch.cli.progress import ProgressReport
    from swsearch.database.node_cache import NodeCache
    from swsearch.database.opening import Origin, open_entry
    from swsearch.database.sequence_files import packed
    from swsearch.sequences.source import seekable

    source = seekable(path)
    origin = Origin.of_file(source)
    cache = NodeCache()
    reports: list[BuildReport] = []
    with ProgressReport("packing", 0, "M residues/s", 1e6, quiet) as progress:
        entry = packed(
            source,
            cache=cache,
            threads=threads,
            progress=lambda _, residues: progress.reach(residues),
            report=reports.append,
        )
    if reports:
        repeated = repetitions(reports[0])
        more = f"; {repeated}" if repeated else ""
        say(f"{origin.name}: {contents(reports[0], is_asked=False)}, packed into {cache.folder}{more}", quiet=quiet)
    return open_entry(entry, origin)
