"""Where the time of a short command goes: what it imports, opens and loads before its first launch, and after it.

    python benchmarks/benchmark_steps.py QUERY.fasta DATABASE [--engine cuda] [--repeat 3] [--out RESULT.json]

``swsearch query`` runs in an interpreter of its own with a new store, ``--repeat`` times. Each step of :data:`STEPS`
and each import of :data:`IMPORTED` is noted with its thread, its begin and its end, in milliseconds since the start of
the interpreter. A step that occurs several times is noted once, from the begin of the first to the end of the last,
with the sum of its times. Steps of two threads overlap, and a step contains the steps and imports that it causes. The
table is that of the fastest run; ``seconds`` are those of all.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from observed_steps import StepFinder

STEPS = {
    "swsearch.database.opening": ["open_database"],
    "swsearch.engine.cuda.runtime.presence": ["_create_contexts"],
    "swsearch.engine.cuda.runtime.compiler": ["Nvrtc.__init__"],
    "swsearch.engine.cuda.runtime.pycuda_device": ["PyCudaDevice.__init__", "PyCudaDevice.prepare"],
    "swsearch.engine.cuda.search.engine": ["CudaEngine.__init__", "CudaEngine.preload", "CudaEngine.close"],
    "swsearch.engine.cuda.search.batch_run": ["BatchRun.start", "BatchRun.finish"],
    "swsearch.engine.registry": ["open_engine"],
    "swsearch.search.searcher": ["Searcher.__init__", "Searcher._result"],
    "swsearch.run.search": ["Run.__enter__", "Run.close"],
    "swsearch.store.store": ["open_store", "Store.close"],
    "swsearch.store.results": ["Results.add"],
}
"""The functions and methods that are steps, by module."""
IMPORTED = ("numpy", "swsearch._native", "typer", "pycuda.driver", "cuda.bindings.driver", "sqlalchemy", "sqlite3")
CHILD = "SWSEARCH_STEPS"
"""Environment variable of the interpreter that is observed: when it was started, and the file for what it notes."""


class Notes:
    """What is noted of steps and imports; those of one name are one row."""

    def __init__(self, began: float) -> None:
        self._began = began
        self.rows: dict[str, dict[str, Any]] = {}

    def note(self, name: str, began: float, ended: float) -> None:
        new = {"step": name, "thread": threading.current_thread().name, "begin": began, "times": 0, "total": 0.0}
        row = self.rows.setdefault(name, new)
        row |= {"end": ended, "times": row["times"] + 1, "total": row["total"] + ended - began}

    def table(self) -> list[dict[str, Any]]:
        """The steps in the order of their begins, in milliseconds since the start of the interpreter."""
        return [
            row | {key: round(1000 * (row[key] - self._began), 1) for key in ("begin", "end")}
            | {"total": round(1000 * row["total"], 1)}
            for row in sorted(self.rows.values(), key=lambda row: row["begin"])
        ]  # fmt: skip


def observed(began: float, out: Path) -> None:
    """Run the program in this interpreter, and write what was noted when it ends."""
    del sys.path[0]  # the program looks for its modules without this folder
    notes = Notes(began)
    notes.note("interpreter and this script", began, time.monotonic())
    sys.meta_path.insert(0, StepFinder(notes.note, STEPS, IMPORTED))
    leave = os._exit

    def end(code: int) -> None:
        out.write_text(json.dumps(notes.table()), encoding="utf-8")
        leave(code)

    os._exit = end  # type: ignore[assignment]
    from swsearch.cli.start import run

    try:
        run()
    finally:
        out.write_text(json.dumps(notes.table()), encoding="utf-8")


def main() -> None:
    from provenance import device_of, header, write_result

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("queries")
    parser.add_argument("database")
    parser.add_argument("--engine", default="cuda")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    runs: list[tuple[float, list[dict[str, Any]]]] = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.repeat + 1):
            notes, store = Path(folder, f"{number}.json"), Path(folder, f"{number}.sqlite")
            command = [sys.executable, __file__, "query", options.queries, options.database, "--quiet"]
            command += ["--engine", options.engine, "--store", str(store), "--out", str(Path(folder, "hits.tsv"))]
            began = time.monotonic()
            environment = os.environ | {CHILD: f"{began} {notes}"}
            subprocess.run([*command, "--format", "tsv"], check=True, env=environment)
            if number:  # the first one compiles modules and kernels
                runs.append((time.monotonic() - began, json.loads(notes.read_text(encoding="utf-8"))))
    seconds, table = min(runs, key=lambda run: run[0])
    for row in table:
        print(f"{row['begin']:8.1f} {row['end']:8.1f} {row['total']:8.1f}  {row['step']} ({row['thread']})")
    print(f"{1000 * seconds:17.1f}  the end of the process")
    report = {
        **header("where the time of a short command goes"),
        "seconds": [one for one, _ in runs],
        "steps": table,
        **device_of(options.engine),
    }
    write_result(report, options.out)


if __name__ == "__main__":
    if CHILD in os.environ:
        started, _, file = os.environ.pop(CHILD).partition(" ")
        observed(float(started), Path(file))
    else:
        main()
