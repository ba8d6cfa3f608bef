"""The plan of an engine call: which kernel scores which subjects against which query, and why.

:func:`plan_search` takes score requests, a partition and the properties of the device, and returns a
:class:`SearchPlan`. It is a pure function and needs no GPU. Compilation, the packing of profiles, the launches and
``swsearch query --explain`` read the plan. Three things are decided later, because they depend on results: whether a
bound takes the place of scores, the type of scores beyond 16 bits, and the windows that are scored again.

A batch is one query, or two that share words. Subjects are ordered by length, and a batch divides them into four
ranges, each with its route:

====================  =============================================================  ======================
route                 subjects                                                       from index
====================  =============================================================  ======================
``inter_task``        most subjects: a group of lanes computes each                  0
``intra_task``        those that would end last: a warp, or several, computes each   ``n_short``
verified windows      those whose columns take longer than all others together       ``n_direct``
diamond tiles         the same, for a query of too many rows for windows             ``n_windowed``
====================  =============================================================  ======================

Subjects of the first two ranges whose score exceeds the narrow type are listed on the device and scored again in a
wider type. If there are floors, the inter-task kernel computes an upper bound (:class:`BoundPlan`) or a deferred
maximum, and the subjects that may reach their floor are listed and scored exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch.database.partition import Partition
from swsearch.engine.cuda.runtime.device import DeviceFacts
from swsearch.engine.cuda.runtime.kernels import (
    COLLECT_KERNEL,
    COMPARE_CHECKPOINTS_KERNEL,
    OPEN_COUNTERS_KERNEL,
    WARP,
    Arithmetic,
    IntraTaskEntry,
    KernelSpec,
    Tile,
    inter_task_kernel,
    intra_task_kernel,
)
from swsearch.engine.cuda.search.generic import generic_inter_task_kernel, generic_list_kernel
from swsearch.engine.cuda.search.routing import (
    BITS,
    InterTaskPlan,
    chain_limit,
    deferred_limit,
    first_arithmetic,
    first_long,
    first_longer,
    pair_queries,
    plan_inter_task,
    plan_inter_task_bound,
    plan_intra_task,
    plan_listed_inter_task,
)
from swsearch.engine.cuda.search.thresholds import Thresholds
from swsearch.engine.cuda.search.tiled_subjects import suits_diamonds
from swsearch.engine.protocol import ScoreRequest
from swsearch.query.profile import QueryProfile
from swsearch.scoring.gap import GapPenalty
from swsearch.typing import Lengths

MIN_BOUND_ROWS: Final = 32
"""Shorter queries have no bound: the sample takes more time than the bound saves (``benchmark_bound.py --biased``)."""
MAX_DEFERRED_SHARE: Final = 1 / 16
MAX_BOUND_SHARE: Final = 1 / 4
"""If more than this share of the subjects passes a deferred kernel or a bound, the exact kernel scores all subjects
again."""
SAMPLED: Final = 4096
SAMPLED_RESIDUES: Final = 384
MAX_SAMPLE_SHARE: Final = 0.06
"""A bound is computed first for this number of subjects of at most so many residues, or for the shortest ones, which
takes about a hundredth of the time for all. If more than this share of them passes, scores are cheaper than the bound.
Longer subjects pass more often."""


@dataclass(frozen=True)
class PlanOptions:
    """The options of an engine that change its plans, but no score.

    Attributes
    ----------
    texture : bool
        Read profiles as textures rather than from global memory.
    pairs : bool
        Let two queries of similar length share words.
    deferred : bool
        Use the deferred maximum where the caller gives floors.
    thresholds : Thresholds
    band_rows : int or None
        Rows of a band of the bound that replaces the deferred maximum; 0 for no bound; None for the engine's choice,
        which depends on the query's length and on a sample of the subjects.
    generic : bool
        Plan with generic kernels only.
    diamonds : bool
        Whether long subjects of queries of many thousand rows may be scored by diamonds.
    """

    texture: bool = True
    pairs: bool = True
    deferred: bool = True
    thresholds: Thresholds = field(default_factory=Thresholds)
    band_rows: int | None = None
    generic: bool = False
    diamonds: bool = True


@dataclass(frozen=True)
class ListedRoute:
    """The launch of a kernel for listed subjects: its number type, tile and kernel."""

    arithmetic: Arithmetic
    tile: Tile
    kernel: KernelSpec


@dataclass(frozen=True, eq=False)
class BoundPlan:
    """A bound that takes the place of the inter-task kernels of a batch if few subjects of a sample pass it.

    Attributes
    ----------
    inter_task : InterTaskPlan
    kernels : tuple of KernelSpec
        The kernel of each strip.
    rows : intp array
        The sample: indices of subjects, ascending.
    most_passing : int
        The largest number of subjects of the sample, counted once for each query, with which the bound is used.
    """

    inter_task: InterTaskPlan
    kernels: tuple[KernelSpec, ...]
    rows: NDArray[np.intp]
    most_passing: int


@dataclass(frozen=True)
class FloorRange:
    """Consecutive subjects with the same floor.

    Attributes
    ----------
    first, stop : int
        Index of the first subject, and of the one after the last.
    floor : int
    limit : int or None
        Lowest result of a deferred kernel with which a subject may reach the floor; None if any result may.
    """

    first: int
    stop: int
    floor: int
    limit: int | None


@dataclass(frozen=True, eq=False)
class QueryPlan:
    """The routes of one query of a batch.

    Attributes
    ----------
    index : int
        Index of the request in the caller's list.
    request : ScoreRequest
    ranges : tuple of FloorRange
        All subjects, by their floors; empty if all scores are needed.
    is_deferred : bool
        Whether a deferred kernel, or a bound, decides which subjects are scored.
    long : ListedRoute or None
        The route of the subjects from ``n_short`` to ``n_direct``.
    listed : InterTaskPlan or None
        How the inter-task kernels score the subjects that pass a bound, if they are many; None if there is no bound.
    listed_kernels : tuple of KernelSpec
    again : ListedRoute or None
        The route of subjects that are scored again; None if no score can exceed the type.
    windows : ListedRoute or None
        The route of the subjects from ``n_direct`` to ``n_windowed``.
    """

    index: int
    request: ScoreRequest
    ranges: tuple[FloorRange, ...]
    is_deferred: bool
    long: ListedRoute | None
    listed: InterTaskPlan | None
    listed_kernels: tuple[KernelSpec, ...]
    again: ListedRoute | None
    windows: ListedRoute | None

    @property
    def profile(self) -> QueryProfile:
        """The query's profile."""
        return self.request.profile


@dataclass(frozen=True, eq=False)
class BatchPlan:
    """One query, or two that share words, against the subjects of a partition.

    Attributes
    ----------
    queries : tuple of QueryPlan
    inter_task : InterTaskPlan
        Its ``order`` refers to ``queries``.
    inter_task_kernels : tuple of KernelSpec
        The kernel of each strip.
    bound : BoundPlan or None
    n_short, n_direct, n_windowed, n_subjects : int
        The ends of the ranges of the routes.
    most_again : int
        If the device lists more subjects to score again, it scores none of them again.
    n_cells : int
        Cells of the alignment matrices.
    """

    queries: tuple[QueryPlan, ...]
    inter_task: InterTaskPlan
    inter_task_kernels: tuple[KernelSpec, ...]
    bound: BoundPlan | None
    n_short: int
    n_direct: int
    n_windowed: int
    n_subjects: int
    most_again: int
    n_cells: int

    @property
    def indices(self) -> tuple[int, ...]:
        """Indices of the requests in the caller's list."""
        return tuple(query.index for query in self.queries)

    @property
    def profiles(self) -> list[QueryProfile]:
        """The profiles of the queries."""
        return [query.profile for query in self.queries]

    @property
    def deferred(self) -> bool:
        """Whether the inter-task kernel is deferred."""
        return self.inter_task.deferred

    @property
    def first_kernels(self) -> list[KernelSpec]:
        """The inter-task kernels, those of the bound first."""
        if not self.n_short:
            return []
        return [*(self.bound.kernels if self.bound is not None else ()), *self.inter_task_kernels]

    @property
    def kernels(self) -> list[KernelSpec]:
        """The kernels of the first launches, in the order of their use."""
        kernels = self.first_kernels
        collects = False
        for query in self.queries:
            kernels += [*query.listed_kernels, OPEN_COUNTERS_KERNEL] if query.listed is not None else []
            kernels += [route.kernel for route in (query.windows, query.long, query.again) if route is not None]
            collects |= query.again is not None or query.request.floor is not None
            if query.windows is not None:
                kernels.append(COMPARE_CHECKPOINTS_KERNEL)
        return [*kernels, COLLECT_KERNEL] if collects and self.n_direct else kernels

    @property
    def generic(self) -> bool:
        """Whether the kernels are generic ones."""
        return self.inter_task.generic

    def lines(self) -> list[str]:
        """A description for the user, one line per route."""
        lengths = " and ".join(f"{query.profile.length:,}" for query in self.queries)
        shared = " that share words" if len(self.queries) == 2 else ""
        plan = self.inter_task
        found = [f"{'queries' if shared else 'query'} of {lengths} residues{shared}"]
        found[0] += "; generic kernels" if self.generic else ""
        if self.n_short:
            of_subjects = f"  inter-task: {self.n_short:,} subjects, "
            found.append(of_subjects + plan.line())
            if self.bound is not None:
                n_sampled = len(self.bound.rows) * len(self.queries)
                found[-1] = of_subjects + self.bound.inter_task.line()
                found.append(f"    if at most {self.bound.most_passing:,} of {n_sampled:,} in a sample pass the bound")
                found.append(f"    otherwise {plan.line()}")
        for query in self.queries:
            of_query = f"query of {query.profile.length:,}: " if shared else ""
            if query.long is not None:
                found.append(f"  intra-task: {of_query}{self.n_direct - self.n_short:,} subjects would end last")
            if query.windows is not None:
                n_windowed = self.n_windowed - self.n_direct
                found.append(f"  verified windows: {of_query}{n_windowed:,} subjects take longer than all others")
            if self.n_windowed < self.n_subjects:
                found.append(f"  diamond tiles: {of_query}{self.n_subjects - self.n_windowed:,} long subjects")
            if query.again is not None:
                if not query.is_deferred:
                    why = f"score more than {plan.arithmetic.largest_exact(query.profile.max_score):,}"
                else:
                    floors = sorted({part.floor for part in query.ranges})
                    lengths = f" to {floors[-1]:,}, by their length" if len(floors) > 1 else ""
                    why = f"may reach a score of {floors[0]:,}{lengths}"
                found.append(f"  scored again in {BITS[query.again.arithmetic]}: {of_query}subjects that {why}")
        return found


@dataclass(frozen=True, eq=False)
class SearchPlan:
    """The batches of an engine call, in the order of their launches."""

    batches: tuple[BatchPlan, ...]

    @cached_property
    def kernels(self) -> list[KernelSpec]:
        """The kernels of all batches, each once; the inter-task kernels, which take longest to compile, come first."""
        inter_task = [kernel for batch in self.batches for kernel in batch.first_kernels]
        return list(dict.fromkeys([*inter_task, *(kernel for batch in self.batches for kernel in batch.kernels)]))

    def lines(self) -> list[str]:
        """A description for the user, one line per route."""
        return [line for batch in self.batches for line in batch.lines()]


def plan_search(
    requests: Sequence[ScoreRequest],
    partition: Partition,
    facts: DeviceFacts,
    options: PlanOptions,
    plan_one: Callable[..., BatchPlan] | None = None,
) -> SearchPlan:
    """Plan the batches of an engine call.

    Parameters
    ----------
    requests : sequence of ScoreRequest
    partition : Partition
        Subjects in the order of their lengths, at least one.
    facts : DeviceFacts
    options : PlanOptions
    plan_one : callable, optional
        Plans a batch, as :func:`plan_batch` does.

    Returns
    -------
    SearchPlan
        Each request is in one batch. Batches are ordered by their first request, so that results become available in
        about the order of the requests.
    """
    profiles = [request.profile for request in requests]
    tiled = [
        index
        for index, profile in enumerate(profiles)
        if first_tiled(partition, profile, facts, options) < len(partition)
    ]
    return SearchPlan(
        tuple(
            (plan_one or plan_batch)(indices, [requests[index] for index in indices], partition, facts, options)
            for indices in batch_indices(profiles, facts, options, tiled)
        )
    )


def batch_indices(
    profiles: Sequence[QueryProfile], facts: DeviceFacts, options: PlanOptions, alone: Sequence[int] = ()
) -> list[tuple[int, ...]]:
    """Indices of the profiles of each batch: two that are faster together, or one, such as each of ``alone``."""
    if not options.pairs:
        return [(index,) for index in range(len(profiles))]
    others = [index for index in range(len(profiles)) if index not in alone]
    pairs = pair_queries([profiles[index] for index in others], facts.architecture)
    found = [tuple(others[index] for index in pair) for pair in pairs]
    return sorted([*found, *((index,) for index in alone)], key=min)


def plan_batch(
    indices: tuple[int, ...],
    requests: Sequence[ScoreRequest],
    partition: Partition,
    facts: DeviceFacts,
    options: PlanOptions,
    *,
    windows: bool = True,
    diamonds: bool = True,
) -> BatchPlan:
    """Plan one batch: ``requests`` are one query, or two that share words, with their ``indices``.

    Without ``windows`` or ``diamonds``, no subject takes that route.
    """
    profiles = [request.profile for request in requests]
    ranges = [floor_ranges(request, partition.lengths) for request in requests]
    deferred = options.deferred and all(each and all(part.limit is not None for part in each) for each in ranges)
    inter_task = plan_inter_task(
        profiles, facts.architecture, deferred=deferred, band=options.band_rows or 0, generic=options.generic
    )
    n_windowed = n_direct = len(partition)
    if diamonds and len(profiles) == 1:
        n_windowed = n_direct = first_tiled(partition, profiles[0], facts, options)
    rows = [profile.length for profile in profiles]
    if windows:
        longest = chain_limit(residues_of_first(partition, n_windowed), rows, facts.multiprocessors)
        longest = max(longest, options.thresholds.windowed_residues)
        n_direct = min(first_longer(partition.lengths, longest), n_windowed)
    groups = max(strip.shape.blocks * strip.shape.threads // strip.shape.tile.group for strip in inter_task.strips)
    n_short = first_long(
        partition.lengths[:n_direct], residues_of_first(partition, n_direct), facts.multiprocessors * groups
    )
    if options.generic and inter_task.arithmetic is not Arithmetic.FAST:
        n_short = 0  # no generic inter-task kernel has these gap costs
    longest = int(partition.lengths[n_direct - 1]) if n_direct else 0

    bound = None
    if inter_task.deferred and options.band_rows is None and n_short >= max(options.thresholds.bound_subjects, 1):
        bound = plan_bound(profiles, partition.lengths[:n_short], inter_task, facts, options)
    is_bounded = n_short > 0 and (bound is not None or inter_task.band > 0)
    queries = []
    for index, request, of_query in zip(indices, requests, ranges, strict=True):
        profile = request.profile
        listed = plan_listed_inter_task(profile, generic=options.generic) if is_bounded else None
        again: Arithmetic | None = Arithmetic.SHORT if inter_task.deferred else inter_task.arithmetic.wider
        if not inter_task.deferred and not exceeds(profile, longest, inter_task.arithmetic):
            again = None
        queries.append(
            QueryPlan(
                index,
                request,
                of_query,
                inter_task.deferred,
                plan_listed(profile, inter_task.arithmetic, facts, options) if n_short < n_direct else None,
                listed,
                kernels_of(listed, profile.gap, options, listed=True) if listed is not None else (),
                plan_listed(profile, again, facts, options) if again is not None and n_direct else None,
                plan_listed(profile, first_arithmetic(profile), facts, options, "score_windows")
                if n_direct < n_windowed
                else None,
            )
        )
    most_again = n_direct
    if inter_task.deferred:
        share = MAX_BOUND_SHARE if is_bounded else MAX_DEFERRED_SHARE
        most_again = int(max(len(partition) * share, WARP))
    return BatchPlan(
        tuple(queries),
        inter_task,
        kernels_of(inter_task, profiles[0].gap, options),
        bound,
        n_short,
        n_direct,
        n_windowed,
        len(partition),
        most_again,
        partition.n_residues * sum(rows),
    )


def floor_ranges(request: ScoreRequest, lengths: Lengths) -> tuple[FloorRange, ...]:
    """The floors of subjects with these ascending lengths; empty if all scores are needed."""
    if request.floor is None:
        return ()
    floors = [request.floor, *(floor for _, floor in request.floors_by_length)]
    stops = [*(first_longer(lengths, shortest - 1) for shortest, _ in request.floors_by_length), len(lengths)]
    return tuple(
        FloorRange(first, stop, floor, deferred_limit(request.profile, floor))
        for first, stop, floor in zip([0, *stops[:-1]], stops, floors, strict=True)
        if first < stop
    )


def kernels_of(
    plan: InterTaskPlan, gap: GapPenalty, options: PlanOptions, *, listed: bool = False
) -> tuple[KernelSpec, ...]:
    """The inter-task kernel of each strip, for all subjects or for listed ones."""
    if plan.generic:
        return tuple(
            generic_inter_task_kernel(strip.shape, deferred=plan.deferred, band=plan.band, listed=listed)
            for strip in plan.strips
        )
    return tuple(
        inter_task_kernel(
            plan.arithmetic,
            strip.shape.tile,
            gap,
            deferred=plan.deferred,
            band=plan.band,
            listed=listed,
            edges=strip.edges,
            texture=options.texture,
            threads=strip.shape.threads,
            blocks=strip.shape.blocks,
        )
        for strip in plan.strips
    )


def plan_bound(
    profiles: Sequence[QueryProfile],
    lengths: Lengths,
    deferred: InterTaskPlan,
    facts: DeviceFacts,
    options: PlanOptions,
) -> BoundPlan | None:
    """The bound for subjects of these ascending lengths; None if it is not faster than the deferred kernel."""
    if max(profile.length for profile in profiles) < MIN_BOUND_ROWS:
        return None
    plan = plan_inter_task_bound(profiles, facts.architecture, generic=options.generic)
    if plan.cost >= deferred.cost:
        return None
    rows = _spread(max(first_longer(lengths, SAMPLED_RESIDUES), min(len(lengths), SAMPLED)))
    kernels = kernels_of(plan, profiles[0].gap, options)
    return BoundPlan(plan, kernels, rows, int(len(rows) * len(profiles) * MAX_SAMPLE_SHARE))


@cache
def _spread(n_subjects: int) -> NDArray[np.intp]:
    """Indices of at most :data:`SAMPLED` of the first subjects, at least one, evenly distributed."""
    return np.unique(np.linspace(0, n_subjects - 1, min(SAMPLED, n_subjects)).astype(np.intp))


def plan_listed(
    profile: QueryProfile,
    arithmetic: Arithmetic,
    facts: DeviceFacts,
    options: PlanOptions,
    entry: IntraTaskEntry = "intra_task",
) -> ListedRoute:
    """The route of listed subjects of one query in a number type."""
    windows = entry == "score_windows"
    tile = plan_intra_task(profile, facts.architecture, arithmetic, windows=windows, generic=options.generic)
    if options.generic:
        return ListedRoute(arithmetic, tile, generic_list_kernel(arithmetic, entry))
    strips = tile.strips(profile.length)
    kernel = intra_task_kernel(
        arithmetic, tile, profile.gap, strips=strips, texture=options.texture, warps=1, entry=entry
    )
    return ListedRoute(arithmetic, tile, kernel)


def first_tiled(partition: Partition, profile: QueryProfile, facts: DeviceFacts, options: PlanOptions) -> int:
    """Index of the first subject that is scored by diamonds; the length if there is none."""
    if not options.diamonds or profile.length <= options.thresholds.windowed_rows or not suits_diamonds(profile):
        return len(partition)
    limit = chain_limit(partition.n_residues, [profile.length], facts.multiprocessors)
    return first_longer(partition.lengths, max(limit, options.thresholds.diamond_residues))


def residues_of_first(partition: Partition, n_subjects: int) -> int:
    """Residues of the first subjects, nearly all of the partition."""
    return partition.n_residues - int(partition.lengths[n_subjects:].sum(dtype=np.uint64))


def exceeds(profile: QueryProfile, longest: int, arithmetic: Arithmetic) -> bool:
    """Whether a subject of up to ``longest`` residues may score more than a type can represent exactly."""
    return profile.max_score * min(profile.length, longest) > arithmetic.largest_exact(profile.max_score)
