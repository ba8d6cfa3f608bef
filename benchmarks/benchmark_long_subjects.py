"""Long subjects in a search on a GPU: a genome as one subject, long proteins, and long among many short proteins.

    python benchmarks/benchmark_long_subjects.py [--genome FASTA] [--bases 100000000] [--queries 40]
        [--query-length 200] [--check] [--out FILE]

The script prints one line per case: seconds of the complete call and of its kernels (medians of the repeats, after a
first one that compiles), and GCUPS of both, billions of query residues times subject residues per second; then seconds
of the call for the ends of each query's 100 best alignments. ``genome``: the first record of a DNA file is the only
subject, and queries are parts of it with one base in ten changed. ``long``: 25 proteins of 8,000 to 35,000 residues,
one query of 2,005; ``long-own``: the same with the query in each of them. ``mixed`` and ``short``: 100,000 proteins
with and without those 25; the first should be as fast as the second. ``mixed-144`` and ``short-144``: the same for a
query of 144. ``bases``: the same queries in 20 random contigs of ``--bases`` bases in total; ``bases-1000``: queries of
1,000 bases there. The cases of DNA are run with floors, too, and, as ``... in place``, without gathered windows
(``windows.py``). ``--check`` compares all scores with those of the CPU engine.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from provenance import header, write_result

from swsearch.database.partition import Partition
from swsearch.engine.cpu.engine import CpuEngine
from swsearch.engine.cuda.search.engine import CudaEngine
from swsearch.engine.cuda.search.plan import PlanOptions
from swsearch.engine.protocol import score_requests
from swsearch.hits.score_block import ScoreBlock
from swsearch.query.profile import QueryProfile, sequence_profile
from swsearch.scoring.scheme import default_scheme
from swsearch.sequences.alphabet import CODE_MASK, DNA, PROTEIN
from swsearch.sequences.fasta import read_sequences
from swsearch.threads import usable_cores
from swsearch.typing import Codes

DNA_FLOOR = 40
"""Of the cases with floors: E is about 0.1 among 100 million bases."""
ALIGNED = 100
"""Number of subjects per query for whose alignments the ends are requested."""


def mutated_part(bases: Codes, start: int, length: int, rng: np.random.Generator) -> QueryProfile:
    """A query: a part of some bases, of which one in ten is changed."""
    query = bases[start : start + length].copy()
    changed = rng.random(length) < 0.1
    query[changed] = rng.integers(0, 4, int(changed.sum()))
    return sequence_profile(query, default_scheme(DNA))


def genome_case(path: str, n_queries: int, length: int) -> tuple[list[QueryProfile], Partition]:
    """The first record as a subject, and mutated parts of it as queries."""
    rng = np.random.default_rng(1)
    genome = next(iter(read_sequences(path, DNA))).codes & CODE_MASK
    starts = rng.integers(0, len(genome) - length, n_queries)
    return [mutated_part(genome, start, length, rng) for start in starts.tolist()], Partition.pack([genome])


def bases_case(n_bases: int, n_queries: int, length: int) -> tuple[list[QueryProfile], Partition]:
    """Random contigs, and mutated parts of them as queries."""
    rng = np.random.default_rng(3)
    contigs = [rng.integers(0, 4, n_bases // 20, dtype=np.uint8) for _ in range(20)]
    profiles = []
    for _ in range(n_queries):
        contig = contigs[int(rng.integers(0, 20))]
        profiles.append(mutated_part(contig, int(rng.integers(0, len(contig) - length)), length, rng))
    return profiles, Partition.pack(contigs)


def protein_case(
    n_short: int, n_long: int, query_length: int = 2_005, *, own: bool = False
) -> tuple[list[QueryProfile], Partition]:
    """A query, and random proteins; with ``own``, the long proteins contain the query."""
    rng = np.random.default_rng(2)
    lengths = [*rng.lognormal(5.66, 0.66, n_short).clip(20, 3000).astype(int), *rng.integers(8_000, 35_000, n_long)]
    subjects = [rng.integers(0, 20, length).astype(np.uint8) for length in lengths]
    query = rng.integers(0, 20, query_length).astype(np.uint8)
    if own:
        for subject in subjects[n_short:]:
            place = int(rng.integers(0, len(subject) - query_length))
            subject[place : place + query_length] = query
    return [sequence_profile(query, default_scheme(PROTEIN))], Partition.pack(subjects)


def ends_seconds(
    engine: CudaEngine, profiles: list[QueryProfile], partition: Partition, blocks: list[ScoreBlock]
) -> float:
    """Time in seconds to compute the ends for the best subjects of each profile."""
    start = time.perf_counter()
    for profile, block in zip(profiles, blocks, strict=True):
        best = np.sort(np.argsort(block.score)[-ALIGNED:])
        subjects = partition[best]
        whole = [(0, length) for length in subjects.lengths.tolist()]
        indices = subjects.subject_index.tolist()
        columns = [block.within.get(*each) for each in zip(indices, whole, strict=True)]  # as in alignments.py
        begin, n_columns = np.array(columns).T
        starts = subjects.starts + begin.astype(np.uint64)
        subjects = replace(subjects, starts=starts, lengths=n_columns.astype(np.uint32))
        if engine.ends(profile, subjects, block.score[best]) is None:
            raise SystemExit("the device has no memory left to find ends")
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--genome")
    parser.add_argument("--bases", type=int, default=100_000_000, help="bases of the random contigs; 0 for none")
    parser.add_argument("--queries", type=int, default=40)
    parser.add_argument("--query-length", type=int, default=200)
    parser.add_argument("--short", type=int, default=100_000, help="short proteins of the mixed case")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()

    proteins = {
        "long": protein_case(0, 25),
        "long-own": protein_case(0, 25, own=True),
        "mixed": protein_case(options.short, 25),
        "short": protein_case(options.short, 0),
        "mixed-144": protein_case(options.short, 25, 144),
        "short-144": protein_case(options.short, 0, 144),
    }
    dna = {}
    if options.genome:
        dna["genome"] = genome_case(options.genome, options.queries, options.query_length)
    if options.bases:
        dna["bases"] = bases_case(options.bases, options.queries, options.query_length)
        dna["bases-1000"] = bases_case(options.bases, options.queries // 4, 1_000)
    in_place = PlanOptions(gathered_residues=2**62)
    runs = [(name, case, None, PlanOptions()) for name, case in [*proteins.items(), *dna.items()]]
    runs += [(f"{name} floor", case, DNA_FLOOR, PlanOptions()) for name, case in dna.items()]
    runs += [(f"{name} in place", case, None, in_place) for name, case in dna.items()]
    runs += [(f"{name} in place floor", case, DNA_FLOOR, in_place) for name, case in dna.items()]
    rows = []
    for name, (profiles, partition), floor, plan_options in runs:
        floors = None if floor is None else [floor] * len(profiles)
        with CudaEngine(options=plan_options) as engine:
            facts = engine.device.facts
            walls, kernels = [], []
            for _ in range(options.repeat + 1):
                engine.timing.reset()
                start = time.perf_counter()
                blocks = engine.score(score_requests(profiles, floors), partition)
                walls.append(time.perf_counter() - start)
                kernels.append(engine.timing.seconds)
            ended = None
            if floor is None:
                ends = [ends_seconds(engine, profiles, partition, blocks) for _ in range(min(options.repeat, 2) + 1)]
                ended = float(np.median(ends[1:]))
            wall, kernel = (float(np.median(seconds[1:])) for seconds in (walls, kernels))
            cells = partition.n_residues * sum(profile.length for profile in profiles)
            row: dict[str, Any] = {
                "case": name,
                "wall_seconds": wall,
                "kernel_seconds": kernel,
                "wall_gcups": cells / wall / 1e9,
                "kernel_gcups": cells / kernel / 1e9,
                "ends_seconds": ended,
            }
            if options.check:
                with CpuEngine(threads=usable_cores()) as cpu:
                    wanted = cpu.score(score_requests(profiles, floors), partition)
                wrong = sum(
                    int((one.score != other.score).sum()) if len(one) == len(other) else max(len(one), len(other))
                    for one, other in zip(blocks, wanted, strict=True)
                )
                row["differ_from_cpu"] = wrong
            rows.append(row)
            same = f"  {row['differ_from_cpu']} scores differ from the CPU's" if options.check else ""
            times = f"{wall * 1e3:10.2f} ms{row['wall_gcups']:8.0f} GCUPS"
            times += f"   kernels{kernel * 1e3:10.2f} ms{row['kernel_gcups']:8.0f} GCUPS"
            times += "" if ended is None else f"   ends{ended * 1e3:10.2f} ms"
            print(f"{name:<26}{times}{same}", flush=True)
    result = {**header("long subjects"), "device": facts.name, "driver": facts.driver, "rows": rows}
    write_result(result, options.out)


if __name__ == "__main__":
    main()
