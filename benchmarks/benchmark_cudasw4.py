"""CUDASW++4.0 on the database and queries of ``benchmark_cuda.py``: its GCUPS by query, as printed by its own program.

    python benchmarks/benchmark_cudasw4.py QUERIES.fasta --programs FOLDER [--repeat 5] [--out RESULT.json]

``FOLDER`` contains its programs ``makedb`` and ``align``, built for this GPU (github.com/asbschmidt/CUDASW4, ``make``;
with CUDA 13 the host files need nvcc's ``-x cu``). It runs with DPX instructions, BLOSUM62 and gap costs of 11 + k,
which are its options ``--gop -12 --gex -1``. It measures the scan of each query with the database on the device; a
first query, which includes the loading of kernels, is ignored. The script reports the median of several runs.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from benchmark_cuda import geometric_mean, read_fasta, synthetic
from benchmark_search import write_fasta
from provenance import commit

SCAN = re.compile(r"Scan time: ([0-9.e+-]+) s, ([0-9.e+-]+) GCUPS")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("queries")
    parser.add_argument("--programs", type=Path, required=True)
    parser.add_argument("--subjects", type=int, default=500_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--commit", default="", help="where the checkout is not a git repository")
    parser.add_argument("--out")
    options = parser.parse_args()

    queries = read_fasta(options.queries)
    partition = synthetic(options.subjects, queries, 1)
    with tempfile.TemporaryDirectory() as scratch:
        fasta = Path(scratch, "synthetic.fasta")
        write_fasta(partition, fasta)
        first, text = Path(scratch, "queries.fasta"), Path(options.queries).read_text(encoding="ascii")
        first.write_text(">first\n" + text.split("\n", 1)[1].split(">")[0] + text, encoding="ascii")
        subprocess.run([options.programs / "makedb", fasta, Path(scratch, "db")], check=True, capture_output=True)
        command = [options.programs / "align", "--query", first, "--db", Path(scratch, "db"), "--verbose"]
        command += ["--dpx", "--mat", "blosum62", "--gop", "-12", "--gex", "-1", "--top", "25"]
        runs = []
        for _ in range(options.repeat):
            shown = subprocess.run([*map(str, command)], check=True, capture_output=True, text=True).stdout
            runs.append([(float(seconds), float(gcups)) for seconds, gcups in SCAN.findall(shown)[1:]])
    gpu = subprocess.run(
        ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
        capture_output=True, text=True, check=True,
    ).stdout.splitlines()[0]  # fmt: skip
    if any(len(run) != len(queries) for run in runs):
        sys.exit(f"{len(queries)} queries, but CUDASW++4.0 printed times of {[len(run) for run in runs]}:\n{shown}")
    medians = np.median(np.array(runs)[:, :, 1], axis=0)
    rows = [{"length": len(codes), "gcups": float(gcups)} for (_, codes), gcups in zip(queries, medians, strict=True)]
    report: dict[str, Any] = {
        "benchmark": "CUDASW++4.0",
        "command": " ".join(sys.argv),
        "commit": options.commit or commit(),
        "device": gpu,
        "subjects": len(partition),
        "residues": partition.n_residues,
        "scheme": "BLOSUM62 11/1",
        "gcups_geometric_mean": geometric_mean([row["gcups"] for row in rows]),
        "queries": sorted(rows, key=lambda row: float(row["length"])),
    }
    print(json.dumps(report["gcups_geometric_mean"]), [round(row["gcups"]) for row in report["queries"]], flush=True)
    if options.out:
        Path(options.out).write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
