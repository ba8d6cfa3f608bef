"""What the search service costs: the time of one answer over HTTP, and the throughput of many clients.

    python benchmarks/benchmark_service.py QUERIES.fasta [--engine cuda] [--subjects 500000] [--clients 64]
        [--devices 0,1] [--cases 350,200] [--lengths 200] [--seconds 10] [--out RESULT.json]

The database is that of ``benchmark_search.py``. ``swsearch serve`` runs on this host with a new store; each client is a
thread of one of eight processes, and has one search at a time: it submits a query with `wait` and `hits`, so that the
answer comes when the search is done, and has its first page of hits. No query is sent twice, because the server answers
identical searches from its store. For queries of about 350 residues and of at most 200:

answer      median seconds of one client from the submission to the hits
new length  seconds by which the first search of a length takes longer than the second, which needs no further kernels:
            median and 99th percentile of ``--lengths`` lengths from 30 to 2,500, first in the life of the server, and
            the five slowest, each with its length
one, many   queries per second of one client, and of ``--clients``; ``times`` is their ratio
batch       queries per second of ``swsearch batch`` between its first and last event, with as many queries as the
            clients had; ``share`` is ``many`` divided by it
processor   milliseconds of processor time per search of the many clients, of the worker and of the web process;
            ``ranking`` and ``storing`` are the two threads of the worker with the most of it. They tell the same on a
            machine without a GPU (``--engine cpu --subjects 700``), but for the scores

``--out`` writes the same figures as JSON, with commit, device and driver.
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from benchmark_cuda import read_queries
from benchmark_search import database
from provenance import device_of, header, write_result

from swsearch.sequences.alphabet import PROTEIN
from swsearch.service.client import Client

PROCESSES = 8
LENGTHS = {"350": (330, 370), "200": (120, 200)}
"""Shortest and longest queries of a case."""


def sequences(path: str, shortest: int, longest: int, seed: int) -> Any:
    """Endless queries: parts of the given ones, with a tenth of their residues replaced."""
    rng = np.random.default_rng(seed)
    originals = [codes for codes in read_queries(path) if len(codes) >= longest]
    while True:
        original = originals[int(rng.integers(len(originals)))]
        length = int(rng.integers(shortest, longest + 1))
        first = int(rng.integers(0, len(original) - length + 1))
        codes = original[first : first + length].copy()
        replaced = rng.random(length) < 0.1
        codes[replaced] = rng.integers(0, 20, int(replaced.sum()))
        yield PROTEIN.decode(codes)


def searches(
    url: str, name: str, path: str, shortest: int, longest: int, seed: int, seconds: float
) -> list[tuple[str, list[float]]]:
    """The searches of one client: the query, and the times when it was sent and answered."""
    client = Client(url)
    found = []
    ends = time.time() + seconds
    for letters in sequences(path, shortest, longest, seed):
        times = [time.time()]
        search = client.submit(f">q{len(found)}\n{letters}\n", name, wait=50, hits=25)
        times.append(time.time())
        if search["state"] != "done" or not search["hits"]["hits"]:
            raise SystemExit(f"a search ended as {search['state']}, with the hits {search['hits']}")
        found.append((letters, times))
        if times[-1] > ends:
            return found
    raise AssertionError


def new_lengths(url: str, name: str, path: str, n_lengths: int) -> dict[str, Any]:
    """How much longer the first search of a length takes than the second."""
    client = Client(url)
    lengths = [350, *np.random.default_rng(5).choice(np.arange(30, 2501), n_lengths, replace=False).tolist()]
    taken: list[list[float]] = []
    for number, length in enumerate(lengths):
        times = []
        for letters in itertools.islice(sequences(path, length, length, number), 2):
            began = time.perf_counter()
            client.submit(f">q{number}\n{letters}\n", name, wait=50, hits=25)
            times.append(time.perf_counter() - began)
        taken.append(times)
    more = np.array([first - second for first, second in taken[1:]])  # the first is the first search of the server
    slowest = [[float(more[number]), lengths[number + 1]] for number in np.argsort(-more)[:5]]
    return {"median": float(np.median(more)), "p99": float(np.quantile(more, 0.99)), "slowest": slowest}


def several(arguments: tuple[Any, ...], first_seed: int, n_clients: int) -> list[tuple[str, list[float]]]:
    """The searches of some clients of one process."""
    with ThreadPoolExecutor(n_clients) as pool:
        url, name, path, shortest, longest, seconds = arguments
        clients = [
            pool.submit(searches, url, name, path, shortest, longest, first_seed + number, seconds)
            for number in range(n_clients)
        ]
        return [search for client in clients for search in client.result()]


def processor_seconds(server: int) -> dict[str, dict[str, float]]:
    """Processor time of a server's worker, its web process and the worker's threads, by their ids (Linux)."""
    found: dict[str, dict[str, float]] = {"worker": {}, "web": {}, "threads": {}}

    def seconds(folder: Path) -> float:
        times = (folder / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        return (int(times[11]) + int(times[12])) / os.sysconf("SC_CLK_TCK")

    waiting = [str(server)]
    while waiting:
        process = Path("/proc", waiting.pop())
        is_worker = b"\0worker\0" in (process / "cmdline").read_bytes()
        found["worker" if is_worker else "web"][process.name] = seconds(process)
        for task in (process / "task").iterdir():
            if is_worker:
                found["threads"][task.name] = seconds(task)
            waiting += (task / "children").read_text(encoding="ascii").split()
    return found


def processor_milliseconds(
    before: dict[str, dict[str, float]], after: dict[str, dict[str, float]], n_searches: int
) -> dict[str, float]:
    """Milliseconds per search between two moments."""
    spent = {
        name: sorted((seconds - before[name].get(each, 0.0) for each, seconds in of.items()), reverse=True)
        for name, of in after.items()
    }
    threads = dict(zip(("ranking", "storing"), spent["threads"], strict=False))
    seconds = {"worker": sum(spent["worker"]), "web": sum(spent["web"]), **threads}
    return {name: 1000 * value / n_searches for name, value in seconds.items()}


def rate(found: list[tuple[str, list[float]]]) -> float:
    """Searches per second, of those in the time when all clients were busy."""
    ends = sorted(times[-1] for _, times in found)
    return (len(ends) - 1) / (ends[-1] - ends[0])


def batch_rate(engine: list[str], path: Path, letters: list[str], folder: Path) -> float:
    """Queries per second of the command, between its first and last event."""
    queries = folder / "batch.fasta"
    queries.write_text("".join(f">q{number}\n{each}\n" for number, each in enumerate(letters)), encoding="ascii")
    events, store = folder / "events.jsonl", folder / "batch.sqlite"
    for old in (events, *folder.glob("batch.sqlite*")):
        old.unlink(missing_ok=True)
    command = [sys.executable, "-P", "-m", "swsearch", "batch", str(queries), str(path), *engine, "--quiet"]
    subprocess.run([*command, "--store", str(store), "--events", str(events)], check=True, stdout=subprocess.DEVNULL)
    times = [json.loads(line)["seconds"] for line in events.read_text(encoding="utf-8").splitlines()]
    return len(letters) / (times[-1] - times[0])


def measure(url: str, server: int, path: Path, options: argparse.Namespace, case: str, folder: Path) -> dict[str, Any]:
    """All figures of one case."""
    shortest, longest = LENGTHS[case]
    arguments = (url, path.name, options.queries, shortest, longest, options.seconds)
    searches(*arguments[:5], 1, 1.0)
    alone = searches(*arguments[:5], 2, options.seconds)
    per_process = options.clients // PROCESSES
    jobs = [(arguments, 1000 + process * per_process, per_process) for process in range(PROCESSES)]
    before = processor_seconds(server)
    with multiprocessing.get_context("spawn").Pool(PROCESSES) as pool:
        many = [search for found in pool.starmap(several, jobs) for search in found]
    processor = processor_milliseconds(before, processor_seconds(server), len(many))
    spans = np.diff(np.array([times for _, times in alone])).ravel()
    of_many = np.diff(np.array([times for _, times in many])).ravel()
    rates = rate(alone), rate(many)
    in_batch = batch_rate(engine_options(options), path, [letters for letters, _ in many], folder)
    return {
        "answer_seconds": float(np.median(spans)),
        "answer_seconds_p99": float(np.quantile(spans, 0.99)),
        "many_answer_seconds": float(np.median(of_many)),
        "one": rates[0],
        "many": rates[1],
        "times": rates[1] / rates[0],
        "batch": in_batch,
        "share": rates[1] / in_batch,
        "searches": len(alone) + len(many),
        "processor": processor,
    }


@contextmanager
def served(path: Path, engine: list[str], folder: Path) -> Iterator[tuple[str, int]]:
    """The URL and the process of a server of a database, whose log is in ``folder``."""
    command = [sys.executable, "-P", "-m", "swsearch", "serve", str(path), *engine, "--port", "0"]
    with (
        open(folder / "server.log", "wb") as log,
        subprocess.Popen(
            [*command, "--store", str(folder / "served.sqlite")], stdout=subprocess.PIPE, stderr=log, text=True
        ) as server,
    ):
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        if not url:
            raise SystemExit((folder / "server.log").read_text(encoding="utf-8"))
        try:
            yield url, server.pid
        finally:
            server.terminate()


def engine_options(options: argparse.Namespace) -> list[str]:
    """The options of a command that choose the engine."""
    return ["--engine", options.engine, *([] if options.devices is None else ["--devices", options.devices])]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("queries")
    parser.add_argument("--engine", default="cuda")
    parser.add_argument("--devices")
    parser.add_argument("--cases", default=",".join(LENGTHS))
    parser.add_argument("--subjects", type=int, default=500_000)
    parser.add_argument("--lengths", type=int, default=200)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()

    report: dict[str, Any] = {
        **header("service"),
        "engine": options.engine,
        "devices": options.devices,
        "clients": options.clients,
    }
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        path = database(options.queries, options.subjects, Path(tempfile.gettempdir()))
        with served(path, engine_options(options), folder) as (url, server):
            report["new length"] = new_lengths(url, path.name, options.queries, options.lengths)
            print("new length", json.dumps(report["new length"]), flush=True)
            for case in options.cases.split(","):
                report[case] = measure(url, server, path, options, case, folder)
                print(case, json.dumps(report[case]), flush=True)
    report |= device_of(options.engine)  # now that the server has left the device
    write_result(report, options.out)


if __name__ == "__main__":
    main()
