"""Sequence files in the place of a database: packed into the cache of this node, and read from there.

:func:`packed` takes FASTA or FASTQ, from a file or a pipe, and returns an entry of :mod:`swsearch.database.node_cache`
for :func:`~swsearch.database.opening.open_database`. The entry is the database that ``swsearch index`` would make. Its
key contains the SHA-256 of the file, compressed or not, so that a changed file is packed again, and equal files are one
entry. An entry of which a file is missing or has changed is packed again, too. Checksums, those of the entry included,
are computed at each call, or are remembered (:mod:`swsearch.database.checksums`).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from swsearch import __version__
from swsearch.database.builder import BuildReport, write_database
from swsearch.database.checksums import Checksums, HashedFile
from swsearch.database.node_cache import CacheEntry, NodeCache
from swsearch.database.opening import load_catalogue
from swsearch.database.segment_writer import Progress
from swsearch.errors import DatabaseError, InputError
from swsearch.output_files import COMPRESSED
from swsearch.sequences.source import HeldFile, Spooled, held, shown_name


def packed(
    path: str | os.PathLike[str],
    *,
    cache: NodeCache | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    report: Callable[[BuildReport], None] = lambda _: None,
) -> CacheEntry:
    """The packed database of a sequence file, in use until the returned entry is closed.

    Parameters
    ----------
    path : path
        ``-`` is standard input.
    cache : NodeCache, optional
        By default, the cache of the user.
    threads : int, optional
        As for :func:`swsearch.database.builder.build_database`.
    progress : callable, optional
    report : callable
        Called after the file was packed; not called if the cache had it.

    Raises
    ------
    FastaFormatError
        The file cannot be read as sequences of one alphabet.
    InputError
        The file cannot be opened, or changes meanwhile.
    DatabaseError
        The cache has no room, or cannot be used.
    """
    cache = NodeCache() if cache is None else cache
    source = held(path)
    checksums = Checksums(cache.folder.with_name("checksums"))
    file = HashedFile(source.descriptor, checksums)

    def create(folder: Path) -> None:
        shutil.rmtree(folder)  # it may contain files of an attempt that was killed
        folder.mkdir()
        built = write_database(folder, source, threads=threads, progress=progress)
        if not isinstance(source, Spooled) and file.has_changed:
            raise InputError(f"{shown_name(source)} changed while it was read; run the command again when it is whole")
        report(built)

    return cache.open(
        f"{file.sha256}-{__version__}", _about_bytes(source), create, lambda entry: _is_whole(entry, checksums)
    )


def _is_whole(folder: Path, checksums: Checksums) -> bool:
    """Whether the files of a database have the checksums that its catalogue states."""
    try:
        for name, entry in load_catalogue(folder).files.items():
            with (folder / name).open("rb") as file:
                if HashedFile(file.fileno(), checksums).sha256 != entry.sha256:
                    return False
    except (DatabaseError, OSError):
        return False
    return True


def _about_bytes(source: HeldFile) -> int:
    """About the size of the database in bytes."""
    size = os.fstat(source.descriptor).st_size
    return size * 2 if Path(source.given).suffix.lower() in COMPRESSED else size
