"""Where the time of one answer of the service goes: the steps of its web process and of its worker.

    python benchmarks/benchmark_answer.py QUERIES.fasta [--engine cuda] [--subjects 500000] [--answers 200]
        [--lengths 330,370] [--out RESULT.json]

The server is that of ``benchmark_service.py``, with one client. Both processes note when each of :data:`STEPS` begins
and ends, by the clock of the machine. Of each step, the table has the median time from the client's request to its
begin, and the median of its own time, in milliseconds; of a step that an answer has several times, the last one counts.
Steps of two threads overlap. Between ``engine begins`` and ``ranking``, the engine computes the scores.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from observed_steps import StepFinder

STEPS = {
    "swsearch.service.service": {
        "Service.begin_to_submit": "the request is checked",
        "Service._submit_all": "the search is stored",
        "Service.search": "the end is read",
    },
    "swsearch.store.queue": {
        "Queue.claim": "the worker claims",
        "Queue.begin": "the run is stored",
        "Queue.complete": "the result is stored",
    },
    "swsearch.search.searcher": {"Searcher.search": "the engine begins", "Searcher._result": "ranking and alignments"},
    "swsearch.store.results": {"Results.view": "the hits are read"},
}
"""The methods that are steps, by module, and what happens in them."""
NOTES = "SWSEARCH_ANSWER_NOTES"
"""Environment variable of the server's processes: the folder for what they note."""


def observe() -> None:
    """Note the steps of this process, which is one of the server's."""
    notes = open(Path(os.environ[NOTES], str(os.getpid())), "w", encoding="ascii", buffering=1)  # noqa: SIM115

    def note(step: str, began: float, ended: float) -> None:
        notes.write(f"{began} {ended} {step}\n")

    sys.meta_path.insert(0, StepFinder(note, STEPS))


def answers(url: str, name: str, queries: str, lengths: tuple[int, int], n: int) -> list[tuple[float, float]]:
    """When each search of one client was sent and answered; the first ten are left out."""
    from benchmark_service import sequences

    from swsearch.service.client import Client

    client, times = Client(url), []
    for number, letters in enumerate(itertools.islice(sequences(queries, *lengths, 1), n + 10)):
        sent = time.monotonic()
        if client.submit(f">q{number}\n{letters}\n", name, wait=50, hits=25)["state"] != "done":
            raise SystemExit("a search failed")
        times.append((sent, time.monotonic()))
    return times[10:]


def table(times: list[tuple[float, float]], notes: list[tuple[float, float, str]]) -> list[dict[str, Any]]:
    """The median begin and duration of each step, in milliseconds, in the order of the begins."""
    found: dict[str, list[tuple[float, float]]] = {}
    for sent, answered in times:
        last = {step: (began - sent, ended - began) for began, ended, step in notes if sent <= began < answered}
        for step, times_of_step in last.items():
            found.setdefault(step, []).append(times_of_step)
    words = {step: what for of_module in STEPS.values() for step, what in of_module.items()}
    rows = [
        {"step": words[step], "answers": len(of_step)}
        | {key: round(1000 * median(times[i] for times in of_step), 2) for i, key in enumerate(("begin", "took"))}
        for step, of_step in found.items()
    ]
    return sorted(rows, key=lambda row: row["begin"])


def main() -> None:
    from benchmark_search import database
    from benchmark_service import served
    from provenance import device_of, header, write_result

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("queries")
    parser.add_argument("--engine", default="cuda")
    parser.add_argument("--subjects", type=int, default=500_000)
    parser.add_argument("--answers", type=int, default=200)
    parser.add_argument("--lengths", default="330,370", help="of the queries, the shortest and the longest")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    shortest, longest = map(int, options.lengths.split(","))
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "sitecustomize.py").write_text("import benchmark_answer\nbenchmark_answer.observe()\n")
        (folder / "notes").mkdir()
        path = database(options.queries, options.subjects, Path(tempfile.gettempdir()))
        places = [str(folder), str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
        os.environ |= {NOTES: str(folder / "notes"), "PYTHONPATH": os.pathsep.join(filter(None, places))}
        with served(path, ["--engine", options.engine], folder) as (url, _):
            times = answers(url, path.name, options.queries, (shortest, longest), options.answers)
        lines = [line.split(" ", 2) for file in (folder / "notes").iterdir() for line in file.read_text().splitlines()]
    rows = table(times, sorted((float(began), float(ended), step) for began, ended, step in lines))
    for row in rows:
        print(f"{row['begin']:8.2f} {row['took']:8.2f}  {row['step']}")
    whole = round(1000 * median(answered - sent for sent, answered in times), 2)
    print(f"{whole:17.2f}  the answer")
    report = {
        **header("where the time of an answer goes"),
        "milliseconds": whole,
        "steps": rows,
        **device_of(options.engine),
    }
    write_result(report, options.out)


if __name__ == "__main__":
    main()
