"""The processor time of short commands, most of which is the start of the program and its imports.

    python benchmarks/benchmark_startup.py [--repeat 20] [--beside OTHER/.venv/bin/python] [--out RESULT.json]

Each command searches, indexes or shows almost nothing. It runs in an interpreter of its own as often as ``--repeat``
says, in turns with the same command of another checkout if ``--beside`` names its interpreter. The time is that of the
processor, of the user and of the system, because the wall time of a short command depends on what else the machine
does; of both, the smallest and the median are written. On a machine in use, the smallest is the one to compare.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from provenance import header, write_result

DATA = Path(__file__).parents[1] / "data"
COMMANDS = {
    "version": ["--version"],
    "help": ["--help"],
    "index": ["index", "query.fasta", "--out", "query.db", "--force", "--quiet"],
    "query, no store": ["query", "query.fasta", "proteins.db", "--store", "none", "--quiet"],
    "query, new store": ["query", "query.fasta", "proteins.db", "--store", "{new}", "--quiet"],
    "query": ["query", "query.fasta", "proteins.db", "--store", "{store}", "--quiet"],
    "runs list": ["runs", "list", "--store", "{store}"],
    "report": ["report", "1", "--store", "{store}"],
}
"""Commands by name; the query is the first of ``data/queries.fasta``, and the database has 1,500 proteins."""


def seconds_of(command: list[str], folder: Path) -> tuple[float, float]:
    """Processor and wall seconds of a command, which must succeed."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


def prepare(interpreter: str, folder: Path) -> None:
    """Make the query, the database and the store in ``folder``."""
    first = (DATA / "queries.fasta").read_text(encoding="utf-8").split(">")[1]
    (folder / "query.fasta").write_text(f">{first}", encoding="utf-8")
    program = [interpreter, "-P", "-m", "swsearch"]
    seconds_of([*program, "index", str(DATA / "proteins.fasta.gz"), "--out", "proteins.db"], folder)
    seconds_of([*program, "query", "query.fasta", "proteins.db", "--store", "hits.sqlite"], folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--beside", help="the Python of another checkout, for comparison")
    parser.add_argument("--beside-commit", default="", help="the commit of that checkout, for the result")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    interpreters = {"this checkout": sys.executable} | ({"the other": options.beside} if options.beside else {})
    measured: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as scratch:
        folders = {name: Path(scratch) / str(number) for number, name in enumerate(interpreters)}
        for name, interpreter in interpreters.items():
            folders[name].mkdir()
            prepare(interpreter, folders[name])
        for what, words in COMMANDS.items():
            runs: dict[str, list[tuple[float, float]]] = {name: [] for name in interpreters}
            for turn in range(options.repeat):
                for name, interpreter in interpreters.items():
                    given = [word.format(new=f"new-{turn}.sqlite", store="hits.sqlite") for word in words]
                    runs[name].append(seconds_of([interpreter, "-P", "-m", "swsearch", *given], folders[name]))
            measured[what] = {}
            for name, found in runs.items():
                rows = {"processor": [one for one, _ in found], "wall": [one for _, one in found]}
                measured[what][name] = {
                    f"{kind}_seconds": {"min": round(min(row), 3), "median": round(statistics.median(row), 3)}
                    for kind, row in rows.items()
                }
                print(f"{what}, {name}: {measured[what][name]}", flush=True)
    report = header("start-up") | ({"other_commit": options.beside_commit} if options.beside else {})
    report |= {"cores": os.cpu_count(), "repeat": options.repeat, "commands": measured}
    write_result(report, options.out)


if __name__ == "__main__":
    main()
