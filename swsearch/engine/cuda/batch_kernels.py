"""Predicts the kernels that score batches of queries, so that they are compiled concurrently before the first launch.

:func:`expected_kernels` takes the profiles, their batches and a partition, and returns kernel specifications. The
functions are pure and need no device. A kernel that is predicted but not needed costs one compilation; a kernel that is
needed but not predicted is compiled at its launch. Neither changes a score. The inter-task kernels are listed first
because they take longest to compile.
"""

from __future__ import annotations

from collections.abc import Sequence

from swsearch.database.partition import Partition
from swsearch.engine.cuda.kernels import (
    COLLECT_KERNEL,
    COUNT_KERNEL,
    Arithmetic,
    KernelSpec,
    inter_task_kernel,
    intra_task_kernel,
)
from swsearch.engine.cuda.plan import Batch, InterTaskPlan, deferred_limit, first_long, plan_inter_task, plan_intra_task
from swsearch.engine.cuda.verified_windows import VerifiedWindows
from swsearch.query.profile import QueryProfile
from swsearch.scoring.gap import GapPenalty


def range_kernels(plan: InterTaskPlan, gap: GapPenalty, *, texture: bool) -> list[KernelSpec]:
    """The inter-task kernel of each strip of a plan."""
    return [
        inter_task_kernel(
            plan.arithmetic,
            strip.shape.tile,
            gap,
            deferred=plan.deferred,
            edges=strip.edges,
            texture=texture,
            threads=strip.shape.threads,
            blocks=strip.shape.blocks,
        )
        for strip in plan.strips
    ]


def expected_kernels(
    profiles: Sequence[QueryProfile],
    batches: Sequence[Batch],
    partition: Partition,
    floors: Sequence[int] | None,
    architecture: int,
    multiprocessors: int,
    *,
    deferred: bool,
    texture: bool,
    ruled: bool,
    windows: VerifiedWindows,
) -> list[KernelSpec]:
    """The kernels that the batches need, each once, in the order of their first use.

    Parameters
    ----------
    profiles, batches, partition, floors
        As :class:`swsearch.engine.cuda.engine.CudaEngine` scores them; the partition is not empty.
    architecture, multiprocessors : int
        Properties of the device.
    deferred, texture : bool
        The engine's options.
    ruled : bool
        Whether only the best subjects are requested.
    windows : VerifiedWindows
        The object that scores the longest subjects.
    """
    ranges: list[KernelSpec] = []
    lists: list[KernelSpec] = []
    collects = floors is not None
    longest = int(partition.lengths[-1])
    for batch in batches:
        chosen = [profiles[index] for index in batch.indices]
        wanted = [None if floors is None else floors[index] for index in batch.indices]
        limits = [deferred_limit(profile, floor) for profile, floor in zip(chosen, wanted, strict=True)]
        plan = plan_inter_task(chosen, architecture, deferred=deferred and None not in limits)
        ranges += range_kernels(plan, chosen[0].gap, texture=texture)
        max_groups = max(strip.shape.blocks * strip.shape.threads // strip.shape.tile.group for strip in plan.strips)
        n_whole = windows.first(partition, chosen)
        n_short = first_long(partition.lengths, partition.n_residues, multiprocessors * max_groups)
        for profile in chosen:
            arithmetics = []
            if n_short < n_whole:
                arithmetics.append(plan.arithmetic)
            if n_whole < len(partition):
                lists += windows.kernels(profile)
            if plan.deferred:
                arithmetics.append(Arithmetic.SHORT)
            elif plan.arithmetic.wider is not None and exceeds(profile, longest, plan.arithmetic):
                arithmetics.append(plan.arithmetic.wider)
                collects = True
            for arithmetic in arithmetics:
                tile = plan_intra_task(profile, architecture, arithmetic)
                strips = tile.strips(profile.length)
                lists.append(intra_task_kernel(arithmetic, tile, profile.gap, strips=strips, texture=texture, warps=1))
    others = [kernel for kernel, used in ((COLLECT_KERNEL, collects), (COUNT_KERNEL, ruled)) if used]
    return list(dict.fromkeys([*ranges, *lists, *others]))


def exceeds(profile: QueryProfile, longest: int, arithmetic: Arithmetic) -> bool:
    """Whether a subject of up to ``longest`` residues may score more than a type can represent exactly."""
    return profile.max_score * min(profile.length, longest) > arithmetic.largest_exact(profile.max_score)
