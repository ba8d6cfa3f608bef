"""Stores on file systems that several machines share: written on this machine, and published there as whole files.

SQLite in WAL mode must not write to a network file system (:mod:`swsearch.folders`). A
:class:`StagedSession` therefore works on a copy in a folder of this machine, and publishes its state: when the first
change is committed, within :data:`PUBLISH_SECONDS` after every other change, and when it is closed. To *publish* is to
write a consistent copy to a temporary file beside the target, synchronize it, and rename it, so that the target is
always a complete store.

**What survives a kill.** On the same machine, everything that was committed: the folder remains, and the next process
that opens the store continues in it. On another machine, everything that was published: the target has the runs of the
process as ``interrupted``, so that ``--resume latest`` continues them there. What was committed after that is searched
again, with the same results.

**One machine.** The processes of one user on one machine share the copy (:mod:`swsearch.store.copy_folder`), as they
would share a file on a local disk. Processes of other machines are detected when a state is published: every published
file has a random number (SQLite's ``user_version``), and the target must still be the file that this machine has read
or published last. Otherwise nothing is replaced, and the error names the file with this machine's results.

:func:`open_store` decides whether a store is staged.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import sqlite3
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final

from sqlalchemy import Connection
from sqlalchemy.engine import URL

from swsearch.errors import InputError, StoreError
from swsearch.folders import check_staging, is_shared
from swsearch.store.connections import BUSY_SECONDS, display_name, store_url, translated
from swsearch.store.copy_folder import CopyFolder
from swsearch.store.models import INTERRUPTED, RUNNING
from swsearch.store.process import HostProcess
from swsearch.store.schema import check_file, upgrade
from swsearch.store.session import Session, register_store
from swsearch.store.store import Store

PUBLISH_SECONDS: Final = 30.0
"""Shortest time between two publications, and longest time until a change is published, in seconds."""
MAX_SHARE_OF_TIME: Final = 0.05
"""Largest part of the time that publications take; a store of many gigabytes is published less often."""

_HEADER_BYTES: Final = 100
"""Size of the header of an SQLite file, which has the number of its last change and ``user_version``."""
_BASES: Final = "bases"
"""File in the folder of the copy: the identities of the target from which the copy continues."""
_NEW: Final = "no file"
"""The identity of a target that does not exist."""


def open_store(target: str | os.PathLike[str], *, create: bool = False, stage: str = "auto") -> Store:
    """Open a store to write to it; close it, or use it as a context manager.

    Parameters
    ----------
    target : str or path
        A file, or a URL (:mod:`swsearch.store.connections`).
    create : bool
        Create the store if there is none; otherwise a missing store is an error.
    stage : str
        ``auto`` to stage a file that is on a network file system, ``always`` to stage every file, ``never`` to write
        to the file itself.

    Raises
    ------
    InputError
        ``stage`` has another value, or is ``always`` for a store that is not a file.
    StoreError
        The store cannot be opened.
    """
    if _is_staged(target, stage):
        return StagedStore(target, create=create)
    return Store(target, create=create)


def upgrade_store(target: str | os.PathLike[str], *, stage: str = "auto") -> None:
    """Bring a store up to date (:func:`swsearch.store.schema.upgrade`), staged as :func:`open_store` would stage it.

    Raises
    ------
    InputError, StoreError
        As these functions raise them.
    """
    if _is_staged(target, stage):
        StagedStore(target, is_upgrade=True).close()
    else:
        upgrade(target)


def is_on_network(target: str | os.PathLike[str]) -> bool:
    """Whether a store is a file on a network file system.

    Raises
    ------
    StoreError
        It is neither a file nor a URL of a store.
    """
    url = store_url(target)
    return _is_file(url) and is_shared(Path(os.path.realpath(str(url.database))))


def _is_staged(target: str | os.PathLike[str], stage: str) -> bool:
    check_staging(stage)
    url = store_url(target)
    if stage == "always" and not _is_file(url):
        raise InputError(f"--stage-store always: {display_name(url)} is no file; leave the option out")
    return stage == "always" or (stage == "auto" and is_on_network(target))


def _is_file(url: URL) -> bool:
    return url.drivername == "sqlite" and "uri" not in url.query and url.database not in (None, "", ":memory:")


class StagedSession(Session):
    """The session of a store that is written on this machine and published to its file; see the module's description.

    Parameters
    ----------
    target : str or path
        A file, or a URL of SQLite. Links are followed.
    create : bool
        Create the store if there is none; otherwise a missing store is an error.
    busy_seconds : float
        As for :class:`Store`.
    publish_seconds : float
        Shortest time between two publications, in seconds.
    is_upgrade : bool
        Whether to bring a store of an older version up to date; otherwise it is refused.

    Raises
    ------
    StoreError
        The store cannot be opened or read, or SQLite's side files show that a process writes to the file itself.
    """

    def __init__(
        self,
        target: str | os.PathLike[str],
        *,
        create: bool = False,
        busy_seconds: float = BUSY_SECONDS,
        publish_seconds: float = PUBLISH_SECONDS,
        is_upgrade: bool = False,
    ) -> None:
        url = store_url(target)
        register_store(target, create=create)
        check_file(url, create=create)
        shown = display_name(url)
        self._target = Path(os.path.realpath(str(url.database)))
        self._folder = CopyFolder(self._target, shown, busy_seconds)
        self._local = self._folder.path / "store.sqlite"
        self._is_open = True
        self._is_replaced = False
        self._publish_seconds = publish_seconds
        self._next_publication = 0.0
        self._publishing = threading.RLock()
        self._timer: threading.Timer | None = None
        self._failure: StoreError | None = None
        is_left = True
        try:
            if self._folder.is_alone:
                with _naming(shown):
                    is_left = self._take_over(shown)
            try:
                if is_upgrade:
                    before, after = upgrade(self._local)
                    is_left |= before != after
                super().__init__(self._local, create=True, busy_seconds=busy_seconds)
            except StoreError as error:  # its message names the copy
                raise StoreError(error.marked.replace(str(self._local), shown)) from error
        except BaseException:
            if not is_left:
                self._folder.remove()
            self._folder.close()
            raise
        self.name = shown
        # What a killed process has committed is published, even if nothing follows.
        self._has_changed = self._folder.is_alone and is_left
        self._watch = sqlite3.connect(self._local, isolation_level=None, check_same_thread=False)
        self._published_version = None if is_left else self._version()  # None if that is not known
        self._folder.join()

    def close(self) -> None:
        """Publish the last changes; the last process that uses the copy removes it. Further calls have no effect.

        Raises
        ------
        StoreError
            The target cannot be written, or another process has replaced it; the copy then remains, and the next
            process of this machine that opens the store continues in it, or the message names it.
        """
        with self._publishing:  # the timer's thread finishes its publication, or finds the store closed
            if not self._is_open:
                return
            self._is_open = False
            self._stop_timer()
        try:
            with self._folder.leaving() as is_last:
                # A process that was killed may have left changes that only the last one can publish.
                if self._has_changed or (is_last and self._version() != self._published_version):
                    self._publish()
                self._watch.close()
                super().close()
        finally:
            self._watch.close()
            super().close()

    def publish(self) -> None:
        """Publish the current state.

        Raises
        ------
        StoreError
            The target cannot be written, or another process has replaced it.
        """
        with self._publishing, self._folder.turn():
            self._publish()

    def _publish(self) -> None:
        """Publish the current state in the turn of this process."""
        if self._is_replaced:
            return  # the error was raised, and the results up to then are kept
        began = time.monotonic()
        whole = self._folder.path / "published.sqlite"
        self._has_changed = False  # before the copy, since others may commit meanwhile
        try:
            with _naming(self.name):
                version = self._version()
                _copy_of(self._local, whole)
                if _identity(self._target) not in self._bases():
                    raise self._replaced(whole)
                new = _identity(whole)
                self._note_bases(*self._bases(), new)  # a kill before the next line leaves both possible
                _replace(self._target, whole)
                self._note_bases(new)
                whole.unlink()
        except BaseException:
            self._has_changed = True
            raise
        self._published_version = version
        took = time.monotonic() - began
        self._next_publication = time.monotonic() + max(self._publish_seconds, took / MAX_SHARE_OF_TIME)

    def _version(self) -> int:
        """A number that changes when another connection, of this process or another one, commits to the copy."""
        return int(self._watch.execute("PRAGMA data_version").fetchone()[0])

    def compact(self) -> None:
        """Reduce the copy, and publish it at the latest when the store is closed; errors are those of ``Store``."""
        super().compact()
        self._has_changed = True

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """As for ``Session``; the change is then published in time."""
        if self._failure is not None and not self.is_within_whole:
            failure, self._failure = self._failure, None
            raise failure
        with super().writing() as connection:
            yield connection
        if not self.is_within_whole:
            self._has_changed = True
            self._publish_in_time()

    def _publish_in_time(self) -> None:
        """Publish now if the interval is over, or else when it is over, however long the next query takes."""
        if not self._publishing.acquire(blocking=False):
            return  # the timer's thread publishes, and then looks for later changes
        try:
            wait = self._next_publication - time.monotonic()
            if wait <= 0:
                self._stop_timer()
                self.publish()
            elif self._timer is None and wait < threading.TIMEOUT_MAX:
                self._timer = threading.Timer(wait, self._publish_in_background)
                self._timer.daemon = True
                self._timer.start()
        finally:
            self._publishing.release()

    def _publish_in_background(self) -> None:
        """Publish from the timer's thread; an error is raised by the next change."""
        try:
            with self._publishing:
                self._timer = None
                if self._has_changed and self._is_open:
                    self.publish()
            if self._has_changed and self._is_open and not self._is_replaced:
                self._publish_in_time()
        except StoreError as error:
            self._failure = error

    def _stop_timer(self) -> None:
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()

    # --- the copy and the file from which it was made ---

    def _take_over(self, shown: str) -> bool:
        """Bring the copy to the state of the target, or keep a copy with later changes that a kill has left.

        Returns whether there is such a copy.
        """
        for end in ("-wal", "-journal"):
            beside = Path(f"{self._target}{end}")
            if beside.exists() and beside.stat().st_size:
                problem = f"{shown}{end} shows that a process writes to the store itself, or was killed"
                advice = (
                    f"wait for its end; if it has ended, `swsearch runs list --store {shown}` puts the store in order"
                )
                raise StoreError(f"{problem}; {advice}")
        is_left = self._local.exists() and (self._folder.path / _BASES).exists()
        if is_left and _identity(self._target) in self._bases():
            return True
        for file in self._folder.files():
            file.unlink()
        base = _identity(self._target)
        try:
            if base != _NEW:
                shutil.copyfile(self._target, self._local)
                if base != _identity(self._target):
                    raise StoreError(f"{shown} was replaced while it was read; run the command again")
                with closing(sqlite3.connect(self._local)) as local, translated(store_url(self._target)):
                    local.execute("PRAGMA journal_mode = WAL")
        except BaseException:
            self._folder.remove()
            raise
        self._note_bases(base)
        return False

    def _bases(self) -> list[str]:
        """The identities of the target with which the copy may replace it."""
        return (self._folder.path / _BASES).read_text().splitlines()

    def _note_bases(self, *identities: str) -> None:
        unfinished = self._folder.path / f"{_BASES}.unfinished"
        unfinished.write_text("".join(f"{identity}\n" for identity in identities))
        unfinished.replace(self._folder.path / _BASES)

    def _replaced(self, whole: Path) -> StoreError:
        """The error if another process has replaced the target; the results are kept under another name."""
        kept = Path(tempfile.mkdtemp(prefix="swsearch-unpublished-", dir=self._folder.path.parent)) / self._target.name
        shutil.copyfile(whole, kept)
        self._is_replaced = True
        problem = f"{self.name} was deleted or replaced by another process, which this one must not overwrite"
        advice = "give each process a store of its own, such as --store hits-{shard}.sqlite"
        return StoreError(f"{problem}; what this process found is in {kept}; {advice}")


class StagedStore(Store):
    """A store on a :class:`StagedSession`, whose parameters and errors it has."""

    def __init__(
        self,
        target: str | os.PathLike[str],
        *,
        create: bool = False,
        busy_seconds: float = BUSY_SECONDS,
        publish_seconds: float = PUBLISH_SECONDS,
        is_upgrade: bool = False,
    ) -> None:
        session = StagedSession(
            target,
            create=create,
            busy_seconds=busy_seconds,
            publish_seconds=publish_seconds,
            is_upgrade=is_upgrade,
        )
        self.publish = session.publish
        self._use(session)


def _identity(path: Path) -> str:
    """What distinguishes the content of a store's file from its earlier states.

    The file is opened, since a network file system compares with its server only then.
    """
    try:
        with path.open("rb") as file:
            return f"{os.fstat(file.fileno()).st_size} {hashlib.sha256(file.read(_HEADER_BYTES)).hexdigest()}"
    except FileNotFoundError:
        return _NEW


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
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


@contextmanager
def _naming(shown: str) -> Iterator[None]:
    """Convert errors of the operating system, and of SQLite, to one line that names the store."""
    try:
        yield
    except OSError as error:
        problem = f"{shown} cannot be copied or published: {error.strerror or error} ({error.filename or 'copy'})"
        raise StoreError(f"{problem}; what was stored is kept, run the command again on this machine") from error
    except sqlite3.Error as error:
        raise StoreError(f"{shown}: {error}") from error
