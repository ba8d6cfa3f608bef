"""The time for which the first search on a machine waits for the compiler; no GPU is needed.

    python benchmarks/benchmark_cold_start.py [--lengths 144 464] [--architecture 90] [--threads N] [--out RESULT.json]

For each query length the kernels that the CUDA engine begins for one protein query with E-value floors are compiled
twice into an empty cache: one after another, and concurrently in as many threads as there are usable cores. Times are
wall times; the machine must be idle.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np
from benchmark_cuda import commit

from swsearch.cores import usable_cores
from swsearch.database.partition import Partition
from swsearch.engine.cuda.runtime.compiler import Compilers
from swsearch.engine.cuda.runtime.device import DeviceFacts
from swsearch.engine.cuda.runtime.kernel_cache import KernelCache
from swsearch.engine.cuda.runtime.kernels import KernelSpec
from swsearch.engine.cuda.runtime.parallel_compile import ParallelCompiler
from swsearch.engine.cuda.search.plan import PlanOptions, plan_search
from swsearch.engine.protocol import ScoreRequest
from swsearch.query.profile import sequence_profile
from swsearch.scoring.scheme import default_scheme
from swsearch.sequences.alphabet import PROTEIN

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
    return plan_search([request], partition, facts, PlanOptions()).kernels


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", type=int, nargs="+", default=[144, 464, 5478])
    parser.add_argument("--architecture", type=int, default=90)
    parser.add_argument("--threads", type=int, default=usable_cores())
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    compiler = Compilers.installed().current
    if compiler is None:
        parser.error("there is no compiler; install the CUDA toolkit or nvidia-cuda-nvrtc and cuda-bindings")

    def seconds(specs: list[KernelSpec], threads: int) -> float:
        with tempfile.TemporaryDirectory() as folder:
            builds = ParallelCompiler(KernelCache(Compilers.of(compiler), Path(folder)), options.architecture, threads)
            began = time.perf_counter()
            builds.begin(specs)
            for spec in specs:
                builds.take(spec)
            taken = time.perf_counter() - began
            builds.close()
            return taken

    rows = []
    for length in options.lengths:
        specs = kernels_of(length, options.architecture)
        each = [round(seconds([spec], 1), 2) for spec in specs]
        one_by_one, together = seconds(specs, 1), seconds(specs, options.threads)
        rows.append({
            "query": length, "kernels": [spec.entry for spec in specs], "each_seconds": each,
            "one_by_one_seconds": round(one_by_one, 2), "together_seconds": round(together, 2),
        })  # fmt: skip
        shown = ", ".join(f"{spec.entry} {took} s" for spec, took in zip(specs, each, strict=True))
        print(f"query of {length}: {one_by_one:.2f} s one by one, {together:.2f} s together ({shown})")
    if options.out is not None:
        facts = {"compiler": f"{compiler.name} {compiler.version}", "architecture": options.architecture}
        facts |= {"threads": options.threads, "commit": commit()}
        options.out.write_text(json.dumps({**facts, "searches": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
