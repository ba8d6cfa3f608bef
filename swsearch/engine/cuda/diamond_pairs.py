"""Long pairs on a GPU by diamonds: the pair backend over :class:`swsearch.engine.cuda.diamonds.DiamondSweep`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from swsearch.closeable import Closeable
from swsearch.engine.cuda.device import Device, PyCudaDevice
from swsearch.engine.cuda.diamonds import DiamondSweep
from swsearch.engine.pair_arrays import AlignmentProblem, PairPaths, Sequences, limited
from swsearch.engine.reference_pairs import ReferencePairs

MEMORY_BYTES: Final = 256 << 20
"""Host memory for rows, where the device has no room for all that a path needs."""


class DiamondPairs(Closeable):
    """The pair backend for long pairs on one GPU. A context manager; not shared between threads.

    Parameters
    ----------
    device : Device, optional
        The first GPU by default; it is closed with this.

    Raises
    ------
    EngineUnavailable
        No device that can be used; the message says what would mend it.
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

        Pairs of scores alone are in flight together; a path is found for one pair at a time. The path of
        a pair with an empty side, which has no cells, is found on the host.

        Raises
        ------
        InputError
            Sequences so long that a score may leave 30 bits, or costs that the kernels do not take.
        OutOfDeviceMemory
            A pair does not fit alone; the message tells its lengths.
        """
        told = limited(progress, int(queries.lengths @ subjects.lengths))
        if not path:
            pairs = [(queries[index], subjects[index]) for index in range(len(queries))]
            return PairPaths.concatenate(
                [
                    PairPaths.of_pair((end.score, end.query_end, end.subject_end, 0, 0))
                    for end in self._sweep.ends(pairs, problem, told)
                ]
            )
        found = []
        for index in range(len(queries)):
            query, subject = queries[index], subjects[index]
            if len(query) == 0 or len(subject) == 0:
                found.append(ReferencePairs().align(Sequences.of([query]), Sequences.of([subject]), problem))
                continue
            end, way = self._sweep.end_and_path(query, subject, problem, MEMORY_BYTES, told)
            ends = (end.score, end.query_end, end.subject_end, way.query_start, way.subject_start)
            found.append(PairPaths.of_pair(ends, way.runs))
        return PairPaths.concatenate(found)

    def close(self) -> None:
        """Close the device."""
        self._device.close()
