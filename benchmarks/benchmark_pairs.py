"""Pairs of long DNA sequences: cells per second by mode, instruction set and threads, compared with parasail.

    python benchmarks/benchmark_pairs.py [--length 30000] [--fasta FILE]

The script prints one line per case: CPU time in seconds, GCUPS (billions of cells per CPU second), wall time in
seconds, and the speedup of two threads by wall time. With ``--fasta``, the first two records of a DNA file are the
pair; otherwise, one sequence is random, and the other is derived from it by substitutions, insertions and deletions.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
import parasail

from swsearch import _native
from swsearch.engine.cpu.engine import usable_instruction_sets
from swsearch.engine.pair_arrays import FreeEnds
from swsearch.sequences.alphabet import CODE_MASK, DNA
from swsearch.sequences.fasta import read_sequences

LOCAL = (True, FreeEnds.ALL)
GLOBAL = (False, FreeEnds.NONE)
SEMIGLOBAL = (False, FreeEnds.ALL)


def drawn(length: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A sequence, a related sequence, and an unrelated one."""
    rng = np.random.default_rng(0)
    query = rng.integers(0, 4, length).astype(np.uint16)
    changed = np.where(rng.random(length) < 0.1, rng.integers(0, 4, length), query).astype(np.uint16)
    relative = changed[rng.random(length) > 0.01]
    return query, relative, rng.integers(0, 4, length).astype(np.uint16)


def measure(name: str, cells: int, call: Callable[[], object], repeats: int) -> float:
    """Print the best of several runs; return its wall time in seconds."""
    cpu = wall = float("inf")
    for _ in range(repeats):
        cpu_before, wall_before = time.process_time(), time.perf_counter()
        call()
        wall = min(wall, time.perf_counter() - wall_before)
        cpu = min(cpu, time.process_time() - cpu_before)
    print(f"{name:<44}{cpu:9.3f} s {cells / cpu / 1e9:8.2f} GCUPS {wall:9.3f} s by the clock", flush=True)
    return wall


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--length", type=int, default=30_000)
    parser.add_argument("--fasta")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    if options.fasta:
        records = list(read_sequences(options.fasta, DNA))[:2]
        query, relative = ((record.codes & CODE_MASK).astype(np.uint16) for record in records)
        stranger = relative[::-1].copy()
    else:
        query, relative, stranger = drawn(options.length)
    cells = len(query) * len(relative)
    table = np.array([[2 if a == b else -3 for b in range(16)] for a in range(16)], dtype=np.int8)

    def pair(subject, ends, *, path=False, threads=1, gap=(5, 2), costs=(2, -3), table=None, instruction_set="auto"):
        stops = np.array([len(query)]), np.array([len(subject)])
        return lambda: _native.align_pairs(
            query, stops[0], subject, stops[1], table, *costs, *gap, *ends, path, threads, 256 << 20, None,
            instruction_set,
        )  # fmt: skip

    def case(name: str, call: Callable[[], object], subject: np.ndarray = relative) -> float:
        return measure(name, len(query) * len(subject), call, options.repeats)

    print(f"{len(query):,} x {len(relative):,}, {cells:,} cells")
    for instruction_set in usable_instruction_sets():
        case(f"local, related, {instruction_set}", pair(relative, LOCAL, instruction_set=instruction_set))
    case("local, unrelated", pair(stranger, LOCAL), stranger)
    case("local, scores from a table", pair(relative, LOCAL, table=table))
    case("global", pair(relative, GLOBAL))
    case("semi-global", pair(relative, SEMIGLOBAL))
    case("global, linear gaps 3, mismatch 1, match 0", pair(relative, GLOBAL, gap=(0, 3), costs=(0, -1)))
    case("edit distance", pair(relative, GLOBAL, gap=(0, 1), costs=(0, -1)))
    case("global with path", pair(relative, GLOBAL, path=True))
    case("local with path", pair(relative, LOCAL, path=True))
    one = case("local, 1 thread", pair(relative, LOCAL))
    two = case("local, 2 threads", pair(relative, LOCAL, threads=2))
    print(f"2 threads are {one / two:.2f} times as fast as one")

    matrix = parasail.matrix_create("ACGT", 2, -3)
    for name, subject in (("related", relative), ("unrelated", stranger)):
        texts = [DNA.decode(side.astype(np.uint8)) for side in (query, subject)]
        for kernel in ("sw_striped_sat", "sw_striped_16", "sw_scan_16", "sw_striped_32"):
            function = getattr(parasail, kernel)
            case(f"parasail {kernel}, {name}", lambda f=function, t=texts: f(*t, 7, 2, matrix), subject)


if __name__ == "__main__":
    main()
