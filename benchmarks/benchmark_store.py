"""Number of hits per second that are written to a store and read from it, with one transaction per query.

    python benchmarks/benchmark_store.py [STORE] [--queries 200] [--hits 500]

STORE is a file or a PostgreSQL URL; by default, a temporary file is used. The run is deleted at the end.
"""

from __future__ import annotations

import argparse
import platform
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from swsearch import __version__
from swsearch.hits.hit import Alignment, Hit
from swsearch.hits.result import DatabaseInfo, QueryResult, RunInfo, SearchStats
from swsearch.report.base import ReportContext
from swsearch.report.formats import FORMATS, new_report
from swsearch.scoring.matrix import matrix_text, named_matrix
from swsearch.store.store import Store

LETTERS = "MKVLAAGIVGLCAKAYLEDN" * 10


def results(n_queries: int, n_hits: int) -> Iterator[QueryResult]:
    """Queries with hits as long as those of a protein search."""
    alignment = Alignment(0, 200, 11, 211, "60=1X39=2X90=8X", 189, 195, 200, 0, 0, LETTERS)
    hits = tuple(
        Hit(rank, rank * 7, f"sp|P{rank:05}|NAME_ORGANISM Some protein OS=Some organism OX=9606 PE=1 SV=1", 350,
            1200 - rank, 466.8 - 0.385 * rank, 1e-120 * rank, "plus", alignment)
        for rank in range(1, n_hits + 1)
    )  # fmt: skip
    for number in range(n_queries):
        yield QueryResult(number, f"query_{number}", LETTERS, hits, n_hits, SearchStats(10**9, 0.1, 0.2, 0))


def run_info() -> RunInfo:
    """The record of a run of a protein search."""
    matrix = named_matrix("BLOSUM62")
    database = DatabaseInfo(("proteins.db",), ("none",), 0, "protein", 500_000, 187_000_000)
    return RunInfo(
        "benchmark", {"evalue": 10.0}, matrix.name, matrix_text(matrix), 11, 1, 0.267, 0.041, "table", 187_000_000,
        database, f"swsearch {__version__}", "none", 1,
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("store", nargs="?")
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--hits", type=int, default=500)
    arguments = parser.parse_args()
    run = run_info()
    given = list(results(arguments.queries, arguments.hits))
    total = arguments.queries * arguments.hits
    print(f"{arguments.queries} queries of {arguments.hits} hits; {platform.machine()}, {platform.python_version()}")

    def say(what: str, began: float, began_cpu: float) -> None:
        wall, cpu = time.perf_counter() - began, time.process_time() - began_cpu
        print(f"{what:<16} {total / wall:>10,.0f} hits/s   ({wall:.2f} s, {cpu:.2f} s of this process)")

    with tempfile.TemporaryDirectory() as folder:
        with Store(arguments.store or Path(folder) / "hits.sqlite", create=True) as store:
            began = time.perf_counter(), time.process_time()
            run_id = store.runs.start(run)
            for query in given:
                store.results.add(run_id, query)
            store.runs.finish(run_id)
            say("stored", *began)
            began = time.perf_counter(), time.process_time()
            for _ in store.results.queries(run_id):
                pass
            say("read", *began)
            store.runs.delete(run_id, force=True)
        for name in FORMATS:
            with (Path(folder) / name).open("w") as stream:
                began = time.perf_counter(), time.process_time()
                new_report(name).write_all(ReportContext(run), given, stream)
                say(name, *began)


if __name__ == "__main__":
    main()
