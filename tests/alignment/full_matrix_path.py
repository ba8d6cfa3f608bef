"""The oracle of alignment tests: three full matrices, filled cell by cell by the definition, and traced back."""

from __future__ import annotations

import numpy as np

NEVER = -(10**9)


def full_matrix_alignment(scores: np.ndarray, gap_open: int, extend: int) -> tuple[int, int, int, int, int, str]:
    """Return score, query start and end, subject start and end, and operations, one letter per column (M, I, D).

    ``scores[i, j]`` is the score of query row i against subject residue j.
    """
    m, n = scores.shape
    h = [[0] * (n + 1) for _ in range(m + 1)]
    e = [[NEVER] * (n + 1) for _ in range(m + 1)]
    f = [[NEVER] * (n + 1) for _ in range(m + 1)]
    pair = scores.tolist()
    first = gap_open + extend
    best, end_i, end_j = 0, 0, 0
    for i in range(1, m + 1):
        h_above, f_above, h_row, e_row, f_row, pairs = h[i - 1], f[i - 1], h[i], e[i], f[i], pair[i - 1]
        left, e_left = 0, NEVER  # H and E of column j - 1
        for j in range(1, n + 1):
            # Conditional expressions instead of max(), whose calls would take most of the time.
            e_here = left - first if left - first > e_left - extend else e_left - extend
            f_here = h_above[j] - first
            f_here = f_above[j] - extend if f_above[j] - extend > f_here else f_here
            here = h_above[j - 1] + pairs[j - 1]
            here = e_here if e_here > here else here
            here = f_here if f_here > here else here
            here = 0 if here < 0 else here
            e_row[j], f_row[j], h_row[j] = e_here, f_here, here
            left, e_left = here, e_here
            if here >= best and (here > best or (here > 0 and (j, i) < (end_j, end_i))):
                best, end_i, end_j = here, i, j
    i, j, state, operations = end_i, end_j, "H", []
    while state != "H" or h[i][j] != 0:
        if state == "H":
            if h[i][j] == h[i - 1][j - 1] + pair[i - 1][j - 1]:
                operations.append("M")
                i, j = i - 1, j - 1
            else:
                state = "D" if h[i][j] == e[i][j] else "I"
        elif state == "D":
            operations.append("D")
            if e[i][j] == h[i][j - 1] - first:
                state = "H"
            j -= 1
        else:
            operations.append("I")
            if f[i][j] == h[i - 1][j] - first:
                state = "H"
            i -= 1
    return best, i, end_i, j, end_j, "".join(reversed(operations))
