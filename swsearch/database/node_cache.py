"""The cache of a node: databases as folders on its disk, made of those of object stores and of sequence files.

:func:`NodeCache.open` returns an entry, and creates it first if it is missing. An entry is created in a folder of
another name and appears by one rename, so that an entry is always complete. If several processes need the same entry,
one creates it and the others wait.

Each entry has a lock file, whose time of modification is that of the last use. Processes that use the entry hold a
shared lock (``flock``) on it, the one that creates or removes the entry an exclusive one. Therefore an entry in use is
never removed, whether its process works, is killed, or forgets to close it. The oldest entries that are not in use are
removed if a new one would exceed the limit.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

from swsearch.errors import DatabaseError
from swsearch.folders import is_shared, locked_file, remove_folder, user_cache
from swsearch.typing import Closeable
from swsearch.words import counted

FOLDER_VARIABLE: Final = "SWSEARCH_CACHE"
"""Environment variable with the folder of the cache."""
LIMIT_VARIABLE: Final = "SWSEARCH_CACHE_LIMIT"
"""Environment variable with the largest size of the cache: bytes, or a number with K, M, G or T."""
SHARE_OF_DISK: Final = 0.9
"""Without a limit, the part that the cache may take of the room that it has and the room that is free."""
_SIZE: Final = re.compile(r"(\d{1,15}(?:\.\d{1,6})?)([KMGT]?)I?B?", re.IGNORECASE)
_FETCHING: Final = "fetching-"
_REMOVING: Final = "removing-"


class CacheEntry(Closeable):
    """A :attr:`folder` of the cache that is in use until it is closed."""

    def __init__(self, folder: Path, lock: int) -> None:
        self.folder = folder
        self._lock: int | None = lock

    def close(self) -> None:
        """Release the entry; it may then be removed."""
        lock, self._lock = self._lock, None
        if lock is not None:
            os.close(lock)


class NodeCache:
    """A folder of entries.

    It is the folder that ``SWSEARCH_CACHE`` names, or the user's cache folder (``$XDG_CACHE_HOME`` or ``~/.cache``), or
    ``/var/tmp`` if that is on a network file system. All entries together have at most ``SWSEARCH_CACHE_LIMIT``, or
    nine tenths of the disk's room.

    Raises
    ------
    DatabaseError
        The value of ``SWSEARCH_CACHE_LIMIT`` is not a size.
    """

    def __init__(self) -> None:
        self.folder = _folder()
        self._limit_bytes = _limit()

    def open(
        self,
        key: str,
        n_bytes: int,
        create: Callable[[Path], None],
        is_whole: Callable[[Path], bool] = lambda _: True,
    ) -> CacheEntry:
        """An entry, which is created if it is missing, and created anew if it is damaged.

        Parameters
        ----------
        key : str
            Its name, without ``/``.
        n_bytes : int
            Its size, or an estimate, for which room is made before it is created.
        create : callable
            Creates the content in a folder, which may contain files of an attempt that was killed.
        is_whole : callable
            Whether the content of an entry is undamaged.

        Raises
        ------
        DatabaseError
            The cache cannot be written, or its limit leaves no room. Errors of ``create`` are raised unchanged.
        """
        folder, lock = self.folder / key, self._lock_of(key)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            while True:
                with ExitStack() as stack:
                    entry = stack.enter_context(CacheEntry(folder, locked_file(lock, fcntl.LOCK_SH)))
                    if folder.is_dir() and is_whole(folder):
                        os.utime(lock)
                        stack.pop_all()
                        return entry
                with CacheEntry(folder, locked_file(lock, fcntl.LOCK_EX)):
                    if not (folder.is_dir() and is_whole(folder)):  # another process may have created it meanwhile
                        shutil.rmtree(folder, ignore_errors=True)
                        self._create(key, n_bytes, create)
                # Between the two locks, another process may remove the entry; therefore the loop looks again.
        except OSError as error:
            problem = f"{error.strerror or error} ({error.filename or self.folder})"
            raise DatabaseError(
                f"the cache {self.folder} cannot be used: {problem}; choose another folder with {FOLDER_VARIABLE}"
            ) from error

    def has(self, key: str) -> bool:
        """Whether there is an entry; unless it is open, it may be removed at any time."""
        return (self.folder / key).is_dir()

    def _create(self, key: str, n_bytes: int, create: Callable[[Path], None]) -> None:
        """Create an entry, whose exclusive lock is held."""
        unfinished = self.folder / f"{_FETCHING}{key}"
        self._make_room(key, n_bytes)
        try:
            unfinished.mkdir(exist_ok=True)
            create(unfinished)
            self._make_room(key, _size(unfinished))  # it may be larger than expected
            unfinished.rename(self.folder / key)
        except BaseException:
            remove_folder(unfinished)
            raise

    def _lock_of(self, key: str) -> Path:
        return self.folder / f"{key}.lock"

    def _make_room(self, key: str, n_bytes: int) -> None:
        """Remove the oldest entries that are not in use, until there is room for ``n_bytes`` more."""
        sizes = {name: _size(self.folder / name) for name in os.listdir(self.folder)}
        sizes.pop(f"{_FETCHING}{key}", None)  # becomes part of the new entry
        used = sum(sizes.values())
        limit = self._limit_bytes
        if limit is None:
            limit = int((used + shutil.disk_usage(self.folder).free) * SHARE_OF_DISK)
        for name in sorted((name for name in sizes if name.endswith(".lock")), key=self._last_use):
            other = name.removesuffix(".lock")
            if used + n_bytes <= limit:
                return
            if other != key and self._remove(other):
                used -= sizes.get(other, 0) + sizes.get(f"{_FETCHING}{other}", 0)
        if used + n_bytes > limit:
            there = f", of which {counted(used, 'byte')} are in use" if used else ""
            raise DatabaseError(
                f"the cache {self.folder} has a limit of {counted(limit, 'byte')}{there}, and the database needs "
                f"{n_bytes:,}; set {LIMIT_VARIABLE}, or another folder with {FOLDER_VARIABLE}"
            )

    def _last_use(self, lock: str) -> float:
        try:
            return (self.folder / lock).stat().st_mtime
        except FileNotFoundError:
            return 0.0

    def _remove(self, key: str) -> bool:
        """Remove an entry unless it is in use; returns whether it is gone."""
        folder, path = self.folder / key, self._lock_of(key)
        try:
            lock = locked_file(path, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        with CacheEntry(folder, lock):
            removed = self.folder / f"{_REMOVING}{key}"
            shutil.rmtree(removed, ignore_errors=True)
            with suppress(FileNotFoundError):
                folder.rename(removed)
            shutil.rmtree(removed, ignore_errors=True)
            shutil.rmtree(self.folder / f"{_FETCHING}{key}", ignore_errors=True)
            path.unlink(missing_ok=True)
        return True


def _folder() -> Path:
    given = os.environ.get(FOLDER_VARIABLE, "")
    if given:
        return Path(given).absolute() / "databases"
    usual = user_cache("databases")
    if is_shared(usual / "entry"):
        return Path(f"/var/tmp/swsearch-{os.getuid()}/databases")
    return usual


def _limit() -> int | None:
    given = os.environ.get(LIMIT_VARIABLE, "").strip()
    if not given:
        return None
    match = _SIZE.fullmatch(given)
    if match is None:
        raise DatabaseError(
            f"{LIMIT_VARIABLE} is {given[:40]!r}; give bytes, or a number with K, M, G or T, such as 200G"
        )
    return int(float(match[1]) * 1024 ** " KMGT".index(match[2].upper() or " "))


def _size(path: Path) -> int:
    """The number of bytes of a file, or of all files of a folder."""
    try:
        if not path.is_dir():
            return path.lstat().st_size
        return sum(_size(entry) for entry in path.iterdir())
    except FileNotFoundError:
        return 0
