"""The CPU engine: scores many subjects at once, one per SIMD lane, on several threads.

Inputs are query profiles and a partition of the packed database; the output is one block of exact scores per profile.
The kernels are written in C++ (``simd/score``), from one source for all instruction sets; by default the best set of
this processor is used. Scores depend neither on the instruction set nor on the number of threads: they are computed in
8 bits first, and subjects that exceed this range are scored again in 16 or 32 bits. Floors save work: no exact score is
computed for a subject whose score is proved to be below its floor (``docs/design/bound.md``).
``docs/design/cpu-engine.md`` describes the method and its speed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from swsearch import _native
from swsearch.database.partition import Partition
from swsearch.engine.protocol import EngineInfo, ScoreRequest
from swsearch.errors import EngineError, EngineUnavailable, InputError
from swsearch.hits.score_block import ScoreBlock
from swsearch.threads import threads_to_use, usable_cores
from swsearch.typing import Closeable, Progress

_LARGEST_FLOOR: Final = 2**31 - 1
_CHOOSE_BAND: Final = -1
BAND_ROWS: Final = (1, 4, 6)
"""Query rows per band of the kernels for bounds (``docs/design/bound.md``); with 1 the cells are exact."""
ROWS_OF_TWO_THREADS: Final = 2040
"""Query rows per call of two threads. With more threads a call has more rows, because threads wait for each other at
the end of its rounds; the first result of a call takes as long as with two."""
SCORES_PER_CALL: Final = 2**23
"""Maximum number of scores in memory at a time: 32 MB, which is enough work for all threads."""


def usable_instruction_sets() -> list[str]:
    """Names of the instruction sets that are built and that this processor can run, best first."""
    return [name for name, usable in _native.instruction_sets() if usable]


class CpuEngine(Closeable):
    """Scores profiles with the processor's vectors, by default those of the best of :func:`usable_instruction_sets`.

    There are ``threads`` worker threads, by default one per usable core. ``scores_per_call`` scores of all profiles are
    in memory at a time, at least one per profile. ``band_rows`` are the query rows per band of the upper bound by which
    subjects below a floor are excluded, one of ``BAND_ROWS``, or 0 for exact scores of all subjects; by default it is
    chosen for each query and floor. No score depends on these.

    Raises :class:`InputError` if ``threads`` is below 1 or ``band_rows`` is not available, and
    :class:`EngineUnavailable` if this processor cannot run ``instruction_set``, or none of that name is built.
    """

    name = "cpu"
    profiles_per_call = 16

    def __init__(
        self,
        threads: int | None = None,
        instruction_set: str | None = None,
        *,
        scores_per_call: int = SCORES_PER_CALL,
        band_rows: int | None = None,
    ) -> None:
        if threads is not None and threads < 1:
            raise InputError(f"{threads} threads were requested; choose at least 1")
        if band_rows not in (None, 0, *BAND_ROWS):
            choices = ", ".join(map(str, (0, *BAND_ROWS)))
            raise InputError(f"there are no bands of {band_rows} rows; choose from {choices}")
        usable = usable_instruction_sets()
        if instruction_set is not None and instruction_set not in usable:
            raise EngineUnavailable("cpu", f"instruction set {instruction_set!r} is not among {', '.join(usable)}")
        self.threads = threads_to_use(threads)
        self.instruction_set = usable[0] if instruction_set is None else instruction_set
        self.rows_per_call = ROWS_OF_TWO_THREADS * max(1, self.threads // 2)
        self._scores_per_call = scores_per_call
        self._band_rows = _CHOOSE_BAND if band_rows is None else band_rows
        self._closed = False

    def score(
        self, requests: Sequence[ScoreRequest], partition: Partition, progress: Progress | None = None
    ) -> list[ScoreBlock]:
        """See :class:`swsearch.engine.protocol.ScoreEngine`."""
        if self._closed:
            raise EngineError("the CPU engine was closed; make a new one")
        step = max(1, self._scores_per_call // max(1, len(requests)))
        pieces = [
            self._score_piece(requests, partition[first : first + step], progress)
            for first in range(0, max(1, len(partition)), step)
        ]
        return [ScoreBlock.concatenate(list(blocks)) for blocks in zip(*pieces, strict=True)]

    def _score_piece(
        self, requests: Sequence[ScoreRequest], partition: Partition, progress: Progress | None
    ) -> list[ScoreBlock]:
        profiles = [request.profile for request in requests]
        shortest = sorted({0, *(length for request in requests for length, _ in request.floors_by_length)})
        floors = [[min(request.floor_of(length), _LARGEST_FLOOR) for request in requests] for length in shortest]
        scores = np.empty((len(profiles), len(partition)), dtype=np.int32)
        counts = _native.score_partition(
            [(profile.rows, profile.table, profile.gap.open, profile.gap.extend) for profile in profiles],
            partition.residues,
            np.ascontiguousarray(partition.starts),
            np.ascontiguousarray(partition.lengths),
            scores,
            list(zip(shortest, floors, strict=True)),
            self.instruction_set,
            self.threads,
            progress,
            self._band_rows,
        )
        # The index of each subject's floor.
        step_of = np.searchsorted(shortest[1:], partition.lengths, side="right")
        blocks = []
        for i, (row, (n_rescored, n_bounded)) in enumerate(zip(scores, counts, strict=True)):
            block = ScoreBlock(partition.subject_index, row, n_rescored, n_bounded=n_bounded)
            needed = np.array([of_profiles[i] for of_profiles in floors], np.int32)[step_of]
            blocks.append(block if requests[i].floor is None else block.at_least(needed))
        return blocks

    def close(self) -> None:
        """Mark the engine as closed. It owns no resources between calls, but later calls that score raise an error."""
        self._closed = True


def cpu_info() -> EngineInfo:
    """The instruction set that is used by default on this machine, the other usable ones, and the number of cores."""
    best, *others = usable_instruction_sets()
    cores = usable_cores()
    also = f" (also {', '.join(others)})" if others else ""
    return EngineInfo(
        "cpu", built=True, usable=True, detail=f"{best}{also}, {cores} {'core' if cores == 1 else 'cores'}"
    )
