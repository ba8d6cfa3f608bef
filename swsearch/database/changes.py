"""Changes of a packed database: addition and removal of sequences, compaction, and the organisms of its sequences.

Each change makes a new generation.

A change writes new files beside the existing ones and publishes them by replacing the catalogue in one rename. Before
the rename the database is the old generation, after it the new one, even if the program is stopped at any time; an open
reader continues to read the generation that it opened. The files of an interrupted change are removed at once if the
program continues, and otherwise by the next change. Only one process at a time can change a database
(:mod:`swsearch.database.staging`).

An addition takes the disk space of a database of the added files. A removal takes four bytes per removed subject. A
compaction temporarily takes twice the size of the remaining residues, in addition to the old files.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from swsearch.database.builder import BuildReport, check_slices
from swsearch.database.export import remaining_chunks
from swsearch.database.format import (
    CATALOGUE,
    GENERATION,
    TOMBSTONE_DTYPE,
    TOMBSTONES_NAME,
    Catalogue,
    SegmentEntry,
    Tombstones,
    tombstones_name,
)
from swsearch.database.opening import load_catalogue, open_database
from swsearch.database.reader import PackedDatabase
from swsearch.database.segment import Segment, removed_of
from swsearch.database.segment_writer import HashingFile, ReadProgress, sequence_chunks, source_names, write_segment
from swsearch.database.staging import disk_error, termination_as_exception, write_generation, writer_lock
from swsearch.database.verify import catalogue_problems, verify
from swsearch.errors import DatabaseError, InputError
from swsearch.folders import sync_folder
from swsearch.sequences.alphabet import ALPHABETS, Alphabet, refuse_dna
from swsearch.sequences.fasta import SAMPLE_RESIDUES, Skip
from swsearch.sequences.record import SequenceChunk, split_header
from swsearch.threads import Threads
from swsearch.typing import SubjectIndex
from swsearch.words import option


@dataclass(frozen=True)
class ChangeReport:
    """The result of a removal, a compaction, or of storing a taxonomy.

    ``before`` and ``catalogue`` are the same object if there was nothing to compact. ``notes`` are messages about
    taxonomy ids that are not current.
    """

    path: Path
    before: Catalogue
    catalogue: Catalogue
    notes: tuple[str, ...] = ()


def add_to_database(
    database: str | os.PathLike[str],
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    force_alphabet: bool = False,
    threads: int | None = None,
    progress: ReadProgress | None = None,
    skip: Skip | None = None,
) -> BuildReport:
    r"""Append the sequences of FASTA or FASTQ files to a database, all or none.

    Parameters
    ----------
    database : path
    paths : path or sequence of paths
        Sequence files of the database's alphabet, in order; ``-`` is standard input.
    force_alphabet : bool
        Whether a file that looks like DNA is accepted as protein, whose alphabet contains the same letters.
    threads : int, optional
        Number of threads, at least 1; by default, one per usable core, and at most 16.
    progress : callable, optional
    skip : callable, optional
        Called with each record that is left out, as for :func:`swsearch.database.builder.build_database`; by default,
        such a record is an error.

    Returns
    -------
    BuildReport
        Its duplicates are added subjects whose identifier the database already has or the files repeat.

    Raises
    ------
    FastaFormatError
        A file cannot be read as sequences of the alphabet.
    AlphabetMismatch
        The database is protein, and a file looks like DNA.
    DatabaseError
        There is no database, another process is changing it, or the disk is full.

    >>> import tempfile
    >>> from swsearch.database.builder import build_database
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "two.fa").write_text(">P1\nMKVLL\n>P2\nWYR\n")
    ...     _ = Path(folder, "one.fa").write_text(">P3\nMKW\n")
    ...     _ = build_database(f"{folder}/two.fa", f"{folder}/db")
    ...     report = add_to_database(f"{folder}/db", f"{folder}/one.fa")
    >>> report.catalogue.n_subjects, report.catalogue.generation
    (3, 2)
    """
    folder = Path(database)
    with _change(folder) as before, open_database(folder) as opened:
        with Threads(threads) as used:
            written = write_segment(
                folder,
                before.generation + 1,
                _added_chunks(paths, ALPHABETS[before.alphabet], used, skip, force_alphabet=force_alphabet),
                threads=used,
                known=opened.segments,
                progress=progress,
            )
        sources, segments = before.sources + source_names(paths), before.segments + written.segments
        catalogue = write_generation(folder, replace(before, sources=sources, segments=segments, former_digests=()))
    return BuildReport(folder, catalogue, written.n_duplicates, written.first_duplicate)


def remove_from_database(database: str | os.PathLike[str], identifiers: Iterable[str]) -> ChangeReport:
    r"""Remove all subjects that have one of these identifiers; if an identifier is unknown, remove no subject.

    From the new generation on, the removed subjects are not searched, not counted in the size of the database, and not
    exported; their bytes remain in the files until a compaction.

    Parameters
    ----------
    database : path
    identifiers : iterable of str
        First words of headers, in which bytes that are not UTF-8 are surrogate escapes. Repetitions have no effect.

    Raises
    ------
    InputError
        An identifier is that of no subject, there are no identifiers, or no subject would remain.
    DatabaseError
        There is no database, another process is changing it, or the disk is full.

    >>> import tempfile
    >>> from swsearch.database.builder import build_database
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "two.fa").write_text(">P1\nMKVLL\n>P2\nWYR\n")
    ...     _ = build_database(f"{folder}/two.fa", f"{folder}/db")
    ...     _ = remove_from_database(f"{folder}/db", ["P1"])
    ...     with open_database(f"{folder}/db") as opened:
    ...         [record.identifier for record in opened]
    ['P2']
    """
    folder = Path(database)
    wanted = dict.fromkeys(identifiers)
    if not wanted:
        raise InputError("no identifier was given; nothing was removed")
    with _change(folder) as before, open_database(folder) as opened:
        found = _places(opened, wanted)
        n_subjects = sum(map(len, found))
        if n_subjects == before.n_subjects:
            everything = "the only sequence" if n_subjects == 1 else f"all {n_subjects:,} sequences"
            raise InputError(
                f"{everything} of {folder} would be removed, and a database holds at least one; "
                "delete the folder instead"
            )
        generation = before.generation + 1
        entries = [
            with_tombstones(folder, segment, fasta_indices, generation)
            for segment, fasta_indices in zip(opened.segments, found, strict=True)
        ]
        whole = before.whole and _whole_with_tombstones(folder, before.whole, opened.segments, entries, generation)
        changed = replace(before, segments=tuple(entries), whole=whole, former_digests=())
        catalogue = write_generation(folder, changed)
    return ChangeReport(folder, before, catalogue)


def compact_database(
    database: str | os.PathLike[str],
    *,
    slices: int | None = None,
    threads: int | None = None,
    progress: ReadProgress | None = None,
) -> ChangeReport:
    """Rewrite the remaining subjects of a database as one segment, and free the disk space of the removed ones.

    The result has the bytes, and therefore the digest, of a fresh build from the exported FASTA. The results of
    searches do not change. A database of one segment without removals, or of nothing but the requested slices, is left
    unchanged.

    Parameters
    ----------
    database : path
    slices : int, optional
        Number of slices into which the subjects are dealt, 1 to 128; by default, as many as there are now.
    threads : int, optional
        Number of threads, at least 1; by default, one per usable core, and at most 16.
    progress : callable, optional

    Raises
    ------
    InputError
        There are more slices than sequences, or the number of slices is out of range.
    DatabaseError
        There is no database, it is damaged, another process is changing it, or the disk is full.
    """
    from swsearch.database.stored_taxonomy import remaining_taxids, store_taxonomy

    folder = Path(database)
    if slices is not None:
        check_slices(slices)
    with _change(folder) as before:
        n_slices = slices or max(before.n_slices, 1)
        if len(before.segments) == n_slices == max(before.n_slices, 1) and not before.n_removed:
            return ChangeReport(folder, before, before)
        with open_database(folder) as opened:
            # New files have new digests, so damage of the old files could no longer be detected.
            if problems := verify(opened):
                raise DatabaseError(f"{folder} is damaged: {'; '.join(problems)}; index its FASTA again")
            generation = before.generation + 1
            with Threads(threads) as used:
                written = write_segment(
                    folder,
                    generation,
                    remaining_chunks(opened.parts, opened.alphabet, used),
                    threads=used,
                    n_slices=n_slices,
                    progress=progress,
                )
            taxonomy = None
            if (known := opened.taxonomy) is not None:
                taxonomy, _ = store_taxonomy(folder, generation, known.tree, remaining_taxids(opened, known))
        changed = replace(
            before,
            segments=written.segments,
            whole=written.whole,
            taxonomy=taxonomy,
            former_digests=tuple(dict.fromkeys((*before.former_digests, before.digest))),
        )
        catalogue = write_generation(folder, changed)
        _sweep(folder, catalogue)
    return ChangeReport(folder, before, catalogue)


def set_taxonomy(
    database: str | os.PathLike[str],
    taxonomy: str | os.PathLike[str],
    taxid_map: str | os.PathLike[str] | None = None,
) -> ChangeReport:
    r"""Store the organisms of the subjects with a database, in place of those that it has; no search changes.

    Parameters
    ----------
    database : path
    taxonomy : path
        NCBI's taxdump: a folder, ``taxdump.tar.gz``, ``taxdmp.zip``, or ``nodes.dmp``.
    taxid_map : path, optional
        The taxonomy ids of the sequences (:mod:`swsearch.taxonomy.assignment`); by default, those in their headers.

    Raises
    ------
    InputError
        The taxdump or the map cannot be read.
    DatabaseError
        There is no database, another process is changing it, or the disk is full.

    >>> import tempfile
    >>> from swsearch.database.builder import build_database
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "two.fa").write_text(">P1 OX=9606\nMKVLL\n>P2\nWYR\n")
    ...     _ = Path(folder, "nodes.dmp").write_text("1\t|\t1\t|\tno rank\t|\n9606\t|\t1\t|\tspecies\t|\n")
    ...     _ = build_database(f"{folder}/two.fa", f"{folder}/db")
    ...     stored = set_taxonomy(f"{folder}/db", folder).catalogue.taxonomy
    >>> stored.n_taxa, stored.n_assigned
    (2, 1)
    """
    from swsearch.database.stored_taxonomy import store_organisms
    from swsearch.taxonomy.dump import load_taxonomy

    folder = Path(database)
    load_catalogue(folder)  # before the taxdump is read, which takes longer
    tree = load_taxonomy(taxonomy, option("taxonomy", flag="TAXDUMP"))
    with _change(folder) as before, open_database(folder) as opened:
        entry, notes = store_organisms(folder, before.generation + 1, opened.parts, tree, taxid_map)
        catalogue = write_generation(folder, replace(before, taxonomy=entry))
        _sweep(folder, catalogue)
    return ChangeReport(folder, before, catalogue, notes)


@contextmanager
def _change(folder: Path) -> Iterator[Catalogue]:
    """The catalogue, for the body of a ``with`` statement during which the lock of the database is held."""
    load_catalogue(folder)  # first, so that no lock file is made in a folder that is not a database
    try:
        with termination_as_exception(), writer_lock(folder):
            catalogue = load_catalogue(folder)
            # A new catalogue gets a new digest, so this contradiction would no longer be detected.
            if problems := catalogue_problems(folder, catalogue):
                raise DatabaseError(f"{folder} is damaged: {'; '.join(problems)}; index its FASTA again")
            _refuse_links(folder, catalogue)
            _sweep(folder, catalogue)
            try:
                yield catalogue
            except BaseException:
                # An interrupt may arrive directly after the rename; the catalogue on the disk lists the files in use.
                _sweep(folder, load_catalogue(folder))
                raise
    except OSError as error:
        raise disk_error(error, Path(os.path.abspath(folder))) from error


def _refuse_links(folder: Path, catalogue: Catalogue) -> None:
    """Refuse segments that are symbolic links: a change would write and remove files outside the database."""
    for entry in catalogue.segments:
        if (path := folder / entry.name).is_symlink():
            raise DatabaseError(
                f"{path} is a symbolic link, and a change would write outside the database; copy it with `cp -rL` first"
            )


def _sweep(folder: Path, catalogue: Catalogue) -> None:
    """Remove the files that no reader can open: those of interrupted changes, and segments replaced by a compaction.

    A ``removed-G.bin`` that a later one has replaced is not removed until a compaction, because a reader may have read
    the old catalogue and not yet mapped its files.
    """
    in_use = {entry.name for entry in catalogue.segments}
    taxonomy = None if catalogue.taxonomy is None else catalogue.taxonomy.name
    for path in folder.iterdir():
        match = TOMBSTONES_NAME.fullmatch(path.name)
        if GENERATION.fullmatch(path.name) and path.name not in (*in_use, taxonomy):
            shutil.rmtree(path, ignore_errors=True)
        elif match and not _first_generation(catalogue) <= int(match[1]) <= catalogue.generation:
            path.unlink()
    for name in in_use:
        for path in (folder / name).iterdir():
            match = TOMBSTONES_NAME.fullmatch(path.name)
            if match and int(match[1]) > catalogue.generation:
                path.unlink()
    (folder / f".{CATALOGUE}").unlink(missing_ok=True)


def _first_generation(catalogue: Catalogue) -> int:
    """The generation that made the slices, and before which no removal of them is in use."""
    return catalogue.generation + 1 if catalogue.whole is None else int(catalogue.whole.name.removeprefix("segment-"))


def _places(database: PackedDatabase, wanted: dict[str, None]) -> list[SubjectIndex]:
    """For each segment, the FASTA indices of the subjects with one of the identifiers; all must be found."""
    missing = dict(wanted)
    found = []
    for index, header in database.headers():
        identifier = split_header(header)[0]
        if identifier in wanted:
            found.append(index)
            missing.pop(identifier, None)
    if missing:
        others = f", nor {len(missing) - 1:,} more of those given" if len(missing) > 1 else ""
        unknown = next(iter(missing))
        whole = _with_part(database, unknown)
        advice = "" if whole is None else f"; give the whole first word of its header, as {whole!r}"
        raise InputError(f"{database.path} has no sequence {unknown!r}{others}{advice}; nothing was removed")
    subject_index = np.array(found, dtype=np.uint32)
    return [segment.locate(subject_index)[1] for segment in database.segments]


def _with_part(database: PackedDatabase, part: str) -> str | None:
    """An identifier that has ``part`` as one of its parts between bars; None if there is no such identifier."""
    identifiers = (split_header(header)[0] for _, header in database.headers())
    return next((one for one in identifiers if part in one and part in one.split("|")), None)


def with_tombstones(folder: Path, segment: Segment, fasta_indices: SubjectIndex, generation: int) -> SegmentEntry:
    """Write the file of removed subjects, now with these FASTA indices; return the segment's new entry."""
    if not len(fasta_indices):
        return segment.entry
    removed = np.union1d(segment.removed, fasta_indices)
    n_residues = int(segment.lengths_of(removed).sum(dtype=np.uint64))
    tombstones = _tombstones(folder / segment.entry.name, removed, n_residues, generation)
    sync_folder(folder / segment.entry.name)
    return replace(segment.entry, removed=tombstones)


def _whole_with_tombstones(
    folder: Path, whole: SegmentEntry, segments: Sequence[Segment], entries: Sequence[SegmentEntry], generation: int
) -> SegmentEntry:
    """Write the file of removed subjects of all slices, whose new entries are these; return the whole's new entry."""
    slices = [(segment, entry) for segment, entry in zip(segments, entries, strict=True) if entry.is_slice]
    if all(entry is segment.entry for segment, entry in slices):
        return whole
    removed = [segment.whole_indices(removed_of(segment.folder, entry)) for segment, entry in slices]
    n_residues = sum(entry.n_removed_residues for _, entry in slices)
    return replace(whole, removed=_tombstones(folder, np.sort(np.concatenate(removed)), n_residues, generation))


def _tombstones(folder: Path, removed: SubjectIndex, n_residues: int, generation: int) -> Tombstones:
    """Write the file of removed subjects at these FASTA indices, which have this number of residues."""
    name = tombstones_name(generation)
    with HashingFile(folder / name, TOMBSTONE_DTYPE) as file:
        return Tombstones(name, len(removed), n_residues, file.finish([removed]))


def _added_chunks(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    alphabet: Alphabet,
    threads: Threads,
    skip: Skip | None,
    *,
    force_alphabet: bool,
) -> Iterator[SequenceChunk]:
    """The chunks of the files; a file is refused if its first chunk looks like DNA although protein is required."""
    before = None
    for chunk in sequence_chunks(paths, alphabet, threads, skip):
        if chunk.source != before and not force_alphabet:
            refuse_dna(chunk.source, alphabet.decode(chunk.codes[:SAMPLE_RESIDUES]), alphabet)
        before = chunk.source
        yield chunk
