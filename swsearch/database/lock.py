"""The lock that a process holds while it changes a database, so that there is one writer at a time.

The lock is ``flock`` on ``writer.lock`` in the database's folder. The operating system releases it when its holder
ends, for any reason; the file remains. The file contains the process id and host of the holder, which are used only in
the error message for a second writer. Readers take no lock.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from swsearch.errors import DatabaseError

LOCK: Final = "writer.lock"


@contextmanager
def writer_lock(folder: Path, *, wait: bool = False) -> Iterator[None]:
    """Hold a database's lock during the body of a ``with`` statement.

    Parameters
    ----------
    folder : path
        The database's folder.
    wait : bool
        Whether to wait until another writer releases the lock.

    Raises
    ------
    DatabaseError
        Another process holds the lock and ``wait`` is false; the message names that process.
    OSError
        The folder cannot be written to.
    """
    lock = _take(folder, wait=wait)
    try:
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"process {os.getpid()} on {os.uname().nodename}".encode(), 0)
        yield
        os.ftruncate(lock, 0)
    finally:
        os.close(lock)


def _take(folder: Path, *, wait: bool) -> int:
    """Lock the file; return its descriptor."""
    path = folder / LOCK
    while True:
        # Links are not followed, because the file that they point to would be emptied.
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            if _lies_at(lock, path):
                return lock
        except BlockingIOError:
            holder = os.pread(lock, 200, 0).decode("utf-8", "replace") or "another process"
            os.close(lock)
            raise DatabaseError(
                f"{folder} is being changed by {holder}; run the command again when that has ended"
            ) from None
        except BaseException:
            os.close(lock)
            raise
        os.close(lock)


def _lies_at(lock: int, path: Path) -> bool:
    """Whether the locked file is still the one at ``path``; the database may have been replaced by another one."""
    try:
        return os.path.samestat(os.fstat(lock), os.stat(path))
    except FileNotFoundError:
        return False
