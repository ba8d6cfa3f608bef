"""Comparison of the scores of complete searches with independent programs, on data too large for the tests.

    python benchmarks/check_against_peers.py protein QUERIES.fasta PROTEINS.fasta[.gz]
        the top 50 of each query against ssearch36 (BLOSUM62, gap 11 + k)
    python benchmarks/check_against_peers.py dna GENOME.fasta[.gz]
        50 mutated fragments of the genome, both strands, against parasail (2/-3, gap 5 + 2k)

The script prints one line of JSON and exits with 1 if a result differs.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import swsearch
from swsearch.sequences.alphabet import DNA, reverse_complement
from swsearch.sequences.fasta import read_sequences
from swsearch.sequences.record import SequenceRecord

TOP = 50
N_FRAGMENTS = 50
SEED = 1


def ssearch_scores(queries: Path, library: Path) -> list[dict[str, int]]:
    """Raw scores by subject identifier, of each query; as many subjects as ssearch36 lists."""
    listing = subprocess.run(
        ["ssearch36", "-q", "-T", "2", "-s", "BL62", "-f", "-11", "-g", "-1", "-b", "=1000", "-d", "0", "-E", "1e9",
         queries, library],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    scores: list[dict[str, int]] = []
    listed = False
    for line in listing.splitlines():
        if line.startswith("The best scores are"):
            scores.append({})
            listed = True
        elif not line.strip() or ">>>" in line:
            listed = False
        elif listed:
            scores[-1][line.split()[0]] = int(line.rpartition(")")[2].split()[0])
    return scores


def check_protein(queries: Path, proteins: Path, folder: Path) -> dict[str, int]:
    swsearch.build_database([proteins], folder / "db")
    library = folder / "library.fasta"
    swsearch_records = read_sequences([proteins], None)
    with library.open("w") as stream:
        stream.writelines(f">{record.identifier}\n{record.letters}\n" for record in swsearch_records)
    peer = ssearch_scores(queries, library)
    outcome = {"queries": 0, "hits": 0, "compared": 0, "different_scores": 0}
    with swsearch.open_searcher(
        folder / "db", swsearch.SearchOptions(top=TOP, evalue=float("inf"), composition="none")
    ) as searcher:
        records = list(read_sequences(queries, searcher.database.alphabet))
        for result in searcher.search(records):
            expected = peer[result.number]
            outcome["queries"] += 1
            outcome["hits"] += len(result.hits)
            for hit in result.hits:
                score = expected.get(hit.subject_header.split()[0])
                outcome["compared"] += score is not None
                outcome["different_scores"] += score is not None and score != hit.score
    return outcome


def mutated_fragments(genome: SequenceRecord) -> list[SequenceRecord]:
    """Fragments of 200 to 1,000 bases with 10 % substitutions and 2 % gaps, every second one from the other strand."""
    random = np.random.default_rng(SEED)
    fragments = []
    for number in range(N_FRAGMENTS):
        length = int(random.integers(200, 1001))
        start = int(random.integers(0, len(genome) - length))
        codes = np.array(genome.codes[start : start + length])
        changed = random.random(length) < 0.1
        codes[changed] = random.integers(0, 4, int(changed.sum()))
        codes = codes[random.random(length) >= 0.01]
        places = np.flatnonzero(random.random(len(codes)) < 0.01)
        codes = np.insert(codes, places, random.integers(0, 4, len(places)).astype(np.uint8))
        fragments.append(SequenceRecord(f"f{number}", reverse_complement(codes) if number % 2 else codes, DNA))
    return fragments


def check_dna(genome: Path, folder: Path) -> dict[str, int]:
    import parasail

    swsearch.build_database([genome], folder / "db", DNA)
    matrix = parasail.matrix_create("ACGT", 2, -3)
    outcome = {"queries": 0, "hits": 0, "compared": 0, "different_scores": 0}
    with swsearch.open_searcher(folder / "db", swsearch.SearchOptions(top=TOP, composition="none")) as searcher:
        subject = searcher.database.record(0)
        fragments = mutated_fragments(subject)
        for fragment, result in zip(fragments, searcher.search(fragments), strict=True):
            strands = {"plus": fragment.letters, "minus": DNA.decode(reverse_complement(fragment.codes))}
            expected = {
                strand: parasail.sw_striped_32(letters, subject.letters, 7, 2, matrix).score
                for strand, letters in strands.items()
            }
            outcome["queries"] += 1
            outcome["hits"] += len(result.hits)
            outcome["compared"] += 1
            best = result.hits[0]
            outcome["different_scores"] += (best.score, expected[best.strand]) != (max(expected.values()), best.score)
    return outcome


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(dest="kind", required=True)
    protein = kinds.add_parser("protein")
    protein.add_argument("queries", type=Path)
    protein.add_argument("proteins", type=Path)
    dna = kinds.add_parser("dna")
    dna.add_argument("genome", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if arguments.kind == "protein":
            outcome = check_protein(arguments.queries, arguments.proteins, folder)
        else:
            outcome = check_dna(arguments.genome, folder)
    print(json.dumps({"check": arguments.kind, **outcome}))
    return int(outcome["different_scores"] > 0 or outcome["compared"] == 0)


if __name__ == "__main__":
    sys.exit(main())
