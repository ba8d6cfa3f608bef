"""The CUDA engine: scores profiles against partitions on one GPU.

Inputs are score requests and a partition; the output is one :class:`swsearch.hits.score_block.ScoreBlock` per request.
Callers that have several calls pass a source of them to :meth:`CudaEngine.serve`, so that the device does not wait
between two calls. The engine plans a call, begins to compile its kernels, loads the partition piece by piece
(``subjects``), and starts each batch of queries against a piece (``batch_run``) before it takes the results of earlier
ones: while the device computes one batch, the profiles of later ones are packed and uploaded, and the results of
earlier ones are handed on. The batches of the next call are started before those of the last one have ended, if both
are of one partition that the device holds. So the device does not wait for the plan of a call, and many small calls
take about as long as few large ones.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from swsearch.database.partition import Partition
from swsearch.engine.cuda.pairs.diamonds import DiamondSweep
from swsearch.engine.cuda.runtime.device import Device, OutOfDeviceMemory
from swsearch.engine.cuda.runtime.pycuda_device import PyCudaDevice
from swsearch.engine.cuda.search.batch_run import BatchRun, Resources
from swsearch.engine.cuda.search.calls import BatchGroup, CallInProgress, ScoreCall
from swsearch.engine.cuda.search.end_positions import EndFinder
from swsearch.engine.cuda.search.plan import BatchPlan, PlanOptions, SearchPlan
from swsearch.engine.cuda.search.slots import Slot
from swsearch.engine.cuda.search.subjects import DeviceSubjects, SubjectStore
from swsearch.engine.cuda.search.windows import CutSubjects, SubjectCutter
from swsearch.engine.pair_arrays import AlignmentProblem, FreeEnds
from swsearch.engine.protocol import ScoreRequest
from swsearch.hits.score_block import Ends, ScoreBlock
from swsearch.query.profile import QueryProfile
from swsearch.sequences.alphabet import CODE_MASK
from swsearch.typing import Closeable, Progress, Scores

DATABASE_SHARE: Final = 0.5
"""Share of the device's free memory that databases may take."""
PIECE_SHARE: Final = 0.02
"""Share that the subjects of one launch may take: the boundaries between strips need up to twenty bytes per residue in
addition."""
SMALLEST_SHARE: Final = 1 << 18
"""The smallest buffers of a batch are this fraction of the device's memory, so that they need not grow in a search."""
IN_FLIGHT: Final = 3
"""Number of batches that are started before the results of the first are taken. The thread may then be late by the time
of two batches, for example because another thread holds the interpreter's lock, before the device waits for it."""


@dataclass(frozen=True, eq=False)
class _Flight:
    """A batch in flight, scored against a piece of its subjects; ``is_last`` says whether it is the last one."""

    run: BatchRun
    group: BatchGroup
    is_last: bool


class CudaEngine(Closeable):
    """Scores on one GPU, by default the first; see :class:`swsearch.engine.protocol.ScoreEngine`.

    At most :data:`IN_FLIGHT` batches are in flight.

    Parameters
    ----------
    device : Device, optional
    memory_limit : int, optional
        Bytes of device memory for databases, by default :data:`DATABASE_SHARE` of the free memory. Larger databases are
        streamed.
    options : PlanOptions, optional

    Attributes
    ----------
    device : Device
    planner : Planner
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
        self, device: Device | None = None, memory_limit: int | None = None, options: PlanOptions | None = None
    ) -> None:
        self.device: Device = PyCudaDevice() if device is None else device
        self._resources = Resources(self.device, options or PlanOptions())
        self.planner = self._resources.planner
        self.timing = self._resources.timing
        free = self.device.free_bytes()
        if memory_limit is None:
            memory_limit = int(free * DATABASE_SHARE)
        self.store = SubjectStore(self.device, memory_limit, int(free * PIECE_SHARE))
        self._cutter = SubjectCutter(self.planner)
        self._end_finder = EndFinder(self._resources.lists, self.planner.options)
        self._sweep = DiamondSweep(self.device, self.make_room, self.timing)
        smallest = self.device.facts.memory_bytes // SMALLEST_SHARE
        self._slots = [Slot(self.device, smallest=smallest) for _ in range(IN_FLIGHT)]
        self._n_slots = IN_FLIGHT
        self._free_slots = deque(self._slots)
        self._flights: deque[_Flight] = deque()
        self._calls: list[CallInProgress] = []

    def explain(self, requests: Sequence[ScoreRequest], partition: Partition) -> list[str]:
        """A description for the user of how a call would begin now."""
        cut, plan = self._plan(requests, partition, scores=False)
        return [*([cut.line()] if cut is not None else []), *plan.lines()]

    def make_room(self) -> None:
        """Free all device memory that is cached between calls; databases are uploaded again when they are needed."""
        self.device.synchronize()
        self._free_batches()
        self.store.clear()

    def preload(self, partition: Partition) -> None:
        """Do what a search of the partition needs before its first kernel, as far as memory suffices."""
        with contextlib.suppress(OutOfDeviceMemory):  # the search itself takes smaller pieces, or reports it
            self.store.preload(partition)
            for slot in self._slots[: self._n_slots]:
                slot.reserve()

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

    def ends(self, profile: QueryProfile, subjects: Partition, scores: Scores) -> Ends | None:
        """See :class:`swsearch.engine.protocol.BackgroundEngine`."""
        return self._end_finder.ends(profile, subjects, scores)

    def close(self) -> None:
        """See :class:`swsearch.engine.protocol.ScoreEngine`."""
        self.store.clear()
        self._free_batches()
        self._end_finder.close()
        self.device.close()

    def _free_batches(self) -> None:
        """Free the memory of batches; the device must be idle."""
        for slot in (*self._slots, self._resources.spare):
            slot.free()
        self._resources.scratch.free()

    # --- Calls ---

    def serve(self, take: Callable[[], ScoreCall | None], between: Callable[[], None] = lambda: None) -> None:
        """Score the calls that ``take`` returns, until it returns None when all are scored.

        ``between`` is called before each batch is started or finished; its work on the device may wait for the batches
        in flight. If the device runs out of memory, one batch at a time is in flight from then on, then the memory for
        databases is halved, down to a megabyte; the batches that have no result yet are scored again. All other errors,
        and a final lack of memory, end all calls in progress, which receive the error.
        """
        groups: deque[BatchGroup] = deque()
        try:
            while True:
                try:
                    if not self._step(groups, take, between):
                        return
                except OutOfDeviceMemory:
                    in_flight = dict.fromkeys(flight.group for flight in self._flights)
                    groups = deque(dict.fromkeys([*in_flight, *groups]))
                    self._abandon()
                    self._free_batches()
                    if not self._take_less_memory():
                        raise
        except BaseException as error:
            calls, self._calls = self._calls, []
            if not calls:
                raise
            try:
                self._abandon()  # the next call reuses the memory of the batches in flight
            finally:
                for progress in calls:
                    progress.call.ended(error)

    def _step(
        self, groups: deque[BatchGroup], take: Callable[[], ScoreCall | None], between: Callable[[], None]
    ) -> bool:
        """Start the batches of a group, or plan a call, or finish a batch; returns whether there was such work."""
        between()
        if groups:
            self._score(groups[0], between)
            groups.popleft()
        elif (call := take()) is not None:
            groups.extend(self._planned(call))
        elif self._flights:
            self._finish()
        else:
            self._rest()
            return False
        return True

    def _take_less_memory(self) -> bool:
        """Whether less memory is taken from now on."""
        if self._n_slots > 1:
            self._n_slots = 1
        elif not self.store.halve_limit():
            return False
        self._free_slots = deque(self._slots[: self._n_slots])
        return True

    def _abandon(self) -> None:
        """Let go of the batches in flight, which are scored again or not at all."""
        for flight in self._flights:
            flight.group.progress.n_in_flight = 0
        self._flights.clear()
        self._free_slots = deque(self._slots[: self._n_slots])
        self.device.synchronize()

    def _planned(self, call: ScoreCall) -> list[BatchGroup]:
        """The batches of a call, whose kernels are loaded or being compiled."""
        progress = CallInProgress(call, len(call.requests))
        self._calls.append(progress)
        groups: dict[int, BatchGroup] = {}
        if not len(call.partition):
            for index in range(len(call.requests)):
                progress.deliver(index, ScoreBlock.concatenate([]))
        elif not progress.is_dropped:
            progress.cut, plan = self._plan(call.requests, call.partition)
            self.device.prepare(plan.kernels)
            for batch in plan.batches:
                group = groups.setdefault(batch.n_direct, BatchGroup(progress, batch.n_direct))
                group.waiting[batch.indices] = batch
        progress.tell(call.prepared)
        self._end_if_done(progress)
        return list(groups.values())

    def _plan(
        self, requests: Sequence[ScoreRequest], partition: Partition, *, scores: bool = True
    ) -> tuple[CutSubjects | None, SearchPlan]:
        """The plan of a call, for windows of its subjects if they are cut; without ``scores``, it is only explained."""
        cut = self._cutter.cut(requests, partition, self.store.limit_bytes, scores=scores)
        if cut is not None:
            requests, partition = [cut.request(request) for request in requests], cut.partition
        return cut, self.planner.plan(requests, partition)

    def _end_if_done(self, progress: CallInProgress) -> None:
        if (progress.n_missing == 0 or progress.is_dropped) and not progress.n_in_flight and progress in self._calls:
            self._calls.remove(progress)
            progress.call.ended(progress.error)

    # --- Batches ---

    def _score(self, group: BatchGroup, between: Callable[[], None]) -> None:
        """Start the waiting batches of a group; those of a streamed partition are also finished."""
        progress = group.progress
        if progress.is_dropped:
            self._end_if_done(progress)
            return
        batches = list(group.waiting.values())
        group.blocks = {index: [] for batch in batches for index in batch.indices}
        if group.n_direct < len(progress.partition) and not group.tiled:
            self._drain()
            self._score_tiled(group)
        if group.n_direct == 0:
            for index, block in group.tiled.items():
                progress.deliver(index, block)
            self._end_if_done(progress)
            return
        partition = group.partition
        if not self.store.keeps(partition) or not all(flight.group.has_subjects_of(group) for flight in self._flights):
            self._drain()  # the subjects may take the memory of others
        sleeping = len(batches) > self._n_slots or bool(self._flights)
        n_started = 0
        query_residues = sum(query.profile.length for batch in batches for query in batch.queries)
        with contextlib.closing(self.store.pieces(partition, query_residues)) as pieces:
            for subjects in pieces:
                n_started += len(subjects)
                for batch in batches:
                    between()
                    if progress.is_dropped:
                        break
                    if not self._free_slots:
                        self._finish()
                    run = self._started(batch, subjects, progress.call.launched, sleeping=sleeping)
                    self._flights.append(_Flight(run, group, n_started == len(partition)))
                    progress.n_in_flight += 1
                if subjects.streamed:
                    self._drain()  # the next piece takes the memory of this one
                if progress.is_dropped:
                    break
        self._end_if_done(progress)

    def _started(
        self, batch: BatchPlan, subjects: DeviceSubjects, launched: Callable[[], None], *, sleeping: bool
    ) -> BatchRun:
        """A batch that was started against a piece, which needs its own plan unless it is the complete partition."""
        if batch.n_subjects != len(subjects):
            requests = [query.request for query in batch.queries]
            batch = self.planner.plan_batch(batch.indices, requests, subjects.partition)
        run = BatchRun(batch, subjects, self._resources, self._free_slots[0], launched)
        run.start(sleeping=sleeping)
        self._free_slots.popleft()
        return run

    def _finish(self) -> None:
        """Wait for the batch that was started first, and hand its results on."""
        flight = self._flights[0]
        group, run = flight.group, flight.run
        progress = group.progress
        found = run.finish()
        self._flights.popleft()
        self._free_slots.append(run.slot)
        progress.n_in_flight -= 1
        for index, block in zip(run.plan.indices, found, strict=True):
            group.blocks[index].append(block)
        self.store.advance()
        n_cells = run.plan.n_cells
        if progress.cut is not None:  # the cells of the overlaps count once, and with the last piece
            rows = sum(query.profile.length for query in run.plan.queries)
            n_cells = rows * progress.cut.whole.n_residues if flight.is_last else 0
            self.timing.cells += n_cells - run.plan.n_cells
        progress.tell(progress.call.advanced, n_cells)
        if flight.is_last:
            del group.waiting[run.plan.indices]
            for index in run.plan.indices:
                progress.deliver(index, group.joined(index))
        self._end_if_done(progress)

    def _drain(self) -> None:
        """Finish all batches in flight; the device is idle then."""
        while self._flights:
            self._finish()
        self._rest()

    def _rest(self) -> None:
        """Free the buffers that larger ones have replaced; the device is idle. Single batches then use one slot."""
        self._free_slots = deque(self._slots[: self._n_slots])
        for scratch in (self._resources.scratch, *(slot.scratch for slot in self._slots)):
            scratch.free_replaced()

    def _score_tiled(self, group: BatchGroup) -> None:
        """Score the subjects of a group that are scored by diamonds."""
        progress = group.progress
        long = progress.partition[group.n_direct :]
        tiled = {}
        for batch in group.waiting.values():
            if progress.is_dropped:
                return
            (query,) = batch.queries
            block = ScoreBlock(long.subject_index, self._diamond_scores(query.profile, long))
            tiled[query.index] = block if query.request.floor is None else block.at_least(query.request.floor)
            n_cells = query.profile.length * long.n_residues
            self.timing.cells += n_cells
            progress.tell(progress.call.advanced, n_cells)
        group.tiled = tiled

    def _diamond_scores(self, profile: QueryProfile, subjects: Partition) -> Scores:
        """The subjects' best scores by diamonds, which the profile must suit."""
        problem = AlignmentProblem(
            True, FreeEnds.ALL, profile.gap.open, profile.gap.extend, table=np.ascontiguousarray(profile.table)
        )
        rows = profile.rows.astype(np.uint16)
        pairs = [(rows, (subjects.codes(index) & CODE_MASK).astype(np.uint16)) for index in range(len(subjects))]
        return np.array([end.score for end in self._sweep.ends(pairs, problem)], dtype=np.int32)
