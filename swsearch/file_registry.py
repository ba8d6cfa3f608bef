"""The files that a command, or a call of a function of Python, reads and writes; no output may replace one of them.

:func:`registered` opens a :class:`FileRegistry` for a command or a call. Whatever opens a file for reading tells it to
the registry of its context (:func:`registry`), and whatever opens one for writing asks it first. An output must not be
a file that is read, a store or one of its side files, another SQLite database, a file or any path inside a packed
database, or the file of another output. It does not matter which of the two the registry learns first, so a command
tells the outputs that its options name before it opens anything (:mod:`swsearch.cli.command`), and is then refused as
soon as it opens one of them for reading.

Files are compared by device and inode, so that links and different spellings of a path are recognised, and by folder
and name, so that a file that does not exist yet, or is created meanwhile, is recognised too.
"""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from swsearch.errors import InputError

CATALOGUE: Final = "catalogue.json"
"""The file by which a folder is recognised as a packed database (:mod:`swsearch.database.format`)."""
FORMAT_NAME: Final = "swsearch packed database"
BUILDING: Final = ".building-"
"""Part of the name of a database under construction (:mod:`swsearch.database.staging`)."""

SCHEMES: Final = ("s3", "s3a", "gs", "az", "adl", "azure", "abfs", "abfss", "file", "http", "https")
"""Schemes of URLs that name packed databases."""

Identity = tuple[object, ...]
"""Device and inode of a file, or device and inode of its folder and its name."""

_SQLITE_MAGIC: Final = b"SQLite format 3\0"
_SIDE_FILES: Final = ("-wal", "-shm", "-journal")
"""Suffixes of the side files of an SQLite database."""
_READ_BYTES: Final = 1 << 16
_STDIN: Final = "/dev/stdin"
_STDOUT: Final = "/dev/stdout"


@dataclass(frozen=True)
class _Output:
    """An output: the option or argument that names it, the path that identifies it, and whether it is a store."""

    option: str
    path: str
    is_store: bool = False

    @property
    def shown(self) -> str:
        if self.path == _STDOUT:
            return "stdout"
        return f"{self.option} {self.path}" if self.option else self.path

    @property
    def identities(self) -> set[Identity]:
        return identities_of(self.path, existing=self.path == _STDOUT)


class FileRegistry:
    """The files that one command, or one call of a function, reads and writes. Threads may share it.

    Parameters
    ----------
    caller : str
        What the registry is of, for messages: ``command`` or ``call``.
    """

    def __init__(self, caller: str = "call") -> None:
        self._caller = caller
        self._read: dict[Identity, tuple[str, str]] = {}
        """The path of each file that is read, and how messages describe it."""
        self._folders: dict[str, str] = {}
        """Folders of which every file is read, packed databases above all, and how messages name them."""
        self._stores: dict[str, None] = {}
        self._outputs: dict[Identity, _Output] = {}
        self._new_databases: dict[str, _Output] = {}
        """The folders of new packed databases, without symbolic links."""
        self._sources: dict[str, None] = {}
        self._lock = threading.RLock()

    @property
    def sources(self) -> list[str]:
        """The files that were read so far and that a record of a search names: absolute paths, in their order."""
        with self._lock:
            return list(self._sources)

    # Reading

    def read(self, path: str | os.PathLike[str], description: str = "", *, is_source: bool = True) -> None:
        """Note a file that is opened for reading, ``-`` for standard input; a missing file and a folder are ignored.

        Parameters
        ----------
        path : path
        description : str
            What messages say of it; by default, that the same command reads it.
        is_source : bool
            Whether it belongs to :attr:`sources`; a file of a cache does not.

        Raises
        ------
        InputError
            The file is an output of the same command.
        """
        name = _STDIN if os.fspath(path) == "-" else os.fspath(path)
        identities = identities_of(name, existing=True)
        if not identities or os.path.isdir(name):
            return
        with self._lock:
            self._read |= dict.fromkeys(
                identities, (name, description or f"this file is read by the same {self._caller}")
            )
            if is_source and (file := _regular_file(name)) is not None:
                self._sources[file] = None
            if (output := self._output_at(identities)) is not None:
                raise self._is_read(output, identities)
            for folder, output in self._new_databases.items():
                if Path(os.path.realpath(name)).is_relative_to(folder):
                    raise InputError(f"{output.shown}: {path} lies in it and is read; move it out of the database")

    def read_named(self, path: str | os.PathLike[str]) -> None:
        """Note what an option names before it is opened: a file, or the folder of a packed database.

        Raises
        ------
        InputError
            As for :meth:`read` and :meth:`read_folder`.
        """
        if os.path.isfile(os.path.join(path, CATALOGUE)):
            self.read_folder(path)
        else:
            self.read(path)

    def read_folder(self, folder: str | os.PathLike[str], name: str = "") -> None:
        """Note a folder of which every file may be read: by default, a packed database.

        Raises
        ------
        InputError
            An output of the same command is a file of it.
        """
        path = os.path.abspath(folder)
        with self._lock:
            self._folders[path] = name or f"the database {os.fspath(folder)}"
            if not self._outputs:
                return
            if (output := self._output_at(_files_of(path))) is not None:
                raise InputError(f"{output.shown}: this belongs to {self._folders[path]}; choose another file")

    def read_sources(self, paths: Iterable[str]) -> None:
        """Note what a stored search has read: files, and folders of packed databases; URLs and pipes are ignored.

        Raises
        ------
        InputError
            An output of the same command is one of them.
        """
        for path in paths:
            if os.path.isdir(path):
                self.read_folder(path)
            else:
                self.read(path, "the search of this run has read this file", is_source=False)

    def keep_store(self, store: str) -> None:
        """Note a store that is opened, by its path or URL.

        Raises
        ------
        InputError
            An output of the same command is the store or one of its side files.
        """
        with self._lock:
            self._stores[store] = None
            output = self._output_at(store_identities(store))
            if output is not None and not output.is_store:
                raise InputError(f"{output.shown}: {_is_store(store)}")

    # Writing

    def write(self, option: str, path: str | os.PathLike[str]) -> None:
        """Note an output, or refuse it.

        Parameters
        ----------
        option : str
            The option or argument that names the output; empty for one that another output may share.
        path : path
            ``-`` is standard output.

        Raises
        ------
        InputError
            The output is read by the same command or belongs to what it reads, is inside a packed database, or is an
            existing SQLite database; or another output is the same file.
        """
        self._write(_Output(option, _STDOUT if os.fspath(path) == "-" else os.fspath(path)))

    def write_store(self, option: str, store: str) -> None:
        """Note a store that may be created, by its path or URL, or refuse it as :meth:`write` does."""
        if (file := store_file(store)) is not None:
            self._write(_Output(option, str(file), is_store=True))
            self.keep_store(store)

    def write_database(self, option: str, folder: str | os.PathLike[str]) -> None:
        """Note the folder of a new packed database, or refuse it.

        Raises
        ------
        InputError
            The folder is a file that is read, contains one, or is inside another packed database.
        """
        output = _Output(option, os.fspath(folder))
        whole = os.path.realpath(folder)
        with self._lock:
            if whole in self._new_databases:
                return
            if self._is_among_read(output.identities):
                raise self._is_read(output, output.identities)
            if (database := packed_around(Path(whole).parent)) is not None:
                raise InputError(f"{output.shown}: this lies in the packed database {database}; choose another place")
            for name, _ in self._read.values():
                if Path(os.path.realpath(name)).is_relative_to(whole):
                    raise InputError(f"{output.shown}: {name} lies in it and is read; move it out of the database")
            self._new_databases[whole] = output
            self._note_output(output)

    def _write(self, output: _Output) -> None:
        identities = output.identities
        if not identities:
            return
        path = Path(os.path.realpath(output.path) if output.path == _STDOUT else output.path)
        with self._lock:
            if self._is_among_read(identities):
                raise self._is_read(output, identities)
            for store in () if output.is_store else self._stores:
                if identities & store_identities(store):
                    raise InputError(f"{output.shown}: {_is_store(store)}")
            if (database := packed_around(path)) is not None:
                problem = f"this lies in the packed database {database}; choose another place"
                raise InputError(f"{output.shown}: {problem}")
            for folder, name in self._folders.items():
                if identities & _files_of(folder):
                    raise InputError(f"{output.shown}: this belongs to {name}; choose another file")
            self._note_output(output)
        if not output.is_store and (found := _sqlite_at(path)) is not None:
            advice = "choose another file, or remove it first"
            raise InputError(f"{output.shown}: {found} is an SQLite database, such as a store of hits; {advice}")

    def _note_output(self, output: _Output) -> None:
        """Note an output unless another option names the same file; stores may be named twice."""
        other = self._output_at(output.identities)
        is_same = other is None or other.option in ("", output.option) or (other.is_store and output.is_store)
        if other is not None and not is_same:
            advice = "choose another for one of them"
            raise InputError(f"{output.shown}: {other.option} writes the same file; {advice}")
        self._outputs |= dict.fromkeys(output.identities, other if other is not None and other.option else output)

    def _output_at(self, identities: set[Identity]) -> _Output | None:
        """The output with one of these identities, if it still has it; a replaced file leaves its inode to others."""
        found = (self._outputs[identity] for identity in identities & self._outputs.keys())
        return next((output for output in found if identities & output.identities), None)

    def _is_among_read(self, identities: set[Identity]) -> bool:
        found = (self._read[identity][0] for identity in identities & self._read.keys())
        return any(identities & identities_of(path) for path in found)

    def _is_read(self, output: _Output, identities: set[Identity]) -> InputError:
        description = next(self._read[identity][1] for identity in identities & self._read.keys())
        return InputError(f"{output.shown}: {description}; choose another file")


_REGISTRY: Final[ContextVar[FileRegistry | None]] = ContextVar("swsearch_file_registry", default=None)


def registry() -> FileRegistry:
    """The registry of the command or call in progress; outside of them, a new one that nothing else knows.

    An output is therefore always refused if it is a store or a part of a packed database.
    """
    return _REGISTRY.get() or FileRegistry()


@contextmanager
def registered(caller: str = "call") -> Iterator[FileRegistry]:
    """The registry of a command or call during a ``with`` statement: that of the caller, if there is one, or a new one.

    Parameters
    ----------
    caller : str
        As for :class:`FileRegistry`.
    """
    found = _REGISTRY.get()
    if found is not None:
        yield found
        return
    token = _REGISTRY.set(FileRegistry(caller))
    try:
        yield registry()
    finally:
        _REGISTRY.reset(token)


@contextmanager
def unregistered() -> Iterator[None]:
    """No registry during a ``with`` statement, for a process that serves others and has no outputs of its own."""
    token = _REGISTRY.set(None)
    try:
        yield
    finally:
        _REGISTRY.reset(token)


def identities_of(path: str | os.PathLike[str], *, existing: bool = False) -> set[Identity]:
    """The identities of a file; paths to the same file have one in common.

    There is none for a device, which may be named twice, nor where no file can be created; and with ``existing``, none
    for a file that does not exist.
    """
    identities: set[Identity] = set()
    try:
        found = os.stat(path)
        if stat.S_ISCHR(found.st_mode) or stat.S_ISSOCK(found.st_mode):
            return identities
        identities.add((found.st_dev, found.st_ino))
    except (OSError, ValueError):
        if existing:
            return identities
    with suppress(OSError, ValueError):  # the attempt to create the file reports the error
        whole = os.path.realpath(path)
        folder = os.stat(os.path.dirname(whole))
        identities.add((folder.st_dev, folder.st_ino, os.path.basename(whole)))
    return identities


def is_url(name: str) -> bool:
    """Whether the name of a database is a URL of an object store.

    >>> is_url("s3://bucket/proteins.db"), is_url("proteins.db")
    (True, False)
    """
    return name.partition("://")[0] in SCHEMES and "://" in name


def is_building(path: Path) -> bool:
    """Whether a folder's name is that of a database under construction, whether its build is running or abandoned."""
    return path.name.startswith(".") and BUILDING in path.name


def is_sqlite(path: Path) -> bool:
    """Whether a path is a regular file that begins with the first bytes of SQLite files.

    One that is in use has side files and is not opened, because closing it would release all locks of this process on
    it (POSIX), those of its open connections included.
    """
    try:
        if not path.is_file():
            return False
        if Path(f"{path}-shm").exists():
            return True
        with path.open("rb") as file:
            return file.read(len(_SQLITE_MAGIC)) == _SQLITE_MAGIC
    except (OSError, ValueError):
        return False


def packed_around(path: Path) -> Path | None:
    """The packed database that ``path`` is or is inside; None if there is none."""
    whole = Path(os.path.realpath(path))
    for folder in (whole, *whole.parents):
        if is_building(folder):
            return folder
        try:
            with (folder / CATALOGUE).open("rb") as file:
                if FORMAT_NAME.encode() in file.read(_READ_BYTES):
                    return folder
        except (OSError, ValueError):
            continue
    return None


def is_store_url(store: str) -> bool:
    """Whether a store is specified by a URL; all other stores are files."""
    return "://" in store


def store_file(store: str) -> Path | None:
    """The file of a store that is specified by a path or by a URL of SQLite; None for any other store."""
    if store == "none":
        return None
    if not is_store_url(store):
        return Path(store)
    scheme, _, rest = store.partition("://")
    if not scheme.startswith("sqlite"):
        return None
    name = rest.partition("?")[0].removeprefix("/")
    if not name:
        return None  # in memory
    return Path(unquote(name.removeprefix("file:").replace("///", "/", 1)) if name.startswith("file:") else name)


def store_identities(store: str) -> set[Identity]:
    """The identities of the store's file and of its side files, whether they exist or not."""
    file = store_file(store)
    if file is None:
        return set()
    names = {f"{name}{end}" for name in (str(file), os.path.realpath(file)) for end in ("", *_SIDE_FILES)}
    return {identity for name in names for identity in identities_of(name)}


def _is_store(store: str) -> str:
    return f"this is the store {store}, or a file of it; choose another file"


def _sqlite_at(path: Path) -> Path | None:
    """The SQLite database that ``path`` is or is a side file of; None if there is none.

    Results are never SQLite databases, so an existing one must not be overwritten. It is recognised by the first bytes
    of the file, because the table that identifies a store may still be only in the write-ahead log.
    """
    for name in (str(path), os.path.realpath(path)):
        for end in ("", *_SIDE_FILES):
            if name.endswith(end) and is_sqlite(Path(name[: len(name) - len(end)])):
                return Path(name[: len(name) - len(end)])
    return None


def _files_of(folder: str) -> set[Identity]:
    """The identities of a folder and of all its files, which may have hard links outside."""
    paths = [folder, *(os.path.join(parent, name) for parent, _, names in os.walk(folder) for name in names)]
    return {identity for path in paths for identity in identities_of(path, existing=True)}


def _regular_file(path: str) -> str | None:
    """The absolute path of a regular file; None for a pipe, a device, or a file that has no name."""
    name = os.path.realpath(path) if path.startswith(("/dev/", "/proc/")) else os.path.abspath(path)
    return name if os.path.isfile(name) else None
