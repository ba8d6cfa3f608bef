"""Pairs by definition: three full matrices (``full_matrix.py``), traced back. The oracle of every faster method.

Rows are the query's residues, columns the subject's; a gap of k residues costs ``gap_open + k * gap_extend``.

local       any segment of both sequences; H is never below 0
global      both sequences from end to end
semiglobal  ``free`` names the ends at which letters outside the alignment cost nothing, joined by commas:
            ``subject-end``, say, or ``subject`` for both its ends (the query is aligned completely), or ``both``

The end is the best one allowed with the smallest column, then the smallest row. The traceback follows the diagonal
where that is optimal, otherwise a gap that consumes the subject (D), otherwise one that consumes the query (I); a gap
is closed as soon as it may begin.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

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


ENDS = {"query-start": 1, "query-end": 2, "subject-start": 4, "subject-end": 8}
FREE = ("both", "query", "subject", *ENDS)
PROBLEMS = [("local", "both"), ("global", "both"), *(("semiglobal", free) for free in FREE)]

PARASAIL = {
    "both": "sg",
    "subject": "sg_dx",
    "query": "sg_qx",
    "query-start": "sg_qb",
    "query-end": "sg_qe",
    "subject-start": "sg_db",
    "subject-end": "sg_de",
    "query-start,subject-end": "sg_qb_de",
    "query-end,subject-start": "sg_qe_db",
}
"""The kernels of parasail for free ends: q or d (query or subject), and b, e or x (its start, its end, both)."""


def free_ends(mode: str, free: str) -> int:
    """Return the free ends of a mode as the sum of their numbers in ``ENDS``, as :class:`FreeEnds` has them."""
    if mode == "global":
        return 0
    if mode == "local" or free == "both":
        return sum(ENDS.values())
    return sum(number for end, number in ENDS.items() for word in free.split(",") if end.startswith(word))


def whole_matrix(pairs: np.ndarray, gap_open: int, gap_extend: int, mode: str, free: str = "both") -> Judged:
    """Return the alignment; ``pairs[i, j]`` is the score of query residue i against subject residue j."""
    m, n = pairs.shape
    first = gap_open + gap_extend
    free_numbers = free_ends(mode, free)
    query_start, query_end, subject_start, subject_end = (bool(free_numbers & number) for number in ENDS.values())
    top = np.zeros(n + 1) if subject_start else -(gap_open + np.arange(n + 1) * gap_extend)
    left = np.zeros(m + 1) if query_start else -(gap_open + np.arange(m + 1) * gap_extend)
    top[0] = left[0] = 0
    h, e, f = full_matrices(pairs, gap_open, gap_extend, top, left, 0 if mode == "local" else 2 * NEVER)

    if mode == "local":
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
        if state == "H" and mode == "local" and h[i, j] == 0:
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


def score_of(
    cigar: str, query: Sequence[Any], subject: Sequence[Any], pair_score: Callable[[Any, Any], int], *gap: int
) -> int:
    """Return the score of two aligned parts, column by column; raise AssertionError if the CIGAR does not fit them."""
    assert re.fullmatch(r"([1-9]\d*[=XID])*", cigar), cigar
    gap_open, gap_extend = gap
    score = i = j = 0
    for digits, operation in re.findall(r"(\d+)(.)", cigar):
        length = int(digits)
        if operation in "ID":
            score -= gap_open + length * gap_extend
        else:
            for one, other in zip(query[i : i + length], subject[j : j + length], strict=True):
                assert (one == other) == (operation == "="), f"{operation} on {one} and {other}"
                score += pair_score(one, other)
        i += length * (operation != "D")
        j += length * (operation != "I")
    assert (i, j) == (len(query), len(subject)), cigar
    return score
