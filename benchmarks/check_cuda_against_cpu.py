"""Comparison of all scores of the CUDA and CPU engines, on data too large for the tests; needs an NVIDIA GPU.

    python benchmarks/check_cuda_against_cpu.py QUERIES.fasta DB [DB…] [--devices 0,1] [--fragments GENOME.fasta]

Protein databases are searched with the queries under BLOSUM62 11/1, BLOSUM50 13/2, PAM250 14/2 and a linear gap of 6;
DNA databases with 20 fragments of ``--fragments``, both strands, under 2/-3 5/2 and a linear gap of 4. The script
prints one line of JSON per database and scheme, and exits with 1 if a score differs.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np

from swsearch.database.opening import open_database
from swsearch.engine.cpu.engine import CpuEngine
from swsearch.engine.protocol import score_requests
from swsearch.engine.registry import Machine, open_engine
from swsearch.query.profile import QueryProfile, sequence_profile
from swsearch.scoring.matrix import match_mismatch, named_matrix
from swsearch.scoring.scheme import GapPenalty, ScoringScheme
from swsearch.sequences.alphabet import DNA, PROTEIN, reverse_complement
from swsearch.sequences.fasta import read_sequences
from swsearch.threads import usable_cores

PROTEIN_SCHEMES = [("BLOSUM62", 11, 1), ("BLOSUM50", 13, 2), ("PAM250", 14, 2), ("BLOSUM62", 0, 6)]
DNA_GAPS = [(5, 2), (0, 4)]
N_FRAGMENTS = 20
SEED = 1


def protein_profiles(queries: Path, scheme: ScoringScheme) -> list[QueryProfile]:
    return [sequence_profile(record.codes, scheme) for record in read_sequences([queries], PROTEIN)]


def fragment_profiles(genome: Path, scheme: ScoringScheme) -> list[QueryProfile]:
    random = np.random.default_rng(SEED)
    record = next(iter(read_sequences([genome], DNA)))
    profiles = []
    for _ in range(N_FRAGMENTS):
        length = int(random.integers(100, 1001))
        start = int(random.integers(0, len(record) - length))
        codes = np.array(record.codes[start : start + length])
        changed = random.random(length) < 0.15
        codes[changed] = random.integers(0, 4, int(changed.sum()))
        profiles += [sequence_profile(codes, scheme), sequence_profile(reverse_complement(codes), scheme)]
    return profiles


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("queries", type=Path)
    parser.add_argument("databases", nargs="+", type=Path)
    parser.add_argument("--devices", default="0")
    parser.add_argument("--fragments", type=Path)
    parser.add_argument("--first-scheme-only", action="store_true")
    arguments = parser.parse_args()
    devices = [int(part) for part in arguments.devices.split(",")]
    n_different = 0
    with open_engine(Machine("cuda", devices=devices))[0] as cuda, CpuEngine(usable_cores()) as cpu:
        for path in arguments.databases:
            with open_database(path) as database:
                if database.alphabet is PROTEIN:
                    schemes = [ScoringScheme(named_matrix(name), GapPenalty(*gap)) for name, *gap in PROTEIN_SCHEMES]
                else:
                    schemes = [ScoringScheme(match_mismatch(2, -3), GapPenalty(*gap)) for gap in DNA_GAPS]
                for scheme in schemes[:1] if arguments.first_scheme_only else schemes:
                    if database.alphabet is PROTEIN:
                        profiles = protein_profiles(arguments.queries, scheme)
                    else:
                        profiles = fragment_profiles(arguments.fragments, scheme)
                    compared = different = 0
                    seconds = {"cuda": 0.0, "cpu": 0.0}
                    for partition in database.partitions():
                        scored = {}
                        for name, engine in (("cuda", cuda), ("cpu", cpu)):
                            began = time.perf_counter()
                            scored[name] = engine.score(score_requests(profiles), partition)
                            seconds[name] += time.perf_counter() - began
                        for one, other in zip(scored["cuda"], scored["cpu"], strict=True):
                            compared += len(other)
                            if np.array_equal(one.subject_index, other.subject_index):
                                different += int((one.score != other.score).sum())
                            else:
                                different += len(other)
                    n_different += different
                    print(
                        json.dumps(
                            {
                                "database": path.name,
                                "scheme": str(scheme),
                                "profiles": len(profiles),
                                "compared": compared,
                                "different": different,
                                "cuda_seconds": round(seconds["cuda"], 3),
                                "cpu_seconds": round(seconds["cpu"], 3),
                            }
                        ),
                        flush=True,
                    )
    return int(n_different > 0)


if __name__ == "__main__":
    sys.exit(main())
