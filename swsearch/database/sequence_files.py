"""Sequence files in the place of a database: packed into the cache of this node, and read from there.

:func:`packed` takes FASTA or FASTQ, from a file or a pipe, and returns an entry of :mod:`swsearch.database.node_cache`
for :func:`~swsearch.database.opening.open_database`. The entry is the database that ``swsearch index`` would make. Its
key contains the SHA-256 of the file, compressed or not, so that a changed file is packed again, and equal files are one
entry. An entry of which a file is missing or has changed is packed again, too. Checksums, those of the entry included,
are computed at each call, or are remembered as long as a file cannot have changed (:class:`Checksums`).
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from swsearch import __version__
from swsearch.database.builder import BuildReport, write_database
from swsearch.database.node_cache import CacheEntry, NodeCache
from swsearch.database.opening import CachingReport, load_catalogue
from swsearch.database.segment_writer import sequence_chunks, source_names
from swsearch.errors import DatabaseError, InputError
from swsearch.folders import write_complete
from swsearch.output_files import COMPRESSED
from swsearch.sequences.source import HeldFile, Spooled, held, shown_name
from swsearch.threads import Threads

SETTLED_SECONDS: Final = 60.0
"""Time without a change after which a file is recognised by its values. The kernel writes memory back after 30 s."""
MAX_FILES: Final = 1000
"""Number of checksums that are kept."""
_SHA256: Final = re.compile(r"[0-9a-f]{64}")


def packed(
    path: str | os.PathLike[str], threads: int | None = None, caching: CachingReport | None = None
) -> CacheEntry:
    """The packed database of a sequence file, in use until the returned entry is closed.

    Parameters
    ----------
    path : path
        ``-`` is standard input.
    threads : int, optional
        As for :func:`swsearch.database.builder.build_database`.
    caching : CachingReport, optional
        Not used if the cache has the database.

    Raises
    ------
    FastaFormatError
        The file cannot be read as sequences of one alphabet.
    InputError
        The file cannot be opened, or changes meanwhile.
    DatabaseError
        The cache has no room, or cannot be used.
    """
    cache = NodeCache()
    source = held(path)
    checksums = Checksums(cache.folder.with_name("checksums"))
    sha256 = checksums.of(source.descriptor)
    caching = caching or CachingReport()
    reports: list[BuildReport] = []

    def create(folder: Path) -> None:
        shutil.rmtree(folder)  # it may contain files of an attempt that was killed
        folder.mkdir()
        with Threads(threads) as used, caching.packing() as progress:
            chunks = sequence_chunks(source, None, used)
            reports.append(write_database(folder, chunks, source_names(source), used, progress=progress))
        if not isinstance(source, Spooled) and checksums.of(source.descriptor) != sha256:
            raise InputError(f"{shown_name(source)} changed while it was read; run the command again when it is whole")

    key = f"{sha256}-{__version__}"
    entry = cache.open(key, _about_bytes(source), create, lambda folder: _is_whole(folder, checksums))
    for built in reports:
        caching.packed(shown_name(source), built, cache.folder)
    return entry


def _is_whole(folder: Path, checksums: Checksums) -> bool:
    """Whether the files of a database have the checksums that its catalogue states."""
    try:
        for name, entry in load_catalogue(folder).files.items():
            with (folder / name).open("rb") as file:
                if checksums.of(file.fileno()) != entry.sha256:
                    return False
    except (DatabaseError, OSError):
        return False
    return True


def _about_bytes(source: HeldFile) -> int:
    """About the size of the database in bytes."""
    size = os.fstat(source.descriptor).st_size
    return size * 2 if Path(source.given).suffix.lower() in COMPRESSED else size


class Checksums:
    """A folder of remembered checksums, of which the oldest are removed; nothing is remembered if it cannot be written.

    A file is recognised by its device, inode, size and times of change. The kernel sets the time of the last change
    (``ctime``), which no program can choose, so that a file with the same values has the same content, with one
    exception: times are those of the last tick of a clock, or of the first write to mapped memory since it was flushed,
    and another change soon after leaves them as they are. Therefore a checksum is remembered only if the file had been
    unchanged for a minute when it was read. (The one change that remains unseen is a later write to mapped memory that
    is never flushed, as on tmpfs.)
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def of(self, descriptor: int) -> str:
        """The SHA-256 of an open file, in hexadecimal; the file is read, unless its checksum is remembered."""
        found = os.fstat(descriptor)
        values = _file_values(found)
        is_settled = time.time() - max(found.st_ctime, found.st_mtime) > SETTLED_SECONDS
        if is_settled and (known := self._get(values)) is not None:
            return known
        with open(f"/dev/fd/{descriptor}", "rb") as file:  # a position of its own
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        if is_settled and _file_values(os.fstat(descriptor)) == values:
            self._set(values, sha256)
        return sha256

    def _get(self, values: str) -> str | None:
        """The checksum of the file with these values, if it is known."""
        path = self._folder / values
        with suppress(OSError, UnicodeDecodeError):
            found = path.read_text("ascii")
            if _SHA256.fullmatch(found):
                os.utime(path)
                return found
        return None

    def _set(self, values: str, sha256: str) -> None:
        """Remember a checksum."""
        with suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            self._remove_oldest()
            write_complete(self._folder / values, sha256.encode("ascii"))

    def _remove_oldest(self) -> None:
        with os.scandir(self._folder) as entries:
            found = sorted((entry.stat().st_mtime, entry.path) for entry in entries)
        for _, path in found[: max(0, len(found) + 1 - MAX_FILES)]:
            os.unlink(path)


def _file_values(found: os.stat_result) -> str:
    return f"{found.st_dev}-{found.st_ino}-{found.st_size}-{found.st_mtime_ns}-{found.st_ctime_ns}"
