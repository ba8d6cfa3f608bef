"""Comparison of simulated with published parameters: λ, K and the resulting E-values, scheme by scheme.

    python benchmarks/benchmark_simulation.py

The script simulates schemes whose parameters are published by NCBI as if they were not. It writes
``benchmarks/results/simulation.json``, with these values for each scheme: both λ, K and a, CPU seconds, and the ratio
of simulated to published E-values of two sequences of 300 residues (DNA: 1,000 bases) in a database of 10 million
residues, at the scores with published E-values nearest to 1 and to 1e-10. Except for the seconds, the numbers do not
depend on the machine.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np

from swsearch.scoring.karlin_altschul import Statistics
from swsearch.scoring.matrix import match_mismatch, named_matrix
from swsearch.scoring.published_parameters import estimated_statistics, find_statistics
from swsearch.scoring.scheme import GapPenalty, ScoringScheme
from swsearch.scoring.ungapped import matrix_parameters
from swsearch.search.simulation import simulate
from swsearch.sequences.alphabet import PROTEIN

PROTEIN_SCHEMES = (
    ("BLOSUM62", 11, 1), ("BLOSUM62", 11, 2), ("BLOSUM62", 9, 1), ("BLOSUM62", 8, 2), ("BLOSUM62", 6, 2),
    ("BLOSUM45", 14, 2), ("BLOSUM50", 13, 2), ("BLOSUM90", 10, 1), ("PAM30", 9, 1), ("PAM70", 10, 1), ("PAM250", 14, 2),
)  # fmt: skip
DNA_SCHEMES = (
    ((2, -3), (5, 2)), ((1, -2), (2, 2)), ((1, -2), (1, 1)), ((1, -3), (2, 2)), ((1, -1), (3, 2)), ((4, -5), (12, 8)),
)  # fmt: skip
SEARCH_SPACE = 10_000_000


def compare(scheme: ScoringScheme) -> dict[str, object]:
    """Published and simulated parameters of one scheme."""
    published, ungapped = find_statistics(scheme), matrix_parameters(scheme.matrix)
    assert isinstance(published, Statistics)
    assert ungapped is not None
    began = time.process_time()
    found = simulate(scheme, threads=1)
    seconds = time.process_time() - began
    simulated = estimated_statistics(scheme, ungapped, found.lam, found.k, found.a, "simulated")
    length = 300 if scheme.alphabet is PROTEIN else 1000
    scores = np.arange(2 * published.score_step, 2000, published.score_step)
    theirs = published.evalue(scores, length, length, SEARCH_SPACE)
    ours = simulated.evalue(scores, length, length, SEARCH_SPACE)
    ratios = {}
    for evalue in (1.0, 1e-10):
        place = int(np.argmin(abs(np.log(np.maximum(theirs, 1e-300)) - np.log(evalue))))
        ratios[f"{evalue:g}"] = round(float(ours[place] / theirs[place]), 3)
    return {
        "lambda": {"published": published.lam, "simulated": found.lam},
        "k": {"published": published.k, "simulated": found.k},
        "a": {"published": published.a, "simulated": found.a},
        "evalue_ratio": ratios,
        "growth": found.growth,
        "cpu_seconds": round(seconds, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "simulation.json")
    options = parser.parse_args()
    schemes = [ScoringScheme(named_matrix(name), GapPenalty(*gap)) for name, *gap in PROTEIN_SCHEMES]
    schemes += [ScoringScheme(match_mismatch(*pair), GapPenalty(*gap)) for pair, gap in DNA_SCHEMES]
    rows: dict[str, object] = {}
    for scheme in schemes:
        rows[f"{scheme.matrix.name}, {scheme.gap}"] = row = compare(scheme)
        print(f"{scheme.matrix.name}, {scheme.gap}", json.dumps(row), flush=True)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps({"schemes": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
