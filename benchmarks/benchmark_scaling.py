"""How the time of one search grows with the database, up to 20 million proteins.

    python benchmarks/benchmark_scaling.py PROTEINS.fasta [--subjects 500000,2000000,8000000,20000000] [--length 350]
        [--parts 0] [--repeat 3] [--engine cuda] [--batch QUERIES.fasta] [--before PYTHON] [--folder FOLDER]
        [--out RESULT.json]

A database has the first proteins of the file, and then copies of all of them in which three of ten residues are
replaced; with ``--parts``, each protein of at least 100 residues is followed by so many parts of it, of half to nine
tenths of its length. The query is the first protein of the file with at least ``--length`` residues. Whole commands:

index      ``swsearch index``, seconds and seconds of the processors, by this version
query      ``swsearch query --format tsv`` with the defaults: seconds and seconds of the processors, of the first run,
           and medians of ``--repeat`` later ones
batch      the same with all queries of ``--batch``: the second of two runs, with the cells a second of the command

PYTHON is the interpreter of an environment with an earlier version, which runs in turns with this one on a database of
its own; the reports of both must be equal. The databases of a size are deleted before those of the next are made.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from provenance import device_of, header, processor, write_result

from swsearch.sequences.alphabet import PROTEIN
from swsearch.sequences.fasta import read_sequences

REPLACED = 0.3
SHORTEST_WHOLE = 100
AMINO_ACIDS = np.frombuffer(b"ARNDCQEGHILKMFPSTWYV", dtype=np.uint8)


def write_proteins(source: Path, n_subjects: int, n_parts: int, path: Path) -> int:
    """Write the proteins, then copies with replaced residues, each with its parts; returns the number of residues."""
    originals = [record.letters.encode() for record in read_sequences(source, PROTEIN)]
    letters = np.frombuffer(b"".join(originals), dtype=np.uint8)
    ends = np.cumsum([len(one) for one in originals]).tolist()
    rng = np.random.default_rng(5)
    n_written = n_residues = 0
    with path.open("wb") as file:
        while n_written < n_subjects:
            text = letters.copy()
            if n_written:
                replaced = rng.random(len(text), dtype=np.float32) < REPLACED
                text[replaced] = AMINO_ACIDS[rng.integers(0, 20, int(replaced.sum()))]
            copy, start = text.tobytes(), 0
            for end in ends[: n_subjects - n_written]:
                whole = copy[start:end]
                lengths = rng.uniform(0.5, 0.9, n_parts if len(whole) >= SHORTEST_WHOLE else 0) * len(whole)
                begins = [int(rng.integers(0, len(whole) - int(length) + 1)) for length in lengths]
                parts = [whole[begin:][: int(length)] for begin, length in zip(begins, lengths, strict=True)]
                for number, one in enumerate([whole, *parts]):
                    file.write(b">p%d.%d\n%b\n" % (n_written, number, one))
                    n_residues += len(one)
                n_written += 1
                start = end
    return n_residues


def command(python: str, *arguments: object) -> dict[str, float]:
    """Run `swsearch` of an interpreter; seconds and processor seconds."""
    began = time.perf_counter()
    process = subprocess.Popen([python, "-P", "-m", "swsearch", *map(str, arguments)], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"swsearch {arguments[0]} ended with the status {os.waitstatus_to_exitcode(status)}")
    return {"seconds": time.perf_counter() - began, "processor_seconds": used.ru_utime + used.ru_stime}


def medians(runs: list[dict[str, float]]) -> dict[str, float]:
    return {name: statistics.median(run[name] for run in runs) for name in runs[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("proteins", type=Path)
    parser.add_argument("--subjects", default="500000,2000000,8000000,20000000")
    parser.add_argument("--parts", type=int, default=0)
    parser.add_argument("--length", type=int, default=350)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--engine", default="auto")
    parser.add_argument("--batch", type=Path)
    parser.add_argument("--before", metavar="PYTHON")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--remark", default="")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()

    versions = ({"before": options.before} if options.before else {}) | {"now": sys.executable}
    query = next(record for record in read_sequences(options.proteins, PROTEIN) if len(record) >= options.length)
    report: dict[str, Any] = {
        **header("scaling"),
        **(device_of(options.engine) if options.engine == "cuda" else {}),
        "processor": processor(),
        "n_processors": os.cpu_count(),
        "remark": options.remark,
        "query residues": len(query),
        "databases": {},
    }
    with tempfile.TemporaryDirectory(dir=options.folder) as scratch:
        folder = Path(scratch)
        (folder / "query.fasta").write_text(f">{query.header}\n{query.letters}\n", encoding="utf-8")
        os.environ["XDG_DATA_HOME"] = str(folder / "data")  # the runs are not kept among those of the user
        for n_subjects in map(int, options.subjects.split(",")):
            n_residues = write_proteins(options.proteins, n_subjects, options.parts, folder / "proteins.fasta")
            for version, python in versions.items():  # this version is the last
                database = folder / f"{version}.db"
                index = command(python, "index", folder / "proteins.fasta", "-o", database, "--quiet")
            (folder / "proteins.fasta").unlink()

            def searched(version: str, queries: Path) -> dict[str, float]:
                """Run a search of a version, and keep its report for the comparison."""
                out = ("--format", "tsv", "--out", folder / f"{version}.tsv")
                search = ("query", queries, folder / f"{version}.db", "--engine", options.engine, "--quiet")
                return command(versions[version], *search, *out)

            def check_equal() -> None:
                if len({(folder / f"{version}.tsv").read_bytes() for version in versions}) > 1:
                    raise SystemExit("the reports of the two versions differ")

            runs: dict[str, list[dict[str, float]]] = {version: [] for version in versions}
            for _ in range(1 + options.repeat):
                for version in versions:
                    runs[version].append(searched(version, folder / "query.fasta"))
            check_equal()
            row: dict[str, Any] = {"residues": n_residues, "index": index}
            for version, found in runs.items():
                row[version] = {"first": found[0], "query": medians(found[1:])}
            if options.batch:
                cells = n_residues * sum(map(len, read_sequences(options.batch, PROTEIN)))
                for _ in range(2):  # the first one compiles kernels
                    for version in versions:
                        once = searched(version, options.batch)
                        row[version]["batch"] = once | {"gcups": cells / once["seconds"] / 1e9}
                check_equal()
            report["databases"][str(n_subjects)] = row
            print(n_subjects, json.dumps(row), flush=True)
            for version in versions:
                shutil.rmtree(folder / f"{version}.db")
            write_result(report, options.out)


if __name__ == "__main__":
    main()
