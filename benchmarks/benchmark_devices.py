"""Measures how much faster several GPUs score a database than one GPU does.

    python benchmarks/benchmark_devices.py QUERIES.fasta [--devices 0,1] [--repeat 5] [--out RESULT.json]

Input: protein queries in FASTA. The database is synthetic (``synthetic`` of ``benchmark_cuda.py``). It stays in the
memory of the GPUs between calls, except where ``capped`` streams it. Each case is measured on the first GPU and on all
GPUs:

batch        one call of the engine with all queries and a floor: lower scores are not needed
every score  the same without a floor
single       one call for each query, with the floor; all GPUs share the subjects
capped       as ``batch``, but each GPU may use memory for only 60 % of the database: one GPU must stream it, two GPUs
             store half of it each

Output: for each case a printed line with the GCUPS on one GPU and on all of them, both from the median wall time, and
their ratio (``times``). ``--out`` writes the same numbers, with the device and the commit, as JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from benchmark_cuda import read_fasta, synthetic
from provenance import commit

from swsearch.engine.cuda.search.multi_gpu import CudaDevices
from swsearch.engine.cuda.search.subjects import chunk_bytes
from swsearch.query.profile import sequence_profile
from swsearch.scoring.scheme import default_scheme
from swsearch.sequences.alphabet import PROTEIN

FLOOR = 72
CAPPED = 0.6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("queries")
    parser.add_argument("--subjects", type=int, default=500_000)
    parser.add_argument("--devices", default="0,1")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--commit", default="", help="where the checkout is not a git repository")
    parser.add_argument("--out")
    options = parser.parse_args()

    queries = read_fasta(options.queries)
    partition = synthetic(options.subjects, queries, 1)
    profiles = [sequence_profile(codes, default_scheme(PROTEIN)) for _, codes in queries]
    cells = partition.n_residues * sum(profile.length for profile in profiles)
    ordinals = [int(ordinal) for ordinal in options.devices.split(",")]
    report: dict[str, Any] = {
        "benchmark": "several devices",
        "command": " ".join(sys.argv),
        "commit": options.commit or commit(),
        "subjects": len(partition),
        "residues": partition.n_residues,
    }
    cases = (
        ("batch", [profiles], True, None),
        ("every score", [profiles], False, None),
        ("single", [[profile] for profile in profiles], True, None),
        ("capped", [profiles], True, int(chunk_bytes(partition) * CAPPED)),
    )
    for name, calls, with_floors, limit in cases:
        figures: dict[str, float] = {}
        for used in (ordinals[:1], ordinals):
            with CudaDevices(used, memory_limit=limit) as engine:
                report["device"] = engine.engines[0].facts.name
                report["driver"] = engine.engines[0].facts.driver
                seconds = []
                for _ in range(options.repeat + 1):
                    start = time.perf_counter()
                    for call in calls:
                        engine.score(call, partition, [FLOOR] * len(call) if with_floors else None)
                    seconds.append(time.perf_counter() - start)
            figures[f"gcups_{len(used)}"] = cells / float(np.median(seconds[1:])) / 1e9
        figures["times"] = figures[f"gcups_{len(ordinals)}"] / figures["gcups_1"]
        report[name] = figures
        print(name, json.dumps(figures), flush=True)
    if options.out:
        Path(options.out).write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
