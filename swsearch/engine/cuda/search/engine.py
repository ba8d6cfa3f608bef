"""The CUDA engine: scores profiles against partitions on one GPU.

Inputs are score requests and a partition; the output is one :class:`swsearch.hits.score_block.ScoreBlock` per request.
A call is planned (``plan``) and scored by the engine's ``pipeline``, batch by batch (``batch_run``). Callers that have
several calls pass a source of them to :meth:`CudaEngine.serve`, so that the device does not wait between two calls.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Final

from swsearch.database.partition import Partition
from swsearch.engine.cuda.pairs.diamonds import DiamondSweep
from swsearch.engine.cuda.runtime.device import Device, DeviceFacts, OutOfDeviceMemory, Scratch, Timing
from swsearch.engine.cuda.runtime.pycuda_device import PyCudaDevice
from swsearch.engine.cuda.search.batch_run import Resources
from swsearch.engine.cuda.search.end_positions import EndFinder
from swsearch.engine.cuda.search.launches import IntraTaskLauncher
from swsearch.engine.cuda.search.long_subjects import LongSubjectLauncher
from swsearch.engine.cuda.search.pipeline import IN_FLIGHT, Pipeline, ScoreCall
from swsearch.engine.cuda.search.plan import PlanOptions, SearchPlan, Thresholds
from swsearch.engine.cuda.search.planner import Planner
from swsearch.engine.cuda.search.slots import Slot
from swsearch.engine.cuda.search.subjects import SubjectStore
from swsearch.engine.protocol import ScoreRequest
from swsearch.hits.score_block import Ends, ScoreBlock
from swsearch.query.profile import QueryProfile
from swsearch.typing import Closeable, Progress, Scores

DATABASE_SHARE: Final = 0.5
"""Share of the device's free memory that databases may take."""
PIECE_SHARE: Final = 0.02
"""Share that the subjects of one launch may take: the boundaries between strips need up to twenty bytes per residue in
addition."""
SMALLEST_SHARE: Final = 1 << 18
"""The smallest buffers of a batch are this fraction of the device's memory, so that they need not grow in a search."""


class CudaEngine(Closeable):
    """Scores on one GPU, by default the first; see :class:`swsearch.engine.protocol.ScoreEngine`.

    Parameters
    ----------
    device : Device, optional
    memory_limit : int, optional
        Bytes of device memory for databases, by default :data:`DATABASE_SHARE` of the free memory. Larger databases are
        streamed.
    pairs, band_rows
        See :class:`swsearch.engine.cuda.search.plan.PlanOptions`.
    thresholds : Thresholds, optional
        Sizes at which the engine changes its method; by default the measured ones.

    Attributes
    ----------
    store : SubjectStore
        The databases on the device.
    timing : Timing
        The work of the kernels.

    Raises
    ------
    EngineUnavailable
        No device can be used; the message names the remedy.
    """

    name = "cuda"
    profiles_per_call = 128
    rows_per_call = 2**31

    def __init__(
        self,
        device: Device | None = None,
        memory_limit: int | None = None,
        *,
        pairs: bool = True,
        thresholds: Thresholds | None = None,
        band_rows: int | None = None,
    ) -> None:
        thresholds = Thresholds() if thresholds is None else thresholds
        self._device: Device = PyCudaDevice() if device is None else device
        self._options = PlanOptions(pairs, thresholds, band_rows)
        self._planner = Planner(self._device.facts, self._options)
        self.timing = Timing()
        self._scratch = Scratch(self._device)
        smallest = self._device.facts.memory_bytes // SMALLEST_SHARE
        slots = [Slot(self._device, smallest=smallest) for _ in range(IN_FLIGHT)]
        self._lists = IntraTaskLauncher(self._device, self._scratch)
        self._end_finder = EndFinder(Slot(self._device), self._lists, self._planner)
        free = self._device.free_bytes()
        if memory_limit is None:
            memory_limit = int(free * DATABASE_SHARE)
        self.store = SubjectStore(self._device, memory_limit, int(free * PIECE_SHARE))
        long = LongSubjectLauncher(self._lists, self._planner)
        resources = Resources(
            self._device, self._planner, self._scratch, Slot(self._device), self._lists, long, self.timing
        )
        self._pipeline = Pipeline(resources, self.store, slots, DiamondSweep(self._device, self.make_room))

    def may_bound(self, partition: Partition) -> bool:
        """Whether a bound takes the place of most scores of the partition if floors are given."""
        return self._options.band_rows != 0 and len(partition) >= self._options.thresholds.bound_subjects

    def batches(self, profiles: Sequence[QueryProfile]) -> list[tuple[int, ...]]:
        """The indices of the profiles that are scored together in each batch: one or two."""
        return self._planner.batches(profiles)

    def plan(self, requests: Sequence[ScoreRequest], partition: Partition) -> SearchPlan:
        """The plan by which the requests are scored against a partition that the device holds."""
        return self._planner.plan(requests, partition)

    def explain(self, requests: Sequence[ScoreRequest], partition: Partition) -> list[str]:
        """A description for the user of how a call would begin now."""
        cut = self._pipeline.cutter.cut(requests, partition, self.store.limit_bytes, scores=False)
        if cut is not None:
            requests, partition = [cut.request(request) for request in requests], cut.partition
        return [*([cut.line()] if cut is not None else []), *self.plan(requests, partition).lines()]

    def free_bytes(self) -> int:
        """Free device memory in bytes."""
        return self._device.free_bytes()

    @property
    def facts(self) -> DeviceFacts:
        """Properties of the device."""
        return self._device.facts

    def make_room(self) -> None:
        """Free all device memory that is cached between calls; databases are uploaded again when they are needed."""
        self._device.synchronize()
        self._pipeline.free()
        self.store.clear()

    def preload(self, partition: Partition) -> None:
        """Do what a search of the partition needs before its first kernel, as far as memory suffices."""
        with contextlib.suppress(OutOfDeviceMemory):  # the search itself takes smaller pieces, or reports it
            self.store.preload(partition)
            self._pipeline.reserve()

    # --- The protocol ---

    def score(
        self, requests: Sequence[ScoreRequest], partition: Partition, progress: Progress | None = None
    ) -> list[ScoreBlock]:
        """See :class:`swsearch.engine.protocol.ScoreEngine`.

        If the device runs out of memory, the engine takes less (see :meth:`serve`).
        """
        call = ScoreCall(requests, partition, progress)
        calls = [call]
        self.serve(lambda: calls.pop() if calls else None)
        if call.error is not None:
            raise call.error
        return [call.blocks[index] for index in range(len(requests))]

    def serve(self, take: Callable[[], ScoreCall | None], between: Callable[[], None] = lambda: None) -> None:
        """Score calls; see :meth:`swsearch.engine.cuda.search.pipeline.Pipeline.serve`."""
        self._pipeline.serve(take, between)

    def ends(self, profile: QueryProfile, subjects: Partition, scores: Scores) -> Ends | None:
        """See :class:`swsearch.engine.protocol.BackgroundEngine`."""
        return self._end_finder.ends(profile, subjects, scores)

    def close(self) -> None:
        """See :class:`swsearch.engine.protocol.ScoreEngine`."""
        self.store.clear()
        self._pipeline.free()
        self._end_finder.close()
        self._device.close()
