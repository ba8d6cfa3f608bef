"""Pairs by definition: three full matrices (``full_matrix.py``), traced back. The oracle of every faster method.

Rows are the query's residues, columns the subject's; a gap of k residues costs ``gap_open + k * gap_extend``.

local       any segment of both sequences; H is never below 0
global      both sequences from end to end
semiglobal  ``free`` names the sequences whose end gaps cost nothing: ``both``, ``subject`` (the query is aligned
            completely, the subject may extend beyond either end) or ``query``

The end is the best one allowed with the smallest column, then the smallest row. The traceback follows the diagonal
where that is optimal, otherwise a gap that consumes the subject (D), otherwise one that consumes the query (I); a gap
is closed as soon as it may begin.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tests.full_matrix import NEVER, full_matrices


class Judged(NamedTuple):
    """An alignment: ``operations`` has one letter per column, ``M``, ``I`` or ``D``."""

    score: int
    query_start: int
    query_end: int
    subject_start: int
    subject_end: int
    operations: str


def free_ends(mode: str, free: str) -> tuple[bool, bool]:
    """Return whether end gaps that consume the query, and those that consume the subject, cost nothing."""
    if mode == "local":
        return True, True
    if mode == "global":
        return False, False
    return free in ("both", "query"), free in ("both", "subject")


def whole_matrix(pairs: np.ndarray, gap_open: int, gap_extend: int, mode: str, free: str = "both") -> Judged:
    """Return the alignment; ``pairs[i, j]`` is the score of query residue i against subject residue j."""
    m, n = pairs.shape
    first = gap_open + gap_extend
    query_free, subject_free = free_ends(mode, free)
    top = np.zeros(n + 1) if subject_free else -(gap_open + np.arange(n + 1) * gap_extend)
    left = np.zeros(m + 1) if query_free else -(gap_open + np.arange(m + 1) * gap_extend)
    top[0] = left[0] = 0
    h, e, f = full_matrices(pairs, gap_open, gap_extend, top, left, 0 if mode == "local" else 2 * NEVER)

    if mode == "local":
        ends = [(int(row), int(column)) for row, column in np.argwhere(h == h.max())]
    else:
        ends = [(m, n)]
        ends += [(m, j) for j in range(n)] if subject_free else []
        ends += [(i, n) for i in range(m)] if query_free else []
    score = max(int(h[i, j]) for i, j in ends)
    j, i = min((j, i) for i, j in ends if h[i, j] == score)
    query_end, subject_end = i, j

    operations = []
    state = "H"
    while True:
        if state == "H" and mode == "local" and h[i, j] == 0:
            break
        if i == 0:
            operations += [] if subject_free else ["D"] * j
            j = j if subject_free else 0
            break
        if j == 0:
            operations += [] if query_free else ["I"] * i
            i = i if query_free else 0
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
    return Judged(score, i, query_end, j, subject_end, "".join(reversed(operations)))
