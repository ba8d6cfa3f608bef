"""Compares the CPU throughput of two builds of the native module, in turns on one thread.

    python benchmarks/compare_builds.py OLD_PYTHON NEW_PYTHON [--instruction-set auto] [--rounds 15] [--out RESULT.json]

Input: the Python interpreters of two virtual environments in which two versions of swsearch are installed. Each
interpreter runs this script as a worker; the workers take turns, so that both meet the same temperature and load.

Cases: scores of a partition of proteins with several queries, scores of short queries, tracebacks of proteins, many
alignments of repeats, a batch of pairs of proteins with paths, one long global pair by diamonds, and one long pair with
its path.

Output: for each case a line with the CPU seconds of both builds (medians of all rounds) and the median ratio of new to
old; ``--out`` writes the same numbers as JSON. Below 1 the new build is faster.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

N_SUBJECTS = 20_000
TRACEBACK = (1, 1 << 26, None)
"""One thread, the default memory, no progress."""
PAIRS = (1, 1 << 28, None)


def cases(instruction_set: str) -> dict[str, Callable[[], object]]:
    """Calls of the native module, with arguments that both versions accept in this order."""
    from swsearch import _native
    from swsearch.scoring.matrix import named_matrix
    from swsearch.sequences.alphabet import PROTEIN

    rng = np.random.default_rng(1)
    table = np.ascontiguousarray(named_matrix("BLOSUM62").scores[:20])
    lengths = np.sort(np.clip(rng.gamma(2.0, 180.0, N_SUBJECTS), 20, 5_000)).astype(np.uint32)
    room = (lengths.astype(np.uint64) + 15) // 16 * 16
    starts = np.cumsum(room, dtype=np.uint64) - room
    residues = rng.integers(0, 20, int(room.sum()) + 64).astype(np.uint8)
    score_set = instruction_set
    if score_set == "auto":  # which the scores do not know
        score_set = next(name for name, usable in _native.instruction_sets() if usable)

    def profiles(*query_lengths: int) -> list[tuple[Any, Any, int, int]]:
        return [(rng.integers(0, 20, length).astype(np.int32), table, 11, 1) for length in query_lengths]

    def score(queries: list[tuple[Any, Any, int, int]]) -> object:
        scores = np.zeros((len(queries), N_SUBJECTS), np.int32)
        floors = [(0, [0] * len(queries))]
        return _native.score_partition(queries, residues, starts, lengths, scores, floors, score_set, 1)

    query = rng.integers(0, 20, 400).astype(np.uint8)
    few = np.arange(N_SUBJECTS // 2, N_SUBJECTS // 2 + 4_000)

    def traceback() -> object:
        scoring = (query.astype(np.int32), table, 11, 1, PROTEIN.identity_table)
        return _native.align_local(query, *scoring, residues, starts[few], lengths[few], *TRACEBACK, instruction_set)

    repeat = np.tile(rng.integers(0, 20, 30), 12).astype(np.uint8)

    def repeats() -> object:
        scoring = (repeat.astype(np.int32), table, 11, 1, PROTEIN.identity_table)
        first, length = np.zeros(16, np.uint64), np.full(16, 300, np.uint32)
        return _native.align_local(repeat, *scoring, repeat, first, length, *TRACEBACK, instruction_set, 40)

    letters = rng.integers(0, 20, (2, 1_500 * 300)).astype(np.uint16)
    ends = np.arange(300, 1_500 * 300 + 1, 300, dtype=np.int64)
    square = np.ascontiguousarray(table[:, :20])
    long_pair = rng.integers(0, 4, (2, 50_000)).astype(np.uint16)
    shorter = np.ascontiguousarray(long_pair[:, :24_000])

    def pairs() -> object:
        return _native.align_pairs(
            letters[0], ends, letters[1], ends, square, 0, 0, 11, 1, True, 0, True, *PAIRS, instruction_set
        )

    def one_pair(sides: Any, *, path: bool) -> object:
        end = np.array([sides.shape[1]])
        return _native.align_pairs(
            sides[0], end, sides[1], end, None, 2, -3, 5, 2, False, 0, path, *PAIRS, instruction_set
        )

    medium, short = profiles(144, 375, 1000), profiles(*[40] * 12)
    return {
        "scores, 3 queries of 144 to 1,000": lambda: score(medium),
        "scores, 12 queries of 40": lambda: score(short),
        "tracebacks of 4,000 subjects": traceback,
        "40 alignments of each of 16 repeats": repeats,
        "paths of 1,500 pairs of 300": pairs,
        "score of one pair of 50,000": lambda: one_pair(long_pair, path=False),
        "path of one pair of 24,000": lambda: one_pair(shorter, path=True),
    }


def work(instruction_set: str) -> None:
    """Measure the case named by each line of standard input, and print its CPU seconds."""
    found = cases(instruction_set)
    print(json.dumps(list(found)), flush=True)
    for line in sys.stdin:
        began = time.process_time()
        found[line.rstrip("\n")]()
        print(time.process_time() - began, flush=True)


class Worker:
    """An interpreter that runs the cases on request."""

    def __init__(self, python: str, instruction_set: str) -> None:
        command = [python, str(Path(__file__).resolve()), "--work", instruction_set]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.names: list[str] = json.loads(self._answer())

    def seconds(self, name: str) -> float:
        """CPU seconds of a case."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{name}\n")
        self._process.stdin.flush()
        return float(self._answer())

    def _answer(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            sys.exit(f"the worker ended with exit code {self._process.wait()}")
        return line


def main() -> None:
    """Run the rounds and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old_python")
    parser.add_argument("new_python")
    parser.add_argument("--instruction-set", default="auto", help="such as scalar; the best one by default")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    workers = [Worker(python, options.instruction_set) for python in (options.old_python, options.new_python)]
    rows = []
    for name in workers[0].names:
        for worker in workers:  # the first call of a case loads its code and data
            worker.seconds(name)
        found: list[list[float]] = [[], []]
        for round_number in range(options.rounds):
            for which in (0, 1) if round_number % 2 else (1, 0):
                found[which].append(workers[which].seconds(name))
        ratio = statistics.median(new / old for old, new in zip(*found, strict=True))
        old, new = map(statistics.median, found)
        rows.append({"case": name, "old_seconds": old, "new_seconds": new, "ratio": round(ratio, 4)})
        print(f"{name:<36} {old:8.4f} s {new:8.4f} s  {ratio:.4f}", flush=True)
    if options.out is not None:
        options.out.write_text(
            json.dumps(
                {
                    "benchmark": "two builds",
                    "instruction_set": options.instruction_set,
                    "rounds": options.rounds,
                    "cases": rows,
                }
            )
            + "\n"
        )


if __name__ == "__main__":
    work(sys.argv[2]) if sys.argv[1:2] == ["--work"] else main()
