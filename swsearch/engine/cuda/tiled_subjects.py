"""Scores queries of many thousand rows against long subjects by diamonds, separately from the other subjects.

Inputs are query profiles and a partition; the output is one block of scores per profile. The columns of a subject are
computed one after another, so a very long subject, such as a genome, would end long after all others. For most queries
such subjects are scored in verified windows before the others (:mod:`swsearch.engine.cuda.verified_windows`). For
queries of many thousand rows a window would have too many strips, one below the other; then the subject's matrix is
divided among warps in both directions (:mod:`swsearch.engine.cuda.diamonds`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Final

import numpy as np

from swsearch.database.partition import Partition
from swsearch.engine.cuda.diamond_plan import MAX_GAP_FIRST, MAX_LINES
from swsearch.engine.cuda.diamonds import DiamondSweep
from swsearch.engine.cuda.launches import Timing
from swsearch.engine.cuda.plan import chain_limit
from swsearch.engine.pair_arrays import AlignmentProblem
from swsearch.engine.protocol import Progress, Scored, TopKBound
from swsearch.hits.score_block import ScoreBlock
from swsearch.query.profile import QueryProfile
from swsearch.sequences.alphabet import CODE_MASK
from swsearch.typing import Scores

MAX_WINDOW_ROWS: Final = 16_384
"""Rows of the longest query that is scored in verified windows."""
MIN_LENGTH: Final = 4096
"""Subjects of at most so many residues are never scored by diamonds."""

ScoreEach = Callable[
    [Sequence[QueryProfile], Partition, Sequence[int] | None, Progress | None, Sequence[TopKBound | None] | None],
    Generator[Scored, None, None],
]
"""A function that scores subjects without diamonds; its parameters are those of
:meth:`swsearch.engine.cuda.engine.CudaEngine.score_each`."""


def suits_diamonds(profile: QueryProfile) -> bool:
    """Whether the diamond kernel supports a profile; position-specific profiles may have too many rows."""
    return len(profile.table) <= MAX_LINES and 0 < profile.gap.first <= MAX_GAP_FIRST


def score_by_diamonds(sweep: DiamondSweep, profile: QueryProfile, subjects: Partition, timing: Timing) -> Scores:
    """The subjects' best scores by diamonds; adds the kernel time to ``timing``. The profile must suit diamonds."""
    problem = AlignmentProblem(
        True, True, True, profile.gap.open, profile.gap.extend, table=np.ascontiguousarray(profile.table)
    )
    rows = profile.rows.astype(np.uint16)
    pairs = [(rows, (subjects.codes(index) & CODE_MASK).astype(np.uint16)) for index in range(len(subjects))]
    before = sweep.seconds
    ends = sweep.ends(pairs, problem)
    timing.seconds += sweep.seconds - before
    return np.array([end.score for end in ends], dtype=np.int32)


class TiledSubjects:
    """Divides partitions for very long queries and scores the long subjects by diamonds.

    Parameters
    ----------
    sweep : DiamondSweep
    timing : Timing
        The kernel time of diamonds is added to it.
    multiprocessors : int
        Number of multiprocessors of the device.
    max_window_rows, min_length : int
        See :data:`MAX_WINDOW_ROWS` and :data:`MIN_LENGTH`.
    """

    def __init__(
        self,
        sweep: DiamondSweep,
        timing: Timing,
        multiprocessors: int,
        max_window_rows: int = MAX_WINDOW_ROWS,
        min_length: int = MIN_LENGTH,
    ) -> None:
        self._sweep = sweep
        self._timing = timing
        self._multiprocessors = multiprocessors
        self._max_window_rows = max_window_rows
        self._min_length = min_length

    def score_each(
        self,
        score_each: ScoreEach,
        profiles: Sequence[QueryProfile],
        partition: Partition,
        floors: Sequence[int] | None,
        progress: Progress | None,
        rules: Sequence[TopKBound | None] | None,
    ) -> Generator[Scored, None, None]:
        """Blocks for the complete partition; ``score_each`` scores all except the long subjects of very long queries.

        Rules are not applied to queries with long subjects, because a rule's bound must hold for all subjects together.
        """
        by_first: dict[int, list[int]] = {}
        for index, profile in enumerate(profiles):
            by_first.setdefault(self._first(partition, profile), []).append(index)
        for first, indices in by_first.items():
            chosen = [profiles[index] for index in indices]
            wanted = None if floors is None else [floors[index] for index in indices]
            if first == len(partition):
                of_chosen = None if rules is None else [rules[index] for index in indices]
                for number, block in score_each(chosen, partition, wanted, progress, of_chosen):
                    yield indices[number], block
                continue
            long_blocks = []
            for profile in chosen:
                long = partition[first:]
                scores = score_by_diamonds(self._sweep, profile, long, self._timing)
                long_blocks.append(ScoreBlock(long.subject_index, scores))
                n_cells = profile.length * long.n_residues
                self._timing.cells += n_cells
                if progress is not None:
                    progress(n_cells)
            for number, block in score_each(chosen, partition[:first], wanted, progress, None):
                of_long = long_blocks[number] if wanted is None else long_blocks[number].at_least(wanted[number])
                yield indices[number], ScoreBlock.concatenate([block, of_long])

    def _first(self, partition: Partition, profile: QueryProfile) -> int:
        """Index of the first subject that is scored by diamonds; the partition's length if there is none."""
        if profile.length <= self._max_window_rows or not suits_diamonds(profile):
            return len(partition)
        limit = chain_limit(partition.n_residues, [profile.length], self._multiprocessors)
        return int(np.searchsorted(partition.lengths, max(limit, self._min_length), side="right"))
