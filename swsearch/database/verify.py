"""Verification of a packed database: of every file against its SHA-256, of every array against the format's rules."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np

from swsearch.database.format import (
    ARRAY_DTYPES,
    SUBJECT_ALIGNMENT,
    TAIL_PADDING,
    Catalogue,
    FileEntry,
    SegmentEntry,
    array_path,
    content_digest,
)
from swsearch.database.reader import MAX_ATTEMPTS, PackedDatabase, Segment, load_catalogue
from swsearch.errors import DatabaseError
from swsearch.sequences.alphabet import PAD_CODE, Alphabet

_BLOCK_BYTES: Final = 16 << 20


def verify_path(path: str | os.PathLike[str]) -> list[str]:
    """All problems of the database at a path, as :func:`verify` reports them.

    A compaction may remove files while they are read. Problems are therefore reported only if the catalogue is still
    the one that was opened; otherwise the new generation is verified.

    Raises
    ------
    DatabaseError
        The database cannot be opened, or it changes so often that no generation can be verified.
    """
    for _ in range(MAX_ATTEMPTS):
        with PackedDatabase.open(path) as database:
            problems = verify(database)
        if not problems or load_catalogue(database.path) == database.catalogue:
            return problems
    raise DatabaseError(f"{path} changes so often that it cannot be verified; wait until its writers have ended")


def verify(database: PackedDatabase) -> list[str]:
    """All problems of an open database, one line each; an empty list if there are none.

    Every changed byte is detected: in the arrays by this function, and in the catalogue, except for white space in its
    JSON, when the database is opened. The memory in use is one block of residues and a few bytes per subject.
    """
    problems = catalogue_problems(database.path, database.catalogue)
    for segment in database.segments:
        folder = database.path / segment.entry.name
        damaged = list(changed_files(folder, segment.entry))
        problems += damaged or _structure_problems(segment, str(folder), database.alphabet)
    return problems


def catalogue_problems(path: Path, catalogue: Catalogue) -> list[str]:
    """Contradictions within a valid catalogue, which only a faulty writer can produce; a line each."""
    problems: list[str] = []
    if catalogue.digest != content_digest(catalogue.alphabet, catalogue.segments):
        problems.append(f"{path}: the digest in the catalogue is not that of its files")
    if catalogue.n_subjects < 1:
        problems.append(f"{path}: no subject is left in it")
    return problems


def changed_files(folder: Path, entry: SegmentEntry) -> Iterator[str]:
    """A line for each file of a segment that cannot be read, or has another SHA-256 than its entry."""
    files: list[tuple[Path, FileEntry]] = [(array_path(folder, name), entry.files[name]) for name in ARRAY_DTYPES]
    if entry.removed is not None:
        files.append((folder / entry.removed.name, entry.removed.file))
    for path, expected in files:
        try:
            with open(path, "rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            yield f"{path} cannot be read: {error.strerror or error}"
            continue
        if found != expected.sha256:
            yield f"{path} has changed since it was written: SHA-256 {found}, expected {expected.sha256}"


def _structure_problems(segment: Segment, where: str, alphabet: Alphabet) -> list[str]:
    """Violations of the format in files with correct digests; only an incorrect writer can produce them."""
    entry = segment.entry
    lengths = segment.lengths.astype(np.int64)
    starts = segment.starts.astype(np.int64)
    indices = np.arange(entry.n_subjects)
    room = -(-lengths // SUBJECT_ALIGNMENT) * SUBJECT_ALIGNMENT
    ends = segment.header_ends.astype(np.int64)
    claims = {
        "the residues are not as many as the catalogue says": int(lengths.sum()) == entry.n_residues,
        "subjects are not stored by length": bool((np.diff(lengths, prepend=1) >= 0).all()),
        "the shortest and longest subject are not those of the catalogue": (
            (int(lengths[0]), int(lengths[-1])) == (entry.shortest, entry.longest)
        ),
        "order is no permutation": np.array_equal(np.sort(segment.order), indices),
        "starts are not those of subjects side by side": np.array_equal(starts, np.cumsum(room) - room),
        "residues have not the size of all subjects": len(segment.residues) == int(room.sum()) + TAIL_PADDING,
        "header ends do not grow up to the end of the headers": bool(
            (np.diff(ends, prepend=0) >= 0).all() and (int(ends[-1]) if len(ends) else 0) == len(segment.headers)
        ),
    }
    problems = [f"{where}: {claim}" for claim, holds in claims.items() if not holds]
    if problems:
        return problems
    if not np.array_equal(segment.positions[segment.order], indices):
        return [f"{where}: positions are not the inverse of order"]
    is_tie = np.diff(lengths) == 0
    if not bool((np.diff(segment.order.astype(np.int64))[is_tie] > 0).all()):
        problems.append(f"{where}: subjects of equal length are not in the order of the FASTA")
    if not _removals_hold(segment):
        problems.append(f"{where}: the removed are no growing places of subjects, or not as many as the catalogue says")
    if not _residues_hold(segment, room, alphabet):
        problems.append(f"{where}: a residue is no letter of the alphabet, or padding is not code {PAD_CODE}")
    return problems


def _removals_hold(segment: Segment) -> bool:
    removed = segment.removed.astype(np.int64)
    if not bool((np.diff(removed, prepend=-1) > 0).all()) or (len(removed) and removed[-1] >= segment.entry.n_subjects):
        return False
    n_residues = int(segment.lengths[segment.positions[removed]].sum(dtype=np.uint64))
    return (len(removed), n_residues) == (segment.entry.n_removed, segment.entry.n_removed_residues)


def _residues_hold(segment: Segment, room: np.ndarray[tuple[int], np.dtype[np.int64]], alphabet: Alphabet) -> bool:
    stops = np.cumsum(room)
    first = 0
    while first < len(room):
        base = int(stops[first] - room[first])
        stop = max(first + 1, int(np.searchsorted(stops, base + _BLOCK_BYTES, side="right")))
        block = segment.residues[base : int(stops[stop - 1])]
        # +1 where a subject begins, -1 after its last residue: the prefix sum is 1 on residues, 0 on padding.
        change = np.zeros(len(block) + 1, dtype=np.int8)
        starts = segment.starts[first:stop].astype(np.int64) - base
        change[starts] += 1
        np.add.at(change, starts + segment.lengths[first:stop], -1)
        is_residue = np.cumsum(change[:-1], dtype=np.int8).astype(bool)
        if not bool(np.where(is_residue, alphabet.is_letter[block], block == PAD_CODE).all()):
            return False
        first = stop
    return bool((segment.residues[int(stops[-1]) if len(stops) else 0 :] == PAD_CODE).all())
