"""The pair backend of the CPU (``simd/pair``): it aligns a short pair on one thread, and a long pair on all threads.

Inputs are sequences of uint16 letters and a problem; the output is a :class:`swsearch.engine.pair_arrays.PairPaths`.
The matrix of a long pair is divided into diamonds, which the threads compute (docs/design/diamond.md).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from swsearch import _native
from swsearch.engine.cpu.engine import usable_instruction_sets
from swsearch.engine.pair_arrays import AlignmentProblem, PairPaths, Sequences, checked_lengths, limited
from swsearch.errors import InputError
from swsearch.threads import check_threads

SHORT_LETTERS: Final = 2048
"""Maximum number of letters of either sequence of a short pair; a longer pair alone occupies all threads."""
MEMORY_BYTES: Final = 256 << 20
"""Bytes of matrix rows saved for the traceback, in addition to memory linear in the lengths; shared by all threads."""


class CpuPairs:
    """The pair backend of the CPU; raises :class:`InputError` unless ``n_threads`` is from 1 to 1,024.

    ``memory_bytes`` are those of matrix rows saved for the traceback. By default, ``instruction_set`` is the fastest
    for short and for long pairs.
    """

    name = "cpu"

    def __init__(
        self, n_threads: int = 1, *, memory_bytes: int = MEMORY_BYTES, instruction_set: str | None = None
    ) -> None:
        check_threads(n_threads)
        self._n_threads = n_threads
        self._memory_bytes = memory_bytes
        self._instruction_set = instruction_set

    def align(
        self,
        queries: Sequences,
        subjects: Sequences,
        problem: AlignmentProblem,
        *,
        path: bool = True,
        progress: Callable[[int], None] | None = None,
    ) -> PairPaths:
        """See :class:`swsearch.engine.pair_arrays.PairBackend`; scores may not exceed 30 bits."""
        lengths = checked_lengths(queries, subjects)
        short = (lengths.min(axis=0) >= 1) & (lengths.max(axis=0) <= SHORT_LETTERS)
        limited_progress = limited(progress, int(queries.lengths @ subjects.lengths))
        try:
            if len(short) > 1 and short.all():
                return self._align_short(queries, subjects, problem, path, limited_progress)
            return PairPaths.concatenate(
                [
                    self._align_one(queries, subjects, index, problem, path, limited_progress)
                    for index in range(len(queries))
                ]
            )
        except ValueError as error:
            raise InputError(str(error)) from error

    def _align_short(
        self,
        queries: Sequences,
        subjects: Sequences,
        problem: AlignmentProblem,
        path: bool,
        progress: Callable[[int], None] | None,
    ) -> PairPaths:
        """Align all pairs in one native call, in which each thread aligns one pair after another."""
        ends, run_ends, runs = _native.align_pairs(
            queries.letters, queries.ends, subjects.letters, subjects.ends,
            problem.table, problem.match, problem.mismatch, problem.gap_open, problem.gap_extend,
            problem.local, problem.free_ends, path, self._n_threads, self._memory_bytes,
            progress, self._instruction_set or _fastest_for_short(path=path),
        )  # fmt: skip
        return PairPaths(ends, run_ends, runs)

    def _align_one(
        self,
        queries: Sequences,
        subjects: Sequences,
        index: int,
        problem: AlignmentProblem,
        path: bool,
        progress: Callable[[int], None] | None,
    ) -> PairPaths:
        """Align one pair on all threads."""
        *ends, runs = _native.align_pair(
            queries[index], subjects[index],
            problem.table, problem.match, problem.mismatch, problem.gap_open, problem.gap_extend,
            problem.local, problem.free_ends, path, self._n_threads, self._memory_bytes,
            progress, self._instruction_set or "auto",
        )  # fmt: skip
        return PairPaths.of_pair(ends, runs or ())


def _fastest_for_short(*, path: bool) -> str:
    """The fastest instruction set for short pairs.

    With narrow vectors strips have few rows, so a short pair needs less padding and stores fewer traceback decisions.
    """
    usable = usable_instruction_sets()
    return next((name for name in (("sse41", "avx2") if path else ("avx2", "sse41")) if name in usable), "auto")


def cigars(paths: PairPaths, queries: Sequences, subjects: Sequences, n_threads: int = 1) -> list[str]:
    """The CIGAR of each pair, with ``=`` for columns of equal numbers and ``X`` for columns of different ones.

    Raises :class:`ValueError` if the paths are inconsistent with the sequences.
    """
    return _native.write_cigars(
        queries.letters, queries.ends, subjects.letters, subjects.ends,
        np.ascontiguousarray(paths.ends[:, 3]), np.ascontiguousarray(paths.ends[:, 4]), paths.run_ends, paths.runs,
        n_threads,
    )  # fmt: skip
