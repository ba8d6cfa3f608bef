"""Plans engine calls: decides which kernel scores which subjects against which query.

Inputs are score requests, a partition and the properties of the device; the output is a
:class:`swsearch.engine.cuda.search.plan.SearchPlan`, which explains the routes. The functions are pure and need no GPU.
:class:`PlanCache` remembers the plans of batches: they depend on the lengths, gap costs and score ranges of the
queries, not on their letters, and planning a batch takes as long as a GPU needs to score a few short queries.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch.arrays import distinct
from swsearch.database.partition import Partition
from swsearch.engine.cuda.runtime.device import DeviceFacts
from swsearch.engine.cuda.runtime.kernels import (
    WARP,
    Arithmetic,
    IntraTaskEntry,
    KernelSpec,
    inter_task_kernel,
    intra_task_kernel,
)
from swsearch.engine.cuda.search.generic import generic_inter_task_kernel, generic_list_kernel
from swsearch.engine.cuda.search.plan import (
    BatchPlan,
    BoundPlan,
    FloorRange,
    ListedRoute,
    PlanOptions,
    QueryPlan,
    SearchPlan,
)
from swsearch.engine.cuda.search.profile import residue_columns
from swsearch.engine.cuda.search.routing import (
    InterTaskPlan,
    bound_limit,
    chain_limit,
    first_arithmetic,
    first_long,
    first_longer,
    pair_queries,
    plan_inter_task,
    plan_inter_task_bound,
    plan_intra_task,
    plan_listed_inter_task,
)
from swsearch.engine.cuda.search.tiled_subjects import suits_diamonds
from swsearch.engine.protocol import ScoreRequest
from swsearch.query.profile import QueryProfile
from swsearch.scoring.scheme import GapPenalty
from swsearch.typing import Lengths

MIN_BOUND_ROWS: Final = 32
"""Shorter queries have no bound: the sample takes more time than the bound saves (``benchmark_bound.py --biased``)."""
MAX_BOUND_SHARE: Final = 1 / 4
"""If more than this share of the subjects passes a bound, the exact kernel scores all subjects again."""
SAMPLED: Final = 4096
SAMPLED_RESIDUES: Final = 384
MAX_SAMPLE_SHARE: Final = 0.06
"""A bound is computed first for :data:`SAMPLED` subjects of at most :data:`SAMPLED_RESIDUES` residues, or for the
shortest ones, which takes about a hundredth of the time for all. If more than this share of them passes, scores are
cheaper than the bound. Longer subjects pass more often."""
KNOWN_PLANS: Final = 256


def plan_search(
    requests: Sequence[ScoreRequest],
    partition: Partition,
    facts: DeviceFacts,
    options: PlanOptions,
    plan_one: Callable[..., BatchPlan] | None = None,
) -> SearchPlan:
    """Plan the batches of an engine call against subjects in the order of their lengths, at least one.

    ``plan_one`` plans a batch, as :func:`plan_batch` does. Each request is in one batch; batches are ordered by their
    first request, so that results become available in about the order of the requests.
    """
    profiles = [request.profile for request in requests]
    if len(profiles) == 1:
        of_batches: list[tuple[int, ...]] = [(0,)]
    else:
        tiled = [
            index
            for index, profile in enumerate(profiles)
            if first_tiled(partition, profile, facts, options) < len(partition)
        ]
        of_batches = batch_indices(profiles, facts, options, tiled)
    return SearchPlan(
        tuple(
            (plan_one or plan_batch)(indices, [requests[index] for index in indices], partition, facts, options)
            for indices in of_batches
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
    has_limits = all(each and all(part.limit is not None for part in each) for each in ranges)
    band = (options.band_rows or 0) if has_limits else 0
    inter_task = plan_inter_task(profiles, facts.architecture, band=band, generic=options.generic)
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
    may_bound = has_limits and inter_task.arithmetic is Arithmetic.FAST
    if may_bound and options.band_rows is None and n_short >= max(options.thresholds.bound_subjects, 1):
        bound = plan_bound(profiles, partition.lengths[:n_short], inter_task, facts, options)
    is_bounded = n_short > 0 and (bound is not None or inter_task.band > 0)
    queries = []
    for index, request, of_query in zip(indices, requests, ranges, strict=True):
        profile = request.profile
        listed = plan_listed_inter_task(profile, generic=options.generic) if is_bounded else None
        again: Arithmetic | None = Arithmetic.SHORT if is_bounded else inter_task.arithmetic.wider
        if not is_bounded and not exceeds(profile, longest, inter_task.arithmetic):
            again = None
        queries.append(
            QueryPlan(
                index,
                request,
                of_query,
                plan_listed(profile, inter_task.arithmetic, facts, options) if n_short < n_direct else None,
                listed,
                kernels_of(listed, profile.gap, options, listed=True) if listed is not None else (),
                plan_listed(profile, again, facts, options) if again is not None and n_direct else None,
                plan_listed(profile, first_arithmetic(profile), facts, options, "score_windows")
                if n_direct < n_windowed
                else None,
            )
        )
    most_again = int(max(len(partition) * MAX_BOUND_SHARE, WARP)) if is_bounded else n_direct
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
    ).with_kernels()


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


def kernels_of(
    plan: InterTaskPlan, gap: GapPenalty, options: PlanOptions, *, listed: bool = False
) -> tuple[KernelSpec, ...]:
    """The inter-task kernel of each strip, for all subjects or for listed ones."""
    if plan.generic:
        return tuple(generic_inter_task_kernel(strip.shape, band=plan.band, listed=listed) for strip in plan.strips)
    return tuple(
        inter_task_kernel(
            plan.arithmetic,
            strip.shape.tile,
            gap,
            band=plan.band,
            listed=listed,
            edges=strip.edges,
            threads=strip.shape.threads,
            blocks=strip.shape.blocks,
        )
        for strip in plan.strips
    )


def plan_bound(
    profiles: Sequence[QueryProfile],
    lengths: Lengths,
    exact: InterTaskPlan,
    facts: DeviceFacts,
    options: PlanOptions,
) -> BoundPlan | None:
    """The bound for subjects of these ascending lengths; None if it is not faster than the exact kernel."""
    if max(profile.length for profile in profiles) < MIN_BOUND_ROWS:
        return None
    plan = plan_inter_task_bound(profiles, facts.architecture, generic=options.generic)
    if plan.cost >= exact.cost:
        return None
    rows = _spread(max(first_longer(lengths, SAMPLED_RESIDUES), min(len(lengths), SAMPLED)))
    kernels = kernels_of(plan, profiles[0].gap, options)
    return BoundPlan(plan, kernels, rows, int(len(rows) * len(profiles) * MAX_SAMPLE_SHARE))


@cache
def _spread(n_subjects: int) -> NDArray[np.intp]:
    """Indices of at most :data:`SAMPLED` of the first subjects, at least one, evenly distributed."""
    return distinct(np.linspace(0, n_subjects - 1, min(SAMPLED, n_subjects)).astype(np.intp))


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
    kernel = intra_task_kernel(arithmetic, tile, profile.gap, strips=strips, warps=1, entry=entry)
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


def _shape(request: ScoreRequest) -> Hashable:
    """All properties of a request on which a plan depends."""
    profile = request.profile
    return (
        profile.length, profile.gap, profile.max_score, residue_columns([profile]), len(profile.table),
        request.floor, request.floors_by_length,
    )  # fmt: skip


def _same(partition: Partition, other: Partition | None) -> bool:
    """Whether two partitions, both alive, have the same subjects in the same memory."""
    if partition is other:
        return True
    if other is None or len(partition) != len(other):
        return False
    starts, lengths = partition.starts.ctypes.data, partition.lengths.ctypes.data
    return starts == other.starts.ctypes.data and lengths == other.lengths.ctypes.data


class PlanCache:
    """Plans of one device and one set of options, against the partition of the last call, each shape planned once."""

    def __init__(self) -> None:
        self._partition: Partition | None = None
        self._plans: dict[Hashable, BatchPlan] = {}

    def plan_batch(
        self,
        indices: tuple[int, ...],
        requests: Sequence[ScoreRequest],
        partition: Partition,
        facts: DeviceFacts,
        options: PlanOptions,
    ) -> BatchPlan:
        """See :func:`plan_batch`."""
        if not _same(partition, self._partition) or len(self._plans) == KNOWN_PLANS:
            self._partition = partition
            self._plans.clear()
        key = tuple(map(_shape, requests))
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = plan_batch(indices, requests, partition, facts, options)
        queries = tuple(
            replace(query, index=index, request=request)
            for query, index, request in zip(plan.queries, indices, requests, strict=True)
        )
        return replace(plan, queries=queries)
