"""The databases of a command: how they are opened, and what is said about new ones.

A database is a folder, a URL of an object store, or a sequence file in its place. What takes long, fetching and
packing, is reported on stderr. Afterwards, the node's cache has the database.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from swsearch.cli.output import ProgressReport, inform
from swsearch.database.opening import CachingReport, open_database
from swsearch.words import counted

if TYPE_CHECKING:
    from swsearch.database.builder import BuildReport
    from swsearch.database.download import HttpFile
    from swsearch.database.format import TaxonomyEntry
    from swsearch.database.reader import PackedDatabase
    from swsearch.database.segment_writer import ReadProgress


def open_databases(
    databases: str | Sequence[str],
    *,
    searched: Sequence[str] | None = None,
    threads: int | None = None,
) -> PackedDatabase:
    """One or several databases, open as one, with reports of their caching.

    The parameters are those of :func:`swsearch.database.opening.open_database`.
    """
    return open_database(databases, searched=searched, threads=threads, caching=_ShownCaching())


class _ShownCaching(CachingReport):
    @contextmanager
    def fetching(self, url: str, n_bytes: int) -> Iterator[Callable[[int], None]]:
        inform(f"fetching {url}, {counted(n_bytes, 'byte')}")
        with ProgressReport("fetching", n_bytes, "MB/s", 1e6) as progress:
            yield progress.advance

    def packing(self) -> AbstractContextManager[ReadProgress]:
        return reading("packing")

    def packed(self, name: str, built: BuildReport, cache: Path) -> None:
        repeated = repetitions(built)
        more = f"; {repeated}" if repeated else ""
        inform(f"{name}: {contents(built, is_asked=False)}, packed into {cache}{more}")


@contextmanager
def reading(what: str) -> Iterator[ReadProgress]:
    """Shows how many residues are read."""
    with ProgressReport(what, 0, "M residues/s", 1e6) as progress:
        yield lambda _, residues: progress.reach(residues)


@contextmanager
def fetching(download: HttpFile) -> Iterator[Callable[[int], None]]:
    """Shows the download of a public database."""
    first = download.n_here
    size = "" if download.n_bytes is None else f", {counted(download.n_bytes, 'byte')}"
    here = f", of which {first:,} are here" if first else ""
    inform(f"fetching {download.given}{size}{here}, by way of {download.path}")
    with ProgressReport("fetching", (download.n_bytes or first) - first, "MB/s", 1e6) as progress:
        yield lambda n_here: progress.reach(n_here - first)


def built_lines(out: Path, built: BuildReport, *, is_asked: bool) -> Iterator[str]:
    """What is reported about a new database; ``is_asked`` is whether its alphabet was asked for."""
    catalogue = built.catalogue
    sliced = f", {counted(catalogue.n_slices, 'slice')}" if catalogue.n_slices else ""
    yield f"{out}: {contents(built, is_asked=is_asked)}{sliced}"
    if catalogue.taxonomy is not None:
        yield f"{out}: {taxonomy_line(catalogue.taxonomy)}"
        yield from built.notes
    if repeated := repetitions(built):
        yield f"warning: {repeated}"


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


def taxonomy_line(taxonomy: TaxonomyEntry) -> str:
    """What a database has stored about the organisms of its sequences."""
    assigned = f"{taxonomy.n_assigned:,} of {counted(taxonomy.n_rows, 'sequence')}"
    return f"{counted(taxonomy.n_taxa, 'taxon', 'taxa')}; {assigned} with a taxonomy id"
