"""Finds the end positions of the best alignments of scored subjects, with the kernel ``end_positions``.

Inputs are a query profile, a partition and the best score of each of its subjects; the output is the first end of each
subject. The search runs after scoring, for the few subjects whose alignments are reported. Subjects much longer than
the query are cut into windows (``windows``), so that a genome fills the device. They overlap by the columns that an
alignment of the known score can span, so each such alignment lies completely within a window. Therefore a cell of a
window whose H equals the score is an end, and the subject's first end is the first end over its windows. Ends are
ordered by column, then by row.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from swsearch.database.partition import Partition
from swsearch.engine.cuda.runtime.device import OutOfDeviceMemory, Stream
from swsearch.engine.cuda.runtime.kernels import Arithmetic
from swsearch.engine.cuda.search.launches import IntraTaskLauncher, Listed, address
from swsearch.engine.cuda.search.planner import listed_route
from swsearch.engine.cuda.search.slots import Slot
from swsearch.engine.cuda.search.windows import windows_of
from swsearch.errors import EngineError, InputError
from swsearch.hits.score_block import Ends
from swsearch.query.profile import QueryProfile
from swsearch.typing import Offsets, Scores

MIN_STRIDE: Final = 4096
"""Smallest distance in columns between the starts of two windows: a smaller one only adds overlap."""
GROUP_BYTES: Final = 32 << 20
SMALLEST_GROUP_BYTES: Final = 1 << 20
"""Residues of a group of subjects whose ends are searched together, unless a single window has more, and of the
smallest group if memory is short: if fewer bytes are free, the device finds no ends."""
NOWHERE: Final = np.uint64(2**64 - 1)
"""The value for no end. Other ends are column * 2**32 + row, both counted from 0."""


class EndFinder:
    """Finds ends on one device, in memory that no batch uses."""

    def __init__(self, launcher: IntraTaskLauncher) -> None:
        self._device = launcher.device
        self._slot = Slot(launcher.device)
        self._launcher = launcher

    def ends(self, profile: QueryProfile, subjects: Partition, scores: Scores) -> Ends | None:
        """See :meth:`swsearch.engine.protocol.BackgroundEngine.ends`.

        The subjects have buffers of their own, so this may be called between two pieces of a partition.
        """
        if len(scores) != len(subjects):
            raise InputError(f"there are {len(scores)} scores for {len(subjects)} subjects; give one score per subject")
        group_bytes = GROUP_BYTES
        while True:
            try:
                return self._ends(profile, subjects, scores, group_bytes)
            except OutOfDeviceMemory:
                self._device.synchronize()
                self._slot.free()
                if group_bytes <= SMALLEST_GROUP_BYTES:
                    return None
                group_bytes //= 2

    def close(self) -> None:
        """Free the memory."""
        self._slot.free()

    def _ends(self, profile: QueryProfile, subjects: Partition, scores: Scores, group_bytes: int) -> Ends:
        best = np.zeros(len(subjects), dtype=np.int32)
        first = np.full(len(subjects), NOWHERE, dtype=np.uint64)
        columns = profile.most_columns(scores)
        if scores.max(initial=0) > Arithmetic.WIDE.largest_exact(profile.max_score):
            raise InputError(f"a score of {scores.max()} may exceed 32 bits")
        most = 0
        for arithmetic in Arithmetic:  # the narrowest type that is exact for the best score of a subject
            least, most = most, arithmetic.largest_exact(profile.max_score)
            indices = np.flatnonzero((scores > least) & (scores <= most))
            spanned = None if columns is None else columns[indices]
            windows = windows_of(subjects.lengths[indices], spanned, MIN_STRIDE)
            for group in replace(windows, subject=indices[windows.subject]).groups(group_bytes):
                gathered = group.gathered(subjects)
                of_rows = group[gathered.subject_index.astype(np.intp)]
                found_best, found = self._find(profile, arithmetic, gathered, scores[of_rows.subject])
                moved = found + (of_rows.begin.astype(np.uint64) << np.uint64(32))
                np.maximum.at(best, of_rows.subject, found_best)
                np.minimum.at(first, of_rows.subject, np.where(found == NOWHERE, NOWHERE, moved))
        wrong = np.flatnonzero((best != scores) & (scores > 0))
        if wrong.size:
            index = int(wrong[0])
            raise EngineError(
                f"subject {index}: its score is given as {scores[index]}, but its best score is {best[index]}"
            )
        ends = np.where(scores > 0, first + np.uint64((1 << 32) + 1), np.uint64(0))
        return Ends((ends & np.uint64(0xFFFFFFFF)).astype(np.int64), (ends >> np.uint64(32)).astype(np.int64))

    def _find(
        self, profile: QueryProfile, arithmetic: Arithmetic, subjects: Partition, scores: Scores
    ) -> tuple[Scores, Offsets]:
        """The best score of each subject and its first end, in one launch; ``scores`` are the known best scores."""
        device, slot, n = self._device, self._slot, len(subjects)
        route = listed_route(device.facts.architecture, profile, arithmetic, "end_positions")
        counts = np.array([n, 0], dtype=np.uint32)  # the list's length, and the counter of subjects taken from it
        slot.clear()  # the last search has ended
        residues = slot.scratch.buffer("residues", subjects.residues.nbytes)
        device.upload(residues, subjects.residues, Stream.ENDS)  # may be too large to pin
        longest_first = np.arange(n, dtype=np.uint32)[::-1]
        uploaded: dict[str, NDArray[Any]] = {
            "starts": subjects.starts, "lengths": subjects.lengths, "listed": longest_first, "counts": counts,
            "wanted": scores,
        }  # fmt: skip
        starts, lengths, listed, counters, wanted = (slot.upload(*each, Stream.ENDS) for each in uploaded.items())
        best, positions = slot.scratch.buffer("scores", n * 4), slot.scratch.buffer("found", n * 8)
        device.clear(positions, n * 8, Stream.ENDS)
        on_device = slot.profile("profile", route.packed(profile), Stream.ENDS)
        self._launcher.plan(
            profile, on_device,
            Listed(
                (address(residues), address(starts), address(lengths)), (address(listed), address(counters)),
                n, int(subjects.lengths[-1]), address(best), address(counters, 4),
            ),
            route=route, stream=Stream.ENDS, further=(address(wanted), address(positions)),
        )()  # fmt: skip
        found_best, found = np.empty(n, np.int32), np.empty(n, np.uint64)
        device.download(found_best, best, Stream.ENDS)
        device.download(found, positions, Stream.ENDS)
        return found_best, ~found
