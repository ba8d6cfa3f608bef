"""Measures how much faster several GPUs score a database than one GPU does.

    python benchmarks/benchmark_devices.py QUERIES.fasta [--devices 0,1] [--repeat 5] [--cases batch,single]
        [--out RESULT.json]

Input: protein queries in FASTA. The database is synthetic (``synthetic`` of ``benchmark_cuda.py``). It stays in the
memory of the GPUs between calls, except where ``capped`` streams it. Each case is measured on the first GPU and on all
GPUs:

batch        one call of the engine with all queries and a floor: lower scores are not needed
every score  the same without a floor
single       one call for each query, with the floor; all GPUs share the subjects
capped       as ``batch``, but each GPU may use memory for only 60 % of the database: one GPU must stream it, two GPUs
             store half of it each

Then ``timeline`` has the calls of ``single`` on the first GPU and on all of them, in seconds: the median time of a
call, that of the kernels on each GPU, and of one call, from its start: when the host began and ended to prepare each
batch, waited for it, had it and had handled it, and the time of its kernels. ``lost`` is the time of the call on all
GPUs beyond that of one GPU divided by their number.

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
from benchmark_cuda import read_queries, synthetic
from provenance import header, write_result
from timeline import noted

from swsearch.database.partition import Partition
from swsearch.engine.cuda.search.multi_gpu import CudaDevices
from swsearch.engine.cuda.search.subjects import device_bytes
from swsearch.engine.protocol import score_requests
from swsearch.query.profile import QueryProfile, sequence_profile
from swsearch.scoring.scheme import default_scheme
from swsearch.sequences.alphabet import PROTEIN
from swsearch.threads import SWITCH_SECONDS

FLOOR = 72
CAPPED = 0.6


def timeline(
    ordinals: list[int], profiles: list[QueryProfile], partition: Partition, repeat: int
) -> list[dict[str, Any]]:
    """The calls of one query each, on the first GPU and on all."""
    rows: list[dict[str, Any]] = [{"length": profile.length} for profile in profiles]
    for used in (ordinals[:1], ordinals):
        with CudaDevices(used) as engine:
            for row, profile in zip(rows, profiles, strict=True):
                calls = [timed_call(engine, profile, partition) for _ in range(repeat + 1)][1:]
                median = sorted(calls, key=lambda call: call["seconds"])[len(calls) // 2]
                row[f"{len(used)}"] = median
    for row in rows:
        row["lost"] = row[f"{len(ordinals)}"]["seconds"] - row["1"]["seconds"] / len(ordinals)
        figures = [row[key]["seconds"] * 1e3 for key in ("1", f"{len(ordinals)}")]
        kernels = [[round(one["kernels"] * 1e3, 2) for one in row[key]["devices"]] for key in ("1", f"{len(ordinals)}")]
        print(row["length"], [round(each, 2) for each in figures], kernels, round(row["lost"] * 1e3, 2), flush=True)
    return rows


def timed_call(engine: CudaDevices, profile: QueryProfile, partition: Partition) -> dict[str, Any]:
    """One call, with the times of its batches on each device."""
    for one in engine.engines:
        one.timing.reset()
    with noted() as timeline:
        began = time.perf_counter()
        engine.score(score_requests([profile], [FLOOR]), partition)
        seconds = time.perf_counter() - began
    devices = [
        {
            "kernels": one.timing.seconds,
            "batches": [
                {"host": [at - began for at in batch.host], "device": list(batch.device)} for batch in timeline.of(one)
            ],
        }
        for one in engine.engines
    ]
    return {"seconds": seconds, "devices": devices}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("queries")
    parser.add_argument("--subjects", type=int, default=500_000)
    parser.add_argument("--devices", default="0,1")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--cases", default="batch,every score,single,capped,timeline")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()

    queries = read_queries(options.queries)
    partition = synthetic(options.subjects, queries, 1)
    profiles = [sequence_profile(codes, default_scheme(PROTEIN)) for codes in queries]
    cells = partition.n_residues * sum(profile.length for profile in profiles)
    ordinals = [int(ordinal) for ordinal in options.devices.split(",")]
    report: dict[str, Any] = {
        **header("several devices"),
        "subjects": len(partition),
        "residues": partition.n_residues,
    }
    cases = (
        ("batch", [profiles], True, None),
        ("every score", [profiles], False, None),
        ("single", [[profile] for profile in profiles], True, None),
        ("capped", [profiles], True, int(device_bytes(partition) * CAPPED)),
    )
    sys.setswitchinterval(SWITCH_SECONDS)  # as the commands do
    for name, calls, with_floors, limit in cases:
        if name not in options.cases.split(","):
            continue
        figures: dict[str, float] = {}
        for used in (ordinals[:1], ordinals):
            with CudaDevices(used, memory_limit=limit) as engine:
                report["device"] = engine.engines[0].device.facts.name
                report["driver"] = engine.engines[0].device.facts.driver
                seconds = []
                for _ in range(options.repeat + 1):
                    start = time.perf_counter()
                    for call in calls:
                        engine.score(score_requests(call, [FLOOR] * len(call) if with_floors else None), partition)
                    seconds.append(time.perf_counter() - start)
            figures[f"gcups_{len(used)}"] = cells / float(np.median(seconds[1:])) / 1e9
        figures["times"] = figures[f"gcups_{len(ordinals)}"] / figures["gcups_1"]
        report[name] = figures
        print(name, json.dumps(figures), flush=True)
    if "timeline" in options.cases.split(","):
        report["timeline"] = timeline(ordinals, profiles, partition, options.repeat)
    write_result(report, options.out)


if __name__ == "__main__":
    main()
