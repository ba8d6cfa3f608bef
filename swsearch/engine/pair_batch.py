"""Many pairs as arrays, and what aligning them gives: what the pair aligners of the CPU and of the GPU take and return.

Sequence i of a batch ends at ``ends[i]`` and begins where the one before it ends. Letters are numbers: equal numbers
are equal letters, or they are rows and columns of a score table. Coordinates are 0-based and half-open. Which of
several optimal alignments is given is the same everywhere (docs/design/diamond.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from swsearch.typing import ScoreTable

Letters = NDArray[np.uint16]
Places = NDArray[np.int64]
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
    ends: Places

    def __len__(self) -> int:
        return len(self.ends)

    @cached_property
    def starts(self) -> Places:
        """Where each begins."""
        return np.concatenate(([0], self.ends[:-1])).astype(np.int64)

    @cached_property
    def lengths(self) -> Places:
        """Letters of each."""
        return self.ends - self.starts

    def take(self, places: NDArray[np.intp]) -> Sequences:
        """Some of them, in the order given."""
        parts = [self.letters[self.starts[place] : self.ends[place]] for place in places]
        letters = np.concatenate(parts) if parts else np.empty(0, np.uint16)
        return Sequences(letters, np.cumsum(self.lengths[places]))


@dataclass(frozen=True, eq=False)
class PairScores:
    """Scores, costs and ends of all pairs of a batch.

    Attributes
    ----------
    table : int8 array of shape (32, 32), or None
        Score of a query letter (row) and a subject letter; without it letters are compared.
    match, mismatch : int
        Scores of equal and of different letters, where there is no table.
    gap_open, gap_extend : int
        A gap of k letters costs ``gap_open + k * gap_extend``; from 0 to 16,383.
    local : bool
        A path begins and ends anywhere, at a score of at least 0.
    query_free, subject_free : bool
        End gaps that consume the query, or the subject, cost nothing.
    """

    table: ScoreTable | None
    match: int
    mismatch: int
    gap_open: int
    gap_extend: int
    local: bool
    query_free: bool
    subject_free: bool


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

    ends: Places
    run_ends: Places
    runs: Runs
