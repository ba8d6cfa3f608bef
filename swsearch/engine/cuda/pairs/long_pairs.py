"""The pair backend for long pairs on a GPU: it aligns sequences over all their cells by diamonds.

It implements :class:`swsearch.engine.pair_arrays.PairBackend` with
:class:`swsearch.engine.cuda.pairs.diamonds.DiamondSweep`. Inputs are sequences of uint16 letters; the output is a
:class:`swsearch.engine.pair_arrays.PairPaths`: scores, ends and, if requested, paths.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from swsearch.closeable import Closeable
from swsearch.engine.cuda.pairs.diamonds import DiamondSweep
from swsearch.engine.cuda.runtime.device import Device
from swsearch.engine.cuda.runtime.pycuda_device import PyCudaDevice
from swsearch.engine.pair_arrays import AlignmentProblem, PairPaths, Sequences, limited
from swsearch.engine.reference_pairs import ReferencePairs

MEMORY_BYTES: Final = 256 << 20
"""Host memory for saved rows, used if the device has too little memory for all checkpoints of a path."""


class DiamondPairs(Closeable):
    """The pair backend for long pairs on one GPU, by default the first. A context manager; not shared between threads.

    :meth:`close` closes the device. Raises :class:`EngineUnavailable`, with the remedy, if no device can be used.
    """

    name = "cuda diamond"

    def __init__(self, device: Device | None = None) -> None:
        self._device: Device = PyCudaDevice() if device is None else device
        self._sweep = DiamondSweep(self._device)

    @property
    def description(self) -> str:
        """The device's name."""
        return self._device.facts.name

    def align(
        self,
        queries: Sequences,
        subjects: Sequences,
        problem: AlignmentProblem,
        *,
        path: bool = True,
        progress: Callable[[int], None] | None = None,
    ) -> PairPaths:
        """Align query i with subject i; see :class:`swsearch.engine.pair_arrays.PairBackend`.

        Without paths all pairs are scored in the same launches; a path is found for one pair at a time. A pair with an
        empty side has no cells and is aligned on the host. Errors are those of :meth:`DiamondSweep.ends`.
        """
        report = limited(progress, int(queries.lengths @ subjects.lengths))
        if not path:
            pairs = [(queries[index], subjects[index]) for index in range(len(queries))]
            return PairPaths.concatenate(
                [
                    PairPaths.of_pair((end.score, end.query_end, end.subject_end, 0, 0))
                    for end in self._sweep.ends(pairs, problem, report)
                ]
            )
        found = []
        for index in range(len(queries)):
            query, subject = queries[index], subjects[index]
            if len(query) == 0 or len(subject) == 0:
                found.append(ReferencePairs().align(Sequences.of([query]), Sequences.of([subject]), problem))
                continue
            end, pair_path = self._sweep.end_and_path(query, subject, problem, MEMORY_BYTES, report)
            ends = (end.score, end.query_end, end.subject_end, pair_path.query_start, pair_path.subject_start)
            found.append(PairPaths.of_pair(ends, pair_path.runs))
        return PairPaths.concatenate(found)

    def close(self) -> None:
        """Close the device."""
        self._device.close()
