"""Measures what the upper bound (docs/design/bound.md) saves on the CPU, relative to a plain loop over all cells.

    python benchmarks/benchmark_bounds.py SUBJECTS.fasta QUERIES.fasta [--instruction-set auto] [--rounds 5] [--share 8]
        [--iterations 3]

Every query is scored with one thread and the floors of a search with E-values up to 10: by the plain loop
(``plain_loop.cpp``), by the engine with exact scores only (bands of 0 rows), with bounds from exact cells (1 row), with
each other size of bands, and with the engine's own choice. The programs take turns, so that all meet the same load; the
time is the CPU time. Rates are effective: all cells divided by the time, although bounds decide most subjects without
an exact score. All programs must report the same hits; the script checks it.

Each line has the least and the median time as rates in GCUPS, and the ratio of the rate to that of the plain loop, from
the least times and as the median of the rounds. The last lines weight the queries by their cells. ``--share 8`` takes
every eighth subject, with the floors of all of them. ``--out`` writes all times as JSON.

With ``--iterations 3``, the engine also scores the profile that each query has in the third round of a search of all
subjects; queries whose search ends in the first round are left out. The programs that score profiles are named
``profile …``, and the last lines then also have their rates divided by those of the sequences.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from plain_loop import PlainLoop
from provenance import header, write_result

import swsearch
from swsearch.bench.workloads import Workload, profiles_of, search_floor, timed, workload_of_file
from swsearch.engine.cpu.engine import BAND_ROWS, CpuEngine, usable_instruction_sets
from swsearch.hits.score_block import ScoreBlock
from swsearch.query.profile import QueryProfile, with_other_letters
from swsearch.search.score_batches import requests_by_length
from swsearch.sequences.alphabet import CODE_MASK
from swsearch.sequences.fasta import read_sequences
from swsearch.typing import Codes, LengthRange

EXACT = "exact"
PROFILE = "profile "


def profiles_of_rounds(
    subjects: Path, queries: Path, whole: Workload, iterations: int
) -> dict[bytes, list[QueryProfile]]:
    """The profiles of the last rounds of searches, by the letters of the query."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "subjects.db"
        swsearch.build_database(subjects, database)
        results = swsearch.search_database(
            queries, database, swsearch.SearchOptions(iterations=iterations), engine="cpu"
        )
        for record, result in zip(read_sequences(queries), results, strict=True):
            if result.pssm is not None:
                codes = (record.codes & CODE_MASK).astype(np.uint8)
                table = with_other_letters(result.pssm.scores.astype(np.int64), codes, whole.scheme.matrix)
                rows = np.arange(len(codes), dtype=np.int32)
                found[record.codes.tobytes()] = [QueryProfile(rows, table, whole.scheme.gap)]
    return found


def programs(
    whole: Workload, part: Workload, query: Codes, profiles: list[QueryProfile], instruction_set: str
) -> dict[str, Callable[[], ScoreBlock | None]]:
    """The engine with each kind of bands; the programs return the subjects that reach their floors."""

    def floors(lengths: LengthRange | None = None) -> list[int]:
        key = (len(query), lengths)
        if key not in known:
            known[key] = search_floor(whole, len(query), lengths)
        return [known[key]] * len(profiles)

    known: dict[tuple[int, LengthRange | None], int] = {}

    def engine_with(band_rows: int | None) -> Callable[[], ScoreBlock]:
        engine = CpuEngine(1, instruction_set, band_rows=band_rows)
        return lambda: engine.score(requests_by_length(profiles, part.partition, floors), part.partition)[0]

    made: dict[str, Callable[[], ScoreBlock | None]] = {EXACT: engine_with(0)}
    made |= {f"bands of {rows}": engine_with(rows) for rows in BAND_ROWS}
    made["chosen"] = engine_with(None)
    return made


def run_plain(loop: PlainLoop, part: Workload, query: Codes) -> None:
    """Run the plain loop, whose scores are discarded because it has no floors."""
    loop.scores(part, query)


def run_timed(run: Callable[[], ScoreBlock | None], seconds: list[float]) -> ScoreBlock | None:
    """What a program returns; its CPU time is added to ``seconds``."""
    found: list[ScoreBlock | None] = []
    seconds.append(timed(lambda: found.append(run()))[1])
    return found[0]


def check_same(blocks: dict[str, ScoreBlock | None]) -> None:
    """End the script if two programs report different hits of a sequence, or of its profile."""
    for name, block in blocks.items():
        if block is None:
            continue
        expected = blocks[PROFILE + EXACT if name.startswith(PROFILE) else EXACT]
        assert expected is not None
        if not (
            np.array_equal(block.subject_index, expected.subject_index) and np.array_equal(block.score, expected.score)
        ):
            raise SystemExit(f"{name} reports other hits than {EXACT}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("subjects", type=Path)
    parser.add_argument("queries", type=Path)
    parser.add_argument("--instruction-set", default=usable_instruction_sets()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--share", type=int, default=8, help="measure every n-th subject (8)")
    parser.add_argument("--lengths", type=int, nargs="+", help="only the queries of these lengths")
    parser.add_argument("--iterations", type=int, default=1, help="also measure profiles of the last of so many rounds")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    whole = workload_of_file(options.subjects)
    rows_of_part = np.arange(0, len(whole.partition), options.share)  # the plain loop needs contiguous arrays
    part = Workload(whole.name, whole.partition[rows_of_part], whole.scheme)
    queries = sorted((record.codes for record in read_sequences(options.queries)), key=len)
    loop = PlainLoop(options.instruction_set)
    of_rounds = {}
    if options.iterations > 1:
        of_rounds = profiles_of_rounds(options.subjects, options.queries, whole, options.iterations)
        queries = [query for query in queries if query.tobytes() in of_rounds]
    rows = []
    sums: dict[str, list[float]] = {}
    print(f"{len(part.partition)} subjects, {part.partition.n_residues} residues, {options.instruction_set}")
    for query in queries:
        if options.lengths and len(query) not in options.lengths:
            continue
        found: dict[str, Callable[[], ScoreBlock | None]] = {"plain loop": partial(run_plain, loop, part, query)}
        found |= programs(whole, part, query, profiles_of(whole, query), options.instruction_set)
        if of_rounds:
            of_profile = programs(whole, part, query, of_rounds[query.tobytes()], options.instruction_set)
            found |= {PROFILE + name: run for name, run in of_profile.items()}
        seconds: dict[str, list[float]] = {name: [] for name in found}
        for _ in range(options.rounds):
            blocks = {name: run_timed(run, seconds[name]) for name, run in found.items()}
            check_same(blocks)
        cells = len(query) * part.partition.n_residues
        for name, times in seconds.items():
            ratios = [plain / time for plain, time in zip(seconds["plain loop"], times, strict=True)]
            least, median = min(times), statistics.median(times)
            total = sums.setdefault(name, [0.0, 0.0])
            total[0] += least
            total[1] += median
            rows.append({"query_length": len(query), "program": name, "seconds": times})
            rates = f"{cells / least / 1e9:7.1f} {cells / median / 1e9:7.1f}"
            relative = f"{min(seconds['plain loop']) / least:6.2f} {statistics.median(ratios):6.2f}"
            print(f"{len(query):>6} {name:<12} {rates} {relative}", flush=True)
    plain = sums["plain loop"]
    for name, (least, median) in sums.items():
        of_sequences = sums[name.removeprefix(PROFILE)][0] / least
        compared = f" {of_sequences:6.2f} of the sequences" if name.startswith(PROFILE) else ""
        print(f"   all {name:<12} {'':15} {plain[0] / least:6.2f} {plain[1] / median:6.2f}{compared}")
    result = {
        **header("bounds"),
        "instruction_set": options.instruction_set,
        "subjects": len(part.partition),
        "residues": part.partition.n_residues,
        "iterations": options.iterations,
        "measurements": rows,
    }
    write_result(result, options.out)


if __name__ == "__main__":
    main()
