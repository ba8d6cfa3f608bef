"""Real searches and the numbers that they depend on, in one process; ``test_processors.py`` starts one per processor.

``python searches.py FOLDER RESULTS THREADS [INSTRUCTION_SET]`` searches the databases in FOLDER and writes into RESULTS
the reports and a text with every number in hexadecimal, exact to the last bit.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import swsearch
import swsearch.engine.cpu.engine as cpu
from swsearch.cli.app import main
from swsearch.query.composition import corrected_profile
from swsearch.query.scale import query_lambda
from swsearch.scoring.extreme_value import fit_extreme_value
from swsearch.scoring.karlin_altschul import Statistics
from swsearch.scoring.matrix import SubstitutionMatrix, match_mismatch, named_matrix
from swsearch.scoring.published_parameters import find_statistics
from swsearch.scoring.scheme import GapPenalty, ScoringScheme
from swsearch.scoring.ungapped import matrix_parameters
from swsearch.search.options import SearchOptions
from swsearch.search.score_check import ScoreCheck
from swsearch.search.significance import scheme_statistics
from swsearch.search.simulation import random_letters
from swsearch.sequences.fasta import read_sequences

SEARCHES = {
    "protein": "queries.fasta proteins.db",
    "no_table": "queries.fasta proteins.db --matrix BLOSUM45 --gap-open 60 --gap-extend 20",
    "no_table_either": "queries.fasta proteins.db --matrix PAM250 --gap-open 90 --gap-extend 20",
    "composition": "queries.fasta proteins.db --composition bias",
    "profile": "obg.sto proteins.db",
    "sensitive": "queries.fasta proteins.db --sensitive",
    "sensitive_rounds": "queries.fasta proteins.db --sensitive --iterations 3",
    "counted": "queries.fasta proteins.db --count-hsps",
    "dna": "reads.fastq lambda.db",
    "dna_no_table": "reads.fastq lambda.db --match 4 --mismatch -6 --gap-open 60 --gap-extend 9",
    "translated": "queries.fasta lambda.db --translate subject",
}
SHOWN = ["--evalue", "1000", "--top", "50", "--format", "jsonl", "--store", "none", "--quiet"]
NAMES = ("BLOSUM45", "BLOSUM50", "BLOSUM62", "BLOSUM80", "BLOSUM90", "PAM30", "PAM70", "PAM250")
MATRICES: list[SubstitutionMatrix] = [
    *(named_matrix(name) for name in NAMES),
    *(match_mismatch(match, -mismatch) for match in range(1, 6) for mismatch in range(1, 7) if match <= mismatch + 2),
]
GAPS = ((11, 1), (14, 2), (5, 2), (12, 8), (2, 2))
DEAR = (300, 300)  # no random alignment has such a gap, so theory gives the statistics


def numbers(folder: Path, threads: int) -> Iterator[tuple[str, object]]:
    """Yield the numbers on which results depend, for many schemes: a name, and a number or an array of numbers."""
    scores, lengths = np.arange(20, 320), np.arange(1, 3001, 10)
    for matrix in MATRICES:
        found = matrix_parameters(matrix)
        yield matrix.name, None if found is None else (found.lam, found.k, found.a, found.alpha)
        for gap in (*GAPS, DEAR):
            scheme = ScoringScheme(matrix, GapPenalty(*gap))
            statistics = scheme_statistics(scheme) if gap == DEAR else find_statistics(scheme)
            if isinstance(statistics, Statistics):
                yield f"E-values of {scheme}", statistics.evalue(scores, 311, lengths, 10**7)
                yield f"bits of {scheme}", statistics.bits(scores)
                yield f"floor of {scheme}", statistics.min_scores(1e-3, 311, [lengths], 10**7)[0]

    letters = random_letters(3, 2000, np.full(20, 0.05))
    for name in NAMES:
        profile = corrected_profile(letters, named_matrix(name), GapPenalty(11, 1), 0.3)
        yield f"corrected profile of {name}", profile.table[profile.rows]
        yield f"scale of the corrected profile of {name}", query_lambda(profile.table[:, :20])

    edges = np.arange(30.0, 60.0)
    counts = np.bincount(random_letters(4, 9000, np.linspace(0.066, 0.0, 31)), minlength=31)
    for top_unknown in (False, True):
        fit = fit_extreme_value(edges, counts, np.sqrt(edges) / 10, top_unknown=top_unknown)
        yield "fit", (fit.lam, fit.log_k, fit.lam_error)

    options = SearchOptions(matrix="BLOSUM45", gap_open=60, gap_extend=20)
    with swsearch.open_searcher(folder / "proteins.db", options, engine="cpu", threads=threads) as searcher:
        check = ScoreCheck(searcher)
        searcher.observe = check.add
        for _ in searcher.search(list(read_sequences(folder / "queries.fasta", searcher.query_alphabet))):
            pass
        checked = check.result()
        yield "counted scores", checked.counts
        yield "check", (checked.cut, checked.n_scores, checked.ratio)


def every_bit(value: object) -> str:
    """Return the text of a number, of numbers or of none, without rounding."""
    return "none" if value is None else np.asarray(value, ">f8").tobytes().hex(" ", 8)


def run(folder: Path, results: Path, threads: str, instruction_set: str | None) -> int:
    """Compute everything, one step after the other; return the exit code."""
    if instruction_set is not None:
        cpu.usable_instruction_sets = lambda: [instruction_set]  # the engine uses the first one
    with (results / "numbers").open("w") as file:
        file.writelines(f"{name}: {every_bit(value)}\n" for name, value in numbers(folder, int(threads)))
    for name, search in SEARCHES.items():
        queries, database, *more = search.split()
        out = ["--engine", "cpu", "--threads", threads, "--out", str(results / f"{name}.jsonl")]
        if code := main(["query", str(folder / queries), str(folder / database), *more, *SHOWN, *out]):
            return code
    return 0


if __name__ == "__main__":
    sys.exit(run(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], sys.argv[4] if len(sys.argv) > 4 else None))
