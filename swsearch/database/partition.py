"""Partitions: ranges of stored subjects, which have similar lengths because the database is stored by length.

One call of an engine scores one partition. A partition contains views of the mapped arrays, not copies. The division of
a database into partitions affects when results become available but not the results: a hit refers to its subject by
``subject_index``, the index in FASTA order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from swsearch.arrays import ranges_within
from swsearch.database.format import TAIL_PADDING, padded
from swsearch.sequences.alphabet import PAD_CODE
from swsearch.typing import Codes, Lengths, Offsets, SubjectIndex


@dataclass(frozen=True, eq=False)
class Partition:
    """Consecutive stored subjects, with their residue codes and lengths.

    Attributes
    ----------
    residues : uint8 array
        The residue codes of the complete segment, with the padding of :mod:`swsearch.database.format`.
    starts : uint64 array, shape (n_subjects,)
        Index of each subject's first residue in ``residues``; a multiple of 16, ascending.
    lengths : uint32 array, shape (n_subjects,)
        Number of residues of each subject, ascending.
    subject_index : uint32 array, shape (n_subjects,)
        Index of each subject in the database's FASTA order.
    repeats : uint32 array, shape (n_repeats, 2), optional
        Rows of subjects whose residues are all or part of those of another row, ascending, and that row: an earlier one
        if they are equal, else that of a longer subject. Perhaps not all of them.
    """

    residues: Codes
    starts: Offsets
    lengths: Lengths
    subject_index: SubjectIndex
    repeats: NDArray[np.uint32] | None = None

    @classmethod
    def pack(cls, subjects: Sequence[Codes]) -> Partition:
        """A partition in memory with the layout of the packed format, sorted by length, then by the argument's order.

        Parameters
        ----------
        subjects : sequence of uint8 array
            Residue codes of each subject; its index in the sequence is its ``subject_index``.
        """
        sizes = np.array([len(subject) for subject in subjects], dtype=np.uint32)
        order = np.argsort(sizes, kind="stable")
        ends = np.cumsum(padded(sizes[order].astype(np.int64)))
        starts = np.concatenate(([0], ends))
        residues = np.full(int(starts[-1]) + TAIL_PADDING, PAD_CODE, dtype=np.uint8)
        for start, index in zip(starts.tolist(), order.tolist(), strict=False):
            residues[start : start + len(subjects[index])] = subjects[index]
        return cls(residues, starts[:-1].astype(np.uint64), sizes[order], order.astype(np.uint32))

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def memory(self) -> tuple[int, ...]:
        """The addresses of its arrays and its number of subjects, which tell apart partitions that are alive: those of
        the same subjects in the same memory, under the same indices, have the same.
        """
        arrays = self.residues, self.starts, self.lengths, self.subject_index
        return (*(array.ctypes.data for array in arrays), len(self))

    @cached_property
    def n_residues(self) -> int:
        """Number of residues of all subjects, without padding."""
        return int(self.lengths.sum(dtype=np.uint64))

    @cached_property
    def residue_span(self) -> tuple[int, int]:
        """Offsets in ``residues`` of the first subject and of the end of the last, padding included."""
        if len(self) == 0:
            return 0, 0
        return int(self.starts[0]), int(self.starts[-1]) + padded(int(self.lengths[-1]))

    def codes(self, row: int) -> Codes:
        """Residue codes of the subject at ``row`` of this partition, 0 ≤ row < len(self)."""
        start = int(self.starts[row])
        return self.residues[start : start + int(self.lengths[row])]

    def split(self, max_residues: int | None) -> Iterator[Partition]:
        """Divide the partition into parts of at most ``max_residues`` residues; a longer subject is a separate part.

        None gives the whole partition. No part is empty.
        """
        if max_residues is not None:
            yield from (self[part] for part in ranges_within(self.lengths, max_residues))
        elif len(self):
            yield self

    def __getitem__(self, rows: slice | NDArray[np.intp]) -> Partition:
        """The subjects of a range of rows, or of an ascending array of rows."""
        repeats = None if self.repeats is None else _among(self.repeats, rows, len(self))
        return Partition(self.residues, self.starts[rows], self.lengths[rows], self.subject_index[rows], repeats)

    @cached_property
    def distinct(self) -> Partition:
        """The subjects whose residues are not those of an earlier one."""
        return self if self.repeats is None else self._without(self.repeats[self.repeats[:, 1] < self.repeats[:, 0]])

    @cached_property
    def maximal(self) -> Partition:
        """The distinct subjects whose residues are not part of a longer one either."""
        if self.repeats is None or bool((self.repeats[:, 1] < self.repeats[:, 0]).all()):
            return self.distinct
        return self._without(self.repeats)

    def _without(self, repeats: NDArray[np.uint32]) -> Partition:
        if not len(repeats):
            return self
        is_kept = np.ones(len(self), dtype=np.bool_)
        is_kept[repeats[:, 0]] = False
        return Partition(self.residues, self.starts[is_kept], self.lengths[is_kept], self.subject_index[is_kept])


def _among(repeats: NDArray[np.uint32], rows: slice | NDArray[np.intp], n_subjects: int) -> NDArray[np.uint32]:
    """The repeats of which both subjects are among some rows, as places in these."""
    if isinstance(rows, slice):
        first, stop, _ = rows.indices(n_subjects)
        begin, end = np.searchsorted(repeats[:, 0], np.array([first, stop], dtype=np.uint32))
        found = repeats[begin:end]
        return found[(found[:, 1] >= first) & (found[:, 1] < stop)] - np.uint32(first)
    if not len(repeats) or not len(rows):
        return repeats[:0]
    places = np.searchsorted(rows, repeats)
    is_there: NDArray[np.bool_] = (rows[np.minimum(places, len(rows) - 1)] == repeats).all(axis=1)
    found = places[is_there].astype(np.uint32)
    return found
