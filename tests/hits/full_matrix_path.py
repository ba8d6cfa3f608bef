"""The oracle of alignment tests: three full matrices by the definition (``full_matrix.py``), traced back."""

from __future__ import annotations

import numpy as np

from tests.full_matrix import full_matrices


def full_matrix_alignment(scores: np.ndarray, gap_open: int, extend: int) -> tuple[int, int, int, int, int, str]:
    """Return score, query start and end, subject start and end, and operations, one letter per column (M, I, D).

    ``scores[i, j]`` is the score of query row i against subject residue j.
    """
    m, n = scores.shape
    h, e, f = full_matrices(scores, gap_open, extend, np.zeros(n + 1), np.zeros(m + 1), 0)
    first = gap_open + extend
    best = int(h.max())
    # Of the best ends the one with the smallest column, then the smallest row; without a score, the first node.
    end_j, end_i = min((int(column), int(row)) for row, column in np.argwhere(h == best)) if best > 0 else (0, 0)
    i, j, state, operations = end_i, end_j, "H", []
    while state != "H" or h[i, j] != 0:
        if state == "H":
            if h[i, j] == h[i - 1, j - 1] + scores[i - 1, j - 1]:
                operations.append("M")
                i, j = i - 1, j - 1
            else:
                state = "D" if h[i, j] == e[i, j] else "I"
        elif state == "D":
            operations.append("D")
            if e[i, j] == h[i, j - 1] - first:
                state = "H"
            j -= 1
        else:
            operations.append("I")
            if f[i, j] == h[i - 1, j] - first:
                state = "H"
            i -= 1
    return best, i, end_i, j, end_j, "".join(reversed(operations))
