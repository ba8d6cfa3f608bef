"""The forecast of a search on GPUs: how queries and database are divided among the devices, and the expected time.

The time is the number of cells divided by the sum of the devices' rates in cells per second. A device's rate is the
product of its multiprocessors, its clock and a number of cells per clock that depends on the architecture. This number
is measured where the kernels were tuned; elsewhere it is two thirds, the measured proportion, of what the instructions
of the inner loop allow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from swsearch.engine.cuda.runtime.device import DeviceFacts

CELLS_PER_CLOCK: Final = {75: 6.0, 80: 12.0, 90: 24.0, 110: 12.0, 120: 16.0}
"""Cells per clock and multiprocessor, by the oldest architecture to which the figure applies. The figure for 9.0 is
measured (``cuda/README.md``); the others follow from the instructions: there are no three-input maxima before 9.0, and
no half-precision maxima before 8.0. 11.0 has the instructions of 8.0: its half-precision maxima take the unit of the
sums. 12.0 has integer maxima, which take another unit, but of two inputs only."""
BOUND_SPEEDUP: Final = 1.4
"""Effective cells per computed cell where a bound takes the place of most scores (``docs/design/cuda-engine.md``)."""


def expected_rate(facts: DeviceFacts, *, bounded: bool) -> float:
    """Cells per second that a device is expected to score; ``bounded`` if the search has floors and a bound is used."""
    cells = max((known, cells) for known, cells in CELLS_PER_CLOCK.items() if known <= max(facts.architecture, 75))[1]
    return facts.multiprocessors * facts.clock_hz * cells * (BOUND_SPEEDUP if bounded else 1.0)


@dataclass(frozen=True)
class Forecast:
    """The plan of a search on GPUs; ``str`` formats it as one line.

    ``free_bytes`` are those of the device that has the least, ``database_bytes`` the size of the database, or of a
    device's share, in device memory, which is streamed in ``n_pieces``. With ``shared_subjects``, devices divide the
    subjects rather than the queries. ``n_profiles`` counts each strand; it is 0 if it is not known yet.
    """

    devices: Sequence[DeviceFacts]
    free_bytes: int
    database_bytes: int
    n_pieces: int
    shared_subjects: bool
    n_profiles: int
    n_pairs: int
    seconds: float

    def __str__(self) -> str:
        size = f"{self.database_bytes / 1e9:.2f} GB"
        what = f"{'a share' if self.shared_subjects else 'the database'} of {size}"
        room = f"{self.free_bytes / 1e9:.0f} GB free"
        where = "on the GPU" if len(self.devices) == 1 else f"on each of {len(self.devices)} GPUs"
        how = f"kept {where}" if self.n_pieces == 1 else f"streamed in {self.n_pieces} pieces"
        if self.n_profiles == 0:
            return f"{what} {how} ({room})"
        alone = self.n_profiles - 2 * self.n_pairs
        return f"{what} {how} ({room}); {self.n_pairs:,} pairs of queries and {alone:,} alone"
