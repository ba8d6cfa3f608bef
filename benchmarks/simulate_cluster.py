"""A simulation of 1 to 1,000 GPUs that search with ``swsearch batch --cluster``, with discrete events and a seed.

    python benchmarks/simulate_cluster.py [--queries 50000] [--seed 1] [--out RESULT.json]

The rules are those of ``swsearch/cluster/dispatcher.py``, with its constants: a task is as many queries as the worker
searches in two seconds, and fewer toward the end, but at least one; each worker has two tasks; the number of batches
that are begun is bounded; the tasks of a worker that has ended are given to others once this is noticed; and a worker
without tasks takes one that another without a GPU has not begun. If the database has slices, a task is a batch in one
slice, each worker holds one slice, and opens others if no work for its own waits and it has the memory. The driver
sends one task after another, which takes it 3 to 6 ms each. Workers start, load the database, differ in speed
(lognormal), and fail (exponential times), after which they start again. Lengths of queries are lognormal. Silent
workers are not simulated.

The *efficiency* is the useful GPU time, in which results that count were computed, divided by the total GPU time: the
number of GPUs times the time until the last result. It is printed for each number of GPUs.

``--measured`` names the result of ``benchmarks/benchmark_cluster.py`` on one machine: the share of the time in which
its workers searched is compared with the efficiency of a simulation of that benchmark.
"""

from __future__ import annotations

import argparse
import heapq
import json
import math
import sys
from collections import deque
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from swsearch.cluster.dispatcher import (
    LEAST_BACKGROUND_SECONDS,
    LEAST_SECONDS,
    LOOK_SECONDS,
    MAX_HITS,
    PLACES,
    TASK_SECONDS,
)
from swsearch.engine.cuda.search.engine import DATABASE_SHARE
from swsearch.options import option_of

TOP = option_of("top").default
COUNTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000)
LENGTH_DEVIATION = 0.64
"""Of the logarithms of lengths, as in ``benchmark_cluster.py``."""


@dataclass(frozen=True)
class Model:
    """What is simulated; times in seconds.

    Attributes
    ----------
    n_queries, n_slices, n_held : int
        Number of slices of the database, and of those that fit a worker.
    query_seconds : float
        Mean time of a query in the whole database on one GPU.
    start_seconds, load_seconds : float
        Time until a new worker is ready, and to open a slice.
    failure_seconds : float
        Mean time between failures of a worker.
    speed_deviation : float
        Standard deviation of the logarithm of the workers' speeds.
    driver_seconds : tuple of float
        Shortest and longest time of the driver for a task.
    warm : bool
        Whether the speeds are known and slices are open at the beginning.
    background : bool
        Whether the engines of the workers work in the background, as those of GPUs do.
    """

    n_queries: int
    n_slices: int = 1
    n_held: int = 1
    query_seconds: float = 1.0
    start_seconds: float = 0.0
    load_seconds: float = 0.0
    failure_seconds: float = float("inf")
    speed_deviation: float = 0.0
    driver_seconds: tuple[float, float] = (0.003, 0.006)
    warm: bool = False
    background: bool = True


@dataclass(frozen=True)
class Outcome:
    """The result of a simulation; ``n_sent`` counts the tasks that were sent again too."""

    gpus: int
    efficiency: float
    seconds: float
    n_tasks: int
    n_results: int
    n_sent: int
    n_failures: int


@dataclass(eq=False)
class Task:
    """A batch in one slice."""

    batch: int
    slice: int
    work: float
    n_results: int = 0


@dataclass(eq=False)
class Worker:
    """A GPU; ``life`` counts its starts, and events of former lives are ignored."""

    speed: float
    life: int = 0
    is_up: bool = False
    is_measured: bool = False
    slices: set[int] = field(default_factory=set)
    opened: set[int] = field(default_factory=set)
    tasks: deque[tuple[Task, float]] = field(default_factory=deque)
    """Tasks with the times at which they arrive; the first one is begun."""


class Simulation:
    """One search by ``n_gpus`` workers."""

    def __init__(self, model: Model, n_gpus: int, seed: int) -> None:
        self.model = model
        self.rng = np.random.default_rng([seed, n_gpus])
        deviation = model.speed_deviation
        speeds = self.rng.lognormal(-deviation * deviation / 2, deviation, n_gpus)
        self.workers = [Worker(float(speed), is_measured=model.warm) for speed in speeds]
        lengths = self.rng.lognormal(0.0, LENGTH_DEVIATION, model.n_queries)
        self.queries = (lengths / lengths.mean() * model.query_seconds / model.n_slices).tolist()
        self.n_read = 0
        self.unread = sum(self.queries)
        self.waiting: list[deque[Task]] = [deque() for _ in range(model.n_slices)]
        self.missing: dict[int, int] = {}
        self.tasks: list[Task] = []
        self.most = 4 + 2 * -(-PLACES * n_gpus // model.n_slices)
        self.events: list[tuple[float, int, str, Worker, int, Any]] = []
        self.n_events = self.n_sent = self.n_failures = self.n_done = 0
        self.useful = self.last = 0.0
        self.idle: dict[int, Worker] = {}
        self.asking: deque[tuple[Worker, int]] = deque()
        """Workers, with their lives, that wait for the driver."""
        self.is_driver_busy = False

    def run(self) -> Outcome:
        for worker in self.workers:
            self._start(worker, 0.0)
        while not (self.n_read == self.model.n_queries and self.n_done == len(self.tasks)):
            now, _, kind, worker, life, value = heapq.heappop(self.events)
            if kind == "noticed":
                self._again(now, value)
            elif kind == "sent":
                self._serve(now)
            elif life == worker.life:
                getattr(self, f"_{kind}")(now, worker, value)
        return Outcome(
            len(self.workers), self.useful / (len(self.workers) * self.last) if self.last else 1.0, self.last,
            len(self.tasks), sum(task.n_results for task in self.tasks), self.n_sent, self.n_failures,
        )  # fmt: skip

    def _at(self, time: float, kind: str, worker: Worker, value: Any = None) -> None:
        self.n_events += 1
        heapq.heappush(self.events, (time, self.n_events, kind, worker, worker.life, value))

    # --- workers ---

    def _start(self, worker: Worker, now: float) -> None:
        self._at(now + self.model.start_seconds, "ready", worker)
        if self.model.failure_seconds != float("inf"):
            self._at(now + self.rng.exponential(self.model.failure_seconds), "fail", worker)

    def _ready(self, now: float, worker: Worker, _: Any) -> None:
        holders = [sum(number in one.slices for one in self.workers) for number in range(self.model.n_slices)]
        worker.is_up = True
        worker.slices = {holders.index(min(holders))}
        worker.opened = set(worker.slices) if self.model.warm else set()
        self._at(now, "ask", worker)

    def _fail(self, now: float, worker: Worker, _: Any) -> None:
        self.n_failures += 1
        lost = [task for task, _ in worker.tasks]
        worker.life += 1
        worker.is_up = False
        worker.tasks.clear()
        worker.slices = set()
        self.idle.pop(id(worker), None)
        self._at(now + LOOK_SECONDS, "noticed", worker, lost)
        self._start(worker, now)

    def _again(self, now: float, lost: list[Task]) -> None:
        for task in reversed(lost):
            self.waiting[task.slice].appendleft(task)
        self._wake(now)

    def _wake(self, now: float) -> None:
        idle, self.idle = self.idle, {}
        for worker in idle.values():  # a worker without work asks again when there may be some
            self._at(now, "ask", worker)

    def _ask(self, now: float, worker: Worker, _: Any) -> None:
        self.asking.append((worker, worker.life))
        if not self.is_driver_busy:
            self._serve(now)

    def _serve(self, now: float) -> None:
        """The driver sends a task to the first worker that waits and can have one."""
        self.is_driver_busy = False
        while self.asking and not self.is_driver_busy:
            worker, life = self.asking.popleft()
            if life == worker.life and len(worker.tasks) < PLACES:
                self._send(now, worker)

    def _send(self, now: float, worker: Worker) -> None:
        task = self._next(worker)
        if task is None:
            self.idle[id(worker)] = worker
            return
        sent = now + self.rng.uniform(*self.model.driver_seconds)
        self.is_driver_busy = True
        self._at(sent, "sent", worker)
        self.n_sent += 1
        worker.tasks.append((task, sent))
        if len(worker.tasks) == 1:
            self._begin(sent, worker)
        if len(worker.tasks) < PLACES:
            self._at(sent, "ask", worker)

    def _begin(self, now: float, worker: Worker) -> None:
        task, arrives = worker.tasks[0]
        loading = 0.0 if task.slice in worker.opened else self.model.load_seconds
        worker.opened.add(task.slice)
        self._at(max(now, arrives) + loading + task.work / worker.speed, "result", worker)

    def _result(self, now: float, worker: Worker, _: Any) -> None:
        task, _arrived = worker.tasks.popleft()
        task.n_results += 1
        worker.is_measured = True
        self.n_done += 1
        self.useful += task.work / worker.speed
        self.last = max(self.last, now)
        self.missing[task.batch] -= 1
        if not self.missing[task.batch]:
            del self.missing[task.batch]
            self._wake(now)
        if worker.tasks:
            self._begin(now, worker)
        self._at(now, "ask", worker)

    # --- tasks ---

    def _next(self, worker: Worker) -> Task | None:
        while True:
            for number in worker.slices:
                if self.waiting[number]:
                    return self.waiting[number].popleft()
            if not self._add_batch(worker):
                return self._of_further_slice(worker) or self._of_other_worker(worker)

    def _add_batch(self, worker: Worker) -> bool:
        if self.n_read == self.model.n_queries or len(self.missing) >= self.most:
            return False
        budget = self._budget(worker)
        first, work = self.n_read, 0.0
        while work < budget and self.n_read < self.model.n_queries and self.n_read - first < MAX_HITS // TOP:
            work += self.queries[self.n_read]
            self.n_read += 1
        self.unread -= work
        self.missing[first] = self.model.n_slices
        for number in range(self.model.n_slices):
            task = Task(first, number, work)
            self.tasks.append(task)
            self.waiting[number].append(task)
        return True

    def _budget(self, worker: Worker) -> float:
        """The work of a batch in one slice."""
        budget = TASK_SECONDS * worker.speed
        if not worker.is_measured:
            return budget / 4
        speed_of_all = sum(one.speed for one in self.workers if one.is_up)
        if speed_of_all > worker.speed and self.unread < PLACES * TASK_SECONDS * speed_of_all:
            least = LEAST_BACKGROUND_SECONDS if self.model.background else LEAST_SECONDS
            fair = self.unread * self.model.n_slices * worker.speed / speed_of_all
            budget = min(budget, max(fair / 2, worker.speed * least))
        return budget

    def _of_further_slice(self, worker: Worker) -> Task | None:
        others = [number for number, tasks in enumerate(self.waiting) if tasks]
        if not others or len(worker.slices) >= self.model.n_held:
            return None
        number = max(others, key=lambda one: len(self.waiting[one]))
        worker.slices.add(number)
        return self.waiting[number].popleft()

    def _of_other_worker(self, worker: Worker) -> Task | None:
        if worker.tasks or self.model.background:
            return None
        for other in self.workers:
            if len(other.tasks) > 1 and other.tasks[1][0].slice in worker.slices:
                task, _ = other.tasks[1]
                del other.tasks[1]
                return task
        return None


@dataclass(frozen=True)
class LargeDatabase:
    """A database of ``docs/design/scale.md`` on eight H200s, by the model and the measured rates of this page."""

    n_residues: int
    n_sequences: int

    n_gpus = 8
    memory_bytes = 149.6e9
    gcups = 10_103 * 0.95
    """Of a GPU beside others, which keeps the database or a slice of it."""
    disk_bytes_per_second = 2e9

    @property
    def n_bytes(self) -> int:
        """Memory of the residues, padded by 7.5 bytes a sequence, and of the starts and lengths."""
        return self.n_residues + self.n_sequences * 15 // 2 + self.n_sequences * 12

    @property
    def n_slices(self) -> int:
        """The smallest number of slices that the GPUs keep and that divide evenly among them."""
        count = max(1, math.ceil(self.n_bytes / (self.memory_bytes * DATABASE_SHARE)))
        while count % self.n_gpus and self.n_gpus % count:
            count += 1
        return count

    @property
    def query_seconds(self) -> float:
        """Time of a query of 350 residues on one GPU."""
        return 350 * self.n_residues / (self.gcups * 1e9)

    @property
    def load_seconds(self) -> float:
        """Time to read the database once."""
        return self.n_bytes / self.disk_bytes_per_second


UNIREF90 = LargeDatabase(70 * 10**9, 200 * 10**6)
TREMBL = LargeDatabase(90 * 10**9, 250 * 10**6)
BFD = LargeDatabase(420 * 10**9, 2_100 * 10**6)


def models(n_queries: int) -> dict[str, Model]:
    """The two searches of ``docs/design/scale.md``."""
    common = Model(n_queries, start_seconds=30.0, failure_seconds=30 * 86400.0, speed_deviation=0.05)
    return {
        name: replace(
            common,
            n_queries=n_queries // one.n_slices,
            n_slices=one.n_slices,
            query_seconds=one.query_seconds,
            load_seconds=one.load_seconds / one.n_slices,
        )
        for name, one in (("UniRef90", UNIREF90), ("BFD", BFD))
    }


def compared(measured: dict[str, Any], seed: int) -> dict[str, Any]:
    """A result of ``benchmark_cluster.py`` and the simulation of it; the mean over 20 seeds."""
    count, share = measured["workers"], []
    for turn in measured["gcups"]:
        cells = measured["queries"] * measured["subjects"] * 350.0**2
        seconds = cells / (turn["shares"] / count * 1e9) / measured["queries"]
        cost = measured["driver_cpu_seconds_per_task"]
        is_background = "cuda engine" in measured["engine_choice"]
        model = Model(
            measured["queries"], query_seconds=seconds, driver_seconds=(cost, cost), warm=True,
            background=is_background,
        )  # fmt: skip
        share.append(float(np.mean([Simulation(model, count, seed + n).run().efficiency for n in range(20)])))
    simulated = float(np.median(share))
    return {
        "benchmark": measured["command"].split(" --out")[0],
        "processor": measured["processor"],
        "workers": count,
        "measured_searching": measured["searching"],
        "measured_of_sum": measured["of_sum"],
        "simulated": simulated,
        "simulated_of_measured_searching": simulated / measured["searching"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=50_000, help="of UniRef90; BFD has an eighth")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--measured", type=Path, help="result of benchmark_cluster.py")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    report: dict[str, Any] = {
        "benchmark": "simulation of a cluster", "command": " ".join(sys.argv), "seed": options.seed, "searches": {},
    }  # fmt: skip
    for name, model in models(options.queries).items():
        curve = []
        for count in COUNTS:
            if count < model.n_slices:
                continue
            curve.append(asdict(Simulation(model, count, options.seed).run()))
            print(f"{name:<10}{count:>6} GPUs  efficiency {curve[-1]['efficiency']:.3f}", flush=True)
        report["searches"][name] = {"model": asdict(model), "curve": curve}
    if options.measured:
        report["compared"] = compared(json.loads(options.measured.read_text(encoding="utf-8")), options.seed)
        print(json.dumps(report["compared"], indent=1))
    if options.out:
        options.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
