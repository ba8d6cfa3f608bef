"""The linear horizon and its diamonds (US patent 9,110,855) in plain NumPy: a model that explains the method.

The method computes a matrix of M rows and N columns with memory for its frontier alone, in an order in which S cells
are always independent of each other.

**The horizon.** Cell (i, j) needs its upper, left and diagonal neighbours. Number the diagonals d = j - i. The diagonal
neighbour lies on the same diagonal, the left one on d - 1, the upper one on d + 1. One element per diagonal suffices:
when cell (i, j) is computed, ``h[d]`` holds (i-1, j-1), ``h[d-1]`` holds (i, j-1) and ``h[d+1]`` holds (i-1, j), so

    h[d] = G(h[d+1], h[d-1], h[d], c(i, j))

overwrites exactly the one value that no later cell needs. Initially, h holds the border: row 0 and column 0.
With affine gaps an element holds H, E (a gap that consumes the subject, from the left) and F (a gap that consumes the
query, from above).

**Diamonds.** The rows are divided into groups of S. A diamond that starts at (i, j) has, in row i + a, the S columns
from j - a to j - a + S - 1: every row begins one column further to the left. In step p, row a computes column
j - a + p. These S cells lie on one anti-diagonal and their diagonals differ by 2, so none of them needs a value that
another one writes: S processing units are busy in each of the S steps, without ramp-up or ramp-down.

                      j
        row i         * * * *              S = 4; the number in a cell
        row i+1     * * * *                is the step that computes it:   0 1 2 3
        row i+2   * * * *                                                0 1 2 3
        row i+3 * * * *                                                0 1 2 3  ...

**Elements of a diamond.** A diamond accesses the diagonals j - i - 2(S-1) … j - i + S - 1 and one neighbour on either
side: 3·S elements, which a processor copies to its own fast memory. Afterwards each of them holds either a cell of the
lowest row or one of the two rightmost cells of a row, so only these cells are written back.

**Order.** A diamond is ready when its left and upper neighbours are computed; ready diamonds wait in a FIFO, and as
many run concurrently as there are processors. This model runs them one by one, in any order that the FIFO allows.

**Borders.** The first and last diamonds of a group extend beyond the left and right border; only their triangle inside
the matrix is computed. Where M is not a multiple of S, both sequences are padded with a symbol that matches itself at
cost 0 and must not match any other letter, so the padding of one is aligned with that of the other:
H(M + x, N + x) = H(M, N).
"""

from collections import deque
from dataclasses import dataclass, field

import numpy as np

from swsearch.engine.pair_arrays import AlignmentProblem, FreeEnds

FORBIDDEN = -(10**8)
FILL = -1


@dataclass
class Horizon:
    """The frontier, with one element per diagonal d at index ``origin + d``, and the best end found."""

    problem: AlignmentProblem
    query: np.ndarray
    subject: np.ndarray
    s: int
    h: np.ndarray = field(init=False)
    e: np.ndarray = field(init=False)
    f: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.m, self.n = len(self.query), len(self.subject)
        fill = -self.m % self.s
        self.rows, self.columns = self.m + fill, self.n + fill
        self.query = np.concatenate([self.query, np.full(fill, FILL)])
        self.subject = np.concatenate([self.subject, np.full(fill, FILL)])
        self.origin = self.rows
        problem = self.problem
        down, right = np.arange(self.rows, 0, -1), np.arange(1, self.columns + 1)
        column_0 = (
            0 * down if FreeEnds.QUERY_START in problem.free_ends else -(problem.gap_open + down * problem.gap_extend)
        )
        row_0 = (
            0 * right
            if FreeEnds.SUBJECT_START in problem.free_ends
            else -(problem.gap_open + right * problem.gap_extend)
        )
        self.h = np.concatenate([column_0, [0], row_0])
        self.e = np.full_like(self.h, FORBIDDEN)
        self.f = np.full_like(self.h, FORBIDDEN)
        self.best = (0 if problem.local else 2 * FORBIDDEN, 0, 0)  # score, column, row
        self.corner: int | None = None  # H(M + x, N + x), where there is padding
        if not problem.local:  # ends that lie on the border
            for i, j in {(self.m, 0), (0, self.n)}:
                if self.allowed_end(i, j):
                    self.offer(int(self.h[self.origin + j - i]), i, j)

    def offer(self, score: int, i: int, j: int) -> None:
        """Offer an end that the problem allows; it is stored if better, or as good with a smaller column, then row."""
        best, column, row = self.best
        if score > best or (score == best and (j, i) < (column, row)):
            self.best = (score, j, i)

    def letters_score(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Return c(i, j): padding against padding scores 0, padding against a letter is forbidden."""
        a, b = self.query[i - 1], self.subject[j - 1]
        problem = self.problem
        if problem.table is None:
            scores = np.where(a == b, problem.match, problem.mismatch)
        else:
            scores = problem.table[np.maximum(a, 0), np.maximum(b, 0)].astype(int)
        scores = np.where((a == FILL) | (b == FILL), FORBIDDEN, scores)
        return np.where((a == FILL) & (b == FILL), 0, scores)

    def diamond(self, i: int, j: int) -> None:
        """Compute all cells of the diamond that starts at (i, j) that lie in the matrix."""
        s, problem = self.s, self.problem
        first = problem.gap_open + problem.gap_extend
        # The 3·S elements of fast memory: diagonals low … high and one neighbour on either side.
        low, high = j - i - 2 * (s - 1) - 1, j - i + s
        begin, end = max(low + self.origin, 0), min(high + self.origin + 1, len(self.h))
        h, e, f = (array[begin:end].copy() for array in (self.h, self.e, self.f))
        assert len(h) <= 3 * s
        last_writer: dict[int, tuple[int, int]] = {}
        for p in range(s):
            a = np.arange(s)
            a = a[(j - a + p >= 1) & (j - a + p <= self.columns)]  # the triangles at the borders
            if not a.size:
                continue
            row, column = i + a, j - a + p
            d = column - row + self.origin - begin
            # All reads precede all writes, so the S processing units need one barrier per step and no lock.
            e_now = np.maximum(h[d - 1] - first, e[d - 1] - problem.gap_extend)
            f_now = np.maximum(h[d + 1] - first, f[d + 1] - problem.gap_extend)
            h_now = np.maximum(h[d] + self.letters_score(row, column), np.maximum(e_now, f_now))
            if problem.local:
                h_now = np.maximum(h_now, 0)
            h[d], e[d], f[d] = h_now, e_now, f_now
            for cell_row, cell_column, value in zip(row.tolist(), column.tolist(), h_now.tolist(), strict=True):
                last_writer[cell_column - cell_row] = (cell_row, cell_column)
                self._look(cell_row, cell_column, value)
        # Write back the lowest row, and the two rightmost cells of each row (at the right border, of the triangle).
        for d, (row, column) in last_writer.items():
            rightmost = min(j - (row - i) + s - 1, self.columns)
            assert row == i + s - 1 or column >= rightmost - 1
            at = d + self.origin
            self.h[at], self.e[at], self.f[at] = h[at - begin], e[at - begin], f[at - begin]

    def _look(self, i: int, j: int, value: int) -> None:
        """Offer the ends of paths: any cell (local), the last one (global), the last row or column (semi-global)."""
        if self.allowed_end(i, j):
            self.offer(value, i, j)
        elif (i, j) == (self.rows, self.columns):  # H(M + x, N + x) = H(M, N)
            self.corner = value

    def allowed_end(self, i: int, j: int) -> bool:
        """Return whether a path of this problem may end behind query residue i and subject residue j."""
        problem = self.problem
        if problem.local:
            return i <= self.m and j <= self.n
        on_last_row, on_last_column = i == self.m, j == self.n
        return (
            (on_last_row and on_last_column)
            or (on_last_row and FreeEnds.SUBJECT_END in problem.free_ends and j < self.n)
            or (on_last_column and FreeEnds.QUERY_END in problem.free_ends and i < self.m)
        )


def solve(
    problem: AlignmentProblem, query: np.ndarray, subject: np.ndarray, s: int, processors: int = 1
) -> tuple[int, int, int]:
    """Return score, query end and subject end (residues before the end), computed by diamonds of ``s`` rows.

    ``processors`` ready diamonds leave the FIFO together; they are then computed in reverse, to show that their order
    relative to each other has no effect.
    """
    horizon = Horizon(problem, query, subject, s)
    groups = horizon.rows // s
    # Diamond x of every group starts at column 1 + x·s. Its lowest row ends at that same column, so the last diamond is
    # the one that starts at or after the last column. Above it lies diamond x + 1 of the previous group.
    width = -(-(horizon.columns - 1) // s) + 1 if horizon.columns else 0
    done = [0] * groups
    queued = set()
    ready: deque[tuple[int, int]] = deque()

    def queue(g: int, x: int) -> None:
        left_done = done[g] == x if g < groups and x < width else False
        if left_done and (g == 0 or done[g - 1] >= min(x + 2, width)) and (g, x) not in queued:
            queued.add((g, x))
            ready.append((g, x))

    if groups:
        queue(0, 0)
    while ready:
        running = [ready.popleft() for _ in range(min(processors, len(ready)))]
        for g, x in reversed(running):
            horizon.diamond(1 + g * s, 1 + x * s)
        for g, x in running:
            done[g] = x + 1
        for g, x in running:
            queue(g, x + 1)
            if g + 1 < groups:
                queue(g + 1, done[g + 1])
    assert done == [width] * groups, "a diamond never became ready"
    score, column, row = horizon.best
    if not (problem.local or problem.free_ends) and horizon.corner is not None:
        assert horizon.corner == score, "the fill changed the score"
    return score, row, column
