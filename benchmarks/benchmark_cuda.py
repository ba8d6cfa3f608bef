"""Throughput of the CUDA engine on a synthetic database, by query: with one query, and with two queries per word.

    python benchmarks/benchmark_cuda.py QUERIES.fasta [--modes single-all,pairs-floors] [--out RESULT.json]

The database is generated: proteins with log-normal lengths (mean 358, 20 to 3,000), residues at the frequencies of
Swiss-Prot, 25 subjects of 8,000 to 35,000, and a few mutated copies of each query, so that high scores occur. Giga cell
updates per second (GCUPS) are the product of query residues and subject residues, divided by the time of the kernels by
device events; wall time is that of the engine's call, including profile, launches and copying of scores. ``floors``
requests scores down to an E-value of about 10, as a search for the top hits does; ``all`` requests all scores;
``batch`` modes pass all queries to the engine at once. ``--memory-share 0.25`` allows the database a quarter of the
memory that it needs, so that it is streamed. ``--check`` compares this number of subjects per query, the highest scores
among them, with parasail.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import numpy as np
from provenance import compiler_of, header, write_result

from swsearch.database.partition import Partition
from swsearch.engine.cuda.runtime.pycuda_device import PyCudaDevice
from swsearch.engine.cuda.search.engine import CudaEngine
from swsearch.engine.cuda.search.subjects import device_bytes
from swsearch.engine.protocol import score_requests
from swsearch.query.profile import QueryProfile, sequence_profile
from swsearch.scoring.matrix import named_matrix
from swsearch.scoring.scheme import GapPenalty, ScoringScheme
from swsearch.sequences.alphabet import CODE_MASK, PROTEIN
from swsearch.sequences.fasta import read_sequences
from swsearch.typing import Codes

FREQUENCIES = {
    "A": 0.0825, "R": 0.0553, "N": 0.0406, "D": 0.0546, "C": 0.0138, "Q": 0.0393, "E": 0.0672, "G": 0.0707,
    "H": 0.0227, "I": 0.0591, "L": 0.0965, "K": 0.0580, "M": 0.0241, "F": 0.0386, "P": 0.0474, "S": 0.0665,
    "T": 0.0536, "W": 0.0110, "Y": 0.0292, "V": 0.0686,
}  # fmt: skip
MEAN_LENGTH, SIGMA = 358, 0.66
COPIES = 5


def read_queries(path: str) -> list[Codes]:
    """The residue codes of the proteins of a FASTA file."""
    return [record.codes for record in read_sequences(path, PROTEIN)]


def mutated(query: np.ndarray, rng: np.random.Generator, residues: np.ndarray, rate: float) -> np.ndarray:
    """A copy with substituted and deleted residues."""
    copy = query.copy()
    changed = rng.random(len(copy)) < rate
    copy[changed] = rng.choice(residues, int(changed.sum()))
    return copy[rng.random(len(copy)) >= rate / 10]


def synthetic(n_subjects: int, queries: list[Codes], seed: int, n_long: int = 25) -> Partition:
    rng = np.random.default_rng(seed)
    letters = np.array([PROTEIN.code(letter) for letter in FREQUENCIES], dtype=np.uint8)
    weights = np.array(list(FREQUENCIES.values()))
    lengths = rng.lognormal(np.log(MEAN_LENGTH) - SIGMA**2 / 2, SIGMA, n_subjects).clip(20, 3000).astype(np.int64)
    lengths = np.concatenate([lengths, rng.integers(8000, 35_000, n_long)])
    copies = [mutated(q, rng, letters, rate) for q in queries for rate in np.linspace(0.02, 0.8, COPIES)]
    all_lengths = np.concatenate([lengths, [len(copy) for copy in copies]]).astype(np.uint32)
    order = np.argsort(all_lengths, kind="stable").astype(np.uint32)
    stored = all_lengths[order]
    padded = -(-stored.astype(np.int64) // 16) * 16
    starts = np.concatenate([[0], np.cumsum(padded)[:-1]]).astype(np.int64)
    total = int(padded.sum())
    table = np.repeat(letters, np.diff(np.rint(np.cumsum([0, *weights]) / weights.sum() * 65536).astype(int)))
    residues = table[rng.integers(0, 65536, total + 64, dtype=np.uint16)]
    residues[total:] = 31
    for extra in range(16):
        places = starts + stored + extra
        residues[places[places < starts + padded]] = 31
    for place in np.flatnonzero(order >= len(lengths)):
        copy = copies[order[place] - len(lengths)]
        residues[starts[place] : starts[place] + len(copy)] = copy
    return Partition(residues, starts.astype(np.uint64), stored, order)


def differences(
    query: np.ndarray, scheme: ScoringScheme, partition: Partition, found: tuple[np.ndarray, np.ndarray], n: int
) -> tuple[int, int]:
    """Number of scores that differ from parasail's, and of those compared: the n / 2 highest and n / 2 random ones."""
    import parasail

    index, score = found
    letters = PROTEIN.letters[:24]
    matrix = parasail.matrix_create(letters, 1, -1)
    for row in range(24):
        for column in range(24):
            matrix[row, column] = int(scheme.matrix.scores[row, column])
    place_of = np.empty(len(partition), dtype=np.int64)
    place_of[partition.subject_index] = np.arange(len(partition))
    if not len(score):
        return 0, 0
    top = np.argsort(-score, kind="stable")[: n // 2]
    chosen = np.unique(np.concatenate([top, np.random.default_rng(0).integers(0, len(score), n // 2)]))
    profile = parasail.profile_create_sat(PROTEIN.decode(query & CODE_MASK), matrix)
    wrong = 0
    for row in chosen:
        subject = PROTEIN.decode(partition.codes(int(place_of[index[row]])) & CODE_MASK)
        result = parasail.sw_striped_profile_sat(profile, subject, scheme.gap.first, scheme.gap.extend)
        wrong += int(result.score) != int(score[row])
    return wrong, len(chosen)


def measure(
    engine: CudaEngine, groups: list[list[QueryProfile]], partition: Partition, floor: int | None, repeat: int
) -> tuple[list[dict[str, Any]], list[list[tuple[np.ndarray, np.ndarray]]]]:
    rows, results = [], []
    for profiles in groups:
        floors = None if floor is None else [floor] * len(profiles)
        engine.score(score_requests(profiles, floors), partition)
        kernel, wall = [], []
        for _ in range(repeat):
            engine.timing.reset()
            start = time.perf_counter()
            blocks = engine.score(score_requests(profiles, floors), partition)
            wall.append(time.perf_counter() - start)
            kernel.append(engine.timing.seconds)
        cells = partition.n_residues * sum(profile.length for profile in profiles)
        row = {
            "lengths": [profile.length for profile in profiles],
            "kernel_seconds": float(np.median(kernel)),
            "wall_seconds": float(np.median(wall)),
            "gcups": cells / float(np.median(kernel)) / 1e9,
            "wall_gcups": cells / float(np.median(wall)) / 1e9,
            "returned": [len(block) for block in blocks],
            "rescored": [block.n_rescored for block in blocks],
        }
        rows.append(row)
        results.append([(block.subject_index, block.score) for block in blocks])
        print(row["lengths"], *(round(row[key], 4) for key in ("kernel_seconds", "wall_seconds", "gcups")),
              row["returned"], row["rescored"], flush=True)  # fmt: skip
    return rows, results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("queries")
    parser.add_argument("--subjects", type=int, default=500_000)
    parser.add_argument("--long", type=int, default=25, help="subjects of 8,000 to 35,000")
    parser.add_argument("--modes", default="single-all,single-floors,pairs-all,pairs-floors")
    parser.add_argument("--floor", type=int, default=72, help="BLOSUM62 11/1: about E = 10 in this database")
    parser.add_argument("--gap", default="11/1")
    parser.add_argument("--matrix", default="BLOSUM62")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--check", type=int, default=0, help="subjects a query to compare with parasail")
    parser.add_argument("--memory-share", type=float, help="memory for the database, as a share of what it needs")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()

    queries = read_queries(options.queries)
    partition = synthetic(options.subjects, queries, options.seed, options.long)
    opening, extend = (int(part) for part in options.gap.split("/"))
    scheme = ScoringScheme(named_matrix(options.matrix), GapPenalty(opening, extend))
    profiles = [sequence_profile(codes, scheme) for codes in queries]
    order = np.argsort([profile.length for profile in profiles], kind="stable")
    singles = [[profiles[place]] for place in order]
    pairs = [[profiles[a], profiles[b]] for a, b in zip(order[::2], order[1::2], strict=True)]

    memory_limit = None if options.memory_share is None else int(device_bytes(partition) * options.memory_share)
    device = PyCudaDevice()
    report: dict[str, Any] = {
        **header("cuda engine"),
        "device": device.facts.name,
        "driver": device.facts.driver,
        "architecture": device.facts.architecture,
        "compiler": f"{compiler_of(device).name} {compiler_of(device).version}",
        "host": platform.processor() or platform.machine(),
        "subjects": len(partition),
        "residues": partition.n_residues,
        "scheme": str(scheme),
        "memory_share": options.memory_share,
    }
    with CudaEngine(device, memory_limit) as engine:
        for mode in options.modes.split(","):
            groups = singles if mode.startswith("single") else pairs
            if mode.startswith("batch"):
                groups = [[profiles[place] for place in order]]
            floor = options.floor if mode.endswith("floors") else None
            rows, results = measure(engine, groups, partition, floor, options.repeat)
            summary: dict[str, Any] = {
                "gcups_geometric_mean": geometric_mean([row["gcups"] for row in rows]),
                "wall_gcups_geometric_mean": geometric_mean([row["wall_gcups"] for row in rows]),
                "queries": rows,
            }
            if options.check:
                wrong = compared = 0
                for group, found in zip(groups, results, strict=True):
                    for profile, columns in zip(group, found, strict=True):
                        codes = queries[next(i for i, p in enumerate(profiles) if p is profile)]
                        bad, n = differences(codes, scheme, partition, columns, options.check)
                        wrong, compared = wrong + bad, compared + n
                summary["differences"], summary["compared"] = wrong, compared
            report[mode] = summary
            shown = {key: value for key, value in summary.items() if key != "queries"}
            print(mode, json.dumps(shown), flush=True)
    write_result(report, options.out)


if __name__ == "__main__":
    main()
