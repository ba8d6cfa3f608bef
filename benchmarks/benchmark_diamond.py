"""Pairs on a GPU by diamonds: cells per second by pair, mode and shape, with ends checked against the CPU's kernels.

    python benchmarks/benchmark_diamond.py PAIR... [--modes local,global] [--shapes auto] [--path] [--check]
        [--out RESULT.json]

A PAIR is ``FASTA`` (its first two records), ``QUERY.fasta,SUBJECT.fasta`` (their first records) or ``drawn:M,N``
(random DNA; the second sequence is partly a copy of the first). ``proteins:M,N1,N2,…`` is a protein query of M residues
and a subject of each other length, all in one launch. Giga cell updates per second (GCUPS) are the product of query
letters and subject letters, divided by the time of the kernel by device events, the median of the repeats; wall time is
that of the complete call, including the layout and copying of letters. The scoring of DNA is 2/-3 5/2, that of protein
BLOSUM62 11/1. ``--shapes`` selects shapes to compare: ``auto``, or for example ``narrow-8`` (16-bit scores, 8 words per
lane). ``--check`` compares score and end with those of the CPU.

``--path`` also computes the paths of the same pairs, one after another, and reports the kernel time of both sweeps, and
wall time and CPU time of the complete call; with ``--check``, also whether the path equals that of the CPU's kernels,
and their CPU time.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from provenance import compiler_of, header, write_result

from swsearch.engine.cpu.pairs import CpuPairs
from swsearch.engine.cuda.pairs.diamond_launch import PairEnd
from swsearch.engine.cuda.pairs.diamond_plan import SweepShape, choose_shape, table_columns
from swsearch.engine.cuda.pairs.diamonds import DiamondSweep
from swsearch.engine.cuda.runtime.device import Buffer
from swsearch.engine.cuda.runtime.pycuda_device import PyCudaDevice
from swsearch.engine.pair_arrays import AlignmentProblem, FreeEnds, PairPaths, SequencePairs
from swsearch.scoring.matrix import named_matrix
from swsearch.sequences.alphabet import CODE_MASK, DNA
from swsearch.sequences.fasta import read_sequences
from swsearch.threads import usable_cores

Side = np.ndarray

MODES = {
    "local": (True, FreeEnds.ALL),
    "global": (False, FreeEnds.NONE),
    "semiglobal": (False, FreeEnds.ALL),
}


def read_pair(text: str) -> tuple[str, bool, list[tuple[Side, Side]]]:
    """Name, whether it is DNA, and pairs of an argument."""
    kind, _, rest = text.partition(":")
    if kind == "drawn":
        m, n = (int(part) for part in rest.split(","))
        rng = np.random.default_rng(1)
        query = rng.integers(0, 4, m).astype(np.uint16)
        subject = rng.integers(0, 4, n).astype(np.uint16)
        shared = min(m, n) // 2
        subject[:shared] = np.where(rng.random(shared) < 0.1, subject[:shared], query[:shared])
        return text, True, [(query, subject)]
    if kind == "proteins":
        m, *lengths = (int(part) for part in rest.split(","))
        rng = np.random.default_rng(1)
        query = rng.integers(0, 20, m).astype(np.uint16)
        return text, False, [(query, rng.integers(0, 20, n).astype(np.uint16)) for n in lengths]
    files = text.split(",")
    records = [next(iter(read_sequences(name))) for name in files]
    if len(files) == 1:
        records = list(read_sequences(files[0]))[:2]
    query, subject = ((record.codes & CODE_MASK).astype(np.uint16) for record in records)
    return "+".join(Path(name).name for name in files), records[0].alphabet is DNA, [(query, subject)]


def problem_of(mode: str, *, dna: bool) -> AlignmentProblem:
    if dna:
        return AlignmentProblem(*MODES[mode], 5, 2, 2, -3)
    return AlignmentProblem(*MODES[mode], 11, 1, table=named_matrix("BLOSUM62").scores)


def aligned_on_cpu(pair: tuple[Side, Side], p: AlignmentProblem, *, path: bool) -> PairPaths:
    return CpuPairs(usable_cores()).align(SequencePairs.of([pair]), p, path=path)


def on_cpu(pair: tuple[Side, Side], p: AlignmentProblem) -> PairEnd:
    return PairEnd(*aligned_on_cpu(pair, p, path=False).ends[0, :3].tolist())


def same(one: PairPaths, other: PairPaths) -> bool:
    return np.array_equal(one.ends, other.ends) and np.array_equal(one.runs, other.runs)


def shape_named(name: str) -> SweepShape | None:
    width, _, words = name.partition("-")
    return None if name == "auto" else SweepShape(width == "narrow", int(words))


class WatchedDevice(PyCudaDevice):
    """A GPU that knows the largest memory that was allocated at a time, in bytes."""

    def __init__(self) -> None:
        super().__init__()
        self.peak_bytes = 0
        self._bytes_of: dict[int, int] = {}

    def allocate(self, n_bytes: int) -> Buffer:
        buffer = super().allocate(n_bytes)
        self._bytes_of[buffer.address] = buffer.n_bytes
        self.peak_bytes = max(self.peak_bytes, sum(self._bytes_of.values()))
        return buffer

    def give_back(self, allocation: Any) -> None:
        del self._bytes_of[int(allocation)]
        super().give_back(allocation)


def cpu_seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    """CPU time of all threads of a call in seconds, and its result."""
    start = time.process_time()
    result = call()
    return time.process_time() - start, result


def measure_paths(
    sweep: DiamondSweep,
    pairs: list[tuple[Side, Side]],
    p: AlignmentProblem,
    repeat: int,
    *,
    check: bool,
) -> dict[str, Any]:
    """Median times for the paths of all pairs, and the time of the CPU for them."""

    def on_device() -> list[PairPaths]:
        return [sweep.align(SequencePairs.of([pair]), p) for pair in pairs]

    kernel, wall, cpu = [], [], []
    found: list[PairPaths] = []
    for _ in range(repeat + 1):  # the first run compiles
        sweep.timing.reset()
        start = time.perf_counter()
        seconds, found = cpu_seconds(on_device)
        wall.append(time.perf_counter() - start)
        cpu.append(seconds)
        kernel.append(sweep.timing.seconds)
    row: dict[str, Any] = {
        "path_kernel_seconds": float(np.median(kernel[1:])),
        "path_wall_seconds": float(np.median(wall[1:])),
        "path_cpu_seconds": float(np.median(cpu[1:])),
    }
    if check:
        row["path_on_cpu_cpu_seconds"], wanted = cpu_seconds(
            lambda: [aligned_on_cpu(pair, p, path=True) for pair in pairs]
        )
        row["path_as_on_cpu"] = all(map(same, found, wanted))
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pairs", nargs="+")
    parser.add_argument("--modes", default="local")
    parser.add_argument("--shapes", default="auto")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--path", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()

    device = WatchedDevice()
    rows: list[dict[str, Any]] = []
    for text in options.pairs:
        name, dna, pairs = read_pair(text)
        cells = sum(len(query) * len(subject) for query, subject in pairs)
        for mode in options.modes.split(","):
            problem = problem_of(mode, dna=dna)
            wanted = [on_cpu(pair, problem) for pair in pairs] if options.check else None
            for shape_name in options.shapes.split(","):
                shape = shape_named(shape_name)
                sweep = DiamondSweep(device, shape=shape)
                kernel, wall = [], []
                for _ in range(options.repeat + 1):  # the first run compiles
                    sweep.timing.reset()
                    start = time.perf_counter()
                    ends = sweep.ends(pairs, problem)
                    wall.append(time.perf_counter() - start)
                    kernel.append(sweep.timing.seconds)
                lengths = [(len(query), len(subject)) for query, subject in pairs]
                taken = shape or choose_shape(problem, lengths, table_columns(pairs, problem), device.facts)
                seconds = float(np.median(kernel[1:]))
                row = {
                    "pair": name,
                    "lengths": lengths,
                    "mode": mode,
                    "shape": f"{'narrow' if taken.narrow else 'wide'}-{taken.words}",
                    "kernel_seconds": seconds,
                    "wall_seconds": float(np.median(wall[1:])),
                    "gcups": cells / seconds / 1e9,
                    "device_bytes": device.peak_bytes,
                    "ends": [[end.score, end.query_end, end.subject_end] for end in ends][:3],
                    "as_on_cpu": None if wanted is None else ends == wanted,
                }
                if options.path:
                    row |= measure_paths(sweep, pairs, problem, options.repeat, check=options.check)
                    row["path_device_bytes"] = device.peak_bytes
                rows.append(row)
                print(*(row[key] for key in ("pair", "mode", "shape")), f"{seconds * 1e3:.2f} ms",
                      f"{row['gcups']:.0f} GCUPS", f"wall {row['wall_seconds'] * 1e3:.1f} ms", row["ends"],
                      row["as_on_cpu"], flush=True)  # fmt: skip
                for key, value in row.items():
                    if key.startswith("path"):
                        print("   ", key, value, flush=True)
    report = {
        **header("diamond kernel"),
        "device": device.facts.name,
        "driver": device.facts.driver,
        "compiler": f"{compiler_of(device).name} {compiler_of(device).version}",
        "rows": rows,
    }
    write_result(report, options.out)


if __name__ == "__main__":
    main()
