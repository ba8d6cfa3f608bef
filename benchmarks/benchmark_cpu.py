"""Measures the CPU engine by query length, instruction set and thread count, and its peers, in one run.

    python benchmarks/benchmark_cpu.py --residues 20000000 --peer pyopal --peer swipe

Subjects are generated (or read from FASTA): proteins, proteins with titins among them, DNA, one chromosome. Rates are
in GCUPS, 10^9 cells per second, by wall time and by CPU time; "reported" are searches that request only the scores that
they can report, as ``swsearch query`` does. Each line is followed by two ratios, both by CPU time with one thread. The
first is the rate of the engine relative to that of the plain loop (``plain_loop.cpp``, compiled if g++ is available),
which has none of the overhead of a search; it is comparable between machines. The second is the rate of the best
instruction set relative to that of a peer.

The script writes ``benchmarks/results/cpu.json``: every measurement, with processor, commit and command. On a machine
with other load, wall times and the ratio of two threads to one are unreliable; CPU times are reliable.
"""

from __future__ import annotations

import argparse
import dataclasses
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
from cpu_peers import PEERS, Peer, peer_missing
from numpy.typing import NDArray
from plain_loop import SATURATED, PlainLoop
from provenance import header, processor, write_result

from swsearch.bench.workloads import (
    QUERY_LENGTHS,
    Measurement,
    Workload,
    generated_proteins,
    generated_query,
    measure,
    profiles_of,
    workload_of_file,
)
from swsearch.database.partition import Partition
from swsearch.engine.cpu.engine import CpuEngine, usable_instruction_sets
from swsearch.engine.protocol import score_requests
from swsearch.scoring.scheme import default_scheme
from swsearch.sequences.alphabet import DNA, PROTEIN
from swsearch.threads import usable_cores
from swsearch.typing import Codes

# Instruction sets without wide vectors compute fewer residues, so that each takes about the same time.
SHARE = {"sse41": 3, "scalar": 500}


def best_of(repeat: int, run: Callable[..., Measurement], *args: object, **options: object) -> Measurement:
    """The measurement with the least CPU time."""
    return min((run(*args, **options) for _ in range(repeat)), key=lambda found: found.cpu_seconds)


def checked_loop(instruction_set: str, workload: Workload, query: Codes) -> PlainLoop:
    """The plain loop, after a check that its scores are those of the engine, so that it is a valid baseline."""
    loop = PlainLoop(instruction_set)
    with CpuEngine(1, instruction_set) as engine:
        (block,) = engine.score(score_requests(profiles_of(workload, query)), workload.partition)
    if not np.array_equal(loop.scores(workload, query), np.minimum(block.score, SATURATED)):
        raise SystemExit("the plain loop gives other scores than the engine; its rate means nothing")
    return loop


def show(found: Measurement, note: str = "") -> None:
    asked = "reported" if found.floored else "all"
    print(
        f"{found.workload:<20} {found.query_length:>6} {found.program:<10} {found.instruction_set:<11} "
        f"{found.threads:>3} {asked:<9} {found.gcups:8.2f} {found.core_gcups:8.2f}  {note}",
        flush=True,
    )


def with_titins(proteins: Workload) -> Workload:
    """Proteins with some of the largest known lengths, which do not fit in a batch of similar lengths."""
    subjects = [proteins.partition.codes(index) for index in range(len(proteins.partition))]
    subjects += [generated_query(PROTEIN, length) for length in (34350, 22152, 18141, 13100, 8797)]
    return Workload("protein and titins", Partition.pack(subjects), proteins.scheme)


def generated_dna(name: str, lengths: NDArray[np.int64]) -> Workload:
    """Random DNA sequences of these lengths."""
    letters = np.random.default_rng(1).integers(0, 4, int(lengths.sum())).astype(np.uint8)
    return Workload(name, Partition.pack(np.split(letters, np.cumsum(lengths)[:-1])), default_scheme(DNA))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fasta", type=Path, nargs="?", help="protein subjects (generated)")
    parser.add_argument("--residues", type=int, default=8_000_000, help="residues of generated subjects (8,000,000)")
    parser.add_argument("--genome", type=int, default=4_641_652, help="length of the one long subject (4,641,652)")
    parser.add_argument("--repeat", type=int, default=1, help="runs, of which the fastest counts (1)")
    parser.add_argument("--lengths", type=int, nargs="+", default=QUERY_LENGTHS)
    parser.add_argument("--peer", action="append", choices=PEERS, help="pyopal, swipe; those installed unless given")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "cpu.json")
    options = parser.parse_args()
    peers = options.peer or [name for name in PEERS if not peer_missing(name)]
    sets = usable_instruction_sets()
    proteins = workload_of_file(options.fasta) if options.fasta else generated_proteins(options.residues)
    results: list[Measurement] = []

    def add(found: Measurement, note: str = "") -> Measurement:
        results.append(found)
        show(found, note)
        return found

    loop = None
    if shutil.which("g++") and sets[0] != "scalar":
        loop = checked_loop(sets[0], proteins, generated_query(proteins.scheme.alphabet, 100))
    print(f"{'subjects':<20} {'query':>6} {'program':<10} {'instr. set':<11} thr scores        wall      CPU")
    opened = [Peer(name, proteins) for name in peers]
    for length in options.lengths:
        query = generated_query(proteins.scheme.alphabet, length)
        plain = add(best_of(options.repeat, loop.measure, proteins, query)) if loop else None
        for floored in (False, True):
            best = best_of(options.repeat, measure, proteins, query, threads=1, floored=floored)
            add(best, f"{best.core_gcups / plain.core_gcups:.2f} of the plain loop" if plain else "")
        for peer in opened:
            found = best_of(options.repeat, peer.measure, query)
            add(found, f"1 : {best.core_gcups / found.core_gcups:.1f}")
    for peer in opened:
        peer.close()

    smaller: dict[int, Workload] = {}
    for name in sets[1:]:
        share = SHARE.get(name, 1)
        subjects = proteins if share == 1 else smaller.setdefault(share, generated_proteins(options.residues // share))
        for length in (144, 375, 1000):
            query = generated_query(proteins.scheme.alphabet, length)
            add(best_of(options.repeat, measure, subjects, query, threads=1, instruction_set=name))
    query = generated_query(proteins.scheme.alphabet, 567)
    one = best_of(options.repeat, measure, proteins, query, threads=1)
    for threads in range(2, usable_cores() + 1):
        many = best_of(options.repeat, measure, proteins, query, threads=threads)
        add(many, f"{many.gcups / one.gcups:.2f} x one thread")

    for workload in (
        with_titins(proteins),
        generated_dna("dna", np.random.default_rng(1).integers(500, 2000, max(1, options.residues // 1250))),
        generated_dna("genome", np.array([options.genome])),
    ):
        for length in (144, 567, 2005):
            query = generated_query(workload.scheme.alphabet, length)
            add(best_of(options.repeat, measure, workload, query, threads=1))

    report = {
        **header("cpu"),
        "processor": processor(),
        "cores": usable_cores(),
        "residues": proteins.partition.n_residues,
        "measurements": [
            {**dataclasses.asdict(found), "gcups": round(found.gcups, 2), "core_gcups": round(found.core_gcups, 2)}
            for found in results
        ],
    }
    write_result(report, options.out)
    print(f"written: {options.out}")


if __name__ == "__main__":
    main()
