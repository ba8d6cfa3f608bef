"""The reference pair backend, used for tests: complete matrices, filled row by row in NumPy, and a traceback in them.

The recurrences are those of docs/design/diamond.md. A row is vectorised over its columns; E, which depends on earlier
columns of the row, is a running maximum, because a gap that opens directly after another of the same kind never scores
better than an extension of the first. Memory and time grow with the product of the lengths, so there is a limit.
"""

from __future__ import annotations

from itertools import groupby
from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch.engine.pair_arrays import AlignmentProblem, FreeEnds, PairPaths, SequencePairs
from swsearch.errors import InputError
from swsearch.typing import Letters, Progress

MAX_CELLS: Final = 25_000_000
"""Maximum number of cells of a pair; each of three matrices takes 8 bytes per cell."""
_NEVER: Final = -(2**40)

Matrix = NDArray[np.int64]
Matrices = tuple[Matrix, Matrix, Matrix]
"""H, E and F of all nodes, shape (query length + 1, subject length + 1); node (i, j) follows i and j letters."""


class ReferencePairs:
    """The pair backend that computes complete matrices."""

    name = "reference"

    def align(
        self, pairs: SequencePairs, problem: AlignmentProblem, *, path: bool = True, progress: Progress | None = None
    ) -> PairPaths:
        """See :class:`swsearch.engine.pair_arrays.PairBackend`; a pair has at most 25 million cells."""
        found = []
        for query, subject in pairs:
            scores = letter_scores(query, subject, problem)
            matrices = fill(scores, problem)
            h, *_ = matrices
            row, column = _best_end(h, problem)
            ends, runs = [int(h[row, column]), row, column, 0, 0], []
            if path:
                ends[3], ends[4], columns = _walk(matrices, scores, problem, row, column)
                runs = [(operation, len(list(run))) for operation, run in groupby(columns)]
            found.append(PairPaths.of_pair(ends, runs))
            if progress is not None:
                progress(len(query) * len(subject))
        return PairPaths.concatenate(found)


def letter_scores(query: Letters, subject: Letters, problem: AlignmentProblem) -> Matrix:
    """Score of each query letter (row) against each subject letter (column), for at most 25 million cells."""
    cells = len(query) * len(subject)
    if cells > MAX_CELLS:
        raise InputError(
            f"{cells:,} cells are too many for complete matrices, which take 24 bytes each; {MAX_CELLS:,} can be "
            "computed: give shorter sequences, or leave --engine reference and --serial out"
        )
    if problem.table is not None:
        return problem.table[np.ix_(query, subject)].astype(np.int64)
    equal = query[:, None] == subject[None, :]
    return np.where(equal, problem.match, problem.mismatch).astype(np.int64)


def fill(scores: Matrix, problem: AlignmentProblem) -> Matrices:
    """The matrices of a pair, by the int64 scores of each query letter against each subject letter."""
    m, n = scores.shape
    opening, extend, first = problem.gap_open, problem.gap_extend, problem.gap_first
    e = np.full((m + 1, n + 1), _NEVER, dtype=np.int64)
    f = np.full((m + 1, n + 1), _NEVER, dtype=np.int64)
    h = np.zeros((m + 1, n + 1), dtype=np.int64)
    h[0] = problem.border(np.arange(n + 1), FreeEnds.SUBJECT_START)
    h[:, 0] = problem.border(np.arange(m + 1), FreeEnds.QUERY_START)
    ramp = extend * np.arange(n + 1, dtype=np.int64)
    for i in range(1, m + 1 if n else 1):
        f[i, 1:] = np.maximum(h[i - 1, 1:] - first, f[i - 1, 1:] - extend)
        row = h[i].copy()
        row[1:] = np.maximum(h[i - 1, :-1] + scores[i - 1], f[i, 1:])
        if problem.local:
            row = np.maximum(row, 0)
        e[i, 1:] = np.maximum.accumulate(row + ramp)[:-1] - opening - ramp[1:]
        h[i] = np.maximum(row, e[i])
    return h, e, f


def _best_end(h: Matrix, problem: AlignmentProblem) -> tuple[int, int]:
    """Row and column of the best allowed end: among ends with the best score, the smallest column, then row."""
    allowed = np.full(h.shape, problem.local)
    allowed[-1, -1] = True
    allowed[-1, :] |= problem.is_free(FreeEnds.SUBJECT_END)
    allowed[:, -1] |= problem.is_free(FreeEnds.QUERY_END)
    best = h[allowed].max()
    column, row = np.argwhere((allowed & (h == best)).T)[0]
    return int(row), int(column)


def _walk(matrices: Matrices, scores: Matrix, problem: AlignmentProblem, i: int, j: int) -> tuple[int, int, str]:
    """The path that ends at node (i, j): the node at which it begins, and its columns as ``M``, ``I`` and ``D``."""
    h, e, f = matrices
    first = problem.gap_first
    columns: list[str] = []
    state = "M"
    while i and j:
        if state == "M":
            if problem.local and h[i, j] == 0:
                break
            if h[i, j] == h[i - 1, j - 1] + scores[i - 1, j - 1]:
                columns.append("M")
                i, j = i - 1, j - 1
                continue
            state = "D" if h[i, j] == e[i, j] else "I"
        columns.append(state)
        if state == "D":
            state = "M" if e[i, j] == h[i, j - 1] - first else "D"
            j -= 1
        else:
            state = "M" if f[i, j] == h[i - 1, j] - first else "I"
            i -= 1
    if i == 0 and j and not problem.is_free(FreeEnds.SUBJECT_START):
        columns += ["D"] * j
        j = 0
    if j == 0 and i and not problem.is_free(FreeEnds.QUERY_START):
        columns += ["I"] * i
        i = 0
    return i, j, "".join(reversed(columns))
