"""One engine over several GPUs: each is driven by its own thread and stores the database, or a share of it.

Inputs are query profiles and a partition; the output is one block of scores per profile. With many queries in a call,
the devices divide the queries, balanced by length, and each scores its queries against the complete partition, so the
devices never wait for one another. With fewer queries, or if a device has memory for its share of the subjects but not
for all of them, the devices divide the subjects, and each scores every query against its share. With enough memory the
subjects are dealt one by one, since shares of different lengths would take different times. Scores do not depend on the
device that computes them, so neither do hits.

A single GPU benefits from its thread as well: the caller ranks and aligns scored queries while the GPU scores the
others.
"""

from __future__ import annotations

import functools
import itertools
import queue
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Final, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from swsearch.database.partition import Partition
from swsearch.engine.cuda.runtime.device import Device
from swsearch.engine.cuda.runtime.pycuda_device import PyCudaDevice
from swsearch.engine.cuda.search.engine import CudaEngine, ScoreCall
from swsearch.engine.cuda.search.forward import ForwardScorer
from swsearch.engine.cuda.search.plan import PlanOptions, expected_rate
from swsearch.engine.cuda.search.subjects import ONE_SLOT_RESIDUES, device_bytes
from swsearch.engine.protocol import Forecast, Scored, ScoreRequest
from swsearch.errors import EngineError
from swsearch.hits.score_block import Ends, ScoreBlock
from swsearch.query.profile import ProfileModel, QueryProfile
from swsearch.typing import Closeable, Floats, Progress, Scores, SubjectIndex

Result = TypeVar("Result")

PATIENCE_SECONDS: Final = 0.005
"""Longest time for which a device waits for the preparations of another."""
PROFILES_PER_DEVICE: Final = 8
"""Queries per device from which the devices divide the queries: the query that ends last is then a small part of the
work."""
FORWARD_THREADS: Final = 8
"""Threads of a device that compute Forward scores: their kernels wait for blocks of the kernels of batches, and long
subjects leave most of the device idle."""


def _joined(blocks: list[ScoreBlock], indices: SubjectIndex) -> ScoreBlock:
    """The blocks of all shares of a partition as one block in stored order.

    The ``subject_index`` of a share are rows of the partition, whose own ones are ``indices``.
    """
    block = ScoreBlock.concatenate(blocks)
    within = {int(indices[row]): columns for row, columns in block.within.items()}
    order = np.argsort(block.subject_index, kind="stable")
    found = indices[block.subject_index[order]]
    return replace(block, subject_index=found, score=block.score[order], within=within)


class _Gpu:
    """A GPU with the thread that opens and drives it: calls wait for the thread, which does other work before it starts
    or finishes a batch.
    """

    def __init__(self, ordinal: int, open_engine: Callable[[int], CudaEngine]) -> None:
        self.thread = ThreadPoolExecutor(1, f"cuda{ordinal}")
        self._opening = self.thread.submit(open_engine, ordinal)
        self._waiting: deque[_DeviceCall] = deque()
        self._other: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._lock = threading.Lock()

    @property
    def engine(self) -> CudaEngine:
        """The engine, once it is open; raises the error if it cannot be opened."""
        return self._opening.result()

    def close(self) -> None:
        """Close the engine, if it was opened, and end the thread."""
        if self._opening.exception() is None:
            self.thread.submit(self.engine.close).result()
        self.thread.shutdown()

    def add(self, call: _DeviceCall) -> None:
        """Let the thread score a call behind the others."""
        with self._lock:
            self._waiting.append(call)
        self.thread.submit(self.engine.serve, self._take, self._do_other)

    def do(self, work: Callable[[CudaEngine], Result]) -> Result:
        """Let the thread do other work, and return what it returns."""
        answer: Future[Result] = Future()

        def answered() -> None:
            try:
                answer.set_result(work(self.engine))
            except BaseException as error:  # the thread that waits for the answer raises it
                answer.set_exception(error)

        self._other.put(answered)
        self.thread.submit(self._do_other)  # an idle thread has no batches between which it would do it
        return answer.result()

    def _do_other(self) -> None:
        while not self._other.empty():
            self._other.get()()

    def withdraw(self, call: _DeviceCall) -> bool:
        """Remove a waiting call; returns whether the thread had not begun it."""
        with self._lock:
            if call not in self._waiting:
                return False
            self._waiting.remove(call)
            return True

    def _take(self) -> _DeviceCall | None:
        with self._lock:
            call = self._waiting.popleft() if self._waiting else None
        if call is not None:
            call.wait()
        return call


class _DeviceCall(ScoreCall):
    """The part of a scoring that one device does; its thread puts what has happened into the scoring's queue.

    ``indices`` are those of the requests in the caller's list. The devices of a scoring begin to compute one after
    another, and each goes on when all compute: the interpreter runs one thread at a time, so each device would wait
    until about all have prepared their launches, or have enqueued all of them.
    """

    def __init__(
        self,
        scoring: DeviceScoring,
        gpu: _Gpu,
        number: int,
        requests: Sequence[ScoreRequest],
        indices: Sequence[int],
        partition: Partition,
    ) -> None:
        super().__init__([requests[index] for index in indices], partition)
        self.gpu = gpu
        self._scoring = scoring
        self._number = number
        self._indices = indices
        self.is_prepared = threading.Event()
        self.computes = threading.Event()
        self.has_ended = threading.Event()

    @property
    def is_cancelled(self) -> bool:
        return self._scoring.is_cancelled

    def wait(self) -> None:
        """Wait for the turn of the device, for :data:`PATIENCE_SECONDS` at most."""
        if self._number:
            self._scoring.calls[self._number - 1].computes.wait(PATIENCE_SECONDS)

    def launched(self) -> None:
        """Give the turn to the next device, and wait for the last one, also for this time at most."""
        if not self.computes.is_set():
            self.computes.set()
            self._scoring.calls[-1].computes.wait(PATIENCE_SECONDS)

    def prepared(self) -> None:
        self.is_prepared.set()

    def advanced(self, n_cells: int) -> None:
        self._scoring.events.put(n_cells)

    def scored(self, index: int, block: ScoreBlock) -> None:
        self._scoring.events.put((self._indices[index], block))

    def ended(self, error: BaseException | None) -> None:
        super().ended(error)
        self.computes.set()  # the turn is given on, too, where it was not used
        self.is_prepared.set()
        self.has_ended.set()
        self._scoring.events.put(None)


class DeviceScoring:
    """Scores that the devices' threads deliver as they complete; see :class:`swsearch.engine.protocol.Scoring`.

    ``work`` has, for each device, the indices of the requests that it scores, and the subjects. If the devices divide
    the subjects, ``divided`` are the indices of all; otherwise each profile has a block of one device. Devices that
    ``are_idle`` begin in turns. ``events`` has what the devices' threads report: a number of computed cells, a block,
    or None when a device ends.
    """

    def __init__(
        self,
        gpus: Sequence[_Gpu],
        requests: Sequence[ScoreRequest],
        work: Sequence[tuple[Sequence[int], Partition]],
        divided: SubjectIndex | None,
        *,
        are_idle: bool,
    ) -> None:
        self._divided = divided
        self.is_cancelled = False
        self.events: queue.SimpleQueue[int | Scored | None] = queue.SimpleQueue()
        self.calls = [
            _DeviceCall(self, gpu, number, requests, *task)
            for number, (gpu, task) in enumerate(zip(gpus, work, strict=True))
        ]
        for call in () if are_idle else self.calls:
            call.computes.set()
        for call in self.calls:
            call.gpu.add(call)

    def wait_until_prepared(self) -> None:
        """See :class:`swsearch.engine.protocol.Scoring`."""
        for call in self.calls:
            call.is_prepared.wait()

    def results(self, progress: Progress | None = None) -> Generator[Scored, None, None]:
        """See :class:`swsearch.engine.protocol.Scoring`."""
        parts: dict[int, list[ScoreBlock]] = {}
        n_working = len(self.calls)
        try:
            while n_working:
                event = self.events.get()
                if event is None:
                    n_working -= 1
                    for call in self.calls:
                        if call.error is not None:
                            raise call.error
                elif isinstance(event, int):
                    if progress is not None:
                        progress(event)
                elif self._divided is None:
                    yield event
                else:
                    index, block = event
                    found = parts.setdefault(index, [])
                    found.append(block)
                    if len(found) == len(self.calls):
                        del parts[index]
                        yield index, _joined(found, self._divided)
        finally:
            self.cancel()

    def cancel(self) -> None:
        """See :class:`swsearch.engine.protocol.Scoring`."""
        self.is_cancelled = True
        for call in self.calls:
            if call.gpu.withdraw(call):
                call.ended(None)
            call.has_ended.wait()
        self.calls.clear()  # they refer to this object


class CudaDevices(Closeable):
    """Scores on one GPU or several; see :class:`swsearch.engine.protocol.BackgroundEngine`.

    ``ordinals`` are CUDA device numbers. ``open_device`` opens a device, in the thread that uses it. Databases may take
    ``memory_limit`` bytes of each device's memory. Raises :class:`EngineUnavailable` if one of the devices cannot be
    used; the others are closed again.
    """

    name = "cuda"

    def __init__(
        self,
        ordinals: Sequence[int],
        open_device: Callable[[int], Device] = PyCudaDevice,
        memory_limit: int | None = None,
        options: PlanOptions | None = None,
    ) -> None:
        distinct = dict.fromkeys(ordinals)
        self._shares: WeakKeyDictionary[Partition, list[Partition]] = WeakKeyDictionary()
        self._latest: list[threading.Event] = []
        """For each device, the end of its work for the scoring that was begun last."""

        def open_engine(ordinal: int) -> CudaEngine:
            return CudaEngine(open_device(ordinal), memory_limit, options)

        self.engines: list[CudaEngine] = []
        self._forward: list[ForwardScorer] = []
        self._idle_forward: queue.LifoQueue[ForwardScorer] = queue.LifoQueue()
        self._gpus = [_Gpu(ordinal, open_engine) for ordinal in distinct]
        try:
            self.engines = [gpu.engine for gpu in self._gpus]
        except BaseException:
            self.close()
            raise
        self._forward = [
            ForwardScorer(functools.partial(open_device, ordinal))
            for _ in range(FORWARD_THREADS)
            for ordinal in distinct
        ]
        for scorer in reversed(self._forward):
            self._idle_forward.put(scorer)

    @property
    def description(self) -> str:
        """The devices' names."""
        return ", ".join(engine.device.facts.name for engine in self.engines)

    @property
    def kept_bytes(self) -> int:
        """Size of the largest database that each device keeps."""
        return min(engine.store.limit_bytes for engine in self.engines)

    @property
    def profiles_per_call(self) -> int:
        """The sum over the devices."""
        return sum(engine.profiles_per_call for engine in self.engines)

    def begin(self, requests: Sequence[ScoreRequest], partition: Partition) -> DeviceScoring:
        """See :class:`swsearch.engine.protocol.BackgroundEngine`."""
        self._check_open()
        work: list[tuple[Sequence[int], Partition]]
        divided = None
        if self.shares_subjects(len(requests), partition):
            divided = partition.subject_index
            work = [(range(len(requests)), share) for share in self._shares_of(partition)]
        else:
            by_device = self._queries_by_device([request.profile for request in requests])
            work = [(indices, partition) for indices in by_device]
        are_idle = all(end.is_set() for end in self._latest)
        scoring = DeviceScoring(self._gpus, requests, work, divided, are_idle=are_idle)
        self._latest = [call.has_ended for call in scoring.calls]
        return scoring

    def preload(self, partition: Partition) -> None:
        """See :class:`swsearch.engine.protocol.BackgroundEngine`.

        Several devices upload when they are given work: whether they divide the subjects depends on the queries.
        """
        if len(self._gpus) == 1:
            # A failure is not lost: the search repeats what failed, and reports it.
            self._gpus[0].thread.submit(self._gpus[0].engine.preload, partition)

    def explain(self, requests: Sequence[ScoreRequest], partition: Partition) -> list[str]:
        """See :class:`swsearch.engine.protocol.BackgroundEngine`."""
        share = self._shares_of(partition)[0] if self.shares_subjects(len(requests), partition) else partition
        return self.engines[0].explain(requests, share) if len(share) else []

    @property
    def rows_per_call(self) -> int:
        """The sum over the devices."""
        return sum(engine.rows_per_call for engine in self.engines)

    def score(
        self, requests: Sequence[ScoreRequest], partition: Partition, progress: Progress | None = None
    ) -> list[ScoreBlock]:
        """See :class:`swsearch.engine.protocol.ScoreEngine`."""
        blocks = dict(self.begin(requests, partition).results(progress))
        return [blocks[index] for index in range(len(requests))]

    def forecast(
        self,
        batches: Iterable[Sequence[QueryProfile]],
        partitions: Sequence[Partition],
        n_cells: int,
        *,
        floors: bool = True,
    ) -> Forecast:
        """See :class:`swsearch.engine.protocol.BackgroundEngine`."""
        engine = self.engines[0]
        n_profiles = n_pairs = 0
        call_residues = ONE_SLOT_RESIDUES
        for profiles in batches:
            n_profiles += len(profiles)
            call_residues = min(call_residues, sum(profile.length for profile in profiles))
            n_pairs += sum(len(indices) == 2 for indices in engine.planner.batches(profiles))
        shared = any(self.shares_subjects(n_profiles or self.profiles_per_call, partition) for partition in partitions)
        parts = [self._shares_of(partition)[0] if shared else partition for partition in partitions]
        facts = [engine.device.facts for engine in self.engines]
        bounded = floors and all(engine.planner.may_bound(part) for part in parts)
        free = [gpu.thread.submit(gpu.engine.device.free_bytes).result() for gpu in self._gpus]
        return Forecast(
            n_devices=len(facts),
            free_bytes=min(free),
            database_bytes=sum(map(device_bytes, parts)),
            n_pieces=max((engine.store.n_pieces(part, call_residues) for part in parts), default=1),
            shared_subjects=shared,
            n_profiles=n_profiles,
            n_pairs=n_pairs,
            seconds=n_cells / sum(expected_rate(device, bounded=bounded) for device in facts),
        )

    # --- Work on some subjects ---

    def ends(self, profile: QueryProfile, subjects: Partition, scores: Scores) -> Ends | None:
        """See :class:`swsearch.engine.protocol.BackgroundEngine`. The first device finds them between two batches."""
        self._check_open()
        return self._gpus[0].do(lambda engine: engine.ends(profile, subjects, scores))

    def forward(self, query: ProfileModel, subjects: Sequence[Partition]) -> Floats | None:
        """See :class:`swsearch.engine.protocol.BackgroundEngine`. Calls at the same time use different devices."""
        self._check_open()
        scorer = self._idle_forward.get()
        try:
            return scorer.scores(query, subjects)
        finally:
            self._idle_forward.put(scorer)

    def _check_open(self) -> None:
        if not self.engines:
            raise EngineError("the CUDA engine was closed; make a new one")

    def close(self) -> None:
        """See :class:`swsearch.engine.protocol.ScoreEngine`."""
        for forward in self._forward:
            forward.close()
        for gpu in self._gpus:
            gpu.close()
        self._forward, self._gpus, self.engines = [], [], []

    # --- Distribution of the work ---

    def shares_subjects(self, n_profiles: int, partition: Partition) -> bool:
        """Whether the devices divide the subjects of each query, rather than the queries."""
        n_devices = len(self.engines)
        if n_devices == 1 or n_profiles < PROFILES_PER_DEVICE * n_devices:
            return n_devices > 1
        if all(engine.store.keeps(partition) for engine in self.engines):
            return False
        shares = zip(self.engines, self._ranges_of(partition), strict=True)
        return all(engine.store.keeps(partition[rows]) for engine, rows in shares)

    def _queries_by_device(self, profiles: Sequence[QueryProfile]) -> list[list[int]]:
        """Indices of each device's profiles: the longest first, each given to the device with the least work so far.

        Each device then scores its profiles in the order of the caller, who takes the results in this order.
        """
        indices_by_device: list[list[int]] = [[] for _ in self.engines]
        loads = [0] * len(self.engines)
        for index in sorted(range(len(profiles)), key=lambda index: -profiles[index].length):
            least = loads.index(min(loads))
            indices_by_device[least].append(index)
            loads[least] += profiles[index].length
        return [sorted(indices) for indices in indices_by_device]

    def _shares_of(self, partition: Partition) -> list[Partition]:
        """One share per device; each call for a partition returns the same objects, so that the devices cache them.

        If each device has memory for all residues, the subjects are dealt one by one, so that all shares have the same
        distribution of lengths and take the same time. Otherwise each share is a range of about equal residues.
        """
        known = self._shares.get(partition)
        if known is None:
            n_devices = len(self.engines)
            if all(engine.store.keeps(partition) for engine in self.engines):
                shares = [slice(first, None, n_devices) for first in range(n_devices)]
            else:
                shares = self._ranges_of(partition)
            all_rows = np.arange(len(partition), dtype=np.uint32)
            known = self._shares[partition] = [
                Partition(
                    partition.residues,
                    np.ascontiguousarray(partition.starts[rows]),
                    np.ascontiguousarray(partition.lengths[rows]),
                    np.ascontiguousarray(all_rows[rows]),
                )
                for rows in shares
            ]
        return known

    def _ranges_of(self, partition: Partition) -> list[slice]:
        """Rows with about equal residues, one range per device."""
        ends = np.cumsum(partition.lengths, dtype=np.uint64)
        total = float(ends[-1]) if len(ends) else 0.0
        count = len(self.engines)
        cuts = [int(np.searchsorted(ends, total * share / count)) for share in range(1, count)]
        return [slice(start, stop) for start, stop in itertools.pairwise([0, *cuts, len(partition)])]
