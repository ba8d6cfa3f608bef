"""Construction of a packed database, a folder of arrays, from FASTA or FASTQ files, in bounded memory.

:func:`build_database` reads sequence files, writes the database, and returns its catalogue in a :class:`BuildReport`.
The sequences become one segment (:mod:`swsearch.database.segment_writer`). The catalogue is written last, and
:mod:`swsearch.database.staging` publishes the folder by one rename. The same input gives the same bytes in all files,
except for the catalogue's ``created``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from swsearch import arguments
from swsearch.database.format import MAX_SLICES, Catalogue
from swsearch.database.segment_writer import ReadProgress, sequence_chunks, source_names, write_segment
from swsearch.database.staging import staged_folder, write_generation
from swsearch.errors import DatabaseError, InputError
from swsearch.file_registry import registered
from swsearch.sequences.alphabet import ALPHABETS, Alphabet
from swsearch.sequences.fasta import Skip
from swsearch.sequences.record import SequenceChunk
from swsearch.threads import Threads
from swsearch.words import option

if TYPE_CHECKING:
    from swsearch.taxonomy.tree import Taxonomy


@dataclass(frozen=True)
class BuildReport:
    """The result of a build or an addition.

    ``n_duplicates`` counts the subjects that have the identifier of an earlier subject, which are part of the database;
    ``first_duplicate`` is the identifier of the first of them. ``notes`` are messages about taxonomy ids that are not
    current.
    """

    path: Path
    catalogue: Catalogue
    n_duplicates: int
    first_duplicate: str | None
    notes: tuple[str, ...] = ()


@registered()
def build_database(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    target: str | os.PathLike[str],
    alphabet: Alphabet | str | None = None,
    *,
    overwrite: bool = False,
    slices: int = 1,
    threads: int | None = None,
    progress: ReadProgress | None = None,
    skip: Skip | None = None,
    taxonomy: str | os.PathLike[str] | None = None,
    taxid_map: str | os.PathLike[str] | None = None,
    headers: re.Pattern[bytes] | None = None,
) -> BuildReport:
    r"""Pack FASTA or FASTQ files into a new database.

    Parameters
    ----------
    paths : path or sequence of paths
        Sequence files in order (:mod:`swsearch.sequences.fasta`); ``-`` is standard input.
    target : path
        Folder to create. It appears only when it is complete; after an error, it does not exist.
    alphabet : str or Alphabet, optional
        Alphabet of all sequences, ``protein`` or ``dna``. By default, it is detected from the first million letters.
    overwrite : bool
        Whether an existing database at ``target`` is replaced.
    slices : int
        Number of slices into which the subjects are dealt, 1 to 128; 1 means that there are none. Results do not
        depend on it (:mod:`swsearch.database.format`).
    threads : int, optional
        Number of threads, at least 1; by default, one per usable core, and at most 16. The files do not depend on it.
    progress : callable, optional
    skip : callable, optional
        Called, in order, with each record that has no residues or a byte that has no place in it; the record is left
        out of the database. By default, such a record is an error.
    taxonomy : path, optional
        NCBI's taxdump; names and lineages of the organisms of the sequences are stored with them.
    taxid_map : path, optional
        The taxonomy ids of the sequences, for ``taxonomy``; by default, those that headers state
        (:mod:`swsearch.taxonomy.assignment`).
    headers : pattern of bytes, optional
        Records in whose headers it is not found are left out.

    Raises
    ------
    FastaFormatError
        A file cannot be read as sequences of the alphabet.
    InputError
        There are more slices than sequences, the number of slices is out of range, or the taxdump or the map cannot be
        read.
    DatabaseError
        ``target`` is empty, exists, or cannot be written.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "two.fa").write_text(">P1\nMKVLL\n>P2\nWYR\n")
    ...     report = build_database(f"{folder}/two.fa", f"{folder}/two.swdb")
    >>> report.catalogue.n_subjects, report.catalogue.n_residues, report.catalogue.alphabet
    (2, 8, 'protein')
    """
    arguments.paths("paths", paths)
    if not arguments.path("target", target):
        raise DatabaseError("the name of the database is empty; give the path of the new one")
    target = Path(target)
    if not isinstance(alphabet, Alphabet | None):
        alphabet = ALPHABETS[arguments.choice("alphabet", alphabet, tuple(ALPHABETS))]
    arguments.flag("overwrite", overwrite)
    arguments.function("progress", progress)
    arguments.function("skip", skip)
    for name, file in (("taxonomy", taxonomy), ("taxid_map", taxid_map)):
        if file is not None:
            arguments.path(name, file)
    if headers is not None:
        searched = arguments.of_type("headers", headers, re.Pattern, "a compiled pattern of bytes").pattern
        arguments.of_type("headers", searched, bytes, "a compiled pattern of bytes")
    check_slices(slices)
    tree = _tree(taxonomy, taxid_map)
    with staged_folder(target, overwrite=overwrite) as folder, Threads(threads) as used:
        chunks = sequence_chunks(paths, alphabet, used, skip, headers)
        built = write_database(
            folder,
            chunks,
            source_names(paths),
            used,
            slices=slices,
            progress=progress,
            tree=tree,
            taxid_map=taxid_map,
        )
    return replace(built, path=target)


def write_database(
    folder: Path,
    chunks: Iterable[SequenceChunk],
    sources: tuple[str, ...],
    threads: Threads,
    *,
    slices: int = 1,
    progress: ReadProgress | None = None,
    tree: Taxonomy | None = None,
    taxid_map: str | os.PathLike[str] | None = None,
) -> BuildReport:
    """Pack the records of ``sources`` into an empty folder, which the caller publishes, or removes after an exception.

    With a ``tree``, the organisms of the sequences are stored. Other parameters and errors are those of
    :func:`build_database`.
    """
    written = write_segment(folder, 1, chunks, threads=threads, n_slices=slices, progress=progress)
    catalogue = Catalogue(  # of no generation, before the first
        alphabet=written.alphabet.name,
        digest="",
        generation=0,
        sources=sources,
        program="",
        created="",
        segments=written.segments,
        whole=written.whole,
    )
    notes: tuple[str, ...] = ()
    if tree is not None:
        from swsearch.database.segment import map_segments, parts_of
        from swsearch.database.stored_taxonomy import store_organisms

        parts = parts_of(map_segments(folder, catalogue))
        entry, notes = store_organisms(folder, 1, parts, tree, taxid_map)
        catalogue = replace(catalogue, taxonomy=entry)
    catalogue = write_generation(folder, catalogue)
    return BuildReport(folder, catalogue, written.n_duplicates, written.first_duplicate, notes)


def _tree(taxonomy: str | os.PathLike[str] | None, taxid_map: str | os.PathLike[str] | None) -> Taxonomy | None:
    """The tree of a taxdump; None if there is none, with which a map is refused."""
    if taxonomy is None:
        if taxid_map is not None:
            given = option("taxid_map", taxid_map)
            raise InputError(f"{given}: give the taxdump that has its ids with {option('taxonomy')}")
        return None
    from swsearch.taxonomy.dump import load_taxonomy

    return load_taxonomy(taxonomy)


def check_slices(n_slices: int) -> None:
    """Raise InputError for a number of slices that no database can have: below 1, or above 128."""
    if not 1 <= arguments.whole_number("slices", n_slices) <= MAX_SLICES:
        raise InputError(f"{option('slices', n_slices)}: 1 to {MAX_SLICES} slices are possible")
