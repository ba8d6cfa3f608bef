"""Effect of masking and composition correction on a search: errors, sensitivity and coverage on SCOPe40.

Every domain is searched against all others.

    python benchmarks/benchmark_composition.py scop40.fasta.gz [--step 12] [--variants none,bias]
        [--pairs QUERIES.fasta DATABASE.fasta]

``--step 12`` searches every twelfth domain. Writes ``benchmarks/results/composition.json``, in which variants that are
not chosen keep their figures; ``scope.py`` describes them.

``--pairs`` counts the pairs at E <= 0.001 of the first 60 queries of a file and the sequences of another, for each
value of ``--composition`` and for blastp and ssearch36 with their defaults.

Engine: the CPU engine, one thread. Scores are exact, so the numbers do not depend on the machine.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scope import judged

import swsearch
from swsearch.database.partition import Partition
from swsearch.engine.cpu.engine import CpuEngine
from swsearch.engine.protocol import score_requests
from swsearch.hits.traceback import LocalAligner
from swsearch.options import option_of
from swsearch.query.composition import STRENGTH, PairAdjustment, corrected_profile
from swsearch.query.masking import Masking
from swsearch.query.profile import QueryProfile, sequence_profile
from swsearch.scoring.karlin_altschul import Statistics
from swsearch.scoring.published_parameters import find_statistics
from swsearch.scoring.scheme import default_scheme
from swsearch.scoring.ungapped import matrix_parameters
from swsearch.search.frames import Frame
from swsearch.sequences.alphabet import PROTEIN
from swsearch.sequences.fasta import read_sequences
from swsearch.sequences.record import SequenceRecord

DEEPEST_EVALUE = 200.0
"""Largest E-value in the lists, which therefore contain 10 false hits per query for every variant."""

ADJUSTED_EVALUE = 30.0
"""Largest E-value before an adjustment, which needs alignments; with it, ten false hits per query have E <= 10."""
N_QUERIES = 60
PAIRS_EVALUE = 0.001

SCREEN_EVALUE = 10.0
"""With a soft mask, subjects whose unmasked residues alone reach this E-value are found: ``--evalue 10``."""

STRENGTHS = (0.2, STRENGTH, 0.3)
SCHEME = default_scheme(PROTEIN)

Profiles = tuple[QueryProfile, QueryProfile | None]
"""The profile of a query, and the screen of its soft mask."""


def variants() -> dict[str, Callable[[SequenceRecord], Profiles]]:
    """The function by which each variant computes the profiles of a query."""
    ungapped = matrix_parameters(SCHEME.matrix)
    assert ungapped is not None
    lam = ungapped.lam

    def variant(mask: str | None, strength: float) -> Callable[[SequenceRecord], Profiles]:
        def profile(codes: np.ndarray) -> QueryProfile:
            if strength == 0:
                return sequence_profile(codes, SCHEME)
            return corrected_profile(codes, SCHEME.matrix, SCHEME.gap, lam, strength)

        masking = None if mask is None else Masking("tantan", mask, PROTEIN)

        def make(record: SequenceRecord) -> Profiles:
            codes = record.codes if masking is None else masking.masked(record).codes
            screening = None if masking is None else masking.hidden(codes)
            return profile(codes), None if screening is None else profile(screening)

        return make

    made = {"none": variant(None, 0.0), "adjust": variant(None, 0.0)}
    for strength in STRENGTHS:
        name = "bias" if strength == STRENGTH else f"bias, strength {strength}"
        made[name] = variant(None, strength)
    made["tantan soft"] = variant("soft", 0.0)
    made["tantan hard"] = variant("hard", 0.0)
    made["tantan hard and bias"] = variant("hard", STRENGTH)
    return made


def adjusted(
    record: SequenceRecord, profile: QueryProfile, subjects: Partition, rows: np.ndarray, score: np.ndarray,
    evalue: np.ndarray, statistics: Statistics,
) -> np.ndarray:  # fmt: skip
    """The E-values of subjects, by their rows in the partition, adjusted for the composition of what is aligned."""
    adjustment = PairAdjustment.of(SCHEME.matrix, statistics)
    assert adjustment is not None
    some = subjects[rows]
    found = LocalAligner(PROTEIN).paths(Frame("plus", 0, record.codes, profile), some, scores=score)
    best = [path for (path,) in found]
    on_query = [record.codes[one.query_start : one.query_end] for one in best]
    starts = some.starts.tolist()
    on_subjects = [
        some.residues[start + one.subject_start : start + one.subject_end]
        for start, one in zip(starts, best, strict=True)
    ]
    return adjustment.adjusted(evalue, score, on_query, on_subjects)


def judge(
    records: list[SequenceRecord], queries: range, make: Callable[[SequenceRecord], Profiles], *, adjusts: bool
) -> dict[str, object]:
    """Errors, sensitivity and coverage of one variant."""
    began = time.process_time()
    statistics = find_statistics(SCHEME)
    assert isinstance(statistics, Statistics)
    sccs = {record.identifier: record.description.split()[0] for record in records}
    subjects = Partition.pack([record.codes for record in records])
    lengths = np.array([len(record) for record in records])
    distinct, residues = np.unique(lengths), int(lengths.sum())
    row_of = np.argsort(subjects.subject_index)
    deepest = ADJUSTED_EVALUE if adjusts else DEEPEST_EVALUE
    lists: dict[str, list[tuple[str, float]]] = {}
    with CpuEngine(1) as engine:
        for number in queries:
            record = records[number]
            profile, screen = make(record)
            (floor,) = statistics.min_scores(deepest, len(record), [distinct], residues)
            profiles = [profile] if screen is None else [profile, screen]
            blocks = engine.score(score_requests(profiles, [floor] * len(profiles)), subjects)
            index, score = blocks[0].subject_index, blocks[0].score
            if screen is not None:
                screened = statistics.evalue(blocks[1].score, len(record), lengths[blocks[1].subject_index], residues)
                kept = np.isin(index, blocks[1].subject_index[screened <= SCREEN_EVALUE])
                index, score = index[kept], score[kept]
            evalue = statistics.evalue(score, len(record), lengths[index], residues)
            if adjusts:
                evalue = adjusted(record, profile, subjects, row_of[index], score, evalue, statistics)
            subject_ids = (records[subject].identifier for subject in index.tolist())
            lists[record.identifier] = list(zip(subject_ids, evalue.tolist(), strict=True))
    return judged(lists, sccs).figures("all") | {"cpu_seconds": round(time.process_time() - began, 1)}


def count_pairs(queries: Path, database: Path) -> dict[str, int]:
    """Number of pairs at E <= 0.001, by the value of ``--composition`` and by other programs."""
    with tempfile.TemporaryDirectory() as folder:
        some, whole = Path(folder, "queries.fasta"), Path(folder, "subjects.fasta")
        for path, records in ((some, list(read_sequences([queries]))[:N_QUERIES]), (whole, read_sequences([database]))):
            path.write_text("".join(f">{number}\n{each.letters}\n" for number, each in enumerate(records)))
        swsearch.build_database(whole, Path(folder, "db"))
        counts = {}
        for composition in option_of("composition").choices:
            options = swsearch.SearchOptions(evalue=PAIRS_EVALUE, top=2**31 - 1, composition=composition)
            found = swsearch.search_database(some, Path(folder, "db"), options, engine="cpu")
            counts[composition] = sum(len(result.hits) for result in found)
        subprocess.run(["makeblastdb", "-in", whole, "-dbtype", "prot", "-out", whole], check=True, capture_output=True)
        limit = str(PAIRS_EVALUE)
        commands = {
            "blastp": ["blastp", "-query", some, "-db", whole, "-evalue", limit, "-outfmt", "6 qseqid sseqid",
                       "-max_target_seqs", "100000"],
            "ssearch36": ["ssearch36", "-q", "-m", "8", "-E", limit, some, whole],
        }  # fmt: skip
        for program, command in commands.items():
            lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
            counts[program] = len({tuple(line.split("\t")[:2]) for line in lines})
        return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("fasta", type=Path)
    parser.add_argument("--step", type=int, default=1, help="search every step-th domain")
    parser.add_argument("--variants", help="names separated by commas; all where not given")
    parser.add_argument("--pairs", nargs=2, type=Path, metavar=("QUERIES", "DATABASE"))
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "composition.json")
    options = parser.parse_args()
    made = variants()
    chosen = list(made) if options.variants is None else options.variants.split(",")
    unknown = [name for name in chosen if name not in made]
    if unknown:
        sys.exit(f"no variant {unknown[0]!r}; choose among: {'; '.join(made)}")
    records = list(read_sequences([options.fasta]))
    queries = range(0, len(records), options.step)
    known = json.loads(options.out.read_text()) if options.out.exists() else {}
    rows: dict[str, dict[str, object]] = known.get("variants", {}) if known.get("queries") == len(queries) else {}
    pairs = count_pairs(*options.pairs) if options.pairs else known.get("pairs", {})
    for name in chosen:
        rows[name] = judge(records, queries, made[name], adjusts=name == "adjust")
        print(name, json.dumps(rows[name]), flush=True)
        result = {
            "data": f"{options.fasta.name}: {len(records):,} domains, {sum(map(len, records)):,} residues",
            "queries": len(queries),
            "scoring": str(SCHEME),
            "variants": rows,
            "pairs": pairs,
        }
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
