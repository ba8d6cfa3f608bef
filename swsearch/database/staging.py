"""The folder of a database under construction, and the lock of the process that changes a database.

A new database is built in ``.NAME.building-HOST-PID-RANDOM`` in the target's parent folder, is published by one rename,
and is removed on failure. Its builder holds a lock (``flock``) on it as long as it runs. The system releases the lock
when the process ends, even by ``kill -9``, so that the next build of the same target can distinguish an abandoned
folder from that of a running build. :func:`staged_folder` is the context manager that the builder uses.

A database that exists has one writer at a time: :func:`writer_lock` is ``flock`` on ``writer.lock`` in its folder. The
operating system releases it when its holder ends, for any reason; the file remains. The file contains the process id
and host of the holder, which are used only in the error message for a second writer. Readers take no lock.
:mod:`swsearch.database.changes` also uses the functions that write the catalogue, and make SIGTERM an exception.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import re
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Final

from swsearch import __version__
from swsearch.database.catalogue import catalogue_text, read_catalogue, write_catalogue
from swsearch.database.format import CATALOGUE, GENERATION, TOMBSTONES_NAME, Catalogue, content_digest
from swsearch.errors import DatabaseError, InputError
from swsearch.file_registry import BUILDING, is_sqlite, registry
from swsearch.folders import locked_file, remove_folder, sync_folder
from swsearch.words import counted, option

LOCK: Final = "writer.lock"
_AT_FDCWD: Final = -100
_NO_REPLACE: Final = 1
_EXCHANGE: Final = 2
"""Arguments of ``renameat2``, the same on every Linux."""


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
    path = folder / LOCK
    try:
        lock = locked_file(path, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB), mode=0o666)
    except BlockingIOError:
        holder = path.read_text("utf-8", "replace") or "another process"
        raise DatabaseError(
            f"{folder} is being changed by {holder}; run the command again when that has ended"
        ) from None
    try:
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"process {os.getpid()} on {os.uname().nodename}".encode(), 0)
        yield
        os.ftruncate(lock, 0)
    finally:
        os.close(lock)


_FORCE = option("overwrite", True, flag="--force")


@contextmanager
def staged_folder(target: Path, *, overwrite: bool) -> Iterator[Path]:
    """An empty folder for a build; it becomes ``target`` when the ``with`` statement ends without an exception.

    During the ``with`` statement, SIGTERM raises ``SystemExit(143)`` if the program has no handler of its own and this
    is the main thread, so that the folder is removed in this case too.

    Parameters
    ----------
    target : path
    overwrite : bool
        Whether a database at ``target`` is replaced by the new one, in one step if the file system supports it. A
        symbolic link is followed.

    Raises
    ------
    DatabaseError
        ``target`` exists and may not be replaced, its parent cannot be written to, or the disk is full.
    InputError
        ``target`` has a file that does not belong to the database, or is read by the same command.
    """
    registry().write_database("", target)
    target = Path(os.path.realpath(target))
    _refuse_foreign_files(target)
    check_target(target, overwrite=overwrite)
    _remove_leftovers(target)
    folder: Path | None = None
    lock = -1
    with termination_as_exception():
        try:
            folder, lock = _make_folder(target)
            yield folder
            _refuse_foreign_files(target)
            publish(folder, target, overwrite=overwrite)
            sync_folder(target.parent)
        except OSError as error:
            raise disk_error(error, target) from error
        finally:
            if folder is not None:
                remove_folder(folder)
            if lock >= 0:
                os.close(lock)


def check_target(target: Path, *, overwrite: bool) -> None:
    """Raise DatabaseError for a target that exists and may not be replaced, or has no parent; it is no link."""
    if not target.parent.is_dir():
        raise DatabaseError(
            f"{target} cannot be written: there is no folder {target.parent}; make it, or choose another"
        )
    if not os.path.lexists(target):
        return
    if not overwrite:
        raise DatabaseError(f"{target} exists already; choose another name, remove it, or give {_FORCE} to replace it")
    try:
        read_catalogue(catalogue_text(target))
    except (OSError, ValueError) as error:
        raise DatabaseError(
            f"{target} exists and is not a packed database, so {_FORCE} does not replace it; choose another name"
        ) from error


def _refuse_foreign_files(target: Path) -> None:
    """Refuse to replace a database whose folder has files that do not belong to it, which would be deleted with it."""
    try:
        catalogue = read_catalogue(catalogue_text(target))
    except (OSError, ValueError):
        return  # no database, which is never replaced
    named = {CATALOGUE, f".{CATALOGUE}", LOCK, *catalogue.files}
    named |= {name.partition("/")[0] for name in catalogue.files}

    def is_own(path: Path) -> bool:
        name = str(path.relative_to(target))
        top, _, inner = name.partition("/")
        is_left_behind = GENERATION.fullmatch(top) is not None and top not in named
        return name in named or is_left_behind or TOMBSTONES_NAME.fullmatch(inner or top) is not None

    inside = [Path(parent, name) for parent, folders, files in os.walk(target) for name in (*folders, *files)]
    foreign = sorted(path for path in inside if path.is_symlink() or not is_own(path))
    if foreign:
        problem = "is a store" if is_sqlite(foreign[0]) else "is not a file of the database"
        others = f", and {counted(len(foreign) - 1, 'other')}" if len(foreign) > 1 else ""
        raise InputError(f"{target}: {foreign[0]} lies in it and {problem}{others}; move it out of the database")


def _make_folder(target: Path) -> tuple[Path, int]:
    """A new folder, and its lock; another build may remove it before it is locked."""
    while True:
        folder = target.with_name(f".{target.name}{BUILDING}{_host()}-{os.getpid()}-{os.urandom(4).hex()}")
        folder.mkdir()
        try:
            return folder, locked_file(folder, fcntl.LOCK_EX, flags=os.O_DIRECTORY)
        except FileNotFoundError:
            continue
        except BaseException:
            folder.rmdir()
            raise


def _remove_leftovers(target: Path) -> None:
    """Remove the folders of abandoned builds of the same target on this machine."""
    pattern = re.compile(re.escape(f".{target.name}{BUILDING}{_host()}-") + r"\d+-[0-9a-f]{8}")
    try:
        siblings = os.listdir(target.parent)
    except OSError:
        return  # the creation of the new folder reports the problem with the parent
    for folder in map(target.with_name, filter(pattern.fullmatch, siblings)):
        try:
            lock = locked_file(folder, fcntl.LOCK_EX | fcntl.LOCK_NB, flags=os.O_DIRECTORY)
        except OSError:
            continue  # its build is running, or has removed it
        remove_folder(folder)
        os.close(lock)


def _host() -> str:
    return re.sub(r"[^A-Za-z0-9]", "_", os.uname().nodename)


def publish(folder: Path, target: Path, *, overwrite: bool) -> None:
    """Rename the folder to the target; a replaced database is then at ``folder``, and is removed with it."""
    if overwrite and os.path.lexists(target):
        # Without the lock, a concurrent change of the old database could be completed in the new one.
        with writer_lock(target, wait=True):
            _exchange(folder, target)
        return
    try:
        if not _renamed(folder, target, _NO_REPLACE):
            check_target(target, overwrite=False)
            os.rename(folder, target)
    except FileExistsError as error:
        advice = "choose another name or remove it"
        raise DatabaseError(f"{target} came into being during the build; {advice}") from error


def _exchange(folder: Path, target: Path) -> None:
    if _renamed(folder, target, _EXCHANGE):
        return
    aside = folder.with_name(f"{folder.name}.old")
    os.rename(target, aside)
    try:
        os.rename(folder, target)
    except BaseException:
        os.rename(aside, target)
        raise
    os.rename(aside, folder)


def _renamed(one: Path, other: Path, flag: int) -> bool:
    """Rename by ``renameat2``; false if the C library, the system or the file system cannot do this."""
    library = ctypes.CDLL(None, use_errno=True)
    if not hasattr(library, "renameat2"):
        return False
    failed = library.renameat2(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), flag)
    failure = ctypes.get_errno() if failed else 0
    if failure not in (0, errno.EINVAL, errno.ENOSYS):
        raise OSError(failure, os.strerror(failure), str(other))
    return not failed


def disk_error(error: OSError, target: Path) -> DatabaseError:
    """The exception for an error of the operating system that left the database at ``target`` unchanged."""
    parent = target.parent
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return DatabaseError(
            f"no room left on the disk of {parent} ({error.strerror}); {target.name} is as it was before"
        )
    return DatabaseError(f"{target} cannot be written: {error.strerror or error} ({error.filename or parent})")


def write_generation(folder: Path, catalogue: Catalogue) -> Catalogue:
    """Publish the content of a catalogue as the next generation, and return the catalogue of that.

    It is written by one rename; all files that it names must be on the disk already.
    """
    digest = content_digest(catalogue.alphabet, catalogue.content)
    catalogue = replace(
        catalogue,
        digest=digest,
        generation=catalogue.generation + 1,
        program=f"swsearch {__version__}",
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        former_digests=tuple(former for former in catalogue.former_digests if former != digest),
    )
    sync_folder(folder)
    unfinished = folder / f".{CATALOGUE}"
    with open(unfinished, "w", encoding="utf-8") as file:
        file.write(write_catalogue(catalogue))
        file.flush()
        os.fsync(file.fileno())
    os.replace(unfinished, folder / CATALOGUE)
    sync_folder(folder)
    return catalogue


@contextmanager
def termination_as_exception() -> Iterator[None]:
    """Make SIGTERM raise ``SystemExit(143)`` in a ``with`` body, if it has no handler and this is the main thread."""

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + signal.SIGTERM)

    may_handle = threading.current_thread() is threading.main_thread()
    if not may_handle or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
