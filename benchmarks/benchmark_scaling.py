"""How the time of one search grows with the database, up to 20 million proteins.

    python benchmarks/benchmark_scaling.py PROTEINS.fasta [--subjects 500000,2000000,8000000,20000000] [--length 350]
        [--repeat 3] [--folder FOLDER] [--out RESULT.json]

A database has the first proteins of the file, and then copies of all of them in which three of ten residues are
replaced. The query is the first protein of the file with at least ``--length`` residues. Whole commands:

index      ``swsearch index``, seconds and seconds of the processors
query      ``swsearch query --format tsv`` with the defaults: seconds and seconds of the processors, of the first run,
           and medians of ``--repeat`` later ones

Each database is deleted before the next one is made; the largest needs twice its residues of disk space.
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
from provenance import commit, processor

from swsearch.sequences.alphabet import PROTEIN
from swsearch.sequences.fasta import read_sequences

REPLACED = 0.3
AMINO_ACIDS = np.frombuffer(b"ARNDCQEGHILKMFPSTWYV", dtype=np.uint8)


def write_proteins(source: Path, n_subjects: int, path: Path) -> int:
    """Write the proteins, then copies with replaced residues; returns the number of residues."""
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
                file.write(b">p%d\n%b\n" % (n_written, copy[start:end]))
                n_residues += end - start
                n_written += 1
                start = end
    return n_residues


def command(*arguments: object) -> dict[str, float]:
    """Run `swsearch`; seconds and processor seconds."""
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "swsearch", *map(str, arguments)], stdout=subprocess.DEVNULL
    )
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
    parser.add_argument("--length", type=int, default=350)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--remark", default="")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()

    query = next(record for record in read_sequences(options.proteins, PROTEIN) if len(record) >= options.length)
    report: dict[str, Any] = {
        "benchmark": "scaling",
        "command": " ".join(sys.argv),
        "commit": commit(),
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
            n_residues = write_proteins(options.proteins, n_subjects, folder / "proteins.fasta")
            index = command("index", folder / "proteins.fasta", "-o", folder / "proteins.db", "--quiet")
            (folder / "proteins.fasta").unlink()
            search = ("query", folder / "query.fasta", folder / "proteins.db", "--format", "tsv", "--quiet")
            runs = [command(*search) for _ in range(1 + options.repeat)]
            row = {"residues": n_residues, "index": index, "first": runs[0], "query": medians(runs[1:])}
            report["databases"][str(n_subjects)] = row
            print(n_subjects, json.dumps(row), flush=True)
            shutil.rmtree(folder / "proteins.db")
            if options.out:
                options.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
