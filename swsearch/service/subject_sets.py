"""Subjects that somebody sends with a search: databases for that search alone, in a folder beside the store.

A set of subjects has the name ``subjects-`` and the beginning of its digest, so equal sets are one database, and nobody
can name the set of another person without having it. It is listed nowhere, and is deleted after the last search of it.
The worker of the server reads it in the same folder (:mod:`swsearch.service.databases`).

Each owner has a quota of sets. An empty file in a set's folder stands for an owner who sent it, and its time for when
that was last, so a set of several owners counts for each of them.
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
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from swsearch.database.builder import build_database
from swsearch.database.format import Catalogue
from swsearch.database.segment_writer import Progress
from swsearch.errors import AlphabetMismatch, DatabaseError, FastaFormatError, InputError, Refused
from swsearch.sequences.archives import MAGIC_BYTES, archive_format
from swsearch.service.reading import check_wanted
from swsearch.service.sent_text import bytes_of
from swsearch.service.settings import LOCAL_OWNER, Limits
from swsearch.words import counted

KEEP_SECONDS: Final = 3600.0
"""Shortest time for which a set is kept; its search may be stored some seconds later."""
_SUBMISSION_SECONDS: Final = 60.0
"""Time from sending a set after which its search is in the store, or was refused."""
_PREFIX: Final = "subjects-"
_OWNER: Final = "owner-"
"""Beginning of the names of the files that stand for owners; the rest is a digest, since a name may have a slash."""
_NAME: Final = re.compile(rf"{_PREFIX}[0-9a-f]{{20}}")
_SUBJECTS: Final = "the subjects"


class UnreadableSubjects(InputError):
    """Subjects that cannot be read as sequences."""


def is_subject_set(name: str) -> bool:
    """Whether a database of this name is a set of subjects.

    >>> is_subject_set("subjects-0123456789abcdef0123"), is_subject_set("proteins.db")
    (True, False)
    """
    return _NAME.fullmatch(name) is not None


class SubjectSets:
    """The sets of subjects in a folder; threads and processes may share it.

    Parameters
    ----------
    folder : Path
        It is created, with access for its owner alone, when the first set is added.
    limits : Limits
    """

    def __init__(self, folder: Path, limits: Limits) -> None:
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
        UnreadableSubjects
            The text cannot be read as sequences; the message names record, line and column.
        Refused
            There are too many residues, or all sets that the owner may have are being searched.
        DatabaseError
            The folder cannot be written.
        """
        try:
            raw = bytes_of(text, _SUBJECTS)
        except InputError as error:
            raise UnreadableSubjects(error.marked) from error
        if archive_format(raw[:MAGIC_BYTES]) is not None:
            raise UnreadableSubjects(f"{_SUBJECTS} are an archive; send their text")
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".", dir=self._folder) as own:
                source, built = Path(own) / "subjects.fasta", Path(own) / "database"
                source.write_bytes(raw)
                catalogue = _built(source, built, self._check_size)
                name = _PREFIX + catalogue.digest[:20]
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
        """Delete the sets that no search needs; returns their number.

        Parameters
        ----------
        in_use : collection of str
            Names of the databases of all searches of the store.
        """
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


def _built(source: Path, target: Path, progress: Progress) -> Catalogue:
    """The catalogue of a new database; messages do not name the file."""
    try:
        return build_database(source, target, threads=1, progress=progress).catalogue
    except FastaFormatError as error:
        place = {"record": error.record, "line": error.line, "column": error.column}
        named = FastaFormatError(error.problem, _SUBJECTS, identifier=error.identifier, **place)
        raise UnreadableSubjects(named.marked) from error
    except AlphabetMismatch as error:
        raise UnreadableSubjects(error.marked.replace(str(source), _SUBJECTS)) from error
