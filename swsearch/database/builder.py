"""Construction of a packed database, a folder of arrays, from FASTA or FASTQ files, in bounded memory.

:func:`build_database` reads sequence files, writes the database, and returns its catalogue in a :class:`BuildReport`.
The sequences become one segment (:mod:`swsearch.database.segment_writer`). The catalogue is written last, and
:mod:`swsearch.database.staging` publishes the folder by one rename. The same input gives the same bytes in all files,
except for the catalogue's ``created``.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from swsearch.database.format import Catalogue, content_digest, segment_name
from swsearch.database.segment_writer import Progress, sequence_chunks, source_names, write_segment
from swsearch.database.staging import staged_folder, write_catalogue_file
from swsearch.sequences.alphabet import Alphabet


@dataclass(frozen=True)
class BuildReport:
    """The result of a build or an addition.

    Attributes
    ----------
    path : Path
    catalogue : Catalogue
    n_duplicates : int
        Number of subjects that have the identifier of an earlier subject. They are part of the database.
    first_duplicate : str or None
        Identifier of the first of these subjects.
    """

    path: Path
    catalogue: Catalogue
    n_duplicates: int
    first_duplicate: str | None


def build_database(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    target: str | os.PathLike[str],
    alphabet: Alphabet | None = None,
    *,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> BuildReport:
    r"""Pack FASTA or FASTQ files into a new database.

    Parameters
    ----------
    paths : path or sequence of paths
        Sequence files in order (:mod:`swsearch.sequences.fasta`); ``-`` is standard input.
    target : path
        Folder to create. It appears only when it is complete; after an error, it does not exist.
    alphabet : Alphabet, optional
        Alphabet of all sequences. By default, it is detected from the first million letters.
    overwrite : bool
        Whether an existing database at ``target`` is replaced.
    progress : callable, optional

    Raises
    ------
    FastaFormatError
        A file cannot be read as sequences of the alphabet.
    DatabaseError
        ``target`` exists, or cannot be written.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "two.fa").write_text(">P1\nMKVLL\n>P2\nWYR\n")
    ...     report = build_database(f"{folder}/two.fa", f"{folder}/two.swdb")
    >>> report.catalogue.n_subjects, report.catalogue.n_residues, report.catalogue.alphabet
    (2, 8, 'protein')
    """
    target = Path(target)
    with staged_folder(target, overwrite=overwrite) as folder:
        written = write_segment(folder / segment_name(1), sequence_chunks(paths, alphabet), progress=progress)
        catalogue = Catalogue(
            alphabet=written.alphabet.name,
            digest=content_digest(written.alphabet.name, (written.entry,)),
            generation=1,
            sources=source_names(paths),
            program=program_name(),
            created=now(),
            segments=(written.entry,),
        )
        write_catalogue_file(folder, catalogue)
    return BuildReport(target, catalogue, written.n_duplicates, written.first_duplicate)


def program_name() -> str:
    """Name and version of this program, as in a catalogue."""
    return f"swsearch {version('swsearch')}"


def now() -> str:
    """UTC time in ISO 8601, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
