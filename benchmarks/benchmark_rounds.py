"""How close iterated searches come to the rate of the engine: one query in a running process, and a batch of queries.

    python benchmarks/benchmark_rounds.py QUERIES.fasta --batch MORE.fasta.gz --real PROTEINS.fasta.gz [--engine cuda]

The database has ``--subjects`` synthetic proteins, those of ``--real``, and ``--relatives`` invented relatives of the
query that is searched alone (the one of about 350 residues): fragments with 25 to 60 % of its residues, so that rounds
have as many alignments as in a large family. ``one``: the median time of three rounds of this query in a running
process, with alignments and profiles. ``batch``: ``swsearch batch`` with the queries of ``--batch`` and three rounds,
between its first and last event, and with one round for comparison. The share of ``one`` is the time of the engine
(kernels by events on the device, or calls of the CPU engine) divided by that of the search; the share of a batch is its
cells per second divided by those of the engine, which scores the same queries in calls of 64 (``engine_gcups``).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from benchmark_cuda import read_queries, synthetic
from benchmark_search import write_fasta
from provenance import header, write_result

import swsearch
from swsearch.database.opening import open_database
from swsearch.engine.cpu.engine import CpuEngine
from swsearch.engine.protocol import ScoreEngine, score_requests
from swsearch.engine.registry import Machine
from swsearch.query.profile import sequence_profile
from swsearch.search.options import SearchOptions
from swsearch.search.searcher import Searcher
from swsearch.sequences.alphabet import CODE_MASK, PROTEIN
from swsearch.sequences.fasta import read_sequences
from swsearch.sequences.record import SequenceRecord
from swsearch.threads import SWITCH_SECONDS, threads_to_use

LENGTH = 350
SEED = 18


class TimedCpuEngine(CpuEngine):
    """Measures the time of its calls."""

    seconds = 0.0

    def score(self, *arguments: Any) -> Any:
        start = time.perf_counter()
        found = super().score(*arguments)
        self.seconds += time.perf_counter() - start
        return found


def relatives(query: SequenceRecord, n: int) -> Iterator[str]:
    """Fragments of mutated copies of a query."""
    rng = np.random.default_rng(SEED)
    for _ in range(n):
        member = (query.codes & CODE_MASK).astype(np.uint8)
        changed = rng.random(len(member)) > rng.uniform(0.25, 0.6)
        member = np.where(changed, rng.integers(0, 20, len(member), dtype=np.uint8), member)
        first = int(rng.integers(0, len(member) // 3))
        yield PROTEIN.decode(member[first : int(rng.integers(2 * len(member) // 3, len(member) + 1))])


def database(queries: str, one: SequenceRecord, options: argparse.Namespace) -> Path:
    """The indexed database, which is built if it does not exist."""
    path: Path = options.folder / f"rounds-{options.subjects}-{options.relatives}.db"
    if not path.exists():
        fasta, family = options.folder / "synthetic.fasta", options.folder / "relatives.fasta"
        write_fasta(synthetic(options.subjects, read_queries(queries), 1), fasta)
        family.write_text("".join(f">r{n}\n{row}\n" for n, row in enumerate(relatives(one, options.relatives))))
        swsearch.build_database([fasta, family, *([options.real] if options.real else [])], path)
        fasta.unlink()
    return path


@contextmanager
def opened_engine(name: str, threads: int) -> Iterator[tuple[ScoreEngine, dict[str, Any]]]:
    """The engine and what the result says about it."""
    if name == "cpu":
        with TimedCpuEngine(threads) as engine:
            yield engine, {"device": engine.name, "threads": threads}
        return
    from swsearch.engine.cuda.runtime.pycuda_device import PyCudaDevice
    from swsearch.engine.cuda.search.engine import CudaEngine

    with CudaEngine(PyCudaDevice(0)) as engine:
        yield engine, {"device": engine.device.facts.name, "driver": engine.device.facts.driver, "threads": threads}


def engine_seconds(engine: Any) -> float:
    return float(engine.seconds if isinstance(engine, TimedCpuEngine) else engine.timing.seconds)


def measure(searcher: Searcher, records: Sequence[SequenceRecord], repeat: int) -> dict[str, Any]:
    """The median search of ``repeat``, after one that is not counted."""
    rows = []
    for _ in range(repeat + 1):
        before = engine_seconds(searcher.engine)
        start = time.perf_counter()
        results = list(searcher.search(records))
        rows.append((time.perf_counter() - start, engine_seconds(searcher.engine) - before))
    seconds, engine = sorted(rows[1:])[repeat // 2]
    cells = sum(result.stats.cells for result in results)
    return {
        "queries": len(results),
        "rounds": sum(result.n_rounds for result in results),
        "hits": sum(len(result.hits) for result in results),
        "included": sum(hit.round > 0 for result in results for hit in result.hits),
        "cells": cells,
        "seconds": seconds,
        "engine_seconds": engine,
        "gcups": cells / seconds / 1e9,
        "share": engine / seconds,
        "runs": [row[0] for row in rows],
    }


def engine_gcups(searcher: Searcher, records: Sequence[SequenceRecord]) -> float:
    """The rate of the engine in calls of 64 queries, with the floors of the search: cells by the engine's own time."""
    profiles = [sequence_profile(record.codes, searcher.scheme) for record in records]
    floors = [searcher.thresholds.min_score(len(record), searcher.options.evalue) for record in records]
    (partition,) = searcher.search_subjects.partitions
    for _ in range(2):
        if not isinstance(searcher.engine, TimedCpuEngine):
            searcher.engine.timing.reset()  # type: ignore[attr-defined]
        before = engine_seconds(searcher.engine)
        for first in range(0, len(profiles), 64):
            searcher.engine.score(score_requests(profiles[first : first + 64], floors[first : first + 64]), partition)
        seconds = engine_seconds(searcher.engine) - before
    return sum(map(len, records)) * partition.n_residues / seconds / 1e9


def time_command(path: Path, queries: Path, n_rounds: int, options: argparse.Namespace) -> dict[str, Any]:
    """``swsearch batch`` with a new store, between its first and last event; the median of three runs after another."""
    events, store = options.folder / "events.jsonl", options.folder / "rounds.sqlite"
    command = [sys.executable, "-P", "-m", "swsearch", "batch", str(queries), str(path), "--events", str(events)]
    command += ["--engine", options.engine, "--store", str(store), "--quiet", "--iterations", str(n_rounds)]
    if options.threads is not None:
        command += ["--threads", str(options.threads)]
    rows = []
    for _ in range(options.runs + 1):
        for old in [events, *options.folder.glob("rounds.sqlite*")]:
            old.unlink(missing_ok=True)
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        times = [json.loads(line)["seconds"] for line in events.read_text(encoding="utf-8").splitlines()]
        rows.append(times[-1] - times[0])
    return {"command_seconds": sorted(rows[1:])[options.runs // 2], "command_runs": rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("queries")
    parser.add_argument("--batch", required=True, help="a file with queries of the batch")
    parser.add_argument("--n-batch", type=int, default=500)
    parser.add_argument("--real", type=Path, help="FASTA file of proteins that are added to the database")
    parser.add_argument("--subjects", type=int, default=500_000)
    parser.add_argument("--relatives", type=int, default=1000)
    parser.add_argument("--engine", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--runs", type=int, default=3, help="runs of a command")
    parser.add_argument("--folder", type=Path, default=Path("/tmp"))
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if options.engine == "cuda":
        sys.setswitchinterval(SWITCH_SECONDS)  # as the commands do

    one = min(read_sequences(options.queries, PROTEIN), key=lambda record: abs(len(record) - LENGTH))
    many = list(read_sequences(options.batch, PROTEIN))[: options.n_batch]
    path = database(options.queries, one, options)
    threads = threads_to_use(options.threads)
    with open_database(path) as opened, opened_engine(options.engine, threads) as (engine, described):
        report: dict[str, Any] = {
            **header("iterated searches"),
            **described,
            "database": f"{opened.n_subjects:,} subjects, {opened.n_residues:,} residues",
            "query": f"{len(one)} residues",
        }
        kinds = [("one", [one], 3, 2 * options.repeat - 1), ("one_listed", [one], 3, options.repeat)]
        kinds += [("batch", many, 3, 1), ("one_round", many, 1, 1)]
        for name, records, n_rounds, repeat in kinds:
            top = options.relatives if name == "one_listed" else 25
            searcher = Searcher(
                opened, engine, SearchOptions(iterations=n_rounds, top=top), machine=Machine(threads=threads)
            )
            report[name] = measure(searcher, records, repeat)
        report["engine_gcups"] = engine_gcups(searcher, many)
    queries = options.folder / "rounds.fasta"
    queries.write_text("".join(f">{record.header}\n{record.letters}\n" for record in many))
    for name, n_rounds in (("batch", 3), ("one_round", 1)):  # the engine of this process is closed
        report[name] |= time_command(path, queries, n_rounds, options)
        report[name]["gcups"] = report[name]["cells"] / report[name]["command_seconds"] / 1e9
        report[name]["share"] = report[name]["gcups"] / report["engine_gcups"]
    for name in ("engine_gcups", "one", "one_listed", "batch", "one_round"):
        print(name, json.dumps(report[name]), flush=True)
    write_result(report, options.out)


if __name__ == "__main__":
    main()
