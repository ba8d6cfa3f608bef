"""Verification of a packed database: of every file against its SHA-256, of every array against the format's rules.

Files are hashed side by side, and blocks of arrays are checked on several threads. The memory in use is that of a few
blocks, and one byte per subject of a segment.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from swsearch import _native
from swsearch.database.format import TAIL_PADDING, Catalogue, FileEntry, content_digest, padded
from swsearch.database.opening import MAX_ATTEMPTS, load_catalogue, open_database
from swsearch.database.reader import PackedDatabase
from swsearch.database.segment import Segment
from swsearch.errors import DatabaseError
from swsearch.sequences.alphabet import PAD_CODE, Alphabet
from swsearch.threads import Threads

_BLOCK_BYTES: Final = 4 << 20
_BLOCK_SUBJECTS: Final = 1 << 18


def verify_path(path: str | os.PathLike[str], *, threads: int | None = None) -> list[str]:
    """All problems of the database at a path, as :func:`verify` reports them.

    A compaction may remove files while they are read. Problems are therefore reported only if the catalogue is still
    the one that was opened; otherwise the new generation is verified.

    Raises
    ------
    DatabaseError
        The database cannot be opened, or it changes so often that no generation can be verified.
    """
    for _ in range(MAX_ATTEMPTS):
        with open_database(path) as database:
            problems = verify(database, threads=threads)
        if not problems or load_catalogue(database.path) == database.catalogue:
            return problems
    raise DatabaseError(f"{path} changes so often that it cannot be verified; wait until its writers have ended")


def verify(database: PackedDatabase, *, threads: int | None = None) -> list[str]:
    """All problems of an open database, one line each; an empty list if there are none.

    Every changed byte is detected: in the arrays by this function, and in the catalogue, except for white space in its
    JSON, when the database is opened.

    Parameters
    ----------
    database : PackedDatabase
    threads : int, optional
        Number of threads, at least 1; by default, one per usable core, and at most 16.
    """
    problems: list[str] = []
    with Threads(threads) as used:
        changed = changed_files(database.path, database.catalogue.files, used)
        for segment in database.segments:
            lines = changed.get(segment.entry.name)
            problems += lines or _structure_problems(segment, str(segment.folder), database.alphabet, used)
        problems = problems or _slice_problems(database, changed)
        problems += _taxonomy_problems(database, changed)
    return [*catalogue_problems(database.path, database.catalogue), *problems]


def catalogue_problems(path: Path, catalogue: Catalogue) -> list[str]:
    """Contradictions within a valid catalogue, which only a faulty writer can produce; a line each."""
    if catalogue.digest == content_digest(catalogue.alphabet, catalogue.content):
        return []
    return [f"{path}: the digest in the catalogue is not that of its files"]


def changed_files(database: Path, files: Mapping[str, FileEntry], threads: Threads) -> dict[str, list[str]]:
    """A line for each file that cannot be read, or has another SHA-256 than its entry, by the folder that has it.

    Files have their paths below the folder of the database; one that lies in no other folder is by itself.
    """
    # The largest first, so that no thread is left with one of them in the end.
    order = sorted(files, key=lambda name: -files[name].size)
    changes = threads.in_order(lambda name: _change_of(database / name, files[name]), order)
    lines = dict(zip(order, changes, strict=True))
    found: dict[str, list[str]] = {}
    for name in files:
        if (line := lines[name]) is not None:
            found.setdefault(name.partition("/")[0], []).append(line)
    return found


def _change_of(path: Path, expected: FileEntry) -> str | None:
    try:
        with open(path, "rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        return f"{path} cannot be read: {error.strerror or error}"
    if found == expected.sha256:
        return None
    return f"{path} has changed since it was written: SHA-256 {found}, expected {expected.sha256}"


def _structure_problems(segment: Segment, where: str, alphabet: Alphabet, threads: Threads) -> list[str]:
    """Violations of the format in files with correct digests; only an incorrect writer can produce them."""
    problems = [f"{where}: {problem}" for problem in _array_problems(segment)]
    if problems:
        return problems
    blocks = [slice(first, first + _BLOCK_SUBJECTS) for first in range(0, segment.entry.n_subjects, _BLOCK_SUBJECTS)]

    def is_inverse(part: slice) -> bool:
        order = segment.order[part]
        return np.array_equal(segment.positions[order], np.arange(part.start, part.start + len(order)))

    def all_hold(function: Callable[[slice], bool], parts: Sequence[slice] | Iterator[slice]) -> bool:
        return all(threads.in_order(function, parts))

    if not all_hold(is_inverse, blocks):
        return [f"{where}: positions are not the inverse of order"]
    if not all_hold(lambda part: _ties_hold(segment, part), blocks):
        problems.append(f"{where}: subjects of equal length are not in the order of the FASTA")
    if not _removals_hold(segment):
        problems.append(f"{where}: the removed are no growing places of subjects, or not as many as the catalogue says")
    if not all(_has_residues(segment, row, other) for row, other in segment.repeats.tolist()):
        problems.append(f"{where}: subjects that are said to be equal, or part of others, are not")
    padding = segment.residues[len(segment.residues) - TAIL_PADDING :]
    holds = all_hold(lambda part: _residues_hold(segment, part, alphabet), _residue_blocks(segment))
    if not holds or not bool((padding == PAD_CODE).all()):
        problems.append(f"{where}: a residue is not a letter of the alphabet, or padding is not code {PAD_CODE}")
    return problems


def _array_problems(segment: Segment) -> list[str]:
    """Violations in the arrays with an element per subject, which are read once."""
    entry = segment.entry
    n = entry.n_subjects
    is_by_length = is_side_by_side = is_permutation = headers_grow = True
    n_residues = end = 0
    previous_length, previous_end = 1, 0
    is_found = np.zeros(n, dtype=np.bool_)
    for first in range(0, n, _BLOCK_SUBJECTS):
        part = slice(first, first + _BLOCK_SUBJECTS)
        lengths = segment.lengths[part].astype(np.int64)
        is_by_length &= bool((np.diff(lengths, prepend=previous_length) >= 0).all())
        rooms = padded(lengths)
        ends = end + np.cumsum(rooms)
        is_side_by_side &= np.array_equal(segment.starts[part].astype(np.int64), ends - rooms)
        order = segment.order[part]
        if int(order.max()) >= n:
            is_permutation = False
        else:
            is_found[order] = True
        headers = segment.header_ends[part].astype(np.int64)
        headers_grow &= bool((np.diff(headers, prepend=previous_end) >= 0).all())
        n_residues += int(lengths.sum())
        end, previous_length, previous_end = int(ends[-1]), int(lengths[-1]), int(headers[-1])
    bounds = int(segment.lengths[0]), int(segment.lengths[-1])
    claims = {
        "the residues are not as many as the catalogue says": n_residues == entry.n_residues,
        "subjects are not stored by length": is_by_length,
        "the shortest and longest subject are not those of the catalogue": bounds == (entry.shortest, entry.longest),
        "order is not a permutation": is_permutation and bool(is_found.all()),
        "starts are not those of subjects side by side": is_side_by_side,
        "residues have not the size of all subjects": len(segment.residues) == end + TAIL_PADDING,
        "header ends do not grow up to the end of the headers": headers_grow and previous_end == len(segment.headers),
    }
    return [claim for claim, holds in claims.items() if not holds]


def _ties_hold(segment: Segment, part: slice) -> bool:
    overlapping = slice(max(part.start - 1, 0), part.stop)
    is_tie = np.diff(segment.lengths[overlapping].astype(np.int64)) == 0
    return bool((np.diff(segment.order[overlapping].astype(np.int64))[is_tie] > 0).all())


def _has_residues(segment: Segment, row: int, other: int) -> bool:
    """Whether the residues of a stored subject are all or part of those of another one."""
    starts, lengths = (array[[row, other]].tolist() for array in (segment.starts, segment.lengths))
    one, whole = (segment.residues[start : start + n].tobytes() for start, n in zip(starts, lengths, strict=True))
    return one in whole


def _removals_hold(segment: Segment) -> bool:
    removed = segment.removed.astype(np.int64)
    if not bool((np.diff(removed, prepend=-1) > 0).all()) or (len(removed) and removed[-1] >= segment.entry.n_subjects):
        return False
    n_residues = int(segment.lengths[segment.positions[removed]].sum(dtype=np.uint64))
    return (len(removed), n_residues) == (segment.entry.n_removed, segment.entry.n_removed_residues)


def _residue_blocks(segment: Segment) -> Iterator[slice]:
    """Ranges of stored subjects with about 4 MB of residues, or of a single longer subject."""
    starts, first = segment.starts, 0
    while first < len(starts):
        limit = starts[first] + np.uint64(_BLOCK_BYTES)
        stop = max(first + 1, int(np.searchsorted(starts, limit, side="right")) - 1)
        yield slice(first, stop)
        first = stop


def _residues_hold(segment: Segment, part: slice, alphabet: Alphabet) -> bool:
    starts = segment.starts[part]
    lengths = segment.lengths[part]
    base = starts[0]
    residues = segment.residues[int(base) : int(starts[-1]) + padded(int(lengths[-1]))]
    return _native.residues_hold(residues, starts - base, lengths, alphabet.is_letter.view(np.uint8), PAD_CODE)


def _taxonomy_problems(database: PackedDatabase, changed: Mapping[str, list[str]]) -> list[str]:
    entry = database.catalogue.taxonomy
    if entry is None:
        return []
    if entry.name in changed:
        return changed[entry.name]
    try:
        taxonomy = database.taxonomy
    except DatabaseError as error:
        return [str(error)]
    n_taxa = 0 if taxonomy is None else len(taxonomy.tree)
    if n_taxa == entry.n_taxa:
        return []
    return [f"{database.path / entry.name}: the taxa are not as many as the catalogue says"]


def _slice_problems(database: PackedDatabase, changed: Mapping[str, list[str]]) -> list[str]:
    """Whether each subject of the whole segment is in exactly one slice."""
    whole = database.catalogue.whole
    if whole is None:
        return []
    slices = [segment for segment in database.segments if segment.entry.is_slice]
    for first in range(0, whole.n_subjects, _BLOCK_SUBJECTS):
        n = min(_BLOCK_SUBJECTS, whole.n_subjects - first)
        count = np.zeros(n, dtype=np.uint16)
        for segment in slices:
            begin, end = segment.range_of(first, first + n)
            if segment.indices is not None:
                count[segment.indices[begin:end] - np.uint32(first)] += 1
        if not bool((count == 1).all()):
            return [f"{database.path}: the slices do not have each subject once"]
    if whole.removed is not None:
        if whole.removed.name in changed:
            return changed[whole.removed.name]
        removed = np.sort(np.concatenate([segment.whole_indices(segment.removed) for segment in slices]))
        if not np.array_equal(removed, slices[0].numbering.removed):
            return [f"{database.path}: the removed subjects of the slices are not those of all slices together"]
    return []
