"""Plans engine calls: decides which kernel scores which subjects against which query.

Inputs are score requests, a partition and the properties of the device; the output is a
:class:`swsearch.engine.cuda.search.plan.BatchPlan` for each batch, which explains the routes. Nothing here needs a GPU.

:class:`Planner` plans the batches of a call. :func:`pair_queries` decides which two queries are scored together,
:func:`first_long` from which length on a subject is scored by another kernel, and :func:`layout` finds the strips of a
query, or of two, that are cheapest by their measured times.

The layout is a shortest-path problem: the nodes are rows, and a tile is an edge from one row to the row below the tile.
A table contains the cheapest covers of up to a few tiles' rows; the strips of longer queries begin with tiles of the
lowest cost per row, down to the rows that the table covers. docs/glossary.md explains strip and tile.

:class:`Planner` remembers the plans of batches: they depend on the lengths, gap costs and score ranges of the
queries, not on their letters, and planning a batch takes as long as a GPU needs to score a few short queries.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch.arrays import distinct
from swsearch.database.partition import Partition
from swsearch.deterministic import exp, log
from swsearch.engine.cuda.pairs.diamond_plan import MAX_GAP_FIRST, MAX_LINES
from swsearch.engine.cuda.runtime.device import DeviceFacts
from swsearch.engine.cuda.runtime.kernels import (
    WARP,
    Arithmetic,
    BoundaryMode,
    Gap,
    IntraTaskEntry,
    Pairing,
    intra_task_kernel,
)
from swsearch.engine.cuda.search.plan import (
    BatchPlan,
    BoundPlan,
    FloorRange,
    InterTaskPlan,
    ListedRoute,
    PlanOptions,
    QueryPlan,
)
from swsearch.engine.cuda.search.tiles import (
    FEW_LISTED,
    MOST_LISTED_WORDS,
    TunedTile,
    available_bands,
    choose_list_tile,
    listed_shape,
    tiles,
)
from swsearch.engine.protocol import ScoreRequest
from swsearch.query.profile import QueryProfile
from swsearch.typing import Lengths

MIN_BOUND_ROWS: Final = 32
"""Shorter queries have no bound: the sample takes more time than the bound saves (``benchmark_bound.py --biased``)."""
MAX_BOUND_SHARE: Final = 1 / 4
"""If more than this share of the subjects passes a bound, the exact kernel scores all subjects again."""
SAMPLED: Final = 4096
SAMPLED_RESIDUES: Final = 384
MAX_SAMPLE_SHARE: Final = 0.15
"""A bound is computed first for :data:`SAMPLED` subjects of at most :data:`SAMPLED_RESIDUES` residues, or for the
shortest ones, which takes about a hundredth of the time for all. If more than this share of them passes, scores are
cheaper than the bound. Longer subjects pass more often."""
KNOWN_PLANS: Final = 256
BOUND_COLUMNS: Final = 4
"""Number of columns after which the bound updates the largest E (``bound.cuh``)."""
LONG_SHARE: Final = 0.7
"""A warp of its own is given to each subject that is longer than this share of a group's mean residues, and longer than
``long_residues`` of the options."""
PASSING_DECAY: Final = {5: 0.121, 6: 0.109, 8: 0.090}
PASSING_SCALE: Final = 0.00166
PASSING_ROWS: Final = 1.2
"""About ``scale · rows^1.2 · exp(-decay · limit)`` of the subjects pass a bound, whose decay depends on the rows of its
bands: fitted to queries of 144 to 2,504 rows with E-value limits of 10 to 1,000, for which it errs by a factor of about
2.5 (``benchmarks/benchmark_bound.py``)."""
LISTED_COST: Final = 2.0
"""Cost of the scores of subjects that pass, compared with the same share of the cost of all: long ones pass more often,
and a list of few subjects leaves lanes without work."""
CELLS_PER_CYCLE: Final = 26
"""Cells that a multiprocessor with enough subjects computes per cycle."""
STRIP_CHAIN_ROWS: Final = 256
STRIP_CHAIN_CYCLES: Final = 200
TEAM_CHAIN_CYCLES: Final = 3200
"""Cycles per column of the kernel for listed subjects while the inter-task kernel runs. The first constant is the
largest number of rows of a query of one strip, the second gives the cycles for such a query, and the third gives the
cycles for longer ones, whose warps wait for one another (``benchmarks/benchmark_long_subjects.py``)."""
ROW_UNIT: Final = 4
"""The number of rows of every tile is a multiple of this."""
TABLE_TILES: Final = 6
"""Height of the table of cheapest covers, in tiles of the shape with the lowest cost per row."""


def floor_ranges(request: ScoreRequest, lengths: Lengths) -> tuple[FloorRange, ...]:
    """The floors of subjects with these ascending lengths; empty if all scores are needed."""
    if request.floor is None:
        return ()
    floors = [request.floor, *(floor for _, floor in request.floors_by_length)]
    stops = [*(first_longer(lengths, shortest - 1) for shortest, _ in request.floors_by_length), len(lengths)]
    return tuple(
        FloorRange(first, stop, floor, bound_limit(request.profile, floor))
        for first, stop, floor in zip([0, *stops[:-1]], stops, floors, strict=True)
        if first < stop
    )


def plan_bound(
    profiles: Sequence[QueryProfile],
    limits: Sequence[float],
    lengths: Lengths,
    exact: InterTaskPlan,
    facts: DeviceFacts,
) -> BoundPlan | None:
    """The bound for subjects of these ascending lengths; None if it is not faster than the exact kernel.

    ``limits`` has the mean limit of each query's subjects.
    """
    if max(profile.length for profile in profiles) < MIN_BOUND_ROWS:
        return None
    plan = plan_inter_task_bound(profiles, limits, exact, facts.architecture)
    if plan.cost >= exact.cost:
        return None
    rows = _spread(max(first_longer(lengths, SAMPLED_RESIDUES), min(len(lengths), SAMPLED)))
    most_passing = int(len(rows) * len(profiles) * MAX_SAMPLE_SHARE)
    return BoundPlan(plan, rows, most_passing)


@cache
def _spread(n_subjects: int) -> NDArray[np.intp]:
    """Indices of at most :data:`SAMPLED` of the first subjects, at least one, evenly distributed."""
    return distinct(np.linspace(0, n_subjects - 1, min(SAMPLED, n_subjects)).astype(np.intp))


def total(lengths: Lengths) -> int:
    """Residues of subjects of these lengths."""
    return int(lengths.sum(dtype=np.uint64))


def _compiled_gap(profile: QueryProfile, arithmetic: Arithmetic = Arithmetic.FAST) -> Gap:
    """The gap costs of a query that kernels of a type have as constants."""
    return arithmetic.compiled_gap(profile.gap.open, profile.gap.extend)


def _mean_limit(ranges: Sequence[FloorRange]) -> float:
    """The mean limit of the subjects of these ranges, which all have one."""
    n_of = [part.stop - part.first for part in ranges]
    return sum(n * (part.limit or 0) for n, part in zip(n_of, ranges, strict=True)) / sum(n_of)


# --- Routes ---


def pair_queries(profiles: Sequence[QueryProfile], architecture: int) -> list[tuple[int, ...]]:
    """Indices of two queries of similar length if they are faster together than one after the other, else of one.

    Every profile is in exactly one batch. Two queries share words only if their gap costs are equal.
    """

    def is_faster(first: QueryProfile, second: QueryProfile) -> bool:
        """Whether two queries are faster together; ``second`` is not the shorter one."""
        if first.gap != second.gap:
            return False
        one, other, both = (plan_inter_task(each, architecture).cost for each in ([first], [second], [first, second]))
        return both < one + other

    order = deque(sorted(range(len(profiles)), key=lambda index: (profiles[index].length, index)))
    batches: list[tuple[int, ...]] = []
    while order:
        index = order.popleft()
        paired = bool(order) and is_faster(profiles[index], profiles[order[0]])
        batches.append((index, order.popleft()) if paired else (index,))
    return batches


def bound_limit(profile: QueryProfile, floor: int) -> int | None:
    """Lowest result of a bound with which a subject may score ``floor``; None if every result may.

    The floor is lowered to a score that the fast type certainly represents exactly, so that no larger score is missed.
    """
    certain = min(floor, Arithmetic.FAST.largest_exact(profile.max_score) - profile.max_score)
    limit = certain - profile.gap.open - BOUND_COLUMNS * profile.gap.extend
    return limit if limit > 0 else None


def first_long(lengths: Lengths, n_residues: int, n_groups: int, least: int) -> int:
    """Index of the first subject that is given a warp of its own, among ascending lengths with the sum ``n_residues``.

    It has more than ``least`` residues. One of ``n_groups`` groups of lanes that run at a time would otherwise end
    after all others, because its subject is much larger than a group's share of all residues.
    """
    return first_longer(lengths, max(int(n_residues / max(n_groups, 1) * LONG_SHARE), least))


def first_longer(lengths: Lengths, limit: int) -> int:
    """Index of the first subject of more than ``limit`` residues, among ascending lengths."""
    # A limit of another type would make NumPy convert all lengths.
    return int(np.searchsorted(lengths, lengths.dtype.type(min(limit, np.iinfo(lengths.dtype).max)), side="right"))


def chain_limit(n_residues: int, rows: Sequence[int], multiprocessors: int) -> int:
    """Number of columns from which a listed subject takes longer than the launch of all other subjects.

    ``rows`` are the lengths of the queries that are scored together.
    """
    of_launch = n_residues * sum(rows) / (CELLS_PER_CYCLE * multiprocessors)
    return int(of_launch / (STRIP_CHAIN_CYCLES if max(rows) <= STRIP_CHAIN_ROWS else TEAM_CHAIN_CYCLES))


def plan_inter_task(profiles: Sequence[QueryProfile], architecture: int, *, band: int = 0) -> InterTaskPlan:
    """The strips of one query or of two, the shorter first, whose gap costs are equal; with ``band``, of the bound."""
    return layout(architecture, tuple(profile.length for profile in profiles), _compiled_gap(profiles[0]), band=band)


def plan_inter_task_bound(
    profiles: Sequence[QueryProfile], limits: Sequence[float], exact: InterTaskPlan, architecture: int
) -> InterTaskPlan:
    """The bound for one query or two whose bands are the fastest together with the scores of what passes it.

    Wider bands take fewer instructions, and more subjects pass. ``limits`` are as for :func:`plan_bound`.
    """

    def cost(plan: InterTaskPlan) -> float:
        shares = [passing_share(plan.band, *each) for each in zip(rows, limits, strict=True)]
        return plan.cost + LISTED_COST * exact.cost * sum(shares) / len(shares)

    rows = [profile.length for profile in profiles]
    return min((plan_inter_task(profiles, architecture, band=band) for band in available_bands(architecture)), key=cost)


def passing_share(band: int, n_rows: int, limit: float) -> float:
    """About the share of the subjects that pass a bound with bands of ``band`` rows."""
    return min(1.0, PASSING_SCALE * float(exp(PASSING_ROWS * log(n_rows) - PASSING_DECAY[band] * limit)))


def listed_route(
    architecture: int,
    profile: QueryProfile,
    arithmetic: Arithmetic,
    entry: IntraTaskEntry = "intra_task",
    *,
    tall: bool = False,
) -> ListedRoute:
    """The route of listed subjects of one query in a number type; ``tall``: the list may be long."""
    tile = choose_list_tile(architecture, arithmetic, profile.length, tall=tall)
    edges = BoundaryMode.NONE if tile.strips(profile.length) == 1 else BoundaryMode.OWN
    gap = _compiled_gap(profile, arithmetic)
    return ListedRoute(arithmetic, tile, intra_task_kernel(arithmetic, tile, gap, edges=edges, entry=entry))


# --- Strips ---


@cache
def layout(architecture: int, lengths: tuple[int, ...], gap: Gap = None, *, band: int = 0) -> InterTaskPlan:
    """The cheapest strips, from the first row down, for a query of this length, or for two queries, the shorter first.

    ``gap`` and ``band`` are those of :class:`InterTaskPlan`. Two queries share words down to the end of the shorter
    one, to a few rows beyond it, or to the end of the longer one, whichever is cheapest; below these rows the longer
    one continues in row blocks.
    """
    one = _table(architecture, Pairing.TWO_BLOCKS, band)
    if len(lengths) == 1:
        return InterTaskPlan(_cover(one, lengths[0], whole=True), gap, band)
    shorter, longer = lengths
    two = _table(architecture, Pairing.TWO_QUERIES, band)
    reach = two.shapes[-1].tile.rows
    found = [_cover(two, longer, whole=True)]
    for rows in range(shorter, min(longer, shorter + reach), ROW_UNIT):
        shared = _cover(two, rows, whole=False)
        left = max(longer - sum(shape.tile.rows for shape in shared), 0)
        found.append(shared + _cover(one, left, whole=False))
    return min((InterTaskPlan(strips, gap, band) for strips in found), key=lambda plan: plan.cost)


@cache
def listed_layout(n_rows: int, gap: Gap) -> InterTaskPlan:
    """Strips for a query against the subjects that pass a bound, one warp per subject; scores up to 2,047 are exact.

    A list is short, and long subjects pass a bound most often, so the time of a launch is that of one long subject:
    many lanes per subject, which compute a column in few instructions, count for more than the columns by which they
    lag.
    """
    n_strips = -(-n_rows // (2 * WARP * MOST_LISTED_WORDS))
    return InterTaskPlan((listed_shape(-(-n_rows // (2 * WARP * n_strips))),) * n_strips, gap, listed=True)


@dataclass(frozen=True)
class _Table:
    """The cheapest tiles for few rows, and the tile for all rows beyond them.

    ``single`` is the cheapest single tile without boundaries, and ``first`` the first tile of the cheapest cover with
    boundaries, both indexed by rows in units. ``full`` has the lowest cost per row.
    """

    shapes: tuple[TunedTile, ...]
    single: tuple[TunedTile, ...]
    first: tuple[TunedTile, ...]
    full: TunedTile


def _units(rows: int) -> int:
    return -(-rows // ROW_UNIT)


@cache
def _table(architecture: int, pairing: Pairing, band: int) -> _Table:
    shapes = tiles(architecture, pairing, band)
    full = min(shapes, key=lambda shape: shape.edges / shape.tile.rows)
    single = [
        min((s for s in shapes if _units(s.tile.rows) >= units), key=lambda shape: shape.alone)
        for units in range(_units(shapes[-1].tile.rows) + 1)
    ]
    # A command plans its first batch before the device begins, and needs several tables for it: no loop over the tiles.
    heights = np.array([_units(shape.tile.rows) for shape in shapes])
    edges = np.array([shape.edges for shape in shapes])
    costs, first = np.zeros(TABLE_TILES * _units(full.tile.rows) + 1), [full]
    for units in range(1, len(costs)):
        choices = edges + costs[np.maximum(units - heights, 0)]
        chosen = int(choices.argmin())
        costs[units] = choices[chosen]
        first.append(shapes[chosen])
    return _Table(shapes, tuple(single), tuple(first), full)


def _cover(table: _Table, n_rows: int, *, whole: bool) -> tuple[TunedTile, ...]:
    """The cheapest tiles for ``n_rows`` rows; ``whole``: these are all rows, so that a single tile has no boundary."""
    chosen = []
    units = _units(n_rows)
    while units >= len(table.first):
        chosen.append(table.full)
        units -= _units(table.full.tile.rows)
    while units > 0:
        chosen.append(table.first[units])
        units -= _units(chosen[-1].tile.rows)
    if whole and _units(n_rows) < len(table.single):
        alone = table.single[_units(n_rows)]
        if alone.alone <= sum(shape.edges for shape in chosen):
            chosen = [alone]
    return tuple(chosen)


# --- Calls ---


def _shape(request: ScoreRequest) -> Hashable:
    """All properties of a request on which a plan depends."""
    profile = request.profile
    return (
        profile.length, profile.gap, profile.max_score, len(profile.table), request.floor, request.floors_by_length,
    )  # fmt: skip


class Planner:
    """Plans the calls of one engine, and remembers the plans of batches against the partition of the last call."""

    def __init__(self, facts: DeviceFacts, options: PlanOptions) -> None:
        self.facts = facts
        self.options = options
        self.forget()

    def forget(self) -> None:
        """Let go of the plans, and of the partition of the last call."""
        self._partition: Partition | None = None
        self._plans: dict[Hashable, BatchPlan] = {}

    def plan(self, requests: Sequence[ScoreRequest], partition: Partition) -> list[BatchPlan]:
        """Plan the batches of an engine call against subjects in the order of their lengths, at least one.

        Each request is in one batch; batches are ordered by their first request, so that results become available in
        about the order of the requests.
        """
        profiles = [request.profile for request in requests]
        n_direct = [self.first_tiled(partition, profile) for profile in profiles]
        alone = [index for index, first in enumerate(n_direct) if first < len(partition)]
        return [
            self._known(indices, [requests[index] for index in indices], partition, n_direct[indices[0]])
            for indices in self.batches(profiles, alone)
        ]

    def batches(self, profiles: Sequence[QueryProfile], alone: Sequence[int] = ()) -> list[tuple[int, ...]]:
        """Indices of the profiles of each batch: two that are faster together, or one, such as each of ``alone``."""
        if not self.options.pairs:
            alone = range(len(profiles))
        others = [index for index in range(len(profiles)) if index not in alone]
        pairs = pair_queries([profiles[index] for index in others], self.facts.architecture)
        found = [tuple(others[index] for index in pair) for pair in pairs]
        return sorted([*found, *((index,) for index in alone)], key=min)

    def _known(
        self, indices: tuple[int, ...], requests: Sequence[ScoreRequest], partition: Partition, n_direct: int
    ) -> BatchPlan:
        """A batch, planned once for all requests of its shape."""
        known = self._partition
        if known is None or partition.memory != known.memory or len(self._plans) == KNOWN_PLANS:
            self._partition = partition
            self._plans.clear()
        key = tuple(map(_shape, requests))
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = self.plan_batch(indices, requests, partition, n_direct)
        queries = tuple(
            replace(query, index=index, request=request)
            for query, index, request in zip(plan.queries, indices, requests, strict=True)
        )
        return replace(plan, queries=queries)

    def plan_batch(
        self,
        indices: tuple[int, ...],
        requests: Sequence[ScoreRequest],
        partition: Partition,
        n_direct: int | None = None,
        *,
        bounded: bool = True,
    ) -> BatchPlan:
        """Plan one batch: ``requests`` are one query, or two that share words, with their ``indices``.

        The shorter query is the first. Only subjects from ``n_direct`` on, if it is given, are scored by diamonds;
        unless the batch is ``bounded``, there is no bound.
        """
        architecture = self.facts.architecture
        profiles = [request.profile for request in requests]
        ranges = [floor_ranges(request, partition.lengths) for request in requests]
        has_limits = all(each and all(part.limit is not None for part in each) for each in ranges)
        band_rows = self.options.band_rows if bounded else 0
        band = (band_rows or 0) if has_limits else 0
        inter_task = plan_inter_task(profiles, architecture, band=band)
        n_direct = len(partition) if n_direct is None else n_direct
        rows = [profile.length for profile in profiles]
        groups = max(strip.blocks * strip.threads // strip.tile.group for strip in inter_task.strips)
        lengths = partition.lengths[:n_direct]
        n_residues = partition.n_residues - total(partition.lengths[n_direct:])
        n_short = first_long(lengths, n_residues, self.facts.multiprocessors * groups, self.options.long_residues)
        n_columns = self.window_columns(n_residues, rows)
        many = total(lengths[n_short:]) > n_columns * FEW_LISTED * self.facts.multiprocessors

        bound = None
        if has_limits and band_rows is None and n_short >= max(self.options.bound_subjects, 1):
            limits = [_mean_limit(each) for each in ranges]
            bound = plan_bound(profiles, limits, lengths[:n_short], inter_task, self.facts)
        is_bounded = n_short > 0 and (bound is not None or inter_task.band > 0)
        queries = []
        for index, request, of_query in zip(indices, requests, ranges, strict=True):
            profile = request.profile
            long = listed_route(architecture, profile, Arithmetic.FAST, tall=many) if n_short < n_direct else None
            listed = listed_layout(profile.length, _compiled_gap(profile)) if is_bounded else None
            highest = profile.max_score * min(profile.length, int(lengths[-1])) if n_direct else 0
            exceeds = highest > Arithmetic.FAST.largest_exact(profile.max_score)
            again = listed_route(architecture, profile, Arithmetic.SHORT) if is_bounded or exceeds else None
            queries.append(QueryPlan(index, request, of_query, long, listed, again))
        most_again = int(max(len(partition) * MAX_BOUND_SHARE, WARP)) if is_bounded else n_short
        return BatchPlan(
            tuple(queries), inter_task, bound, n_short, n_direct, len(partition), n_columns, most_again
        )  # fmt: skip

    def window_columns(self, n_residues: int, rows: Sequence[int]) -> int:
        """Columns of a window that takes half the time of the launch of all others, which a bound may shorten.

        A shorter window has more overlap. ``n_residues`` are those of all subjects.
        """
        return max(chain_limit(n_residues, rows, self.facts.multiprocessors) // 2, self.options.window_residues)

    def may_bound(self, partition: Partition) -> bool:
        """Whether a bound takes the place of most scores of the partition if floors are given."""
        return self.options.band_rows != 0 and len(partition) >= self.options.bound_subjects

    def first_tiled(self, partition: Partition, profile: QueryProfile) -> int:
        """Index of the first subject that is scored by diamonds; the length if there is none.

        Subjects are cut for queries of fewer rows if gaps cost something to extend
        (:meth:`QueryProfile.most_columns`). Position-specific profiles may have too many rows for diamonds.
        """
        can_be_cut = profile.length <= self.options.diamond_rows and profile.gap.extend > 0
        suits_diamonds = len(profile.table) <= MAX_LINES and 0 < profile.gap.first <= MAX_GAP_FIRST
        if can_be_cut or not suits_diamonds:
            return len(partition)
        limit = chain_limit(partition.n_residues, [profile.length], self.facts.multiprocessors)
        return first_longer(partition.lengths, max(limit, self.options.diamond_residues))
