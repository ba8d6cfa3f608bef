"""Measures whether the CPU's upper bound (docs/design/bound.md) ever costs time: short and biased queries.

    python benchmarks/benchmark_biased.py SUBJECTS.fasta QUERIES.fasta [--instruction-set auto] [--rounds 9] [--share 1]

The queries are 20 peptides of 8 to 30 residues, cut out of QUERIES.fasta, one by one and all in one call, and four
sequences of biased composition: a coiled coil, collagen, a glutamine repeat and a mucin repeat. For these, a bound
decides least, or the choice of a kernel costs most. Each is scored with one thread and the floors of a search with
E-values up to 10, with exact scores only and with the bound of the engine's choice. The two take turns, so that they
meet the same load; the time is the CPU time of enough repetitions for a quarter of a second. Both must report the same
hits; the script checks it.

Each line has the time with the bound divided by that without it, from the least times and as the median of the rounds;
above 1, the bound costs time. ``--out`` writes all times as JSON.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path

import numpy as np
from provenance import header, write_result

from swsearch.bench.workloads import Workload, profiles_of, search_floor, timed, workload_of_file
from swsearch.engine.cpu.engine import CpuEngine, usable_instruction_sets
from swsearch.hits.score_block import ScoreBlock
from swsearch.search.score_batches import requests_by_length
from swsearch.sequences.alphabet import PROTEIN
from swsearch.sequences.fasta import read_sequences
from swsearch.typing import Codes, LengthRange

REPEATS = {
    "coiled coil": "LKELEDKVEELLSKNYHLENEVARLKKLVGE" * 4,
    "collagen": "GPPGPAGPKGEQGPAGPPGFQGLPGPAGPPGEAGKPGEQGVPGDLGAPGPSGARG" * 4,
    "glutamines": "Q" * 60,
    "mucin": "PTSTTPITTTTTVTPTPTPTGTQTPTTTPISTTTT" * 6,
}
N_PEPTIDES = 20
SECONDS = 0.25


def peptides(sequences: Sequence[Codes]) -> list[Codes]:
    """Pieces of 8 to 30 residues, one from each sequence in turn."""
    lengths = np.linspace(8, 30, N_PEPTIDES).astype(int)
    found = []
    for number, length in enumerate(lengths):
        sequence = sequences[number % len(sequences)]
        first = number * 7 % (len(sequence) - length + 1)
        found.append(sequence[first : first + length])
    return found


def searcher(workload: Workload, queries: Sequence[Codes], engine: CpuEngine) -> Callable[[], list[ScoreBlock]]:
    """A function that scores the queries and returns the subjects of each that reach their floors."""
    profiles = [profile for query in queries for profile in profiles_of(workload, query)]

    @cache
    def floors(lengths: LengthRange | None = None) -> list[int]:
        return [search_floor(workload, len(query), lengths) for query in queries]

    return lambda: engine.score(requests_by_length(profiles, workload.partition, floors), workload.partition)


def check_same(found: Sequence[ScoreBlock], expected: Sequence[ScoreBlock]) -> None:
    """End the script if a query has other hits."""
    for block, exact in zip(found, expected, strict=True):
        if not (np.array_equal(block.subject_index, exact.subject_index) and np.array_equal(block.score, exact.score)):
            raise SystemExit("the bound changes the hits")


def repeat(work: Callable[[], object], times: int) -> None:
    """Call ``work`` a number of times."""
    for _ in range(times):
        work()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("subjects", type=Path)
    parser.add_argument("queries", type=Path)
    parser.add_argument("--instruction-set", default=usable_instruction_sets()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--share", type=int, default=1, help="measure every n-th subject (1)")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    whole = workload_of_file(options.subjects)
    part = whole.partition[np.arange(0, len(whole.partition), options.share)]
    workload = Workload(whole.name, part, whole.scheme)
    short = peptides(sorted((record.codes for record in read_sequences(options.queries)), key=len))
    cases = {f"peptide of {len(query)}": [query] for query in short}
    cases["20 peptides at once"] = short
    cases |= {name: [PROTEIN.encode(text)] for name, text in REPEATS.items()}
    exact = CpuEngine(1, options.instruction_set, band_rows=0)
    chosen = CpuEngine(1, options.instruction_set)
    print(f"{len(part)} subjects, {part.n_residues} residues, {options.instruction_set}")
    rows = []
    for name, queries in cases.items():
        searches = {"exact": searcher(workload, queries, exact), "bound": searcher(workload, queries, chosen)}
        check_same(searches["bound"](), searches["exact"]())
        repeats = max(1, round(SECONDS / timed(searches["exact"])[1]))
        seconds: dict[str, list[float]] = {program: [] for program in searches}
        for _ in range(options.rounds):
            for program, search in searches.items():
                seconds[program].append(timed(partial(repeat, search, repeats))[1] / repeats)
        ratios = [bound / without for bound, without in zip(seconds["bound"], seconds["exact"], strict=True)]
        least = min(seconds["bound"]) / min(seconds["exact"])
        print(f"{name:<20} {least:6.3f} {statistics.median(ratios):6.3f}", flush=True)
        rows.append({"query": name, "rows": sum(map(len, queries)), "seconds": seconds})
    result = {
        **header("biased"),
        "instruction_set": options.instruction_set,
        "subjects": len(part),
        "residues": part.n_residues,
        "measurements": rows,
    }
    write_result(result, options.out)


if __name__ == "__main__":
    main()
