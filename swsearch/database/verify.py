"""Verification of a packed database: of every file against its SHA-256, of every array against the format's rules.

Files are hashed side by side, and blocks of arrays are checked on several threads. The memory in use is that of a few
blocks.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from swsearch import _native
from swsearch.database.format import Catalogue, FileEntry, content_digest
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
            if lines := changed.get(segment.entry.name):
                problems += lines
            else:
                found = _structure_problems(segment, database.alphabet, used)
                problems += [f"{segment.folder}: {problem}" for problem in found]
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


def _structure_problems(segment: Segment, alphabet: Alphabet, threads: Threads) -> list[str]:
    """Violations of the format in files with correct digests; only an incorrect writer can produce them."""
    if (found := segment.layout_problem()) is not None:
        return [": ".join(found)]
    entry = segment.entry
    blocks = [slice(first, first + _BLOCK_SUBJECTS) for first in range(0, entry.n_subjects, _BLOCK_SUBJECTS)]

    def all_hold(function: Callable[[slice], bool], parts: Iterable[slice] = blocks) -> bool:
        return all(threads.in_order(function, parts))

    def is_inverse(part: slice) -> bool:
        order = segment.order[part]
        return np.array_equal(segment.positions[order], np.arange(part.start, part.start + len(order)))

    def differences(array: NDArray[Any], part: slice) -> NDArray[np.int64]:
        """Those of the values of a part, and of its first one to the one before."""
        values = array[max(part.start - 1, 0) : part.stop].astype(np.int64)
        return values[1:] - values[:-1]

    def headers_grow(part: slice) -> bool:
        return bool((differences(segment.header_ends, part) >= 0).all())

    def ties_hold(part: slice) -> bool:
        return bool((differences(segment.order, part)[differences(segment.lengths, part) == 0] > 0).all())

    if not all_hold(is_inverse):
        return ["positions are not the inverse of order"]
    n_residues, n_removed = (
        int(lengths.sum(dtype=np.uint64)) for lengths in (segment.lengths, segment.lengths_of(segment.removed))
    )
    bounds = int(segment.lengths[0]), int(segment.lengths[-1])
    headers_end = int(segment.header_ends[0]) <= int(segment.header_ends[-1]) == len(segment.headers)
    have_residues = (_has_residues(segment, row, other) for row, other in segment.repeats.tolist())
    hold = all_hold(lambda part: _residues_hold(segment, part, alphabet), _residue_blocks(segment))
    claims = {
        "the residues are not as many as the catalogue says": n_residues == entry.n_residues,
        "the removed residues are not as many as the catalogue says": n_removed == entry.n_removed_residues,
        "the shortest and longest subject are not those of the catalogue": bounds == (entry.shortest, entry.longest),
        "header ends do not grow up to the end of the headers": headers_end and all_hold(headers_grow),
        "subjects of equal length are not in the order of the FASTA": all_hold(ties_hold),
        "subjects that are said to be equal, or part of others, are not": all(have_residues),
        f"a residue is not a letter of the alphabet, or padding is not code {PAD_CODE}": hold,
    }
    return [claim for claim, holds in claims.items() if not holds]


def _has_residues(segment: Segment, row: int, other: int) -> bool:
    """Whether the residues of a stored subject are all or part of those of another one."""
    starts, lengths = (array[[row, other]].tolist() for array in (segment.starts, segment.lengths))
    one, whole = (segment.residues[start : start + n].tobytes() for start, n in zip(starts, lengths, strict=True))
    return one in whole


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
    end = int(segment.starts[part.stop]) if part.stop < len(segment.starts) else len(segment.residues)
    residues, lengths = segment.residues[int(starts[0]) : end], segment.lengths[part]
    return _native.residues_hold(residues, starts - starts[0], lengths, alphabet.is_letter.view(np.uint8), PAD_CODE)


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
