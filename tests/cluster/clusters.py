"""Dask clusters for tests: a scheduler and workers in processes of their own, on a free port of this machine."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from swsearch.cluster.cluster_searcher import ClusterSearcher
from swsearch.hits.result import QueryResult
from swsearch.sequences.record import SequenceRecord
from tests.patience import wait_until
from tests.processes import Process, start

SMALL_PARTS = """
import sys
from swsearch.cli.app import main
from swsearch.cluster import dispatcher
dispatcher.TASK_SECONDS = 1e-4
sys.exit(main(sys.argv[1:]))
"""
"""The command line with parts of a query or two."""
PATCHED = """
import os, signal, time
from pathlib import Path
from swsearch.errors import EngineError
from swsearch.search.searcher import Searcher

def search(self, queries, *given, **named):
    queries = list(queries)
    if any(query.header == {header!r} for query in queries):
        {action}
    return plain(self, queries, *given, **named)

plain = getattr(Searcher, "plain", Searcher.search)  # Dask may load this file twice
Searcher.plain, Searcher.search = plain, search
"""
"""The beginning of a worker that does something before it searches one of the queries."""


def essence(result: QueryResult) -> object:
    """What the search determines: everything but times."""
    return result.number, result.header, result.letters, result.hits, result.n_passed


def searched(searcher: ClusterSearcher, queries: list[SequenceRecord]) -> Iterator[object]:
    with closing(searcher.search(queries)) as results:
        yield from map(essence, results)


class Cluster:
    """A scheduler, whose address is in ``place``, and the workers that a test starts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.place = str(folder / "scheduler.json")
        self.workers: list[Process] = []
        self.start_scheduler()

    def start_scheduler(self) -> None:
        """Start a scheduler, after :meth:`kill_scheduler` another one with the same file."""
        Path(self.place).unlink(missing_ok=True)
        self.scheduler = self._started("scheduler", "--port", "0", "--host", "127.0.0.1")
        wait_until(self._is_listening, "the start of the scheduler")

    def _is_listening(self) -> bool:
        try:
            return bool(json.loads(Path(self.place).read_bytes())["address"])
        except (OSError, ValueError):
            return False

    def add_worker(self, *arguments: str, cwd: Path | None = None, **environment: str) -> Process:
        """Start a worker of one thread; it need not be there when this returns."""
        threads = ("--nthreads", "1", "--memory-limit", "0", "--no-nanny", "--local-directory", str(self.folder))
        worker = self._started("worker", *threads, *arguments, cwd=cwd, **environment)
        self.workers.append(worker)
        return worker

    def have_workers(self, n_workers: int) -> None:
        """Start workers until there are this many."""
        while len(self.workers) < n_workers:
            self.add_worker()

    def wait_for_workers(self) -> None:
        """Return when the workers of the cluster are those that run."""
        from distributed import Client

        with Client(scheduler_file=self.place, set_as_default=False) as client:
            wait_until(lambda: len(client.scheduler_info(n_workers=-1)["workers"]) == len(self.workers), "the workers")

    def end_workers(self) -> None:
        """Kill all workers, and return when the scheduler knows it."""
        for worker in list(self.workers):
            self.end_worker(worker)
        self.wait_for_workers()

    def _started(self, kind: str, *arguments: str, cwd: Path | None = None, **environment: str) -> Process:
        program = f"from distributed.cli.dask_{kind} import main; main()"
        options = ("--scheduler-file", self.place, "--no-dashboard")
        with open(self.folder / "log", "ab") as log:
            return start(
                ["-c", program, *options, *arguments], cwd=cwd or self.folder, stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, env=os.environ | environment,
            )  # fmt: skip

    def end_worker(self, worker: Process) -> None:
        """Kill a worker without notice."""
        worker.kill()
        worker.wait()
        self.workers.remove(worker)

    def kill_scheduler(self) -> None:
        """Kill the scheduler without notice; its workers end by themselves, but a test does not wait for that."""
        self.scheduler.kill()
        self.scheduler.wait()
        for worker in list(self.workers):
            self.end_worker(worker)

    def close(self) -> None:
        """End all processes."""
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()
