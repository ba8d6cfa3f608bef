"""Stores on file systems that several machines share: written on this machine, and published there as whole files.

SQLite in WAL mode must not write to a network file system (:mod:`swsearch.folders`). A
:class:`StagedStore` therefore owns a private copy of the store in a folder of this machine, and publishes its state:
when the first change is committed, with the first change that is committed :data:`PUBLISH_SECONDS` after the last
publication, and when it is closed. To *publish* is to write a consistent copy to a temporary file beside the target,
synchronize it, and rename it, so that the target is always a complete store.

**What survives a kill.** Everything that was published: the target has the runs of the process as ``interrupted``, so
that ``--resume latest`` continues them on any machine. What was committed after that is searched again, with the same
results.

**Other processes.** On one machine, a process of the same user that opens the store waits until this one has closed it.
Processes of other machines are detected when a state is published: every published file has a random number (SQLite's
``user_version``), and the target must still be the file that this process has read or published last. Otherwise nothing
is replaced. A process that cannot publish its last state keeps it, and the error names the file.

:func:`~swsearch.store.store.open_store` decides whether a store is staged.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
import shutil
import sqlite3
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final

from swsearch.errors import StoreError
from swsearch.folders import is_shared, locked_file, remove_folder, sync_folder
from swsearch.store.connections import Address
from swsearch.store.driver import explained, register_store
from swsearch.store.rows import INTERRUPTED, RUNNING
from swsearch.store.runs import HostProcess
from swsearch.store.schema import check_file, upgrade
from swsearch.store.store import Store, is_staged
from swsearch.words import as_arguments, option

PUBLISH_SECONDS: Final = 30.0
"""Shortest time between two publications, in seconds."""
MAX_SHARE_OF_TIME: Final = 0.05
"""Largest part of the time that publications take; a store of many gigabytes is published less often."""

Notify = Callable[[str], None]
"""Is called with the line that says for which process this one waits."""

_HEADER_BYTES: Final = 100
"""Size of the header of an SQLite file, which has the number of its last change and ``user_version``."""
_OPEN: Final[set[Path]] = set()
"""The stores that this process has staged: it would wait for itself."""


def upgrade_store(target: str | os.PathLike[str], *, stage: str = "auto", notify: Notify | None = None) -> None:
    """Bring a store up to date (:func:`swsearch.store.schema.upgrade`), staged as
    :func:`~swsearch.store.store.open_store` would stage it.

    Raises
    ------
    InputError, StoreError
        As these functions raise them.
    """
    if is_staged(target, stage):
        StagedStore(target, is_upgrade=True, notify=notify).close()
    else:
        upgrade(target)


class StagedStore(Store):
    """A store that is written on this machine and published to its file; see the module's description.

    Parameters
    ----------
    target : str or path
        A file, or a URL of SQLite. Links are followed.
    create : bool
        Create the store if there is none; otherwise a missing store is an error.
    is_upgrade : bool
        Whether to bring a store of an older version up to date; otherwise it is refused.
    notify : callable, optional
        As for :func:`~swsearch.store.store.open_store`.

    Raises
    ------
    StoreError
        The store cannot be opened or read, this process has staged it already, or SQLite's side files show that a
        process writes to the file itself.
    """

    def __init__(
        self,
        target: str | os.PathLike[str],
        *,
        create: bool = False,
        is_upgrade: bool = False,
        notify: Notify | None = None,
    ) -> None:
        address = Address.of(target)
        register_store(target, create=create)
        shown = address.name
        self._target = Path(os.path.realpath(str(address.database)))
        self._folder = _PrivateFolder(self._target, shown, notify)
        self._next_publication = 0.0
        self._publishing = threading.RLock()
        self._is_open = True
        local = self._folder.store
        try:
            check_file(address, create=create)
            with _naming(shown):
                self._seen = _read(self._target, local, shown)
            try:
                before, after = upgrade(local) if is_upgrade else ("", "")
                super().__init__(local, create=True)
            except StoreError as error:  # its message names the copy
                raise StoreError(error.marked.replace(str(local), shown)) from error
        except BaseException:
            self._folder.close()
            raise
        self.name = shown
        self._has_changed = before != after

    def close(self) -> None:
        """Publish the last changes, and remove the private copy. Further calls have no effect.

        Raises
        ------
        StoreError
            The target cannot be written, or another process has replaced it; the message names the file that has what
            is stored.
        """
        with self._publishing:
            if not self._is_open:
                return
            self._is_open = False
            try:
                if self._has_changed:
                    self.publish()
            except BaseException as error:
                super().close()
                kept = self._folder.keep()
                if isinstance(error, StoreError):
                    raise StoreError(f"{error.marked}; what was stored is kept in {kept}") from error
                raise
            finally:
                super().close()
                self._folder.close()

    def publish(self) -> None:
        """Publish the current state.

        Raises
        ------
        StoreError
            The target cannot be written, or another process has replaced it.
        """
        with self._publishing, _naming(self.name):
            began = time.monotonic()
            self._has_changed = False  # before the copy, since other threads may commit meanwhile
            try:
                whole = self._folder.whole
                _copy_of(self._folder.store, whole)
                if _identity(self._target) != self._seen:
                    raise self._replaced()
                _replace(self._target, whole)
                self._seen = _identity(whole)
            except BaseException:
                self._has_changed = True
                raise
            took = time.monotonic() - began
            self._next_publication = time.monotonic() + max(PUBLISH_SECONDS, took / MAX_SHARE_OF_TIME)

    def _replaced(self) -> StoreError:
        problem = f"{self.name} was deleted or replaced by another process, which this one must not overwrite"
        return StoreError(f"{problem}; give each process a store of its own, such as --store hits-{{shard}}.sqlite")

    def compact(self) -> None:
        """Reduce the copy, and publish it at the latest when the store is closed; errors are those of ``Store``."""
        super().compact()
        self._has_changed = True

    @contextmanager
    def changing(self) -> Iterator[None]:
        """As for ``Store``; the change is then published, if the last publication is long enough ago."""
        with super().changing():
            yield
        self._has_changed = True
        # While another thread publishes, this one goes on: a later publication has its change.
        if time.monotonic() >= self._next_publication and self._publishing.acquire(blocking=False):
            try:
                self.publish()
            finally:
                self._publishing.release()


class _PrivateFolder:
    """The folder of this machine with the copy of one store, which the calling process alone uses until it closes it.

    ``target`` is the store, an absolute path without links, ``shown`` its name in messages.
    """

    def __init__(self, target: Path, shown: str, notify: Notify | None) -> None:
        if target in _OPEN:
            raise StoreError(f"{shown} is open in this process already; use that store, or close it first")
        self._target = target
        self._path = _own_folder(target)
        self._lock_path = self._path.with_name(f"{self._path.name}.lock")
        self.store = self._path / "store.sqlite"
        self.whole = self._path / "published.sqlite"
        try:
            self._lock = self._locked(shown, notify or _print)
            try:
                self._make()
            except BaseException:
                self._unlock()
                raise
        except OSError as error:
            advice = "set TMPDIR to a folder that can be written to"
            raise StoreError(f"{error.filename or self._path}: {error.strerror}; {advice}") from error
        _OPEN.add(target)

    def _locked(self, shown: str, notify: Notify) -> int:
        """The descriptor of the lock; waits for the process that has it."""
        try:
            lock = locked_file(self._lock_path, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            with suppress(FileNotFoundError):  # that process has just ended
                owner = self._lock_path.read_text() or "a process"
                notify(f"waiting for {owner}, which writes to {shown}; {option('store')} names another store")
            lock = locked_file(self._lock_path, fcntl.LOCK_EX)
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"process {os.getpid()}".encode(), 0)
        return lock

    def _make(self) -> None:
        """Create the folder, without what a killed process has left in it."""
        with suppress(FileExistsError):
            self._path.mkdir(mode=0o700)
        found = self._path.lstat()
        if found.st_uid != os.getuid() or not stat.S_ISDIR(found.st_mode):
            raise StoreError(f"{self._path} belongs to another user; set TMPDIR to another folder")
        for file in self._path.iterdir():
            file.unlink()

    def keep(self) -> Path:
        """Give the folder a name by which no process removes it; returns the place of the copy, which nobody uses."""
        self.whole.unlink(missing_ok=True)
        kept = self._path.rename(self._path.with_name(f"swsearch-unpublished-{secrets.token_hex(4)}"))
        return (kept / self.store.name).rename(kept / self._target.name)

    def close(self) -> None:
        """Remove the folder, and let the next process begin."""
        _OPEN.discard(self._target)
        remove_folder(self._path)
        self._unlock()

    def _unlock(self) -> None:
        self._lock_path.unlink(missing_ok=True)
        os.close(self._lock)


def _own_folder(target: Path) -> Path:
    """A folder of this user on this machine for the copy of ``target``; the same for every process."""
    places = filter(None, (os.environ.get("TMPDIR"), "/tmp", "/var/tmp"))
    place = next((Path(place) for place in places if os.path.isdir(place) and not is_shared(Path(place, "file"))), None)
    if place is None:
        raise StoreError(f"{target}: no folder for temporary files is on a disk of this machine; set TMPDIR to one")
    digest = hashlib.sha256(os.fsencode(target)).hexdigest()[:24]
    return place / f"swsearch-{os.getuid()}-{digest}"


def _print(line: str) -> None:
    print(f"swsearch: {as_arguments(line)}", file=sys.stderr)


def _read(target: Path, local: Path, shown: str) -> str | None:
    """Copy the store to ``local``; returns its identity, which is None for a store that does not exist yet."""
    for end in ("-wal", "-journal"):
        beside = Path(f"{target}{end}")
        if beside.exists() and beside.stat().st_size:
            problem = f"{shown}{end} shows that a process writes to the store itself, or was killed"
            advice = f"wait for its end; if it has ended, `swsearch runs list --store {shown}` puts the store in order"
            raise StoreError(f"{problem}; {advice}")
    try:
        shutil.copyfile(target, local)
    except FileNotFoundError:
        return None
    found = _identity(local)
    with closing(sqlite3.connect(local)) as copy, explained(str(target)):
        copy.execute("PRAGMA journal_mode = WAL")
    return found


def _identity(path: Path) -> str | None:
    """What distinguishes the content of a store's file from its other states; None if there is no file.

    The file is opened, since a network file system compares with its server only then.
    """
    try:
        with path.open("rb") as file:
            return f"{os.fstat(file.fileno()).st_size} {hashlib.sha256(file.read(_HEADER_BYTES)).hexdigest()}"
    except FileNotFoundError:
        return None


def _copy_of(local: Path, copy: Path) -> None:
    """Write a store's committed state to a single file, in which no process of this machine works on a run.

    Another machine cannot see whether these processes live, and they publish their runs again.
    """
    copy.unlink(missing_ok=True)
    with closing(sqlite3.connect(local)) as source, closing(sqlite3.connect(copy, isolation_level=None)) as target:
        source.backup(target)
        target.execute("PRAGMA journal_mode = DELETE")
        target.execute("PRAGMA synchronous = OFF")  # the file is synchronized where it is published
        of_this_machine = "state = ? AND host = ?"
        values = (INTERRUPTED, RUNNING, HostProcess.this().host)
        target.execute(f"UPDATE runs SET state = ? WHERE {of_this_machine}", values)
        target.execute(f"PRAGMA user_version = {secrets.randbelow(2**31 - 1) + 1}")


def _replace(target: Path, whole: Path) -> None:
    """Replace ``target`` by a copy of ``whole``, in one step and durably."""
    unfinished = target.with_name(f".{target.name[:100]}.{os.getpid()}-{secrets.token_hex(4)}.unfinished")
    try:
        with whole.open("rb") as source, unfinished.open("xb") as file:
            with suppress(OSError):
                os.fchmod(file.fileno(), target.stat().st_mode & 0o777)
            shutil.copyfileobj(source, file, 1 << 20)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(target)
        sync_folder(target.parent)
    except BaseException:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise


@contextmanager
def _naming(shown: str) -> Iterator[None]:
    """Convert errors of the operating system, and of SQLite, to one line that names the store."""
    try:
        yield
    except OSError as error:
        problem = f"{shown} cannot be copied or published: {error.strerror or error} ({error.filename or 'copy'})"
        raise StoreError(problem) from error
    except sqlite3.Error as error:
        raise StoreError(f"{shown}: {error}") from error
