"""One segment of a packed database: its arrays, mapped into memory as they are on disk, with the checks of their use.

:mod:`swsearch.database.reader` opens a database of several segments. A segment knows which ``subject_index`` its
subjects have in the whole database; this module is the only one that translates between the two, also where the segment
is one of several slices.
"""

from __future__ import annotations

import copy
import stat
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from swsearch.arrays import Texts
from swsearch.database.format import (
    MAX_SUBJECT_LENGTH,
    SEGMENT_DTYPES,
    TAIL_PADDING,
    TAXONOMY_DTYPES,
    TOMBSTONE_DTYPE,
    Catalogue,
    SegmentEntry,
    array_path,
    padded,
)
from swsearch.database.partition import Partition
from swsearch.errors import DatabaseError
from swsearch.sequences.alphabet import ALPHABETS, PAD_CODE, Alphabet
from swsearch.typing import Codes, Lengths, Offsets, SubjectIndex
from swsearch.words import counted


def mapped_file(path: Path, dtype: np.dtype[Any], expected: int, n_items: int | None) -> np.ndarray[Any, np.dtype[Any]]:
    """A file of ``expected`` bytes, mapped read-only; raises DatabaseError for another size or kind of file."""
    if n_items is not None and expected != n_items * dtype.itemsize:
        raise DatabaseError(
            f"{path}: the catalogue gives it {counted(expected, 'byte')} for {counted(n_items, 'subject')}"
        )
    try:
        found = path.stat()
        size = found.st_size
        if not stat.S_ISREG(found.st_mode):
            raise DatabaseError(f"{path} is not a regular file; the database is damaged, index the FASTA again")
        if size != expected:
            advice = "the database is damaged, index the FASTA again"
            raise DatabaseError(f"{path} has {counted(size, 'byte')}, {expected:,} are expected; {advice}")
        if size == 0:
            return np.empty(0, dtype=dtype)
        return np.asarray(np.memmap(path, dtype=dtype, mode="r"))
    except OSError as error:
        raise DatabaseError(f"{path} cannot be read: {error.strerror or error}; the database is damaged") from error


def mapped_taxonomy(folder: Path, catalogue: Catalogue) -> dict[str, NDArray[Any]] | None:
    """The arrays of the stored taxonomy by their names; None if there is none. Raises as :func:`mapped_file`."""
    if (entry := catalogue.taxonomy) is None:
        return None
    lengths = {"taxids": entry.n_taxa, "set_of": entry.n_rows}
    arrays = {}
    for name, file in entry.files.items():
        dtype = np.dtype(TAXONOMY_DTYPES[name])
        path = folder / entry.name / f"{name}.bin"
        arrays[name] = mapped_file(path, dtype, file.size, lengths.get(name, file.size // dtype.itemsize))
    return arrays


BLOCK_HEADERS: Final = 1 << 16
"""Number of headers that are read at a time."""
_BLOCK_SUBJECTS: Final = 1 << 20
"""Number of subjects whose layout is checked at a time."""
_BLOCK_LETTERS: Final = 1 << 20
"""Number of residues that are checked at a time."""
_NO_HEADER: Final = ("header_ends.bin", "a header ends before it begins, or beyond all headers")
_NO_INVERSE: Final = ("positions.bin or order.bin", "they are not the inverse of each other")


@dataclass(frozen=True, eq=False)
class Numbering:
    """The ``subject_index`` of the remaining subjects of one FASTA, which is a segment or the whole of some slices.

    ``base`` is the ``subject_index`` of the first subject, and ``n_subjects`` the number of those that were not
    removed. ``removed`` has the FASTA indices of the others, ascending.
    """

    base: int
    n_subjects: int
    removed: SubjectIndex

    @property
    def n_whole(self) -> int:
        """Number of subjects, including removed ones, of the segment or of all slices together."""
        return self.n_subjects + len(self.removed)

    @cached_property
    def _left_before(self) -> SubjectIndex:
        # The i-th remaining subject is at FASTA index i + r, where r is the number of elements <= i of this array.
        return np.subtract(self.removed, np.arange(len(self.removed)), dtype=np.uint32, casting="unsafe")

    def holds(self, subject_index: SubjectIndex) -> NDArray[np.bool_]:
        """For each subject, whether it is in this FASTA; bool, in the shape of ``subject_index``."""
        return (subject_index >= self.base) & (subject_index < self.base + self.n_subjects)

    def fasta_index(self, subject_index: int) -> int:
        """The FASTA index of one subject of this FASTA."""
        number = subject_index - self.base
        if len(self.removed):
            number += int(np.searchsorted(self._left_before, np.uint32(number), side="right"))
        return number

    def fasta_indices(self, subject_index: SubjectIndex) -> SubjectIndex:
        """The FASTA indices of subjects of this FASTA; uint32, in the shape of ``subject_index``."""
        numbers = subject_index - np.uint32(self.base)
        if len(self.removed):
            numbers = numbers + np.searchsorted(self._left_before, numbers, side="right").astype(np.uint32)
        return numbers

    def subject_index(self, fasta_indices: SubjectIndex) -> SubjectIndex:
        """The ``subject_index`` of remaining subjects; uint32, in the shape of ``fasta_indices``, perhaps a view."""
        if len(self.removed):
            n_removed = np.searchsorted(self.removed, fasta_indices).astype(np.uint32)
            return fasta_indices - n_removed + np.uint32(self.base)
        return fasta_indices if self.base == 0 else fasta_indices + np.uint32(self.base)


class Segment:
    """One segment's arrays, mapped read-only; dtypes and shapes are those of :mod:`swsearch.database.format`.

    A *FASTA index* is the 0-based index of a subject in the FASTA from which the segment was built, including removed
    subjects. Only the remaining subjects have a ``subject_index``. The FASTA of a slice is the part of the whole FASTA
    that has the subjects of the slice.

    Methods check the data that they read, as :mod:`swsearch.database.format` specifies, and raise
    :class:`DatabaseError`, so that no value in a damaged file is used as an index outside another array. The arrays
    themselves are not modified.

    Parameters
    ----------
    folder : path
    entry : SegmentEntry
    numbering : Numbering, optional
        That of the whole segment if this is a slice; by default, that of the segment by itself.
    """

    def __init__(self, folder: Path, entry: SegmentEntry, numbering: Numbering | None = None) -> None:
        self.folder = folder
        self.entry = entry
        self.n_subjects = entry.n_subjects - entry.n_removed
        """Number of subjects that were not removed."""
        self.residues: Codes = _array(folder, entry, "residues")
        self.starts: Offsets = _array(folder, entry, "starts", entry.n_subjects)
        self.lengths: Lengths = _array(folder, entry, "lengths", entry.n_subjects)
        self.order: SubjectIndex = _array(folder, entry, "order", entry.n_subjects)
        self.positions: SubjectIndex = _array(folder, entry, "positions", entry.n_subjects)
        self.headers: Codes = _array(folder, entry, "headers")
        self.header_ends: Offsets = _array(folder, entry, "header_ends", entry.n_subjects)
        self.removed: SubjectIndex = removed_of(folder, entry)
        """FASTA indices of the removed subjects, ascending; uint32, empty if no subject was removed."""
        self.numbering = numbering or Numbering(0, self.n_subjects, self.removed)
        self.indices: SubjectIndex | None = None
        if entry.indices is not None:
            self.indices = _array(folder, entry, "indices", entry.n_subjects)
        """FASTA index in the whole segment of each subject, ascending; uint32; None if this is not a slice."""
        self.repeats = repeats_of(folder, entry)
        """Stored positions of subjects whose residues another one has, and of that one; uint32, shape (e, 2)."""
        self._has_checked_layout = False

    def numbered(self, numbering: Numbering) -> Segment:
        """The same segment with another ``subject_index`` of its subjects; the maps are shared."""
        other = copy.copy(self)
        other.numbering = numbering
        return other

    def locate(self, subject_index: SubjectIndex) -> tuple[NDArray[np.intp], SubjectIndex]:
        """Those subjects that are in this segment.

        Returns
        -------
        inside : int array
            Indices in ``subject_index``, which has one dimension, of the subjects in this segment, ascending.
        fasta_indices : uint32 array
            FASTA index, within the segment, of each of them.
        """
        (inside,) = self.numbering.holds(subject_index).nonzero()
        fasta_indices = self.numbering.fasta_indices(subject_index[inside])
        if self.indices is None:
            return inside, fasta_indices
        self._check_layout()
        own = np.searchsorted(self.indices, fasta_indices)
        is_own = self.indices[np.minimum(own, len(self.indices) - 1)] == fasta_indices
        return inside[is_own], own[is_own].astype(np.uint32)

    def fasta_index(self, subject_index: int) -> int | None:
        """The FASTA index, within the segment, of one subject; None if the subject is in another segment."""
        if not 0 <= subject_index - self.numbering.base < self.numbering.n_subjects:
            return None
        fasta_index = self.numbering.fasta_index(subject_index)
        if self.indices is None:
            return fasta_index
        self._check_layout()
        own = int(np.searchsorted(self.indices, np.uint32(fasta_index)))
        return own if own < len(self.indices) and int(self.indices[own]) == fasta_index else None

    def kept(self, first: int, stop: int) -> SubjectIndex:
        """The FASTA indices from ``first`` to ``stop`` - 1 of subjects that were not removed, ascending; uint32."""
        every = np.arange(first, stop, dtype=np.uint32)
        return np.setdiff1d(every, self.removed, assume_unique=True) if len(self.removed) else every

    def whole_indices(self, fasta_indices: SubjectIndex) -> SubjectIndex:
        """The FASTA indices of subjects in the whole segment; the argument itself if this is not a slice."""
        if self.indices is None:
            return fasta_indices
        self._check_layout()
        whole: SubjectIndex = self.indices[fasta_indices]
        return whole

    def stored_at(self, fasta_indices: SubjectIndex) -> SubjectIndex:
        """Stored positions of the subjects at ``fasta_indices``; uint32, in the shape of ``fasta_indices``."""
        self._check_layout()
        stored: SubjectIndex = self.positions[fasta_indices]
        if stored.size and (
            int(stored.max()) >= self.entry.n_subjects or bool((self.order[stored] != fasta_indices).any())
        ):
            raise self._damaged(*_NO_INVERSE)
        return stored

    def lengths_of(self, fasta_indices: SubjectIndex) -> Lengths:
        """Numbers of residues of the subjects at ``fasta_indices``; uint32, in the shape of ``fasta_indices``."""
        return self.lengths[self.stored_at(fasta_indices)]

    def stored_range(self, fasta_index: int) -> tuple[Codes, int, int]:
        """All residues, the index of the first one of the subject at ``fasta_index``, and its length."""
        self._check_layout()
        stored = int(self.positions[fasta_index])  # as stored_at, without its arrays: a search asks for every hit
        if stored >= self.entry.n_subjects or int(self.order[stored]) != fasta_index:
            raise self._damaged(*_NO_INVERSE)
        return self.residues, int(self.starts[stored]), int(self.lengths[stored])

    def range_of(self, first: int, stop: int) -> tuple[int, int]:
        """The range of FASTA indices of the segment's subjects that are at ``first`` to ``stop`` - 1 of the whole."""
        if self.indices is None:
            return min(first, self.entry.n_subjects), min(stop, self.entry.n_subjects)
        self._check_layout()
        begin, end = np.searchsorted(self.indices, np.array([first, stop]))
        return int(begin), int(end)

    def is_left(self) -> NDArray[np.bool_]:
        """For each FASTA index, whether its subject is still part of the database; bool, shape (n,)."""
        left = np.ones(self.entry.n_subjects, dtype=np.bool_)
        left[self.removed] = False
        return left

    def partition(self) -> Partition:
        """The remaining subjects in stored order; ``residues`` is a view, the smaller arrays are views or copies."""
        self._check_layout()
        stored = Partition(self.residues, self.starts, self.lengths, self.order, self.repeats)
        if len(self.removed):
            stored = stored[np.flatnonzero(self.is_left()[self.order])]
        subject_index = self.numbering.subject_index(self.whole_indices(stored.subject_index))
        return replace(stored, subject_index=subject_index)

    def header(self, fasta_index: int) -> bytes:
        """The header of the subject at ``fasta_index``, as it was read from the FASTA."""
        begin = int(self.header_ends[fasta_index - 1]) if fasta_index else 0
        end = int(self.header_ends[fasta_index])  # as packed_headers, without its arrays: a search asks for every hit
        if not begin <= end <= len(self.headers):
            raise self._damaged(*_NO_HEADER)
        return self.headers[begin:end].tobytes()

    def packed_headers(self, first: int, stop: int) -> Texts:
        """The headers of the subjects at FASTA indices ``first`` to ``stop`` - 1, removed subjects included."""
        begin = self.header_ends[first - 1] if first else np.uint64(0)
        ends = self.header_ends[first:stop]
        if int(ends[-1]) > len(self.headers) or bool((ends < np.concatenate(([begin], ends[:-1]))).any()):
            raise self._damaged(*_NO_HEADER)
        return Texts(self.headers[int(begin) : int(ends[-1])], ends - begin)

    def _check_layout(self) -> None:
        """Check the layout, once."""
        if not self._has_checked_layout and (found := self.layout_problem()) is not None:
            raise self._damaged(*found)
        self._has_checked_layout = True

    def layout_problem(self) -> tuple[str, str] | None:
        """The file and the rule of the format that it breaks, so that a value would lead out of an array; or None.

        Every subject must be stored at the offset that the format requires, inside the residues.
        """
        begin, shortest = 0, 1
        for first in range(0, self.entry.n_subjects, _BLOCK_SUBJECTS):
            part = slice(first, first + _BLOCK_SUBJECTS)
            lengths = self.lengths[part].astype(np.int64)
            if lengths[0] < shortest or bool((np.diff(lengths) < 0).any()) or lengths[-1] > MAX_SUBJECT_LENGTH:
                return "lengths.bin", "lengths do not grow from 1 on, or a subject is too long"
            ends = begin + np.cumsum(padded(lengths))
            starts = self.starts[part]
            if int(starts[0]) != begin or not np.array_equal(starts[1:], ends[:-1].astype(np.uint64)):
                return "starts.bin or lengths.bin", "the subjects do not lie side by side"
            if int(self.order[part].max()) >= self.entry.n_subjects:
                return "order.bin", "a place is that of no subject"
            begin, shortest = int(ends[-1]), int(lengths[-1])
        if begin + TAIL_PADDING != len(self.residues):
            return "lengths.bin or residues.bin", "the residues are not as many as the lengths say"
        last = -1
        whole = np.empty(0, dtype=np.uint32) if self.indices is None else self.indices
        for first in range(0, len(whole), _BLOCK_SUBJECTS):
            indices = whole[first : first + _BLOCK_SUBJECTS].astype(np.int64)
            if bool((np.diff(indices, prepend=last) <= 0).any()) or int(indices[-1]) >= self.numbering.n_whole:
                return "indices.bin", "the indices do not grow, or are those of no subject"
            last = int(indices[-1])
        rows, others = self.repeats.T
        if len(rows) and (int(self.repeats.max()) >= self.entry.n_subjects or bool((rows[1:] <= rows[:-1]).any())):
            return "repeats.bin", "the places do not grow, or are those of no subject"
        are_equal = self.lengths[rows] == self.lengths[others]
        if not np.array_equal(are_equal, others < rows):
            return "repeats.bin", "a subject is part of a shorter one, or equal to a later one"
        is_repeat = np.zeros(self.entry.n_subjects, dtype=np.bool_)
        is_repeat[rows] = True
        if bool(is_repeat[others[~are_equal]].any()):
            return "repeats.bin", "a subject that has another one's residues is itself part of one"
        return None

    def check_letters(self, codes: Codes, alphabet: Alphabet, *, padded: bool = False) -> None:
        """Check that residue codes of this segment are letters or, if ``padded``, letters or padding."""
        known = alphabet.letter_codes + (bytes([PAD_CODE]) if padded else b"")
        for first in range(0, len(codes), _BLOCK_LETTERS):
            if codes[first : first + _BLOCK_LETTERS].tobytes().translate(None, known):  # what is left is not a letter
                raise self._damaged("residues.bin", f"a residue is not a letter of alphabet {alphabet.name}")

    def _damaged(self, file: str, problem: str) -> DatabaseError:
        advice = "`swsearch db verify` tells which files have changed; index the FASTA again"
        return DatabaseError(f"{self.folder} is damaged, {file}: {problem}; {advice}")


def _array(folder: Path, entry: SegmentEntry, name: str, n_items: int | None = None) -> np.ndarray[Any, np.dtype[Any]]:
    """One array of a segment that has it."""
    return mapped_file(array_path(folder, name), np.dtype(SEGMENT_DTYPES[name]), entry.arrays[name].size, n_items)


def repeats_of(folder: Path, entry: SegmentEntry) -> NDArray[np.uint32]:
    """The pairs of ``repeats.bin``; uint32, shape (e, 2)."""
    if entry.repeats is None:
        return np.empty((0, 2), dtype=np.uint32)
    if entry.repeats.size % 8:
        path = array_path(folder, "repeats")
        raise DatabaseError(f"{path} is damaged: it has half a pair; index the FASTA again")
    return _array(folder, entry, "repeats").reshape(-1, 2)


def removed_of(folder: Path, entry: SegmentEntry) -> SubjectIndex:
    """The FASTA indices of the removed subjects of a segment, checked to be ascending and valid."""
    if entry.removed is None:
        return np.empty(0, dtype=np.uint32)
    path = folder / entry.removed.name
    removed = mapped_file(path, np.dtype(TOMBSTONE_DTYPE), entry.removed.file.size, entry.removed.n_subjects)
    if int(removed[-1]) >= entry.n_subjects or bool((removed[1:] <= removed[:-1]).any()):
        raise DatabaseError(f"{path} is damaged: the removed are no growing places of subjects; index the FASTA again")
    return removed


def parts_of(segments: Iterable[Segment]) -> list[tuple[Segment, ...]]:
    """The slices of one FASTA together, and each further segment by itself; slices share their numbering."""
    return [tuple(part) for _, part in groupby(segments, key=lambda segment: id(segment.numbering))]


def shifted(segments: Iterable[Segment], n_before: int) -> Iterator[Segment]:
    """The segments with subjects that are numbered behind ``n_before`` others; the maps are shared."""
    for part in parts_of(segments):
        behind = replace(part[0].numbering, base=part[0].numbering.base + n_before)
        yield from (segment.numbered(behind) for segment in part)


def header_ranges(n_subjects: int) -> Iterator[tuple[int, int]]:
    """Ranges of FASTA indices whose headers are read at a time."""
    for first in range(0, n_subjects, BLOCK_HEADERS):
        yield first, min(first + BLOCK_HEADERS, n_subjects)


def header_blocks(part: Sequence[Segment], *, with_removed: bool = False) -> Iterator[tuple[SubjectIndex, list[str]]]:
    """FASTA indices, ascending, and headers of the subjects of a segment, or of slices together, in blocks.

    Removed subjects are left out, unless ``with_removed`` asks for them.
    """
    for first, stop in header_ranges(part[0].numbering.n_whole):
        indices = [np.empty(0, dtype=np.uint32)]
        headers: list[str] = []
        for segment in part:
            begin, end = segment.range_of(first, stop)
            if begin < end:
                own = np.arange(begin, end, dtype=np.uint32) if with_removed else segment.kept(begin, end)
                raw = list(segment.packed_headers(begin, end))
                indices.append(segment.whole_indices(own))
                headers += [raw[index - begin].decode("utf-8", "surrogateescape") for index in own.tolist()]
        fasta_indices = np.concatenate(indices)
        if len(part) > 1:
            order = np.argsort(fasta_indices, kind="stable")
            fasta_indices, headers = fasta_indices[order], [headers[place] for place in order.tolist()]
        yield fasta_indices, headers


def map_segments(folder: Path, catalogue: Catalogue, numbers: Collection[int] | None = None) -> tuple[Segment, ...]:
    """The segments of a catalogue in its order, or those with the given numbers; raises as :func:`mapped_file`."""
    if catalogue.alphabet not in ALPHABETS:
        raise DatabaseError(f"{folder}: alphabet {catalogue.alphabet!r} is unknown to this program")
    segments: list[Segment] = []
    base, shared = 0, None
    if catalogue.whole is not None:
        removed = removed_of(folder, catalogue.whole)  # those of all slices, of which perhaps not all are opened
        base = catalogue.whole.n_subjects - catalogue.whole.n_removed
        shared = Numbering(0, base, removed)
    for number, entry in enumerate(catalogue.segments):
        if numbers is None or number in numbers:
            segment = Segment(folder / entry.name, entry, shared if entry.is_slice else None)
            segments += [segment] if entry.is_slice else shifted([segment], base)
        if not entry.is_slice:
            base += entry.n_subjects - entry.n_removed
    return tuple(segments)
