"""Refusal of outputs that would overwrite inputs or stored data, before anything is opened or created.

An output must not be an input, a store or one of its side files, another SQLite database, a file or any path inside a
packed database, the log of the command (``--log``), or the file of another output. Files are compared by device and
inode, so that links and different spellings of a path are recognised; a file that does not exist yet is identified by
its folder and name.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from swsearch.command_log import log_path
from swsearch.database.format import CATALOGUE, FORMAT_NAME
from swsearch.database.staging import is_staging
from swsearch.errors import InputError

Identity = tuple[object, ...]
"""The identity of a file; it is equal for all paths to the same file."""

_SQLITE_MAGIC: Final = b"SQLite format 3\0"
_SIDE_FILES: Final = ("-wal", "-shm", "-journal")
"""Suffixes of the side files of an SQLite database."""
_READ_BYTES: Final = 1 << 16


def refuse_collisions(
    outputs: Mapping[str, str | os.PathLike[str] | None],
    *,
    inputs: Iterable[str | os.PathLike[str] | None] = (),
    databases: Iterable[str | os.PathLike[str]] = (),
    store: str | None = None,
    store_option: str = "--store",
    stores: Iterable[str] = (),
) -> None:
    """Refuse outputs that must not be written.

    Parameters
    ----------
    outputs : mapping of str to path
        The key is the option that specifies the output; ``-`` is standard output, None is no output.
    inputs : iterable of paths
        Files that the command reads; ``-`` is standard input. Files that do not exist are ignored here.
    databases : iterable of paths
        Packed databases that the command reads.
    store : str, optional
        The store that the command writes, which is also an output; ``none`` if there is none.
    store_option : str
        The option that specifies ``store``.
    stores : iterable of str
        Stores that the command reads.

    Raises
    ------
    InputError
        An output is one of these files or the log, is inside a packed database, or is an existing SQLite database.
    """
    named = [os.fspath(path) for path in inputs if path is not None]
    read = {
        identity: path
        for path in named
        if (identity := identity_of("/dev/stdin" if path == "-" else path, existing=True)) is not None
    }
    packed = {identity: os.fspath(folder) for folder in databases for identity in _files_of(folder)}
    kept: dict[Identity, str] = {}
    for name in stores:
        kept |= dict.fromkeys(_store_identities(name), name)
    log = log_path()
    log_identity = None if log is None else identity_of(log)
    written: dict[Identity, str] = {} if log_identity is None else {log_identity: "--log"}
    if store is not None and (file := _store_file(store)) is not None:
        _refuse_one(store_option, file, read, packed, {}, written, is_store=True)
        kept |= dict.fromkeys(_store_identities(store), store)
    for option, path in outputs.items():
        if path is None:
            continue
        if os.fspath(path) == "-":
            _refuse_one("stdout", Path("/dev/stdout"), read, packed, kept, written)
        else:
            _refuse_one(option, Path(path), read, packed, kept, written)


def refuse_same_store(option: str, store: str, read: str) -> None:
    """Refuse a store for a copy that is the one it is copied from.

    Raises
    ------
    InputError
        Both are the same file, or the same URL.
    """
    if store == read or not {*_store_identities(store)}.isdisjoint(_store_identities(read)):
        raise InputError(f"{option} {store}: this is the store that is read; choose another for the copy")


def refuse_database(option: str, folder: Path, inputs: Iterable[str | os.PathLike[str]]) -> None:
    """Refuse a folder for a new packed database whose creation would replace an input, a store or part of a database.

    Raises
    ------
    InputError
        The folder is an input, is inside another database, or contains an input or a store.
    """
    read = {identity for path in inputs if (identity := identity_of(path, existing=True)) is not None}
    if identity_of(folder, existing=True) in read:
        raise InputError(f"{option} {folder}: this file is read by the same command; choose another name")
    if (database := _packed_around(Path(os.path.realpath(folder)).parent)) is not None:
        raise InputError(f"{option} {folder}: this lies in the packed database {database}; choose another place")
    for parent, _, names in os.walk(folder):
        for path in (Path(parent, name) for name in names):
            if identity_of(path, existing=True) in read:
                raise InputError(f"{option} {folder}: {path} lies in it and is read; move it out of the database")
            if _is_sqlite(path):
                raise InputError(f"{option} {folder}: {path} lies in it and is a store; move it out of the database")


def _refuse_one(
    option: str,
    path: Path,
    read: Mapping[Identity, str],
    packed: Mapping[Identity, str],
    kept: Mapping[Identity, str],
    written: dict[Identity, str],
    *,
    is_store: bool = False,
) -> None:
    """Refuse one output if it must not be written; otherwise add it to ``written``."""
    is_stdout = option == "stdout"
    shown = option if is_stdout else f"{option} {path}"
    identity = identity_of(path, existing=is_stdout)
    if identity is None:
        return
    if identity in read:
        raise InputError(f"{shown}: this file is read by the same command; choose another file")
    if identity in kept:
        raise InputError(f"{shown}: this is the store {kept[identity]}, or a file of it; choose another file")
    if identity in packed:
        raise InputError(f"{shown}: this belongs to the database {packed[identity]}; choose another file")
    if identity in written:
        raise InputError(f"{shown}: {written[identity]} writes the same file; choose another for one of them")
    written[identity] = option
    if is_stdout:
        path = Path(os.path.realpath(path))
    if (database := _packed_around(path)) is not None:
        raise InputError(f"{shown}: this lies in the packed database {database}; choose another place")
    if not is_store and (found := _sqlite_at(path)) is not None:
        advice = "choose another file, or remove it first"
        raise InputError(f"{shown}: {found} is an SQLite database, such as a store of hits; {advice}")


def _sqlite_at(path: Path) -> Path | None:
    """The SQLite database that ``path`` is or is a side file of; None if there is none.

    Results are never SQLite databases, so an existing one must not be overwritten. It is recognised by the first bytes
    of the file, because the table that identifies a store may still be only in the write-ahead log.
    """
    for name in (str(path), os.path.realpath(path)):
        for end in ("", *_SIDE_FILES):
            if name.endswith(end) and _is_sqlite(Path(name[: len(name) - len(end)])):
                return Path(name[: len(name) - len(end)])
    return None


def identity_of(path: str | os.PathLike[str], *, existing: bool = False) -> Identity | None:
    """The identity of a file; None for a device, which may be specified twice.

    With ``existing``, the result is also None for a file that does not exist.
    """
    try:
        found = os.stat(path)
        if stat.S_ISCHR(found.st_mode) or stat.S_ISSOCK(found.st_mode):
            return None
        return found.st_dev, found.st_ino
    except (OSError, ValueError):
        if existing:
            return None
    try:
        whole = os.path.realpath(path)
        folder = os.stat(os.path.dirname(whole))
    except (OSError, ValueError):
        return None  # no file can be created there, and the attempt will report the error
    return folder.st_dev, folder.st_ino, os.path.basename(whole)


def _store_file(store: str) -> Path | None:
    """The file of a store that is specified by a path or by a URL of SQLite; None for any other store."""
    if store == "none":
        return None
    scheme, mark, rest = store.partition("://")
    if not mark:
        return Path(store)
    if not scheme.startswith("sqlite"):
        return None
    name = rest.partition("?")[0].removeprefix("/")
    return Path(unquote(name.removeprefix("file:").replace("///", "/", 1)) if name.startswith("file:") else name)


def _store_identities(store: str) -> Iterator[Identity]:
    """The identities of the store's file and of its side files, whether they exist or not."""
    file = _store_file(store)
    if file is None:
        return
    for name in {str(file), os.path.realpath(file)}:
        for end in ("", *_SIDE_FILES):
            if (identity := identity_of(f"{name}{end}")) is not None:
                yield identity


def _files_of(folder: str | os.PathLike[str]) -> Iterator[Identity]:
    """The identities of a packed database and of all its files, which may have hard links outside."""
    if (identity := identity_of(folder, existing=True)) is not None:
        yield identity
    for parent, _, names in os.walk(folder):
        for name in names:
            if (identity := identity_of(os.path.join(parent, name), existing=True)) is not None:
                yield identity


def _packed_around(path: Path) -> Path | None:
    """The packed database that ``path`` is or is inside; None if there is none."""
    whole = Path(os.path.realpath(path))
    for folder in (whole, *whole.parents):
        if is_staging(folder):
            return folder
        try:
            with (folder / CATALOGUE).open("rb") as file:
                if FORMAT_NAME.encode() in file.read(_READ_BYTES):
                    return folder
        except (OSError, ValueError):
            continue
    return None


def _is_sqlite(path: Path) -> bool:
    """Whether a path is a regular file that begins with the first bytes of SQLite files."""
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return file.read(len(_SQLITE_MAGIC)) == _SQLITE_MAGIC
    except (OSError, ValueError):
        return False
