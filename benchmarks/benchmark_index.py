"""Measures indexing, opening, verification and export of one FASTA file.

    python benchmarks/benchmark_index.py swissprot.fasta

The script prints the rate in MB of (decompressed) FASTA per second of wall time, CPU seconds, and the peak resident
memory of a process that only indexes.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from swsearch.database.builder import build_database
from swsearch.database.export import export
from swsearch.database.reader import PackedDatabase
from swsearch.database.verify import verify


def index_once(fasta: Path, target: Path) -> None:
    """Index a file; print wall time and CPU time in seconds, and peak memory in MB."""
    wall = time.perf_counter()
    build_database(fasta, target)
    wall = time.perf_counter() - wall
    usage = resource.getrusage(resource.RUSAGE_SELF)
    print(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fasta", type=Path)
    parser.add_argument("--repeat", type=int, default=3, help="builds, of which the fastest counts (3)")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        index_once(options.fasta, options.child)
        return
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
        runs = []
        for n in range(options.repeat):
            command = [sys.executable, __file__, str(options.fasta), "--child", f"{folder}/{n}.swdb"]
            runs.append([float(word) for word in subprocess.check_output(command, text=True).split()])
        wall, cpu, peak = min(runs)
        path = Path(folder, "0.swdb")
        began = time.perf_counter()
        database = PackedDatabase.open(path)
        opened = time.perf_counter() - began
        began = time.perf_counter()
        problems = verify(database)
        verified = time.perf_counter() - began
        began = time.perf_counter()
        with open(Path(folder, "back.fa"), "w", encoding="utf-8", errors="surrogateescape", newline="\n") as out:
            export(database, out)
            size = out.tell()
        exported = time.perf_counter() - began
        print(f"{options.fasta.name}: {database.n_subjects:,} sequences, {database.n_residues:,} residues")
        print(f"index   {wall:8.2f} s, {size / wall / 1e6:.0f} MB/s, CPU {cpu:.2f} s, peak memory {peak:.0f} MB")
        print(f"open    {opened:8.4f} s")
        print(f"verify  {verified:8.2f} s, {len(problems)} problems")
        print(f"export  {exported:8.2f} s, {size / exported / 1e6:.0f} MB/s")


if __name__ == "__main__":
    main()
