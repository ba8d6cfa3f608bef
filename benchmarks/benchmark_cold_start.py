"""The first search on a machine: how long the compiler takes, and how long the command takes on a GPU.

    python benchmarks/benchmark_cold_start.py [--lengths 144 464] [--architecture 90] [--out RESULT.json]
    python benchmarks/benchmark_cold_start.py --search QUERIES.fasta [--subjects 500000] [--repeat 5] [--out R.json]

Without ``--search`` no GPU is needed. For each query length, NVRTC compiles the kernels that the CUDA engine needs for
one protein query with E-value floors.

With ``--search``, ``swsearch query`` runs on a GPU with the shortest query and with all queries, against the database
of ``benchmark_search.py``, with an empty cache of kernels and with all kernels in it, in turns. If the package contains
compiled kernels (``scripts/build_kernels.py``), the cache is not used. The hits must be the same bytes. Times are wall
times; the machine must be idle.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from benchmark_search import database
from provenance import header, write_result

from swsearch.database.partition import Partition
from swsearch.engine.cuda.runtime.compiler import installed_nvrtc
from swsearch.engine.cuda.runtime.device import DeviceFacts
from swsearch.engine.cuda.runtime.kernels import KernelSpec
from swsearch.engine.cuda.search.plan import PlanOptions, distinct_kernels
from swsearch.engine.cuda.search.planner import Planner
from swsearch.engine.protocol import ScoreRequest
from swsearch.query.profile import sequence_profile
from swsearch.scoring.scheme import default_scheme
from swsearch.sequences.alphabet import PROTEIN
from swsearch.sequences.fasta import read_sequences

MULTIPROCESSORS = 132
FLOOR = 60
"""A raw score of about the default E-value."""


def kernels_of(length: int, architecture: int) -> list[KernelSpec]:
    """The kernels of a search with one query, in a database with some long subjects, as in Swiss-Prot."""
    query = np.random.default_rng(length).integers(0, 20, length).astype(np.uint8)
    request = ScoreRequest(sequence_profile(query, default_scheme(PROTEIN)), FLOOR)
    lengths = np.sort(np.append(np.full(500_000, 358), 35_000)).astype(np.uint32)
    nothing = np.empty(0, np.uint8)
    partition = Partition(nothing, np.zeros(len(lengths), np.uint64), lengths, np.arange(len(lengths), dtype=np.uint32))
    facts = DeviceFacts("planned", "none", architecture, MULTIPROCESSORS, 227 << 10, 1 << 36, 1e9, "0000:00:00.0")
    return distinct_kernels(Planner(facts, PlanOptions()).plan([request], partition))


def run_query(queries: Path, path: Path, cache: Path, out: Path) -> float:
    """Wall time in seconds of one ``swsearch query``, whose hits are written to ``out``."""
    command = [sys.executable, "-P", "-m", "swsearch", "query", str(queries), str(path), "--engine", "cuda", "--quiet"]
    command += ["--store", "none", "--format", "tsv", "--out", str(out)]
    environment = {**os.environ, "SWSEARCH_KERNEL_CACHE": str(cache)}
    start = time.perf_counter()
    subprocess.run(command, check=True, env=environment)
    return time.perf_counter() - start


def time_searches(queries: str, n_subjects: int, folder: Path, repeat: int) -> list[dict[str, Any]]:
    """Both cases for the shortest query and for all queries."""
    subprocess.run([sys.executable, "-P", "-m", "swsearch", "engines"], check=True)
    path = database(queries, n_subjects, folder)
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        one, out, warm = (Path(scratch) / name for name in ("one.fasta", "hits.tsv", "warm"))
        shortest = min(read_sequences(queries, PROTEIN), key=len)
        one.write_text(f">{shortest.header}\n{shortest.letters}\n", encoding="utf-8")
        for what, chosen in (("the shortest query", one), ("all queries", Path(queries))):
            run_query(chosen, path, warm, out)  # also reads all files for the first time
            wanted = out.read_bytes()
            seconds: dict[str, list[float]] = {"empty cache": [], "all kernels in the cache": []}
            for number in range(repeat):
                caches = (Path(scratch) / f"{len(rows)}-{number}", warm)
                for taken, cache in zip(seconds.values(), caches, strict=True):
                    taken.append(run_query(chosen, path, cache, out))
                    if out.read_bytes() != wanted:
                        sys.exit(f"{what}: other hits with {cache.name}")
            for name, taken in seconds.items():
                rows.append({"search": what, "case": name, "seconds": float(np.median(taken)), "runs": taken})
                print(f"{what}, {name}: {np.median(taken):.3f} s {[round(each, 3) for each in taken]}", flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", type=int, nargs="+", default=[144, 464, 5478])
    parser.add_argument("--architecture", type=int, default=90)
    parser.add_argument("--search", help="a file with queries; needs a GPU")
    parser.add_argument("--subjects", type=int, default=500_000)
    parser.add_argument("--folder", type=Path, default=Path("/tmp"))
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if options.search:
        found = time_searches(options.search, options.subjects, options.folder, options.repeat)
        result = {**header("cold start"), "n_processors": os.cpu_count(), "searches": found}
        write_result(result, options.out)
        return
    compiler = installed_nvrtc()
    if compiler is None:
        parser.error("there is no compiler; install nvidia-cuda-nvrtc and cuda-bindings")
    rows = []
    for length in options.lengths:
        specs = kernels_of(length, options.architecture)
        each = []
        for spec in specs:
            began = time.perf_counter()
            compiler.compile(spec, options.architecture)
            each.append(round(time.perf_counter() - began, 2))
        rows.append({"query": length, "kernels": [spec.entry for spec in specs], "each_seconds": each})
        shown = ", ".join(f"{spec.entry} {took} s" for spec, took in zip(specs, each, strict=True))
        print(f"query of {length}: {sum(each):.2f} s ({shown})")
    described = {"compiler": f"{compiler.name} {compiler.version}", "architecture": options.architecture}
    write_result({**header("kernels of a cold start"), **described, "searches": rows}, options.out)


if __name__ == "__main__":
    main()
