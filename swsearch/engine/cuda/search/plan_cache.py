"""The plans of batches that were already planned for queries of the same shape.

A batch's plan depends on the lengths, gap costs and score ranges of its queries, not on their letters. Planning a batch
takes as long as a GPU needs to score a few short queries, so the engine plans each shape once per partition.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Final

from swsearch.database.partition import Partition
from swsearch.engine.cuda.runtime.device import DeviceFacts
from swsearch.engine.cuda.search.plan import BatchPlan, PlanOptions, plan_batch
from swsearch.engine.cuda.search.profile import residue_columns
from swsearch.engine.protocol import ScoreRequest

KNOWN_PLANS: Final = 256


def _shape(request: ScoreRequest) -> Hashable:
    """All properties of a request on which a plan depends."""
    profile = request.profile
    return (
        profile.length, profile.gap, profile.max_score, residue_columns([profile]), len(profile.table),
        request.floor, request.floors_by_length,
    )  # fmt: skip


def _same(partition: Partition, other: Partition | None) -> bool:
    """Whether two partitions, both alive, have the same subjects in the same memory."""
    if other is None or len(partition) != len(other):
        return False
    starts, lengths = partition.starts.ctypes.data, partition.lengths.ctypes.data
    return starts == other.starts.ctypes.data and lengths == other.lengths.ctypes.data


class PlanCache:
    """Plans of one device and one set of options, against the partition of the last call."""

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
        """See :func:`swsearch.engine.cuda.search.plan.plan_batch`."""
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
