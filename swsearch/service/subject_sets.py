"""Subjects that somebody sends with a search: databases for that search alone, in a folder beside the store.

A set of subjects has the name ``subjects-`` and the beginning of its digest, so equal sets are one database, and nobody
can name the set of another person without having it. It is listed nowhere, and is deleted after the last search of it.
The worker of the server reads it in the same folder (:mod:`swsearch.service.databases`).
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Final

from swsearch.database.builder import build_database
from swsearch.database.format import Catalogue
from swsearch.errors import AlphabetMismatch, DatabaseError, FastaFormatError, InputError, Refused
from swsearch.sequences.archives import MAGIC_BYTES, archive_format
from swsearch.service.sent_text import bytes_of
from swsearch.service.settings import Limits
from swsearch.words import counted

KEEP_SECONDS: Final = 3600.0
"""Shortest time for which a set is kept; its search may be stored some seconds later."""
_PREFIX: Final = "subjects-"
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

    def add(self, text: str) -> str:
        """Make a database of some subjects; returns its name.

        Parameters
        ----------
        text : str
            FASTA or FASTQ. Protein and DNA are told apart.

        Raises
        ------
        UnreadableSubjects
            The text cannot be read as sequences; the message names record, line and column.
        Refused
            There are too many residues, or too many sets.
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
                catalogue = _built(source, built)
                if catalogue.n_residues > self._limits.subject_residues:
                    raise Refused(
                        "too_many_subjects",
                        f"{_SUBJECTS} have {counted(catalogue.n_residues, 'residue')}; this server takes up to "
                        f"{self._limits.subject_residues:,}",
                    )
                name = _PREFIX + catalogue.digest[:20]
                self._check_number(name)
                # A folder replaces none that has files: then the set is there already, and is only used once more.
                with suppress(OSError):
                    os.rename(built, self._folder / name)
                os.utime(self._folder / name)
        except OSError as error:
            raise DatabaseError("the folder of sent subjects cannot be written at the moment") from error
        return name

    def _check_number(self, new: str) -> None:
        sets = list(filter(is_subject_set, os.listdir(self._folder)))
        if new not in sets and len(sets) >= self._limits.subject_sets:
            raise Refused(
                "too_many_subject_sets",
                f"this server keeps {len(sets):,} sets of subjects, as many as it may; try again later",
            )

    def delete_unused(self, in_use: Collection[str]) -> int:
        """Delete the sets that no search needs; returns their number.

        Parameters
        ----------
        in_use : collection of str
            Names of the databases of all searches of the store.
        """
        n_deleted = 0
        with suppress(FileNotFoundError):
            for entry in list(os.scandir(self._folder)):
                if not is_subject_set(entry.name) or entry.name in in_use:
                    continue
                if time.time() - entry.stat().st_mtime > KEEP_SECONDS:
                    shutil.rmtree(entry.path, ignore_errors=True)
                    n_deleted += 1
        return n_deleted


def _built(source: Path, target: Path) -> Catalogue:
    """The catalogue of a new database; messages do not name the file."""
    try:
        return build_database(source, target, threads=1).catalogue
    except FastaFormatError as error:
        place = {"record": error.record, "line": error.line, "column": error.column}
        named = FastaFormatError(error.problem, _SUBJECTS, identifier=error.identifier, **place)
        raise UnreadableSubjects(named.marked) from error
    except AlphabetMismatch as error:
        raise UnreadableSubjects(error.marked.replace(str(source), _SUBJECTS)) from error
