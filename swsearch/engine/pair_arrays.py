"""Pairs of sequences as arrays, the alignment problem, and its outcome: what every pair backend takes and returns.

Sequence i of a batch ends at ``ends[i]`` and begins where the one before it ends. Letters are numbers: equal numbers
are equal letters, or they are rows and columns of a score table. Coordinates are 0-based and half-open. Of several
optimal alignments every kernel gives the same one (docs/design/diamond.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

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

    @classmethod
    def of(cls, parts: Sequence[Letters]) -> Sequences:
        """Sequences from one array of letters each."""
        ends = np.cumsum([len(part) for part in parts], dtype=np.int64)
        return cls(np.concatenate(parts) if parts else np.empty(0, np.uint16), ends)

    def __getitem__(self, index: int) -> Letters:
        """Letters of the sequence at ``index``."""
        return self.letters[self.starts[index] : self.ends[index]]

    def take(self, indices: NDArray[np.intp]) -> Sequences:
        """The sequences at ``indices``, in the order given."""
        return Sequences.of([self[index] for index in indices])


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
    """The outcome of the pairs of a call, one row a pair.

    Attributes
    ----------
    ends : int64 array, shape (n, 5)
        Score, query end, subject end, query start, subject start; the starts are 0 where no path was asked for.
    run_ends : int64 array, shape (n,)
        Where the runs of each pair end in ``runs``.
    runs : uint32 array
        Length * 4 + operation: 0 for M, 1 for I (consumes the query), 2 for D (consumes the subject); start to end.
    """

    ends: Offsets
    run_ends: Offsets
    runs: Runs

    @classmethod
    def concatenate(cls, parts: Sequence[PairPaths]) -> PairPaths:
        """The outcomes of several calls as that of one call with all their pairs."""
        if not parts:
            return cls(np.empty((0, 5), np.int64), np.empty(0, np.int64), np.empty(0, np.uint32))
        before = np.cumsum([0, *(len(part.runs) for part in parts[:-1])])
        return cls(
            np.concatenate([part.ends for part in parts]),
            np.concatenate([part.run_ends + first for part, first in zip(parts, before, strict=True)]),
            np.concatenate([part.runs for part in parts]),
        )

    @classmethod
    def of_pair(cls, ends: Sequence[int], runs: Sequence[tuple[str, int]] = ()) -> PairPaths:
        """The outcome of one pair from its five ends and its runs of ``M``, ``I`` and ``D`` with their lengths."""
        encoded = np.array([length << 2 | "MID".index(operation) for operation, length in runs], dtype=np.uint32)
        return cls(np.array([ends], dtype=np.int64), np.array([len(encoded)], dtype=np.int64), encoded)


class PairBackend(Protocol):
    """Aligns pairs of sequences. Every backend gives the same outcome; they differ in speed and limits.

    Attributes
    ----------
    name : str
        ``cpu``, ``reference``, or ``cuda`` and the kernel.
    """

    name: str

    def align(
        self,
        queries: Sequences,
        subjects: Sequences,
        problem: AlignmentProblem,
        *,
        path: bool = True,
        progress: Callable[[int], None] | None = None,
    ) -> PairPaths:
        """Align query i with subject i, for all i.

        Parameters
        ----------
        queries, subjects : Sequences
            As many of one as of the other.
        problem : AlignmentProblem
        path : bool
            Whether the alignments are wanted; else scores and ends alone.
        progress : callable, optional
            Called from this thread with the cells done since the last call; in all at most the cells of the pairs.

        Raises
        ------
        InputError
            The backend cannot take the problem or the lengths; the message says why and what to do.
        EngineError
            The device fails, or has too little memory.
        KeyboardInterrupt
            After all threads have ended.
        """
        ...


def limited(progress: Callable[[int], None] | None, cells: int) -> Callable[[int], None] | None:
    """``progress`` that ends at ``cells``: kernels also count padding, and cells that a path computes again."""
    if progress is None:
        return None
    left = cells

    def advance(more: int) -> None:
        nonlocal left
        counted = min(more, left)
        left -= counted
        progress(counted)

    return advance
