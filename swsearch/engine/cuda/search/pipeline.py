"""Scores calls on one device, one after another, without a pause between them.

Input is a source of calls: each :class:`ScoreCall` has requests and a partition, and receives its blocks as soon as
they are complete. :class:`Pipeline` plans a call, begins to compile its kernels, loads the partition piece by piece
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
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from swsearch.database.partition import Partition
from swsearch.engine.cuda.pairs.diamonds import DiamondSweep
from swsearch.engine.cuda.runtime.device import OutOfDeviceMemory, Timing
from swsearch.engine.cuda.search.batch_run import BatchRun, Resources
from swsearch.engine.cuda.search.plan import BatchPlan
from swsearch.engine.cuda.search.slots import Slot
from swsearch.engine.cuda.search.subjects import DeviceSubjects, SubjectStore
from swsearch.engine.cuda.search.windows import CutSubjects, SubjectCutter
from swsearch.engine.pair_arrays import AlignmentProblem, FreeEnds
from swsearch.engine.protocol import ScoreRequest
from swsearch.hits.score_block import ScoreBlock
from swsearch.query.profile import QueryProfile
from swsearch.sequences.alphabet import CODE_MASK
from swsearch.typing import Progress, Scores

IN_FLIGHT: Final = 3
"""Number of batches that are started before the results of the first are taken. The thread may then be late by the time
of two batches, for example because another thread holds the interpreter's lock, before the device waits for it."""


class ScoreCall:
    """Requests against one partition, and their blocks by index. The device's thread calls all methods.

    A subclass may hand the blocks on while the device computes others. ``error`` is the reason if blocks are missing.
    """

    def __init__(
        self, requests: Sequence[ScoreRequest], partition: Partition, progress: Progress | None = None
    ) -> None:
        self.requests = requests
        self.partition = partition
        self.blocks: dict[int, ScoreBlock] = {}
        self.error: BaseException | None = None
        self._progress = progress

    @property
    def is_cancelled(self) -> bool:
        """Whether nobody waits for the results any longer; no further batch is started then."""
        return False

    def launched(self) -> None:
        """The device computes scores of the call; called once or more often."""

    def prepared(self) -> None:
        """The call is planned, and its kernels are being compiled."""

    def advanced(self, n_cells: int) -> None:
        """Further cells were computed; an error raised here ends the call."""
        if self._progress is not None:
            self._progress(n_cells)

    def scored(self, index: int, block: ScoreBlock) -> None:
        """The block of a request, by its index, is complete."""
        self.blocks[index] = block

    def ended(self, error: BaseException | None) -> None:
        """The device has finished with this call."""
        self.error = error


@dataclass(eq=False)
class _Progress:
    """A call in progress: its requests without a block, its batches in flight, and the error of one of its methods.

    If ``cut`` is given, the windows of the subjects are scored in their place.
    """

    call: ScoreCall
    n_missing: int
    cut: CutSubjects | None = None
    n_in_flight: int = 0
    error: BaseException | None = None

    @property
    def partition(self) -> Partition:
        """What is scored: the subjects of the call, or windows of them."""
        return self.call.partition if self.cut is None else self.cut.partition

    @property
    def requests(self) -> Sequence[ScoreRequest]:
        """The requests for this partition."""
        cut = self.cut
        return self.call.requests if cut is None else [cut.request(request) for request in self.call.requests]

    @property
    def is_dropped(self) -> bool:
        """Whether no further batch is to be started."""
        return self.error is not None or self.call.is_cancelled


@dataclass(eq=False)
class _BatchGroup:
    """The batches of a call for which the same subjects are scored by diamonds: all but the first ``n_direct``.

    ``waiting`` has the batches without results, by the indices of their requests, ``blocks`` the blocks of the pieces
    that were scored, by request, and ``tiled`` those of the subjects that were scored by diamonds.
    """

    progress: _Progress
    n_direct: int
    waiting: dict[tuple[int, ...], BatchPlan] = field(default_factory=dict)
    blocks: dict[int, list[ScoreBlock]] = field(default_factory=dict)
    tiled: dict[int, ScoreBlock] = field(default_factory=dict)

    @property
    def partition(self) -> Partition:
        """The subjects that are not scored by diamonds."""
        whole = self.progress.partition
        return whole if self.n_direct == len(whole) else whole[: self.n_direct]

    def has_subjects_of(self, other: _BatchGroup) -> bool:
        """Whether both groups are scored against the same subjects."""
        return self.progress.partition is other.progress.partition and self.n_direct == other.n_direct


@dataclass(frozen=True, eq=False)
class _Flight:
    """A batch in flight, scored against a piece of its subjects; ``is_last`` says whether it is the last one."""

    run: BatchRun
    group: _BatchGroup
    is_last: bool


class Pipeline:
    """The calls of one device; at most as many batches are in flight as there are slots."""

    def __init__(self, resources: Resources, store: SubjectStore, slots: Sequence[Slot], sweep: DiamondSweep) -> None:
        self._resources = resources
        self._device = resources.device
        self._planner = resources.planner
        self._store = store
        self._slots = slots
        self._sweep = sweep
        self._n_slots = len(slots)
        self._free = deque(slots)
        self._flights: deque[_Flight] = deque()
        self._calls: list[_Progress] = []
        self.cutter = SubjectCutter(self._device.facts, resources.planner.options)

    def reserve(self) -> None:
        """Pin the memory of small batches."""
        for slot in self._slots[: self._n_slots]:
            slot.reserve()

    def free(self) -> None:
        """Free the memory of batches; the device must be idle."""
        for slot in (*self._slots, self._resources.spare):
            slot.free()
        self._resources.scratch.free()

    def serve(self, take: Callable[[], ScoreCall | None], between: Callable[[], None] = lambda: None) -> None:
        """Score the calls that ``take`` returns, until it returns None when all are scored.

        ``between`` is called before each batch is started or finished; its work on the device may wait for the batches
        in flight. If the device runs out of memory, one batch at a time is in flight from then on, then the memory for
        databases is halved, down to a megabyte; the batches that have no result yet are scored again. All other errors,
        and a final lack of memory, end all calls in progress, which receive the error.
        """
        groups: deque[_BatchGroup] = deque()
        try:
            while True:
                try:
                    if not self._step(groups, take, between):
                        return
                except OutOfDeviceMemory:
                    in_flight = dict.fromkeys(flight.group for flight in self._flights)
                    groups = deque(dict.fromkeys([*in_flight, *groups]))
                    self._abandon()
                    self.free()
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
        self, groups: deque[_BatchGroup], take: Callable[[], ScoreCall | None], between: Callable[[], None]
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
        elif not self._store.halve_limit():
            return False
        self._free = deque(self._slots[: self._n_slots])
        return True

    def _abandon(self) -> None:
        """Let go of the batches in flight, which are scored again or not at all."""
        for flight in self._flights:
            flight.group.progress.n_in_flight = 0
        self._flights.clear()
        self._free = deque(self._slots[: self._n_slots])
        self._device.synchronize()

    # --- Calls ---

    def _planned(self, call: ScoreCall) -> list[_BatchGroup]:
        """The batches of a call, whose kernels are loaded or being compiled."""
        progress = _Progress(call, len(call.requests))
        self._calls.append(progress)
        groups: dict[int, _BatchGroup] = {}
        if not len(call.partition):
            for index in range(len(call.requests)):
                self._deliver(progress, index, ScoreBlock.concatenate([]))
        elif not progress.is_dropped:
            progress.cut = self.cutter.cut(call.requests, call.partition, self._store.limit_bytes)
            plan = self._planner.plan(progress.requests, progress.partition)
            self._device.prepare(plan.kernels)
            for batch in plan.batches:
                group = groups.setdefault(batch.n_direct, _BatchGroup(progress, batch.n_direct))
                group.waiting[batch.indices] = batch
        self._tell(progress, call.prepared)
        self._end_if_done(progress)
        return list(groups.values())

    def _deliver(self, progress: _Progress, index: int, block: ScoreBlock) -> None:
        if progress.cut is not None:
            block = progress.cut.block(block, progress.call.requests[index].floor)
        progress.n_missing -= 1
        self._tell(progress, progress.call.scored, index, block)

    def _tell(self, progress: _Progress, method: Callable[..., None], *arguments: Any) -> None:
        """Call a method of the call; its error ends this call, and no other."""
        if not progress.is_dropped:
            try:
                method(*arguments)
            except BaseException as error:
                progress.error = error

    def _end_if_done(self, progress: _Progress) -> None:
        if (progress.n_missing == 0 or progress.is_dropped) and not progress.n_in_flight and progress in self._calls:
            self._calls.remove(progress)
            progress.call.ended(progress.error)

    # --- Batches ---

    def _score(self, group: _BatchGroup, between: Callable[[], None]) -> None:
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
                self._deliver(progress, index, block)
            self._end_if_done(progress)
            return
        partition = group.partition
        if not self._store.keeps(partition) or not all(flight.group.has_subjects_of(group) for flight in self._flights):
            self._drain()  # the subjects may take the memory of others
        sleeping = len(batches) > self._n_slots or bool(self._flights)
        n_started = 0
        requests = progress.requests
        query_residues = sum(requests[index].profile.length for index in group.blocks)
        with contextlib.closing(self._store.pieces(partition, query_residues)) as pieces:
            for subjects in pieces:
                n_started += len(subjects)
                for batch in batches:
                    between()
                    if progress.is_dropped:
                        break
                    if not self._free:
                        self._finish()
                    run = self._started(batch, progress, subjects, sleeping=sleeping)
                    self._flights.append(_Flight(run, group, n_started == len(partition)))
                    progress.n_in_flight += 1
                if subjects.streamed:
                    self._drain()  # the next piece takes the memory of this one
                if progress.is_dropped:
                    break
        self._end_if_done(progress)

    def _started(self, batch: BatchPlan, progress: _Progress, subjects: DeviceSubjects, *, sleeping: bool) -> BatchRun:
        """A batch that was started against a piece, which needs its own plan unless it is the complete partition."""
        if batch.n_subjects != len(subjects):
            requests = progress.requests
            of_batch = [requests[index] for index in batch.indices]
            batch = self._planner.plan_batch(batch.indices, of_batch, subjects.partition)
        run = BatchRun(batch, subjects, self._resources, self._free[0], progress.call.launched)
        run.start(sleeping=sleeping)
        self._free.popleft()
        return run

    def _finish(self) -> None:
        """Wait for the batch that was started first, and hand its results on."""
        flight = self._flights[0]
        group, run = flight.group, flight.run
        progress = group.progress
        found = run.finish()
        self._flights.popleft()
        self._free.append(run.slot)
        progress.n_in_flight -= 1
        for index, block in zip(run.plan.indices, found, strict=True):
            group.blocks[index].append(block)
        self._store.advance()
        n_cells = run.plan.n_cells
        if progress.cut is not None:  # the cells of the overlaps count once, and with the last piece
            rows = sum(query.profile.length for query in run.plan.queries)
            n_cells = rows * progress.cut.whole.n_residues if flight.is_last else 0
            self._resources.timing.cells += n_cells - run.plan.n_cells
        self._tell(progress, progress.call.advanced, n_cells)
        if flight.is_last:
            del group.waiting[run.plan.indices]
            for index in run.plan.indices:
                self._deliver(progress, index, _joined(group, index))
        self._end_if_done(progress)

    def _drain(self) -> None:
        """Finish all batches in flight; the device is idle then."""
        while self._flights:
            self._finish()
        self._rest()

    def _rest(self) -> None:
        """Free the buffers that larger ones have replaced; the device is idle. Single batches then use one slot."""
        self._free = deque(self._slots[: self._n_slots])
        for scratch in (self._resources.scratch, *(slot.scratch for slot in self._slots)):
            scratch.free_replaced()

    def _score_tiled(self, group: _BatchGroup) -> None:
        """Score the subjects of a group that are scored by diamonds."""
        progress, timing = group.progress, self._resources.timing
        long = progress.partition[group.n_direct :]
        tiled = {}
        for batch in group.waiting.values():
            if progress.is_dropped:
                return
            (query,) = batch.queries
            scores = score_by_diamonds(self._sweep, query.profile, long, timing)
            block = ScoreBlock(long.subject_index, scores)
            tiled[query.index] = block if query.request.floor is None else block.at_least(query.request.floor)
            n_cells = query.profile.length * long.n_residues
            timing.cells += n_cells
            self._tell(progress, progress.call.advanced, n_cells)
        group.tiled = tiled


def score_by_diamonds(sweep: DiamondSweep, profile: QueryProfile, subjects: Partition, timing: Timing) -> Scores:
    """The subjects' best scores by diamonds; adds the kernel time to ``timing``. The profile must suit diamonds."""
    problem = AlignmentProblem(
        True, FreeEnds.ALL, profile.gap.open, profile.gap.extend, table=np.ascontiguousarray(profile.table)
    )
    rows = profile.rows.astype(np.uint16)
    pairs = [(rows, (subjects.codes(index) & CODE_MASK).astype(np.uint16)) for index in range(len(subjects))]
    before = sweep.seconds
    ends = sweep.ends(pairs, problem)
    timing.seconds += sweep.seconds - before
    return np.array([end.score for end in ends], dtype=np.int32)


def _joined(group: _BatchGroup, index: int) -> ScoreBlock:
    """The block of a request that was scored against all pieces, with the subjects that were scored by diamonds."""
    return ScoreBlock.concatenate([*group.blocks.pop(index), *([group.tiled[index]] if group.tiled else [])])
