"""Processor time of what follows the scores of a search: ranking, E-values, alignments and the rows of the store.

    python benchmarks/benchmark_results.py QUERIES.fasta DATABASE [--scores SCORES.npz] [--queries 64] [--step 8]
        [--threads 1] [--repeat 3] [--top N] [--max-hsps N] [--profile] [--out RESULT.json]

The CPU engine computes the scores once and keeps them in ``--scores``; an engine that costs nothing then gives them
again, as a GPU gives them. Queries are the first ``--queries`` of each ``--step``-th of the file. The times are those
of a second search of the same queries in one process, per query: ``results`` without a store, ``store`` with the rows
in a new SQLite store, ``answer`` also packed and unpacked, as a worker sends them. ``digest`` is that of all results.
``--profile`` prints the functions that take most of the time of ``results``.
"""

from __future__ import annotations

import argparse
import cProfile
import hashlib
import json
import pstats
import tempfile
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from provenance import device_of, header, write_result

from swsearch.cluster.tasks import packed, unpacked
from swsearch.database.opening import open_database
from swsearch.database.partition import Partition
from swsearch.database.reader import PackedDatabase
from swsearch.engine.cpu.engine import CpuEngine
from swsearch.engine.protocol import Forecast, Scored, ScoreEngine, ScoreRequest
from swsearch.engine.registry import Machine
from swsearch.hits.result import QueryResult
from swsearch.hits.score_block import ScoreBlock
from swsearch.query.profile import QueryProfile
from swsearch.run.search import Run
from swsearch.search.options import SearchOptions
from swsearch.search.queries import QueriesInMemory
from swsearch.search.searcher import Searcher
from swsearch.sequences.fasta import read_sequences
from swsearch.sequences.record import SequenceRecord
from swsearch.store.store import Store
from swsearch.typing import Progress


def key_of(profile: QueryProfile) -> str:
    return hashlib.sha256(profile.rows.tobytes() + profile.table.tobytes()).hexdigest()


class RecordingEngine(CpuEngine):
    """The CPU engine, which keeps the scores of all calls."""

    def __init__(self, threads: int | None = None) -> None:
        super().__init__(threads)
        self.known: dict[str, ScoreBlock] = {}

    def score(self, requests: Sequence[ScoreRequest], *given: Any) -> list[ScoreBlock]:
        blocks = super().score(requests, *given)
        self.known.update({key_of(one.profile): block for one, block in zip(requests, blocks, strict=True)})
        return blocks


class _Replayed:
    """Scores that are known when they are asked for."""

    def __init__(self, blocks: Sequence[ScoreBlock]) -> None:
        self._blocks = blocks

    def wait_until_prepared(self) -> None:
        """Return at once."""

    def results(self, progress: Progress | None = None) -> Generator[Scored, None, None]:
        yield from enumerate(self._blocks)

    def cancel(self) -> None:
        """Do nothing."""


class ReplayedEngine:
    """An engine that works in the background, as a GPU does, and gives known scores."""

    name = "replayed"
    profiles_per_call = 128
    rows_per_call = 2**31
    kept_bytes = 2**40

    def __init__(self, known: dict[str, ScoreBlock]) -> None:
        self._known = known

    def begin(self, requests: Sequence[ScoreRequest], partition: Partition) -> _Replayed:
        return _Replayed([self._known[key_of(request.profile)] for request in requests])

    def score(self, requests: Sequence[ScoreRequest], *_: Any) -> list[ScoreBlock]:
        return [self._known[key_of(request.profile)] for request in requests]

    def preload(self, partition: Partition) -> None:
        """Do nothing."""

    def explain(self, requests: Sequence[ScoreRequest], partition: Partition) -> list[str]:
        return []

    def ends(self, *_: Any) -> None:
        """Leave them to the CPU."""

    def forward(self, *_: Any) -> None:
        """Leave them to the CPU."""

    def forecast(self, batches: Iterable[Sequence[QueryProfile]], *_: Any, **__: Any) -> Forecast:
        raise AssertionError("the times of recorded scores are not asked for")

    def close(self) -> None:
        """Do nothing."""

    def __enter__(self) -> ReplayedEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def known_scores(
    path: Path, database: PackedDatabase, options: SearchOptions, queries: list[SequenceRecord]
) -> dict[str, ScoreBlock]:
    """The scores of a file, which is written first if it does not exist."""
    if not path.exists():
        with RecordingEngine() as engine:
            for _ in Searcher(database, engine, options).search(queries):
                print(".", end="", flush=True)
            np.savez(
                path,
                **{f"{key}/index": block.subject_index for key, block in engine.known.items()},
                **{f"{key}/score": block.score for key, block in engine.known.items()},
            )
    with np.load(path) as file:
        keys = {name.split("/")[0] for name in file.files}
        return {key: ScoreBlock(file[f"{key}/index"], file[f"{key}/score"]) for key in keys}


def digest_of(results: Iterable[QueryResult]) -> str:
    digest = hashlib.sha256()
    for result in results:
        digest.update(repr((result.number, result.header, result.hits, result.n_passed)).encode())
    return digest.hexdigest()


def processor_seconds(action: Callable[[], Any]) -> float:
    """Processor seconds of all threads of this process."""
    began = time.process_time()
    action()
    return time.process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("query_file")
    parser.add_argument("database")
    parser.add_argument("--scores", type=Path, default=Path(tempfile.gettempdir()) / "scores.npz")
    parser.add_argument("--queries", type=int, default=64)
    parser.add_argument("--step", type=int, default=8)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--top", type=int, default=SearchOptions.top)
    parser.add_argument("--max-hsps", type=int, default=SearchOptions.max_hsps)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    asked = SearchOptions(top=options.top, max_hsps=options.max_hsps)
    with open_database([options.database]) as database, tempfile.TemporaryDirectory() as folder:
        records = list(read_sequences([options.query_file], database.alphabet))
        records = records[:: options.step][: options.queries]
        known = known_scores(options.scores, database, asked, records)
        engine: ScoreEngine = ReplayedEngine(known)
        searcher = Searcher(database, engine, asked, machine=Machine(threads=options.threads))
        found = list(searcher.search(records))
        n_hits = sum(len(result.hits) for result in found)

        def search() -> None:
            for _ in searcher.search(records):
                pass

        def store() -> None:
            path = Path(folder) / "hits.sqlite"
            for old in Path(folder).glob("hits.sqlite*"):
                old.unlink()
            with Store(path, create=True) as opened:
                Run(QueriesInMemory(records), searcher, store=opened).execute()

        def answer() -> None:
            unpacked(packed(found))

        times: dict[str, list[float]] = {"results": [], "store": [], "answer": []}
        for _ in range(options.repeat):
            times["results"].append(processor_seconds(search))
            times["store"].append(processor_seconds(store))
            times["answer"].append(processor_seconds(answer))
        report = {
            **header("processor time of the results of a search"),
            "queries": len(records),
            "hits": n_hits,
            "digest": digest_of(found),
            "milliseconds_a_query": {name: 1000 * min(each) / len(records) for name, each in times.items()},
            "runs": {name: [1000 * one / len(records) for one in each] for name, each in times.items()},
            **device_of("cpu"),
        }
        print(json.dumps(report, indent=1))
        if options.profile:
            profile = cProfile.Profile(time.process_time)
            profile.runcall(search)
            pstats.Stats(profile).sort_stats("tottime").print_stats(35)
            pstats.Stats(profile).sort_stats("cumtime").print_stats(45)
        write_result(report, options.out)


if __name__ == "__main__":
    main()
