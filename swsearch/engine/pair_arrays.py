"""The input and output of every pair backend: pairs of sequences as arrays, the alignment problem, and its outcome.

Sequence i of a batch ends at ``ends[i]`` and begins at the end of sequence i - 1. Letters are numbers: they are
compared for equality, or are rows and columns of a score table. Coordinates are 0-based and half-open. If there are
several optimal alignments, every backend returns the same one (docs/design/diamond.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntFlag
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from swsearch.errors import InputError
from swsearch.typing import Letters, Progress, ScoreTable

Offsets = NDArray[np.int64]
Runs = NDArray[np.uint32]


@dataclass(frozen=True, eq=False)
class Sequences:
    """Consecutive sequences in one array of uint16 letters.

    ``ends``, int64 of shape (n,), is the index after the last letter of each sequence, ascending.
    """

    letters: Letters
    ends: Offsets

    def __len__(self) -> int:
        return len(self.ends)

    @cached_property
    def starts(self) -> Offsets:
        """Index of each sequence's first letter."""
        return np.concatenate(([0], self.ends))[:-1].astype(np.int64)

    @cached_property
    def lengths(self) -> Offsets:
        """Number of letters of each sequence."""
        return self.ends - self.starts

    @classmethod
    def of(cls, parts: Sequence[Letters]) -> Sequences:
        """Sequences from one array of letters per sequence."""
        ends = np.cumsum([len(part) for part in parts], dtype=np.int64)
        return cls(np.concatenate(parts) if parts else np.empty(0, np.uint16), ends)

    def __iter__(self) -> Iterator[Letters]:
        return (self.letters[start:end] for start, end in zip(self.starts.tolist(), self.ends.tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class SequencePairs:
    """Query i and subject i of each pair.

    Raises :class:`InputError` if the numbers of queries and subjects differ, or the ends of sequences do not increase.
    """

    queries: Sequences
    subjects: Sequences

    def __post_init__(self) -> None:
        if len(self.queries) != len(self.subjects):
            counts = f"({len(self.queries)}) and subjects ({len(self.subjects)})"
            raise InputError(f"the numbers of queries {counts} differ")
        if (self.lengths < 0).any():
            raise InputError("the ends of the sequences do not increase")

    @classmethod
    def of(cls, pairs: Sequence[tuple[Letters, Letters]]) -> SequencePairs:
        """Pairs from the letters of their two sequences."""
        return cls(Sequences.of([query for query, _ in pairs]), Sequences.of([subject for _, subject in pairs]))

    def __len__(self) -> int:
        return len(self.queries)

    def __iter__(self) -> Iterator[tuple[Letters, Letters]]:
        return zip(self.queries, self.subjects, strict=True)

    @cached_property
    def lengths(self) -> Offsets:
        """Numbers of letters of the queries and of the subjects, shape (2, n)."""
        return np.stack((self.queries.lengths, self.subjects.lengths))

    @cached_property
    def cells(self) -> Offsets:
        """Number of cells of the matrix of each pair."""
        return self.queries.lengths * self.subjects.lengths


class FreeEnds(IntFlag):
    """The ends at which letters outside the alignment cost nothing: before its start or after its end.

    The numbers are those of ``FreeEnd`` in ``simd/pair/pair.hpp`` and ``cuda/pairs/free_ends.cuh``.
    """

    NONE = 0
    QUERY_START = 1
    QUERY_END = 2
    SUBJECT_START = 4
    SUBJECT_END = 8
    QUERY = QUERY_START | QUERY_END
    SUBJECT = SUBJECT_START | SUBJECT_END
    STARTS = QUERY_START | SUBJECT_START
    ALL = QUERY | SUBJECT


@dataclass(frozen=True, eq=False)
class AlignmentProblem:
    """The optimisation problem of every pair of a call; a gap of k letters costs ``gap_open + k * gap_extend``.

    Attributes
    ----------
    local : bool
        Whether an alignment may begin and end anywhere, so that no score is below 0.
    free_ends : FreeEnds
        Ends at which the letters outside the alignment have no cost; without effect if the problem is local.
    gap_open, gap_extend : int
        Costs, 0 to 16,383.
    match, mismatch : int
        Scores of equal and of different letters, used if there is no table.
    table : int8 array, shape (query letters, subject letters), or None
        Score of a query letter (row) and a subject letter (column).
    """

    local: bool
    free_ends: FreeEnds
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
        """Largest difference of H between two neighbouring nodes."""
        return max(self.max_score, 0) + self.gap_first

    def is_free(self, end: FreeEnds) -> bool:
        """Whether the letters outside an alignment cost nothing at this end."""
        return self.local or end in self.free_ends

    def border(self, k: NDArray[np.int64], start: FreeEnds) -> NDArray[np.int32]:
        """H of the border nodes ``k`` letters from the corner; ``start``: whether letters of the query or subject."""
        cost = np.where(k == 0, 0, self.gap_open + k * self.gap_extend)
        return (np.zeros_like(k) if self.is_free(start) else -cost).astype(np.int32)


@dataclass(frozen=True, eq=False)
class PairPaths:
    """The outcome of the pairs of a call, one row per pair.

    Attributes
    ----------
    ends : int64 array, shape (n, 5)
        Score, query end, subject end, query start, subject start; the starts are 0 if no path was requested.
    run_ends : int64 array, shape (n,)
        Index in ``runs`` after the last run of each pair.
    runs : uint32 array
        Runs from the start of the path to its end, each encoded as length * 4 + operation: 0 for M, 1 for I (consumes
        the query), 2 for D (consumes the subject).
    """

    ends: Offsets
    run_ends: Offsets
    runs: Runs

    @classmethod
    def concatenate(cls, parts: Sequence[PairPaths]) -> PairPaths:
        """The outcomes of several calls, combined as if one call had aligned all pairs."""
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
    """Aligns pairs of sequences. Every backend returns the same outcome; they differ in speed and limits.

    Attributes
    ----------
    name : str
        ``cpu``, ``reference``, or ``cuda`` and the kernel.
    """

    name: str

    def align(
        self, pairs: SequencePairs, problem: AlignmentProblem, *, path: bool = True, progress: Progress | None = None
    ) -> PairPaths:
        """Align the two sequences of each pair.

        Parameters
        ----------
        pairs : SequencePairs
        problem : AlignmentProblem
        path : bool
            Whether paths are computed; if not, the outcome has scores and ends only.
        progress : callable, optional
            Called from this thread with the number of cells computed since the last call; the sum is at most the number
            of cells of the pairs.

        Raises
        ------
        InputError
            The backend does not support the problem or the lengths; the message names the reason and the remedy.
        EngineError
            The device fails, or has too little memory.
        KeyboardInterrupt
            After all threads have ended.
        """
        ...


def limited(progress: Progress | None, cells: int) -> Progress | None:
    """A callback that reports at most ``cells`` in total to ``progress``.

    Kernels also count padding, and cells that the traceback computes again.
    """
    if progress is None:
        return None
    left = cells

    def advance(more: int) -> None:
        nonlocal left
        counted = min(more, left)
        left -= counted
        progress(counted)

    return advance
