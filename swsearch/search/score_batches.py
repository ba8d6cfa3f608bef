"""Scores of many queries from an engine: batches begun ahead, and the scores of each query as soon as they are there.

A query is a group of profiles: its strands or frames, and their screens. An engine that works in the background scores
on while the caller ranks and aligns what it has scored; any other scores a batch when its results are asked for.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from swsearch.database.partition import Partition
from swsearch.engine.protocol import BackgroundEngine, Progress, ScoreEngine, Scoring
from swsearch.hits.score_block import ScoreBlock
from swsearch.query.profile import QueryProfile
from swsearch.search.top_k_bound import TopKBound


@dataclass(frozen=True, eq=False)
class ScoreBatch:
    """Queries that are scored together.

    Attributes
    ----------
    profiles : list of QueryProfile
        Of all queries, one after another.
    group_of : list of int
        The query of each profile.
    floors : list of int or None
        Of each profile; None where every score is wanted.
    begun : list of Scoring
        One a partition, where the engine works in the background; else empty.
    """

    profiles: list[QueryProfile]
    group_of: list[int]
    floors: list[int] | None
    begun: list[Scoring] = field(default_factory=list)

    def wait_until_prepared(self) -> None:
        """Returns when the engine is at work, if it works in the background."""
        for scoring in self.begun[:1]:
            scoring.wait_until_prepared()

    def cancel(self) -> None:
        """Stop the engine's work on these queries."""
        for scoring in self.begun:
            scoring.cancel()


def begin(
    engine: ScoreEngine,
    partitions: Sequence[Partition],
    groups: Sequence[Sequence[QueryProfile]],
    floors: Sequence[int] | None,
    rules: Sequence[TopKBound | None],
) -> ScoreBatch:
    """Hand queries to an engine; one that works in the background begins.

    Parameters
    ----------
    engine : ScoreEngine
    partitions : sequence of Partition
    groups : sequence of sequences of QueryProfile
        One a query.
    floors : sequence of int or None
        Lowest score that is wanted of each query; None where every score is.
    rules : sequence of TopKBound or None
        One a query. A rule of a query with several profiles is not for the engine: a subject is found with the best of
        them, and those that several leave out could not be counted.
    """
    profiles = [profile for group in groups for profile in group]
    group_of = [number for number, group in enumerate(groups) for _ in group]
    each_floor = None if floors is None else [floors[number] for number in group_of]
    batch = ScoreBatch(profiles, group_of, each_floor)
    if each_floor is not None and isinstance(engine, BackgroundEngine):
        of_engine = [rules[number] if len(groups[number]) == 1 else None for number in group_of]
        for partition in partitions:
            batch.begun.append(engine.begin(profiles, partition, each_floor, of_engine))
    return batch


def results(
    engine: ScoreEngine,
    partitions: Sequence[Partition],
    batch: ScoreBatch,
    progress: Progress | None,
    idle_since: float,
) -> Iterator[tuple[int, list[ScoreBlock], float]]:
    """The queries' scores in their order.

    Parameters
    ----------
    idle_since : float
        When an engine that works in the background could begin with them, by ``time.perf_counter``.

    Yields
    ------
    number : int
        Of the query in its batch.
    blocks : list of ScoreBlock
        One a profile of the query: its scores in all partitions.
    seconds : float
        The engine's time a cell so far.
    """
    waiting: dict[int, dict[int, ScoreBlock]] = {number: {} for number in batch.group_of}
    size = {number: batch.group_of.count(number) for number in waiting}
    order = iter(list(waiting))
    wanted = next(order, None)
    for place, block, seconds in _score(engine, partitions, batch, progress, idle_since):
        waiting[batch.group_of[place]][place] = block
        while wanted is not None and len(waiting[wanted]) == size[wanted]:
            found = waiting.pop(wanted)
            yield wanted, [found[place] for place in sorted(found)], seconds
            wanted = next(order, None)


def _score(
    engine: ScoreEngine,
    partitions: Sequence[Partition],
    batch: ScoreBatch,
    progress: Progress | None,
    idle_since: float,
) -> Iterator[tuple[int, ScoreBlock, float]]:
    """Each profile's place and its scores in all partitions, as soon as they are there, and the time a cell.

    That is the time since the engine could begin, over the cells it has told of till then.
    """
    began = idle_since if batch.begun else time.perf_counter()
    n_cells = 0

    def tell(cells: int) -> None:
        nonlocal n_cells
        n_cells += cells
        if progress is not None:
            progress(cells)

    parts: list[list[ScoreBlock]] = [[] for _ in batch.profiles]
    if not partitions:
        yield from ((place, ScoreBlock.concatenate([]), 0.0) for place in range(len(parts)))
    for number, partition in enumerate(partitions):
        if batch.begun:
            found: Iterable[tuple[int, ScoreBlock]] = batch.begun[number].results(tell)
        else:
            found = enumerate(engine.score(batch.profiles, partition, batch.floors, tell))
        scored = time.perf_counter()
        for place, block in found:
            parts[place].append(block)
            if number == len(partitions) - 1:
                seconds = (time.perf_counter() if batch.begun else scored) - began
                whole = ScoreBlock.concatenate(parts[place])
                parts[place].clear()
                yield place, whole, seconds / n_cells if n_cells else 0.0


def in_proportion(progress: Progress | None, part: int, whole: int) -> Progress | None:
    """A progress that tells ``progress`` of ``part`` cells for each ``whole`` done; no cell is lost in rounding."""
    if progress is None or part == whole:
        return progress
    tell = progress
    done = told = 0

    def advance(cells: int) -> None:
        nonlocal done, told
        done += cells
        new = done * part // whole - told
        told += new
        tell(new)

    return advance
