"""Folders: those of the program, caches and user's data, which ones several machines share, and locks of files in them.

:func:`resource_folder` finds ``migrations`` and ``cuda`` of a checkout or an installed package.

:func:`is_shared` tells whether a file is on a network file system, where SQLite must not write in WAL mode. WAL mode
keeps an index of the log in memory that all users of the file map. Machines that share a file do not share this memory,
and the locks of network file systems may be missing (Lustre without ``flock``, NFS with ``nolock``). The mounts of this
process are read from ``/proc/self/mountinfo``.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
from functools import cache
from pathlib import Path
from typing import Final

from swsearch.errors import StoreError, SwSearchError
from swsearch.words import option

_PACKAGE = Path(__file__).resolve().parent
_STORE_FILE: Final = "hits.sqlite"
_STORE_ADVICE: Final = f"name another store with {option('store')} or SWSEARCH_STORE, or none"


@cache
def resource_folder(name: str) -> Path:
    """The folder ``name`` of the checkout, or else the copy ``_name`` that the build adds to the package.

    The checkout has precedence, so that an editable install uses the edited files.

    Parameters
    ----------
    name : str
        ``migrations`` or ``cuda``.

    Raises
    ------
    SwSearchError
        The folder is in neither location, so the installation is damaged.
    """
    checkout = _PACKAGE.parent
    if (checkout / "pyproject.toml").is_file() and (checkout / name).is_dir():
        return checkout / name
    # An editable install has the copies beside the compiled module, whose folder is also on the package's path.
    import swsearch

    for folder in swsearch.__path__:
        if (Path(folder) / f"_{name}").is_dir():
            return Path(folder) / f"_{name}"
    raise SwSearchError(f"{_PACKAGE} lacks its folder _{name}; install swsearch again")


def user_cache(name: str) -> Path:
    """The folder ``swsearch/name`` under ``$XDG_CACHE_HOME`` or ``~/.cache``; it need not exist.

    For a user without a home folder, as in some containers, the returned folder cannot be created, and nothing is
    cached.
    """
    return (user_folder("XDG_CACHE_HOME", ".cache") or Path(os.devnull)) / "swsearch" / name


def write_complete(path: Path, content: bytes) -> None:
    """Write a file of a cache under another name and rename it, so that no process ever reads a part of it."""
    import tempfile  # only here: most commands write no cache

    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def remove_folder(path: Path) -> None:
    """Remove a folder and its content as far as possible; an interrupt is raised again when that is done.

    A signal raises an exception wherever the program is, also in a cleanup, which would leave a part of the folder.
    """
    try:
        shutil.rmtree(path, ignore_errors=True)
    except BaseException:
        remove_folder(path)
        raise


def sync_folder(path: Path) -> None:
    """Wait until the entries of a folder are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def user_data(name: str) -> Path | None:
    """The file ``swsearch/name`` under ``$XDG_DATA_HOME`` or ``~/.local/share``; it need not exist.

    None for a user without a home folder.
    """
    folder = user_folder("XDG_DATA_HOME", ".local/share")
    return None if folder is None else folder / "swsearch" / name


def user_store() -> Path:
    """The store in which commands keep runs if none is named; it need not exist.

    It is ``swsearch/hits.sqlite`` under ``$XDG_DATA_HOME`` or ``~/.local/share``.

    Raises
    ------
    StoreError
        The user has no home folder.
    """
    path = user_data(_STORE_FILE)
    if path is None:
        raise StoreError(f"this user has no home folder in which runs could be kept; {_STORE_ADVICE}")
    return path


def is_user_store(name: str) -> bool:
    """Whether a store of this name is the user's store."""
    return name == str(user_data(_STORE_FILE))


def make_user_folder() -> Path:
    """Create the folder of the user's store, which nobody else can read, unless it exists; return the store's path.

    The permissions are those of the XDG Base Directory Specification, also for the folders above it.

    Raises
    ------
    StoreError
        The folder cannot be created, or the user has no home folder.
    """
    path = user_store()
    try:
        missing = [folder for folder in (path.parent, *path.parent.parents) if not folder.exists()]
        for folder in reversed(missing):
            folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise StoreError(f"the folder {path.parent} cannot be created: {error.strerror}; {_STORE_ADVICE}") from error
    return path


def user_folder(variable: str, usual: str) -> Path | None:
    """The folder that ``variable`` names, or ``usual`` in the home folder; None if the user has no home folder.

    A relative path in the variable is ignored, as the XDG Base Directory Specification requires.
    """
    given = Path(os.environ.get(variable, ""))
    if given.is_absolute():
        return given
    try:
        return Path.home() / usual
    except RuntimeError:
        return None


SHARED: Final = frozenset(
    {
        "9p", "afs", "beegfs", "ceph", "cifs", "coda", "glusterfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs4",
        "ocfs2", "orangefs", "panfs", "pvfs2", "smb3", "smbfs", "wekafs",
        "fuse.beegfs", "fuse.ceph", "fuse.ceph-fuse", "fuse.cephfs", "fuse.cvmfs", "fuse.davfs", "fuse.dfuse",
        "fuse.gcsfuse", "fuse.glusterfs", "fuse.goofys", "fuse.hdfs", "fuse.juicefs", "fuse.mfs", "fuse.mount-s3",
        "fuse.mountpoint-s3", "fuse.rclone", "fuse.s3fs", "fuse.seaweedfs", "fuse.sshfs",
    }
)  # fmt: skip
"""Types of file systems, as the kernel names them."""
_ESCAPED: Final = re.compile(r"\\([0-7]{3})")
_MOUNTS: Final = Path("/proc/self/mountinfo")


def is_shared(path: Path) -> bool:
    """Whether the folder of a file, which need not exist, is on a file system of :data:`SHARED`; False if unknown."""
    try:
        mounts = _MOUNTS.read_text("utf-8", "surrogateescape")
    except OSError:  # not Linux
        return False
    return file_system(os.path.realpath(path.parent), mounts) in SHARED


def file_system(path: str, mounts: str) -> str | None:
    r"""The type of the file system on which ``path`` is; None if no mount has it.

    Parameters
    ----------
    path : str
        An absolute path without links.
    mounts : str
        The text of ``/proc/self/mountinfo``. If several mounts have the same place, the last one hides the others.

    >>> mounts = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n40 22 0:35 / /home rw shared:1 - nfs4 server:/home rw\n"
    >>> file_system("/home/me", mounts), file_system("/homeless", mounts)
    ('nfs4', 'ext4')
    """
    found: str | None = None
    longest = -1
    for line in mounts.splitlines():
        place, _, source = line.partition(" - ")
        fields, types = place.split(" "), source.split(" ")
        if len(fields) < 5 or not types[0]:
            continue
        folder = _ESCAPED.sub(lambda code: chr(int(code[1], 8)), fields[4]).rstrip("/")
        if (path == folder or path.startswith(f"{folder}/")) and len(folder) >= longest:
            found, longest = types[0], len(folder)
    return found


def locked_file(path: Path, operation: int, mode: int = 0o600, flags: int = os.O_RDWR | os.O_CREAT) -> int:
    """The descriptor of a file with a lock (``flock``), which ends when the descriptor is closed or its process ends.

    The holder of an exclusive lock may remove the file; those who wait for it then lock a new one.

    Parameters
    ----------
    path : Path
        The file, which is created if it is missing. A link is not followed, because others may have made it.
    operation : int
        ``LOCK_SH`` or ``LOCK_EX``, with ``LOCK_NB`` if another process is not waited for.
    mode : int
        Permissions of a new file.
    flags : int
        Those with which it is opened: ``O_DIRECTORY`` for a folder, which must be there.

    Raises
    ------
    BlockingIOError
        Another process has the lock, and is not waited for.
    OSError
        The file cannot be opened.
    """
    while True:
        lock = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, mode)
        try:
            fcntl.flock(lock, operation)
            if _lies_at(lock, path):
                return lock
        except BaseException:
            os.close(lock)
            raise
        os.close(lock)


def _lies_at(descriptor: int, path: Path) -> bool:
    """Whether an open file is still the one at ``path``."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False
