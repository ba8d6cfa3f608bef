"""The systems in docs/sources.md on one machine: every kernel on the same data, and the sizes of the 2009 paper.

    python benchmarks/benchmark_sources.py [--residues 100000000] [--out benchmarks/results/sources-h200.json]

``search`` is one query of 375 and one of 2,005 residues against generated proteins; ``pair`` consists of two random DNA
sequences of each size in the paper's table and of 100,000 letters (indel 3, substitution 1, match 0); ``batch`` is
1,000 random pairs of 512 x 512 letters with their alignments (match 1, others -1, gap -2), and 10,000 of them. All
results that two kernels have in common are compared. A row whose device is missing states this. The measurements are
those of ``swsearch bench kernels``.
"""

from __future__ import annotations

import argparse
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from provenance import header, write_result

from swsearch.bench.kernel_rates import (
    KernelRow,
    measure_batch,
    measure_pair,
    measure_search,
    usable_gpu,
)
from swsearch.bench.kernel_rates import (
    document as rates,
)
from swsearch.bench.workloads import generated_proteins
from swsearch.engine.registry import engine_infos
from swsearch.threads import usable_cores

SIZES = (48, 9_024, 15_184, 19_456, 30_368, 100_000)
QUERY_LENGTHS = (375, 2005)
BATCHES = ((1000, 512), (10_000, 512))


def groups(residues: int, threads: int) -> Iterator[tuple[str, Iterator[KernelRow]]]:
    gpu = usable_gpu()
    workload = generated_proteins(residues)
    for length in QUERY_LENGTHS:
        name = f"{length} residues against {workload.partition.n_residues:,}"
        yield name, measure_search(workload, length, threads, gpu)
    for size in SIZES:
        yield f"{size:,} x {size:,}", measure_pair(size, threads, gpu)
    for n_pairs, length in BATCHES:
        yield f"{n_pairs:,} pairs of {length} x {length}", measure_batch(n_pairs, length, threads, gpu)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--residues", type=int, default=100_000_000)
    parser.add_argument("--threads", type=int, default=usable_cores())
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    document: dict[str, Any] = {
        "schema": 1,
        **header("sources"),
        "machine": platform.processor() or platform.machine(),
        "devices": {info.name: info.detail or info.reason for info in engine_infos()},
        "groups": [],
    }
    for name, rows in groups(options.residues, options.threads):
        measured = []
        for row in rows:
            measured.append(row)
            if row.gcups is None or row.seconds is None:
                print(f"{name:<36}{row.kernel:<30}not measured: {row.missing}", flush=True)
                continue
            kernel = "" if row.kernel_seconds is None else f"{row.kernel_seconds:.6f} s in kernels"
            print(f"{name:<36}{row.kernel:<30}{row.seconds:10.5f} s {row.gcups:10.2f} GCUPS  {kernel}", flush=True)
        document["groups"].append({"name": name, "rows": rates(measured)})
    write_result(document, options.out)


if __name__ == "__main__":
    main()
