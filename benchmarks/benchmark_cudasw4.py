"""CUDASW++4.0 on the database and queries of ``benchmark_cuda.py``: its rates, and whole commands beside swsearch.

    python benchmarks/benchmark_cudasw4.py QUERIES.fasta --programs FOLDER [--repeat 5] [--out RESULT.json]

``FOLDER`` contains its programs ``makedb`` and ``align``, built for this GPU (github.com/asbschmidt/CUDASW4, ``make``;
with CUDA 13 the host files need nvcc's ``-x cu``). It runs with DPX instructions and BLOSUM62; a gap of k residues
costs 10 + k, whatever its options ``--gop`` and ``--gex`` say. It measures the scan of each query with the database on
the device; a first query, which includes the loading of kernels, is ignored. The script reports the median of several
runs of what its program prints.

``commands`` has the elapsed seconds of whole commands with the first query and with all, the median of such runs in
turns: ``align`` and ``swsearch query`` with the 100 best subjects of each query by their scores, which swsearch also
aligns, and ``swsearch query`` as it is used, with E-values of at most 10. ``different`` counts the queries for which
the 100 largest scores of both programs differ, with these gap costs; those of swsearch are among its 1,000 smallest
E-values.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import numpy as np
from benchmark_cuda import read_queries, synthetic
from benchmark_search import write_fasta
from provenance import header, write_result

SCORING = ["--dpx", "--mat", "blosum62"]
SAME_GAPS = ["--gap-open", "10", "--gap-extend", "1"]
LISTED = 100
SCAN = re.compile(r"Scan time: ([0-9.e+-]+) s, ([0-9.e+-]+) GCUPS")


def tops(path: Path, query: str, score: str) -> dict[str, list[int]]:
    """The scores in a table by query, descending; ``query`` and ``score`` are the names of its columns."""
    with path.open(encoding="utf-8") as lines:
        scores: dict[str, list[int]] = {}
        for row in csv.DictReader(lines, delimiter="\t"):
            scores.setdefault(row[query].split()[0].lstrip(">"), []).append(int(row[score]))
    return {name: sorted(found, reverse=True)[:LISTED] for name, found in scores.items()}


def commands(programs: Path, fasta: Path, files: dict[str, Path], folder: Path, repeat: int) -> dict[str, Any]:
    """Times of whole commands, and whether both programs find the same scores."""
    own, table, of_own = folder / "own.db", folder / "theirs.tsv", folder / "own.tsv"
    swsearch = [sys.executable, "-P", "-m", "swsearch"]
    subprocess.run([*swsearch, "index", fasta, "--out", own, "--quiet"], check=True)
    report: dict[str, Any] = {}
    for name, queries in files.items():
        query = [*swsearch, "query", queries, own, "--engine", "cuda", "--store", "none", "--quiet", "--out", of_own]
        best = [*query, "--format", "tsv", "--fields", "qseqid,score", "--evalue", "inf", "--composition", "none"]
        theirs = [programs / "align", "--query", queries, "--db", folder / "db", *SCORING, "--tsv", "--of", table]
        found = {
            "CUDASW++4.0": [*theirs, "--top", LISTED],
            "swsearch, 100 best": [*best, "--top", LISTED],
            "swsearch": query,
        }
        seconds: dict[str, list[float]] = {program: [] for program in found}
        for _ in range(repeat + 1):
            for program, command in found.items():
                began = time.perf_counter()
                subprocess.run([*map(str, command)], check=True, stdout=subprocess.DEVNULL)
                seconds[program].append(time.perf_counter() - began)
        subprocess.run([*map(str, best), *SAME_GAPS, "--top", "1000"], check=True)
        scores, others = tops(of_own, "qseqid", "score"), tops(table, "Query header", "Result score")
        report[name] = {program: float(np.median(taken[1:])) for program, taken in seconds.items()}
        report[name] |= {"queries": len(scores), "different": sum(others.get(each) != scores[each] for each in scores)}
        print(name, json.dumps(report[name]), flush=True)
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("queries")
    parser.add_argument("--programs", type=Path, required=True)
    parser.add_argument("--subjects", type=int, default=500_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()

    queries = read_queries(options.queries)
    partition = synthetic(options.subjects, queries, 1)
    with tempfile.TemporaryDirectory() as scratch:
        fasta = Path(scratch, "synthetic.fasta")
        write_fasta(partition, fasta)
        first, text = Path(scratch, "queries.fasta"), Path(options.queries).read_text(encoding="ascii")
        first.write_text(">first\n" + text.split("\n", 1)[1].split(">")[0] + text, encoding="ascii")
        subprocess.run([options.programs / "makedb", fasta, Path(scratch, "db")], check=True, capture_output=True)
        command = [options.programs / "align", "--query", first, "--db", Path(scratch, "db"), "--verbose"]
        command += [*SCORING, "--top", "25"]
        runs = []
        for _ in range(options.repeat):
            shown = subprocess.run([*map(str, command)], check=True, capture_output=True, text=True).stdout
            runs.append([(float(seconds), float(gcups)) for seconds, gcups in SCAN.findall(shown)[1:]])
        one = Path(scratch, "one.fasta")
        one.write_text(">" + text.split(">")[1], encoding="ascii")
        files = {"one query": one, "all queries": Path(options.queries)}
        whole = commands(options.programs, fasta, files, Path(scratch), options.repeat)
    gpu = subprocess.run(
        ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
        capture_output=True, text=True, check=True,
    ).stdout.splitlines()[0]  # fmt: skip
    if any(len(run) != len(queries) for run in runs):
        sys.exit(f"{len(queries)} queries, but CUDASW++4.0 printed times of {[len(run) for run in runs]}:\n{shown}")
    medians = np.median(np.array(runs)[:, :, 1], axis=0)
    rows = [{"length": len(codes), "gcups": float(gcups)} for codes, gcups in zip(queries, medians, strict=True)]
    report: dict[str, Any] = {
        **header("CUDASW++4.0"),
        "device": gpu,
        "subjects": len(partition),
        "residues": partition.n_residues,
        "scheme": "BLOSUM62, a gap of k residues costs 10 + k",
        "gcups_geometric_mean": geometric_mean([row["gcups"] for row in rows]),
        "commands": whole,
        "queries": sorted(rows, key=lambda row: float(row["length"])),
    }
    print(json.dumps(report["gcups_geometric_mean"]), [round(row["gcups"]) for row in report["queries"]], flush=True)
    write_result(report, options.out)


if __name__ == "__main__":
    main()
