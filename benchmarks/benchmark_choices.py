"""What three rounds with ``--sensitive`` find on development domains, with other constants than those of the program.

    python benchmarks/benchmark_choices.py scop40.fasta.gz background.fasta.gz --work build/choices [--engine cuda]

The domains are none of those with which ``benchmark_iterations.py`` compares programs; its docstring describes the
protocol, and ``scope.py`` the figures. Each of :data:`CHOICES` is searched in a process of its own, with its constants
in place of those of the program; ``gain`` is what it finds more than the program as it is.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from benchmark_iterations import DEEPEST_EVALUE, LIST_SIZE, ROUNDS, prepare
from benchmark_iterations import SEED as PUBLISHED_SEED
from provenance import commit, device_of
from scope import JUDGEMENTS, Judged, judged

import swsearch
from swsearch.query import estimation
from swsearch.search import ranking, rescoring

SEED = 77
COMPARED = ((525, 40), (300, PUBLISHED_SEED))
"""Sizes and seeds of the samples that compare programs."""
AS_IT_IS = "as it is"
CHOICES: dict[str, dict[str, float]] = {
    AS_IT_IS: {},
    "included up to 0.001": {"inclusion": 0.001},
    "included up to 0.03": {"inclusion": 0.03},
    "included up to 0.005": {"inclusion": 0.005},
    "surplus 1.5": {"surplus": 1.5},
    "0.6 times the observations": {"observations": 0.6},
    "1.6 times the observations": {"observations": 1.6},
    "weight of contexts 0.5": {"contexts": 0.5},
    "weight of contexts 0.7": {"contexts": 0.7},
    "profiles as single sequences": {"forward": 4.0, "composition": 0.5},
}


def change(choice: dict[str, float]) -> dict[str, float]:
    """Change the constants of this process; the options that differ from the defaults."""
    balance = {name: choice[name] for name in rescoring.Balance._fields if name in choice}
    of_profile = rescoring.OF_PROFILE._replace(**balance)
    rescoring.OF_PROFILE = of_profile  # type: ignore[misc]
    estimation.CONTEXT_WEIGHT = choice.get("contexts", estimation.CONTEXT_WEIGHT)  # type: ignore[misc]
    known = estimation.column_frequencies

    def with_observations(rows: np.ndarray, n_threads: int = 1) -> estimation.ColumnFrequencies:
        columns = known(rows, n_threads)
        return replace(columns, observations=columns.observations * choice.get("observations", 1.0))

    estimation.column_frequencies = with_observations
    assert ranking.balance_of is rescoring.balance_of
    return {"inclusion_evalue": choice["inclusion"]} if "inclusion" in choice else {}


def lists(
    choice: dict[str, float], queries: Path, database: Path, engine: str, threads: int
) -> dict[str, list[tuple[str, float]]]:
    """The list of the last round of each query."""
    options = swsearch.SearchOptions(
        sensitive=True, iterations=ROUNDS[-1], top=LIST_SIZE, evalue=DEEPEST_EVALUE, **change(choice)
    )
    results = swsearch.search_database(queries, database, options, engine=engine, threads=threads)
    return {one.header.split()[0]: [(hit.subject_id, hit.evalue) for hit in one.hits] for one in results}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("domains", type=Path, help="FASTA of SCOPe domains, with headers `>domain sccs`")
    parser.add_argument("background", type=Path, help="FASTA from which profiles learn")
    parser.add_argument("--work", type=Path, required=True, help="folder for databases")
    parser.add_argument("--queries", type=int, default=300, help="number of domains")
    parser.add_argument("--choices", nargs="+", default=list(CHOICES), choices=CHOICES, metavar="NAME")
    parser.add_argument("--engine", default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "choices.json")
    options = parser.parse_args()
    data = prepare(options.domains, options.background, options.work)
    names = list(data.sccs)
    compared: set[str] = set()
    for size, seed in COMPARED:
        compared.update(names[index] for index in np.random.default_rng(seed).choice(len(names), size, replace=False))
    order = np.random.default_rng(SEED).permutation(len(names)).tolist()
    chosen = [names[index] for index in order if names[index] not in compared][: options.queries]
    queries = data.queries(chosen, options.work / "queries.fasta")
    database = options.work / "all.db"
    if not database.exists():
        swsearch.build_database(data.all_fasta, database)
    share = data.residues[0] / data.residues[1]
    found: dict[str, Judged] = {}
    result: dict[str, Any] = {
        "commit": commit(),
        "device": device_of(options.engine),
        "queries": len(chosen),
        "seconds": {},
    }
    for name in options.choices:
        began = time.perf_counter()
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            hits = pool.apply(lists, (CHOICES[name], queries, database, options.engine, options.threads))
        result["seconds"][name] = round(time.perf_counter() - began, 1)
        judgeable = {
            query: [(domain, evalue * share) for domain, evalue in rows if domain in data.sccs]
            for query, rows in hits.items()
        }
        found[name] = judged(judgeable, data.sccs)
        result[name] = {which: found[name].figures(which) for which in JUDGEMENTS}
        if name != AS_IT_IS and AS_IT_IS in found:
            result[name]["gain"] = {which: found[name].gain(found[AS_IT_IS], which) for which in JUDGEMENTS}
        options.out.write_text(json.dumps(result, indent=2) + "\n")
        print(name, json.dumps(result[name]["all"]), json.dumps(result[name].get("gain")), flush=True)


if __name__ == "__main__":
    main()
