"""A test of E-values with shuffled queries against real sequences: at E <= x, there should be x hits per query.

Queries have no homologues. There are two kinds of queries. "average": residues drawn from all sequences together, with
the average composition of the database, as the theory assumes. "own": a shuffled part of one sequence, with the
composition of this part; some of these are strongly biased and have high scores with subjects of the same bias, so
that their mean is far above their median.

Scores are exact local scores from Opal (pyopal) or, for one long subject, parasail; the test of the statistics is
therefore independent of this project's engines. The gap cost of Opal is open + (k - 1) * extend, so its open parameter
is set to open + extend.

    python benchmarks/benchmark_calibration.py --protein swissprot.fasta.gz --dna ecoli.fasta.gz --queries 40

The script writes ``benchmarks/results/calibration.json``: mean number of hits per query, its standard error and the
median, for each set of subjects, query length and threshold x. Scores are integers, so few subjects have a score with E
just below x; ``expected_hits`` is the prediction of the statistics for the scores that pass, with which the mean must
be compared.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import dnaio
import numpy as np
import parasail
import pyopal
from provenance import commit, processor
from scoring_matrices import ScoringMatrix

from swsearch.scoring.karlin_altschul import Statistics
from swsearch.scoring.matrix import match_mismatch
from swsearch.scoring.published_parameters import find_statistics
from swsearch.scoring.scheme import GapPenalty, ScoringScheme, default_scheme
from swsearch.sequences.alphabet import PROTEIN

THRESHOLDS = (0.01, 0.1, 1.0, 3.0, 10.0)
PROTEIN_LETTERS = "ARNDCQEGHILKMFPSTWYVBZX*"
DNA_LETTERS = "ACGTN"
COMPLEMENT = str.maketrans("ACGTN", "TGCAN")


def read(path: Path, letters: str, other: str) -> list[str]:
    """Sequences in upper case; letters that the oracle does not support are replaced by ``other``."""
    unknown = {ord(c): other for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZ*" if c not in letters}
    with dnaio.open(path) as records:
        return [record.sequence.upper().translate(unknown) for record in records]


def average_query(sources: list[str], unknown: str, length: int, rng: np.random.Generator) -> str:
    """Residues drawn uniformly from all sources together."""
    letters: list[str] = []
    ends = np.cumsum([len(source) for source in sources])
    while len(letters) < length:
        place = int(rng.integers(ends[-1]))
        number = int(np.searchsorted(ends, place, side="right"))
        letter = sources[number][place - int(ends[number])]  # counted from the source's end
        if letter != unknown:
            letters.append(letter)
    return "".join(letters)


def own_query(sources: list[str], unknown: str, length: int, rng: np.random.Generator) -> str:
    """A uniform shuffle of a part of ``length`` residues of a random source."""
    while True:
        source = sources[int(rng.integers(len(sources)))]
        if len(source) < length:
            continue
        start = int(rng.integers(len(source) - length + 1))
        piece = np.array(list(source[start : start + length]))
        if unknown in piece:
            continue
        return "".join(rng.permutation(piece))


def opal_scorer(scheme: ScoringScheme, letters: str, subjects: list[str]) -> Callable[[str], np.ndarray]:
    """Scores of a query against all subjects."""
    codes = [scheme.alphabet.code(c) for c in letters]
    rows = scheme.matrix.scores[np.ix_(codes, codes)].astype(float).tolist()
    matrix = ScoringMatrix(rows, letters)
    alphabet = pyopal.Alphabet(letters)
    database = pyopal.Database(subjects, alphabet=alphabet)
    aligner = pyopal.Aligner(matrix, gap_open=scheme.gap.first, gap_extend=scheme.gap.extend)

    def score(query: str) -> np.ndarray:
        results = aligner.align(query, database, algorithm="sw", mode="score", overflow="simple")
        scores = np.zeros(len(subjects), dtype=np.int64)
        for result in results:
            scores[result.target_index] = result.score
        return scores

    return score


def parasail_scorer(scheme: ScoringScheme, subject: str) -> Callable[[str], np.ndarray]:
    """Score of a query against one long DNA subject; pairs with N have the score of a mismatch."""
    scores = scheme.matrix.scores
    matrix = parasail.matrix_create("ACGT", int(scores[0, 0]), int(scores[0, 1]))

    def score(query: str) -> np.ndarray:
        gap = scheme.gap
        return np.array([parasail.sw_striped_16(query, subject, gap.first, gap.extend, matrix).score])

    return score


def expected_hits(
    statistics: Statistics, query_length: int, lengths: np.ndarray, strands: int, top_score: int = 400
) -> list[float]:
    """Number of hits per query that the statistics predict at each threshold, for integer scores."""
    distinct, counts = np.unique(lengths, return_counts=True)
    residues = int(lengths.sum())
    grid = np.arange(1, top_score)[:, None]
    evalues = statistics.evalue(grid, query_length, distinct[None, :], residues, strands)
    expected = []
    for threshold in THRESHOLDS:
        first = (evalues <= threshold).argmax(axis=0)  # smallest score that passes, for each length
        reached = evalues[first, np.arange(len(distinct))] * distinct / residues  # E within one subject of that length
        expected.append(float((counts * -np.expm1(-reached)).sum()))
    return expected


def calibrate(
    statistics: Statistics,
    score: Callable[[str], np.ndarray],
    lengths: np.ndarray,
    draw: Callable[[int, np.random.Generator], str],
    query_lengths: list[int],
    n_queries: int,
    strands: int,
    rng: np.random.Generator,
) -> list[dict[str, object]]:
    """Rows with the numbers of hits per query at each threshold."""
    table: list[dict[str, object]] = []
    for length in query_lengths:
        hits = np.zeros((n_queries, len(THRESHOLDS)))
        for number in range(n_queries):
            query = draw(length, rng)
            scores = score(query)
            if strands == 2:
                scores = np.maximum(scores, score(query.translate(COMPLEMENT)[::-1]))
            evalues = statistics.evalue(scores, length, lengths, int(lengths.sum()), strands)
            hits[number] = [(evalues <= threshold).sum() for threshold in THRESHOLDS]
        mean = hits.mean(axis=0)
        error = hits.std(axis=0, ddof=1) / np.sqrt(n_queries)
        table.append(
            {
                "query_length": length,
                "queries": n_queries,
                "expected_hits": {
                    str(x): round(v, 3)
                    for x, v in zip(THRESHOLDS, expected_hits(statistics, length, lengths, strands), strict=True)
                },
                "mean_hits": {str(x): round(float(v), 3) for x, v in zip(THRESHOLDS, mean, strict=True)},
                "median_hits": {str(x): float(v) for x, v in zip(THRESHOLDS, np.median(hits, axis=0), strict=True)},
                "standard_error": {str(x): round(float(v), 3) for x, v in zip(THRESHOLDS, error, strict=True)},
            }
        )
        print(f"  {length:5d}", *(f"{v:8.3f}±{e:.3f}" for v, e in zip(mean, error, strict=True)), flush=True)
    return table


def cut(genome: str, rng: np.random.Generator) -> list[str]:
    """A genome divided into subjects of 300 to 30,000 bases, with lengths uniform in their logarithm."""
    pieces = []
    start = 0
    while len(genome) - start > 30_000:
        length = int(np.exp(rng.uniform(np.log(300), np.log(30_000))))
        pieces.append(genome[start : start + length])
        start += length
    pieces.append(genome[start:])
    return pieces


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--protein", type=Path, help="FASTA of proteins: subjects, and sources of queries")
    parser.add_argument("--dna", type=Path, help="FASTA of a genome: cut into subjects, and as one subject")
    parser.add_argument("--queries", type=int, default=40, help="queries of each length")
    parser.add_argument("--genome-queries", type=int, default=40, help="queries of each length against one subject")
    parser.add_argument("--match", type=int, default=2)
    parser.add_argument("--mismatch", type=int, default=-3)
    parser.add_argument("--gap-open", type=int, default=5)
    parser.add_argument("--gap-extend", type=int, default=2)
    parser.add_argument("--lengths", type=int, nargs="+", default=[60, 120, 250, 500])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "calibration.json")
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    sets: list[dict[str, object]] = []
    began = time.perf_counter()

    def run(
        what: str, scheme: ScoringScheme, score: Callable[[str], np.ndarray], subjects: list[str],
        queries: str, sources: list[str], n_queries: int, strands: int,
    ) -> None:  # fmt: skip
        statistics = find_statistics(scheme)
        if not isinstance(statistics, Statistics):
            sys.exit(statistics.reason)
        lengths = np.array([len(s) for s in subjects])
        make = average_query if queries == "average" else own_query

        def draw(length: int, rng: np.random.Generator) -> str:
            return make(sources, scheme.alphabet.unknown, length, rng)

        print(f"{what}, queries of {queries} composition: {len(subjects)} subjects, {lengths.sum()} residues, {scheme}")
        print("  query", *(f"  E<={x:<8g}" for x in THRESHOLDS))
        rows = calibrate(statistics, score, lengths, draw, options.lengths, n_queries, strands, rng)
        sets.append(
            {"subjects": what, "queries": queries, "n_subjects": len(subjects), "residues": int(lengths.sum()),
             "strands": strands, "scoring": str(scheme), "statistics": statistics.source, "rows": rows}
        )  # fmt: skip

    if options.protein:
        proteins = read(options.protein, PROTEIN_LETTERS, "X")
        scheme = default_scheme(PROTEIN)
        scorer = opal_scorer(scheme, PROTEIN_LETTERS, proteins)
        for queries in ("average", "own"):
            run(options.protein.name, scheme, scorer, proteins, queries, proteins, options.queries, 1)
    if options.dna:
        genome = read(options.dna, DNA_LETTERS, "N")[0]
        scheme = ScoringScheme(
            match_mismatch(options.match, options.mismatch), GapPenalty(options.gap_open, options.gap_extend)
        )
        pieces = cut(genome, rng)
        random = "".join(rng.choice(list("ACGT"), len(genome)))
        made = [random[end - len(p) : end] for p, end in zip(pieces, np.cumsum([len(p) for p in pieces]), strict=True)]
        for name, subjects in ((f"{options.dna.name}, cut", pieces), ("random bases, cut likewise", made)):
            scorer = opal_scorer(scheme, DNA_LETTERS, subjects)
            run(name, scheme, scorer, subjects, "average", subjects, options.queries, 2)
        scorer = parasail_scorer(scheme, genome)
        run(
            f"{options.dna.name}, one subject", scheme, scorer, [genome], "average", [genome], options.genome_queries, 2
        )

    arguments = [Path(a).name if os.sep in a else a for a in sys.argv[1:]]
    result = {
        "command": " ".join(["python", "benchmarks/benchmark_calibration.py", *arguments]),
        "commit": commit(),
        "device": processor(),
        "seconds": round(time.perf_counter() - began, 1),
        "ideal": "mean_hits equals expected_hits, which lies at or below the threshold",
        "sets": sets,
    }  # fmt: skip
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
