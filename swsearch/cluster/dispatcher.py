"""Deals the queries of a search to workers, and yields the results in the order of the queries.

A *batch* is some queries of about equal predicted time; a *part* is the search of a batch, or of some of its queries,
in one slice of the database. Where each worker holds the whole database, that is the only slice. Every worker has up to
two parts, so it need not wait for the next one. Results may be computed in any order; the number of batches that
are begun and not yet yielded is bounded, and so is the memory for them.

Which part a worker gets:

1. the first waiting one of a slice that it holds, or of a slice that no worker holds;
2. otherwise, a part of a new batch;
3. otherwise, one of the slice for which most work waits per worker that holds it. The worker opens this further slice
   if it has the memory, so slices are copied to where nothing else is to do. Without the memory, it replaces a slice
   that it holds, but only if no other worker holds the one that is needed;
4. otherwise, if it has no part at all, one that another worker has not begun, of a slice that it holds. So at the end
   of a search, no worker is idle while another has two parts, unless the other has a GPU, which begins both.

Workers may come and go. A part whose worker has gone is given to another. A worker that does not answer in several
times the predicted time gets no more parts, and its parts are given to others as well; the first result counts. A part
that ends worker after worker is divided into single queries, and a single query that does so ends the search.

Queries are read ahead, so that the end of a search is known some seconds in advance; batches become smaller before it,
so that the workers end at about the same time.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

from swsearch.cluster.connection import PREPARE, SEARCH, Answered, Connection, WorkerInfo
from swsearch.cluster.tasks import PROGRAM, Failed, Found, Ready, packed, unpacked
from swsearch.engine.registry import Machine
from swsearch.errors import EngineError
from swsearch.hits.result import QueryResult
from swsearch.options import DEADLINE_SECONDS
from swsearch.query.profile import PositionSpecificQuery
from swsearch.search.planned_search import started
from swsearch.sequences.record import SequenceRecord
from swsearch.typing import Progress
from swsearch.words import shortened

PLACES: Final = 2
"""Parts that a worker has at a time."""
MEMORY_SHARE: Final = 0.7
"""Share of the memory of a worker without a GPU that slices may take."""
MAX_PACKED_BYTES: Final = 1 << 22
"""Approximate size of the largest batch of queries."""
MAX_AHEAD_BYTES: Final = 8 * MAX_PACKED_BYTES
"""Approximate size of the queries that are read ahead."""
TASK_SECONDS: Final = 2.0
"""Predicted time of a part: long compared with the milliseconds that a task costs, short compared with a run."""
LEAST_SECONDS: Final = 0.1
LEAST_BACKGROUND_SECONDS: Final = 0.2
"""Predicted time of the smallest parts, those of the last batches of a search, for workers whose engine works in the
background and so scores many queries together. The workers' ends differ by about half of it, and the results of the
last part are stored when all are there."""
FIRST_CELLS_PER_SECOND: Final = 5e8
"""Speed of a thread that is assumed until it is measured; it is low, so that the first part is short."""
MAX_HITS: Final = 50_000
"""Largest number of subjects that the results of a batch may list."""
LOOK_SECONDS: Final = 1.0
"""Time between two updates of the list of workers."""
WAIT_SECONDS: Final = 0.25
DEADLINE_FACTOR: Final = 5.0
"""The same, as a multiple of the predicted time of its part."""
OPENING_SECONDS: Final = 60.0
OPENING_BYTES_PER_SECOND: Final = 20e6
"""Speed of a slow file system; with it, the time in which a worker opens a slice is predicted."""
MAX_LOSSES: Final = 3
"""Number of workers that may end with a part before it is divided, or fails."""


@dataclass(frozen=True)
class SliceTask:
    """What all parts of one slice have in common.

    ``spec`` is its packed :class:`SearchSpec`, ``n_bytes`` the memory that a worker needs to hold the slice, ``share``
    its share of the cells of a query.
    """

    spec: bytes
    n_bytes: int
    share: float


@dataclass(eq=False)
class TaskBatch:
    """Queries of a stream that are sent together.

    ``found`` has the results of each query by slice, ``parts`` those parts whose results are missing.
    """

    stream: BatchStream
    queries: list[SequenceRecord]
    cells: list[int]
    found: list[dict[int, QueryResult]]
    parts: list[Part] = field(default_factory=list)


@dataclass(eq=False)
class Part:
    """The search of the queries ``first`` to ``stop`` - 1 of a batch in one slice.

    ``at`` has the workers that have it; it waits if there is none. ``losses`` is the number of workers that ended while
    they probably worked on it.
    """

    batch: TaskBatch
    slice: int
    first: int
    stop: int
    at: set[Worker] = field(default_factory=set)
    losses: int = 0

    @property
    def is_done(self) -> bool:
        """Whether its results are there, or it was divided."""
        return self not in self.batch.parts

    @property
    def cells(self) -> int:
        """Number of cells of its queries with all slices."""
        return sum(self.batch.cells[self.first : self.stop])


@dataclass(frozen=True, eq=False)
class Flight:
    """A part at a worker, or (if None) the request to open its engine."""

    part: Part | None
    cells: float
    sent: float


@dataclass(eq=False)
class Worker:
    """A worker as the dispatcher knows it.

    ``rate`` is in cells per second; it was measured, or is expected of its engine, if ``is_measured``, otherwise a
    guess. ``ready`` is its message when its engine was open. ``slices`` has the slices that were assigned to it, the
    least recently used one first, and whether it has answered for each; ``flights`` its tasks by ticket, in the order
    in which they were sent; ``heard`` the time of its last answer. It ``is_late`` if it came after the search had
    begun.
    """

    info: WorkerInfo
    rate: float
    is_measured: bool = False
    ready: Ready | None = None
    slices: dict[int, bool] = field(default_factory=dict)
    flights: dict[int, Flight] = field(default_factory=dict)
    heard: float = 0.0
    is_silent: bool = False
    is_left_out: bool = False
    is_late: bool = False

    @property
    def room_bytes(self) -> int:
        """Memory for slices, at most; 0 until it is known."""
        if self.ready is None:
            return 0
        if self.ready.kept_bytes is not None:
            return self.ready.kept_bytes
        return int(MEMORY_SHARE * (self.info.limit_bytes or self.ready.host_bytes // self.info.n_on_host))

    @property
    def is_well(self) -> bool:
        """Whether it is ready, answers and may be given work."""
        return self.ready is not None and not (self.is_silent or self.is_left_out or self.info.is_paused)


class BatchStream:
    """One call of a search.

    ``cells_of`` is the number of cells of a query with all slices; ``progress`` gets the cells of each completed part.
    ``batches`` are those that are begun and not yet yielded, ``cells_ahead`` the cells of queries that were read and
    are in no batch yet.
    """

    def __init__(
        self,
        queries: Iterable[SequenceRecord],
        cells_of: Callable[[SequenceRecord], int],
        max_queries: int,
        progress: Progress | None,
    ) -> None:
        self._queries = iter(queries)
        self._cells_of = cells_of
        self._max_queries = max_queries
        self.progress = progress
        self.batches: deque[TaskBatch] = deque()
        self.cells_ahead = 0
        self._ahead: deque[tuple[SequenceRecord, int, int]] = deque()  # with cells and bytes
        self._bytes_ahead = 0
        self._is_at_end = False

    @property
    def is_read(self) -> bool:
        """Whether all queries are in batches."""
        return self._is_at_end and not self._ahead

    def read_ahead(self, cells: float) -> bool:
        """Read queries until this number of cells, or the largest number of bytes, is ahead; returns whether all are
        read.
        """
        while not self._is_at_end and self.cells_ahead < cells and self._bytes_ahead < MAX_AHEAD_BYTES:
            query = next(self._queries, None)
            if query is None:
                self._is_at_end = True
                break
            n_bytes = len(query.content) if isinstance(query, PositionSpecificQuery) else len(query)
            n_cells = self._cells_of(query)
            self._ahead.append((query, n_cells, n_bytes))
            self.cells_ahead += n_cells
            self._bytes_ahead += n_bytes
        return self._is_at_end

    def add_batch(self, cells: float, n_slices: int) -> TaskBatch | None:
        """Begin a batch with the next queries: at least one, and no further one once they have ``cells`` cells.

        Returns None if there are no more queries.
        """
        queries: list[SequenceRecord] = []
        n_cells: list[int] = []
        total_cells = total_bytes = 0
        while total_cells < cells and total_bytes < MAX_PACKED_BYTES and len(queries) < self._max_queries:
            if not self._ahead:
                self.read_ahead(1)
            if not self._ahead:
                break
            query, query_cells, query_bytes = self._ahead.popleft()
            queries.append(query)
            n_cells.append(query_cells)
            total_cells += query_cells
            total_bytes += query_bytes
            self.cells_ahead -= query_cells
            self._bytes_ahead -= query_bytes
        if not queries:
            return None
        batch = TaskBatch(self, queries, n_cells, [{} for _ in queries])
        batch.parts = [Part(batch, number, 0, len(queries)) for number in range(n_slices)]
        self.batches.append(batch)
        return batch


class Dispatcher:
    """Searches queries with the workers of a cluster.

    Parameters
    ----------
    connection : Connection
    machine : Machine
    cells_of : callable
        The number of cells of a query with all slices, by which batches are bounded and progress is reported.
    top : int
        Number of subjects that are reported for a query.
    deadline_seconds : float
        Shortest time after which a worker that does not answer counts as silent.
    notify : callable
        Called with messages for the user about workers and the scheduler.

    ``slices`` are those whose results make up the results of the database; the caller sets them once, before the first
    search. ``n_tasks`` counts the parts that were sent, repeated ones included; ``search_seconds`` is the sum of the
    times in which workers searched them.
    """

    def __init__(
        self,
        connection: Connection,
        machine: Machine,
        *,
        cells_of: Callable[[SequenceRecord], int],
        top: int,
        deadline_seconds: float = DEADLINE_SECONDS,
        notify: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._connection = connection
        self._machine = packed(machine)
        self._cells_of = cells_of
        self._max_queries = max(1, MAX_HITS // top)
        self._deadline_seconds = deadline_seconds
        self._notify = notify
        self.slices: list[SliceTask] = []
        self._first: bytes | None = None
        self._workers: dict[str, Worker] = {}
        self._streams: list[BatchStream] = []
        self._looked = float("-inf")
        self._has_said_waiting = False
        self.n_tasks = 0
        self.search_seconds = 0.0
        self.workers_with_results: set[str] = set()

    # --- before the search ---

    def meet(self, first: SliceTask | None = None) -> list[tuple[WorkerInfo, Ready, int]]:
        """Wait until the workers are ready, at least one; returns them, and their memory for slices.

        If ``first``, the only slice of the search, is known, workers open it as soon as they are ready. Raises
        :class:`SwSearchError` if a worker has another version of the program, or cannot open the engine.
        """
        self._first = None if first is None else first.spec
        while not any(worker.ready is not None for worker in self._workers.values()) or any(
            worker.ready is None and not worker.is_silent and not worker.is_left_out
            for worker in self._workers.values()
        ):
            self.step()
        there = [worker for worker in self._workers.values() if worker.ready is not None]
        return [(worker.info, worker.ready, worker.room_bytes) for worker in there if worker.ready is not None]

    # --- the search ---

    @started
    def search(
        self,
        queries: Iterable[SequenceRecord],
        progress: Progress | None,
        merge: Callable[[Sequence[QueryResult]], QueryResult],
        when_answered: Callable[[], None] = lambda: None,
    ) -> Generator[QueryResult | None, None, None]:
        """Yield None when the first parts have been sent, then the results in the order of the queries.

        ``merge`` joins the results of a query in all slices. ``when_answered`` is called when all results have arrived,
        before the last are returned. Several searches may run at the same time; earlier ones have priority. Closing the
        generator ends its search. Raises :class:`SwSearchError` if a worker refuses the search, or no worker can
        perform it.
        """
        stream = BatchStream(queries, self._cells_of, self._max_queries, progress)
        self._streams.append(stream)
        number = 0
        try:
            self._look()
            self._fill()
            yield None
            while True:
                while stream.batches and not stream.batches[0].parts:
                    batch = stream.batches.popleft()
                    self._fill()
                    if stream.is_read and not any(unfinished.parts for unfinished in stream.batches):
                        when_answered()
                    for found in batch.found:
                        yield replace(merge([found[one] for one in sorted(found)]), number=number)
                        number += 1
                        self._attend()
                if stream.is_read and not stream.batches:
                    return
                self.step()
        finally:
            self._end(stream)

    def _end(self, stream: BatchStream) -> None:
        """Forget all parts of a search."""
        self._streams.remove(stream)
        for worker in self._workers.values():
            for ticket, flight in list(worker.flights.items()):
                if flight.part is not None and flight.part.batch.stream is stream:
                    self._connection.forget(ticket)
                    del worker.flights[ticket]

    def _attend(self) -> None:
        """Give new work to workers that have answered, while the caller is busy with results."""
        answers = [] if self._connection.is_lost else self._connection.answered(0)
        for answer in answers:
            self._take(answer)
        if answers:
            self._fill()

    def step(self) -> None:
        """Let one event happen, or a fraction of a second pass."""
        if self._connection.is_lost:
            self._recover()
        self._look()
        self._fill()
        for answer in self._connection.answered(WAIT_SECONDS):
            self._take(answer)
        self._check_deadlines()

    # --- workers ---

    def _look(self) -> None:
        """Notice workers that have joined or left."""
        now = time.monotonic()
        if now - self._looked < (LOOK_SECONDS if self._workers else WAIT_SECONDS):
            return
        self._looked = now
        there = self._connection.workers()
        if there is None or self._connection.is_lost:
            return
        for address in self._workers.keys() - there.keys():
            self._lose(self._workers.pop(address))
        for address, info in there.items():
            if address in self._workers:
                self._workers[address].info = info
            else:
                worker = Worker(info, FIRST_CELLS_PER_SECOND * info.threads, heard=now, is_late=bool(self.slices))
                self._workers[address] = worker
                ticket = self._connection.ask(address, PREPARE, self._machine, self._first)
                worker.flights[ticket] = Flight(None, 0.0, now)
        if not self._workers and not self._has_said_waiting:
            self._notify(f"{self._connection.where} has no workers yet; waiting for some")
        self._has_said_waiting = not self._workers

    def _lose(self, worker: Worker) -> None:
        """Give the parts of a worker that has left to others."""
        for ticket in worker.flights:
            self._connection.forget(ticket)
        if any(flight.part is not None for flight in worker.flights.values()):
            self._notify(f"{worker.info.name} has left; other workers take its work")
        for number, flight in enumerate(worker.flights.values()):
            self._take_away(worker, flight.part, is_loss=number == 0 and not worker.is_silent)

    def _take_away(self, worker: Worker, part: Part | None, *, is_loss: bool = False) -> None:
        """Let a part of a worker wait again, unless it is done or at another worker; divide one that ends workers."""
        if part is None or part.is_done or not part.at:
            return
        part.at.discard(worker)
        part.losses += is_loss
        if part.at or part.losses < MAX_LOSSES:
            return
        batch = part.batch
        if part.stop - part.first == 1:
            name = shortened(batch.queries[part.first].identifier) or "without a name"
            advice = "leave it out, or give the workers more memory; the run can be resumed"
            raise EngineError(f"{part.losses} workers ended while they searched query {name}; {advice}")
        place = batch.parts.index(part)
        batch.parts[place : place + 1] = [
            Part(batch, part.slice, number, number + 1) for number in range(part.first, part.stop)
        ]

    def _recover(self) -> None:
        """Connect to a scheduler again after one has ended, and send again what was sent to it."""
        self._notify(f"the scheduler at {self._connection.where} has ended; waiting for another one")
        self._connection.reconnect()
        self._notify(f"connected to {self._connection.where} again")
        workers, self._workers = self._workers, {}
        self._looked = float("-inf")
        for worker in workers.values():
            for flight in worker.flights.values():
                self._take_away(worker, flight.part)

    def _check_deadlines(self) -> None:
        """Give the parts of workers that do not answer to others as well."""
        now = time.monotonic()
        for worker in self._workers.values():
            if worker.is_silent or not worker.flights:
                continue
            flight = next(iter(worker.flights.values()))
            if now - max(flight.sent, worker.heard) > self._allowed_seconds(worker, flight):
                worker.is_silent = True
                seconds = now - max(flight.sent, worker.heard)
                self._notify(f"{worker.info.name} has not answered for {seconds:.0f} s; other workers take its work")
                for one in worker.flights.values():
                    self._take_away(worker, one.part)

    def _allowed_seconds(self, worker: Worker, flight: Flight) -> float:
        """The time that a worker may take for its first task before it counts as silent."""
        allowed = max(self._deadline_seconds, DEADLINE_FACTOR * flight.cells / worker.rate)
        if flight.part is None:
            return allowed + OPENING_SECONDS
        if not worker.slices.get(flight.part.slice):
            n_bytes = self.slices[flight.part.slice].n_bytes
            allowed += OPENING_SECONDS + n_bytes / OPENING_BYTES_PER_SECOND
        return allowed

    # --- parts ---

    def _fill(self) -> None:
        """Give every worker the parts that it may have, one to each before any gets a second one."""
        waiting = [part for stream in self._streams for batch in stream.batches for part in batch.parts if not part.at]
        for n_flights in range(PLACES):
            for worker in self._workers.values():
                if worker.is_well and len(worker.flights) <= n_flights:
                    part = self._next(worker, waiting)
                    if part is not None:
                        self._send(worker, part)
                        with suppress(ValueError):  # it was in the second place of another worker
                            waiting.remove(part)

    def _next(self, worker: Worker, waiting: list[Part]) -> Part | None:
        """The part that a worker gets, by the rule at the top of this module; None if it has to wait.

        ``waiting`` are the parts that no worker has, those of earlier searches and queries first; those of a new batch
        are added.
        """
        while True:
            for part in waiting:
                if self._is_for(worker, part):
                    return part
            batch = self._new_batch(worker)
            if batch is None:
                break
            waiting += batch.parts
        return self._of_further_slice(worker, waiting) or self._of_other_worker(worker)

    def _is_for(self, worker: Worker, part: Part) -> bool:
        if part.slice in worker.slices:
            return True
        return self._n_holders(part.slice) == 0 and self._has_room(worker, part.slice)

    def _of_further_slice(self, worker: Worker, waiting: list[Part]) -> Part | None:
        waiting = [part for part in waiting if part.slice not in worker.slices]
        if not waiting:
            return None
        n_waiting = [sum(part.slice == number for part in waiting) for number in range(len(self.slices))]
        holders = [self._n_holders(number) for number in range(len(self.slices))]

        def urgency(part: Part) -> float:
            return n_waiting[part.slice] / holders[part.slice] if holders[part.slice] else float("inf")

        for part in sorted(waiting, key=urgency, reverse=True):
            if self._has_room(worker, part.slice) or (not holders[part.slice] and not worker.flights):
                return part
        return None

    def _of_other_worker(self, worker: Worker) -> Part | None:
        """A part that another worker has in its second place, taken away from it."""
        if worker.flights:
            return None
        for other in self._workers.values():
            if other.ready is None or other.ready.is_background:
                continue
            for ticket, flight in list(other.flights.items())[1:]:
                part = flight.part
                if part is not None and not part.is_done and (part.slice in worker.slices or not worker.slices):
                    self._connection.forget(ticket)
                    del other.flights[ticket]
                    part.at.discard(other)
                    if not part.at:
                        return part
        return None

    def _n_holders(self, number: int) -> int:
        return sum(
            number in worker.slices
            for worker in self._workers.values()
            if not worker.is_silent and not worker.is_left_out
        )

    def _has_room(self, worker: Worker, number: int) -> bool:
        needed = sum(self.slices[one].n_bytes for one in (*worker.slices, number))
        return not worker.slices or needed <= worker.room_bytes

    def _new_batch(self, worker: Worker) -> TaskBatch | None:
        """A new batch; None if there are no queries, or enough batches."""
        n_places = PLACES * len(self._workers)
        most = 4 + 2 * -(-n_places // len(self.slices)) if self.slices else 0
        for stream in self._streams:
            if not stream.is_read and len(stream.batches) < most:
                batch = stream.add_batch(self._cells_of_batch(stream, worker), len(self.slices))
                if batch is not None:
                    return batch
        return None

    def _cells_of_batch(self, stream: BatchStream, worker: Worker) -> float:
        """The size of the next batch: what the worker searches in one largest slice in the time of a part.

        Near the end of the search it is half of the worker's share of the queries that are left, which lets all workers
        end at about the same time (guided self-scheduling; Polychronopoulos and Kuck 1987).
        """
        share = max(one.share for one in self.slices)
        if not worker.is_measured:
            return worker.rate * TASK_SECONDS / share / 4
        rate_of_all = sum(one.rate for one in self._workers.values() if one.is_well)
        cells = worker.rate * TASK_SECONDS / share
        if rate_of_all > worker.rate and stream.read_ahead(PLACES * TASK_SECONDS * rate_of_all / share):
            is_background = worker.ready is not None and worker.ready.is_background
            least = LEAST_BACKGROUND_SECONDS if is_background else LEAST_SECONDS
            fair = stream.cells_ahead * worker.rate / rate_of_all / share
            cells = min(cells, max(fair / 2, worker.rate * least / share))
        return cells

    def _send(self, worker: Worker, part: Part) -> None:
        was_open = worker.slices.pop(part.slice, False)
        if not was_open and not self._has_room(worker, part.slice):
            worker.slices.clear()  # the worker itself decides which of them it closes
        worker.slices[part.slice] = was_open
        task = self.slices[part.slice]
        queries = packed(part.batch.queries[part.first : part.stop])
        room = worker.room_bytes if len(self.slices) > 1 else None
        ticket = self._connection.ask(worker.info.address, SEARCH, task.spec, queries, room)
        self.n_tasks += 1
        part.at.add(worker)
        worker.flights[ticket] = Flight(part, task.share * part.cells, time.monotonic())

    # --- answers ---

    def _take(self, answer: Answered) -> None:
        """Note the answer of a worker."""
        worker = next((one for one in self._workers.values() if answer.ticket in one.flights), None)
        if worker is None:
            return
        flight = worker.flights.pop(answer.ticket)
        part = flight.part
        if answer.error is not None:
            problem = f"{type(answer.error).__name__}: {answer.error}"
            raise EngineError(f"{worker.info.name} cannot run the task, {problem}; is {PROGRAM} installed there?")
        if answer.data is None:
            if part is None:
                del self._workers[worker.info.address]  # it is asked again at the next look, if it is there
                self._looked = float("-inf")
            else:
                self._take_away(worker, part, is_loss=not self._connection.is_lost)
            return
        worker.heard = time.monotonic()
        worker.is_silent = False
        said = unpacked(answer.data)
        if isinstance(said, Failed):
            self._take_failure(worker, part, said)
        elif isinstance(said, Ready):
            worker.ready = said
            if said.cells_per_second is not None and not worker.is_measured:
                worker.rate, worker.is_measured = said.cells_per_second, True
        elif isinstance(said, Found) and part is not None:
            self.workers_with_results.add(worker.info.address)
            self.search_seconds += said.seconds
            if part.slice in worker.slices:
                worker.slices[part.slice] = True
            if said.seconds > 0:
                rate = flight.cells / said.seconds
                worker.rate = (worker.rate + rate) / 2 if worker.is_measured else rate
                worker.is_measured = True
            part.at.discard(worker)
            self._add(part, said)

    def _take_failure(self, worker: Worker, part: Part | None, said: Failed) -> None:
        error = said.error(worker.info.name)
        if not said.is_of_engine and not worker.is_late:
            raise error
        if not worker.is_left_out:
            self._notify(f"{error}; it gets no more work")
        worker.is_left_out = True
        if all(one.is_left_out for one in self._workers.values()):
            raise error
        self._take_away(worker, part)

    def _add(self, part: Part, said: Found) -> None:
        """Add the results of a part to its batch, unless it has them from another worker."""
        if part.is_done:
            return
        batch = part.batch
        batch.parts.remove(part)
        for place, result in zip(range(part.first, part.stop), said.results, strict=True):
            batch.found[place][part.slice] = result
        if batch.stream.progress is not None:
            batch.stream.progress(round(self.slices[part.slice].share * part.cells))
