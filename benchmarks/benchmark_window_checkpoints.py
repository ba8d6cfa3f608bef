"""Number of columns after which a window of a long subject has the same values as the matrix of the complete subject.

    python benchmarks/benchmark_window_checkpoints.py [--queries FASTA --subjects FASTA] [--every 300] [--json FILE]

Verified windows (``swsearch/engine/cuda/search/verified_windows.py``) begin with zeros instead of the columns before
them; their overlap is the number of columns after which the values usually agree. At every 300th column of a subject, a
second matrix is started with zeros and continued until H and E of all rows equal those of the first. The cases are
random sequences, a query of 2,005 letters against 30,000, under several scoring schemes; and each query of a file
against all subjects of another under BLOSUM62 11/1. The script needs no GPU.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swsearch.query.profile import QueryProfile, sequence_profile
from swsearch.scoring.matrix import match_mismatch, named_matrix
from swsearch.scoring.scheme import GapPenalty, ScoringScheme, default_scheme
from swsearch.scoring.ungapped import background
from swsearch.sequences.alphabet import CODE_MASK, PROTEIN
from swsearch.sequences.fasta import read_sequences
from swsearch.typing import Codes

Column = tuple[NDArray[np.int32], NDArray[np.int32]]
"""H of a column, and E of the next column, for all rows; E is at least 0."""


class Columns:
    """The matrix of a query and a subject, column by column."""

    def __init__(self, profile: QueryProfile, subject: Codes) -> None:
        self._scores = profile.table[profile.rows].astype(np.int32)
        self._gap = profile.gap
        self._subject = subject & CODE_MASK
        self._reach = np.arange(profile.length, dtype=np.int32) * profile.gap.extend

    def zero(self) -> Column:
        """The state before the first column."""
        return np.zeros(len(self._scores), np.int32), np.zeros(len(self._scores), np.int32)

    def after(self, column: Column, number: int) -> Column:
        """Column ``number`` of the subject from the previous column.

        F of a row is the maximum, over the rows above, of H minus the cost of the gap between them. This H may be
        computed without F, because the extension of a gap costs no more than the opening of another one.
        """
        h, e = column
        diagonal = np.concatenate([[0], h[:-1]]) + self._scores[:, self._subject[number]]
        without_f = np.maximum(np.maximum(diagonal, e), 0)
        best_above = np.maximum.accumulate(without_f + self._reach)
        f = np.concatenate([[0], best_above[:-1] - self._gap.open - self._reach[1:]])
        h = np.maximum(without_f, f).astype(np.int32)
        e = np.maximum(np.maximum(e - self._gap.extend, h - self._gap.first), 0)
        return h, e


def columns_until_equal(profile: QueryProfile, subject: Codes, every: int) -> list[int]:
    """For each start, the columns until a matrix started there equals the complete one, or until the subject's end."""
    columns = Columns(profile, subject)
    whole = columns.zero()
    parts: dict[int, Column] = {}
    found = []
    for number in range(len(subject)):
        if number % every == 0 and number > 0:
            parts[number] = columns.zero()
        whole = columns.after(whole, number)
        parts = {start: columns.after(part, number) for start, part in parts.items()}
        for start in [s for s, part in parts.items() if all(map(np.array_equal, part, whole))]:
            del parts[start]
            found.append(number + 1 - start)
    return found + [len(subject) - start for start in parts]


def report(name: str, found: list[int]) -> dict[str, Any]:
    values = np.array(found)
    within = {str(columns): round(float((values <= columns).mean()), 4) for columns in (128, 256, 512, 1024)}
    row = {
        "case": name,
        "starts": len(found),
        "median": int(np.median(values)),
        "largest": int(values.max()),
        "share_within": within,
    }
    print(json.dumps(row), flush=True)
    return row


def random_cases(every: int) -> list[dict[str, Any]]:
    rng = np.random.default_rng(1)
    frequencies = background(PROTEIN)

    def protein(length: int) -> Codes:
        return rng.choice(len(frequencies), length, p=frequencies / frequencies.sum()).astype(np.uint8)

    rows = []
    for name, gap in (("BLOSUM62", GapPenalty(11, 1)), ("BLOSUM50", GapPenalty(13, 2)), ("PAM250", GapPenalty(14, 2))):
        profile = sequence_profile(protein(2_005), ScoringScheme(named_matrix(name), gap))
        rows.append(report(f"random proteins, {name} {gap}", columns_until_equal(profile, protein(30_000), every)))
    bases = rng.integers(0, 4, 32_005).astype(np.uint8)
    profile = sequence_profile(bases[:2_005], ScoringScheme(match_mismatch(2, -3), GapPenalty(5, 2)))
    rows.append(report("random DNA, 2/-3 5/2", columns_until_equal(profile, bases[2_005:], every)))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=Path)
    parser.add_argument("--subjects", type=Path)
    parser.add_argument("--every", type=int, default=300)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if (options.queries is None) != (options.subjects is None):
        parser.error("give both --queries and --subjects, or neither")
    rows = random_cases(options.every)
    if options.queries is not None:
        subjects = list(read_sequences(str(options.subjects), PROTEIN))
        for query in read_sequences(str(options.queries), PROTEIN):
            profile = sequence_profile(query.codes, default_scheme(PROTEIN))
            found = [n for subject in subjects for n in columns_until_equal(profile, subject.codes, options.every)]
            rows.append(report(f"{query.identifier} ({profile.length})", found))
    if options.json is not None:
        options.json.write_text(
            json.dumps({"benchmark": "checkpoints", "every": options.every, "rows": rows}, indent=1) + "\n",
            encoding="utf-8",
        )


if __name__ == "__main__":
    main()
