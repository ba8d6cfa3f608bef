"""Launches the inter-task kernel for a batch: each strip of one query, or of two, against some subjects.

Where a bound may take the place of scores, it is first computed for a sample of the subjects. The device counts those
that pass; by this number it opens the work counters of the bound or those of the scores for all subjects, and the other
launch finds no work.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from swsearch.engine.cuda.runtime.device import Buffer, Scratch, Stream
from swsearch.engine.cuda.runtime.kernels import OPEN_COUNTERS_KERNEL, Arithmetic, Pairing
from swsearch.engine.cuda.runtime.parameters import INTER_TASK, OPEN_COUNTERS, packed
from swsearch.engine.cuda.search.launches import address
from swsearch.engine.cuda.search.plan import BatchPlan, BoundPlan, InterTaskPlan
from swsearch.engine.cuda.search.selection import ScoreFilter, Selector
from swsearch.engine.cuda.search.subjects import DeviceSubjects
from swsearch.query.profile import QueryProfile


@dataclass(frozen=True, eq=False)
class InterTaskLaunch:
    """The inter-task launches of all strips of a plan against some subjects.

    ``profile`` names the packed profile in the slot of the batch, and ``profiles`` are packed when the first launch
    needs them. ``condition`` has the address of a number that the device has counted and the range in which the kernels
    do their work. ``listed`` has the addresses of a list of subjects and of its length, null for the first
    ``n_subjects``. The subjects that pass the bound are added to ``count``.
    """

    plan: InterTaskPlan
    profile: str
    profiles: Sequence[QueryProfile]
    starts: int
    lengths: int
    n_subjects: int
    scores: Sequence[Buffer]
    condition: tuple[int, int, int] | None = None
    listed: tuple[int, int] = (0, 0)
    count: Buffer | None = None

    @property
    def counters(self) -> list[int]:
        """The work counters of the strips before the launch, closed if there is a condition (``open_counters.cu``)."""
        return [0 if self.condition is None else strip.tile.closed_counter for strip in self.plan.strips]


@dataclass(eq=False)
class InterTaskLauncher:
    """The inter-task launches of one batch; ``launched`` is called after the first launch for all subjects.

    ``n_columns`` are those of the boundaries of all subjects. ``n_passing`` is pinned memory, uint32 of shape (1,), for
    the number of subjects of the sample that pass the bound.
    """

    batch: BatchPlan
    subjects: DeviceSubjects
    n_columns: int
    scores: Sequence[Buffer]
    scratch: Scratch
    selector: Selector
    launched: Callable[[], None]
    n_passing: NDArray[np.uint32] = field(init=False)
    _packed: dict[str, int] = field(default_factory=dict)

    def plan(self) -> list[InterTaskLaunch]:
        """The launches of all subjects, preceded, for a bound, by those that choose between both."""
        batch, bound, slot = self.batch, self.batch.bound, self.selector.slot
        tables = address(self.subjects.starts), address(self.subjects.lengths)
        exact = InterTaskLaunch(batch.inter_task, "profile", batch.profiles, *tables, batch.n_short, self.scores)
        if bound is None:
            return [exact]
        count = slot.scratch.buffer("passing", 4)
        self.selector.device.clear(count, 4, Stream.COMPUTE)
        all_subjects = replace(exact, plan=bound.inter_task, profile="profile bound")
        starts, lengths = self._sample(bound)
        sample_scores = [slot.scratch.buffer(f"sample {n}", len(bound.rows) * 4) for n in range(len(self.scores))]
        sample = replace(
            all_subjects, starts=starts, lengths=lengths, n_subjects=len(bound.rows), scores=sample_scores, count=count
        )
        number = address(count)
        return [
            sample,
            replace(all_subjects, condition=(number, 0, bound.most_passing)),
            replace(exact, condition=(number, bound.most_passing + 1, 2**32 - 1)),
        ]

    def _sample(self, bound: BoundPlan) -> tuple[int, int]:
        """Addresses of the starts (u64) and the lengths (u32) of the subjects in a sample."""
        subjects, slot, rows = self.subjects, self.selector.slot, bound.rows
        table = None if subjects.streamed else subjects.tables.get("sample")
        if table is None:
            starts = subjects.partition.starts[rows] - subjects.partition.starts[0]
            data = np.concatenate([starts.view(np.uint8), subjects.partition.lengths[rows].view(np.uint8)])
            if subjects.streamed:
                table = slot.upload("sample", data)
            else:
                staged = slot.pinned(len(data), np.uint8)
                np.copyto(staged, data)
                table = subjects.tables["sample"] = self.selector.device.allocate(len(data))
                self.selector.device.upload(table, staged, Stream.COMPUTE)
        return address(table), address(table, len(rows) * 8)

    def _count_passing(self, sample: InterTaskLaunch, count: Buffer) -> None:
        """Count the subjects of a sample that pass the bound, and begin to download their number."""
        assert self.batch.bound is not None
        for query, scores in zip(self.batch.queries, sample.scores, strict=True):
            stops = np.searchsorted(self.batch.bound.rows, [part.stop for part in query.ranges]).tolist()
            candidates = [
                ScoreFilter(first, stop - first, part.limit)
                for first, stop, part in zip([0, *stops[:-1]], stops, query.ranges, strict=True)
                if part.limit is not None
            ]
            self.selector.collect(scores, candidates, (0, 0, address(count)), Stream.COMPUTE)
        self.n_passing = self.selector.slot.pinned(1, np.uint32)
        self.selector.device.begin_download(self.n_passing, count, Stream.COMPUTE)

    def start(self, launch: InterTaskLaunch, counters: int, stream: Stream = Stream.COMPUTE) -> None:
        """Launch the kernel of each strip; their work counters are at the address ``counters``."""
        device, strips = self.selector.device, launch.plan.strips
        if launch.condition is not None:
            number, least, most = launch.condition
            opened = packed(
                OPEN_COUNTERS, number=number, least=least, most=most, counters=counters, n_counters=len(strips)
            )
            device.launch(OPEN_COUNTERS_KERNEL, 1, 0, opened, stream)
        profile = self._packed.get(launch.profile)
        if profile is None:
            profile = self.selector.slot.profile(launch.profile, launch.plan.packed(launch.profiles), stream)
            self._packed[launch.profile] = profile
        # Only the launches for a list, which are those of one query, may overlap with the next batch.
        in_place = stream is Stream.FINISH
        boundary = None
        if len(strips) > 1:
            words = max(strip.tile.boundary_words for strip in strips)
            n_bytes = (1 if in_place else 2) * self.n_columns * words * 4
            boundary = self.scratch.buffer(f"boundary {stream.name}", n_bytes)
        gap = self.batch.queries[0].profile.gap
        first_unit = 0
        for number, (strip, kernel) in enumerate(zip(strips, launch.plan.kernels, strict=True)):
            scores = launch.scores if strip.tile.pairing is Pairing.TWO_QUERIES else launch.scores[-1:]
            parameters = packed(
                INTER_TASK,
                profile=profile,
                query=(
                    first_unit, number > 0, number + 1 < len(strips),
                    *boundary_addresses(boundary, number, in_place=in_place),
                ),
                subjects=(
                    address(self.subjects.residues), launch.starts, launch.lengths, launch.n_subjects, *launch.listed
                ),
                gap=Arithmetic.FAST.gap_costs(gap.open, gap.extend),
                scores_low=address(scores[0]),
                scores_high=address(scores[-1]),
                work_counter=counters + number * 4,
            )  # fmt: skip
            groups = strip.threads // strip.tile.group
            grid = min(device.facts.multiprocessors * strip.blocks, -(-launch.n_subjects // groups))
            device.launch(kernel, grid, strip.tile.shared_bytes, parameters, stream)
            if number == 0 and launch.count is None:
                self.launched()
            first_unit += strip.tile.strip_units
        if launch.count is not None:
            self._count_passing(launch, launch.count)


def boundary_addresses(boundary: Buffer | None, strip: int, *, in_place: bool) -> tuple[int, int]:
    """Addresses at which a strip reads and writes its boundary: the two halves of one buffer, alternately, or one.

    A strip of one query may overwrite its boundary in place, because its group reads each column before it writes the
    column; a strip of two queries has words of another size than a strip of one below it.
    """
    if boundary is None or in_place:
        return address(boundary), address(boundary)
    halves = [boundary.address, boundary.address + boundary.n_bytes // 32 * 16]
    return halves[1 - strip % 2], halves[strip % 2]
