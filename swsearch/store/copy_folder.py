"""The folder of this machine in which the processes of one user work on the copy of a staged store, and its locks.

Each process that uses the copy has a shared lock on the file ``users``. A process that opens, publishes or leaves the
copy has the exclusive lock on the file ``turn`` meanwhile. The process that opens the copy alone brings it to the state
of the store; the last one that leaves removes the folder. The locks are those of ``flock``, which end with a process.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from swsearch.errors import StoreError
from swsearch.folders import is_shared

_TURN: Final = "turn"
_USERS: Final = "users"
_LOCKS: Final = (_USERS, _TURN)
_PAUSE_SECONDS: Final = 0.01
"""Time between two attempts to lock."""


class CopyFolder:
    """The folder for the copy of one store; the calling process has the turn until it calls :meth:`join`.

    Parameters
    ----------
    target : Path
        The store, an absolute path without links.
    shown : str
        Its name in messages.
    busy_seconds : float
        Longest time to wait for the turn of another process, in seconds.

    Attributes
    ----------
    path : Path
    is_alone : bool
        Whether no other process used the copy when this one came.

    Raises
    ------
    StoreError
        The folder cannot be created, belongs to another user, or another process does not end its turn.
    """

    def __init__(self, target: Path, shown: str, busy_seconds: float) -> None:
        self.path = _own_folder(target)
        self._shown = shown
        self._busy_seconds = busy_seconds
        self._turn = self._locked_turn()
        self._users = self._opened(_USERS)
        self.is_alone = _try_lock(self._users)

    def join(self) -> None:
        """Become one of the processes that use the copy, and end the turn."""
        fcntl.flock(self._users, fcntl.LOCK_SH)
        fcntl.flock(self._turn, fcntl.LOCK_UN)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """The turn of this process; others wait until it ends."""
        self._wait_for(self._turn)
        try:
            yield
        finally:
            fcntl.flock(self._turn, fcntl.LOCK_UN)

    @contextmanager
    def leaving(self) -> Iterator[bool]:
        """The turn in which this process leaves; yields whether it is the last one, whose folder is then removed.

        The folder remains if the block raises.
        """
        try:
            with self.turn():
                is_last = _try_lock(self._users)
                yield is_last
                if is_last:
                    self.remove()
        finally:
            self.close()

    def files(self) -> list[Path]:
        """The files of the copy."""
        return [file for file in self.path.iterdir() if file.name not in _LOCKS]

    def remove(self) -> None:
        """Remove the folder, which no other process uses."""
        for file in (*self.files(), *(self.path / name for name in _LOCKS)):
            file.unlink()
        with suppress(OSError):  # another process has already begun to use the folder again
            self.path.rmdir()

    def close(self) -> None:
        """Release the locks."""
        os.close(self._users)
        os.close(self._turn)

    def _locked_turn(self) -> int:
        """The descriptor of the locked file ``turn``; the folder is created if it is missing."""
        while True:
            turn = self._opened(_TURN)
            try:
                self._wait_for(turn)
                if os.path.samestat(os.fstat(turn), os.stat(self.path / _TURN)):
                    return turn
            except FileNotFoundError:
                pass  # the process that had the turn has removed the folder
            except BaseException:
                os.close(turn)
                raise
            os.close(turn)

    def _opened(self, name: str) -> int:
        """The descriptor of a file to lock."""
        while True:
            try:
                with suppress(FileExistsError):
                    self.path.mkdir(mode=0o700)
                found = self.path.lstat()
                if found.st_uid != os.getuid() or not stat.S_ISDIR(found.st_mode):
                    raise StoreError(f"{self.path} belongs to another user; set TMPDIR to another folder")
                return os.open(self.path / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            except FileNotFoundError:
                if not self.path.parent.is_dir():
                    raise StoreError(f"{self.path.parent} does not exist; set TMPDIR to another folder") from None
                # Another process has removed the folder between the two calls.
            except OSError as error:
                advice = "set TMPDIR to a folder that can be written to"
                raise StoreError(f"{self.path}: {error.strerror}; {advice}") from error

    def _wait_for(self, turn: int) -> None:
        ends = time.monotonic() + self._busy_seconds
        while not _try_lock(turn):
            if time.monotonic() > ends:
                problem = f"another process opens or publishes {self._shown} and does not finish"
                raise StoreError(f"{problem}; try again when it is done")
            time.sleep(_PAUSE_SECONDS)


def _try_lock(descriptor: int) -> bool:
    """Lock a file exclusively unless another process has a lock; returns whether it is locked."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _own_folder(target: Path) -> Path:
    """A folder of this user on this machine for the copy of ``target``; the same for every process."""
    places = filter(None, (os.environ.get("TMPDIR"), "/tmp", "/var/tmp"))
    place = next((Path(place) for place in places if os.path.isdir(place) and not is_shared(Path(place, "file"))), None)
    if place is None:
        raise StoreError(f"{target}: no folder for temporary files is on a disk of this machine; set TMPDIR to one")
    digest = hashlib.sha256(os.fsencode(target)).hexdigest()[:24]
    return place / f"swsearch-{os.getuid()}-{digest}"
