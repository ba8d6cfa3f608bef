"""Several workers of a Dask cluster on one machine, compared with the sum of their own rates.

    python benchmarks/benchmark_cluster.py [--workers 2] [--subjects 20000] [--queries 600] [--out RESULT.json]
    python benchmarks/benchmark_cluster.py --engine cuda --workers 2 --subjects 500000 --queries 20000

Database and queries are synthetic proteins of natural composition and lengths. Every worker has ``--threads`` threads
and, with ``--engine cuda``, a GPU of its own. In turns, ``--repeat`` times:

alone    one process without Dask searches all queries with the threads (or the GPU) of one worker
shares   one process for each worker, without Dask, searches its share of the queries; all run at the same time. The sum
         of their rates is what the workers can do.
cluster  the workers of a cluster search all queries

All are warm: engine and database are open, and some queries were searched before. ``of_sum`` is the rate of the cluster
divided by the sum of the shares, and ``of_one`` divided by the rate of one process alone; both are medians over the
turns. ``searching`` is the share of the time in which the workers of the cluster searched, which other load on the
machine does not change. Then

driver   the driver's processor time for each task, without reports and store
start    seconds from the start of a worker's process until its first result, from its registration, and from a request
         to a worker that is warm
joined   seconds from the start of a second worker's process, while the first one is busy, until its first result

``--out`` writes the numbers with processor, device and commit as JSON. Only turns of one call can be compared.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from provenance import header, processor, write_result

from swsearch.cluster import ClusterSearcher, open_cluster_searcher
from swsearch.database.builder import build_database
from swsearch.engine.registry import Machine
from swsearch.scoring.ungapped import background
from swsearch.search.planned_search import PlannedSearch
from swsearch.search.queries import QueryFiles
from swsearch.search.searcher import open_searcher
from swsearch.sequences.alphabet import PROTEIN
from swsearch.sequences.record import SequenceRecord

LENGTH_MEAN, LENGTH_DEVIATION = 5.68, 0.64
WARM_UP = 4


def write_proteins(path: Path, n_sequences: int, seed: int) -> None:
    """Proteins of natural composition and lengths."""
    rng = np.random.default_rng(seed)
    weights = background(PROTEIN)
    letters = np.frombuffer(PROTEIN.letters[: len(weights)].encode(), dtype=np.uint8)
    lengths = rng.lognormal(LENGTH_MEAN, LENGTH_DEVIATION, n_sequences).clip(16, 3000).astype(int)
    residues = rng.choice(letters, size=int(lengths.sum()), p=weights / weights.sum()).tobytes()
    with open(path, "wb") as file:
        first = 0
        for number, length in enumerate(lengths.tolist()):
            file.write(b">s%d\n%b\n" % (number, residues[first : first + length]))
            first += length


def read(path: Path, searcher: PlannedSearch) -> list[SequenceRecord]:
    records = QueryFiles.of([path], "auto").records(searcher)
    return [record for record in records if isinstance(record, SequenceRecord)]


# --- processes without Dask ---


def share(folder: Path, options: argparse.Namespace) -> None:
    """Search the share ``--share i/n`` each time when a line comes in; print cells and seconds."""
    index, count = map(int, options.share.split("/"))
    with open_searcher(folder / "db", engine=options.engine, threads=options.threads) as searcher:
        queries = read(folder / "queries.fasta", searcher)[index::count]
        for _ in searcher.search(queries[:WARM_UP]):
            pass
        print("ready", flush=True)
        while sys.stdin.readline():
            began = time.perf_counter()
            for _ in searcher.search(queries):
                pass
            seconds = time.perf_counter() - began
            print(json.dumps([sum(map(searcher.cells, queries)), seconds]), flush=True)


class Shares:
    """Processes of :func:`share`, which search at the same time."""

    def __init__(self, folder: Path, options: argparse.Namespace, count: int) -> None:
        command = [sys.executable, __file__, "--folder", str(folder), "--engine", options.engine]
        command += ["--threads", str(options.threads)]
        self._processes = [
            subprocess.Popen(
                [*command, "--share", f"{index}/{count}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                env=environment(options, index),
            )
            for index in range(count)
        ]  # fmt: skip
        for process in self._processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"

    def gcups(self) -> float:
        """The sum of the rates of one search."""
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        total = 0.0
        for process in self._processes:
            assert process.stdout is not None
            cells, seconds = json.loads(process.stdout.readline())
            total += cells / seconds / 1e9
        return total

    def close(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()


# --- a cluster ---


def environment(options: argparse.Namespace, number: int) -> dict[str, str]:
    return os.environ | ({"CUDA_VISIBLE_DEVICES": str(number)} if options.engine == "cuda" else {})


class Cluster:
    """A scheduler and workers as processes of their own."""

    def __init__(self, folder: Path, options: argparse.Namespace) -> None:
        self._folder, self._options = folder, options
        self.place = str(folder / "scheduler.json")
        Path(self.place).unlink(missing_ok=True)
        self._processes = [self._started("scheduler", 0, "--port", "0", "--host", "127.0.0.1")]
        while not self._is_listening():
            time.sleep(0.02)

    def _is_listening(self) -> bool:
        with suppress(OSError, ValueError):
            return bool(json.loads(Path(self.place).read_bytes())["address"])
        return False

    def _started(self, kind: str, number: int, *arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.dask_{kind}", "--scheduler-file", self.place]
        with open(self._folder / "log", "ab") as log:
            return subprocess.Popen(
                [*command, "--no-dashboard", *arguments], stdout=log, stderr=log,
                env=environment(self._options, number), cwd=self._folder,
            )  # fmt: skip

    def add_worker(self, number: int) -> subprocess.Popen[bytes]:
        nthreads = str(self._options.threads)
        arguments = (
            "--nthreads",
            nthreads,
            "--memory-limit",
            "0",
            "--no-nanny",
            "--local-directory",
            str(self._folder),
        )
        worker = self._started("worker", number, *arguments)
        self._processes.append(worker)
        return worker

    def wait_for_workers(self, count: int) -> None:
        from distributed import Client

        with Client(scheduler_file=self.place, set_as_default=False) as client:
            client.wait_for_workers(count)

    def close(self) -> None:
        for process in reversed(self._processes):
            process.kill()
            process.wait()


@contextmanager
def opened(cluster: Cluster, folder: Path, options: argparse.Namespace) -> Iterator[ClusterSearcher]:
    with open_cluster_searcher(folder / "db", None, cluster.place, machine=Machine(options.engine)) as searcher:
        yield searcher


def first_result_seconds(searcher: ClusterSearcher, queries: list[SequenceRecord]) -> float:
    began = time.perf_counter()
    for _ in searcher.search(queries):
        break
    return time.perf_counter() - began


def starts(folder: Path, options: argparse.Namespace) -> dict[str, float]:
    """The times until a worker does useful work."""
    cluster = Cluster(folder, options)
    try:
        began = time.perf_counter()
        cluster.add_worker(0)
        cluster.wait_for_workers(1)
        registered = time.perf_counter()
        with opened(cluster, folder, options) as searcher:
            queries = read(folder / "queries.fasta", searcher)
            first_result_seconds(searcher, queries[:1])
            cold = time.perf_counter()
        with opened(cluster, folder, options) as searcher:
            warm = first_result_seconds(searcher, queries[1:2])
            results = searcher.search(queries * 4)
            next(results)
            started = time.perf_counter()
            cluster.add_worker(1 if options.engine == "cuda" else 0)
            n_before = len(searcher.dispatcher.workers_with_results)
            for _ in results:
                if len(searcher.dispatcher.workers_with_results) > n_before:
                    break
            else:
                raise SystemExit("the search ended before the second worker had joined; give more --queries")
            joined = time.perf_counter() - started
            results.close()
    finally:
        cluster.close()
    return {
        "process_to_first_result": cold - began,
        "registration_to_first_result": cold - registered,
        "warm_request_to_first_result": warm,
        "joined_process_to_first_result": joined,
    }


def rates(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """The rates in turns, and the driver's processor time."""
    alone, shares = Shares(folder, options, 1), Shares(folder, options, options.workers)
    cluster = Cluster(folder, options)
    turns: list[dict[str, float]] = []
    driver = []
    try:
        for number in range(options.workers):
            cluster.add_worker(number)
        cluster.wait_for_workers(options.workers)
        with opened(cluster, folder, options) as searcher:
            queries = read(folder / "queries.fasta", searcher)
            cells = sum(map(searcher.cells, queries))
            for _ in searcher.search(queries[: WARM_UP * options.workers * 4]):
                pass
            for _ in range(options.repeat):
                turn = {"alone": alone.gcups(), "shares": shares.gcups()}
                n_tasks, searched = searcher.dispatcher.n_tasks, searcher.dispatcher.search_seconds
                began, cpu_began = time.perf_counter(), time.process_time()
                for _ in searcher.search(queries):
                    pass
                seconds = time.perf_counter() - began
                turn["cluster"] = cells / seconds / 1e9
                turn["searching"] = (searcher.dispatcher.search_seconds - searched) / seconds / options.workers
                driver.append((time.process_time() - cpu_began) / (searcher.dispatcher.n_tasks - n_tasks))
                turns.append(turn)
                print(json.dumps(turn), flush=True)
            engine_choice = searcher.engine_choice.replace(cluster.place, Path(cluster.place).name)
    finally:
        for one in (alone, shares, cluster):
            one.close()
    return {
        "engine_choice": engine_choice,
        "gcups": turns,
        "of_sum": statistics.median(turn["cluster"] / turn["shares"] for turn in turns),
        "of_one": statistics.median(turn["cluster"] / turn["alone"] for turn in turns),
        "searching": statistics.median(turn["searching"] for turn in turns),
        "driver_cpu_seconds_per_task": statistics.median(driver),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1, help="of each worker")
    parser.add_argument("--engine", default="cpu")
    parser.add_argument("--subjects", type=int, default=20_000)
    parser.add_argument("--queries", type=int, default=600)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--share", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.share:
        share(options.folder, options)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_proteins(folder / "subjects.fasta", options.subjects, 1)
        write_proteins(folder / "queries.fasta", options.queries, 2)
        build_database(folder / "subjects.fasta", folder / "db")
        report: dict[str, Any] = {
            **header("cluster"),
            "processor": processor(),
            "workers": options.workers,
            "threads": options.threads,
            "subjects": options.subjects,
            "queries": options.queries,
        }
        report |= rates(folder, options)
        report["start_seconds"] = starts(folder, options)
    print(json.dumps(report, indent=1))
    write_result(report, options.out)


if __name__ == "__main__":
    main()
