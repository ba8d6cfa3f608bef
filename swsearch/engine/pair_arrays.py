"""Pairs of sequences as arrays, the alignment problem, and its outcome: what every pair backend takes and returns.

Sequence i of a batch ends at ``ends[i]`` and begins where the one before it ends. Letters are numbers: equal numbers
are equal letters, or they are rows and columns of a score table. Coordinates are 0-based and half-open. Of several
optimal alignments every kernel gives the same one (docs/design/diamond.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from swsearch.typing import Letters, ScoreTable

Offsets = NDArray[np.int64]
Runs = NDArray[np.uint32]


@dataclass(frozen=True, eq=False)
class Sequences:
    """Sequences one after another.

    Attributes
    ----------
    letters : uint16 array
    ends : int64 array, shape (n,)
        Where each ends, growing; the last is the number of letters.
    """

    letters: Letters
    ends: Offsets

    def __len__(self) -> int:
        return len(self.ends)

    @cached_property
    def starts(self) -> Offsets:
        """Where each begins."""
        return np.concatenate(([0], self.ends[:-1])).astype(np.int64)

    @cached_property
    def lengths(self) -> Offsets:
        """Letters of each."""
        return self.ends - self.starts

    def take(self, indices: NDArray[np.intp]) -> Sequences:
        """The sequences at ``indices``, in the order given."""
        parts = [self.letters[self.starts[index] : self.ends[index]] for index in indices]
        letters = np.concatenate(parts) if parts else np.empty(0, np.uint16)
        return Sequences(letters, np.cumsum(self.lengths[indices]))


@dataclass(frozen=True, eq=False)
class AlignmentProblem:
    """What is optimised in every pair of a call; a gap of k letters costs ``gap_open + k * gap_extend``.

    Attributes
    ----------
    local : bool
        An alignment begins and ends anywhere, and no score is below 0.
    query_free, subject_free : bool
        Whether end gaps that consume the query, or the subject, cost nothing.
    gap_open, gap_extend : int
        Costs, 0 to 16,383.
    match, mismatch : int
        Scores of equal and of different letters, where there is no table.
    table : int8 array, shape (query letters, subject letters), or None
        Score of a query letter (row) and a subject letter (column).
    """

    local: bool
    query_free: bool
    subject_free: bool
    gap_open: int
    gap_extend: int
    match: int = 0
    mismatch: int = 0
    table: ScoreTable | None = None

    @property
    def gap_first(self) -> int:
        """Cost of the first letter of a gap."""
        return self.gap_open + self.gap_extend

    @property
    def max_score(self) -> int:
        """Largest score of two letters."""
        return max(self.match, self.mismatch) if self.table is None else int(self.table.max())

    @property
    def max_step(self) -> int:
        """Largest difference between the scores of two neighbouring nodes."""
        return max(self.max_score, 0) + self.gap_first

    def border(self, k: NDArray[np.int64], *, free: bool) -> NDArray[np.int32]:
        """H of the border nodes that are ``k`` letters from the corner; ``free``: these letters cost nothing."""
        cost = np.where(k == 0, 0, self.gap_open + k * self.gap_extend)
        return (np.zeros_like(k) if free or self.local else -cost).astype(np.int32)


@dataclass(frozen=True, eq=False)
class PairPaths:
    """The outcome of a batch, one row a pair.

    Attributes
    ----------
    ends : int64 array, shape (n, 5)
        Score, query end, subject end, query start, subject start; starts are 0 where no path was asked for.
    run_ends : int64 array, shape (n,)
        Where each pair's runs end in ``runs``.
    runs : uint32 array
        Length * 4 + operation: 0 for M, 1 for I (consumes the query), 2 for D (consumes the subject); start to end.
    """

    ends: Offsets
    run_ends: Offsets
    runs: Runs
