"""Cuts long subjects into overlapping windows, each of which the device scores as a subject of its own.

H in a window is never larger than in its subject, because a window begins with H = 0; and windows overlap by the
columns that an alignment can span, so every alignment lies completely within one. Therefore the subject's score is the
largest score of its windows, and a bound or a floor that holds for all windows holds for the subject. Inputs are a
partition and score requests; the output is a partition of windows and, from its score blocks, those of the subjects.

:class:`SubjectCutter` gathers the windows of genomes. ``launches`` cuts a few long subjects among others, and
``end_positions`` the subjects of alignments.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch.arrays import ranges_within
from swsearch.database.format import SUBJECT_ALIGNMENT, padded
from swsearch.database.partition import Partition
from swsearch.engine.cuda.runtime.kernels import MAX_LIST_WARPS, Arithmetic
from swsearch.engine.cuda.search.plan import BOUND_SPEEDUP
from swsearch.engine.cuda.search.planner import (
    LONG_SHARE,
    SAMPLED,
    Planner,
    first_longer,
    floor_ranges,
    plan_inter_task,
    total,
)
from swsearch.engine.cuda.search.tiles import choose_list_tile, list_cost
from swsearch.engine.protocol import ScoreRequest
from swsearch.hits.score_block import ScoreBlock
from swsearch.typing import Lengths, Scores, SubjectIndex

MOST_GROUPS: Final = 128
FEWEST_GROUPS: Final = 64
"""Groups of lanes that a multiprocessor runs at a time with the smallest groups and with those of eight lanes, the
largest that most tiles have."""
LARGER_SPAN: Final = 2
"""A cut serves other queries if its windows overlap by at most this multiple of the columns that they need."""


@dataclass(frozen=True, eq=False)
class Windows:
    """Subjects or parts of subjects: int64 arrays of shape (n,) with subject index, first column (from 0), length.

    They are ordered by subject, then by column.
    """

    subject: NDArray[np.int64]
    begin: NDArray[np.int64]
    length: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.subject)

    @cached_property
    def _first(self) -> NDArray[np.intp]:
        """The first window of each subject."""
        return np.flatnonzero(np.diff(self.subject, prepend=-1))

    def best(self, scores: Scores) -> NDArray[np.intp]:
        """The first window of each subject that has the subject's best score, of the scores of all windows."""
        first = self._first
        of_subjects = np.maximum.reduceat(scores, first)
        at_best = np.flatnonzero(scores == np.repeat(of_subjects, np.diff(first, append=len(scores))))
        return at_best[np.searchsorted(at_best, first)]

    def within(self, subject_index: SubjectIndex) -> dict[int, tuple[int, int]]:
        """The columns of each window by the index of its subject (:class:`ScoreBlock`)."""
        columns = zip(self.begin.tolist(), self.length.tolist(), strict=True)
        return dict(zip(subject_index.tolist(), columns, strict=True))

    def __getitem__(self, rows: NDArray[np.intp]) -> Windows:
        return Windows(self.subject[rows], self.begin[rows], self.length[rows])

    def groups(self, max_bytes: int) -> Iterator[Windows]:
        """The windows in groups of at most ``max_bytes`` residues, or of one window."""
        parts = ranges_within(padded(self.length), max_bytes)
        yield from (self[np.arange(part.start, part.stop)] for part in parts)

    def gathered(self, subjects: Partition) -> Partition:
        """A partition of the windows in order of length; its ``subject_index`` is the index of the window."""
        first = (subjects.starts[self.subject].astype(np.int64) + self.begin).tolist()
        places = zip(first, self.length.tolist(), strict=True)
        return Partition.pack([subjects.residues[start : start + length] for start, length in places])


def windows_of(lengths: Lengths, columns: NDArray[np.int64] | int | None, min_stride: int) -> Windows:
    """Subjects of these lengths; those far longer than an alignment are cut.

    Each alignment of at most ``columns`` columns lies completely within a window. This is the largest number that an
    alignment spans, with any subject, or int64 of shape (n,) with each; None if it is unbounded. ``min_stride`` is the
    smallest distance in columns between the starts of two windows.
    """
    whole = lengths.astype(np.int64)
    spanned = whole if columns is None else np.broadcast_to(columns, whole.shape)
    stride = np.maximum(spanned, min_stride)
    n_windows = np.where(whole > spanned + stride, -(-(whole - spanned) // stride), np.minimum(whole, 1))
    row = np.repeat(np.arange(len(whole)), n_windows)
    number = np.arange(len(row)) - np.repeat(np.cumsum(n_windows) - n_windows, n_windows)
    begin = number * stride[row]
    length = np.where(n_windows[row] > 1, np.minimum((spanned + stride)[row], whole[row] - begin), whole[row])
    return Windows(row, begin, length)


def windows_in_place(lengths: Lengths, spanned: int | None, n_columns: int, at_a_time: int) -> Windows:
    """Subjects of these lengths, of which those of more than ``n_columns`` residues are cut.

    Alignments of at most ``spanned`` columns, a multiple of 16, lie completely within a window; None if they may be of
    any length. A window is longer than ``n_columns`` where they span more than half of it, and where the device, which
    scores ``at_a_time`` windows, can have all of them at once. Windows begin at multiples of 16 residues.
    """
    n_full = max(at_a_time - len(lengths), len(lengths))  # the last one of each subject may be short
    for_all = -(-int(lengths.sum(dtype=np.uint64)) // (n_full * SUBJECT_ALIGNMENT))
    stride = max((n_columns - (spanned or 0)) // SUBJECT_ALIGNMENT, for_all) * SUBJECT_ALIGNMENT
    return windows_of(lengths, spanned, stride)


@dataclass(frozen=True, eq=False)
class CutSubjects:
    """A partition whose long subjects are cut: its windows, and the partition of these in order of length.

    The subject of a window is its row in ``whole``; ``subject_index`` of ``partition`` is the index of the window.
    ``spanned`` is the number of columns of the longest alignments that lie completely within a window.
    """

    whole: Partition
    windows: Windows
    partition: Partition
    spanned: int

    def request(self, request: ScoreRequest) -> ScoreRequest:
        """The request for the windows: one floor, the lowest, and no bound, which counts subjects."""
        return ScoreRequest(request.profile, lowest_floor(request, self.whole.lengths))

    def block(self, of_windows: ScoreBlock, floor: int | None) -> ScoreBlock:
        """The block of the subjects, in stored order; without a floor, of all of them.

        A subject's first best alignment lies in the first of its windows that has the score: if a later window had
        an alignment that ends earlier, this alignment would lie completely in the first one.
        """
        of_all = np.full(len(self.windows), -1, np.int32)
        of_all[of_windows.subject_index] = of_windows.score
        best = self.windows.best(of_all)
        best = best[of_all[best] >= 0]  # of the others, no window reaches the floor
        rows, scores = self.windows.subject[best], of_all[best]
        subject_index = self.whole.subject_index[rows]
        within = self.windows[best].within(subject_index)
        n_bounded = len(self.whole) - len(rows) if of_windows.n_bounded else 0
        if floor is None:  # an empty subject has no window
            scores_of_all = np.zeros(len(self.whole), np.int32)
            scores_of_all[rows] = scores
            subject_index, scores = self.whole.subject_index, scores_of_all
        n_rescored = min(of_windows.n_rescored, len(scores))
        return ScoreBlock(subject_index, scores, n_rescored, n_bounded=n_bounded, within=within)

    def line(self) -> str:
        """A description for the user."""
        columns = int(self.partition.lengths[-1])
        return (
            f"{len(self.whole):,} subjects in {len(self.partition):,} windows of up to {columns:,} residues, "
            f"which overlap by {self.spanned:,}"
        )


class SubjectCutter:
    """Gathers the windows of a genome for one device, and remembers the last ones.

    The inter-task kernels score gathered windows, with bounds. Otherwise the intra-task kernel scores windows where
    they lie, with a warp for each strip of the query (``launches``). Short queries of large genomes gain most: a warp
    has few rows for each lane then, and the windows overlap little.
    """

    def __init__(self, planner: Planner) -> None:
        self._planner = planner
        self._options = planner.options
        self._saved = 0.0
        self._known: tuple[Partition, bool] | None = None
        self._last: CutSubjects | None = None

    def cut(
        self, requests: Sequence[ScoreRequest], partition: Partition, limit_bytes: int, *, scores: bool = True
    ) -> CutSubjects | None:
        """The partition with its long subjects cut; None if these are few, or faster where they lie.

        The copy takes as long as dozens of short queries, so the subjects are cut when the calls for them, together,
        have had enough queries to make up for it. Windows may take ``limit_bytes`` of device memory. Without
        ``scores``, the requests are only explained.
        """
        spanned = most_columns(requests, partition.lengths) if self._is_genome(partition) else None
        if not spanned:
            return None
        last = self._last
        if last is not None and last.whole is partition and spanned <= last.spanned <= LARGER_SPAN * spanned:
            return last
        stride, saved = self.stride(requests, partition, limit_bytes)
        if stride is None or self._saved + saved < self._options.gather_picoseconds:
            self._saved += saved if scores else 0.0
            return None
        windows = windows_of(partition.lengths, spanned, stride)
        self._last = CutSubjects(partition, windows, windows.gathered(partition), spanned)
        self._saved = 0.0  # the next copy, for queries that span more or much less, has to be made up for as well
        return self._last

    def forget(self, windows: Partition) -> None:
        """Let go of the last windows if they are these."""
        if self._last is not None and self._last.partition is windows:
            self._last = None

    def stride(
        self, requests: Sequence[ScoreRequest], partition: Partition, limit_bytes: int
    ) -> tuple[int | None, float]:
        """Columns between the starts of two windows, or None, and the picoseconds per residue that windows save."""
        n_residues = partition.n_residues
        spanned = most_columns(requests, partition.lengths)
        longest = max((request.profile.length for request in requests), default=0)
        if not spanned or longest > self._options.diamond_rows:
            return None, 0.0
        floors = all(request.floor is not None for request in requests)
        stride, cost = self._cheapest_stride(n_residues, spanned, floors=floors)
        if stride < spanned or n_residues * (1 + spanned / stride) > limit_bytes:
            return None, 0.0
        if _residues_beyond(partition, 2 * (spanned + stride)) * 2 < n_residues:
            return None, 0.0
        intra_task, inter_task = self._times(requests, n_residues, spanned)
        saved = intra_task - inter_task * cost
        return (stride, saved) if saved > 0 else (None, 0.0)

    def _is_genome(self, partition: Partition) -> bool:
        """Whether most residues belong to long subjects; computed once for a partition that is searched repeatedly."""
        if self._known is None or self._known[0] is not partition:
            beyond = _residues_beyond(partition, 2 * self._options.long_residues)
            is_large = partition.n_residues >= self._options.gathered_residues
            self._known = partition, is_large and beyond * 2 >= partition.n_residues
            self._saved = 0.0
        return self._known[1]

    def _cheapest_stride(self, n_residues: int, spanned: int, *, floors: bool) -> tuple[int, float]:
        """Columns between the starts of two windows, and the time relative to that without overlaps or bounds.

        A larger stride leaves less overlap. But there must be enough windows for all groups of lanes and for a bound,
        which needs ``floors``, none may be so long that it would have a warp of its own, and the sample of a bound
        should be a small share of them.
        """
        least = self._options.long_residues - spanned
        n_multiprocessors = self._planner.facts.multiprocessors
        balanced = max(n_residues * LONG_SHARE / (n_multiprocessors * MOST_GROUPS), least)
        largest = min(balanced, n_residues / (n_multiprocessors * FEWEST_GROUPS))
        choices = [largest]
        if floors:
            least_sampled = math.sqrt(spanned * n_residues / SAMPLED)
            bounded = n_residues / max(self._options.bound_subjects, 1)
            choices += [min(least_sampled, largest), min(bounded, largest)]

        def cost(stride: float) -> float:
            """Relative time of all windows."""
            n_windows = n_residues / stride
            is_bounded = floors and n_windows >= self._options.bound_subjects
            of_window = (1 + min(SAMPLED / n_windows, 1)) / BOUND_SPEEDUP if is_bounded else 1.0
            return (1 + spanned / stride) * of_window

        best = min(choices, key=cost)
        return int(best) // SUBJECT_ALIGNMENT * SUBJECT_ALIGNMENT, cost(best)

    def _times(self, requests: Sequence[ScoreRequest], n_residues: int, spanned: int) -> tuple[float, float]:
        """Picoseconds per residue of the intra-task kernel, and of the inter-task kernels without overlaps."""
        facts = self._planner.facts
        intra_task = inter_task = 0.0
        for profile in (request.profile for request in requests):
            tile = choose_list_tile(facts.architecture, Arithmetic.FAST, profile.length, tall=True)
            columns = self._planner.window_columns(n_residues, [profile.length])
            at_a_time = facts.multiprocessors * max(MAX_LIST_WARPS // tile.strips(profile.length), 1)
            stride = max(columns - spanned, n_residues // at_a_time, spanned)
            intra_task += list_cost(tile, profile.length) * (1 + spanned / stride)
            inter_task += plan_inter_task([profile], facts.architecture).cost
        return intra_task, inter_task


def lowest_floor(request: ScoreRequest, lengths: Lengths) -> int | None:
    """The lowest floor of a request among subjects of these lengths, which are ascending."""
    return min((part.floor for part in floor_ranges(request, lengths)), default=None)


def most_columns(requests: Sequence[ScoreRequest], lengths: Lengths) -> int | None:
    """Largest number of columns that an alignment of these requests spans; None if it is unbounded.

    Alignments that score less than the floor need not lie within a window.
    """
    spanned = 0
    for request in requests:
        columns = request.profile.most_columns(np.array([lowest_floor(request, lengths) or 1], np.int32))
        if columns is None:
            return None
        spanned = max(spanned, int(columns[0]))
    return int(padded(spanned))


def _residues_beyond(partition: Partition, limit: int) -> int:
    """Residues of the subjects that are longer than a limit."""
    return total(partition.lengths[first_longer(partition.lengths, limit) :])
