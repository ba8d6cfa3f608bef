"""The CUDA engine: scores profiles against partitions on one GPU.

Inputs are score requests and a partition; the output is one :class:`swsearch.hits.score_block.ScoreBlock` per request.
Callers that have several calls pass a source of :class:`ScoreCall` to :meth:`CudaEngine.serve`, so that the device does
not wait between two calls. The engine plans a call, loads its kernels, then the partition piece by piece
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
from swsearch.engine.cuda.search.end_positions import EndFinder
from swsearch.engine.cuda.search.plan import BatchPlan, PlanOptions, distinct_kernels
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


class ScoreCall:
    """Requests against one partition, and their blocks by index. The device's thread calls all methods.

    A subclass may hand the blocks on while the device computes others. An error that a method raises ends all calls in
    progress; ``error`` is the reason if blocks are missing.

    If the subjects are ``cut``, their windows are scored in their place. ``waiting`` are the batches without results,
    by the indices of their requests. ``to_start`` has a number of subjects for each group of them that is to be
    started: all subjects but the first so many are scored by diamonds. By request, ``parts`` are the blocks of the
    pieces that were scored, and ``tiled`` that of the subjects that were scored by diamonds.
    """

    def __init__(
        self, requests: Sequence[ScoreRequest], partition: Partition, progress: Progress | None = None
    ) -> None:
        self.requests = requests
        self.partition = partition
        self.blocks: dict[int, ScoreBlock] = {}
        self.error: BaseException | None = None
        self.cut: CutSubjects | None = None
        self.waiting: dict[tuple[int, ...], BatchPlan] = {}
        self.parts: dict[int, list[ScoreBlock]] = {}
        self.tiled: dict[int, ScoreBlock] = {}
        self.to_start: list[int] = []
        self._progress = progress

    @property
    def is_cancelled(self) -> bool:
        """Whether nobody waits for the results any longer; no further batch is started then."""
        return False

    def launched(self) -> None:
        """The device computes scores of the call; called once or more often."""

    def prepared(self) -> None:
        """The call is planned, and its kernels are loaded."""

    def advanced(self, n_cells: int) -> None:
        """Further cells were computed."""
        if self._progress is not None:
            self._progress(n_cells)

    def scored(self, index: int, block: ScoreBlock) -> None:
        """The block of a request, by its index, is complete."""
        self.blocks[index] = block

    def ended(self, error: BaseException | None) -> None:
        """The device has finished with this call, which keeps nothing of its batches."""
        self.error = error
        self.cut, self.waiting, self.parts, self.tiled, self.to_start = None, {}, {}, {}, []

    def restart(self) -> None:
        """Let all batches without results be started."""
        self.to_start = list(dict.fromkeys(batch.n_direct for batch in self.waiting.values()))

    def complete(self, indices: tuple[int, ...]) -> None:
        """Hand on the blocks of a batch that was scored against all subjects."""
        del self.waiting[indices]
        for index in indices:
            tiled = [self.tiled[index]] if index in self.tiled else []
            block = ScoreBlock.concatenate([*self.parts.pop(index), *tiled])
            self.scored(index, block if self.cut is None else self.cut.block(block, self.requests[index].floor))


@dataclass(frozen=True, eq=False)
class _Flight:
    """A batch in flight, scored against a piece of ``subjects``; ``is_last`` says whether it is the last one."""

    run: BatchRun
    call: ScoreCall
    subjects: Partition
    is_last: bool


class CudaEngine(Closeable):
    """Scores on one GPU, by default the first; see :class:`swsearch.engine.protocol.ScoreEngine`.

    At most :data:`IN_FLIGHT` batches are in flight. ``memory_limit`` are the bytes of device memory for databases, by
    default :data:`DATABASE_SHARE` of the free memory; larger databases are streamed. ``store`` has the databases on the
    device, and ``timing`` is the work of the kernels. Raises :class:`EngineUnavailable`, with the remedy, if no device
    can be used.
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
        self.store = SubjectStore(self.device, memory_limit, int(free * PIECE_SHARE), self._forget)
        self._cutter = SubjectCutter(self.planner)
        self._end_finder = EndFinder(self._resources.lists)
        self._sweep = DiamondSweep(self.device, self.make_room, self.timing)
        smallest = self.device.facts.memory_bytes // SMALLEST_SHARE
        self._slots = [Slot(self.device, smallest=smallest) for _ in range(IN_FLIGHT)]
        self._free_slots = deque(self._slots)
        self._flights: deque[_Flight] = deque()
        self._calls: list[ScoreCall] = []
        self._between: Callable[[], None] = lambda: None

    def explain(self, requests: Sequence[ScoreRequest], partition: Partition) -> list[str]:
        """A description for the user of how a call would begin now."""
        cut, batches = self._plan(requests, partition, scores=False)
        lines = [line for batch in batches for line in batch.lines()]
        return lines if cut is None else [cut.line(), *lines]

    def make_room(self) -> None:
        """Free all device memory that is cached between calls; databases are uploaded again when they are needed."""
        self.device.synchronize()
        self._free_batches()
        self.store.clear()

    def preload(self, partition: Partition) -> None:
        """Do what a search of the partition needs before its first kernel, as far as memory suffices."""
        with contextlib.suppress(OutOfDeviceMemory):  # the search itself takes smaller pieces, or reports it
            self.store.preload(partition)
            for slot in self._slots:
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
        self._cutter = SubjectCutter(self.planner)
        self.planner.forget()
        self._free_batches()
        self._end_finder.close()
        self.device.close()

    def _forget(self, partition: Partition) -> None:
        """Let go of windows of a partition that the device no longer has: its file may have been deleted."""
        self._resources.lists.cut.cache_clear()
        self._cutter.forget(partition)

    def _free_batches(self) -> None:
        """Free the memory of batches; the device must be idle."""
        for slot in (*self._slots, self._resources.spare):
            slot.free()
        self._resources.scratch.free()

    # --- Calls ---

    def serve(self, take: Callable[[], ScoreCall | None], between: Callable[[], None] = lambda: None) -> None:
        """Score the calls that ``take`` returns, until it returns None when all are scored.

        ``between`` is called before each kernel is loaded, and before each batch is started or finished; its work on
        the device may wait for the batches in flight. If the device runs out of memory, one batch at a time is in
        flight from then on, then the memory for databases is halved, down to a megabyte; the batches that have no
        result yet are scored again. All other errors, and a final lack of memory, end all calls in progress, which
        receive the error.
        """
        self._between = between
        try:
            while True:
                try:
                    if not self._step(take):
                        return
                except OutOfDeviceMemory:
                    self._abandon()
                    self._free_batches()
                    if len(self._slots) > 1:
                        self._free_slots = deque(self._slots[:1])
                        del self._slots[1:]
                    elif not self.store.halve_limit():
                        raise
                    for call in self._calls:
                        call.restart()
        except BaseException as error:
            calls, self._calls = self._calls, []
            if not calls:
                raise
            try:
                self._abandon()  # the next call reuses the memory of the batches in flight
            finally:
                for call in calls:
                    call.ended(error)

    def _step(self, take: Callable[[], ScoreCall | None]) -> bool:
        """Start the batches of a group, or plan a call, or finish a batch; returns whether there was such work."""
        self._between()
        if (call := next((call for call in self._calls if call.to_start), None)) is not None:
            self._score(call, call.to_start.pop(0))
        elif (call := take()) is not None:
            self._prepare(call)
        elif self._flights:
            self._finish()
        else:
            self._rest()
            return False
        return True

    def _abandon(self) -> None:
        """Let go of the batches in flight, which are scored again or not at all."""
        self._flights.clear()
        self._free_slots = deque(self._slots)
        self.device.synchronize()

    def _prepare(self, call: ScoreCall) -> None:
        """Plan the batches of a call, and load their kernels, which may have to be compiled first."""
        self._calls.append(call)
        if not call.is_cancelled:
            if len(call.partition):
                call.cut, batches = self._plan(call.requests, call.partition)
                call.waiting = {batch.indices: batch for batch in batches}
                call.restart()
                with contextlib.suppress(OutOfDeviceMemory):  # the batches load the others, and make room for them
                    for kernel in distinct_kernels(batches):
                        self._between()
                        if call.is_cancelled:
                            break
                        self.device.prepare(kernel)
            else:
                for index in range(len(call.requests)):
                    call.scored(index, ScoreBlock.concatenate([]))
            call.prepared()
        self._end_if_done(call)

    def _plan(
        self, requests: Sequence[ScoreRequest], partition: Partition, *, scores: bool = True
    ) -> tuple[CutSubjects | None, list[BatchPlan]]:
        """The plan of a call, for windows of its subjects if they are cut; without ``scores``, it is only explained."""
        cut = self._cutter.cut(requests, partition, self.store.limit_bytes, scores=scores)
        if cut is not None:
            requests, partition = [cut.request(request) for request in requests], cut.partition
        return cut, self.planner.plan(requests, partition)

    def _end_if_done(self, call: ScoreCall) -> None:
        is_done = not call.waiting or call.is_cancelled
        if is_done and call in self._calls and all(flight.call is not call for flight in self._flights):
            self._calls.remove(call)
            call.ended(None)

    # --- Batches ---

    def _score(self, call: ScoreCall, n_direct: int) -> None:
        """Start the waiting batches of a group; those of a streamed partition are also finished."""
        if call.is_cancelled:  # nothing is uploaded for it
            self._end_if_done(call)
            return
        batches = [batch for batch in call.waiting.values() if batch.n_direct == n_direct]
        subjects = call.partition if call.cut is None else call.cut.partition
        if n_direct < len(subjects):
            self._drain()
            self._score_tiled(call, batches, subjects[n_direct:])
            subjects = subjects[:n_direct]
        call.parts |= {index: [] for batch in batches for index in batch.indices}
        if n_direct:
            self._start(call, batches, subjects)
        elif not call.is_cancelled:
            for batch in batches:
                call.complete(batch.indices)
        self._end_if_done(call)

    def _start(self, call: ScoreCall, batches: Sequence[BatchPlan], subjects: Partition) -> None:
        """Start batches against all pieces of their subjects, until the call is cancelled."""
        others = (flight.subjects.memory for flight in self._flights)
        if not self.store.keeps(subjects) or any(other != subjects.memory for other in others):
            self._drain()  # the subjects may take the memory of others
        sleeping = len(batches) > len(self._slots) or bool(self._flights)
        n_started = 0
        query_residues = sum(query.profile.length for batch in batches for query in batch.queries)
        with contextlib.closing(self.store.pieces(subjects, query_residues)) as pieces:
            for piece in pieces:
                n_started += len(piece)
                for batch in batches:
                    self._between()
                    if call.is_cancelled:
                        break
                    if not self._free_slots:
                        self._finish()
                    run = self._started(batch, piece, call.launched, sleeping=sleeping)
                    self._flights.append(_Flight(run, call, subjects, n_started == len(subjects)))
                if piece.streamed:
                    self._drain()  # the next piece takes the memory of this one
                if call.is_cancelled:
                    return

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
        call, run = flight.call, flight.run
        found = run.finish()
        self._flights.popleft()
        self._free_slots.append(run.slot)
        if not call.is_cancelled:  # else it may have ended
            for index, block in zip(run.plan.indices, found, strict=True):
                call.parts[index].append(block)
        self.store.advance()
        n_residues = run.subjects.partition.n_residues
        if call.cut is not None:  # the residues of the overlaps count once, and with the last piece
            n_residues = call.cut.whole.n_residues if flight.is_last else 0
        self._advanced(call, run.plan, n_residues)
        if flight.is_last and not call.is_cancelled:
            call.complete(run.plan.indices)
        self._end_if_done(call)

    def _advanced(self, call: ScoreCall, batch: BatchPlan, n_residues: int) -> None:
        """Count the cells of a batch and some subjects."""
        n_cells = sum(query.profile.length for query in batch.queries) * n_residues
        self.timing.cells += n_cells
        if not call.is_cancelled:
            call.advanced(n_cells)

    def _drain(self) -> None:
        """Finish all batches in flight; the device is idle then."""
        while self._flights:
            self._finish()
        self._rest()

    def _rest(self) -> None:
        """Free the buffers that larger ones have replaced; the device is idle. Single batches then use one slot."""
        self._free_slots = deque(self._slots)
        for scratch in (self._resources.scratch, *(slot.scratch for slot in self._slots)):
            scratch.free_replaced()

    def _score_tiled(self, call: ScoreCall, batches: Sequence[BatchPlan], subjects: Partition) -> None:
        """Score subjects by diamonds, unless this was done before the device ran out of memory."""
        for batch in batches:
            (query,) = batch.queries
            if query.index not in call.tiled and not call.is_cancelled:
                block = ScoreBlock(subjects.subject_index, self._diamond_scores(query.profile, subjects))
                floor = query.request.floor
                call.tiled[query.index] = block if floor is None else block.at_least(floor)
                self._advanced(call, batch, subjects.n_residues)

    def _diamond_scores(self, profile: QueryProfile, subjects: Partition) -> Scores:
        """The subjects' best scores by diamonds, which the profile must suit."""
        problem = AlignmentProblem(
            True, FreeEnds.ALL, profile.gap.open, profile.gap.extend, table=np.ascontiguousarray(profile.table)
        )
        rows = profile.rows.astype(np.uint16)
        pairs = [(rows, (subjects.codes(index) & CODE_MASK).astype(np.uint16)) for index in range(len(subjects))]
        return np.array([end.score for end in self._sweep.ends(pairs, problem)], dtype=np.int32)
