"""Long subjects in a search on a GPU: a genome as one subject, long proteins, and long ones among many short ones.

    python benchmarks/benchmark_long_subjects.py [--genome FASTA] [--queries 40] [--query-length 200] [--check]

Prints a line a case: seconds of the whole call (median of the repeats, after one that compiles) and GCUPS, billions of
query residues times subject residues a second. ``genome``: the first record of a DNA file as the only subject, queries
cut from it with one base in ten changed. ``long``: 25 proteins of 8,000 to 35,000 residues, one query of 2,005.
``mixed`` and ``short``: 100,000 proteins with and without those 25; the first should be as fast as the second.
``--check`` compares all scores with the CPU engine's.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from swsearch.cores import usable_cores
from swsearch.database.format import SUBJECT_ALIGNMENT, TAIL_PADDING
from swsearch.database.partition import Partition
from swsearch.engine.cpu.engine import CpuEngine
from swsearch.engine.cuda.engine import CudaEngine
from swsearch.query.profile import QueryProfile, sequence_profile
from swsearch.scoring.scheme import default_scheme
from swsearch.sequences.alphabet import CODE_MASK, DNA, PAD_CODE, PROTEIN
from swsearch.sequences.fasta import read_sequences
from swsearch.typing import Codes


def partition_of(subjects: list[Codes]) -> Partition:
    """The subjects as a database stores them."""
    ordered = sorted(range(len(subjects)), key=lambda place: (len(subjects[place]), place))
    lengths = np.array([len(subjects[place]) for place in ordered], dtype=np.uint32)
    filled = -(-lengths.astype(np.int64) // SUBJECT_ALIGNMENT) * SUBJECT_ALIGNMENT
    starts = np.concatenate([[0], np.cumsum(filled)])
    residues = np.full(int(starts[-1]) + TAIL_PADDING, PAD_CODE, dtype=np.uint8)
    for place, start in zip(ordered, starts.tolist(), strict=False):
        residues[start : start + len(subjects[place])] = subjects[place]
    return Partition(residues, starts[:-1].astype(np.uint64), lengths, np.array(ordered, dtype=np.uint32))


def genome_case(path: str, n_queries: int, length: int) -> tuple[list[QueryProfile], Partition]:
    """The first record as a subject, and queries cut from it and changed."""
    rng = np.random.default_rng(1)
    genome = next(iter(read_sequences(path, DNA))).codes & CODE_MASK
    profiles = []
    for start in rng.integers(0, len(genome) - length, n_queries):
        query = genome[start : start + length].copy()
        changed = rng.random(length) < 0.1
        query[changed] = rng.integers(0, 4, int(changed.sum()))
        profiles.append(sequence_profile(query, default_scheme(DNA)))
    return profiles, partition_of([genome])


def protein_case(n_short: int, n_long: int) -> tuple[list[QueryProfile], Partition]:
    """A query of 2,005 residues, and drawn proteins."""
    rng = np.random.default_rng(2)
    lengths = [*rng.lognormal(5.66, 0.66, n_short).clip(20, 3000).astype(int), *rng.integers(8_000, 35_000, n_long)]
    subjects = [rng.integers(0, 20, length).astype(np.uint8) for length in lengths]
    query = rng.integers(0, 20, 2_005).astype(np.uint8)
    return [sequence_profile(query, default_scheme(PROTEIN))], partition_of(subjects)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--genome")
    parser.add_argument("--queries", type=int, default=40)
    parser.add_argument("--query-length", type=int, default=200)
    parser.add_argument("--short", type=int, default=100_000, help="short proteins of the mixed case")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()

    cases = {
        "long": protein_case(0, 25),
        "mixed": protein_case(options.short, 25),
        "short": protein_case(options.short, 0),
    }
    if options.genome:
        cases["genome"] = genome_case(options.genome, options.queries, options.query_length)
    with CudaEngine() as engine:
        print(engine.description)
        for name, (profiles, partition) in cases.items():
            seconds = []
            for _ in range(options.repeat + 1):
                start = time.perf_counter()
                blocks = engine.score(profiles, partition)
                seconds.append(time.perf_counter() - start)
            median = float(np.median(seconds[1:]))
            cells = partition.n_residues * sum(profile.length for profile in profiles)
            same = ""
            if options.check:
                with CpuEngine(threads=usable_cores()) as cpu:
                    wanted = cpu.score(profiles, partition)
                wrong = sum(int((one.score != other.score).sum()) for one, other in zip(blocks, wanted, strict=True))
                same = f"  {wrong} scores differ from the CPU's"
            print(f"{name:<8}{median * 1e3:10.2f} ms{cells / median / 1e9:10.0f} GCUPS{same}", flush=True)


if __name__ == "__main__":
    main()
