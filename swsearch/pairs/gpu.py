"""Pairs on a GPU: the same scores and ends as the CPU's kernels give, sooner where there are many cells.

The GPU sweeps the matrix; where the alignment is wanted too, it leaves rows on the way from which the CPU walks back
(docs/design/diamond.md, "Path").
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from swsearch.engine.cuda.device import Device, PyCudaDevice
from swsearch.engine.cuda.diamond_plan import Letters, PairProblem
from swsearch.engine.cuda.diamonds import HORIZON_BYTES, DiamondSweep, KeptRows, PairEnd

GPU_CELLS: Final = 10_000_000_000
"""Cells of a pair from which on ``auto`` takes a GPU: opening one and loading a kernel takes about a second."""


class GpuPairs:
    """Sweeps pairs on one GPU. A context manager; not shared between threads.

    Parameters
    ----------
    device : Device, optional
        The first GPU by default; it is closed with this.

    Raises
    ------
    EngineUnavailable
        No device that can be used; the message says what would mend it.
    """

    def __init__(self, device: Device | None = None) -> None:
        self._device: Device = PyCudaDevice() if device is None else device
        self._sweep = DiamondSweep(self._device)

    @property
    def description(self) -> str:
        """The device's name."""
        return self._device.facts.name

    def end(
        self, query: Letters, subject: Letters, problem: PairProblem, progress: Callable[[int], None] | None = None
    ) -> PairEnd:
        """Best score and end."""
        return self._sweep.ends([(query, subject)], problem, progress)[0]

    def end_and_rows(
        self,
        query: Letters,
        subject: Letters,
        problem: PairProblem,
        memory_bytes: int,
        progress: Callable[[int], None] | None = None,
    ) -> tuple[PairEnd, KeptRows]:
        """The same of two sides that are not empty, and as many rows on the way as ``memory_bytes`` has room for."""
        most_rows = max(1, memory_bytes // (HORIZON_BYTES * len(subject)))
        return self._sweep.end_and_rows(query, subject, problem, most_rows, progress)

    def close(self) -> None:
        """Give the device back."""
        self._device.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
