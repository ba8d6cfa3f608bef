"""The databases of a service by name, and the generation that each has now.

A database is offered under the last part of its path. A change of it (`swsearch db add`) is noticed by the next
request, because each look compares the catalogue file with the one that was read. Databases of a folder come and go
with the entries of the folder. So do the sets of subjects that came with searches
(:mod:`swsearch.service.subject_sets`), which can be searched by their names but are not offered.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from swsearch.database.format import CATALOGUE
from swsearch.database.reader import load_catalogue
from swsearch.errors import DatabaseError, InputError, Refused
from swsearch.service.logs import log_seldom
from swsearch.service.subject_sets import is_subject_set
from swsearch.store.search_records import SearchedDatabase

LOOK_SECONDS: Final = 1.0
"""Longest time after which a new database of the folder is listed; a search of it is accepted at once."""
_CLOCK_NANOSECONDS: Final = 2 * 10**9
"""Coarsest resolution of the times of a file system."""
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
    former_digests : tuple of str
        Digests of the same content before compactions.
    """

    searched: SearchedDatabase
    alphabet: str
    n_subjects: int
    n_residues: int
    former_digests: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name under which it is offered."""
        return self.searched.name

    def has_content(self, digest: str) -> bool:
        """Whether its content is that of the database that had this digest."""
        return digest in (self.searched.digest, *self.former_digests)


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


def database_folder(given: str) -> Path:
    """A folder whose databases are offered.

    Raises
    ------
    InputError
        It is no folder, or is itself a database.
    """
    folder = Path(given).absolute()
    if not folder.is_dir():
        raise InputError(f"--databases {given}: there is no such folder")
    if (folder / CATALOGUE).exists():
        raise InputError(f"--databases {given} is a database, not a folder of databases; give it without --databases")
    return folder


class Databases:
    """The databases of a service; threads may share it.

    Parameters
    ----------
    paths : mapping of str to Path
        Databases by name, which are always offered.
    folder : Path, optional
        A folder whose databases are offered too, as long as they are in it. One with a name that is taken already is
        not.
    sets : Path, optional
        The folder of the sets of subjects. It need not exist.

    Attributes
    ----------
    always : dict of str to Path
    folder, sets : Path or None
    paths : dict of str to Path
        The databases that can be searched now. A look at the folders replaces the dict.
    """

    def __init__(self, paths: Mapping[str, Path], folder: Path | None = None, sets: Path | None = None) -> None:
        self.always = dict(paths)
        self.folder = folder
        self.sets = sets
        self._looked = float("-inf")
        self._sets_changed: int | None = None
        """When the folder of the sets last changed, in nanoseconds; None if there is none."""
        self._inside: dict[str, Path] = {}
        self._known_sets: dict[str, Path] = {}
        self._seen = dict(paths)
        """All databases that were ever offered, for messages about them."""
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
        self._look(LOOK_SECONDS)
        try:
            return self._current(name)
        except (Refused, DatabaseError):
            if not self._look(0.0):  # it may have come, or gone, since the last look
                raise
        return self._current(name)

    def has(self, name: str) -> bool:
        """Whether there is such a database now."""
        self._look(LOOK_SECONDS)
        return name in self.paths

    def _current(self, name: str) -> OfferedDatabase:
        paths = self.paths
        if name not in paths:
            offered = [one for one in paths if not is_subject_set(one)]
            advice = f"choose {', '.join(offered)}" if offered else "this server has none at the moment"
            raise Refused("unknown_database", f"there is no database {name!r}; {advice}")
        path = paths[name]
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
                current = OfferedDatabase(
                    searched,
                    catalogue.alphabet,
                    catalogue.n_subjects,
                    catalogue.n_residues,
                    catalogue.former_digests,
                )
                self._known[name] = known = (stamp, current)
            return known[1]

    def offered(self) -> list[OfferedDatabase]:
        """The databases that everyone may see: those that were given, in that order, then the folder's by name."""
        return [one for one in self.all() if not is_subject_set(one.name)]

    def all(self) -> list[OfferedDatabase]:
        """All databases that can be read: those that are offered, then the sets of subjects by name."""
        self._look(LOOK_SECONDS)
        found = []
        for name in self.paths:
            try:
                found.append(self._current(name))
            except (DatabaseError, Refused):
                continue
        return found

    def _look(self, seconds: float) -> bool:
        """Look at the folders; returns whether anything may have changed.

        The folder of databases is looked at if that was not done within ``seconds``, and the sets if there are others.
        """
        if self.folder is None and self.sets is None:
            return False
        with self._lock:
            has_looked = self._look_at_folder(seconds)
            has_looked |= self._look_at_sets()
            if has_looked:
                inside = self._inside | self._known_sets
                for name in self._known.keys() - inside.keys() - self.always.keys():
                    del self._known[name]
                self._seen |= inside
                self.paths = self.always | inside
        return has_looked

    def _look_at_folder(self, seconds: float) -> bool:
        now = time.monotonic()
        if self.folder is None or now - self._looked < seconds:
            return False
        self._looked = now
        try:
            entries = sorted(entry.name for entry in os.scandir(self.folder))
        except OSError as error:
            log_seldom("folder of databases cannot be read", "error", message=str(error.strerror))
            return True
        self._inside = {
            name: self.folder / name
            for name in entries
            if _can_be_offered(name) and name not in self.always and (self.folder / name / CATALOGUE).is_file()
        }
        return True

    def _look_at_sets(self) -> bool:
        if self.sets is None:
            return False
        try:
            changed = os.stat(self.sets).st_mtime_ns
            if changed == self._sets_changed:
                return False
            names = sorted(filter(is_subject_set, os.listdir(self.sets)))
        except OSError:  # there is none yet
            self._known_sets = {}
            return False
        # What came within the resolution of the clock is seen by the next look.
        self._sets_changed = changed if time.time_ns() - changed > _CLOCK_NANOSECONDS else None
        self._known_sets = {name: self.sets / name for name in names}
        return True

    def without_paths(self, message: str) -> str:
        """A message with the names of the databases in place of their paths."""
        for name, path in list(self._seen.items()):
            for shown in {str(path), os.path.realpath(path)}:
                message = message.replace(shown, name)
        for folder in filter(None, (self.folder, self.sets)):
            for shown in {str(folder), os.path.realpath(folder)}:
                message = message.replace(shown, "the folder of the databases")
        return message


def _can_be_offered(name: str) -> bool:
    """Whether an entry of the folder has a name for answers; databases that are being built begin with a point."""
    return name.isprintable() and not name.startswith(".") and not is_subject_set(name)
