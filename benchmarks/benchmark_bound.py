"""The rate of searches with an E-value cut on a GPU, with the bound and without, and the same blocks from both.

    python benchmarks/benchmark_bound.py QUERIES.fasta [--database PROTEINS.fasta.gz] [--bands auto,0,5] [--biased]
        [--out FILE]

The database is that of ``benchmark_cuda.py`` or, with ``--database``, the proteins of a file, followed by copies of
them in which 30 % of the residues are replaced, up to ``--residues`` residues. The floors are the lowest scores with an
E-value of at most 10, for each range of subject lengths, as in a search. ``bands``: the rows of a band of the bound;
``auto`` is the engine's choice, and 0 is not a bound. For each of them, every query alone, pairs of queries of similar
length, and all queries in one call are scored. GCUPS are effective: the product of query residues and subject residues,
in billions, divided by the time of the kernels by events on the device, although a bound computes no score. ``passing``
is the share of the subjects that were scored again. ``different``: blocks that differ from those without a bound.

``--biased`` scores the queries of ``biased_queries.py`` instead, each alone, and compares the time of each call by the
clock with that without a bound; the plans take turns, and each row has the median ratio.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import numpy as np
from benchmark_cuda import read_queries, synthetic
from biased_queries import biased_queries
from provenance import header, write_result

from swsearch.database.partition import Partition
from swsearch.engine.cuda.search.engine import CudaEngine
from swsearch.engine.cuda.search.plan import PlanOptions
from swsearch.engine.protocol import ScoreRequest
from swsearch.hits.score_block import ScoreBlock
from swsearch.query.profile import sequence_profile
from swsearch.scoring.karlin_altschul import Statistics
from swsearch.scoring.published_parameters import find_statistics
from swsearch.scoring.scheme import default_scheme
from swsearch.search.score_batches import requests_by_length
from swsearch.sequences.alphabet import CODE_MASK, PROTEIN
from swsearch.sequences.fasta import read_sequences
from swsearch.typing import LengthRange

REPLACED = 0.3


def real_proteins(path: str, n_residues: int, seed: int = 5) -> Partition:
    """The proteins of a file, and copies with replaced residues."""
    rng = np.random.default_rng(seed)
    originals = [record.codes & CODE_MASK for record in read_sequences(path, PROTEIN)]
    subjects, total = list(originals), sum(map(len, originals))
    while total < n_residues:
        for original in originals:
            copy = original.copy()
            replaced = rng.random(len(copy)) < REPLACED
            copy[replaced] = rng.integers(0, 20, int(replaced.sum()))
            subjects.append(copy)
            total += len(copy)
            if total >= n_residues:
                break
    return Partition.pack(subjects)


def requests_of(codes: Sequence[np.ndarray], partition: Partition, evalue: float) -> list[ScoreRequest]:
    """Requests for the scores with at most this E-value, in the order of the queries' lengths."""
    statistics = find_statistics(default_scheme(PROTEIN))
    assert isinstance(statistics, Statistics)
    among = np.unique(partition.lengths)

    def min_scores(n_residues: int, lengths: LengthRange = (0, 2**32)) -> list[int]:
        chosen = among[(among >= lengths[0]) & (among <= lengths[1])]
        return statistics.min_scores(evalue, n_residues, [chosen], partition.n_residues, 1)

    requests: list[ScoreRequest] = []
    for query in sorted(codes, key=len):
        profile = sequence_profile(query, default_scheme(PROTEIN))
        requests += requests_by_length([profile], partition, partial(min_scores, len(query)))
    return requests


def measure(
    engine: CudaEngine, groups: list[list[ScoreRequest]], partition: Partition, repeat: int
) -> tuple[list[dict[str, Any]], list[ScoreBlock]]:
    """A row for each group of requests, scored in one call, and the blocks of all requests."""
    rows, blocks = [], []
    for requests in groups:
        seconds, walls = [], []
        for _ in range(repeat + 1):
            engine.timing.reset()
            start = time.perf_counter()
            found = engine.score(requests, partition)
            walls.append(time.perf_counter() - start)
            seconds.append(engine.timing.seconds)
        cells = partition.n_residues * sum(request.profile.length for request in requests)
        decided = sum(block.n_bounded for block in found) / (len(requests) * len(partition))
        rows.append(
            {
                "lengths": [request.profile.length for request in requests],
                "gcups": cells / min(seconds[1:]) / 1e9,
                "wall_gcups": cells / min(walls[1:]) / 1e9,
                "decided": decided,
            }
        )
        blocks += found
    return rows, blocks


def n_different(blocks: list[ScoreBlock], others: list[ScoreBlock]) -> int:
    """Number of blocks that differ."""
    return sum(
        not (np.array_equal(one.subject_index, other.subject_index) and np.array_equal(one.score, other.score))
        for one, other in zip(blocks, others, strict=True)
    )


def measure_biased(partition: Partition, evalue: float, repeat: int) -> list[dict[str, Any]]:
    """A row for each biased query: the times of a call with the bound and without it, and their ratio."""
    rows = []
    n_bounded: dict[str, int] = {}
    with CudaEngine() as bounded, CudaEngine(options=PlanOptions(band_rows=0)) as exact:
        for name, codes in biased_queries():
            requests = requests_of([codes], partition, evalue)
            seconds: list[list[float]] = [[], []]
            for _ in range(repeat + 1):
                for engine, of_engine in zip((bounded, exact), seconds, strict=True):
                    start = time.perf_counter()
                    (block,) = engine.score(requests, partition)
                    of_engine.append(time.perf_counter() - start)
                    n_bounded[name] = max(n_bounded.get(name, 0), block.n_bounded)
            with_bound, without = (float(np.median(each[1:])) for each in seconds)
            row = {
                "query": name, "seconds": with_bound, "seconds_without": without, "ratio": with_bound / without,
                "decided": n_bounded[name] / len(partition),
            }  # fmt: skip
            rows.append(row)
            print(f"{name:<24}{with_bound * 1e3:8.2f} ms {row['ratio']:6.3f}  {row['decided']:.1%} decided", flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("queries")
    parser.add_argument("--database")
    parser.add_argument("--residues", type=int, default=180_000_000)
    parser.add_argument("--subjects", type=int, default=500_000)
    parser.add_argument("--evalue", type=float, default=10.0)
    parser.add_argument("--bands", default="0,auto")
    parser.add_argument("--biased", action="store_true")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()

    queries = read_queries(options.queries)
    if options.database:
        partition = real_proteins(options.database, options.residues)
    else:
        partition = synthetic(options.subjects, queries, 1, 25)
    report: dict[str, Any] = {
        **header("bound"),
        "subjects": len(partition),
        "residues": partition.n_residues,
        "evalue": options.evalue,
    }
    if options.biased:
        with CudaEngine() as engine:
            report |= {"device": engine.device.facts.name, "driver": engine.device.facts.driver}
        report["biased"] = measure_biased(partition, options.evalue, options.repeat)
        write_result(report, options.out)
        return
    requests = requests_of(queries, partition, options.evalue)
    pairs = [list(pair) for pair in zip(requests[::2], requests[1::2], strict=True)]
    modes = {"single": [[request] for request in requests], "pairs": pairs, "batch": [requests]}
    wanted: dict[str, list[ScoreBlock]] = {}
    for band in options.bands.split(","):
        with CudaEngine(options=PlanOptions(band_rows=None if band == "auto" else int(band))) as engine:
            report["device"], report["driver"] = engine.device.facts.name, engine.device.facts.driver
            for mode, groups in modes.items():
                rows, blocks = measure(engine, groups, partition, options.repeat)
                mean = geometric_mean([row["gcups"] for row in rows])
                wall = geometric_mean([row["wall_gcups"] for row in rows])
                different = n_different(blocks, wanted.setdefault(mode, blocks))
                report[f"{mode}, bands {band}"] = {
                    "gcups_geometric_mean": mean, "wall_gcups_geometric_mean": wall,
                    "different": different, "rows": rows,
                }  # fmt: skip
                each = " ".join(f"{row['gcups']:.0f} ({1 - row['decided']:.1%})" for row in rows)
                print(f"bands {band}, {mode}: {mean:,.0f}, wall {wall:,.0f}, {different} different: {each}", flush=True)
    write_result(report, options.out)


if __name__ == "__main__":
    main()
