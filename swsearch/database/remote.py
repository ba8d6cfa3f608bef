"""Databases in object stores: fetched into the cache of this node, checked, and read from there.

:func:`fetch` takes the URL of a database that was uploaded as it is (``catalogue.json`` and its segments) and returns
an entry of :mod:`swsearch.database.node_cache` for :class:`~swsearch.database.reader.PackedDatabase`. Its key is the
SHA-256 of the catalogue, so that a new generation at the same URL is a new entry, and equal databases at two URLs are
one. A slice is an entry of its own, with the files of its segments only, unless the cache has the whole database.

The catalogue is read at each call. Each file is compared with the size and the SHA-256 that the catalogue states while
it arrives; a file that differs, because it is damaged or because the database is being replaced, ends the fetch, and
nothing of it remains. A fetch that was killed continues after the files that were complete.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Final

from swsearch.database.catalogue_json import read_catalogue
from swsearch.database.format import CATALOGUE, MAX_CATALOGUE_BYTES, FileEntry
from swsearch.database.node_cache import CacheEntry, NodeCache
from swsearch.database.object_store import ObjectFolder
from swsearch.errors import DatabaseError

_SLICE_DIGITS: Final = 16
"""Hexadecimal digits of the SHA-256 of the names of a slice's files, in the name of its entry."""


def fetch(
    url: str,
    segments: Collection[int] | None = None,
    *,
    cache: NodeCache | None = None,
    begin: Callable[[int], None] = lambda _: None,
    advance: Callable[[int], None] = lambda _: None,
) -> CacheEntry:
    """A database of an object store as a folder of this node, in use until the returned entry is closed.

    Parameters
    ----------
    url : str
    segments : collection of int, optional
        The segments of a slice, by their numbers from 0 in the catalogue; the files of the others are not fetched.
    cache : NodeCache, optional
        By default, the cache of the user.
    begin : callable
        Called with the number of bytes of the database, or slice, before files are fetched; not called if the cache has
        them.
    advance : callable
        Called with the number of bytes that have arrived since the last call.

    Raises
    ------
    DatabaseError
        There is no database, it cannot be read, an object is damaged or changes meanwhile, or the cache has no room.
    """
    objects = ObjectFolder(url)
    raw = objects.read(CATALOGUE, MAX_CATALOGUE_BYTES)
    try:
        catalogue = read_catalogue(raw.decode("utf-8"))
    except ValueError as error:  # UnicodeDecodeError is one
        raise DatabaseError(f"{objects.url} cannot be used: {error}; upload the database again") from error

    files, key = catalogue.files, hashlib.sha256(raw).hexdigest()
    node = NodeCache() if cache is None else cache
    if segments is not None and not node.has(key):
        files = catalogue.files_of(segments)
    if len(files) < len(catalogue.files):
        key += f"-{hashlib.sha256(repr(sorted(files)).encode()).hexdigest()[:_SLICE_DIGITS]}"
    n_bytes = sum(file.size for file in files.values())

    def create(folder: Path) -> None:
        begin(n_bytes)
        for name, file in files.items():
            _fetch_file(objects, name, file, folder / name, advance)
        _write(folder / CATALOGUE, raw)

    return node.open(key, n_bytes + len(raw), create)


def _fetch_file(
    objects: ObjectFolder, name: str, file: FileEntry, target: Path, advance: Callable[[int], None]
) -> None:
    """Fetch one file; it appears when its bytes have the stated checksum."""
    if target.is_file() and target.stat().st_size == file.size:
        advance(file.size)
        return
    target.parent.mkdir(exist_ok=True)
    unfinished = target.with_name(f"{target.name}.unfinished")
    digest = hashlib.sha256()
    with unfinished.open("wb") as stream:
        for block in objects.blocks(name, file.size):
            digest.update(block)
            stream.write(block)
            advance(len(block))
        stream.flush()
        os.fsync(stream.fileno())
    if digest.hexdigest() != file.sha256:
        problem = "does not have the checksum that its catalogue states: it is damaged, or was replaced meanwhile"
        raise DatabaseError(f"{objects.url}/{name} {problem}; run the command again, or upload the database again")
    unfinished.rename(target)


def _write(path: Path, content: bytes) -> None:
    with path.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
