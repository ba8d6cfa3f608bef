"""Time of a complete search on a GPU: the command from its start to its end, from FASTA to hits in SQLite.

    python benchmarks/benchmark_search.py QUERIES.fasta [--subjects 500000] [--devices 0,1] [--out RESULT.json]

The database is that of ``benchmark_cuda.py``, written as FASTA, indexed once, and stored in ``--folder``. The command
runs once to compile its kernels, then ``--repeat`` times; each time is that of a new process with a new store. The time
of the kernels is measured by device events in the same search within one process, on one device. ``bound`` is 1.5 times
the kernel time plus a second for the start of the program.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from benchmark_cuda import read_queries, synthetic
from provenance import header, write_result

from swsearch.database.builder import build_database
from swsearch.database.partition import Partition
from swsearch.engine.cuda.runtime.pycuda_device import PyCudaDevice
from swsearch.engine.cuda.search.engine import CudaEngine
from swsearch.engine.cuda.search.multi_gpu import CudaDevices
from swsearch.search.options import SearchOptions
from swsearch.search.searcher import Searcher, open_searcher
from swsearch.sequences.alphabet import CODE_MASK, PROTEIN
from swsearch.sequences.fasta import read_sequences


def write_fasta(partition: Partition, path: Path) -> None:
    """Subjects of a partition in FASTA order; the index of each is its name."""
    places = np.argsort(partition.subject_index)
    with path.open("w", encoding="ascii") as file:
        for index, place in enumerate(places.tolist()):
            file.write(f">s{index} synthetic protein\n{PROTEIN.decode(partition.codes(place) & CODE_MASK)}\n")


def database(queries: str, n_subjects: int, folder: Path) -> Path:
    """The indexed database, which is built if it does not exist."""
    path = folder / f"synthetic-{n_subjects}.db"
    if not path.exists():
        fasta = folder / "synthetic.fasta"
        write_fasta(synthetic(n_subjects, read_queries(queries), 1), fasta)
        build_database([fasta], path)
        fasta.unlink()
    return path


def run_command(queries: str, path: Path, arguments: list[str], store: Path) -> float:
    """Wall time of one ``swsearch query`` in seconds."""
    for old in store.parent.glob(f"{store.name}*"):
        old.unlink()
    command = [sys.executable, "-P", "-m", "swsearch", "query", queries, str(path), "--engine", "cuda", "--quiet"]
    command += ["--store", str(store), "--out", str(store.with_suffix(".tsv")), "--format", "tsv", *arguments]
    start = time.perf_counter()
    subprocess.run(command, check=True)
    return time.perf_counter() - start


def kernel_seconds(searcher: Searcher, engine: CudaEngine, queries: str) -> tuple[float, float]:
    """Kernel time and wall time of the same search, after everything is open and the database is on the device."""
    records = list(read_sequences(queries, searcher.database.alphabet))
    for _ in range(2):
        engine.timing.reset()
        start = time.perf_counter()
        n_hits = sum(len(result.hits) for result in searcher.search(records))
        wall = time.perf_counter() - start
    print(f"{n_hits} hits, kernels {engine.timing.seconds:.3f} s, wall {wall:.3f} s", flush=True)
    return engine.timing.seconds, wall


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("queries")
    parser.add_argument("--subjects", type=int, default=500_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--devices", default="0")
    parser.add_argument("--folder", type=Path, default=Path("/tmp"))
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()

    path = database(options.queries, options.subjects, options.folder)
    store = options.folder / "benchmark-hits.sqlite"
    arguments = ["--devices", options.devices]
    first = run_command(options.queries, path, arguments, store)
    seconds = [run_command(options.queries, path, arguments, store) for _ in range(options.repeat)]
    print("first", round(first, 3), "then", [round(second, 3) for second in seconds], flush=True)

    device = PyCudaDevice(int(options.devices.split(",")[0]))
    report: dict[str, Any] = {
        **header("whole search"),
        "device": device.facts.name,
        "devices": options.devices,
        "driver": device.facts.driver,
        "first_seconds": first,
        "seconds": seconds,
        "median_seconds": float(np.median(seconds)),
    }
    device.close()
    with open_searcher(path, SearchOptions(), engine="cuda") as searcher:
        devices = searcher.engine
        assert isinstance(devices, CudaDevices)
        (engine,) = devices.engines
        report["subjects"], report["residues"] = searcher.database.n_subjects, searcher.database.n_residues
        report["kernel_seconds"], report["warm_seconds"] = kernel_seconds(searcher, engine, options.queries)
    report["bound"] = 1.5 * report["kernel_seconds"] + 1.0
    print(json.dumps({key: value for key, value in report.items() if key != "command"}), flush=True)
    write_result(report, options.out)


if __name__ == "__main__":
    main()
