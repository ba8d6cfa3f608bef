"""Pairs by definition: three full matrices (``full_matrix.py``), traced back. The oracle of every faster method.

Rows are the query's residues, columns the subject's; a gap of k residues costs ``gap_open + k * gap_extend``.

local       any segment of both sequences; H is never below 0
global      both sequences from end to end
semiglobal  letters outside the alignment cost nothing at the free ends

The end is the best one allowed with the smallest column, then the smallest row. The traceback follows the diagonal
where that is optimal, otherwise a gap that consumes the subject (D), otherwise one that consumes the query (I); a gap
is closed as soon as it may begin.
"""

from typing import NamedTuple

import numpy as np

from swsearch.engine.pair_arrays import AlignmentProblem, FreeEnds, PairPaths
from tests.full_matrix import NEVER, full_matrices


class Judged(NamedTuple):
    """An alignment: ``operations`` has one letter per column, ``M``, ``I`` or ``D``."""

    score: int
    query_start: int
    query_end: int
    subject_start: int
    subject_end: int
    operations: str


PROBLEMS = {
    "local": (True, FreeEnds.ALL),
    "global": (False, FreeEnds.NONE),
    "semiglobal": (False, FreeEnds.ALL),
    "query": (False, FreeEnds.QUERY),
    "subject": (False, FreeEnds.SUBJECT),
    "query-start": (False, FreeEnds.QUERY_START),
    "query-end": (False, FreeEnds.QUERY_END),
    "subject-start": (False, FreeEnds.SUBJECT_START),
    "subject-end": (False, FreeEnds.SUBJECT_END),
}
"""Whether a problem is local, and its free ends."""

PARASAIL = {
    FreeEnds.ALL: "sg",
    FreeEnds.SUBJECT: "sg_dx",
    FreeEnds.QUERY: "sg_qx",
    FreeEnds.QUERY_START: "sg_qb",
    FreeEnds.QUERY_END: "sg_qe",
    FreeEnds.SUBJECT_START: "sg_db",
    FreeEnds.SUBJECT_END: "sg_de",
    FreeEnds.QUERY_START | FreeEnds.SUBJECT_END: "sg_qb_de",
    FreeEnds.QUERY_END | FreeEnds.SUBJECT_START: "sg_qe_db",
}
"""The kernels of parasail for free ends: q or d (query or subject), and b, e or x (its start, its end, both)."""


def judged(query: np.ndarray, subject: np.ndarray, problem: AlignmentProblem) -> Judged:
    """Return the alignment of two sequences of letters."""
    if problem.table is None:
        pairs = np.where(query[:, None] == subject[None, :], problem.match, problem.mismatch)
    else:
        pairs = problem.table[np.ix_(query, subject)].astype(int)
    pairs = pairs.reshape(len(query), len(subject))
    return whole_matrix(pairs, problem.gap_open, problem.gap_extend, problem.local, problem.free_ends)


def found(paths: PairPaths) -> list[Judged]:
    """Return the results of a backend in this form."""
    results, first = [], 0
    for row, last in zip(paths.ends.tolist(), paths.run_ends.tolist(), strict=True):
        operations = "".join("MID"[run & 3] * (run >> 2) for run in paths.runs[first:last].tolist())
        score, query_end, subject_end, query_start, subject_start = row
        results.append(Judged(score, query_start, query_end, subject_start, subject_end, operations))
        first = last
    return results


def whole_matrix(
    pairs: np.ndarray, gap_open: int, gap_extend: int, local: bool = True, free: FreeEnds = FreeEnds.ALL
) -> Judged:
    """Return the alignment; ``pairs[i, j]`` is the score of query residue i against subject residue j."""
    m, n = pairs.shape
    first = gap_open + gap_extend
    query_start, query_end, subject_start, subject_end = (bool(free & number) for number in (1, 2, 4, 8))
    top = np.zeros(n + 1) if subject_start else -(gap_open + np.arange(n + 1) * gap_extend)
    left = np.zeros(m + 1) if query_start else -(gap_open + np.arange(m + 1) * gap_extend)
    top[0] = left[0] = 0
    h, e, f = full_matrices(pairs, gap_open, gap_extend, top, left, 0 if local else 2 * NEVER)

    if local:
        ends = [(int(row), int(column)) for row, column in np.argwhere(h == h.max())]
    else:
        ends = [(m, n)]
        ends += [(m, j) for j in range(n)] if subject_end else []
        ends += [(i, n) for i in range(m)] if query_end else []
    score = max(int(h[i, j]) for i, j in ends)
    j, i = min((j, i) for i, j in ends if h[i, j] == score)
    end = i, j

    operations = []
    state = "H"
    while True:
        if state == "H" and local and h[i, j] == 0:
            break
        if i == 0:
            operations += [] if subject_start else ["D"] * j
            j = j if subject_start else 0
            break
        if j == 0:
            operations += [] if query_start else ["I"] * i
            i = i if query_start else 0
            break
        if state == "H":
            if h[i, j] == h[i - 1, j - 1] + pairs[i - 1, j - 1]:
                operations.append("M")
                i, j = i - 1, j - 1
            else:
                state = "D" if h[i, j] == e[i, j] else "I"
        elif state == "D":
            operations.append("D")
            state = "H" if e[i, j] == h[i, j - 1] - first else "D"
            j -= 1
        else:
            operations.append("I")
            state = "H" if f[i, j] == h[i - 1, j] - first else "I"
            i -= 1
    return Judged(score, i, end[0], j, end[1], "".join(reversed(operations)))
