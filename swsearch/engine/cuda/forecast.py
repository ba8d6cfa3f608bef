"""What a search on GPUs is going to be: how queries and database are laid out, and about how long it takes.

The time is the cells over the devices' rates. A multiprocessor's rate is cells a clock, by architecture: measured where
the kernels were tuned, else what the instructions of the inner loop allow, in the same proportion (two thirds).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from swsearch.engine.cuda.device import DeviceFacts

CELLS_A_CLOCK: Final = {75: 4.0, 80: 12.0, 90: 24.0}
"""By the oldest architecture that it holds for; 9.0 is measured (``cuda/README.md``), the others follow from their
instructions: no three-input maxima before 9.0, no half-precision maxima before 8.0."""


def expected_rate(facts: DeviceFacts) -> float:
    """Cells a second that a device is expected to score."""
    cells = max((known, cells) for known, cells in CELLS_A_CLOCK.items() if known <= max(facts.architecture, 75))[1]
    return facts.multiprocessors * facts.clock_hz * cells


@dataclass(frozen=True)
class Forecast:
    """A search on GPUs as it is planned; prints as one line.

    Attributes
    ----------
    devices : sequence of DeviceFacts
    free_bytes : int
        Memory that the fullest device has free.
    database_bytes : int
        Memory that the database takes on one device: all of it, or its share.
    n_pieces : int
        Pieces that each device streams it in; 1 where it is kept.
    shared_subjects : bool
        Whether each of several devices has a share of the subjects, not of the queries.
    n_profiles : int
        Queries, strands counted; 0 where they are not known yet.
    n_pairs : int
        Pairs of them that are scored together.
    seconds : float
        Expected time of the scores.
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
