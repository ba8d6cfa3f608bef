"""Cuts long subjects into overlapping stretches, each of which the device scores as a subject of its own.

H in a stretch is never larger than in its subject, because a stretch begins with H = 0; and stretches overlap by the
columns that an alignment can span, so every alignment lies completely within one. Therefore the subject's score is the
largest score of its stretches, and a bound or a floor that holds for all stretches holds for the subject. Inputs are a
partition and score requests; the output is a partition of stretches and, from its score blocks, those of the subjects.

:class:`SubjectCutter` decides for the searches of a genome. ``end_positions`` cuts the subjects of alignments.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch.database.format import SUBJECT_ALIGNMENT, TAIL_PADDING
from swsearch.database.partition import Partition
from swsearch.engine.cuda.runtime.device import DeviceFacts
from swsearch.engine.cuda.runtime.kernels import Arithmetic
from swsearch.engine.cuda.search.plan import BOUND_SPEEDUP, Thresholds
from swsearch.engine.cuda.search.planner import (
    LONG_SHARE,
    MIN_LONG_LENGTH,
    SAMPLED,
    first_longer,
    floor_ranges,
    plan_inter_task,
)
from swsearch.engine.cuda.search.tiles import choose_list_tile, windows_cost
from swsearch.engine.protocol import ScoreRequest
from swsearch.hits.score_block import ScoreBlock
from swsearch.sequences.alphabet import PAD_CODE
from swsearch.typing import Lengths

MOST_GROUPS: Final = 128
FEWEST_GROUPS: Final = 64
"""Groups of lanes that a multiprocessor runs at a time with the smallest groups and with those of eight lanes, the
largest that most tiles have."""
LARGER_SPAN: Final = 2
"""A cut serves other queries if its stretches overlap by at most this multiple of the columns that they need."""


@dataclass(frozen=True, eq=False)
class Stretches:
    """Subjects or parts of subjects: int64 arrays of shape (n,) with subject index, first column (from 0), length."""

    subject: NDArray[np.int64]
    begin: NDArray[np.int64]
    length: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.subject)

    def __getitem__(self, rows: NDArray[np.intp]) -> Stretches:
        return Stretches(self.subject[rows], self.begin[rows], self.length[rows])

    def groups(self, max_bytes: int) -> Iterator[Stretches]:
        """The stretches in groups of at most ``max_bytes`` residues, or of one stretch."""
        ends = np.cumsum(self.length + -self.length % SUBJECT_ALIGNMENT)
        first = 0
        while first < len(self):
            before = int(ends[first - 1]) if first else 0
            stop = max(first + 1, int(np.searchsorted(ends, before + max_bytes, side="right")))
            yield self[np.arange(first, stop)]
            first = stop

    def gathered(self, subjects: Partition) -> Partition:
        """A partition of the stretches in order of length; its ``subject_index`` is the index of the stretch."""
        order = np.argsort(self.length, kind="stable")
        lengths = self.length[order]
        starts = np.concatenate([[0], np.cumsum(lengths + -lengths % SUBJECT_ALIGNMENT)])
        residues = np.full(int(starts[-1]) + TAIL_PADDING, PAD_CODE, dtype=np.uint8)
        first = subjects.starts[self.subject[order]].astype(np.int64) + self.begin[order]
        for to, source, length in zip(starts.tolist(), first.tolist(), lengths.tolist(), strict=False):
            residues[to : to + length] = subjects.residues[source : source + length]
        return Partition(residues, starts[:-1].astype(np.uint64), lengths.astype(np.uint32), order.astype(np.uint32))


def stretches_of(
    indices: NDArray[np.intp], lengths: Lengths, columns: NDArray[np.int64] | None, min_stride: int
) -> Stretches:
    """The subjects with the given indices; those far longer than an alignment are cut.

    Each alignment of at most ``columns`` columns lies completely within a stretch. ``columns``, int64 of shape (n,),
    has the largest number that an alignment with each subject spans; None if it is unbounded. ``min_stride`` is the
    smallest distance in columns between the starts of two stretches.
    """
    whole = lengths.astype(np.int64)
    spanned = whole if columns is None else columns
    stride = np.maximum(spanned, min_stride)
    n_stretches = np.where(whole > spanned + stride, -(-(whole - spanned) // stride), np.minimum(whole, 1))
    row = np.repeat(np.arange(len(whole)), n_stretches)
    number = np.arange(len(row)) - np.repeat(np.cumsum(n_stretches) - n_stretches, n_stretches)
    begin = number * stride[row]
    length = np.where(n_stretches[row] > 1, np.minimum((spanned + stride)[row], whole[row] - begin), whole[row])
    return Stretches(indices[row].astype(np.int64), begin, length)


@dataclass(frozen=True, eq=False)
class CutSubjects:
    """A partition whose long subjects are cut: its stretches, and the partition of these in order of length.

    The subject of a stretch is its row in ``whole``; ``subject_index`` of ``partition`` is the index of the stretch.
    ``spanned`` is the number of columns of the longest alignments that lie completely within a stretch.
    """

    whole: Partition
    stretches: Stretches
    partition: Partition
    spanned: int

    def request(self, request: ScoreRequest) -> ScoreRequest:
        """The request for the stretches: one floor, the lowest, and no bound, which counts subjects."""
        return ScoreRequest(request.profile, lowest_floor(request, self.whole.lengths))

    def block(self, of_stretches: ScoreBlock, floor: int | None) -> ScoreBlock:
        """The block of the subjects, in stored order; without a floor, of all of them.

        A subject's first best alignment lies in the first of its stretches that has the score: if a later stretch had
        an alignment that ends earlier, this alignment would lie completely in the first one.
        """
        stretch = of_stretches.subject_index.astype(np.intp)
        row, begin = self.stretches.subject[stretch], self.stretches.begin[stretch]
        order = np.lexsort((begin, -of_stretches.score, row))
        best = order[np.flatnonzero(np.diff(row[order], prepend=-1))]
        rows, scores = row[best], of_stretches.score[best]
        subject_index = self.whole.subject_index[rows]
        columns = zip(begin[best].tolist(), self.stretches.length[stretch[best]].tolist(), strict=True)
        within = dict(zip(subject_index.tolist(), columns, strict=True))
        n_bounded = len(self.whole) - len(rows) if of_stretches.n_bounded else 0
        if floor is None:  # an empty subject has no stretch
            scores_of_all = np.zeros(len(self.whole), np.int32)
            scores_of_all[rows] = scores
            subject_index, scores = self.whole.subject_index, scores_of_all
        n_rescored = min(of_stretches.n_rescored, len(scores))
        return ScoreBlock(subject_index, scores, n_rescored, n_bounded=n_bounded, within=within)

    def line(self) -> str:
        """A description for the user."""
        columns = int(self.partition.lengths[-1])
        return (
            f"{len(self.whole):,} subjects in {len(self.partition):,} stretches of up to {columns:,} residues, "
            f"which overlap by {self.spanned:,}"
        )


class SubjectCutter:
    """Cuts the subjects of a genome for one device, and remembers the last cut.

    Otherwise such subjects are scored in verified windows, with a warp for each strip of a window. In stretches the
    inter-task kernels score them, with bounds. Short queries of large genomes gain most: a warp has few rows for each
    lane then, and the stretches overlap little.
    """

    def __init__(self, facts: DeviceFacts, thresholds: Thresholds) -> None:
        self._facts = facts
        self._most_rows = thresholds.windowed_rows  # longer queries are scored by diamonds
        self._least_residues = thresholds.cut_residues
        self._bound_subjects = thresholds.bound_subjects
        self._copy_picoseconds = thresholds.copy_picoseconds
        self._saved = 0.0
        self._known: tuple[Partition, bool] | None = None
        self._last: CutSubjects | None = None

    def cut(
        self, requests: Sequence[ScoreRequest], partition: Partition, limit_bytes: int, *, scores: bool = True
    ) -> CutSubjects | None:
        """The partition with its long subjects cut; None if these are few, or faster in verified windows.

        The copy takes as long as dozens of short queries, so the subjects are cut when the calls for them, together,
        have had enough queries to make up for it. Stretches may take ``limit_bytes`` of device memory. Without
        ``scores``, the requests are only explained.
        """
        if not self._is_genome(partition):
            return None
        spanned = most_columns(requests, partition.lengths)
        if not spanned:
            return None
        last = self._last
        if last is not None and last.whole is partition and spanned <= last.spanned <= LARGER_SPAN * spanned:
            return last
        stride, saved = self.stride(requests, partition, limit_bytes)
        if stride is None or self._saved + saved < self._copy_picoseconds:
            self._saved += saved if scores else 0.0
            return None
        columns = np.full(len(partition), spanned)
        stretches = stretches_of(np.arange(len(partition)), partition.lengths, columns, stride)
        self._last = CutSubjects(partition, stretches, stretches.gathered(partition), spanned)
        self._saved = 0.0  # the next copy, for queries that span more or much less, has to be made up for as well
        return self._last

    def stride(
        self, requests: Sequence[ScoreRequest], partition: Partition, limit_bytes: int
    ) -> tuple[int | None, float]:
        """Columns between the starts of two stretches, or None, and the picoseconds per residue that stretches save."""
        n_residues = partition.n_residues
        spanned = most_columns(requests, partition.lengths)
        longest = max((request.profile.length for request in requests), default=0)
        if not spanned or longest > self._most_rows or n_residues < self._least_residues:
            return None, 0.0
        floors = all(request.floor is not None for request in requests)
        stride, cost = self._cheapest_stride(n_residues, spanned, floors=floors)
        if stride < spanned or n_residues * (1 + spanned / stride) > limit_bytes:
            return None, 0.0
        if _residues_beyond(partition, 2 * (spanned + stride)) * 2 < n_residues:
            return None, 0.0
        in_windows, inter_task = self._times(requests)
        saved = in_windows - inter_task * cost
        return (stride, saved) if saved > 0 else (None, 0.0)

    def _is_genome(self, partition: Partition) -> bool:
        """Whether most residues belong to long subjects; computed once for a partition that is searched repeatedly."""
        if self._known is None or self._known[0] is not partition:
            beyond = _residues_beyond(partition, 2 * MIN_LONG_LENGTH)
            self._known = partition, partition.n_residues >= self._least_residues and beyond * 2 >= partition.n_residues
            self._saved = 0.0
        return self._known[1]

    def _cheapest_stride(self, n_residues: int, spanned: int, *, floors: bool) -> tuple[int, float]:
        """Columns between the starts of two stretches, and the time relative to that without overlaps or bounds.

        With ``floors`` for all requests, a bound is possible.

        A larger stride leaves less overlap. But there must be enough stretches for all groups of lanes and for a bound,
        none may be so long that it would have a warp of its own, and the sample of a bound, which has a given number of
        stretches, should be a small share of them.
        """
        balanced = max(n_residues * LONG_SHARE / (self._facts.multiprocessors * MOST_GROUPS), MIN_LONG_LENGTH - spanned)
        largest = min(balanced, n_residues / (self._facts.multiprocessors * FEWEST_GROUPS))
        choices = [largest]
        if floors:
            least_sampled = math.sqrt(spanned * n_residues / SAMPLED)
            choices += [min(least_sampled, largest), min(n_residues / max(self._bound_subjects, 1), largest)]

        def cost(stride: float) -> float:
            """Relative time of all stretches."""
            n_stretches = n_residues / stride
            is_bounded = floors and n_stretches >= self._bound_subjects
            of_stretch = (1 + min(SAMPLED / n_stretches, 1)) / BOUND_SPEEDUP if is_bounded else 1.0
            return (1 + spanned / stride) * of_stretch

        best = min(choices, key=cost)
        return int(best) // SUBJECT_ALIGNMENT * SUBJECT_ALIGNMENT, cost(best)

    def _times(self, requests: Sequence[ScoreRequest]) -> tuple[float, float]:
        """Picoseconds per residue in verified windows, and of the inter-task kernels, without overlaps."""
        architecture = self._facts.architecture
        in_windows = inter_task = 0.0
        for profile in (request.profile for request in requests):
            tile = choose_list_tile(architecture, Arithmetic.FAST, profile.length, "score_windows")
            in_windows += windows_cost(tile, profile.length)
            inter_task += plan_inter_task([profile], architecture).cost
        return in_windows, inter_task


def lowest_floor(request: ScoreRequest, lengths: Lengths) -> int | None:
    """The lowest floor of a request among subjects of these lengths, which are ascending."""
    return min((part.floor for part in floor_ranges(request, lengths)), default=None)


def most_columns(requests: Sequence[ScoreRequest], lengths: Lengths) -> int | None:
    """Largest number of columns that an alignment of these requests spans; None if it is unbounded.

    Alignments that score less than the floor need not lie within a stretch.
    """
    spanned = 0
    for request in requests:
        columns = request.profile.most_columns(np.array([lowest_floor(request, lengths) or 1], np.int32))
        if columns is None:
            return None
        spanned = max(spanned, int(columns[0]))
    return -(-spanned // SUBJECT_ALIGNMENT) * SUBJECT_ALIGNMENT


def _residues_beyond(partition: Partition, limit: int) -> int:
    """Residues of the subjects that are longer than a limit."""
    return int(partition.lengths[first_longer(partition.lengths, limit) :].sum(dtype=np.uint64))
