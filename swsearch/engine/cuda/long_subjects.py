"""Subjects so long that one alone would keep a whole GPU waiting: in windows, joined windows, or by diamonds.

A subject is worked on from its first column to its last, so one of many residues would still be at work when all others
are done; a genome is one subject. Such subjects are scored apart:

*Windows*, for queries that are short. An alignment above 0 has gaps that cost less than the sum G of the best scores of
the query's rows, so it spans at most length + (G - open) / extend columns. Windows that overlap by that span less one
hold every alignment whole and none that the subject has not, so the subject's score is the largest of its windows';
they are subjects of a partition of their own.

*Joined windows*, where that span is long. They overlap by less, and prove where they meet that nothing was missed
(:mod:`swsearch.engine.cuda.joined_windows`).

*Diamonds*, for queries of many thousand rows: the subject's matrix is spread over warps without any overlap
(:mod:`swsearch.engine.cuda.diamonds`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch.database.format import SUBJECT_ALIGNMENT, TAIL_PADDING
from swsearch.database.partition import Partition
from swsearch.engine.cuda.diamond_plan import MOST_FIRST, MOST_LINES, PairProblem
from swsearch.engine.cuda.diamonds import DiamondSweep
from swsearch.engine.cuda.joined_windows import JoinedWindows
from swsearch.engine.cuda.launches import Timing
from swsearch.engine.protocol import Progress, Scored, TopRule
from swsearch.hits.score_block import ScoreBlock
from swsearch.query.profile import QueryProfile
from swsearch.sequences.alphabet import CODE_MASK, PAD_CODE

LEAST_STRIDE: Final = 2048
"""Columns from window to window, at least: fewer only add overlap. Spans up to this are short."""
MOST_JOINED_ROWS: Final = 16_384
"""Longest query for joined windows."""
CHAIN_CYCLES: Final = 50
"""Cycles that the kernel for listed subjects takes for a column, for as many rows as a block has at a time."""
CHAIN_ROWS: Final = 3072
CELLS_A_CYCLE: Final = 26
"""Cells that a multiprocessor does a cycle where there are subjects enough."""
ROW_STEP: Final = 2
"""Queries whose lengths have the same power of this divide a partition alike, and so may share words."""
CUTS_KEPT: Final = 4

ScoreEach = Callable[
    [Sequence[QueryProfile], Partition, Sequence[int] | None, Progress | None, Sequence[TopRule | None] | None],
    Generator[Scored, None, None],
]
"""Scores subjects none of which is long, as :meth:`swsearch.engine.cuda.engine.CudaEngine.score_each` is asked to."""


def span(profile: QueryProfile) -> int | None:
    """Most subject columns that an alignment of a score above 0 takes; None where gaps cost nothing to extend."""
    columns = profile.most_columns(np.zeros(1, dtype=np.int32))
    return None if columns is None else int(columns[0])


def overlap_for(profile: QueryProfile) -> int | None:
    """Columns by which windows overlap for a profile: its span, rounded up so that like queries share windows."""
    columns = span(profile)
    return None if columns is None else max(SUBJECT_ALIGNMENT, 1 << (columns - 1).bit_length())


def suits_diamonds(profile: QueryProfile) -> bool:
    """Whether the diamond kernel takes a profile; one with a row for each position may have too many."""
    return len(profile.table) <= MOST_LINES and 0 < profile.gap.first <= MOST_FIRST


class Way(Enum):
    """How long subjects are scored."""

    WINDOWS = "windows"
    JOINED = "joined windows"
    DIAMONDS = "diamonds"


@dataclass(frozen=True)
class Cut:
    """How a partition is divided.

    Attributes
    ----------
    first_long : int
        Place of the first subject that is scored apart; those after it are longer.
    way : Way
    windows : Partition or None
        Of :attr:`Way.WINDOWS`; ``subject_index`` is the place of a window's subject among the long ones.
    """

    first_long: int
    way: Way
    windows: Partition | None = None


def long_from(n_residues: int, rows: int, multiprocessors: int) -> int:
    """Columns from which a subject, worked on by a block of its own, takes longer than half of a whole launch.

    Parameters
    ----------
    n_residues : int
        Of all subjects.
    rows : int
        Of the query; counted as the next lower power of :data:`ROW_STEP`.
    multiprocessors : int
        Of the device.
    """
    power = 1
    while power * ROW_STEP <= min(rows, CHAIN_ROWS):
        power *= ROW_STEP
    return n_residues * power // (2 * CHAIN_CYCLES * CELLS_A_CYCLE * multiprocessors)


def windows_of(partition: Partition, first: int, overlap: int, stride: int) -> Partition:
    """Windows of ``overlap + stride`` columns, every ``stride`` columns, of the subjects from place ``first`` on."""
    owners: list[int] = []
    starts: list[int] = []
    lengths: list[int] = []
    for place in range(first, len(partition)):
        length = int(partition.lengths[place])
        begins = np.arange(0, max(length - overlap, 1), stride)
        owners += [place - first] * len(begins)
        starts += (int(partition.starts[place]) + begins).tolist()
        lengths += np.minimum(overlap + stride, length - begins).tolist()
    order = np.argsort(lengths, kind="stable")
    stored = np.array(lengths, dtype=np.int64)[order]
    filled = -(-stored // SUBJECT_ALIGNMENT) * SUBJECT_ALIGNMENT
    new_starts = np.concatenate([[0], np.cumsum(filled)])
    residues = np.full(int(new_starts[-1]) + TAIL_PADDING, PAD_CODE, dtype=np.uint8)
    for window, to, length in zip(order.tolist(), new_starts.tolist(), stored.tolist(), strict=False):
        residues[to : to + length] = partition.residues[starts[window] : starts[window] + length]
    return Partition(
        residues,
        new_starts[:-1].astype(np.uint64),
        stored.astype(np.uint32),
        np.array(owners, dtype=np.uint32)[order],
    )


class LongSubjects:
    """Divides partitions, and scores what is long apart.

    Parameters
    ----------
    sweep : DiamondSweep
    joined : JoinedWindows
    timing : Timing
        Told of the time of diamonds.
    multiprocessors : int
        Of the device.
    least_stride : int
        A multiple of 16.
    most_joined_rows : int
    """

    def __init__(
        self,
        sweep: DiamondSweep,
        joined: JoinedWindows,
        timing: Timing,
        multiprocessors: int,
        least_stride: int = LEAST_STRIDE,
        most_joined_rows: int = MOST_JOINED_ROWS,
    ) -> None:
        self._sweep = sweep
        self._joined = joined
        self._timing = timing
        self._multiprocessors = multiprocessors
        self._least_stride = least_stride
        self._most_joined_rows = most_joined_rows
        self._cuts: OrderedDict[tuple[object, ...], tuple[Partition, Cut | None]] = OrderedDict()

    def score_each(
        self,
        score_each: ScoreEach,
        profiles: Sequence[QueryProfile],
        partition: Partition,
        floors: Sequence[int] | None,
        progress: Progress | None,
        rules: Sequence[TopRule | None] | None,
    ) -> Generator[Scored, None, None]:
        """What ``score_each`` gives for the partition, which does all subjects that are not long, and windows.

        Where some are long, rules leave nothing out: what they keep must hold for all subjects together.
        """
        by_cut: dict[int, tuple[Cut | None, list[int]]] = {}
        for place, profile in enumerate(profiles):
            cut = self._cut(partition, profile)
            by_cut.setdefault(id(cut), (cut, []))[1].append(place)
        for cut, places in by_cut.values():
            chosen = [profiles[place] for place in places]
            wanted = None if floors is None else [floors[place] for place in places]
            if cut is None:
                of_chosen = None if rules is None else [rules[place] for place in places]
                for number, block in score_each(chosen, partition, wanted, progress, of_chosen):
                    yield places[number], block
            else:
                blocks = self._score_cut(score_each, chosen, partition, cut, wanted, progress)
                yield from zip(places, blocks, strict=True)

    def _cut(self, partition: Partition, profile: QueryProfile) -> Cut | None:
        """The cut for a profile, None where nothing is long; the last few are kept."""
        if len(partition) == 0:
            return None
        limit = long_from(partition.n_residues, profile.length, self._multiprocessors)
        way, overlap, shortest = self._way(profile, limit)
        first = int(np.searchsorted(partition.lengths, max(limit, shortest), side="right"))
        if first == len(partition):
            return None
        where = int(partition.residues.__array_interface__["data"][0])
        key = (where, int(partition.starts[0]), len(partition), way, overlap, first)
        if key not in self._cuts:
            stride = self._stride(overlap, limit)
            windows = windows_of(partition, first, overlap, stride) if way is Way.WINDOWS else None
            self._cuts[key] = (partition, Cut(first, way, windows))
            while len(self._cuts) > CUTS_KEPT:
                self._cuts.popitem(last=False)
        self._cuts.move_to_end(key)
        return self._cuts[key][1]

    def _way(self, profile: QueryProfile, limit: int) -> tuple[Way, int, int]:
        """How subjects of more than ``limit`` columns are scored, the overlap, and the most columns that stay whole."""
        overlap = overlap_for(profile)
        if overlap is not None and overlap <= self._least_stride:
            return Way.WINDOWS, overlap, overlap + 2 * self._stride(overlap, limit)
        diamonds = profile.length > self._most_joined_rows and suits_diamonds(profile)
        return (Way.DIAMONDS if diamonds else Way.JOINED), 0, 2 * self._least_stride

    def _stride(self, overlap: int, limit: int) -> int:
        return max(overlap, self._least_stride, limit // SUBJECT_ALIGNMENT * SUBJECT_ALIGNMENT)

    def _score_cut(
        self,
        score_each: ScoreEach,
        profiles: Sequence[QueryProfile],
        partition: Partition,
        cut: Cut,
        floors: Sequence[int] | None,
        progress: Progress | None,
    ) -> list[ScoreBlock]:
        def score(subjects: Partition, progress: Progress | None) -> list[ScoreBlock]:
            blocks = dict(score_each(profiles, subjects, floors, progress, None))
            return [blocks[place] for place in range(len(profiles))]

        subjects = partition[cut.first_long :]
        if cut.windows is not None:
            told = _up_to(_cells(profiles, subjects), progress)
            apart = [_largest(block, subjects) for block in score(cut.windows, told)]
        else:
            apart = []
            for profile in profiles:
                if cut.way is Way.JOINED:
                    apart.append(self._joined.score(profile, partition, cut.first_long))
                else:
                    apart.append(self._by_diamonds(profile, subjects))
                if progress is not None:
                    progress(_cells([profile], subjects))
        rest = score(partition[: cut.first_long], progress)
        blocks = []
        for place, (short, long) in enumerate(zip(rest, apart, strict=True)):
            wanted = long if floors is None else long.at_least(floors[place])
            blocks.append(ScoreBlock.concatenate([short, wanted]))
        return blocks

    def _by_diamonds(self, profile: QueryProfile, subjects: Partition) -> ScoreBlock:
        problem = PairProblem(
            True, True, True, profile.gap.open, profile.gap.extend, table=np.ascontiguousarray(profile.table)
        )
        rows = profile.rows.astype(np.uint16)
        pairs = [(rows, (subjects.codes(place) & CODE_MASK).astype(np.uint16)) for place in range(len(subjects))]
        before = self._sweep.seconds
        ends = self._sweep.ends(pairs, problem)
        self._timing.seconds += self._sweep.seconds - before
        self._timing.cells += _cells([profile], subjects)
        return ScoreBlock(subjects.subject_index, np.array([end.score for end in ends], dtype=np.int32))


def _cells(profiles: Sequence[QueryProfile], subjects: Partition) -> int:
    return subjects.n_residues * sum(profile.length for profile in profiles)


def _largest(block: ScoreBlock, subjects: Partition) -> ScoreBlock:
    """Each subject's largest score in its windows; 0 where none is in the block."""
    scores: NDArray[np.int32] = np.zeros(len(subjects), dtype=np.int32)
    np.maximum.at(scores, block.subject_index, block.score)
    return ScoreBlock(subjects.subject_index, scores, block.n_rescored)


def _up_to(cells: int, progress: Progress | None) -> Progress | None:
    """Progress that ends at ``cells``: the overlaps of windows are no cells of the search."""
    if progress is None:
        return None
    left = cells

    def advance(more: int) -> None:
        nonlocal left
        counted = min(more, left)
        left -= counted
        progress(counted)

    return advance
