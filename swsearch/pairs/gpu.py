"""Pairs on a GPU: the same scores and ends as the CPU's kernels give, sooner where there are many cells.

The GPU sweeps the matrix; where the alignment is wanted too, it sweeps it again and leaves what the CPU needs to walk
back through the blocks on the path (docs/design/diamond.md, "On a GPU").
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from swsearch.closing import Closing
from swsearch.engine.cuda.device import Device, PyCudaDevice
from swsearch.engine.cuda.diamond_launch import PairEnd
from swsearch.engine.cuda.diamond_paths import PairPath
from swsearch.engine.cuda.diamonds import DiamondSweep
from swsearch.engine.pair_arrays import AlignmentProblem
from swsearch.typing import Letters

GPU_CELLS: Final = 10_000_000_000
"""Cells of a pair from which on ``auto`` takes a GPU: opening one and loading a kernel takes about a second."""


class GpuPairs(Closing):
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
        self, query: Letters, subject: Letters, problem: AlignmentProblem, progress: Callable[[int], None] | None = None
    ) -> PairEnd:
        """Best score and end."""
        return self._sweep.ends([(query, subject)], problem, progress)[0]

    def end_and_path(
        self,
        query: Letters,
        subject: Letters,
        problem: AlignmentProblem,
        memory_bytes: int,
        progress: Callable[[int], None] | None = None,
    ) -> tuple[PairEnd, PairPath]:
        """The same of two sides that are not empty, and the path; host memory as :class:`DiamondSweep` says."""
        return self._sweep.end_and_path(query, subject, problem, memory_bytes, progress)

    def close(self) -> None:
        """Give the device back."""
        self._device.close()
