"""What ``--sensitive`` costs in a running process, on a GPU or a CPU.

    python benchmarks/benchmark_rescoring.py PROTEINS.fasta.gz --work build/rescoring [--engine cuda]
        [--subjects 500000] [--queries 200] [--out RESULT.json]

The database has the proteins of the file and, up to ``--subjects``, shuffled copies of them. Queries are proteins of
340 to 360 residues at random. One process opens the database once for each kind of search, and searches once more than
is measured:

one      queries one after the other: the median of the seconds of a search, for the plain search and ``sensitive``,
         in one round and in three (up to 20 queries)
batch    all queries in one call: the seconds, and ``rate``, those of the plain search divided by those of the
         sensitive one
equal    whether the hits and E-values of the first queries are those of the CPU engine (``--check``)
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from provenance import commit, device_of
from scope import records

import swsearch
from swsearch.sequences.record import SequenceRecord
from swsearch.threads import SWITCH_SECONDS

SEED = 39
SEARCHES: dict[str, dict[str, Any]] = {
    "plain": {},
    "sensitive": {"sensitive": True},
    "plain, three rounds": {"iterations": 3},
    "sensitive, three rounds": {"sensitive": True, "iterations": 3},
}


def database_of(proteins: list[tuple[str, str]], n_subjects: int, path: Path) -> Path:
    """The proteins, and shuffled copies of some of them."""
    if not path.exists():
        rng = np.random.default_rng(SEED)
        fasta = path.with_suffix(".fasta")
        with fasta.open("w") as file:
            for name, letters in proteins[:n_subjects]:
                file.write(f">{name}\n{letters}\n")
            for number in range(n_subjects - len(proteins)):
                letters = np.frombuffer(proteins[number % len(proteins)][1].encode(), dtype=np.uint8)
                file.write(f">shuffled{number}\n{rng.permutation(letters).tobytes().decode()}\n")
        swsearch.build_database(fasta, path)
    return path


def hits_of(results: list[Any]) -> list[Any]:
    return [[(hit.subject_id, hit.score, hit.evalue) for hit in result.hits] for result in results]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("proteins", type=Path, help="FASTA of natural proteins")
    parser.add_argument("--work", type=Path, required=True, help="folder for the database")
    parser.add_argument("--engine", default="cuda")
    parser.add_argument("--subjects", type=int, default=500_000)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--check", type=int, default=0, help="number of queries that the CPU engine searches too")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    sys.setswitchinterval(SWITCH_SECONDS)  # as the commands do
    proteins = [(header.split()[0], letters.upper()) for header, letters in records(options.proteins)]
    usual = [one for one in proteins if 340 <= len(one[1]) <= 360]
    rng = np.random.default_rng(SEED)
    chosen = [usual[index] for index in rng.choice(len(usual), options.queries, replace=False).tolist()]
    queries: list[SequenceRecord] = [swsearch.sequence(letters, "protein", header=name) for name, letters in chosen]
    database = database_of(proteins, options.subjects, options.work / "proteins.db")
    result: dict[str, Any] = {
        "commit": commit(),
        "device": device_of(options.engine),
        "cores": os.cpu_count(),
        "engine": options.engine,
        "subjects": options.subjects,
        "natural": min(len(proteins), options.subjects),
        "queries": options.queries,
        "one": {},
        "batch": {},
    }
    found: dict[str, Any] = {}
    for name, changed in SEARCHES.items():
        search = swsearch.SearchOptions(**changed)
        with swsearch.open_searcher(database, search, engine=options.engine, threads=options.threads) as searcher:
            list(searcher.search(queries[:2]))
            seconds = []
            for query in queries[:20]:
                began = time.perf_counter()
                list(searcher.search([query]))
                seconds.append(time.perf_counter() - began)
            result["one"][name] = round(statistics.median(seconds), 4)
            if not changed.get("iterations"):
                began = time.perf_counter()
                found[name] = hits_of(list(searcher.search(queries)))
                result["batch"][name] = round(time.perf_counter() - began, 2)
    result["batch"]["rate"] = round(result["batch"]["plain"] / result["batch"]["sensitive"], 3)
    if options.check:
        search = swsearch.SearchOptions(sensitive=True)
        with swsearch.open_searcher(database, search, engine="cpu", threads=options.threads) as searcher:
            expected = hits_of(list(searcher.search(queries[: options.check])))
        result["equal"] = expected == found["sensitive"][: options.check]
    text = json.dumps(result, indent=2)
    print(text)
    if options.out:
        options.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
