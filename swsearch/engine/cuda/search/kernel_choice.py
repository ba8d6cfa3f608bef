"""Chooses between the kernels of a plan, which may have to be compiled, and generic ones, which serve at once.

The kernels of a plan are compiled for its tiles and gap costs. On a machine that has not compiled them before, a search
would wait for the compiler longer than it computes. Generic kernels (``tiles``) need no compiler: a batch whose own
kernels are not ready is planned with them. The choice is made when a batch is started, so a search takes its own
kernels from the first batch after they are compiled. Scores do not depend on it.

Kernels are compiled only for a search that is expected to last longer than their compilation: the others would end
before, and the compiler would only take processor time from them. The expected times of a process's searches are
added up, so a process with many short searches compiles as well.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import Enum
from typing import Final

from swsearch.database.partition import Partition
from swsearch.engine.cuda.runtime.device import Device
from swsearch.engine.cuda.runtime.kernels import Arithmetic, IntraTaskEntry, KernelSpec, Tile
from swsearch.engine.cuda.search.plan import BatchPlan, ListedRoute, PlanOptions, SearchPlan, expected_rate
from swsearch.engine.cuda.search.planner import PlanCache, plan_batch, plan_listed, plan_search
from swsearch.engine.protocol import ScoreRequest
from swsearch.errors import InputError
from swsearch.query.profile import QueryProfile
from swsearch.threads import usable_cores

VARIABLE: Final = "SWSEARCH_KERNELS"
"""Environment variable that overrides the policy of the commands, for comparison."""
KERNEL_COMPILE_SECONDS: Final = 0.4
"""Time of one core for a kernel (``benchmarks/benchmark_cold_start.py``)."""


class KernelPolicy(Enum):
    """Which kernels a search uses."""

    COMPILED = "compiled"
    """Its own, for which it waits."""
    AUTO = "auto"
    """Generic ones until its own are compiled."""
    GENERIC = "generic"
    """Generic ones; nothing is compiled that they can replace."""

    @classmethod
    def of_environment(cls) -> KernelPolicy:
        """The policy that :data:`VARIABLE` names, by default ``AUTO``; raises :class:`InputError` for another name."""
        name = os.environ.get(VARIABLE) or cls.AUTO.value
        try:
            return cls(name)
        except ValueError as error:
            known = ", ".join(policy.value for policy in cls)
            raise InputError(f"{VARIABLE}={name!r}: choose {known}") from error


class KernelChoice:
    """Plans the batches of one engine with kernels that are ready, as far as the policy permits."""

    def __init__(self, device: Device, options: PlanOptions, policy: KernelPolicy) -> None:
        self._device = device
        self.options = options
        self._policy = policy
        self._own_plans = PlanCache()
        self._generic_plans = PlanCache()
        self._generic_seconds = 0.0
        self._compiles = policy is KernelPolicy.COMPILED

    # --- Plans ---

    def plan(self, requests: Sequence[ScoreRequest], partition: Partition) -> SearchPlan:
        """The plan of a call with kernels of its own."""
        return plan_search(requests, partition, self._device.facts, self.options, self._own_plans.plan_batch)

    def ready_plan(self, requests: Sequence[ScoreRequest], partition: Partition) -> SearchPlan:
        """The plan by which a call would begin now."""
        return SearchPlan(tuple(self.ready_batch(batch, partition) for batch in self.plan(requests, partition).batches))

    def lines(self, plan: SearchPlan) -> list[str]:
        """Why a plan has generic kernels, in one line for the user; empty if it has none."""
        n_generic = sum(batch.generic for batch in plan.batches)
        if not n_generic:
            return []
        why = "there is no compiler"
        if self._policy is KernelPolicy.GENERIC:
            why = f"{VARIABLE}={self._policy.value}"
        elif self._device.compiles:
            why = "their own are compiled only for a search that takes longer than their compilation"
        return [f"generic kernels for {n_generic:,} of {len(plan.batches):,} batches: {why}"]

    def ready_batch(self, own: BatchPlan, partition: Partition) -> BatchPlan:
        """A batch of :meth:`plan`, with generic kernels unless its own are ready."""
        return self._or_generic(own, partition, self.options, self._generic_plans.plan_batch)

    def plan_batch(
        self,
        indices: tuple[int, ...],
        requests: Sequence[ScoreRequest],
        partition: Partition,
        *,
        bounded: bool = True,
        windows: bool = True,
    ) -> BatchPlan:
        """A batch with its own kernels or generic ones, without diamonds.

        Without ``bounded`` or ``windows``, there is no bound, or no subject is scored in windows.
        """
        band_rows = self.options.band_rows if bounded else 0
        options = replace(self.options, band_rows=band_rows, diamonds=False)

        def plan_one(*arguments: object) -> BatchPlan:
            return plan_batch(*arguments, windows=windows)  # type: ignore[arg-type]

        own = plan_one(indices, requests, partition, self._device.facts, options)
        return self._or_generic(own, partition, options, plan_one)

    def listed(
        self, profile: QueryProfile, arithmetic: Arithmetic, entry: IntraTaskEntry = "intra_task"
    ) -> ListedRoute:
        """The route of listed subjects, with a generic kernel unless the query's own is ready."""
        own = plan_listed(profile, arithmetic, self._device.facts, self.options, entry)
        if not self._needs_generic([own.kernel]):
            return own
        if self._compiles:
            self._device.prepare([own.kernel])
        generic = plan_listed(profile, arithmetic, self._device.facts, replace(self.options, generic=True), entry)
        return generic if self._device.ready([generic.kernel]) else own

    def later_window_tiles(self, profile: QueryProfile) -> list[Tile]:
        """The tiles in which windows may be scored again in wider types."""
        generic = [False] if self._policy is KernelPolicy.COMPILED else [False, True]
        return [
            plan_listed(
                profile, arithmetic, self._device.facts, replace(self.options, generic=each), "score_windows"
            ).tile
            for arithmetic in (Arithmetic.SHORT, Arithmetic.WIDE)
            for each in generic
        ]

    def _needs_generic(self, kernels: Sequence[KernelSpec]) -> bool:
        if self._policy is KernelPolicy.AUTO:
            return not self._device.ready(kernels)
        return self._policy is KernelPolicy.GENERIC

    def _or_generic(
        self, own: BatchPlan, partition: Partition, options: PlanOptions, plan_one: Callable[..., BatchPlan]
    ) -> BatchPlan:
        """The batch, planned with generic kernels if its own are not ready but generic ones are."""
        if not self._needs_generic(own.kernels):
            return own
        requests = [query.request for query in own.queries]
        generic = plan_one(own.indices, requests, partition, self._device.facts, replace(options, generic=True))
        return generic if self._device.ready(generic.kernels) else own

    # --- Compilation ---

    def begin(self, plan: SearchPlan, partition: Partition) -> None:
        """Load the kernels by which a call begins, and begin to compile those that are worth it.

        If generic kernels cannot replace those of a batch, they are compiled in any case.
        """
        ready = SearchPlan(tuple(self.ready_batch(batch, partition) for batch in plan.batches))
        replaced = [own for own, batch in zip(plan.batches, ready.batches, strict=True) if batch is not own]
        if not replaced:
            ready = plan  # whose list of kernels is made once
        if replaced and self._policy is KernelPolicy.AUTO:
            cells = sum(batch.n_cells for batch in replaced)
            self._generic_seconds += cells / expected_rate(self._device.facts, bounded=False)
            missing = [kernel for kernel in plan.kernels if not self._device.ready([kernel])]
            self._compiles = self._generic_seconds >= len(missing) * KERNEL_COMPILE_SECONDS / usable_cores()
        self._device.prepare((plan if self._compiles else ready).kernels)
        self._device.load(ready.kernels)
