"""The databases of a service by name, and the generation that each has now.

A database is offered under the last part of its path. A change of it (`swsearch db add`) is noticed by the next
request, because each look compares the catalogue file with the one that was read.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from swsearch.database.format import CATALOGUE
from swsearch.database.reader import load_catalogue
from swsearch.errors import DatabaseError, InputError, Refused
from swsearch.store.search_records import SearchedDatabase

_Stamp = tuple[int, int, int]


@dataclass(frozen=True)
class OfferedDatabase:
    """One generation of a database as a service offers it.

    Attributes
    ----------
    searched : SearchedDatabase
        Name, digest and generation.
    alphabet : str
        ``protein`` or ``dna``.
    n_subjects, n_residues : int
    """

    searched: SearchedDatabase
    alphabet: str
    n_subjects: int
    n_residues: int

    @property
    def name(self) -> str:
        """The name under which it is offered."""
        return self.searched.name


def named_databases(paths: Sequence[str]) -> dict[str, Path]:
    """Databases by the names under which they are offered.

    Raises
    ------
    DatabaseError
        A path is no database.
    InputError
        Two databases have the same name.
    """
    named: dict[str, Path] = {}
    for given in paths:
        path = Path(given).absolute()
        name = path.name
        if name in named:
            raise InputError(f"{named[name]} and {path} would both be offered as {name}; rename one, or link to it")
        load_catalogue(path)
        named[name] = path
    return named


class Databases:
    """The databases of a service; threads may share it.

    Parameters
    ----------
    paths : mapping of str to Path
        Databases by name.
    """

    def __init__(self, paths: Mapping[str, Path]) -> None:
        self.paths = dict(paths)
        self._known: dict[str, tuple[_Stamp, OfferedDatabase]] = {}
        self._lock = threading.Lock()

    def current(self, name: str) -> OfferedDatabase:
        """The generation that a database has now.

        Raises
        ------
        Refused
            There is no such database.
        DatabaseError
            It cannot be read at the moment.
        """
        if name not in self.paths:
            raise Refused("unknown_database", f"there is no database {name!r}; choose {', '.join(self.paths)}")
        path = self.paths[name]
        with self._lock:
            try:
                found = os.stat(path / CATALOGUE)
            except OSError as error:
                raise DatabaseError(f"the database {name} cannot be read at the moment") from error
            stamp = (found.st_mtime_ns, found.st_ino, found.st_size)
            known = self._known.get(name)
            if known is None or known[0] != stamp:
                catalogue = load_catalogue(path)
                searched = SearchedDatabase(name, catalogue.digest, catalogue.generation)
                offered = OfferedDatabase(searched, catalogue.alphabet, catalogue.n_subjects, catalogue.n_residues)
                self._known[name] = known = (stamp, offered)
            return known[1]

    def all(self) -> list[OfferedDatabase]:
        """All databases that can be read, in the order in which they were given."""
        found = []
        for name in self.paths:
            try:
                found.append(self.current(name))
            except DatabaseError:
                continue
        return found

    def without_paths(self, message: str) -> str:
        """A message with the names of the databases in place of their paths."""
        for name, path in self.paths.items():
            for shown in {str(path), os.path.realpath(path)}:
                message = message.replace(shown, name)
        return message
