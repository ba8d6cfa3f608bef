"""The launches of one batch, and its results.

:class:`BatchRun` reads a :class:`swsearch.engine.cuda.search.plan.BatchPlan`. :meth:`BatchRun.start` enqueues all work
of the batch without waiting for any of it: uploads, kernels, the second scoring of subjects that the device lists, the
selection of the scores that are needed, and their download to pinned memory. :meth:`BatchRun.finish` waits for the end
of this work, usually while the device computes later batches, and returns the score blocks.

Where a bound may take the place of scores, it is first computed for a sample of the subjects. The device counts those
that pass; by this number it opens the work counters of the bound or those of the scores for all subjects, and the other
launch finds no work.

Three rare cases need more work, which :meth:`BatchRun.finish` does while it waits: more subjects pass the bound
than are worth scoring again one by one, a score exceeds 16 bits, or more subjects are needed than the download holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch.engine.cuda.runtime.device import Buffer, Device, Event, Scratch, Stream, Timing, timed
from swsearch.engine.cuda.runtime.kernels import OPEN_COUNTERS_KERNEL, Arithmetic, Pairing
from swsearch.engine.cuda.runtime.parameters import INTER_TASK, OPEN_COUNTERS, packed
from swsearch.engine.cuda.search.launches import IntraTaskLauncher, Listed, LongSubjects, address
from swsearch.engine.cuda.search.plan import (
    BatchPlan,
    BoundPlan,
    FloorRange,
    InterTaskPlan,
    ListedRoute,
    PlanOptions,
    QueryPlan,
)
from swsearch.engine.cuda.search.planner import Planner, listed_route
from swsearch.engine.cuda.search.selection import ScoreFilter, Selection, Selector, best_of
from swsearch.engine.cuda.search.slots import Slot
from swsearch.engine.cuda.search.subjects import DeviceSubjects, Places
from swsearch.engine.cuda.search.tiles import FEW_LISTED
from swsearch.hits.score_block import ScoreBlock
from swsearch.query.profile import QueryProfile
from swsearch.typing import Scores

SIDES: Final = (Stream.SIDE, Stream.OTHER_SIDE)
"""Streams of the kernel for listed subjects, one for each query of a batch."""


class Resources:
    """What the batches of an engine share; ``scratch`` is used in the order of the stream.

    ``spare`` is the memory of work that a batch does while it is finished.
    """

    def __init__(self, device: Device, options: PlanOptions) -> None:
        self.device = device
        self.planner = Planner(device.facts, options)
        self.scratch = Scratch(device)
        self.spare = Slot(device)
        self.lists = IntraTaskLauncher(device, self.scratch)
        self.timing = Timing()


@dataclass(frozen=True, eq=False)
class _Strips:
    """The inter-task launches of all strips of a plan against some subjects.

    ``profile`` names the packed profile in the slot of the batch, and ``profiles`` are packed when the first launch
    needs them. ``condition`` has the address of a number that the device has counted and the range in which the kernels
    do their work. ``listed`` has the addresses of a list of subjects and of its length, null for the first
    ``n_subjects``. The subjects that pass the bound are added to ``count``.
    """

    plan: InterTaskPlan
    profile: str
    profiles: Sequence[QueryProfile]
    places: Places
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
class _InFlight:
    """One query of a batch in flight.

    ``long`` are the subjects with warps of their own. ``scores`` are those of the others, of which ``again`` are scored
    again, and ``wanted`` reach the floor; without a floor, ``values`` has the int32 scores of all.
    """

    number: int
    plan: QueryPlan
    scores: Buffer
    long: LongSubjects | None = None
    again: list[Selection] = field(default_factory=list)
    wanted: Selection | None = None
    values: NDArray[np.int32] | None = None


def _filters(ranges: Sequence[FloorRange], n_subjects: int, limit: Callable[[FloorRange], int]) -> list[ScoreFilter]:
    """The first subjects, with a limit for each range of floors."""
    among = (part for part in ranges if part.first < n_subjects)
    return [ScoreFilter(part.first, min(part.stop, n_subjects) - part.first, limit(part)) for part in among]


def _floors(query: QueryPlan, rows: NDArray[np.intp]) -> Scores:
    """The floors of some subjects."""
    stops = [part.stop for part in query.ranges]
    floors = np.array([part.floor for part in query.ranges], np.int32)
    return floors[np.searchsorted(stops, rows, side="right")]


class BatchRun:
    """One batch in flight.

    No other batch uses its ``slot`` until this one is finished. ``launched`` is called after launches that keep the
    device busy while others are enqueued.
    """

    def __init__(
        self,
        plan: BatchPlan,
        subjects: DeviceSubjects,
        resources: Resources,
        slot: Slot,
        launched: Callable[[], None] = lambda: None,
    ) -> None:
        self.plan = plan
        self.slot = slot
        self.subjects = subjects
        self._short = subjects.prefix(plan.n_short)
        self._launched = launched
        self._resources = resources
        self._device = resources.device
        self._few_listed = min(FEW_LISTED * self._device.facts.multiprocessors, plan.most_again)
        self._selector = Selector(resources.device, slot, resources.planner.options.downloaded)
        self._packed: dict[str, int] = {}
        """The textures of the profiles of strips, by name."""
        self._n_passing: NDArray[np.uint32]
        """The number of subjects of the sample that pass the bound, shape (1,), in pinned memory."""
        self._began: Event
        self._ended: Event
        self._queries = [
            _InFlight(number, query, slot.scratch.buffer(f"scores {number}", max(plan.n_short, 1) * 4))
            for number, query in enumerate(plan.queries)
        ]

    # --- Launches ---

    def start(self, *, sleeping: bool = False) -> None:
        """Enqueue all work of the batch; ``sleeping`` says how :meth:`finish` waits (:meth:`Device.event`).

        Raises :class:`OutOfDeviceMemory`, as :meth:`finish` does.
        """
        self.slot.clear()
        self._score()
        self._device.follow(Stream.FINISH, Stream.COMPUTE)
        for query in self._queries:
            self._score_again(query)
            self._select(query)
        self._ended = self._device.event(Stream.FINISH, sleeping=sleeping)

    def _score(self) -> None:
        """Enqueue the first scoring of all subjects."""
        plan, device, slot, resources = self.plan, self._device, self.slot, self._resources
        inter_task = self._inter_task() if plan.n_short else []
        values = [value for strips in inter_task for value in strips.counters]
        counters = slot.upload("counters", np.array(values or [0], np.uint32))  # none without the inter-task kernel
        for query in self._queries:
            if query.plan.long is not None:
                query.long = LongSubjects(resources.lists, plan, query.plan, self.subjects, slot, SIDES[query.number])
        self._began = device.event(Stream.COMPUTE)
        # These launches precede the inter-task kernel, whose persistent blocks would occupy the multiprocessors.
        for query in self._queries:
            if query.long is not None:
                query.long.start()
        counter = address(counters)
        for strips in inter_task:
            self._start_strips(strips, counter)
            counter += 4 * len(strips.counters)
        for query in self._queries:
            if query.long is not None:
                query.long.join()

    def _inter_task(self) -> list[_Strips]:
        """The launches for all subjects, preceded, for a bound, by those that choose between both."""
        plan, bound, slot = self.plan, self.plan.bound, self.slot
        scores = [query.scores for query in self._queries]
        exact = _Strips(plan.inter_task, "profile", plan.profiles, self.subjects.places, plan.n_short, scores)
        if bound is None:
            return [exact]
        count = slot.scratch.buffer("passing", 4)
        self._device.clear(count, 4, Stream.COMPUTE)
        all_subjects = replace(exact, plan=bound.inter_task, profile="profile bound")
        n_sampled = len(bound.rows)
        scores = [slot.scratch.buffer(f"sample {query.number}", n_sampled * 4) for query in self._queries]
        sample = replace(all_subjects, places=self._sample(bound), n_subjects=n_sampled, scores=scores, count=count)
        number = address(count)
        return [
            sample,
            replace(all_subjects, condition=(number, 0, bound.most_passing)),
            replace(exact, condition=(number, bound.most_passing + 1, 2**32 - 1)),
        ]

    def _sample(self, bound: BoundPlan) -> Places:
        """Where the subjects of a sample lie."""
        subjects, slot, rows = self.subjects, self.slot, bound.rows
        table = None if subjects.streamed else subjects.tables.get("sample")
        if table is None:
            starts = subjects.partition.starts[rows] - subjects.partition.starts[0]
            data = np.concatenate([starts.view(np.uint8), subjects.partition.lengths[rows].view(np.uint8)])
            if subjects.streamed:
                table = slot.upload("sample", data)
            else:
                staged = slot.pinned(len(data), np.uint8)
                np.copyto(staged, data)
                table = subjects.tables["sample"] = self._device.allocate(len(data))
                self._device.upload(table, staged, Stream.COMPUTE)
        return subjects.residues.address, address(table), address(table, len(rows) * 8)

    def _start_strips(self, launch: _Strips, counters: int, stream: Stream = Stream.COMPUTE) -> None:
        """Launch the kernel of each strip; their work counters are at the address ``counters``."""
        device, strips = self._device, launch.plan.strips
        if launch.condition is not None:
            number, least, most = launch.condition
            opened = packed(
                OPEN_COUNTERS, number=number, least=least, most=most, counters=counters, n_counters=len(strips)
            )
            device.launch(OPEN_COUNTERS_KERNEL, 1, 0, opened, stream)
        if launch.profile not in self._packed:
            self._packed[launch.profile] = self.slot.profile(
                launch.profile, launch.plan.packed(launch.profiles), stream
            )
        # Only the launches for a list, which are those of one query, may overlap with the next batch.
        in_place = stream is Stream.FINISH
        boundary = None
        if len(strips) > 1:
            words = max(strip.tile.boundary_words for strip in strips)
            n_bytes = (1 if in_place else 2) * self._short.residue_bytes * words * 4
            boundary = self._resources.scratch.buffer(f"boundary {stream.name}", n_bytes)
        gap = self.plan.profiles[0].gap
        first_unit = 0
        for number, (strip, kernel) in enumerate(zip(strips, launch.plan.kernels, strict=True)):
            scores = launch.scores if strip.tile.pairing is Pairing.TWO_QUERIES else launch.scores[-1:]
            parameters = packed(
                INTER_TASK,
                profile=self._packed[launch.profile],
                query=(
                    first_unit, number > 0, number + 1 < len(strips),
                    *_boundary_addresses(boundary, number, in_place=in_place),
                ),
                subjects=(*launch.places, launch.n_subjects, *launch.listed),
                gap=Arithmetic.FAST.gap_costs(gap.open, gap.extend),
                scores_low=address(scores[0]),
                scores_high=address(scores[-1]),
                work_counter=counters + number * 4,
            )  # fmt: skip
            groups = strip.threads // strip.tile.group
            grid = min(device.facts.multiprocessors * strip.blocks, -(-launch.n_subjects // groups))
            device.launch(kernel, grid, strip.tile.shared_bytes(), parameters, stream)
            if number == 0 and launch.count is None:
                self._launched()
            first_unit += strip.tile.strip_units
        if launch.count is not None:
            self._count_passing(launch, launch.count)

    def _count_passing(self, sample: _Strips, count: Buffer) -> None:
        """Count the subjects of a sample that pass the bound, and begin to download their number."""
        assert self.plan.bound is not None
        for query, scores in zip(self.plan.queries, sample.scores, strict=True):
            stops = np.searchsorted(self.plan.bound.rows, [part.stop for part in query.ranges]).tolist()
            candidates = [
                ScoreFilter(first, stop - first, part.limit)
                for first, stop, part in zip([0, *stops[:-1]], stops, query.ranges, strict=True)
                if part.limit is not None
            ]
            self._selector.collect(scores, candidates, (0, 0, address(count)), Stream.COMPUTE)
        self._n_passing = self.slot.pinned(1, np.uint32)
        self._device.begin_download(self._n_passing, count, Stream.COMPUTE)

    def _score_again(self, query: _InFlight) -> None:
        """List the subjects that pass a bound or exceed the type, and score them; the device counts them."""
        route, plan = query.plan.again, self.plan
        if route is None or not plan.n_short:
            return
        beyond = Arithmetic.FAST.largest_exact(query.plan.profile.max_score) + 1
        profile = self.slot.profile(f"profile again {query.number}", route.packed(query.plan.profile), Stream.FINISH)
        # Each launch reads the count, and only the one whose bounds it is within does the work.
        if query.plan.listed is not None:
            candidates = _filters(query.plan.ranges, plan.n_short, lambda part: part.limit or beyond)
            passing = self._selector.select(query.scores, candidates, f"passing {query.number}")
            self._score_listed(query, route, profile, passing.listed, 1, self._few_listed)
            self._score_many(query, query.plan.listed, passing)
            query.again.append(passing)
        everything = [ScoreFilter(0, plan.n_short, beyond)]
        again = self._selector.select(query.scores, everything, f"again {query.number}")
        self._score_listed(query, route, profile, again.listed, 1, self._few_listed)
        self._score_listed(query, route, profile, again.listed, self._few_listed + 1, plan.most_again)
        query.again.append(again)

    def _score_many(self, query: _InFlight, listed: InterTaskPlan, passing: Selection) -> None:
        """Score the subjects that pass a bound by the inter-task kernels, unless they are few."""
        launch = _Strips(
            listed, f"profile listed {query.number}", [query.plan.profile],
            self.subjects.places, self.plan.n_short, [query.scores],
            (address(passing.count), self._few_listed + 1, self.plan.most_again), passing.listed,
        )  # fmt: skip
        values = np.array(launch.counters, np.uint32)
        counters = self.slot.upload(f"counters listed {query.number}", values, Stream.FINISH)
        self._start_strips(launch, address(counters), Stream.FINISH)

    def _score_listed(
        self, query: _InFlight, route: ListedRoute, profile: int, of_list: tuple[int, int], least: int, most: int,
        stream: Stream = Stream.FINISH,
    ) -> None:  # fmt: skip
        """Score the subjects of a list by the intra-task kernel, if they are at least ``least`` and at most ``most``.

        ``profile`` is a texture, and ``of_list`` has the addresses of the list and of its length.
        """
        if least > most:
            return
        counter, subjects = self.slot.scratch.buffer(f"counter {stream.name} {least}", 4), self._short
        self._device.clear(counter, 4, stream)
        longest, scores = subjects.longest, address(query.scores)
        listed = Listed(subjects.places, of_list, most, longest, scores, address(counter), least, most)
        self._resources.lists.plan(query.plan.profile, profile, listed, route=route, stream=stream)()

    def _select(self, query: _InFlight) -> None:
        """Select the subjects that reach the floor, or all, and begin to download their scores."""
        floor, n_short = query.plan.request.floor, self.plan.n_short
        if query.long is not None:
            query.long.begin_download()
        if not n_short:
            return
        if floor is None:
            query.values = self.slot.pinned(n_short, np.int32)
            self._device.begin_download(query.values, query.scores, Stream.FINISH)
        else:
            # A score beyond the type may be inexact, and the exact one may reach a higher floor.
            beyond = query.plan.largest_exact + 1
            candidates = _filters(query.plan.ranges, n_short, lambda part: min(part.floor, beyond))
            query.wanted = self._selector.select(query.scores, candidates, f"wanted {query.number}", with_scores=True)

    # --- Results ---

    def finish(self) -> list[ScoreBlock]:
        """Wait for the batch, and return the block of each query."""
        self._ended.wait()
        self._resources.timing.add(self._began, self._ended)
        return [self._block(query) for query in self._queries]

    def _block(self, query: _InFlight) -> ScoreBlock:
        blocks = []
        if query.long is not None:
            of_long = query.long.finish(self._resources.timing)
            if query.plan.ranges:
                of_long = of_long.at_least(_floors(query.plan, np.arange(self.plan.n_short, len(self.subjects))))
            blocks.append(of_long)
        if self.plan.n_short:
            blocks.insert(0, self._block_of_short(query))
        return ScoreBlock.concatenate(blocks)

    def _block_of_short(self, query: _InFlight) -> ScoreBlock:
        """The block of the subjects without warps of their own."""
        plan, floor, indices = self.plan, query.plan.request.floor, self._short.partition.subject_index
        if any(again.n_found > plan.most_again for again in query.again):
            return self._score_exactly(query)
        n_again = sum(again.n_found for again in query.again)
        if floor is None:
            assert query.values is not None
            return ScoreBlock(indices, self._widened(query, np.arange(plan.n_short), query.values.copy()), n_again)
        rows, scores, n_left_out = self._wanted(query, floor)
        takes_bound = self._n_passing[0] <= plan.bound.most_passing if plan.bound else plan.inter_task.band > 0
        n_bounded = max(plan.n_short - n_again, 0) if takes_bound else 0
        if query.plan.listed is not None:
            n_again = int((scores > Arithmetic.FAST.largest_exact(query.plan.profile.max_score)).sum())
        return ScoreBlock(indices[rows], scores, n_again, n_left_out, n_bounded)

    def _wanted(self, query: _InFlight, floor: int) -> tuple[NDArray[np.intp], Scores, int]:
        """The subjects without warps of their own that reach the floor, ascending, with their exact scores.

        Those that the request's bound excludes are only counted.
        """
        assert query.wanted is not None
        bound, lengths = query.plan.request.bound, self._short.partition.lengths
        rows, scores, n_left_out = self._selector.best(
            query.wanted, query.scores, lengths, floor, bound, f"{query.number}"
        )
        scores = self._widened(query, rows, scores)
        keep = scores >= _floors(query.plan, rows)
        rows, scores = rows[keep], scores[keep]
        if n_left_out is None:
            chosen, n_left_out = best_of(scores, lengths[rows], floor, bound)
            rows, scores = rows[chosen], scores[chosen]
        return rows, scores, n_left_out

    def _score_exactly(self, query: _InFlight) -> ScoreBlock:
        """Score the subjects without warps of their own again, with the exact kernel, and wait for it."""
        resources, request = self._resources, query.plan.request
        plan = resources.planner.plan_batch((query.plan.index,), [request], self._short.partition, bounded=False)
        run = BatchRun(plan, self._short, resources, resources.spare)
        run.start()
        (block,) = run.finish()
        return block

    def _widened(self, query: _InFlight, rows: NDArray[np.intp], scores: Scores) -> Scores:
        """The scores, with those that may exceed their type computed again in the widest."""
        beyond = np.flatnonzero(scores > query.plan.largest_exact)
        if beyond.size:
            longest_first = beyond[::-1]
            scores[longest_first] = self._widest(query, rows[longest_first])
        return scores

    def _widest(self, query: _InFlight, listed: NDArray[np.intp]) -> NDArray[np.int32]:
        """Score some subjects in the widest type, and wait for it."""
        n, name = len(listed), f"listed {query.number}"
        route = listed_route(self._device.facts.architecture, query.plan.profile, Arithmetic.WIDE)
        profile = self.slot.profile(f"profile {name}", route.packed(query.plan.profile))
        buffer = self.slot.upload(name, np.append(listed, n).astype(np.uint32))
        of_list = address(buffer), address(buffer, n * 4)
        with timed(self._device, self._resources.timing):
            self._score_listed(query, route, profile, of_list, 0, n, Stream.COMPUTE)
        scores = np.empty(len(self._short), np.int32)
        self._device.download(scores, query.scores, Stream.COMPUTE)
        return scores[listed]


def _boundary_addresses(boundary: Buffer | None, strip: int, *, in_place: bool) -> tuple[int, int]:
    """Addresses at which a strip reads and writes its boundary: the two halves of one buffer, alternately, or one.

    A strip of one query may overwrite its boundary in place, because its group reads each column before it writes the
    column; a strip of two queries has words of another size than a strip of one below it.
    """
    if boundary is None or in_place:
        return address(boundary), address(boundary)
    halves = [boundary.address, boundary.address + boundary.n_bytes // 32 * 16]
    return halves[1 - strip % 2], halves[strip % 2]
