"""How close searches on a GPU come to the rate of the kernels: engine calls, a batch of queries, and complete commands.

    python benchmarks/benchmark_pipeline.py QUERIES.fasta --batch MORE.fasta.gz [--subjects 500000] [--out RESULT.json]

The database is that of ``benchmark_search.py``. ``calls``: one query in a running process, median of 40 calls after ten
that are not counted, for queries of about 144, 375, 1,000 and 5,478 residues; the share is the kernel time, by events
on the device, divided by the time of the call. ``batch``: the command ``swsearch batch`` with 500 queries, by the
clock, between its first and last event, and its processor time. ``query``: the command ``swsearch query`` with all
queries and with the shortest one. The first run of each command may compile kernels and is not counted. The kernel time
of the batch is measured in this process, in calls of 64 queries, and so is the timeline of ten queries.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from benchmark_search import database
from provenance import header, write_result
from timeline import noted

from swsearch.database.opening import open_database
from swsearch.database.partition import Partition
from swsearch.engine.cuda.search.engine import CudaEngine
from swsearch.engine.protocol import score_requests
from swsearch.query.profile import QueryProfile, sequence_profile
from swsearch.scoring.scheme import default_scheme
from swsearch.sequences.alphabet import PROTEIN
from swsearch.sequences.fasta import read_sequences

LENGTHS = (144, 375, 1000, 5478)
CALLS = 40
WARM_UP_CALLS = 10
FLOOR = 72
"""About E = 10 in this database, with BLOSUM62 11/1."""


def profiles_of(path: str) -> list[QueryProfile]:
    return [sequence_profile(query.codes, default_scheme(PROTEIN)) for query in read_sequences(path, PROTEIN)]


def time_calls(engine: CudaEngine, profiles: list[QueryProfile], partition: Partition) -> list[dict[str, Any]]:
    """One query per call; the nearest query of each length."""
    rows = []
    for length in LENGTHS:
        profile = min(profiles, key=lambda each: abs(each.length - length))
        walls, kernels = [], []
        for _ in range(WARM_UP_CALLS + CALLS):
            engine.timing.reset()
            start = time.perf_counter()
            engine.score(score_requests([profile], [FLOOR]), partition)
            walls.append(time.perf_counter() - start)
            kernels.append(engine.timing.seconds)
        wall, kernel = (float(np.median(seconds[WARM_UP_CALLS:])) for seconds in (walls, kernels))
        rows.append({"length": profile.length, "seconds": wall, "kernel_seconds": kernel, "share": kernel / wall})
        print(f"one query of {profile.length:,}: {wall * 1e3:.2f} ms, kernels {kernel * 1e3:.2f} ms", flush=True)
    return rows


def time_batch_in_process(engine: CudaEngine, profiles: list[QueryProfile], partition: Partition) -> dict[str, float]:
    """Kernel time and time of the calls for all queries of the batch."""
    calls = [profiles[first : first + 64] for first in range(0, len(profiles), 64)]
    for _ in range(2):
        engine.timing.reset()
        start = time.perf_counter()
        for chosen in calls:
            engine.score(score_requests(chosen, [FLOOR] * len(chosen)), partition)
        wall = time.perf_counter() - start
    return {"kernel_seconds": engine.timing.seconds, "seconds": wall}


def timeline(engine: CudaEngine, profiles: list[QueryProfile], partition: Partition) -> list[dict[str, Any]]:
    """When the batches of ten queries were prepared and computed, in seconds since the first kernel.

    The host's clock is moved so that the end of the first batch coincides with the end of its kernels.
    """
    chosen = sorted(profiles, key=lambda profile: profile.length)[:10]
    for _ in range(3):
        with noted() as found:
            engine.score(score_requests(chosen, [FLOOR] * len(chosen)), partition)
    batches = found.of(engine)
    moved = batches[0].host[3] - batches[0].device[1]
    return [
        {
            "lengths": [chosen[index].length for index in batch.indices],
            "host": [seconds - moved for seconds in batch.host],
            "device": list(batch.device),
        }
        for batch in batches
    ]


def run_command(arguments: list[str], folder: Path, store: str = "benchmark.sqlite") -> tuple[float, float]:
    """Wall time and processor time of a command, with a new store."""
    for old in folder.glob(f"{store}*"):
        old.unlink()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    command = [sys.executable, "-P", "-m", "swsearch", *arguments, "--engine", "cuda", "--quiet"]
    subprocess.run([*command, "--store", str(folder / store)], check=True, stdout=subprocess.DEVNULL)
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def time_batch(path: Path, queries: Path, folder: Path, repeat: int) -> dict[str, Any]:
    """The command, by the clock and between its first and last event."""
    events = folder / "events.jsonl"
    rows = []
    for _ in range(repeat + 1):
        events.unlink(missing_ok=True)
        wall, processor = run_command(["batch", str(queries), str(path), "--events", str(events)], folder)
        times = [json.loads(line)["seconds"] for line in events.read_text(encoding="utf-8").splitlines()]
        rows.append((wall, times[-1] - times[0], processor))
    wall, between, processor = (float(np.median([row[column] for row in rows[1:]])) for column in range(3))
    return {"seconds": wall, "between_events_seconds": between, "processor_seconds": processor, "runs": rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("queries")
    parser.add_argument("--batch", help="a file with queries of the batch")
    parser.add_argument("--n-batch", type=int, default=500)
    parser.add_argument("--subjects", type=int, default=500_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=Path("/tmp"))
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()

    path = database(options.queries, options.subjects, options.folder)
    report: dict[str, Any] = {
        **header("pipeline"),
        "n_processors": os.cpu_count(),
    }
    some = options.folder / "batch.fasta"
    if options.batch:
        records = list(read_sequences(options.batch, PROTEIN))[: options.n_batch]
        some.write_text("".join(f">{record.header}\n{record.letters}\n" for record in records), encoding="utf-8")
        report["batch_residues"] = sum(map(len, records))
    with open_database(path) as opened, CudaEngine() as engine:
        (partition,) = opened.partitions()
        report["device"], report["driver"] = engine.device.facts.name, engine.device.facts.driver
        report["subjects"], report["residues"] = opened.n_subjects, opened.n_residues
        report["calls"] = time_calls(engine, profiles_of(options.queries), partition)
        if options.batch:
            report["batch_in_process"] = time_batch_in_process(engine, profiles_of(str(some)), partition)
            print("batch in one process", report["batch_in_process"], flush=True)
        engine_timeline = timeline(engine, profiles_of(options.queries), partition)
        # The second scoring of a batch may overlap with the next batch.
        gaps = [max(after["device"][0] - one["device"][1], 0) for one, after in itertools.pairwise(engine_timeline)]
        report["timeline"], report["longest_gap_seconds"] = engine_timeline, max(gaps)
        print(f"the device was idle for at most {max(gaps) * 1e6:.0f} microseconds between two batches", flush=True)
    if options.batch:
        report["batch"] = time_batch(path, some, options.folder, 2)
        print("batch", {key: value for key, value in report["batch"].items() if key != "runs"}, flush=True)
    one = options.folder / "one.fasta"
    shortest = min(read_sequences(options.queries, PROTEIN), key=len)
    one.write_text(f">{shortest.header}\n{shortest.letters}\n", encoding="utf-8")
    for name, queries in (("query", options.queries), ("query of one", str(one))):
        arguments = ["query", queries, str(path), "--out", str(options.folder / "hits.tsv"), "--format", "tsv"]
        seconds = [run_command(arguments, options.folder)[0] for _ in range(options.repeat + 1)]
        report[name] = {"first_seconds": seconds[0], "seconds": float(np.median(seconds[1:])), "runs": seconds[1:]}
        print(name, [round(each, 3) for each in seconds], flush=True)
    write_result(report, options.out)


if __name__ == "__main__":
    main()
