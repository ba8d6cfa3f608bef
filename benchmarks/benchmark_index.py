"""Rates and peak memory of indexing, verification and export, in turns with an earlier version of the program.

    python benchmarks/benchmark_index.py [FASTA...] [--before PYTHON] [--threads 1 2] [--folder /dev/shm]
                                         [--sequences N] [--tiny N]

Without FASTA, a file of ``--sequences`` random proteins is written, with lengths, headers and lines as in UniRef90.
``--tiny N`` adds a file of N sequences of 5 to 19 residues, for which memory and time per sequence matter. PYTHON is
the interpreter of an environment with the earlier version. Each step runs in its own process.

For each step, the JSON output has the seconds of wall time and of processor time; the processor seconds of the caller's
thread, which are the work that other threads cannot share; and the peaks of the resident memory, with and without
mapped files. Rates are in MB of decompressed FASTA per second of wall time, from the fastest of ``--repeat`` runs.
"""

from __future__ import annotations

import argparse
import hashlib
import inspect
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from provenance import write_result

from swsearch.database.builder import build_database
from swsearch.database.export import export
from swsearch.database.opening import open_database
from swsearch.database.verify import verify

LETTERS = np.frombuffer(b"ARNDCQEGHILKMFPSTWYV", dtype=np.uint8)
STEPS = ("index", "verify", "export")
LINE = 60


# --- input ---


def random_fasta(n: int, *, tiny: bool) -> Iterator[bytes]:
    """Yield the text of n records in blocks."""
    source = np.random.default_rng(7)
    for first in range(0, n, 100_000):
        size = min(100_000, n - first)
        if tiny:
            lengths = source.integers(5, 20, size)
            headers = [b">s%09d\n" % number for number in range(first, first + size)]
        else:
            lengths = np.clip(source.lognormal(5.55, 0.75, size), 10, 35_000).astype(np.int64)
            headers = [
                b">UniRef90_A0A%09d Putative ATP-dependent protein n=1 Tax=Bacteria TaxID=2 RepID=A0A%09d_9BACT\n"
                % (number, number)
                for number in range(first, first + size)
            ]
        width = len(headers[0])
        n_lines = -(-lengths // LINE)
        ends = np.cumsum(width + lengths + n_lines)
        starts = ends - (width + lengths + n_lines)
        text = LETTERS[source.integers(0, len(LETTERS), int(ends[-1]), dtype=np.uint8)]
        table = np.frombuffer(b"".join(headers), dtype=np.uint8).reshape(size, width)
        for column in range(width):
            text[starts + column] = table[:, column]
        line_numbers = np.arange(int(n_lines.sum())) - np.repeat(np.cumsum(n_lines) - n_lines, n_lines)
        full = np.repeat(starts + width, n_lines) + line_numbers * (LINE + 1) + LINE
        text[np.minimum(full, np.repeat(ends - 1, n_lines))] = ord("\n")
        yield text.tobytes()


# --- one step in its own process ---


def memory_of(field: str) -> float:
    """A figure of this process's memory in MB, as Linux names it; 0 on other systems."""
    status = Path("/proc/self/status")
    for line in status.read_text().splitlines() if status.exists() else []:
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) / 1024
    return 0.0


class AnonymousMemory:
    """The peak of this process's resident memory without mapped files, in MB, read every 20 ms."""

    def __init__(self) -> None:
        self.peak = 0.0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._ended.wait(0.02):
            self.peak = max(self.peak, memory_of("RssAnon"))

    def close(self) -> float:
        self._ended.set()
        self._thread.join()
        return self.peak


def run_step(step: str, fasta: Path, database: Path, threads: int) -> dict[str, Any]:
    """Run a step once; the figures of this process."""

    def options(function: Any) -> dict[str, Any]:
        return {"threads": threads} if "threads" in inspect.signature(function).parameters else {}

    memory = AnonymousMemory()
    wall, own, usage = time.perf_counter(), time.thread_time(), resource.getrusage(resource.RUSAGE_SELF)
    if step == "index":
        build_database(fasta, database, **options(build_database))
    else:
        with open_database(database) as opened:
            if step == "verify":
                assert verify(opened, **options(verify)) == []
            else:
                with open(os.devnull, "w", encoding="utf-8", errors="surrogateescape", newline="\n") as out:
                    export(opened, out, **options(export))
    wall, own = time.perf_counter() - wall, time.thread_time() - own
    after = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "wall_seconds": round(wall, 3),
        "cpu_seconds": round(after.ru_utime + after.ru_stime - usage.ru_utime - usage.ru_stime, 3),
        "caller_cpu_seconds": round(own, 3),
        "peak_resident_mib": round(memory_of("VmHWM")),  # ru_maxrss counts the parent's memory too
        "peak_anonymous_mib": round(memory.close()),
    }


def digests_of(database: Path) -> dict[str, str]:
    found = {}
    for path in sorted(database.rglob("*.bin")):
        with open(path, "rb") as file:
            found[str(path.relative_to(database))] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


# --- comparison ---


def measure(fasta: Path, folder: Path, versions: list[tuple[str, str, int]], repeat: int) -> dict[str, Any]:
    """The figures of all steps of all versions, in turns; all versions must write the same files."""
    results: dict[str, Any] = {}
    expected: dict[str, str] | None = None
    for _ in range(repeat):
        for name, python, threads in versions:
            database = folder / "benchmark.swdb"
            for step in STEPS:
                child = [python, __file__, str(fasta), "--child", step, str(database), str(threads)]
                figures = json.loads(subprocess.check_output(child, text=True))
                known = results.setdefault(name, {}).setdefault(step, figures)
                if figures["wall_seconds"] < known["wall_seconds"]:
                    results[name][step] = figures
            found = digests_of(database)
            expected = expected or found
            if found != expected:
                raise SystemExit(f"{name} writes other files")
            subprocess.run(["rm", "-r", str(database)], check=True)
    size = fasta.stat().st_size
    for figures in results.values():
        for step in STEPS:
            figures[step]["mb_per_second"] = round(size / figures[step]["wall_seconds"] / 1e6, 1)
    return results


def sha256_rate() -> float:
    """GB of data in memory per second that one thread hashes."""
    data = bytes(64 << 20)
    began = time.perf_counter()
    hashlib.sha256(data)
    return round(len(data) / (time.perf_counter() - began) / 1e9, 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fasta", type=Path, nargs="*", help="files to index, one after the other")
    parser.add_argument("--before", help="Python interpreter of an environment with an earlier version")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--folder", type=Path, help="folder for temporary files (TMPDIR)")
    parser.add_argument("--sequences", type=int, default=1_000_000)
    parser.add_argument("--tiny", type=int, default=0)
    parser.add_argument("--repeat", type=int, default=3, help="runs of each step, of which the fastest counts (3)")
    parser.add_argument("--out", type=Path, help="JSON file")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        step, database, threads = options.child
        print(json.dumps(run_step(step, options.fasta[0], Path(database), int(threads))))
        return
    versions = [(f"{count} threads" if count > 1 else "1 thread", sys.executable, count) for count in options.threads]
    if options.before:
        versions.insert(0, ("before", options.before, 1))
    report: dict[str, Any] = {
        "processor": platform.processor() or platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "sha256_gb_per_second": sha256_rate(),
        "files": {},
    }
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        files = list(options.fasta)
        made = [] if files else [("uniref90-like", options.sequences, False)]
        made += [("tiny", options.tiny, True)] if options.tiny else []
        for name, n, tiny in made:
            files.append(Path(folder, f"{name}.fasta"))
            with open(files[-1], "wb") as file:
                file.writelines(random_fasta(n, tiny=tiny))
        for path in files:
            figures = measure(path, Path(folder), versions, options.repeat)
            with open(path, "rb") as file:
                n_sequences = sum(block.count(b">") for block in iter(lambda: file.read(1 << 24), b""))
            report["files"][path.name] = {"bytes": path.stat().st_size, "sequences": n_sequences, "versions": figures}
            print(f"{path.name}: {path.stat().st_size / 1e6:,.0f} MB, {n_sequences:,} sequences")
            for name, steps in figures.items():
                for step, one in steps.items():
                    print(
                        f"  {step:<8}{name:<12}{one['wall_seconds']:8.2f} s {one['mb_per_second']:8.1f} MB/s   CPU "
                        f"{one['cpu_seconds']:6.2f} s, caller's thread {one['caller_cpu_seconds']:6.2f} s   peak "
                        f"{one['peak_resident_mib']:6,} MB, anonymous {one['peak_anonymous_mib']:,} MB"
                    )
    write_result(report, options.out)


if __name__ == "__main__":
    main()
