"""Whole commands on one GPU and on several, by the clock, for one or more installations of the program.

    python benchmarks/benchmark_gpu_commands.py PROTEINS.fasta.gz [--devices 0,1] [--install before=FOLDER]
        [--install after=FOLDER] [--queries 500,2000] [--dask-queries 4000] [--repeat 2] [--out RESULT.json]

The database is that of ``benchmark_bound.py --database``: the proteins of the file and copies of them with replaced
residues, about ``--subjects``. Queries are the first proteins of the file. An installation is a folder for
``PYTHONPATH``; they take turns.

batch    ``swsearch batch --top 25`` with a new store, from its start to its end: seconds and seconds of the
         processors, on the first GPU and on all; ``times`` is the ratio of the medians. ``--kill`` also runs it once
         more and kills one of its worker processes with SIGKILL after half of the time; it may have none
dask     the workers of a Dask cluster, one for each GPU, search ``--dask-queries`` of at most 300 residues: seconds
         with one worker and with all, of a search whose workers were warm; and once more, while one worker is killed
equal    whether the reports of all runs of the same queries are equal, byte for byte

``--out`` writes the numbers with device, driver and commits as JSON, after each case.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from benchmark_bound import real_proteins
from benchmark_search import write_fasta
from provenance import device_of, header, write_result

from swsearch.database.builder import build_database
from swsearch.engine.registry import Machine
from swsearch.sequences.alphabet import PROTEIN
from swsearch.sequences.fasta import read_sequences
from swsearch.sequences.record import SequenceRecord

MEAN_RESIDUES = 452
LONGEST_OF_DASK = 300


def environment(install: str | None, **changed: str) -> dict[str, str]:
    return os.environ | ({} if install is None else {"PYTHONPATH": install}) | changed


def write_queries(records: list[SequenceRecord], path: Path) -> Path:
    path.write_text("".join(f">{record.header}\n{record.letters}\n" for record in records), encoding="utf-8")
    return path


def report_digest(store: Path, install: str | None) -> str:
    command = [sys.executable, "-P", "-m", "swsearch", "report", "latest", "--store", str(store), "--format", "json"]
    found = subprocess.run(command, capture_output=True, check=True, env=environment(install)).stdout
    return hashlib.sha256(found).hexdigest()


def children_of(process: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def batch(
    queries: Path, database: Path, devices: str, install: str | None, folder: Path, kill_after: float | None = None
) -> dict[str, Any]:
    """One command; a worker process is killed after some seconds if there is one."""
    store, events = folder / "hits.sqlite", folder / "events.jsonl"
    for old in (*folder.glob("hits.sqlite*"), events):
        old.unlink(missing_ok=True)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    command = [sys.executable, "-P", "-m", "swsearch", "batch", str(queries), str(database), "--engine", "cuda"]
    command += ["--devices", devices, "--top", "25", "--store", str(store), "--events", str(events)]
    with (folder / "messages").open("wb") as messages:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=messages, env=environment(install))
        killed = 0
        if kill_after is not None:
            time.sleep(kill_after)
            for child in children_of(process.pid)[:1]:
                os.kill(child, signal.SIGKILL)
                killed += 1
        code = process.wait()
    seconds = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if code:
        raise SystemExit((folder / "messages").read_text())
    times = [json.loads(line)["seconds"] for line in events.read_text(encoding="utf-8").splitlines()]
    said = [line for line in (folder / "messages").read_text().splitlines() if "take its work" in line]
    return {
        "seconds": seconds,
        "between_events_seconds": times[-1] - times[0],
        "processor_seconds": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "digest": report_digest(store, install),
        "killed": killed,
        "said": said,
    }


def time_batches(
    options: argparse.Namespace, installs: dict[str, str | None], queries: Path, database: Path, folder: Path
) -> tuple[dict[str, Any], set[str]]:
    choices = [options.devices.split(",")[0], options.devices]
    runs: dict[str, dict[str, list[dict[str, Any]]]] = {name: {one: [] for one in choices} for name in installs}
    killed = {}
    for _ in range(options.repeat):
        for name, install in installs.items():
            for devices in choices:
                run = batch(queries, database, devices, install, folder)
                runs[name][devices].append(run)
                print(
                    name, devices, queries.name, {key: run[key] for key in ("seconds", "processor_seconds")}, flush=True
                )
    if options.kill:
        name, install = list(installs.items())[-1]
        half = 0.6 * runs[name][choices[1]][0]["seconds"]
        killed = batch(queries, database, choices[1], install, folder, half)
        print("killed", killed, flush=True)
    figures: dict[str, Any] = {"killed": killed}
    digests = {run["digest"] for of in runs.values() for all_of in of.values() for run in all_of}
    digests |= {killed["digest"]} if killed else set()
    for name, of in runs.items():
        medians = [statistics.median(run["seconds"] for run in of[devices]) for devices in choices]
        figures[name] = {
            "seconds_1": medians[0],
            "seconds_all": medians[1],
            "times": medians[0] / medians[1],
            "processor_seconds_1": statistics.median(run["processor_seconds"] for run in of[choices[0]]),
            "processor_seconds_all": statistics.median(run["processor_seconds"] for run in of[choices[1]]),
            "runs": of,
        }
        print(name, queries.name, {key: value for key, value in figures[name].items() if key != "runs"}, flush=True)
    return figures, digests


# --- Dask ---


def time_dask(options: argparse.Namespace, queries: Path, database: Path, folder: Path) -> dict[str, Any]:
    """Searches with one worker, with all, and with all of which one is killed; with this installation."""
    from benchmark_cluster import Cluster

    from swsearch.cluster import open_cluster_searcher
    from swsearch.sequences.fasta import read_sequences

    records = list(read_sequences(queries, PROTEIN))
    ordinals = options.devices.split(",")
    settings = argparse.Namespace(engine="cuda", threads=max(1, (os.cpu_count() or 1) // len(ordinals)))
    cluster = Cluster(folder, settings)
    figures: dict[str, Any] = {"queries": len(records), "residues": sum(map(len, records))}
    digests = []

    def search(n_queries: int | None, kill: subprocess.Popen[bytes] | None = None, seconds: float = 0.0) -> float:
        digest = hashlib.sha256()
        with open_cluster_searcher(database, None, cluster.place, machine=Machine("cuda"), notify=print) as searcher:
            began = time.perf_counter()
            if kill is not None:
                threading.Timer(seconds, kill.kill).start()
            with closing(searcher.search(records[:n_queries])) as results:
                for result in results:
                    digest.update(repr((result.number, result.header, result.hits, result.n_passed)).encode())
            ended = time.perf_counter() - began
        if n_queries is None:
            digests.append(digest.hexdigest())
        return ended

    try:
        workers = [cluster.add_worker(0)]
        cluster.wait_for_workers(1)
        search(64)
        figures["seconds_1"] = search(None)
        print("dask, one worker", figures["seconds_1"], flush=True)
        workers += [cluster.add_worker(number) for number in range(1, len(ordinals))]
        cluster.wait_for_workers(len(ordinals))
        search(256)
        figures["seconds_all"] = search(None)
        figures["times"] = figures["seconds_1"] / figures["seconds_all"]
        print("dask, all workers", figures["seconds_all"], figures["times"], flush=True)
        figures["seconds_killed"] = search(None, workers[-1], figures["seconds_all"] / 2)
        figures["equal"] = len(set(digests)) == 1
        print("dask", figures, flush=True)
    finally:
        cluster.close()
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("proteins")
    parser.add_argument("--devices", default="0,1")
    parser.add_argument("--install", action="append", default=[], metavar="NAME=FOLDER")
    parser.add_argument("--queries", default="500,2000")
    parser.add_argument("--dask-queries", type=int, default=0)
    parser.add_argument("--subjects", type=int, default=520_000)
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("--no-warm-up", dest="warm_up", action="store_false", help="the kernels were compiled before")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    installs = dict(one.split("=", 1) for one in options.install) or {"this": None}

    path = options.folder / f"real-{options.subjects}.db"
    if not path.exists():
        fasta = options.folder / "real.fasta"
        write_fasta(real_proteins(options.proteins, options.subjects * MEAN_RESIDUES), fasta)
        build_database([fasta], path)
        fasta.unlink()
    records = list(read_sequences([options.proteins], PROTEIN))
    report: dict[str, Any] = {
        **header("commands on several GPUs"),
        "subjects": options.subjects,
        "n_processors": os.cpu_count(),
        **device_of("cuda"),
    }

    def save() -> None:
        write_result(report, options.out)

    for place, n_queries in enumerate(map(int, filter(None, options.queries.split(",")))):
        queries = write_queries(records[:n_queries], options.folder / f"{n_queries}.fasta")
        for install in installs.values() if place == 0 and options.warm_up else ():
            batch(queries, path, options.devices, install, options.folder)  # compiles what it needs
        figures, digests = time_batches(options, installs, queries, path, options.folder)
        figures |= {"equal": len(digests) == 1, "residues": sum(map(len, records[:n_queries]))}
        report[f"batch of {n_queries}"] = figures
        save()
    if options.dask_queries:
        short = [record for record in records if len(record) <= LONGEST_OF_DASK][: options.dask_queries]
        report["dask"] = time_dask(options, write_queries(short, options.folder / "dask.fasta"), path, options.folder)
    save()


if __name__ == "__main__":
    main()
