"""The pair backend of the CPU (``simd/pair``): it aligns a short pair on one thread, and a long pair on all threads.

Inputs are sequences of uint16 letters and a problem; the output is a :class:`swsearch.engine.pair_arrays.PairPaths`.
The matrix of a long pair is divided into diamonds, which the threads compute (docs/design/diamond.md).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from swsearch import _native
from swsearch.engine.cpu.engine import usable_instruction_sets
from swsearch.engine.pair_arrays import AlignmentProblem, PairPaths, SequencePairs, limited
from swsearch.errors import InputError
from swsearch.threads import check_threads
from swsearch.typing import Progress

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
        self, pairs: SequencePairs, problem: AlignmentProblem, *, path: bool = True, progress: Progress | None = None
    ) -> PairPaths:
        """See :class:`swsearch.engine.pair_arrays.PairBackend`; scores may not exceed 30 bits."""
        short = (pairs.lengths.min(axis=0) >= 1) & (pairs.lengths.max(axis=0) <= SHORT_LETTERS)
        batches = [pairs] if short.all() else [SequencePairs.of([pair]) for pair in pairs]
        report = limited(progress, int(pairs.cells.sum()))
        try:
            return PairPaths.concatenate([self._align(batch, problem, path, report) for batch in batches])
        except ValueError as error:
            raise InputError(str(error)) from error

    def _align(
        self, pairs: SequencePairs, problem: AlignmentProblem, path: bool, progress: Progress | None
    ) -> PairPaths:
        """Align all pairs in one native call: each on one thread, but a single one on all threads."""
        fastest = "auto" if len(pairs) == 1 else _fastest_for_short(path=path)
        ends, run_ends, runs = _native.align_pairs(
            pairs.queries.letters, pairs.queries.ends, pairs.subjects.letters, pairs.subjects.ends,
            problem.table, problem.match, problem.mismatch, problem.gap_open, problem.gap_extend,
            problem.local, problem.free_ends, path, self._n_threads, self._memory_bytes,
            progress, self._instruction_set or fastest,
        )  # fmt: skip
        return PairPaths(ends, run_ends, runs)


def _fastest_for_short(*, path: bool) -> str:
    """The fastest instruction set for short pairs.

    With narrow vectors strips have few rows, so a short pair needs less padding and stores fewer traceback decisions.
    """
    usable = usable_instruction_sets()
    return next((name for name in (("sse41", "avx2") if path else ("avx2", "sse41")) if name in usable), "auto")


def cigars(paths: PairPaths, pairs: SequencePairs, n_threads: int = 1) -> list[str]:
    """The CIGAR of each pair, with ``=`` for columns of equal numbers and ``X`` for columns of different ones.

    Raises :class:`ValueError` if the paths are inconsistent with the sequences.
    """
    return _native.write_cigars(
        pairs.queries.letters, pairs.queries.ends, pairs.subjects.letters, pairs.subjects.ends,
        np.ascontiguousarray(paths.ends[:, 3]), np.ascontiguousarray(paths.ends[:, 4]), paths.run_ends, paths.runs,
        n_threads,
    )  # fmt: skip
