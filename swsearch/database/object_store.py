"""Databases in object stores: read through obstore, fetched into the cache of this node, checked, and read from there.

:class:`ObjectFolder` takes a URL such as ``s3://bucket/path/proteins.db`` and reads objects below it by their names.
Credentials and endpoints are those that obstore finds in the environment (``AWS_ACCESS_KEY_ID``, ``AWS_ENDPOINT``,
``GOOGLE_SERVICE_ACCOUNT``, ``AZURE_STORAGE_ACCOUNT_KEY`` …); URLs must not contain them, since runs store URLs.

:func:`fetch` takes the URL of a database that was uploaded as it is (``catalogue.json`` and its segments) and returns
an entry of :mod:`swsearch.database.node_cache` for :func:`~swsearch.database.opening.open_database`. Its key is the
SHA-256 of the catalogue, so that a new generation at the same URL is a new entry, and equal databases at two URLs are
one. A slice is an entry of its own, with the files of its segments only, unless the cache has the whole database.

The catalogue is read at each call. Each file is compared with the size and the SHA-256 that the catalogue states while
it arrives; a file that differs, because it is damaged or because the database is being replaced, ends the fetch, and
nothing of it remains. A fetch that was killed continues after the files that were complete.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import numpy as np

from swsearch.database.catalogue import read_catalogue
from swsearch.database.format import CATALOGUE, MAX_CATALOGUE_BYTES, FileEntry
from swsearch.database.node_cache import CacheEntry, NodeCache
from swsearch.database.opening import CachingReport
from swsearch.database.segment_writer import HashingFile
from swsearch.errors import DatabaseError
from swsearch.threads import Threads
from swsearch.typing import Progress
from swsearch.words import counted

BLOCK_BYTES: Final = 8 << 20
"""Number of bytes of one request."""
N_REQUESTS: Final = 8
"""Number of requests in flight; the memory in use is this number of blocks, and three that wait to be written."""
_RETRIES: Final[Any] = {"max_retries": 6, "retry_timeout": timedelta(seconds=120)}
_CREDENTIALS: Final = (
    "check the credentials in the environment, such as AWS_ACCESS_KEY_ID, or say AWS_SKIP_SIGNATURE=true for a public "
    "bucket"
)
_QUERY: Final = re.compile(r"\?[^\s\"']*")


class ObjectFolder:
    """Objects whose names begin with the path of a URL; threads may share it.

    Parameters
    ----------
    url : str
        A URL with one of :data:`swsearch.file_registry.SCHEMES`.

    Raises
    ------
    DatabaseError
        obstore is not installed, the URL contains credentials or cannot be read, or the store cannot be configured.
    """

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        scheme, _, rest = self.url.partition("://")
        if "?" in rest or "#" in rest or ("@" in rest.partition("/")[0] and scheme not in ("abfs", "abfss")):
            shown = f"{scheme}://…/{rest.partition('?')[0].rpartition('/')[2]}"
            problem = "the URL of a database has no user, password, query or fragment"
            raise DatabaseError(f"{shown}: {problem}; give credentials in the environment")
        try:
            import obstore
            from obstore.store import from_url
        except ModuleNotFoundError as error:
            advice = "`pip install 'swsearch[remote]'` adds it"
            raise DatabaseError(f"{url} needs obstore, which is not installed; {advice}") from error
        self._obstore: Any = obstore
        with self._translated(self.url):
            # obstore must be told that HTTP without encryption is meant; other stores take AWS_ALLOW_HTTP and its like.
            more: Any = {"client_options": {"allow_http": True}} if scheme == "http" else {}
            self._store: Any = from_url(self.url, retry_config=_RETRIES, **more)

    def read(self, name: str, max_bytes: int) -> bytes:
        """The content of a small object.

        Raises
        ------
        DatabaseError
            There is no such object, it cannot be read, or it has more than ``max_bytes`` bytes.
        """
        place = f"{self.url}/{name}"
        with self._translated(place):
            found = self._obstore.get(self._store, name)
            if found.meta["size"] > max_bytes:
                raise DatabaseError(
                    f"{place} has {counted(found.meta['size'], 'byte')}, at most {max_bytes:,} can be read"
                )
            return bytes(found.bytes())

    def blocks(self, name: str, size: int, threads: Threads) -> Iterator[bytes]:
        """The content of an object of ``size`` bytes, in blocks that are requested by the threads.

        Raises
        ------
        DatabaseError
            There is no such object, it cannot be read, or it has another size.
        """
        place = f"{self.url}/{name}"

        def read_block(start: int) -> bytes:
            end = min(start + BLOCK_BYTES, size)
            with self._translated(place):
                return bytes(self._obstore.get_range(self._store, name, start=start, end=end))

        with self._translated(place):
            found = self._obstore.head(self._store, name)["size"]
        if found != size:
            raise DatabaseError(f"{place} has {counted(found, 'byte')}, its catalogue says {size:,}")
        yield from threads.in_order(read_block, range(0, size, BLOCK_BYTES))

    @contextmanager
    def _translated(self, place: str) -> Iterator[None]:
        """Convert errors of obstore to one line without the queries of URLs, which may be signed."""
        from obstore import exceptions

        try:
            yield
        except FileNotFoundError as error:
            raise DatabaseError(f"{place} does not exist; check the URL") from error
        except (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError) as error:
            raise DatabaseError(f"{place} may not be read; {_CREDENTIALS}") from error
        except (exceptions.BaseError, OSError, ValueError) as error:
            reason = _QUERY.sub("", (str(error).splitlines() or ["no message"])[0])
            # Without credentials, those of a cloud machine are asked for, and no other machine answers.
            advice = f"; {_CREDENTIALS}" if "/latest/api/token" in reason else ""
            raise DatabaseError(f"{place} cannot be read: {reason}{advice}") from error


_SLICE_DIGITS: Final = 16
"""Hexadecimal digits of the SHA-256 of the names of a slice's files, in the name of its entry."""


def fetch(url: str, segments: Collection[int] | None = None, caching: CachingReport | None = None) -> CacheEntry:
    """A database of an object store as a folder of this node, in use until the returned entry is closed.

    Parameters
    ----------
    url : str
    segments : collection of int, optional
        The segments of a slice, by their numbers from 0 in the catalogue; the files of the others are not fetched.
    caching : CachingReport, optional
        Not used if the cache has the database, or slice.

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
    node = NodeCache()
    if segments is not None and not node.has(key):
        files = catalogue.files_of(segments)
    if len(files) < len(catalogue.files):
        key += f"-{hashlib.sha256(repr(sorted(files)).encode()).hexdigest()[:_SLICE_DIGITS]}"
    n_bytes = sum(file.size for file in files.values())

    def create(folder: Path) -> None:
        with (caching or CachingReport()).fetching(url, n_bytes) as advance, Threads(N_REQUESTS) as threads:
            for name, file in files.items():
                _fetch_file(objects, name, file, folder / name, threads, advance)
        _write(folder / CATALOGUE, [raw])

    return node.open(key, n_bytes + len(raw), create)


def _fetch_file(
    objects: ObjectFolder, name: str, file: FileEntry, target: Path, threads: Threads, advance: Progress
) -> None:
    """Fetch one file; it appears when its bytes have the stated checksum."""
    if target.is_file() and target.stat().st_size == file.size:
        advance(file.size)
        return
    target.parent.mkdir(exist_ok=True)
    unfinished = target.with_name(f"{target.name}.unfinished")
    if _write(unfinished, objects.blocks(name, file.size, threads), advance) != file:
        problem = "does not have the checksum that its catalogue states: it is damaged, or was replaced meanwhile"
        raise DatabaseError(f"{objects.url}/{name} {problem}; run the command again, or upload the database again")
    unfinished.rename(target)


def _write(path: Path, blocks: Iterable[bytes], advance: Progress = lambda _: None) -> FileEntry:
    """Write a file, which is on the disk in the end, in place of one of an attempt that was killed."""
    path.unlink(missing_ok=True)
    with HashingFile(path, "u1") as file:
        for block in blocks:
            file.write(np.frombuffer(block, np.uint8))
            advance(len(block))
        return file.finish()
