"""A test of E-values of translated searches: chance hits per query of random and real DNA against shuffled proteins.

Each protein is a shuffled real one, so that no hit is a homolog; DNA is random, of 30, 50 and 65 % G+C, or a part of a
genome. At E <= x, the expected number of hits per query is x; with BLAST's count of a single frame, this number is
reached at 6x of these E-values.

    python benchmarks/calibrate_translated.py --protein swissprot.fasta.gz --genome ecoli.fasta.gz

The script prints one line per kind of DNA, and writes ``benchmarks/results/calibration-translated.json``.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

import dnaio
import numpy as np

import swsearch
from swsearch.sequences.alphabet import DNA, PROTEIN
from swsearch.sequences.record import SequenceRecord

THRESHOLDS = (0.1, 1.0, 10.0)
FRAMES = 6


def shuffled_proteins(path: Path, count: int, rng: np.random.Generator, target: Path) -> None:
    """A database of ``count`` proteins, selected at random from a file and shuffled."""
    with dnaio.open(path) as records:
        sequences = [record.sequence for record in records]
    chosen = rng.choice(len(sequences), min(count, len(sequences)), replace=False)
    fasta = target.with_suffix(".fasta")
    fasta.write_text("".join(f">p{n}\n{''.join(rng.permutation(list(sequences[n])))}\n" for n in chosen))
    swsearch.build_database([fasta], target, alphabet=PROTEIN)


def random_dna(rng: np.random.Generator, length: int, gc: float) -> SequenceRecord:
    at = (1 - gc) / 2
    return SequenceRecord("random", rng.choice(4, size=length, p=[at, gc / 2, gc / 2, at]).astype(np.uint8), DNA)


def hits_a_query(database: Path, queries: list[SequenceRecord]) -> dict[str, float]:
    """Mean number of subjects with E at most x, and at most 6x, for each threshold x."""
    limits = {f"E<={x:g}": x for x in THRESHOLDS} | {f"one frame's E<={x:g}": x * FRAMES for x in THRESHOLDS}
    options = swsearch.SearchOptions(translate="query", evalue=max(limits.values()), top=10**6, composition="none")
    counts = dict.fromkeys(limits, 0)
    for result in swsearch.search_database(queries, database, options, engine="cpu"):
        for hit in result.hits:
            for name, limit in limits.items():
                counts[name] += hit.evalue is not None and hit.evalue <= limit
    return {name: round(count / len(queries), 3) for name, count in counts.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--protein", type=Path, required=True)
    parser.add_argument("--genome", type=Path, required=True)
    parser.add_argument("--proteins", type=int, default=4000)
    parser.add_argument("--queries", type=int, default=60)
    parser.add_argument("--length", type=int, default=900)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "calibration-translated.json")
    options = parser.parse_args()

    rng = np.random.default_rng(6)
    with dnaio.open(options.genome) as records:
        genome = "".join(record.sequence for record in records)
    places = rng.integers(0, len(genome) - options.length, options.queries)
    kinds = {f"{gc:.0%} G+C": [random_dna(rng, options.length, gc) for _ in places] for gc in (0.30, 0.50, 0.65)}
    kinds[f"pieces of {options.genome.name}"] = [
        SequenceRecord("piece", DNA.encode(genome[place : place + options.length]), DNA) for place in places
    ]
    rows = {}
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "shuffled.db"
        shuffled_proteins(options.protein, options.proteins, rng, database)
        for kind, queries in kinds.items():
            rows[kind] = hits_a_query(database, queries)
            print(f"{kind:<30}", rows[kind], flush=True)
    about = {name: getattr(options, name) for name in ("proteins", "queries", "length")}
    options.out.write_text(json.dumps({**about, "source": options.protein.name, "hits a query": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
