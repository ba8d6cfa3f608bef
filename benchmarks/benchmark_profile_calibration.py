"""Numbers of chance hits of profiles and of plain queries in random databases, by E-value.

    python benchmarks/benchmark_profile_calibration.py scop40.fasta.gz background.fasta.gz [--queries 24]

Domains of four lengths are searched in the domains and the background proteins with ``--iterations 3``. The profiles of
the last rounds are those of real families: only domains whose profile was made of at least ten sequences are used. Each
profile, and the domain itself without a profile, is then searched in two databases without homologues: random residues
of natural composition, and the background proteins with their residues shuffled; without and with the correction of
``--composition bias``, and with the E-values of iterated searches, which are adjusted for the composition of the
aligned part of each subject (``swsearch/query/composition.py``).

Writes ``benchmarks/results/profile-calibration.json``: the mean number of hits per query with an E-value up to 0.01,
0.1, 1 and 10, which equals the E-value if E-values are calibrated, and the number of hits of the query with the most.
A mean of n hits over q queries has a relative standard error of 1 / sqrt(n q) by chance.

Engine: the CPU engine. Scores are exact, so the numbers do not depend on the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

import swsearch
from swsearch.database.partition import Partition
from swsearch.engine.cpu.engine import CpuEngine
from swsearch.engine.protocol import score_requests
from swsearch.hits.traceback import LocalAligner
from swsearch.query.composition import ProfileAdjustment, corrected_profile, corrected_scores
from swsearch.query.profile import PositionSpecificQuery, QueryProfile, sequence_profile, with_other_letters
from swsearch.query.scale import query_lambda
from swsearch.scoring.karlin_altschul import Statistics
from swsearch.scoring.published_parameters import find_statistics
from swsearch.scoring.scheme import default_scheme
from swsearch.scoring.ungapped import background, matrix_lambda
from swsearch.search.frames import Frame
from swsearch.sequences.alphabet import CODE_MASK, PROTEIN
from swsearch.sequences.fasta import read_sequences
from swsearch.sequences.record import SequenceRecord
from swsearch.typing import Codes, Scores

THRESHOLDS = (0.01, 0.1, 1.0, 10.0)
LENGTHS = {60: (55, 66), 120: (110, 131), 250: (230, 271), 500: (430, 571)}
"""Nominal lengths of queries, and the ranges of the domains' lengths."""
MIN_INCLUDED = 10
SEED = 18
N_SUBJECTS = 20_000
SCHEME = default_scheme(PROTEIN)


def families(
    domains: list[SequenceRecord], database: Path, n_queries: int, iterations: int
) -> dict[int, list[tuple[SequenceRecord, PositionSpecificQuery]]]:
    """Domains of each nominal length, with their profiles."""
    rng = np.random.default_rng(SEED)
    options = swsearch.SearchOptions(top=1_000, evalue=0.001, iterations=iterations)
    found: dict[int, list[tuple[SequenceRecord, PositionSpecificQuery]]] = {length: [] for length in LENGTHS}
    with swsearch.open_searcher(database, options, engine="cpu") as searcher:
        for length, (low, high) in LENGTHS.items():
            candidates = [record for record in domains if low <= len(record) < high]
            order = rng.permutation(len(candidates)).tolist()
            for start in range(0, len(order), n_queries):
                group = [candidates[index] for index in order[start : start + n_queries]]
                for record, result in zip(group, searcher.search(group), strict=True):
                    if result.pssm is None or len(result.hits) < MIN_INCLUDED or len(found[length]) == n_queries:
                        continue
                    codes = record.codes & np.uint8(CODE_MASK)
                    table = with_other_letters(result.pssm.scores.astype(np.int64), codes, SCHEME.matrix)
                    profile = PositionSpecificQuery(record.header, codes, PROTEIN, table)
                    found[length].append((record, profile))
                if len(found[length]) == n_queries:
                    break
    return found


def random_databases(proteins: list[SequenceRecord]) -> dict[str, list[Codes]]:
    """Sequences without homologues, which have the lengths of proteins of the background."""
    rng = np.random.default_rng(SEED)
    known = [record.codes[(record.codes & CODE_MASK) < len(background(PROTEIN))] & CODE_MASK for record in proteins]
    known = [codes for codes in known[:N_SUBJECTS] if codes.size]
    p = background(PROTEIN)
    return {
        "random residues": [rng.choice(len(p), codes.size, p=p).astype(np.uint8) for codes in known],
        "shuffled proteins": [rng.permutation(codes) for codes in known],
    }


def aligned_parts(profile: PositionSpecificQuery, subjects: list[Codes], scores: Scores) -> list[Codes]:
    """The aligned parts of subjects, whose alignments have these scores."""
    partition = Partition.pack(subjects)
    order = partition.subject_index.astype(np.intp)
    frame = Frame("plus", 0, profile.codes, profile.profile(SCHEME.gap))
    found = LocalAligner(PROTEIN).paths(frame, partition, scores=scores[order])
    parts = list(subjects)
    for index, (path,) in zip(order.tolist(), found, strict=True):
        parts[index] = subjects[index][path.subject_start : path.subject_end]
    return parts


def count(
    profiles: list[QueryProfile],
    lengths: list[int],
    subjects: list[Codes],
    adjust: list[PositionSpecificQuery] | None = None,
) -> dict[str, object]:
    """Mean and largest numbers of hits of the profiles, adjusted as in iterated searches if ``adjust`` has them."""
    statistics = find_statistics(SCHEME)
    assert isinstance(statistics, Statistics)
    partition = Partition.pack(subjects)
    sizes = np.array([codes.size for codes in subjects])
    distinct, residues = np.unique(sizes), int(sizes.sum())
    counts: list[list[int]] = []
    with CpuEngine(max(1, (os.cpu_count() or 2) // 2)) as engine:
        for number, (profile, length) in enumerate(zip(profiles, lengths, strict=True)):
            (floor,) = statistics.min_scores(max(THRESHOLDS), length, [distinct], residues)
            (block,) = engine.score(score_requests([profile], [floor]), partition)
            evalue = statistics.evalue(block.score, length, sizes[block.subject_index], residues)
            if adjust is not None and len(block):
                hit = [subjects[index] for index in block.subject_index.tolist()]
                adjustment = ProfileAdjustment.of(adjust[number], SCHEME.matrix, statistics)
                assert adjustment is not None
                parts = aligned_parts(adjust[number], hit, block.score)
                evalue = adjustment.adjusted(evalue, block.score, parts, parts)
            counts.append([int(np.count_nonzero(evalue <= threshold)) for threshold in THRESHOLDS])
    numbers = np.array(counts)
    return {
        "hits": dict(zip(map(str, THRESHOLDS), numbers.mean(axis=0).round(3).tolist(), strict=True)),
        "most": dict(zip(map(str, THRESHOLDS), numbers.max(axis=0).tolist(), strict=True)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("domains", type=Path)
    parser.add_argument("background", type=Path)
    parser.add_argument("--queries", type=int, default=24, help="for each length")
    parser.add_argument("--iterations", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "profile-calibration.json")
    options = parser.parse_args()
    domains, proteins = list(read_sequences([options.domains])), list(read_sequences([options.background]))
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "all.db"
        swsearch.build_database([options.domains, options.background], database)
        chosen = families(domains, database, options.queries, options.iterations)
    lam = matrix_lambda(SCHEME.matrix)
    assert lam is not None
    rows: dict[str, object] = {}
    for name, subjects in random_databases(proteins).items():
        for length, pairs in chosen.items():
            lengths = [len(record) for record, _ in pairs]
            scales = [query_lambda(profile.scores[:, : len(background(PROTEIN))]) or 0.0 for _, profile in pairs]
            plain = [sequence_profile(record.codes, SCHEME) for record, _ in pairs]
            corrected = [corrected_profile(record.codes, SCHEME.matrix, SCHEME.gap, lam) for record, _ in pairs]
            profiles = [profile.profile(SCHEME.gap) for _, profile in pairs]
            unbiased = [replace(one, table=corrected_scores(one.table, SCHEME.matrix, lam)) for one in profiles]
            rows[f"{name}, length {length}"] = row = {
                "queries": len(pairs),
                "plain": count(plain, lengths, subjects),
                "plain, bias": count(corrected, lengths, subjects),
                "profiles": count(profiles, lengths, subjects),
                "profiles, bias": count(unbiased, lengths, subjects),
                "profiles, adjusted": count(profiles, lengths, subjects, [profile for _, profile in pairs]),
                "lambda of the profiles": {
                    "mean": round(float(np.mean(scales)), 4),
                    "sd": round(float(np.std(scales)), 4),
                },
            }
            print(name, length, json.dumps(row), flush=True)
    describe = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(describe, check=True, capture_output=True, text=True)
    result = {
        "data": f"{options.domains.name} and {options.background.name}",
        "subjects": f"{N_SUBJECTS:,} sequences in each random database",
        "scoring": str(SCHEME),
        "iterations": options.iterations,
        "seed": SEED,
        "commit": commit.stdout.strip(),
        "rows": rows,
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
