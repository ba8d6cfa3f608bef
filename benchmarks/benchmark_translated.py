"""Times of translated searches: translation of a genome, scoring of its frames, and several alignments of it.

    python benchmarks/benchmark_translated.py --genome ecoli.fasta.gz --queries data/queries.fasta

The script prints CPU time in seconds (of all threads) and memory; ``--max-hsps`` lists the numbers of alignments.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path

import swsearch
from swsearch.database.opening import open_database
from swsearch.database.translated_subjects import TranslatedSubjects
from swsearch.sequences.alphabet import DNA, PROTEIN
from swsearch.sequences.fasta import read_sequences
from swsearch.sequences.genetic_code import genetic_code


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--genome", type=Path, required=True)
    parser.add_argument("--queries", type=Path, required=True)
    parser.add_argument("--genetic-code", type=int, default=11)
    parser.add_argument("--max-hsps", type=int, nargs="+", default=[1, 10, 50])
    options = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "genome.db"
        swsearch.build_database([options.genome], database, alphabet=DNA)
        with open_database(database) as opened:
            n_bases = opened.n_residues
            began = time.process_time()
            subjects = TranslatedSubjects(opened, genetic_code(options.genetic_code))
            seconds = time.process_time() - began
        n_residues = sum(partition.n_residues for partition in subjects.partitions())
        print(f"translated {n_bases:,} bases to {n_residues:,} residues in {seconds:.2f} s")
        queries = list(read_sequences(options.queries, PROTEIN))
        for max_hsps in options.max_hsps:
            search = swsearch.SearchOptions(
                translate="subject", genetic_code=options.genetic_code, max_hsps=max_hsps, evalue=10.0
            )
            with swsearch.open_searcher(database, search, engine="cpu") as searcher:
                cells = sum(map(searcher.cells, queries))
                began = time.process_time()
                n_hits = sum(len(result.hits) for result in searcher.search(queries))
                seconds = time.process_time() - began
            print(
                f"max_hsps {max_hsps}: {len(queries)} queries, {cells / 1e9:.1f} billion cells, {n_hits} alignments, "
                f"{seconds:.2f} s, {cells / seconds / 1e9:.1f} billion cells a CPU second"
            )
    print(f"largest memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MB")


if __name__ == "__main__":
    main()
