"""The CUDA engine: scores profiles against partitions on one GPU.

Inputs are score requests and a partition; the output is one :class:`swsearch.hits.score_block.ScoreBlock` per request.
The engine plans the call (``plan``), begins to compile its kernels, and loads the partition piece by piece
(``subjects``). It starts each batch of queries against a piece (``batch_run``) before it takes the results of earlier
ones: while the device computes one batch, the profiles of later ones are packed and uploaded, and the results of
earlier ones are handed on.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Generator, Sequence
from typing import Final

from swsearch.closeable import Closeable
from swsearch.database.partition import Partition
from swsearch.engine.cuda.pairs.diamonds import DiamondSweep
from swsearch.engine.cuda.runtime.device import Device, DeviceFacts, OutOfDeviceMemory
from swsearch.engine.cuda.runtime.pycuda_device import PyCudaDevice
from swsearch.engine.cuda.runtime.scratch import Scratch
from swsearch.engine.cuda.runtime.timing import Timing
from swsearch.engine.cuda.search.batch_run import BatchRun, Resources
from swsearch.engine.cuda.search.end_positions import EndFinder
from swsearch.engine.cuda.search.kernel_choice import KernelChoice, KernelPolicy
from swsearch.engine.cuda.search.launches import IntraTaskLauncher
from swsearch.engine.cuda.search.plan import BatchPlan, PlanOptions, SearchPlan, batch_indices
from swsearch.engine.cuda.search.slots import Slot
from swsearch.engine.cuda.search.subjects import DeviceSubjects, SubjectStore, chunk_bytes, in_stored_order
from swsearch.engine.cuda.search.thresholds import Thresholds
from swsearch.engine.cuda.search.tiled_subjects import score_by_diamonds
from swsearch.engine.cuda.search.verified_windows import VerifiedWindows
from swsearch.engine.protocol import Progress, Scored, ScoreRequest, score_requests
from swsearch.hits.ends import Ends
from swsearch.hits.score_block import ScoreBlock
from swsearch.query.profile import QueryProfile
from swsearch.typing import Scores

DATABASE_SHARE: Final = 0.04
"""Share of the device's free memory that databases may take: the boundaries between strips need up to twenty bytes per
residue in addition."""
SMALLEST_SHARE: Final = 1 << 18
"""The smallest buffers of a batch are this fraction of the device's memory, so that they need not grow in a search."""
IN_FLIGHT: Final = 3
"""Number of batches that are started before the results of the first are taken. The thread may then be late by the time
of two batches, for example because another thread holds the interpreter's lock, before the device waits for it."""


class CudaEngine(Closeable):
    """Scores on one GPU; see :class:`swsearch.engine.protocol.ScoreEngine`.

    Parameters
    ----------
    device : Device, optional
        The first GPU by default.
    memory_limit : int, optional
        Bytes of device memory that databases may take; a database beyond it is streamed. By default
        :data:`DATABASE_SHARE` of the free memory.
    texture : bool
        Read profiles as textures rather than from global memory.
    pairs : bool
        Let two queries of similar length share words.
    deferred : bool
        Use the deferred maximum where the caller gives floors.
    thresholds : Thresholds, optional
        Sizes at which the engine changes its method; by default the measured ones.
    band_rows : int, optional
        Rows of a band of the bound; see :class:`swsearch.engine.cuda.search.plan.PlanOptions`.
    kernels : KernelPolicy
        Whether the engine waits for the compiler or uses generic kernels.

    Attributes
    ----------
    windows : VerifiedWindows
        Scores long subjects in windows and counts the windows that were scored again.

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
        texture: bool = True,
        pairs: bool = True,
        deferred: bool = True,
        thresholds: Thresholds | None = None,
        band_rows: int | None = None,
        kernels: KernelPolicy = KernelPolicy.COMPILED,
    ) -> None:
        thresholds = Thresholds() if thresholds is None else thresholds
        self._device: Device = PyCudaDevice() if device is None else device
        self._options = PlanOptions(texture, pairs, deferred, thresholds, band_rows, diamonds=self._device.compiles)
        self._choice = KernelChoice(self._device, self._options, kernels)
        self.timing = Timing()
        self._scratch = Scratch(self._device)
        smallest = self._device.facts.memory_bytes // SMALLEST_SHARE
        self._slots = [Slot(self._device, texture=texture, smallest=smallest) for _ in range(IN_FLIGHT)]
        self._spare = Slot(self._device, texture=texture)
        self._n_in_flight = IN_FLIGHT
        self._lists = IntraTaskLauncher(self._device, self._scratch)
        self._end_finder = EndFinder(
            self._device, Slot(self._device, texture=texture), self._lists, self._choice,
            thresholds.end_group_bytes, thresholds.smallest_end_group_bytes,
        )  # fmt: skip
        if memory_limit is None:
            memory_limit = int(self._device.free_bytes() * DATABASE_SHARE)
        self._store = SubjectStore(self._device, memory_limit)
        # This sweep must not free cached memory, because the kernels of the batches in flight use it.
        self.windows = VerifiedWindows(
            self._device, self._lists, self._choice, DiamondSweep(self._device), self.timing,
            thresholds.window_overlap, thresholds.window_stride,
        )  # fmt: skip
        self._sweep = DiamondSweep(self._device, self.make_room)

    @property
    def description(self) -> str:
        """The device's name."""
        return self._device.facts.name

    def keeps(self, partition: Partition) -> bool:
        """Whether the partition fits the memory for databases, so that it is uploaded only once."""
        return chunk_bytes(partition) <= self._store.limit_bytes

    def may_bound(self, partition: Partition) -> bool:
        """Whether a bound takes the place of most scores of the partition if floors are given."""
        return self._options.band_rows != 0 and len(partition) >= self._options.thresholds.bound_subjects

    def n_pieces(self, partition: Partition, query_residues: int) -> int:
        """Number of pieces of the partition for queries of ``query_residues`` residues in total."""
        return self._store.n_pieces(partition, query_residues)

    def batches(self, profiles: Sequence[QueryProfile]) -> list[tuple[int, ...]]:
        """The indices of the profiles that are scored together in each batch: one or two."""
        return batch_indices(profiles, self._device.facts, self._options)

    def plan(self, requests: Sequence[ScoreRequest], partition: Partition) -> SearchPlan:
        """The plan by which the requests are scored against a partition that the device holds.

        A batch whose kernels are not compiled may be scored by generic ones (``kernel_choice``).
        """
        return self._choice.plan(requests, partition)

    def explain(self, requests: Sequence[ScoreRequest], partition: Partition) -> list[str]:
        """A description for the user of how a call would begin now; it says which batches have generic kernels."""
        plan = self._choice.ready_plan(requests, partition)
        return [*plan.lines(), *self._choice.lines(plan)]

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
        self._free_working_memory()
        self._store.clear()

    def _free_working_memory(self) -> None:
        """Free the memory of batches; the device must be idle."""
        for slot in (*self._slots, self._spare):
            slot.free()
        self._scratch.free()

    def preload(self, partition: Partition) -> None:
        """Do what a search of the partition needs before its first kernel, as far as memory suffices."""
        with contextlib.suppress(OutOfDeviceMemory):  # the search itself takes smaller pieces, or reports it
            self._store.preload(partition)
            for slot in self._slots[: self._n_in_flight]:
                slot.reserve()

    # --- The protocol ---

    def score(
        self,
        profiles: Sequence[QueryProfile],
        partition: Partition,
        floors: Sequence[int] | None = None,
        progress: Progress | None = None,
    ) -> list[ScoreBlock]:
        """See :class:`swsearch.engine.protocol.ScoreEngine`.

        If the device runs out of memory, one batch at a time is in flight from then on, then the memory for databases
        is halved, down to a megabyte; the batches that have no result yet are scored again.
        """
        blocks = dict(self.score_each(score_requests(profiles, floors), partition, progress))
        return [blocks[index] for index in range(len(profiles))]

    def score_each(
        self,
        requests: Sequence[ScoreRequest],
        partition: Partition,
        progress: Progress | None = None,
        between: Callable[[], None] | None = None,
    ) -> Generator[Scored, None, None]:
        """Yield each request's block as soon as it is complete, in about the order of the requests.

        ``between`` is called before each batch is started; its work on the device may wait for the batches in flight.
        The kernels that the call needs are being compiled when this method returns.
        """
        plan = None
        if len(partition):
            plan = self.plan(requests, partition)
            self._choice.begin(plan, partition)
        return self._score_planned(plan, requests, partition, progress, between or (lambda: None))

    def ends(self, profile: QueryProfile, subjects: Partition, scores: Scores) -> Ends | None:
        """See :class:`swsearch.engine.protocol.EndsEngine`."""
        return self._end_finder.ends(profile, subjects, scores)

    def close(self) -> None:
        """See :class:`swsearch.engine.protocol.ScoreEngine`."""
        self._store.clear()
        self._free_working_memory()
        self._end_finder.close()
        self._device.close()

    # --- The batches of a call ---

    def _score_planned(
        self,
        plan: SearchPlan | None,
        requests: Sequence[ScoreRequest],
        partition: Partition,
        progress: Progress | None,
        between: Callable[[], None],
    ) -> Generator[Scored, None, None]:
        if plan is None:
            yield from ((index, ScoreBlock.concatenate([])) for index in range(len(requests)))
            return
        by_end: dict[int, list[BatchPlan]] = {}
        for batch in plan.batches:
            by_end.setdefault(batch.n_windowed, []).append(batch)
        for n_windowed, batches in by_end.items():
            tiled = self._score_tiled(batches, partition, progress) if n_windowed < len(partition) else {}
            if n_windowed == 0:
                yield from tiled.items()
                continue
            for index, block in self._score_batches(batches, requests, partition[:n_windowed], progress, between):
                yield index, ScoreBlock.concatenate([block, tiled[index]]) if tiled else block

    def _score_tiled(
        self, batches: Sequence[BatchPlan], partition: Partition, progress: Progress | None
    ) -> dict[int, ScoreBlock]:
        """The blocks of the subjects that are scored by diamonds, by request."""
        found = {}
        for batch in batches:
            (query,) = batch.queries
            long = partition[batch.n_windowed :]
            scores = score_by_diamonds(self._sweep, query.profile, long, self.timing)
            block = ScoreBlock(long.subject_index, scores)
            found[query.index] = block if query.request.floor is None else block.at_least(query.request.floor)
            n_cells = query.profile.length * long.n_residues
            self.timing.cells += n_cells
            if progress is not None:
                progress(n_cells)
        return found

    def _score_batches(
        self,
        batches: Sequence[BatchPlan],
        requests: Sequence[ScoreRequest],
        partition: Partition,
        progress: Progress | None,
        between: Callable[[], None],
    ) -> Generator[Scored, None, None]:
        """Score batches without diamonds; after a lack of memory, those that have no result yet in smaller pieces."""
        waiting = {batch.indices: batch for batch in batches}  # those that have no result yet
        while waiting:
            try:
                with contextlib.closing(
                    self._score_pieces(list(waiting.values()), requests, partition, progress, between)
                ) as found:
                    for indices, blocks in found:
                        del waiting[indices]
                        yield from zip(indices, blocks, strict=True)
            except OutOfDeviceMemory:  # raised again when nothing smaller is left to try
                self._device.synchronize()
                self._free_working_memory()
                if self._n_in_flight > 1:
                    self._n_in_flight = 1
                elif not self._store.halve_limit():
                    raise

    def _score_pieces(
        self,
        batches: Sequence[BatchPlan],
        requests: Sequence[ScoreRequest],
        partition: Partition,
        progress: Progress | None,
        between: Callable[[], None],
    ) -> Generator[tuple[tuple[int, ...], list[ScoreBlock]], None, None]:
        """Yield the indices and blocks of each batch as soon as it has been scored against the last piece."""
        resources = Resources(
            self._device, self._choice, self._scratch, self._spare, self._lists, self.windows, self.timing
        )
        blocks: dict[int, list[ScoreBlock]] = {index: [] for batch in batches for index in batch.indices}
        free = deque(self._slots[: self._n_in_flight])
        in_flight: deque[BatchRun] = deque()
        sleeping = len(batches) > self._n_in_flight

        def finish() -> tuple[int, ...]:
            run = in_flight.popleft()
            found = run.finish()
            free.append(run.slot)
            for index, block in zip(run.plan.indices, found, strict=True):
                blocks[index].append(block)
            self._store.advance()
            if progress is not None:
                progress(run.plan.n_cells)
            return run.plan.indices

        n_started = 0
        query_residues = sum(requests[index].profile.length for index in blocks)
        try:
            with contextlib.closing(self._store.pieces(partition, query_residues)) as pieces:
                for subjects in pieces:
                    n_started += len(subjects)
                    is_last = n_started == len(partition)
                    whole = partition if subjects.streamed else None
                    for batch in batches:
                        between()
                        if not free:
                            indices = finish()
                            if is_last:
                                yield indices, [_joined(blocks[index], whole) for index in indices]
                        in_flight.append(self._start(batch, requests, subjects, resources, free[0], sleeping=sleeping))
                        free.popleft()
                    while in_flight:  # the next piece takes the memory of this one
                        indices = finish()
                        if is_last:
                            yield indices, [_joined(blocks[index], whole) for index in indices]
                    for scratch in (self._scratch, *(slot.scratch for slot in self._slots)):
                        scratch.free_replaced()
        except BaseException:
            self._device.synchronize()  # the next call reuses the memory of the batches in flight
            raise

    def _start(
        self,
        batch: BatchPlan,
        requests: Sequence[ScoreRequest],
        subjects: DeviceSubjects,
        resources: Resources,
        slot: Slot,
        *,
        sleeping: bool,
    ) -> BatchRun:
        """Start a batch against a piece, which needs a plan of its own unless it is the complete partition.

        From here on the batch has its own kernels or generic ones.
        """
        if subjects.streamed or batch.n_subjects != len(subjects):
            of_batch = [requests[index] for index in batch.indices]
            batch = self._choice.plan_batch(batch.indices, of_batch, subjects.partition)
        else:
            batch = self._choice.ready_batch(batch, subjects.partition)
        run = BatchRun(batch, subjects, resources, slot)
        run.start(sleeping=sleeping)
        return run


def _joined(blocks: list[ScoreBlock], whole: Partition | None) -> ScoreBlock:
    """The blocks of all pieces; those of pieces of a streamed partition are brought into its order."""
    joined = blocks[0] if len(blocks) == 1 else ScoreBlock.concatenate(blocks)
    return joined if whole is None else in_stored_order(joined, whole)
