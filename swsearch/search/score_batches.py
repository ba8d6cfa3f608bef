"""Scores of many queries, computed by an engine batch by batch.

A :class:`PreparedQuery` is a group of profiles: those of its strands or frames, and their masked profiles; with the
depth to which it is searched, and the adjustment of its E-values. :class:`ScoreBatch` passes the profiles of several
queries to an engine, and yields the scores of each query as soon as they are complete. An engine that works in the
background starts a batch in :meth:`ScoreBatch.begin` and continues to score while the caller ranks and aligns earlier
results; any other engine scores a batch during the iteration over :meth:`ScoreBatch.results`.
"""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from swsearch.database.partition import Partition
from swsearch.engine.protocol import BackgroundEngine, ScoreEngine, ScoreRequest, Scoring, score_requests
from swsearch.hits.score_block import ScoreBlock
from swsearch.query.composition import EvalueAdjustment
from swsearch.query.profile import QueryProfile
from swsearch.search.frames import Frame
from swsearch.search.threshold import LENGTH_STEPS, Threshold
from swsearch.sequences.record import SequenceRecord
from swsearch.typing import LengthRange, Progress


@dataclass(frozen=True, eq=False)
class PreparedQuery:
    """One query, as it is searched and reported, ready to be scored; ``number`` is its index in the run."""

    number: int
    query: SequenceRecord
    frames: list[Frame]
    threshold: Threshold
    adjustment: EvalueAdjustment | None

    @property
    def profiles(self) -> list[QueryProfile]:
        """The profiles that the engine scores: one per frame, then the masked profiles of the frames that have one."""
        masked = [frame.masked_profile for frame in self.frames if frame.masked_profile is not None]
        return [frame.profile for frame in self.frames] + masked

    @property
    def rows(self) -> int:
        """Number of positions of all profiles."""
        return sum(profile.length for profile in self.profiles)

    def min_scores(self, lengths: LengthRange | None = None) -> list[int]:
        """The score threshold of each profile, for all subjects or those of some lengths."""
        return [self.threshold.min_score(lengths)] * len(self.profiles)


class ScoreBatch:
    """Queries that an engine scores together with some partitions; their thresholds determine which scores it needs.

    ``n_rows`` is the number of positions of all profiles. With ``shortest_part``, the partitions lack subjects that are
    part of others, of this length or more: the others need the scores that their parts need.
    """

    def __init__(
        self,
        engine: ScoreEngine,
        partitions: Sequence[Partition],
        queries: Sequence[PreparedQuery],
        shortest_part: int | None = None,
    ) -> None:
        self.partitions = partitions
        self.shortest_part = shortest_part
        self.n_rows = sum(query.rows for query in queries)
        self._engine = engine
        self._queries = queries
        self._profiles = [profile for query in queries for profile in query.profiles]
        self._query_of = [number for number, query in enumerate(queries) for _ in query.profiles]
        self._needs_all_scores = any(query.threshold.needs_all_scores for query in queries)
        self._begun: list[Scoring] = []

    @property
    def n_subjects(self) -> int:
        """Number of rows of all partitions."""
        return sum(map(len, self.partitions))

    def min_scores(self, lengths: LengthRange | None = None) -> list[int]:
        """The score threshold of each profile, for all subjects or those of some lengths."""
        if lengths is not None and self.shortest_part is not None:
            lengths = min(lengths[0], self.shortest_part), lengths[1]
        return [score for query in self._queries for score in query.min_scores(lengths)]

    def requests(self, partition: Partition) -> list[ScoreRequest]:
        """The requests to the engine."""
        if self._needs_all_scores:
            return score_requests(self._profiles)
        bounds = [query.threshold.engine_bound for query in self._queries for _ in query.profiles]
        requests = requests_by_length(self._profiles, partition, self.min_scores)
        return [replace(request, bound=bound) for request, bound in zip(requests, bounds, strict=True)]

    def begin(self, engine: BackgroundEngine) -> None:
        """Start to score, by the engine of this batch, which works in the background."""
        if not self._needs_all_scores:
            self._begun += [engine.begin(self.requests(partition), partition) for partition in self.partitions]

    def wait_until_prepared(self) -> None:
        """If the engine works in the background, wait until it has started."""
        for scoring in self._begun[:1]:
            scoring.wait_until_prepared()

    def cancel(self) -> None:
        """Stop the engine's work on these queries."""
        for scoring in self._begun:
            scoring.cancel()

    def results(self, progress: Progress | None, idle_since: float) -> Iterator[tuple[int, list[ScoreBlock], float]]:
        """The scores of each query, in the order of the queries: its index in the batch, one block per profile with its
        scores in all partitions, and the engine's mean seconds per cell so far.

        ``idle_since`` is the time, by ``time.perf_counter``, from which an engine that works in the background could
        score these queries.
        """
        waiting: dict[int, dict[int, ScoreBlock]] = {number: {} for number in self._query_of}
        size = Counter(self._query_of)
        order = iter(list(waiting))
        wanted = next(order, None)
        for index, block, seconds in self._scored(progress, idle_since):
            waiting[self._query_of[index]][index] = block
            while wanted is not None and len(waiting[wanted]) == size[wanted]:
                found = waiting.pop(wanted)
                yield wanted, [found[index] for index in sorted(found)], seconds
                wanted = next(order, None)

    def _scored(self, progress: Progress | None, idle_since: float) -> Iterator[tuple[int, ScoreBlock, float]]:
        """The index of each profile, its scores in all partitions as soon as they are complete, and the time per cell.

        The time per cell is the time since the engine could start, divided by the number of cells it has reported so
        far.
        """
        began = idle_since if self._begun else time.perf_counter()
        n_cells = 0

        def count(cells: int) -> None:
            nonlocal n_cells
            n_cells += cells
            if progress is not None:
                progress(cells)

        parts: list[list[ScoreBlock]] = [[] for _ in self._profiles]
        if not self.partitions:
            yield from ((index, ScoreBlock.concatenate([]), 0.0) for index in range(len(parts)))
        for number, partition in enumerate(self.partitions):
            if self._begun:
                found: Iterable[tuple[int, ScoreBlock]] = self._begun[number].results(count)
            else:
                found = enumerate(self._engine.score(self.requests(partition), partition, count))
            scored = time.perf_counter()
            for index, block in found:
                parts[index].append(block)
                if number == len(self.partitions) - 1:
                    seconds = (time.perf_counter() if self._begun else scored) - began
                    whole = ScoreBlock.concatenate(parts[index])
                    parts[index].clear()
                    yield index, whole, seconds / n_cells if n_cells else 0.0


def requests_by_length(
    profiles: Sequence[QueryProfile], partition: Partition, min_scores: Callable[..., Sequence[int]]
) -> list[ScoreRequest]:
    """Requests with floors for ranges of lengths.

    The E-value of a score increases with the length of the subject, so long subjects, which contain most residues, have
    higher floors than the shortest one. ``min_scores`` gives those of all profiles, for all subjects or for those of
    the :data:`LengthRange` that it is called with.
    """
    between = [(lengths[0], min_scores(lengths)) for lengths in length_ranges(partition)]
    return [
        ScoreRequest(profile, floor, floors_by_length=tuple((shortest, scores[index]) for shortest, scores in between))
        for index, (profile, floor) in enumerate(zip(profiles, min_scores(), strict=True))
    ]


def length_ranges(partition: Partition) -> list[LengthRange]:
    """The shortest and the longest length of the subjects between two of :data:`LENGTH_STEPS`; none if there are no
    subjects.
    """
    lengths = partition.lengths
    steps = np.array(LENGTH_STEPS, lengths.dtype)  # with another type, NumPy would copy the lengths
    borders = sorted({0, *np.searchsorted(lengths, steps).tolist(), len(partition)})
    return [(int(lengths[first]), int(lengths[stop - 1])) for first, stop in itertools.pairwise(borders)]


def in_proportion(progress: Progress | None, part: int, whole: int) -> Progress | None:
    """A callback that reports ``part`` cells to ``progress`` for every ``whole`` completed cells.

    Remainders are carried over, so that the sum is exact.
    """
    if progress is None or part == whole:
        return progress
    report = progress
    done = reported = 0

    def advance(cells: int) -> None:
        nonlocal done, reported
        done += cells
        new = done * part // whole - reported
        reported += new
        report(new)

    return advance
