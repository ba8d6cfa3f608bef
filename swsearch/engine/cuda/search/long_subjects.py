"""Scores the subjects of a batch that would end last, with a warp, or several, for each of their windows.

Inputs are the plan of a query and the subjects on the device, from a given index on; the output is the score block of
these subjects. Those that are longer than the plan's limit are cut into windows, which overlap by what an alignment
can span (:mod:`swsearch.engine.cuda.search.windows`), so that none takes longer than all other subjects together. A
window is a part of the residues that the device has, so nothing is copied but its start and length.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch.database.partition import Partition
from swsearch.engine.cuda.runtime.device import Buffer, Stream, Timing
from swsearch.engine.cuda.runtime.kernels import Arithmetic
from swsearch.engine.cuda.search.launches import IntraTaskLauncher, Listed, address
from swsearch.engine.cuda.search.plan import BatchPlan, ListedRoute, QueryPlan
from swsearch.engine.cuda.search.planner import listed_route
from swsearch.engine.cuda.search.slots import Slot
from swsearch.engine.cuda.search.subjects import DeviceSubjects
from swsearch.engine.cuda.search.windows import Windows, most_columns, windows_in_place
from swsearch.hits.score_block import ScoreBlock
from swsearch.typing import Scores

KNOWN_CUTS: Final = 16
"""Number of cuts that are remembered: queries of one length share them if their letters score alike."""


@dataclass(frozen=True, eq=False)
class _Cut:
    """The windows of subjects, longest first in ``order``, and their starts (u64) and lengths (u32) in bytes."""

    subjects: Partition
    windows: Windows
    order: NDArray[np.intp]
    table: NDArray[np.uint8]


class LongSubjectLauncher:
    """Plans the launches of one device, and remembers how it has cut the subjects of the last partition."""

    def __init__(self, lists: IntraTaskLauncher) -> None:
        self.lists = lists
        self._partition: Partition | None = None
        self._cuts: dict[tuple[int | None, ...], _Cut] = {}

    def plan(
        self, plan: BatchPlan, query: QueryPlan, subjects: DeviceSubjects, slot: Slot, side: Stream
    ) -> LongSubjects:
        """The launch of one query for the subjects from ``n_short`` of a plan on.

        The query must have a route for them. ``slot`` is that of the batch, and ``side`` a stream that no other query
        of the batch uses. Beside the inter-task kernel a column takes many times as long as without it, so the launch
        precedes this kernel if a window would end after it. Raises :class:`OutOfDeviceMemory`.
        """
        assert query.long is not None
        partition = subjects.partition
        if self._partition is not partition or len(self._cuts) == KNOWN_CUTS:
            self._partition = partition
            self._cuts.clear()
        long = partition[plan.n_short :]
        spanned = most_columns([query.request], long.lengths)
        at_a_time = self.lists.most_at_a_time(query.profile, query.long)
        key = (plan.n_short, spanned, plan.window_columns, at_a_time)
        cut = self._cuts.get(key)
        if cut is None:
            windows = windows_in_place(long.lengths, spanned, plan.window_columns, at_a_time)
            starts = long.starts[windows.subject] - partition.starts[0] + windows.begin.astype(np.uint64)
            table = np.concatenate([starts.view(np.uint8), windows.length.astype(np.uint32).view(np.uint8)])
            order = np.argsort(-windows.length, kind="stable")
            cut = self._cuts[key] = _Cut(long, windows, order, table)
        is_late = int(cut.windows.length.max()) > 2 * plan.window_columns
        stream = Stream.COMPUTE if is_late else side
        return LongSubjects(self.lists, query, cut, subjects.residues, slot, f"long {side.name}", stream)


class LongSubjects:
    """The launch of one query for its long subjects, and their scores; see :meth:`LongSubjectLauncher.plan`."""

    def __init__(
        self,
        lists: IntraTaskLauncher,
        query: QueryPlan,
        cut: _Cut,
        residues: Buffer,
        slot: Slot,
        name: str,
        stream: Stream,
    ) -> None:
        assert query.long is not None
        self.stream = stream
        self._lists = lists
        self._device = lists.device
        self._profile = query.profile
        self._route = query.long
        self._windows = cut.windows
        self._subjects = cut.subjects
        self._residues = residues
        self._slot = slot
        self._name = name
        self._scores = slot.scratch.buffer(f"scores {name}", len(cut.windows) * 4)
        self._table = slot.upload(name, cut.table)
        self._downloaded: Scores
        self._launch = self._planned(query.long, cut.order, stream)

    def start(self) -> None:
        """Launch the kernel, after the work of the stream for computation so far."""
        if self.stream is not Stream.COMPUTE:
            self._device.follow(self.stream, Stream.COMPUTE)
        self._launch()

    def join(self) -> None:
        """Let later work of the stream for computation wait for the scores."""
        if self.stream is not Stream.COMPUTE:
            self._device.follow(Stream.COMPUTE, self.stream)

    def begin_download(self) -> None:
        """Begin to download the scores; call :meth:`finish` when the download has ended."""
        self._downloaded = self._slot.pinned(len(self._windows), np.int32)
        self._device.begin_download(self._downloaded, self._scores, Stream.FINISH)

    def finish(self, timing: Timing) -> ScoreBlock:
        """The block of all these subjects, whose scores above the floor are exact.

        Windows whose scores exceed the type are scored again in this call, which waits for it.
        """
        scores, arithmetic = self._downloaded.copy(), self._route.arithmetic
        beyond = self._beyond(scores, arithmetic)
        n_rescored = len(np.unique(self._windows.subject[beyond]))
        while beyond.size and arithmetic.wider is not None:
            arithmetic = arithmetic.wider
            route = listed_route(self._device.facts.architecture, self._profile, arithmetic)
            launch = self._planned(route, beyond, Stream.COMPUTE)
            with self._device.timed(timing):
                launch()
            self._device.download(scores, self._scores, Stream.COMPUTE)
            beyond = self._beyond(scores, arithmetic)
        best = self._windows.best(scores)
        indices = self._subjects.subject_index
        cut = best[self._windows.length[best] < self._subjects.lengths]
        within = self._windows[cut].within(indices[self._windows.subject[cut]])
        return ScoreBlock(indices, scores[best], n_rescored, within=within)

    def _beyond(self, scores: Scores, arithmetic: Arithmetic) -> NDArray[np.intp]:
        """The windows whose scores may be inexact in a type."""
        return np.flatnonzero(scores > arithmetic.largest_exact(self._profile.max_score))

    def _planned(self, route: ListedRoute, chosen: NDArray[np.intp], stream: Stream) -> Callable[[], None]:
        """The launch of the chosen windows, in the given order."""
        name, n = self._name, len(chosen)
        counts = [n, 0]  # the list's length, and the counter of those taken from it
        listed = self._slot.upload(f"list {name}", np.append(chosen, counts).astype(np.uint32))
        profile = self._slot.profile(f"profile {name}", route.packed(self._profile))
        on_device = Listed(
            address(self._residues), address(self._table), address(self._table, 8 * len(self._windows)),
            address(listed), address(listed, 4 * n), n, int(self._windows.length.max()), address(self._scores),
            address(listed, 4 * n + 4),
        )  # fmt: skip
        return self._lists.plan(self._profile, profile, on_device, route=route, stream=stream, teams=True)
