"""What launches of the engine's kernels share: arguments, profiles on the device, the kernel for listed subjects."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Final

import numpy as np

from swsearch.engine.cuda.device import Argument, Buffer, Device, Stream, Texture
from swsearch.engine.cuda.kernels import Arithmetic, IntraTaskEntry, KernelSpec, Tile, intra_task_kernel
from swsearch.engine.cuda.plan import IntraTaskTeams, block_strips, choose_teams, intra_task_teams, suits_teams
from swsearch.engine.cuda.profile import Words
from swsearch.engine.cuda.scratch import Scratch
from swsearch.query.profile import QueryProfile

EDGE_BYTES: Final = 256 << 20
"""Memory for the boundaries of the kernel for listed subjects, at most, unless a single subject needs more."""
WINDOW_STRETCHES: Final = 2
"""Boundaries that the strips of a window take in turns (``intra_task.cuh``)."""


@dataclass
class Timing:
    """What the kernels of an engine did since it was made or the timing was reset.

    Attributes
    ----------
    cells : int
        Query residues times subject residues, each pair counted once.
    seconds : float
        Kernel time, by events on the device.
    """

    cells: int = 0
    seconds: float = 0.0

    def reset(self) -> None:
        """Begin again."""
        self.cells, self.seconds = 0, 0.0


def signed(value: int) -> np.int32:
    """An ``int`` of a kernel."""
    return np.int32(value)


def unsigned(value: int) -> np.uint32:
    """A ``u32`` of a kernel."""
    return np.uint32(value)


def address(buffer: Buffer | None, offset: int = 0) -> np.uint64:
    """A pointer of a kernel, ``offset`` bytes into a buffer; null for none."""
    return np.uint64(0 if buffer is None else buffer.address + offset)


@dataclass
class DeviceProfile:
    """A packed profile on the device; a texture object over it where profiles are read as textures.

    The words are held because their upload may end after the call.
    """

    buffer: Buffer
    texture: Texture | None
    words: Words

    @property
    def arguments(self) -> list[Argument]:
        """The first two of every kernel that reads a profile."""
        return [address(self.buffer), np.uint64(0 if self.texture is None else self.texture.handle)]


@dataclass(frozen=True)
class Listed:
    """Subjects that are listed on the device.

    Attributes
    ----------
    residues, starts, lengths : uint64
        Addresses of the packed residues, and of each subject's first byte (u64) and length (u32).
    indices, count : uint64
        Addresses of the list and of its length.
    n_listed, longest : int
        The length, and the columns of the boundary that the longest listed subject leaves, or an upper bound of each.
    """

    residues: np.uint64
    starts: np.uint64
    lengths: np.uint64
    indices: np.uint64
    count: np.uint64
    n_listed: int
    longest: int


@dataclass(frozen=True)
class IntraTaskLaunch:
    """A launch with nothing left to be decided, so that it starts at once: what is timed does not wait for the host."""

    device: Device
    spec: KernelSpec
    grid: int
    shared_bytes: int
    arguments: list[Argument]
    stream: Stream

    def start(self) -> None:
        """Launch the kernel."""
        self.device.launch(self.spec, self.grid, self.shared_bytes, self.arguments, self.stream)


class IntraTaskLauncher:
    """Uploads profiles, and launches the kernels for listed subjects, on one device.

    Parameters
    ----------
    device : Device
    scratch : Scratch
    texture : bool
        Read profiles as textures rather than from global memory.
    """

    def __init__(self, device: Device, scratch: Scratch, *, texture: bool) -> None:
        self._device = device
        self._scratch = scratch
        self._texture = texture

    def upload_profile(self, name: str, words: Words, stack: contextlib.ExitStack) -> DeviceProfile:
        """The words on the device, in scratch ``name``; the texture lives until ``stack`` lets go of it."""
        buffer = self._scratch.buffer(name, words.nbytes)
        self._device.upload(buffer, words, Stream.COMPUTE)
        texture = None
        if self._texture:
            texture = self._device.texture(buffer)
            stack.callback(texture.close)
        return DeviceProfile(buffer, texture, words)

    def at_a_time(self, profile: QueryProfile, tile: Tile, arithmetic: Arithmetic) -> int:
        """Most windows that the device works on at a time."""
        return max(slots for _, slots in self._choices(profile, tile, arithmetic, "score_windows", alone=False))

    def all_strips_at_once(self, profile: QueryProfile, tile: Tile) -> bool:
        """Whether a team has a warp for each strip of a window, so that windows may meet (``checkpoints.cuh``)."""
        return tile.strips(profile.length) <= block_strips(tile, self._device.facts.shared_bytes, "score_windows")

    def _choices(
        self, profile: QueryProfile, tile: Tile, arithmetic: Arithmetic, entry: IntraTaskEntry, *, alone: bool
    ) -> list[tuple[IntraTaskTeams, int]]:
        """Blocks that may be launched, and the subjects that the device then works on at a time."""
        facts = self._device.facts
        found = []
        for teams in intra_task_teams(tile, tile.strips(profile.length), facts.shared_bytes, alone=alone, entry=entry):
            spec = self.kernel(profile, tile, arithmetic, entry, warps=teams.warps)
            blocks = facts.multiprocessors * self._device.resident_blocks(spec, tile.intra_task_bytes(teams.strips))
            found.append((teams, blocks * teams.teams))
        return found

    def kernel(
        self, profile: QueryProfile, tile: Tile, arithmetic: Arithmetic, entry: IntraTaskEntry, *, warps: int = 1
    ) -> KernelSpec:
        """The kernel that :meth:`plan` takes; its code is the same for any number of warps."""
        strips = tile.strips(profile.length)
        return intra_task_kernel(
            arithmetic, tile, profile.gap, strips=strips, texture=self._texture, warps=warps, entry=entry
        )

    def plan(
        self,
        profile: QueryProfile,
        on_device: DeviceProfile,
        listed: Listed,
        *,
        tile: Tile,
        arithmetic: Arithmetic,
        scores: np.uint64,
        counter: np.uint64,
        stream: Stream,
        name: str,
        checkpoints: list[Argument] | None = None,
        ends: list[Argument] | None = None,
    ) -> IntraTaskLaunch:
        """A launch that scores the listed subjects: ``scores``, by subject index.

        Parameters
        ----------
        counter : uint64
            Address of a word that is 0.
        name : str
            Of its room in scratch, which the next plan of this name takes.
        checkpoints : list of arguments, optional
            Where the states at the checkpoints of windows go; the subjects are windows then.
        ends : list of arguments, optional
            Where the known scores are, and where their ends go.

        Raises
        ------
        OutOfDeviceMemory
        """
        device = self._device
        strips = tile.strips(profile.length)
        entry: IntraTaskEntry = (
            "score_windows" if checkpoints is not None else "intra_task" if ends is None else "end_positions"
        )
        alone = checkpoints is None and not suits_teams(listed.n_listed, device.facts.multiprocessors)
        choices = self._choices(profile, tile, arithmetic, entry, alone=alone)
        teams, at_a_time = choose_teams(choices, listed.n_listed, device.facts.multiprocessors, entry)
        spec = self.kernel(profile, tile, arithmetic, entry, warps=teams.warps)
        grid = min(-(-listed.n_listed // teams.teams), at_a_time // teams.teams)
        stride = -(-listed.longest // 16) * 16
        edge = None
        if strips > 1:
            stretches = 1 if checkpoints is None else WINDOW_STRETCHES
            edge_bytes = teams.teams * stretches * stride * tile.boundary_words * 4
            grid = max(1, min(grid, EDGE_BYTES // edge_bytes))
            edge = self._scratch.buffer(f"edge {name}", grid * edge_bytes)
        counts = self._scratch.buffer(f"counts {name}", grid * teams.warps * 8)
        arguments = [
            *on_device.arguments, signed(strips),
            listed.residues, listed.starts, listed.lengths, listed.indices, listed.count,
            address(edge), unsigned(stride), address(counts), signed(teams.team),
            scores, counter, *(checkpoints or []), *(ends or []),
        ]  # fmt: skip
        return IntraTaskLaunch(device, spec, grid, tile.intra_task_bytes(teams.strips), arguments, stream)
