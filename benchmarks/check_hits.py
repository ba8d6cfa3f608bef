"""Comparison of the hits of complete searches with and without the bound, on the CPU and on GPUs, over many options.

    python benchmarks/check_hits.py QUERIES.fasta PROTEINS.fasta GENOME.fasta [--engines cuda,cpu]

The expected hits are those of the CPU engine without a bound. They are compared, with all columns and with the number
of subjects that passed, with those of the CPU engine with its bound, and of the CUDA engine with the bound of its own
choice, with a bound of each number of rows in every batch, and without one. Databases are the proteins, synthetic
proteins with segments of the queries, and the genome in pieces; queries are those of the file, biased and short ones,
fragments of the genome, a profile, and models. The script prints a line of JSON for each database and set of options,
and exits with 1 if a hit differs.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import numpy as np
from benchmark_cuda import synthetic
from benchmark_search import write_fasta
from biased_queries import biased_queries

from swsearch.database.builder import build_database
from swsearch.database.opening import open_database
from swsearch.engine.cpu.engine import CpuEngine
from swsearch.engine.cuda.search.multi_gpu import CudaDevices
from swsearch.engine.cuda.search.plan import PlanOptions
from swsearch.engine.protocol import ScoreEngine
from swsearch.engine.registry import Machine
from swsearch.query.profile_files import read_profiles
from swsearch.scoring.matrix import named_matrix
from swsearch.search.options import SearchOptions
from swsearch.search.searcher import Searcher
from swsearch.sequences.alphabet import DNA, PROTEIN, reverse_complement
from swsearch.sequences.fasta import read_sequences
from swsearch.sequences.record import SequenceRecord
from swsearch.threads import usable_cores

ROOT: Final = Path(__file__).parents[1]
SEED: Final = 1
BAND_ROWS: Final = (5, 6, 8)
PIECE: Final = 2_000
"""Bases of a subject of the genome's database."""
ALL: Final = 1_000_000
"""More subjects than any of the databases has."""
FEW: Final = 12
"""Queries of all sets of options but the first of each database."""

PROTEIN_OPTIONS: Final[list[dict[str, Any]]] = [
    {},
    *({"evalue": evalue, "top": 200} for evalue in (1e-30, 1e-3, 1.0, 1e3, 1e6)),
    *({"evalue": math.inf, "top": top, "ties": ties} for top, ties in ((1, "cut"), (25, "all"), (400, "cut"))),
    {"evalue": 1e6, "top": ALL},
    {"evalue": 100.0, "min_score": 45},
    {"evalue": 1000.0, "min_bits": 25.0},
    {"min_identity": 35.0, "min_query_coverage": 30.0},
    {"evalue": math.inf, "top": 3, "min_alignment_length": 40},
    {"min_length": 100, "max_length": 600},
    {"mask": "tantan"},
    {"mask": "tantan", "mask_mode": "hard"},
    {"composition": "bias"},
    {"max_hsps": 4},
    {"matrix": "BLOSUM50", "gap_open": 13, "gap_extend": 2},
    {"matrix": "PAM250", "gap_open": 14, "gap_extend": 2},
    {"matrix": "BLOSUM62", "gap_open": 8, "gap_extend": 2},
    {"dbsize": 10**9},
    {"iterations": 3},
    {"iterations": 4, "inclusion_evalue": 0.1, "top": 200, "composition": "bias"},
    {"iterations": 2, "evalue": math.inf, "top": 5, "mask": "tantan"},
    {"sensitive": True},
    {"sensitive": True, "iterations": 3, "top": 200},
]
DNA_OPTIONS: Final[list[dict[str, Any]]] = [
    {},
    {"strand": "minus"},
    {"evalue": 1e-20},
    {"evalue": math.inf, "top": 5},
    {"match": 1, "mismatch": -3, "gap_open": 5, "gap_extend": 2},
    {"max_hsps": 3},
]


def biased_records() -> list[SequenceRecord]:
    """The queries of ``biased_queries.py``."""
    return [SequenceRecord(name.replace(" ", "_"), codes, PROTEIN) for name, codes in biased_queries()]


def fragments(genome: Path, count: int) -> list[SequenceRecord]:
    """Fragments of the genome with every tenth base replaced, every second one of the other strand."""
    rng = np.random.default_rng(SEED)
    record = next(iter(read_sequences([genome], DNA)))
    found = []
    for number in range(count):
        length = int(rng.integers(60, 900))
        start = int(rng.integers(0, len(record) - length))
        codes = np.array(record.codes[start : start + length])
        changed = rng.random(length) < 0.1
        codes[changed] = rng.integers(0, 4, int(changed.sum()))
        found.append(SequenceRecord(f"fragment_{number}", reverse_complement(codes) if number % 2 else codes, DNA))
    return found


def databases(arguments: argparse.Namespace, folder: Path) -> dict[str, Path]:
    """Paths of the indexed databases by name."""
    queries = [record.codes for record in read_sequences([arguments.queries], PROTEIN)]
    write_fasta(synthetic(arguments.n_synthetic, queries, SEED), folder / "synthetic.fasta")
    record = next(iter(read_sequences([arguments.genome], DNA)))
    with (folder / "pieces.fasta").open("w") as file:
        for start in range(0, len(record), PIECE):
            file.write(f">piece_{start}\n{DNA.decode(record.codes[start : start + PIECE + 300])}\n")
    sources = {"real": arguments.proteins, "synthetic": folder / "synthetic.fasta", "genome": folder / "pieces.fasta"}
    for name, source in sources.items():
        build_database([source], folder / f"{name}.db")
    return {name: folder / f"{name}.db" for name in sources}


def cases(arguments: argparse.Namespace) -> Iterator[tuple[str, str, dict[str, Any], Sequence[SequenceRecord]]]:
    """Name of the database and of the queries, options and queries of each comparison."""
    proteins = list(read_sequences([arguments.queries], PROTEIN))
    for database in ("real", "synthetic"):
        for number, options in enumerate(PROTEIN_OPTIONS):
            n_queries = 1 if options.get("top") == ALL else FEW if number else arguments.n_queries
            yield database, "file", options, proteins[:n_queries]
        yield database, "biased", {"evalue": 1000.0}, biased_records()
        yield database, "biased", {"evalue": math.inf, "top": 10}, biased_records()
        yield database, "profile", {"top": 100}, profile()
        yield database, "profile", {"evalue": math.inf}, profile()
        yield database, "models", {"sensitive": True, "top": 200}, models()
    for options in DNA_OPTIONS:
        yield "genome", "fragments", options, fragments(arguments.genome, 4 * FEW)
    yield "real", "fragments", {"translate": "query"}, fragments(arguments.genome, FEW)
    yield "real", "fragments", {"translate": "query", "evalue": math.inf, "top": 3}, fragments(arguments.genome, FEW)
    yield "genome", "file", {"translate": "subject"}, proteins[:FEW]
    yield "genome", "fragments", {"translate": "both"}, fragments(arguments.genome, FEW // 3)


def profile() -> list[SequenceRecord]:
    """The query that data/obg.sto describes."""
    return list(read_profiles(ROOT / "data" / "obg.sto", "stockholm", named_matrix("BLOSUM62")))


def models() -> list[SequenceRecord]:
    """The models of data/families.hmm.gz, which have gaps of their own."""
    return list(read_profiles(ROOT / "data" / "families.hmm.gz", "hmm", named_matrix("BLOSUM62")))


def engines(names: Sequence[str], stack: ExitStack) -> dict[str, ScoreEngine]:
    """The engines to compare by name; the first computes every score."""
    found: dict[str, ScoreEngine] = {"cpu, no bound": stack.enter_context(CpuEngine(usable_cores(), band_rows=0))}
    if "cpu" in names:
        found["cpu"] = stack.enter_context(CpuEngine(usable_cores()))
    if "cuda" in names:
        for rows in (None, 0, *BAND_ROWS):
            name = "cuda" if rows is None else f"cuda, bands of {rows}" if rows else "cuda, no bound"
            found[name] = stack.enter_context(CudaDevices([0], options=PlanOptions(band_rows=rows)))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("queries", type=Path)
    parser.add_argument("proteins", type=Path)
    parser.add_argument("genome", type=Path)
    parser.add_argument("--engines", default="cuda,cpu", help="the engines to compare, separated by commas")
    parser.add_argument("--queries", dest="n_queries", type=int, default=500, help="queries of the first comparison")
    parser.add_argument("--databases", default="real,synthetic,genome", help="the databases to search")
    parser.add_argument("--synthetic", dest="n_synthetic", type=int, default=40_000, help="synthetic proteins")
    arguments = parser.parse_args()
    n_different = 0
    with ExitStack() as stack:
        paths = databases(arguments, Path(stack.enter_context(tempfile.TemporaryDirectory())))
        opened = {name: stack.enter_context(open_database(path)) for name, path in paths.items()}
        compared = engines(arguments.engines.split(","), stack)
        chosen = arguments.databases.split(",")
        for name, asked, options, queries in (case for case in cases(arguments) if case[0] in chosen):
            expected: list[tuple[object, int]] = []
            different, seconds, bounded = {}, {}, {}
            n_scores = 0
            for engine_name, engine in compared.items():
                began = time.perf_counter()
                searcher = Searcher(
                    opened[name], engine, SearchOptions(**options), machine=Machine(threads=usable_cores())
                )
                results = list(searcher.search(queries))
                seconds[engine_name] = round(time.perf_counter() - began, 2)
                found = [(result.hits, result.n_passed) for result in results]
                expected = expected or found
                different[engine_name] = sum(one != other for one, other in zip(found, expected, strict=True))
                n_scores = sum(result.stats.n_scores for result in results)
                bounded[engine_name] = round(sum(result.stats.n_bounded for result in results) / n_scores, 4)
            n_different += sum(different.values())
            row = {
                "database": name,
                "queries": asked,
                "options": {key: str(value) for key, value in options.items()},
                "n_queries": len(queries),
                "scores": n_scores,
                "hits": sum(len(hits) for hits, _ in expected),
                "different_queries": sum(different.values()),
                "bounded": {name: share for name, share in bounded.items() if share},
                "seconds": seconds,
            }
            print(json.dumps(row), flush=True)
    return int(n_different > 0)


if __name__ == "__main__":
    sys.exit(main())
