"""Thousands of queries in one batch: its rate compared with that of the engine, and its results after kills and merges.

    python benchmarks/benchmark_batch.py proteins.fasta.gz queries.fasta more.fasta.gz --queries 5000 --longest 150

Queries are selected from the query files: those of at most ``--longest`` residues, evenly spaced over all files. Then

1. the engine alone scores every twenty-fifth of them; only the scores that a search can report are requested;
2. a batch runs without interruption;
3. a batch is killed (SIGKILL) three times, each time after a random number of committed queries, and resumed;
4. shares of the batch run one after another, and are merged.

Rates are cells per CPU second, which are valid on a machine with other load. The reports of 2, 3 and 4 must be equal,
byte for byte. The script writes ``benchmarks/results/batch.json``; the exit code is 1 if reports differ.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from provenance import commit, processor, write_result

from swsearch.bench.workloads import Measurement, measure, workload_of_file
from swsearch.database.builder import build_database
from swsearch.sequences.alphabet import PROTEIN
from swsearch.sequences.fasta import read_sequences
from swsearch.sequences.record import SequenceRecord
from swsearch.threads import usable_cores

ENGINE_STEP = 25


@dataclass(frozen=True)
class Cost:
    """The resources that a process used."""

    wall_seconds: float
    cpu_seconds: float
    peak_memory_mib: float

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.wall_seconds + other.wall_seconds,
            self.cpu_seconds + other.cpu_seconds,
            max(self.peak_memory_mib, other.peak_memory_mib),
        )


class Command:
    """``swsearch`` as a separate process."""

    def __init__(self, *arguments: object) -> None:
        self._began = time.perf_counter()
        self._peak_kib = 0
        self._process = subprocess.Popen(
            [sys.executable, "-m", "swsearch", *map(str, arguments)], stdout=subprocess.DEVNULL
        )

    def kill(self) -> None:
        """Kill the process without any cleanup, as in a power failure."""
        self._process.send_signal(signal.SIGKILL)

    def running(self) -> bool:
        """Whether the process has not ended yet; its cost remains available."""
        self._look_at_memory()
        return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None

    def wait(self, *, expected: int = 0) -> Cost:
        """The cost of the process, after it has ended with the expected exit code."""
        while self.running():
            time.sleep(0.02)
        wall = time.perf_counter() - self._began
        _, status, usage = os.wait4(self._process.pid, 0)
        self._process.returncode = os.waitstatus_to_exitcode(status)
        if self._process.returncode != expected:
            raise SystemExit(f"{self._process.args}: exit code {self._process.returncode}, not {expected}")
        return Cost(wall, usage.ru_utime + usage.ru_stime, self._peak_kib / 1024)

    def _look_at_memory(self) -> None:
        # The memory that wait4 reports includes that of this process at the fork.
        for line in Path(f"/proc/{self._process.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                self._peak_kib = int(line.split()[1])


def drawn(paths: list[Path], n_queries: int, longest: int) -> list[SequenceRecord]:
    """Evenly spaced records of the files, none longer than ``longest``."""
    fitting = [record for record in read_sequences(paths, PROTEIN) if len(record) <= longest]
    if len(fitting) < n_queries:
        raise SystemExit(
            f"the files hold {len(fitting)} sequences of at most {longest} residues, {n_queries} are asked for"
        )
    return [fitting[number * len(fitting) // n_queries] for number in range(n_queries)]


def report_digest(store: Path) -> str:
    """SHA-256 of the latest run as JSON, which contains every hit completely."""
    command = [sys.executable, "-m", "swsearch", "report", "latest", "--store", str(store), "--format", "json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        digest = hashlib.file_digest(process.stdout, "sha256").hexdigest()
    if process.returncode:
        raise SystemExit(f"{command}: exit code {process.returncode}")
    return digest


def without_folder(argument: str) -> str:
    """The name of a file without its folder, which is specific to this machine."""
    return os.path.basename(argument) if os.path.isfile(argument) else argument


def committed(events: Path) -> int:
    """Number of queries that a batch has reported so far."""
    return events.read_bytes().count(b'"event": "query"') if events.exists() else 0


def killed_and_resumed(batch: list[object], events: Path, moments: list[int]) -> Cost:
    """A batch that is killed at each of these numbers of committed queries, and then runs to its end."""
    total = Cost(0, 0, 0)
    arguments = [*batch, "--resume", "latest", "--events", events]
    for moment in moments:
        running = Command(*arguments)
        while committed(events) < moment and running.running():
            time.sleep(0.02)
        running.kill()
        total += running.wait(expected=-signal.SIGKILL)
        print(f"killed after {committed(events):,} queries", flush=True)
    return total + Command(*arguments).wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("database", type=Path, help="FASTA of the proteins to search")
    parser.add_argument("query_files", type=Path, nargs="+", help="FASTA of proteins to draw queries from")
    parser.add_argument("--queries", type=int, default=5000)
    parser.add_argument("--longest", type=int, default=150, help="longest query, in residues (150)")
    parser.add_argument("--shards", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1, help="of the moments of the kills")
    parser.add_argument("--threads", type=int, default=usable_cores())
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "batch.json")
    options = parser.parse_args()
    queries = drawn(options.query_files, options.queries, options.longest)
    moments = sorted(random.Random(options.seed).sample(range(1, options.queries), 3))
    workload = workload_of_file(options.database)
    distinct = {query.letters.upper() for query in queries}
    cells = sum(map(len, distinct)) * workload.partition.n_residues
    print(f"{len(queries):,} queries, {len(distinct):,} distinct; {cells / 1e12:.2f} * 10^12 cells", flush=True)

    def engine_alone(first: int) -> list[Measurement]:
        chosen = queries[first :: 2 * ENGINE_STEP]
        return [measure(workload, query.codes, threads=options.threads, floored=True) for query in chosen]

    with tempfile.TemporaryDirectory(prefix="swsearch-batch-") as name:
        folder = Path(name)
        built = build_database(options.database, folder / "proteins.db", PROTEIN)
        (folder / "queries.fasta").write_text("".join(f">{query.header}\n{query.letters}\n" for query in queries))
        batch = ["batch", folder / "queries.fasta", folder / "proteins.db", "--quiet", "--threads", options.threads]

        # The engine is measured before and after, because other load on the machine changes the rate of a core.
        alone = engine_alone(0)
        whole = Command(*batch, "--store", folder / "whole.sqlite").wait()
        alone += engine_alone(ENGINE_STEP)
        engine_rate = sum(one.cells for one in alone) / sum(one.cpu_seconds for one in alone) / 1e9
        print(f"engine alone: {engine_rate:.2f} GCUPS a core", flush=True)
        batch_rate = cells / whole.cpu_seconds / 1e9
        print(f"batch: {batch_rate:.2f} GCUPS a core, {whole}", flush=True)
        expected = report_digest(folder / "whole.sqlite")

        resumed = killed_and_resumed([*batch, "--store", folder / "resumed.sqlite"], folder / "events.jsonl", moments)
        resumed_equal = report_digest(folder / "resumed.sqlite") == expected
        print(f"killed and resumed: report {'equal' if resumed_equal else 'DIFFERS'}, {resumed}", flush=True)

        stores = [folder / f"shard{number}.sqlite" for number in range(1, options.shards + 1)]
        sharded = Cost(0, 0, 0)
        for number, store in enumerate(stores, 1):
            sharded += Command(*batch, "--store", store, "--shard", f"{number}/{options.shards}").wait()
        Command("runs", "merge", *stores, "--store", folder / "merged.sqlite").wait()
        merged_equal = report_digest(folder / "merged.sqlite") == expected
        print(f"{options.shards} shards merged: report {'equal' if merged_equal else 'DIFFERS'}, {sharded}", flush=True)

    report = {
        "processor": processor(),
        "cores": usable_cores(),
        "threads": options.threads,
        "commit": commit(),
        "command": " ".join(["python", "benchmarks/benchmark_batch.py", *map(without_folder, sys.argv[1:])]),
        "subjects": built.catalogue.n_subjects,
        "subject_residues": built.catalogue.n_residues,
        "queries": len(queries),
        "distinct_queries": len(distinct),
        "query_residues": sum(map(len, queries)),
        "longest_query": max(map(len, queries)),
        "cells": cells,
        "engine_core_gcups": round(engine_rate, 2),
        "batch_core_gcups": round(batch_rate, 2),
        "batch_of_engine": round(batch_rate / engine_rate, 3),
        "whole": asdict(whole),
        "killed_after_queries": moments,
        "resumed": {**asdict(resumed), "report_equal": resumed_equal},
        "shards": {"n": options.shards, **asdict(sharded), "report_equal": merged_equal},
        "report_sha256": expected,
    }
    write_result(report, options.out)
    print(f"written: {options.out}")
    if not (resumed_equal and merged_equal):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
