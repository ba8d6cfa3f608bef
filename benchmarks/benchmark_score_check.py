"""How often the check of a query's scores warns (swsearch/search/score_check.py), and how much time it takes.

    python benchmarks/benchmark_score_check.py SWISSPROT.fasta.gz [--queries 300] [--rounds 5]

Queries against the proteins of the file, with all limits of cost removed: real proteins of the file; the same shuffled,
which have no relatives; random ones of average composition; and biased ones (``biased_queries.py``). Each is checked
with samples of several sizes, and at three places of the database. The rates of warnings are
those of several thresholds, so that the chosen one (``LOWEST_SCALE``) can be judged.

Queries that are shuffled, random or made up have no relatives: all of their hits are chance hits, and with E up to 1
there should be one. Their numbers are those with each correction for composition, and with a mask.

The cost is the CPU time of the checks in a search of the real queries, with the usual limits of cost, divided by that
of the search. The script writes ``benchmarks/results/score-check.json``.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import dnaio
import numpy as np
from biased_queries import biased_queries
from provenance import write_result

from swsearch.database.builder import build_database
from swsearch.database.opening import open_database
from swsearch.database.reader import PackedDatabase
from swsearch.engine.cpu.engine import CpuEngine
from swsearch.engine.registry import Machine
from swsearch.search.frames import Frame
from swsearch.search.options import SearchOptions
from swsearch.search.score_check import (
    LOWEST_SCALE,
    SMALLEST_SAMPLE,
    SampleCheck,
    fitted,
    reduced_counts,
)
from swsearch.search.searcher import Searcher
from swsearch.sequences.alphabet import PROTEIN
from swsearch.sequences.record import SequenceRecord

SIZES = (400, 1000)
PLACES = (0.2, 0.5, 0.8)
THRESHOLDS = (0.7, 0.75, 0.8)
LENGTHS = (80, 600)
SEED = 1


def kinds_of_queries(path: Path, n_queries: int) -> dict[str, list[SequenceRecord]]:
    """The queries by their kind."""
    rng = np.random.default_rng(SEED)
    with dnaio.open(path) as records:
        proteins = [(record.name, record.sequence.upper()) for record in records]
    usable = [(n, s) for n, s in proteins if LENGTHS[0] <= len(s) <= LENGTHS[1] and re.fullmatch("[A-IK-NP-TVWY]+", s)]
    usable = [(name, text) for name, text in usable if not set(text) & set("BZ")]
    chosen = [usable[place] for place in rng.choice(len(usable), n_queries, replace=False)]
    letters = np.frombuffer("".join(text for _, text in usable[::7]).encode(), dtype="S1")
    drawn = [b"".join(rng.choice(letters, rng.integers(*LENGTHS))).decode() for _ in range(n_queries)]
    texts = {
        "real": chosen,
        "shuffled": [(name, "".join(rng.permutation(list(text)))) for name, text in chosen],
        "average": [(f"average {number}", text) for number, text in enumerate(drawn)],
        "biased": [(n, PROTEIN.decode(codes)) for n, codes in biased_queries() if not n.startswith("peptide")],
    }
    return {
        kind: [SequenceRecord(name, PROTEIN.encode(text), PROTEIN) for name, text in of_kind]
        for kind, of_kind in texts.items()
    }


def scales(searcher: Searcher, queries: list[SequenceRecord]) -> dict[int, list[tuple[str, float, float]]]:
    """For each size of a sample: name, λ and its relative error of each query, at each place."""
    found: dict[int, list[tuple[str, float, float]]] = {size: [] for size in SIZES}
    stored = np.concatenate([partition.subject_index for partition in searcher.search_subjects.partitions])

    for query in queries:
        seen = []
        searcher.observe = lambda _, candidates, seen=seen: seen.append(candidates)  # type: ignore[misc]
        next(iter(searcher.search([query])))
        (candidates,) = seen
        by_subject = np.argsort(candidates.subject_index)
        for size in SIZES:
            for place in PLACES:
                rows = by_subject[stored[((np.arange(size) + place) * len(stored) / size).astype(int)]]
                sample = candidates.rows(np.sort(rows))
                counts = reduced_counts(searcher, len(query), sample)
                fit = fitted(counts, SMALLEST_SAMPLE)
                if fit is not None:
                    found[size].append((query.header, fit.lam, fit.lam_error))
    return found


def rates(found: list[tuple[str, float, float]]) -> dict[str, Any]:
    """The distribution of λ, and the share of warnings with each threshold."""
    lam, error = np.array([[one, err] for _, one, err in found]).T
    warned = {str(limit): float(np.mean(lam * (1 + error) < limit)) for limit in THRESHOLDS}
    return {
        "samples": len(lam),
        "scale_percentiles_1_5_50_95": np.percentile(lam, [1, 5, 50, 95]).round(3).tolist(),
        "relative_error": round(float(np.median(error)), 3),
        "warned": {limit: round(share, 4) for limit, share in warned.items()},
    }


def hits_by_chance(database: PackedDatabase, engine: CpuEngine, queries: list[SequenceRecord]) -> dict[str, float]:
    """Mean number of hits with E up to 1 of queries without relatives, by correction for composition and mask."""
    found = {}
    for composition, mask in (("none", "none"), ("adjust", "none"), ("bias", "none"), ("adjust", "tantan")):
        options = SearchOptions(composition=composition, mask=mask, evalue=1.0, top=database.n_subjects)
        searcher = Searcher(database, engine, options, machine=Machine(threads=engine.threads))
        n_hits = [len(result.hits) for result in searcher.search(queries)]
        found[composition if mask == "none" else f"{composition}, {mask}"] = round(float(np.mean(n_hits)), 2)
    return found


def cost(database: PackedDatabase, queries: list[SequenceRecord], rounds: int) -> dict[str, float]:
    """CPU time of a search, and the part of it in checks; medians of the rounds."""
    taken = []
    n_checked = 0
    for _ in range(rounds):
        with CpuEngine() as engine:
            searcher = Searcher(database, engine, SearchOptions(), machine=Machine(threads=engine.threads))
            check = SampleCheck(searcher)
            in_checks = 0.0

            def observe(batch: list[tuple[SequenceRecord, list[Frame]]], check: SampleCheck = check) -> None:
                nonlocal in_checks
                began = time.process_time()
                check.add(batch)
                in_checks += time.process_time() - began

            searcher.observe_batch = observe
            began = time.process_time()
            for _ in searcher.search(queries):
                pass
            taken.append((time.process_time() - began, in_checks))
            n_checked = check.n_checked
    total, of_checks = np.median(taken, axis=0).tolist()
    return {
        "queries": len(queries),
        "checked": n_checked,
        "threads": engine.threads,
        "cpu_seconds": round(total, 3),
        "cpu_seconds_in_checks": round(of_checks, 3),
        "share": round(of_checks / total, 4),
    }


def main() -> None:
    """Measure, print and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("proteins", type=Path)
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    queries = kinds_of_queries(asked.proteins, asked.queries)
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True).stdout
    result: dict[str, Any] = {
        "benchmark": "score-check",
        "commit": commit.strip(),
        "cores": os.cpu_count(),
        "subjects": asked.proteins.name,
        "queries": asked.queries,
        "threshold": LOWEST_SCALE,
    }
    with tempfile.TemporaryDirectory() as folder:
        build_database([asked.proteins], Path(folder, "subjects.db"))
        with open_database(Path(folder, "subjects.db")) as database, CpuEngine() as engine:
            for composition in ("none", "bias"):
                searcher = Searcher(
                    database, engine, SearchOptions(composition=composition), machine=Machine(threads=engine.threads)
                )
                for kind, of_kind in queries.items():
                    found = scales(searcher, of_kind)
                    result.setdefault(composition, {})[kind] = {str(size): rates(found[size]) for size in SIZES}
                    print(composition, kind, json.dumps(result[composition][kind]), flush=True)
            result["hits_at_evalue_1"] = {
                kind: hits_by_chance(database, engine, queries[kind]) for kind in ("shuffled", "average", "biased")
            }
            print(json.dumps(result["hits_at_evalue_1"]), flush=True)
            result["cost"] = cost(database, queries["real"], asked.rounds)
            print(json.dumps(result["cost"]))
    write_result(result, Path(__file__).parent / "results" / "score-check.json")


if __name__ == "__main__":
    main()
