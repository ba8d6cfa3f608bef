"""The launches of the kernels for listed subjects, and those of the subjects of a batch that would end last.

A launch reads packed residues, a profile and a list of subjects on the device, and writes the scores of the subjects to
device memory. :func:`intra_task_teams` and :func:`choose_teams` give the warps per subject and per block.

Subjects that would end last have a warp, or several, for each of their windows. Those that are longer than the plan's
limit are cut (:mod:`swsearch.engine.cuda.search.windows`), so that none takes longer than all other subjects together.
A window is a part of the residues that the device has, so nothing is copied but its start and length.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch.database.format import padded
from swsearch.database.partition import Partition
from swsearch.engine.cuda.runtime.device import Buffer, Device, Scratch, Stream, Timing, timed
from swsearch.engine.cuda.runtime.kernels import MAX_LIST_WARPS, UNIT_BYTES, WARP, Arithmetic, KernelSpec, Tile
from swsearch.engine.cuda.runtime.parameters import ENDS, INTRA_TASK, packed
from swsearch.engine.cuda.search.plan import BatchPlan, ListedRoute, QueryPlan
from swsearch.engine.cuda.search.planner import listed_route
from swsearch.engine.cuda.search.slots import Slot
from swsearch.engine.cuda.search.subjects import DeviceSubjects, Places
from swsearch.engine.cuda.search.tiles import FEW_LISTED
from swsearch.engine.cuda.search.windows import Windows, most_columns, windows_in_place
from swsearch.hits.score_block import ScoreBlock
from swsearch.query.profile import QueryProfile
from swsearch.typing import Scores

EDGE_BYTES: Final = 256 << 20
"""Maximum memory for boundaries of the kernel for listed subjects, unless a single subject needs more."""
KNOWN_LISTS: Final = 256
"""Number of lists of one length whose blocks are remembered."""
KNOWN_CUTS: Final = 16
"""Number of cuts that are remembered: queries of one length share them if their letters score alike."""
LIST_WARPS: Final = 3
"""Warps per block if each warp has a subject of its own."""


def address(buffer: Buffer | None, offset: int = 0) -> int:
    """An address ``offset`` bytes into a buffer; null without a buffer."""
    return 0 if buffer is None else buffer.address + offset


@dataclass(frozen=True)
class Listed:
    """Subjects that are listed on the device.

    ``listed`` has the addresses of their indices and of the length of the list. ``n_listed`` and ``longest`` are this
    length and the boundary columns of the longest subject, or upper bounds of both. The kernel does nothing if the
    list, counted on the device, has fewer than ``least`` or more than ``most`` subjects. It writes to ``scores``, by
    subject index, and counts its work in ``counter``, the address of a word that is 0.
    """

    places: Places
    listed: tuple[int, int]
    n_listed: int
    longest: int
    scores: int
    counter: int
    least: int = 0
    most: int = 2**32 - 1


@dataclass(frozen=True)
class IntraTaskTeams:
    """Shape of a block of the kernels for listed subjects: warps per block, and warps per subject, which divide them.

    ``strips`` are those in the block's shared memory: all strips of the query, which the teams share, or one per warp.
    """

    warps: int
    team: int
    strips: int

    @property
    def teams(self) -> int:
        """Number of teams of a block, which is the number of subjects that it scores at a time."""
        return self.warps // self.team


def intra_task_teams(tile: Tile, strips: int, shared_bytes: int, *, alone: bool) -> list[IntraTaskTeams]:
    """Possible block shapes, ordered by the subjects that a block scores at a time.

    With ``alone``, each warp computes all strips of a subject, one after another, without waiting for other warps,
    which is best for many short subjects. ``shared_bytes`` is the largest shared memory of a block.
    """
    in_memory = (shared_bytes - tile.shared_bytes(0)) // (tile.strip_units * UNIT_BYTES)
    max_strips = min(in_memory, MAX_LIST_WARPS)
    if strips > 1 and alone:
        warps = min(LIST_WARPS, max_strips)
        return [IntraTaskTeams(warps, 1, warps)]
    if strips > max_strips:
        return [IntraTaskTeams(max_strips, max_strips, max_strips)]
    return [IntraTaskTeams(n * strips, strips, strips) for n in range(1, MAX_LIST_WARPS // strips + 1)]


def choose_teams(
    choices: Sequence[tuple[IntraTaskTeams, int]], n_listed: int, multiprocessors: int
) -> tuple[IntraTaskTeams, int]:
    """Choose a block shape; ``choices`` are ordered by warps and state how many subjects the device scores at a time.

    Of the blocks with which the device scores all subjects at a time, the choice is the smallest that gives no
    multiprocessor more subjects than another one must. If there is none, it is the largest of the blocks with the most
    subjects at a time, which loads strips once for many subjects.
    """

    def most_subjects(choice: tuple[IntraTaskTeams, int]) -> int:
        """Largest number of subjects of a multiprocessor."""
        teams = choice[0].teams
        return -(-n_listed // (teams * multiprocessors)) * teams

    enough = [choice for choice in choices if choice[1] >= n_listed]
    if enough:
        return min(enough, key=most_subjects)
    return max(choices, key=lambda choice: (choice[1], choice[0].teams))


@dataclass(frozen=True, eq=False)
class _Cut:
    """The windows of subjects, longest first in ``order``, and their starts (u64) and lengths (u32) in bytes."""

    subjects: Partition
    windows: Windows
    order: NDArray[np.intp]
    table: NDArray[np.uint8]

    @classmethod
    def of(cls, partition: Partition, n_short: int, spanned: int | None, n_columns: int, at_a_time: int) -> _Cut:
        """Cut the subjects from ``n_short`` on (:func:`windows_in_place`)."""
        long = partition[n_short:]
        windows = windows_in_place(long.lengths, spanned, n_columns, at_a_time)
        starts = long.starts[windows.subject] - partition.starts[0] + windows.begin.astype(np.uint64)
        table = np.concatenate([starts.view(np.uint8), windows.length.astype(np.uint32).view(np.uint8)])
        return cls(long, windows, np.argsort(-windows.length, kind="stable"), table)


class IntraTaskLauncher:
    """Launches the kernels for listed subjects on one device, and remembers blocks and windows."""

    def __init__(self, device: Device, scratch: Scratch) -> None:
        self.device = device
        self._scratch = scratch
        self._choices = cache(self._possible_blocks)
        self._choose = lru_cache(KNOWN_LISTS)(self._chosen_block)
        self.cut = lru_cache(KNOWN_CUTS)(_Cut.of)

    def most_at_a_time(self, profile: QueryProfile, route: ListedRoute) -> int:
        """Largest number of subjects that the device scores at a time by teams of warps."""
        n_strips = route.tile.strips(profile.length)
        return max(at_a_time for _, at_a_time in self._choices(route, n_strips, alone=False))

    def _possible_blocks(self, route: ListedRoute, n_strips: int, *, alone: bool) -> list[tuple[IntraTaskTeams, int]]:
        """Possible blocks, each with the number of subjects that the device then scores at a time."""
        facts, found = self.device.facts, []
        for teams in intra_task_teams(route.tile, n_strips, facts.shared_bytes, alone=alone):
            spec = replace(route.kernel, threads=teams.warps * WARP)
            resident = self.device.resident_blocks(spec, route.tile.shared_bytes(teams.strips))
            found.append((teams, facts.multiprocessors * resident * teams.teams))
        return found

    def _chosen_block(
        self, route: ListedRoute, n_strips: int, n_listed: int, *, alone: bool
    ) -> tuple[IntraTaskTeams, int, KernelSpec]:
        """The block for a list, the number of subjects that the device then scores at a time, and the kernel."""
        choices = self._choices(route, n_strips, alone=alone)
        teams, at_a_time = choose_teams(choices, n_listed, self.device.facts.multiprocessors)
        return teams, at_a_time, replace(route.kernel, threads=teams.warps * WARP)

    def plan(
        self,
        profile: QueryProfile,
        texture: int,
        listed: Listed,
        *,
        route: ListedRoute,
        stream: Stream,
        teams: bool = False,
        further: tuple[int, ...] = (),
    ) -> Callable[[], None]:
        """A function that launches the kernel, without host work before it: it scores the listed subjects.

        Each is scored by a team of warps if they are few, or with ``teams``. ``texture`` has the profile in the tile of
        ``route``, and ``further`` are the addresses of known scores and of their ends for the kernel ``end_positions``.
        The next plan for the same ``stream`` reuses its scratch buffers. Raises :class:`OutOfDeviceMemory`.
        """
        device, tile = self.device, route.tile
        strips = tile.strips(profile.length)
        alone = not teams and listed.n_listed > FEW_LISTED * device.facts.multiprocessors
        chosen, at_a_time, spec = self._choose(route, strips, listed.n_listed, alone=alone)
        grid = min(-(-listed.n_listed // chosen.teams), at_a_time // chosen.teams)
        stride = int(padded(listed.longest))
        edge = None
        if strips > 1:
            edge_bytes = chosen.teams * stride * tile.boundary_words * 4
            grid = max(1, min(grid, EDGE_BYTES // edge_bytes))
            edge = self._scratch.buffer(f"edge {stream.name}", grid * edge_bytes)
        counts = self._scratch.buffer(f"counts {stream.name}", grid * chosen.warps * 8)
        parameters = packed(
            INTRA_TASK,
            profile=texture,
            n_strips=strips,
            subjects=(*listed.places, *listed.listed, listed.least, listed.most),
            gap=route.arithmetic.gap_costs(profile.gap.open, profile.gap.extend),
            boundary=address(edge),
            boundary_stride=stride,
            counters=address(counts),
            team_size=chosen.team,
            scores=listed.scores,
            work_counter=listed.counter,
        )  # fmt: skip
        if route.kernel.entry == "end_positions":
            parameters = packed(ENDS, list=parameters, wanted=further)
        return partial(device.launch, spec, grid, tile.shared_bytes(chosen.strips), parameters, stream)


class LongSubjects:
    """The launch of one query for the subjects from ``n_short`` of a plan on, for which it has a route, and their
    scores.

    ``slot`` is that of the batch, and ``side`` a stream that no other query of the batch uses. Beside the inter-task
    kernel a column takes many times as long as without it, so the launch precedes this kernel if a window would end
    after it. Raises :class:`OutOfDeviceMemory`.
    """

    def __init__(
        self,
        lists: IntraTaskLauncher,
        plan: BatchPlan,
        query: QueryPlan,
        subjects: DeviceSubjects,
        slot: Slot,
        side: Stream,
    ) -> None:
        assert query.long is not None
        self._lists, self._device = lists, lists.device
        self._profile, self._route = query.profile, query.long
        spanned = most_columns([query.request], subjects.partition.lengths[plan.n_short :])
        at_a_time = lists.most_at_a_time(query.profile, query.long)
        self._cut = lists.cut(subjects.partition, plan.n_short, spanned, plan.window_columns, at_a_time)
        is_late = int(self._cut.windows.length.max()) > 2 * plan.window_columns
        self._stream = Stream.COMPUTE if is_late else side
        self._residues = subjects.residues
        self._slot, self._name = slot, f"long {side.name}"
        self._scores = slot.scratch.buffer(f"scores {self._name}", len(self._cut.windows) * 4)
        self._table = slot.upload(self._name, self._cut.table)
        self._downloaded: Scores
        self._launch = self._planned(query.long, self._cut.order, self._stream)

    def start(self) -> None:
        """Launch the kernel, after the work of the stream for computation so far."""
        if self._stream is not Stream.COMPUTE:
            self._device.follow(self._stream, Stream.COMPUTE)
        self._launch()

    def join(self) -> None:
        """Let later work of the stream for computation wait for the scores."""
        if self._stream is not Stream.COMPUTE:
            self._device.follow(Stream.COMPUTE, self._stream)

    def begin_download(self) -> None:
        """Begin to download the scores; call :meth:`finish` when the download has ended."""
        self._downloaded = self._slot.pinned(len(self._cut.windows), np.int32)
        self._device.begin_download(self._downloaded, self._scores, Stream.FINISH)

    def finish(self, timing: Timing) -> ScoreBlock:
        """The block of all these subjects, whose scores above the floor are exact.

        Windows whose scores exceed the type are scored again in this call, which waits for it.
        """
        scores, arithmetic = self._downloaded.copy(), self._route.arithmetic
        beyond = self._beyond(scores, arithmetic)
        n_rescored = len(np.unique(self._cut.windows.subject[beyond]))
        while beyond.size and arithmetic.wider is not None:
            arithmetic = arithmetic.wider
            route = listed_route(self._device.facts.architecture, self._profile, arithmetic)
            launch = self._planned(route, beyond, Stream.COMPUTE)
            with timed(self._device, timing):
                launch()
            self._device.download(scores, self._scores, Stream.COMPUTE)
            beyond = self._beyond(scores, arithmetic)
        windows, indices = self._cut.windows, self._cut.subjects.subject_index
        best = windows.best(scores)
        cut = best[windows.length[best] < self._cut.subjects.lengths]
        within = windows[cut].within(indices[windows.subject[cut]])
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
        windows = self._cut.windows
        on_device = Listed(
            (address(self._residues), address(self._table), address(self._table, 8 * len(windows))),
            (address(listed), address(listed, 4 * n)), n, int(windows.length.max()),
            address(self._scores), address(listed, 4 * n + 4),
        )  # fmt: skip
        return self._lists.plan(self._profile, profile, on_device, route=route, stream=stream, teams=True)
