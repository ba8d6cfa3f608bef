"""The oracle of alignment tests: three full matrices, filled cell by cell by the definition, and traced back."""

from __future__ import annotations

import numpy as np

NEVER = -(10**9)


def full_matrix_alignment(scores: np.ndarray, gap_open: int, gap_extend: int) -> tuple[int, int, int, int, int, str]:
    """Return score, query start and end, subject start and end, and operations, one letter per column (M, I, D).

    ``scores[i, j]`` is the score of query row i against subject residue j.
    """
    m, n = scores.shape
    h = [[0] * (n + 1) for _ in range(m + 1)]
    e = [[NEVER] * (n + 1) for _ in range(m + 1)]
    f = [[NEVER] * (n + 1) for _ in range(m + 1)]
    pair = scores.tolist()
    first = gap_open + gap_extend
    best, end_i, end_j = 0, 0, 0
    for i in range(1, m + 1):
        for j in range(1, n + 1):
            e[i][j] = max(h[i][j - 1] - first, e[i][j - 1] - gap_extend)
            f[i][j] = max(h[i - 1][j] - first, f[i - 1][j] - gap_extend)
            h[i][j] = max(0, h[i - 1][j - 1] + pair[i - 1][j - 1], e[i][j], f[i][j])
            if h[i][j] > best or (h[i][j] == best > 0 and (j, i) < (end_j, end_i)):
                best, end_i, end_j = h[i][j], i, j
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
