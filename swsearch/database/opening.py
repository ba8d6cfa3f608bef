"""Opening of databases that are no folders of this machine, after they were fetched or packed into the node's cache.

:func:`open_cached` takes the URL of a database in an object store (:mod:`swsearch.database.object_store`), or a
sequence file or pipe (:mod:`swsearch.database.sequence_files`). An :class:`Origin` describes of what an entry of the
cache was made. :func:`opened` is for functions that take an open database or the path of one, or several of them.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import TypeAlias

from swsearch.arguments import path
from swsearch.database.node_cache import CacheEntry
from swsearch.database.object_store import is_url
from swsearch.database.reader import PackedDatabase
from swsearch.errors import WrongType
from swsearch.sequences.source import HeldFile, seekable, shown_name, source_name
from swsearch.words import a_kind

Database: TypeAlias = str | os.PathLike[str] | PackedDatabase
"""The path of a database, or an open one."""
Databases: TypeAlias = Database | Sequence[Database]
"""A database, or several that are searched as one."""


@dataclass(frozen=True)
class Origin:
    """Of what an entry of the node's cache was made.

    Attributes
    ----------
    name : str
        As its user wrote it, for messages.
    address : str or None
        The URL, or the absolute path of a sequence file without symbolic links; None for a pipe.
    source : str or None
        The name of a sequence file without its folder, as in a catalogue; None for a URL.
    """

    name: str
    address: str | None
    source: str | None

    @classmethod
    def of_url(cls, url: str) -> Origin:
        """That of a database of an object store."""
        return cls(url.rstrip("/"), url.rstrip("/"), None)

    @classmethod
    def of_file(cls, path: str | os.PathLike[str]) -> Origin:
        """That of a sequence file: a path, or the copy of a pipe from :func:`swsearch.sequences.source.seekable`."""
        address = None if isinstance(path, HeldFile) else os.path.realpath(path)
        return cls(shown_name(path), address, source_name(path))

    @property
    def location(self) -> str:
        """The address; ``<stdin>`` or ``<pipe>`` for a pipe."""
        return self.address or (self.source if self.source == "<stdin>" else "<pipe>")


def open_cached(path: str | os.PathLike[str], segments: Collection[int] | None = None) -> PackedDatabase:
    """Open a database of an object store, or that of a sequence file; see :meth:`PackedDatabase.open`."""
    if is_url(url := os.fspath(path)):
        from swsearch.database.object_store import fetch

        return open_entry(fetch(url, segments), Origin.of_url(url), segments)
    from swsearch.database.sequence_files import packed

    source = seekable(path)
    return open_entry(packed(source), Origin.of_file(source), segments)


def open_entry(entry: CacheEntry, origin: Origin, segments: Collection[int] | None = None) -> PackedDatabase:
    """Open an entry of the cache, which is released when the database is closed.

    Raises
    ------
    DatabaseError
        As for :meth:`PackedDatabase.open`; the entry is then released.
    """
    try:
        found = PackedDatabase.open(entry.folder, segments)
        catalogue = found.catalogue
        if origin.source is not None:  # the entry may have been made of an equal file with another name
            catalogue = replace(catalogue, sources=(origin.source,))
        return PackedDatabase(found.path, catalogue, found.segments, origin, entry, found.taxonomy_arrays)
    except BaseException:
        entry.close()
        raise


def opened(database: Databases) -> AbstractContextManager[PackedDatabase]:
    """A context manager of an open database, which stays open, or of the database at a path, which is closed.

    Several of them are opened as one (:mod:`swsearch.database.joined`).

    Raises
    ------
    DatabaseError, InputError
        As for :meth:`PackedDatabase.open` and :class:`swsearch.database.joined.JoinedDatabase`; or there are none.
    WrongType
        It is neither a path, nor a database, nor a sequence of these.
    """
    if isinstance(database, PackedDatabase):
        return nullcontext(database)
    if isinstance(database, (str, os.PathLike)):
        path("database", database)
        return PackedDatabase.open(database)
    if not isinstance(database, Iterable) or isinstance(database, (bytes, bytearray)):
        raise WrongType(f"database is {a_kind(database)}; give a path, an open database, or a list of these")
    return _opened_together(list(database))


@contextmanager
def _opened_together(databases: Sequence[Database]) -> Iterator[PackedDatabase]:
    from swsearch.database.joined import joined

    with ExitStack() as stack:
        yield joined([stack.enter_context(opened(one)) for one in databases])
