"""The parts that all launches of the engine's kernels share, and the launch of the kernel for listed subjects.

The engine, verified windows and the search for ends launch their kernels through this module. A launch reads packed
residues, a profile and a list of subjects on the device, and writes the subjects' scores to device memory.
:func:`intra_task_teams` and :func:`choose_teams` give the warps per subject and per block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from swsearch.engine.cuda.runtime.device import Buffer, Device, Scratch, Stream, Texture
from swsearch.engine.cuda.runtime.kernels import UNIT_BYTES, WARP, IntraTaskEntry, KernelSpec, Tile, max_warps
from swsearch.engine.cuda.runtime.parameters import ENDS, INTRA_TASK, WINDOWS, packed
from swsearch.engine.cuda.search.plan import ListedRoute
from swsearch.query.profile import QueryProfile

EDGE_BYTES: Final = 256 << 20
"""Maximum memory for boundaries of the kernel for listed subjects, unless a single subject needs more."""
KNOWN_LISTS: Final = 256
"""Number of lists of one length whose blocks are remembered."""
WINDOW_STRETCHES: Final = 2
"""Number of boundaries that the strips of a window use alternately (``intra_task.cuh``)."""
LIST_WARPS: Final = 3
"""Warps per block if each warp has a subject of its own."""
FEW_LISTED: Final = 4
"""Largest number of listed subjects per multiprocessor with which each subject is given several warps."""


def address(buffer: Buffer | None, offset: int = 0) -> int:
    """An address ``offset`` bytes into a buffer; null without a buffer."""
    return 0 if buffer is None else buffer.address + offset


@dataclass(frozen=True)
class Listed:
    """Subjects that are listed on the device.

    ``starts`` (u64) and ``lengths`` (u32) are addresses of each subject's first byte and length. ``n_listed`` and
    ``longest`` are the length of the list and the boundary columns of the longest subject, or upper bounds of both. The
    kernel does nothing if the list, counted on the device, has fewer than ``least`` or more than ``most`` subjects. It
    writes to ``scores``, by subject index, and counts its work in ``counter``, the address of a word that is 0.
    """

    residues: int
    starts: int
    lengths: int
    indices: int
    count: int
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


def block_strips(tile: Tile, shared_bytes: int, entry: IntraTaskEntry = "intra_task") -> int:
    """Number of strips for which a block of a kernel for listed subjects has shared memory and warps."""
    return min((shared_bytes - tile.intra_task_bytes(0)) // (tile.strip_units * UNIT_BYTES), max_warps(entry))


def intra_task_teams(
    tile: Tile, strips: int, shared_bytes: int, *, alone: bool, entry: IntraTaskEntry = "intra_task"
) -> list[IntraTaskTeams]:
    """Possible block shapes, ordered by the subjects that a block scores at a time.

    With ``alone``, each warp computes all strips of a subject, one after another, without waiting for other warps,
    which is best for many short subjects. ``shared_bytes`` is the largest shared memory of a block.
    """
    max_strips = block_strips(tile, shared_bytes, entry)
    if strips > 1 and alone:
        warps = min(LIST_WARPS, max_strips)
        return [IntraTaskTeams(warps, 1, warps)]
    if strips > max_strips:
        return [IntraTaskTeams(max_strips, max_strips, max_strips)]
    return [IntraTaskTeams(n * strips, strips, strips) for n in range(1, max_warps(entry) // strips + 1)]


def choose_teams(
    choices: Sequence[tuple[IntraTaskTeams, int]], n_listed: int, multiprocessors: int, entry: IntraTaskEntry
) -> tuple[IntraTaskTeams, int]:
    """Choose a block shape; ``choices`` are ordered by warps and state how many subjects the device scores at a time.

    For windows one block per multiprocessor is best: they have the same length, so that warps hardly wait for others of
    their block, and a large block loads strips once for many windows. For other lists the choice is the smallest block
    with which the device scores all subjects at a time or, if there is none, the block with the most subjects at a
    time.
    """
    if entry == "score_windows":
        enough = [choice for choice in choices if choice[0].teams * multiprocessors >= n_listed]
        return enough[0] if enough else max(choices, key=lambda choice: (choice[1], choice[0].teams))
    enough = [choice for choice in choices if choice[1] >= n_listed]
    return enough[0] if enough else max(choices, key=lambda choice: choice[1])


def suits_teams(n_listed: int, multiprocessors: int) -> bool:
    """Whether listed subjects are so few that several warps per subject are faster."""
    return n_listed <= FEW_LISTED * multiprocessors


@dataclass(frozen=True)
class IntraTaskLaunch:
    """A fully planned launch, so that no host work falls between the launches of a timed block."""

    device: Device
    spec: KernelSpec
    grid: int
    shared_bytes: int
    parameters: np.void
    stream: Stream

    def start(self) -> None:
        """Launch the kernel."""
        self.device.launch(self.spec, self.grid, self.shared_bytes, self.parameters, self.stream)


class IntraTaskLauncher:
    """Launches the kernels for listed subjects on one device."""

    def __init__(self, device: Device, scratch: Scratch) -> None:
        self.device = device
        self._scratch = scratch
        self._known: dict[tuple[KernelSpec, int, bool], list[tuple[IntraTaskTeams, int]]] = {}
        self._chosen: dict[tuple[KernelSpec, int, bool, int], tuple[IntraTaskTeams, int, KernelSpec]] = {}

    def concurrent_windows(self, profile: QueryProfile, route: ListedRoute) -> int:
        """Maximum number of windows that the device scores at a time."""
        return max(slots for _, slots in self._choices(profile, route, alone=False))

    def all_strips_at_once(self, profile: QueryProfile, tile: Tile) -> bool:
        """Whether a team has a warp per strip of a window, so that it can extend windows (``checkpoints.cuh``)."""
        return tile.strips(profile.length) <= block_strips(tile, self.device.facts.shared_bytes, "score_windows")

    def _choices(self, profile: QueryProfile, route: ListedRoute, *, alone: bool) -> list[tuple[IntraTaskTeams, int]]:
        """Possible blocks, each with the number of subjects that the device then scores at a time."""
        facts, tile = self.device.facts, route.tile
        strips = tile.strips(profile.length)
        key = (route.kernel, strips, alone)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = []
            for teams in intra_task_teams(tile, strips, facts.shared_bytes, alone=alone, entry=route.entry):
                spec = replace(route.kernel, threads=teams.warps * WARP)
                blocks = facts.multiprocessors * self.device.resident_blocks(spec, tile.intra_task_bytes(teams.strips))
                found.append((teams, blocks * teams.teams))
        return found

    def _choose(
        self, profile: QueryProfile, route: ListedRoute, n_listed: int, *, alone: bool
    ) -> tuple[IntraTaskTeams, int, KernelSpec]:
        """The block for a list, the number of subjects that the device then scores at a time, and the kernel."""
        key = (route.kernel, route.tile.strips(profile.length), alone, n_listed)
        found = self._chosen.get(key)
        if found is None:
            choices = self._choices(profile, route, alone=alone)
            teams, at_a_time = choose_teams(choices, n_listed, self.device.facts.multiprocessors, route.entry)
            if len(self._chosen) == KNOWN_LISTS:
                self._chosen.clear()
            spec = replace(route.kernel, threads=teams.warps * WARP)
            found = self._chosen[key] = teams, at_a_time, spec
        return found

    def plan(
        self,
        profile: QueryProfile,
        on_device: Texture,
        listed: Listed,
        *,
        route: ListedRoute,
        stream: Stream,
        name: str,
        further: tuple[int, ...] = (),
    ) -> IntraTaskLaunch:
        """A launch that scores the listed subjects.

        ``on_device`` is packed in the tile of ``route``, whose kernel may have blocks of any number of warps.
        The next plan of the same ``name`` reuses its scratch buffers.
        ``further`` are addresses that the kernel of ``route`` needs besides: for windows, the members of
        ``Checkpoints`` (``checkpoints.cuh``); for ends, known scores and their ends. Raises :class:`OutOfDeviceMemory`.
        """
        device, tile = self.device, route.tile
        strips = tile.strips(profile.length)
        are_windows = route.entry == "score_windows"
        alone = not are_windows and not suits_teams(listed.n_listed, device.facts.multiprocessors)
        chosen, at_a_time, spec = self._choose(profile, route, listed.n_listed, alone=alone)
        grid = min(-(-listed.n_listed // chosen.teams), at_a_time // chosen.teams)
        stride = -(-listed.longest // 16) * 16
        edge = None
        if strips > 1:
            stretches = WINDOW_STRETCHES if are_windows else 1
            edge_bytes = chosen.teams * stretches * stride * tile.boundary_words * 4
            grid = max(1, min(grid, EDGE_BYTES // edge_bytes))
            edge = self._scratch.buffer(f"edge {name}", grid * edge_bytes)
        counts = self._scratch.buffer(f"counts {name}", grid * chosen.warps * 8)
        parameters = packed(
            INTRA_TASK,
            profile=on_device.handle,
            n_strips=strips,
            subjects=(
                listed.residues, listed.starts, listed.lengths, listed.indices, listed.count, listed.least, listed.most
            ),
            gap=route.arithmetic.gap_costs(profile.gap.open, profile.gap.extend),
            boundary=address(edge),
            boundary_stride=stride,
            counters=address(counts),
            team_size=chosen.team,
            scores=listed.scores,
            work_counter=listed.counter,
        )  # fmt: skip
        if are_windows:
            parameters = packed(WINDOWS, windows=parameters, checkpoints=further)
        elif route.entry == "end_positions":
            parameters = packed(ENDS, list=parameters, wanted=further)
        return IntraTaskLaunch(device, spec, grid, tile.intra_task_bytes(chosen.strips), parameters, stream)
