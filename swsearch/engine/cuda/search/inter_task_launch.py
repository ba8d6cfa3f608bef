"""What the launches of the inter-task kernel read: a description of those of a query's strips, or of two queries'.

:mod:`swsearch.engine.cuda.search.batch_run` makes the descriptions of a batch and passes their values to the device.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from swsearch.engine.cuda.runtime.device import Argument, Buffer
from swsearch.engine.cuda.runtime.kernels import KernelSpec
from swsearch.engine.cuda.search.launches import address
from swsearch.engine.cuda.search.routing import InterTaskPlan
from swsearch.query.profile import QueryProfile

NULL: Final = np.uint64(0)


@dataclass(frozen=True, eq=False)
class InterTaskLaunch:
    """The inter-task launches of all strips against some subjects.

    Attributes
    ----------
    plan : InterTaskPlan
    kernels : tuple of KernelSpec
        The kernel of each strip.
    profile : str
        Name of the packed profile in the slot of the batch.
    profiles : sequence of QueryProfile
        What is packed, when the first launch needs it.
    starts, lengths : uint64
        Addresses of the subjects' tables.
    n_subjects : int
    scores : sequence of Buffer
        The scores of each query.
    condition : list of arguments
        Address of a number that the device has counted, and the range in which the kernels do their work; empty if
        they always do.
    listed : list of arguments
        Addresses of a list of subjects and of its length; null for the first ``n_subjects`` subjects.
    count : Buffer or None
        Where to count, after these launches, the subjects that pass the bound.
    """

    plan: InterTaskPlan
    kernels: tuple[KernelSpec, ...]
    profile: str
    profiles: Sequence[QueryProfile]
    starts: np.uint64
    lengths: np.uint64
    n_subjects: int
    scores: Sequence[Buffer]
    condition: Sequence[Argument] = ()
    listed: Sequence[Argument] = (NULL, NULL)
    count: Buffer | None = None

    @property
    def counters(self) -> list[int]:
        """The work counters of the strips before the launch, closed if there is a condition (``open_counters.cu``)."""
        return [strip.shape.tile.closed_counter if self.condition else 0 for strip in self.plan.strips]


def boundary_addresses(boundary: Buffer | None, strip: int, *, in_place: bool) -> list[Argument]:
    """Addresses at which a strip reads and writes its boundary: the two halves of one buffer, alternately, or one.

    A strip of one query may overwrite its boundary in place, because its group reads each column before it writes the
    column; a strip of two queries has words of another size than a strip of one below it.
    """
    if boundary is None or in_place:
        return [address(boundary)] * 2
    halves = [np.uint64(boundary.address), np.uint64(boundary.address + boundary.n_bytes // 32 * 16)]
    return [halves[1 - strip % 2], halves[strip % 2]]
