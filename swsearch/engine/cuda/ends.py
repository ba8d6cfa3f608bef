"""Where the best alignments of scored subjects end: what goes to the kernel ``list_ends``, and what comes back.

Comes after the scores, for the few subjects whose alignments are wanted. Subjects much longer than the query are cut
into windows, so that a genome fills the device: an alignment of score S has gaps that cost at most G - S, where G is
the sum of the best scores of the query's rows, so it spans at most length + (G - S - open) / extend columns, and
windows that overlap by that hold each such alignment whole. H in a window is never larger than in the subject; so
a cell of a window whose H is S is an end, and the first end of the subject is the first one of its windows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch.database.format import SUBJECT_ALIGNMENT, TAIL_PADDING
from swsearch.database.partition import Partition
from swsearch.engine.cuda.kernels import Arithmetic
from swsearch.engine.cuda.plan import fits_fast
from swsearch.errors import EngineError, InputError
from swsearch.hits.ends import Ends
from swsearch.query.profile import QueryProfile
from swsearch.sequences.alphabet import PAD_CODE
from swsearch.typing import Lengths, Scores

LEAST_STRIDE: Final = 4096
"""Columns from window to window, at least: fewer only add overlap."""
GROUP_BYTES: Final = 32 << 20
"""Residues that are uploaded at a time, unless a single window has more."""

Places = NDArray[np.uint64]
"""Ends in stretches, shape ``(n,)``: column * 2**32 + row, both counted from 0; ``NOWHERE`` where there is none."""
NOWHERE: Final = np.uint64(2**64 - 1)

FindPlaces = Callable[[QueryProfile, Arithmetic, Partition, Scores], tuple[Scores, Places]]
"""Looks for cells of given scores, above 0, in subjects: the best score of each, and the first such cell."""


def arithmetic_for(profile: QueryProfile, score: int) -> Arithmetic:
    """The narrowest type that holds all of a subject whose best score this is."""
    arithmetic = Arithmetic.FAST if fits_fast(profile) else Arithmetic.SHORT
    while score > arithmetic.largest_exact(profile.max_score):
        wider = arithmetic.wider
        if wider is None:
            raise InputError(f"a score of {score} is beyond what 32 bits hold for certain")
        arithmetic = wider
    return arithmetic


def spans(profile: QueryProfile, scores: Scores) -> NDArray[np.int64] | None:
    """Most subject columns of alignments of these scores; None where gaps cost nothing to extend."""
    if profile.gap.extend == 0:
        return None
    best = np.maximum(profile.table.max(axis=1), 0).astype(np.int64)
    for_gaps = int(best[profile.rows].sum()) - scores.astype(np.int64) - profile.gap.open
    return profile.length + np.maximum(for_gaps, 0) // profile.gap.extend


@dataclass(frozen=True, eq=False)
class Stretches:
    """Subjects, or windows of them.

    Attributes
    ----------
    subject : int64 array, shape (n,)
        Place of the subject that each is of.
    begin, length : int64 array, shape (n,)
        Its first column, and how many it has: at least 1.
    """

    subject: NDArray[np.int64]
    begin: NDArray[np.int64]
    length: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.subject)

    def __getitem__(self, rows: NDArray[np.intp]) -> Stretches:
        return Stretches(self.subject[rows], self.begin[rows], self.length[rows])

    def groups(self, max_bytes: int) -> Iterator[Stretches]:
        """These, in groups of at most ``max_bytes`` residues or of one stretch."""
        ends = np.cumsum(self.length + -self.length % SUBJECT_ALIGNMENT)
        first = 0
        while first < len(self):
            before = int(ends[first - 1]) if first else 0
            stop = max(first + 1, int(np.searchsorted(ends, before + max_bytes, side="right")))
            yield self[np.arange(first, stop)]
            first = stop

    def gathered(self, subjects: Partition) -> Partition:
        """Their residues side by side as the kernels read them, by length; ``subject_index`` is the row here."""
        order = np.argsort(self.length, kind="stable")
        lengths = self.length[order]
        starts = np.concatenate([[0], np.cumsum(lengths + -lengths % SUBJECT_ALIGNMENT)])
        residues = np.full(int(starts[-1]) + TAIL_PADDING, PAD_CODE, dtype=np.uint8)
        first = subjects.starts[self.subject[order]].astype(np.int64) + self.begin[order]
        for to, source, length in zip(starts.tolist(), first.tolist(), lengths.tolist(), strict=False):
            residues[to : to + length] = subjects.residues[source : source + length]
        return Partition(residues, starts[:-1].astype(np.uint64), lengths.astype(np.uint32), order.astype(np.uint32))


def stretches_of(places: NDArray[np.intp], lengths: Lengths, columns: NDArray[np.int64] | None) -> Stretches:
    """The subjects at some places, those in windows that are far longer than an alignment.

    Parameters
    ----------
    places : int array, shape (n,)
    lengths : uint32 array, shape (n,)
    columns : int64 array, shape (n,), or None
        Most columns of an alignment with each; None where nothing bounds them.
    """
    whole = lengths.astype(np.int64)
    spanned = whole if columns is None else columns
    stride = np.maximum(spanned, LEAST_STRIDE)
    n_windows = np.where(whole > spanned + 2 * stride, -(-(whole - spanned) // stride), np.minimum(whole, 1))
    row = np.repeat(np.arange(len(whole)), n_windows)
    number = np.arange(len(row)) - np.repeat(np.cumsum(n_windows) - n_windows, n_windows)
    begin = number * stride[row]
    length = np.where(n_windows[row] > 1, np.minimum((spanned + stride)[row], whole[row] - begin), whole[row])
    return Stretches(places[row].astype(np.int64), begin, length)


def find_ends(
    find: FindPlaces, profile: QueryProfile, subjects: Partition, scores: Scores, group_bytes: int = GROUP_BYTES
) -> Ends:
    """The ends of the best alignments of one query with some subjects; see :meth:`CudaEngine.ends`."""
    if len(scores) != len(subjects):
        raise InputError(f"there are {len(scores)} scores for {len(subjects)} subjects; give one of each")
    best = np.zeros(len(subjects), dtype=np.int32)
    first = np.full(len(subjects), NOWHERE, dtype=np.uint64)
    columns = spans(profile, scores)
    types = [arithmetic_for(profile, score) if score > 0 else None for score in scores.tolist()]
    for arithmetic in Arithmetic:
        places = np.array([place for place, of_place in enumerate(types) if of_place is arithmetic], dtype=np.intp)
        listed = stretches_of(places, subjects.lengths[places], None if columns is None else columns[places])
        for group in listed.groups(group_bytes):
            gathered = group.gathered(subjects)
            found = group[gathered.subject_index.astype(np.intp)]
            found_best, found_places = find(profile, arithmetic, gathered, scores[found.subject])
            moved = found_places + (found.begin.astype(np.uint64) << np.uint64(32))
            np.maximum.at(best, found.subject, found_best)
            np.minimum.at(first, found.subject, np.where(found_places == NOWHERE, NOWHERE, moved))
    wrong = np.flatnonzero((best != scores) | ((first == NOWHERE) & (scores > 0)))
    if wrong.size:
        place = int(wrong[0])
        raise EngineError(f"subject {place}: its score is given as {scores[place]}, its best is {best[place]}")
    ends = np.where(scores > 0, first + np.uint64((1 << 32) + 1), np.uint64(0))
    return Ends((ends & np.uint64(0xFFFFFFFF)).astype(np.int64), (ends >> np.uint64(32)).astype(np.int64))
