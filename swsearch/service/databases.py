"""The databases of a service by name, the generation that each has now, and those that are made of sent subjects.

A database is offered under the last part of its path. A change of it (`swsearch db add`) is noticed by the next
request, because each look compares the catalogue file with the one that was read. Databases of a folder come and go
with the entries of the folder.

Subjects that somebody sends with a search (:class:`SubjectSets`) are a database for that search alone, in a folder
beside the store. It has the name ``subjects-`` and the beginning of its digest, so equal sets are one database, and
nobody can name the set of another person without having it. It is not offered, and is deleted after the last search of
it. The worker of the server reads it in the same folder. Each owner has a quota of sets. An empty file in a set's
folder stands for an owner who sent it, and its time for when that was last, so a set of several owners counts for each
of them.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from swsearch.database.builder import build_database
from swsearch.database.format import CATALOGUE, Catalogue
from swsearch.database.opening import load_catalogue, open_database
from swsearch.database.reader import DatabasePart, PackedDatabase
from swsearch.errors import DatabaseError, InputError, Refused
from swsearch.options import EVERY_SUBJECT
from swsearch.service.logs import log_seldom
from swsearch.service.sent_text import bytes_of, check_wanted
from swsearch.service.settings import ServerLimits
from swsearch.store.accounts import LOCAL_OWNER
from swsearch.store.search_records import Parameters, SearchedDatabase
from swsearch.words import counted

LOOK_SECONDS: Final = 1.0
"""Longest time after which a new database of the folder is listed; a search of it is accepted at once."""
_SOURCES: Final = 3
"""Largest number of files that are named as the source of a database."""
_Stamp = tuple[int, int, int]


@dataclass(frozen=True)
class OfferedDatabase:
    """One generation of a database as a service offers it."""

    name: str
    catalogue: Catalogue
    name_in_reports: str
    """The name of its folder, which differs from ``name`` where a symbolic link is offered."""

    @property
    def searched(self) -> SearchedDatabase:
        """Name, digest and generation."""
        return SearchedDatabase(self.name, self.catalogue.digest, self.catalogue.generation)

    @property
    def origin(self) -> str:
        """What a reader wants to know of it first: its date, and the files that its sequences are from."""
        sources, day = self.catalogue.sources, self.catalogue.created[:10]
        shown = ", ".join(sources[:_SOURCES]) + (", …" if len(sources) > _SOURCES else "")
        return f"{day}, from {shown}" if shown else day

    def has_content(self, digest: str) -> bool:
        """Whether its content is that of the database that had this digest."""
        return digest in (self.catalogue.digest, *self.catalogue.former_digests)


def named_databases(paths: Sequence[str]) -> dict[str, Path]:
    """Databases by the names under which they are offered.

    Raises
    ------
    DatabaseError
        A path is not a database.
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
    """A folder whose databases are offered; raises InputError if it is none, or is itself a database."""
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
    """

    def __init__(self, paths: Mapping[str, Path], folder: Path | None = None, sets: Path | None = None) -> None:
        self.always = dict(paths)
        self.folder = folder
        self.sets = sets
        self._looked = float("-inf")
        self._seen = dict(paths)
        """All databases that were ever looked at, for messages about them."""
        self._paths = dict(paths)
        """The databases that are offered now. A look at the folder replaces the dict."""
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
        return self._path_of(name) is not None

    def _path_of(self, name: str) -> Path | None:
        """The folder of a database that can be searched now; None if there is no such database."""
        if self.sets is None or not is_subject_set(name):
            return self._paths.get(name)
        path = self.sets / name
        return path if path.exists() else None

    def open(self, name: str, digest: str | None = None, searched: Sequence[str] | None = None) -> PackedDatabase:
        """A database with the content of this digest, or of those of a search; by default, with any.

        Raises DatabaseError if it is gone, has other content, or cannot be read.
        """
        path = self._path_of(name)
        if path is None:
            raise DatabaseError(f"the database {name} is gone")
        return open_database(path, parts=[DatabasePart(digest)], searched=searched)

    def _current(self, name: str) -> OfferedDatabase:
        path = self._path_of(name)
        if path is None:
            raise self.unknown(name)
        with self._lock:
            self._seen[name] = path
            try:
                found = os.stat(f"{path}/{CATALOGUE}")
            except OSError as error:
                raise DatabaseError(f"the database {name} cannot be read at the moment") from error
            stamp = (found.st_mtime_ns, found.st_ino, found.st_size)
            known = self._known.get(name)
            if known is None or known[0] != stamp:
                folder = os.path.basename(os.path.realpath(path))
                self._known[name] = known = (stamp, OfferedDatabase(name, load_catalogue(path), folder))
            return known[1]

    def most_hits(self, name: str, options: Parameters) -> int:
        """Largest number of alignments of a query; those of a database that is gone count as the options say."""
        try:
            n_subjects = self.current(name).catalogue.n_subjects
        except (Refused, DatabaseError):
            n_subjects = EVERY_SUBJECT
        return most_hits(options, n_subjects)

    def unknown(self, name: str) -> Refused:
        """What is told if there is no database of this name; it names those that are offered."""
        offered = ", ".join(self._paths)
        advice = f"choose {offered}" if offered else "this server has none at the moment"
        return Refused("unknown_database", f"there is no database {name!r}; {advice}")

    def offered(self) -> list[OfferedDatabase]:
        """The databases that everyone may see: those that were given, in that order, then the folder's by name."""
        self._look(LOOK_SECONDS)
        return self._readable(self._paths)

    def all(self) -> list[OfferedDatabase]:
        """All databases that can be read: those that are offered, then the sets of subjects by name."""
        sets: list[str] = []
        if self.sets is not None:
            with suppress(OSError):  # there is none yet
                sets = sorted(filter(is_subject_set, os.listdir(self.sets)))
        found = self.offered() + self._readable(sets)
        with self._lock:
            for name in self._known.keys() - {one.name for one in found}:
                del self._known[name]
        return found

    def _readable(self, names: Iterable[str]) -> list[OfferedDatabase]:
        found = []
        for name in names:
            with suppress(DatabaseError, Refused):
                found.append(self._current(name))
        return found

    def _look(self, seconds: float) -> bool:
        """Look at the folder of databases, if that was not done within ``seconds``; returns whether it was done."""
        now = time.monotonic()
        with self._lock:
            if self.folder is None or now - self._looked < seconds:
                return False
            self._looked = now
            try:
                entries = sorted(entry.name for entry in os.scandir(self.folder))
            except OSError as error:
                log_seldom("folder of databases cannot be read", message=str(error.strerror))
                return True
            self._paths = self.always | {
                name: self.folder / name
                for name in entries
                if _can_be_offered(name) and name not in self.always and (self.folder / name / CATALOGUE).is_file()
            }
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


def most_hits(parameters: Mapping[str, Any], n_subjects: int) -> int:
    """Largest number of alignments of one query of a stored search; with all ties, every subject may be listed.

    Without ``max_hsps``, the further alignments of long subjects are counted only when they are stored.

    >>> most_hits({"top": 25, "ties": "cut", "max_hsps": 2}, 60)
    50
    >>> most_hits({"top": 1, "ties": "all", "max_hsps": 1}, 60)
    60
    """
    listed = n_subjects if parameters["ties"] == "all" else min(parameters["top"], n_subjects)
    return int(listed * (parameters["max_hsps"] or 1))


def _can_be_offered(name: str) -> bool:
    """Whether an entry of the folder has a name for answers; databases that are being built begin with a point."""
    return name.isprintable() and not name.startswith(".") and not is_subject_set(name)


# --- databases made of subjects that were sent ---


KEEP_SECONDS: Final = 3600.0
"""Shortest time for which a set is kept; its search may be stored some seconds later."""
_SUBMISSION_SECONDS: Final = 60.0
"""Time from sending a set after which its search is in the store, or was refused."""
_PREFIX: Final = "subjects-"
_OWNER: Final = "owner-"
"""Beginning of the names of the files that stand for owners; the rest is a digest, since a name may have a slash."""
_NAME: Final = re.compile(rf"{_PREFIX}[0-9a-f]{{20}}")
_SUBJECTS: Final = "the subjects"
"""What messages call sent subjects."""


class SubjectsError(InputError):
    """Sent subjects that cannot be searched."""


def is_subject_set(name: str) -> bool:
    """Whether a database of this name is a set of subjects.

    >>> is_subject_set("subjects-0123456789abcdef0123"), is_subject_set("proteins.db")
    (True, False)
    """
    return _NAME.fullmatch(name) is not None


class SubjectSets:
    """The sets of subjects in a folder; threads and processes may share it.

    The folder is created, with access for its owner alone, when the first set is added.
    """

    def __init__(self, folder: Path, limits: ServerLimits) -> None:
        self._folder = folder
        self._limits = limits
        self._turn = threading.Lock()

    def add(
        self, text: str, owner: str = LOCAL_OWNER, searched: Callable[[], Mapping[str, bool]] = dict[str, bool]
    ) -> str:
        """Make a database of some subjects; returns its name.

        If the owner has as many sets as one may have, the one that was sent first goes: of those that no search needs,
        or else of those whose searches are finished.

        Parameters
        ----------
        text : str
            FASTA or FASTQ. Protein and DNA are told apart.
        owner : str
            Who sends them.
        searched : callable
            Returns the databases of this owner's searches, and whether a search of each is unfinished.

        Raises
        ------
        SubjectsError
            The text cannot be read as sequences; the message names record, line and column.
        Refused
            There are too many residues, or all sets that the owner may have are being searched.
        DatabaseError
            The folder cannot be written.
        """
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".", dir=self._folder) as own:
                built = Path(own) / "database"
                name = _PREFIX + self._built(text, Path(own) / "subjects.fasta", built)[:20]
                with self._locked():
                    self._make_room(name, _file_of(owner), searched)
                    # A folder replaces none that has files: then the set is there already, and is only used once more.
                    with suppress(OSError):
                        os.rename(built, self._folder / name)
                    (self._folder / name / _file_of(owner)).touch()
                    os.utime(self._folder / name)
        except OSError as error:
            raise DatabaseError("the folder of sent subjects cannot be written at the moment") from error
        return name

    def _built(self, text: str, source: Path, built: Path) -> str:
        """Build the database of a text, which is written to a file; returns its digest."""
        try:
            source.write_bytes(bytes_of(text, _SUBJECTS))
            return build_database(source, built, threads=1, progress=self._check_size).catalogue.digest
        except Refused:
            raise
        except InputError as error:
            raise SubjectsError(error.marked.replace(str(source), _SUBJECTS)) from error

    def _check_size(self, _n_subjects: int, n_residues: int) -> None:
        """Refuse subjects as soon as too many residues of them are read."""
        check_wanted()
        most = self._limits.subject_residues
        if n_residues > most:
            problem = f"{_SUBJECTS} have more than {counted(most, 'residue')}, and this server takes no more"
            raise Refused("too_many_subjects", problem)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """A context in which no other thread or process adds or deletes a set."""
        with self._turn:
            lock = os.open(self._folder, os.O_RDONLY | os.O_CLOEXEC)
            try:
                with suppress(OSError):  # NFS locks no folders; then only the threads of this process take turns
                    fcntl.flock(lock, fcntl.LOCK_EX)
                yield
            finally:
                os.close(lock)

    def _make_room(self, new: str, owner_file: str, searched: Callable[[], Mapping[str, bool]]) -> None:
        """Let sets of an owner go, if there is no room for another one."""
        sent = {path.parent.name: path.stat().st_mtime for path in self._folder.glob(f"{_PREFIX}*/{owner_file}")}
        n_too_many = len(sent) + 1 - self._limits.subject_sets
        if new in sent or n_too_many <= 0:
            return
        is_unfinished = searched()
        submitted_since = time.time() - _SUBMISSION_SECONDS
        may_go = [
            (name in is_unfinished, last, name)
            for name, last in sent.items()
            if not is_unfinished.get(name, last > submitted_since)
        ]
        if len(may_go) < n_too_many:
            raise Refused(
                "too_many_subject_sets",
                f"this server keeps {self._limits.subject_sets:,} sets of subjects for an owner, and searches of yours "
                "need all of them; try again when some are done",
            )
        for _, _, name in sorted(may_go)[:n_too_many]:
            (self._folder / name / owner_file).unlink()
            if not any((self._folder / name).glob(f"{_OWNER}*")):
                shutil.rmtree(self._folder / name, ignore_errors=True)

    def delete_unused(self, in_use: Collection[str]) -> int:
        """Delete the sets that no search needs; returns their number. ``in_use`` has the databases of all searches."""
        n_deleted = 0
        with suppress(FileNotFoundError), self._locked():
            for entry in list(os.scandir(self._folder)):
                if not is_subject_set(entry.name) or entry.name in in_use:
                    continue
                if time.time() - entry.stat().st_mtime > KEEP_SECONDS:
                    shutil.rmtree(entry.path, ignore_errors=True)
                    n_deleted += 1
        return n_deleted


def _file_of(owner: str) -> str:
    """The file that stands for an owner in the folder of a set."""
    return _OWNER + hashlib.sha256(owner.encode("utf-8", "surrogateescape")).hexdigest()[:20]
