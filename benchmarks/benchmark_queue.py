"""What the store takes of one answer of the service, with warm and with cold caches of the processor.

    python benchmarks/benchmark_queue.py [--searches 200] [--out RESULT.json]

One process does what the web process and the worker do with the store for a search of one query with ten hits, from the
submission to the first page of hits. ``warm`` has the median milliseconds of each step when nothing else is computed.
``cold`` has them when 64 MB of other data are read before each step, as between two answers: a service with one client
spends most of its time on scores and alignments, which take the place of Python's code in the caches.

A search takes no engine, so this is measured on any machine.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

import numpy as np
from benchmark_store import results, run_info
from provenance import device_of, header, write_result

from swsearch.errors import Refused
from swsearch.store.results import HitView
from swsearch.store.search_records import Completed, NewQuery, NewSearch, SearchedDatabase
from swsearch.store.searches import OwnerLimits
from swsearch.store.store import Store

_T = TypeVar("_T")
DATABASE = SearchedDatabase("synthetic.db", "0" * 64, 1)
OTHER_DATA = 64 << 20
"""Bytes that are read before a cold step."""
WARMING = 10
"""Searches that are not measured."""


def steps(n_searches: int, *, is_cold: bool) -> dict[str, float]:
    """The median milliseconds of each step, and of all together."""
    times: dict[str, list[float]] = {}
    other = np.ones(OTHER_DATA // 8)
    keep = timedelta(days=7)
    (result,) = results(1, 10)

    def step(name: str, function: Callable[..., _T], *given: Any, **named: Any) -> _T:
        if is_cold:
            other.sum()
            time.sleep(0.002)
        began = time.perf_counter()
        found = function(*given, **named)
        times.setdefault(name, []).append(1000 * (time.perf_counter() - began))
        return found

    with tempfile.TemporaryDirectory() as folder, Store(Path(folder, "hits.sqlite"), create=True) as store:
        queue, limits = store.queue, OwnerLimits(10**18, 10**18, 10**9)
        queue.enter("worker", "cpu")
        for number in range(n_searches + WARMING):
            content = f"{number:064}"
            query = NewQuery(f"query_{number}", result.letters, 10**9)
            new = NewSearch("local", DATABASE, {"top": 10}, "1" * 64, content, content, [query])
            (submitted,) = step("the search is stored", store.searches.submit, [new], limits, keep)
            assert not isinstance(submitted, Refused)
            search, _ = submitted
            budget = {DATABASE.name: 10**12}
            batch = step("the worker claims", queue.claim, "worker", [DATABASE], budget, timedelta(seconds=60))
            assert batch is not None
            run_id, _ = step("the run is stored", queue.begin, [search.id], run_info())[search.id]
            done = Completed(batch.queries[0], run_id, replace(result, header=query.header))
            step("the result is stored", queue.complete, "worker", [done], keep)
            step("the end is read", store.searches.with_keys, [search.key], finished=True)
            step("the hits are read", store.results.view, run_id, 0, HitView(limit=25))
    medians = {name: round(median(of_step[WARMING:]), 3) for name, of_step in times.items()}
    return medians | {"together": round(sum(medians.values()), 3)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--searches", type=int, default=200)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    report: dict[str, Any] = {
        **header("what the store takes of one answer"),
        "warm": steps(options.searches, is_cold=False),
        "cold": steps(options.searches, is_cold=True),
        **device_of("cpu"),
    }
    for name, cold in report["cold"].items():
        print(f"{report['warm'][name]:8.3f} {cold:8.3f}  {name}")
    write_result(report, options.out)


if __name__ == "__main__":
    main()
