"""How a query is scored: score type, strips, which queries share words, and which subjects go to which kernel.

Pure functions, no device.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from swsearch.engine.cuda.kernels import UNIT_BYTES, Arithmetic, IntraTaskEntry, Pairing, Tile, max_warps
from swsearch.engine.cuda.layout import Strip, layout
from swsearch.engine.cuda.profile import residue_columns
from swsearch.engine.cuda.tuning import choose_intra_task_tile
from swsearch.query.profile import QueryProfile
from swsearch.typing import Lengths

FAST_GAP_LIMIT: Final = 2047
"""Largest cost of a gap's first residue that the fast type adds exactly."""
DEFERRED_COLUMNS: Final = 4
"""Columns between two looks at the largest E in the deferred kernels (``strip.cuh``)."""
LONG_SHARE: Final = 0.7
MIN_LONG_LENGTH: Final = 1500
"""Subjects longer than this part of a group's fair share of all residues, and than this length, get a warp each."""
LIST_WARPS: Final = 3
"""Warps a block where each has a subject of its own."""
CELLS_A_CYCLE: Final = 26
"""Cells that a multiprocessor does a cycle where there are subjects enough."""
STRIP_CHAIN_ROWS: Final = 256
STRIP_CHAIN_CYCLES: Final = 200
TEAM_CHAIN_CYCLES: Final = 3200
"""Cycles that the kernel for listed subjects takes for a column beside the inter-task kernel: where a query of up to so
many rows is one strip, and where warps wait for one another (``benchmarks/benchmark_long_subjects.py``)."""
FEW_LISTED: Final = 4
"""Listed subjects a multiprocessor, at most, that get several warps each."""


@dataclass(frozen=True)
class Batch:
    """One query, or two that share words; by their position in the caller's list."""

    indices: tuple[int, ...]


def fits_fast(profile: QueryProfile) -> bool:
    """Whether the fast type can hold the gap costs."""
    return profile.gap.first <= FAST_GAP_LIMIT


def first_arithmetic(profile: QueryProfile) -> Arithmetic:
    """The narrowest type that a query's scores are computed in at first."""
    return Arithmetic.FAST if fits_fast(profile) else Arithmetic.SHORT


def pair_queries(profiles: Sequence[QueryProfile], architecture: int, *, deferred: bool = False) -> list[Batch]:
    """Batches of two queries of like length where that is faster than one after the other, else of one.

    Every profile is in exactly one batch. Two queries share words only if both fit the fast type, with equal gap costs.
    """
    order = sorted(range(len(profiles)), key=lambda index: (profiles[index].length, index))
    batches: list[Batch] = []
    waiting: int | None = None
    for index in order:
        if waiting is not None and _worth_pairing(profiles[waiting], profiles[index], architecture, deferred):
            batches.append(Batch((waiting, index)))
            waiting = None
            continue
        if waiting is not None:
            batches.append(Batch((waiting,)))
        waiting = index
    if waiting is not None:
        batches.append(Batch((waiting,)))
    return batches


def _worth_pairing(first: QueryProfile, second: QueryProfile, architecture: int, deferred: bool) -> bool:
    """``second`` is not the shorter one."""
    if first.gap != second.gap or not fits_fast(first):
        return False
    columns = residue_columns([first, second])

    def cost(*lengths: int) -> float:
        return layout(architecture, columns, lengths, deferred=deferred).cost

    return cost(first.length, second.length) < cost(first.length) + cost(second.length)


def deferred_limit(profile: QueryProfile, floor: int | None) -> int | None:
    """Lowest result of a deferred kernel with which a subject may score ``floor``, or None if deferring cannot tell.

    The floor is lowered to what the fast type holds for certain, so that no score that leaves the type is missed.
    """
    if floor is None:
        return None
    certain = min(floor, Arithmetic.FAST.largest_exact(profile.max_score) - profile.max_score)
    limit = certain - profile.gap.open - DEFERRED_COLUMNS * profile.gap.extend
    return limit if limit > 0 else None


def first_long(lengths: Lengths, n_residues: int, n_groups: int) -> int:
    """Index of the first subject that gets a warp of its own; lengths grow.

    A group of lanes that gets a subject of more than its fair share of all residues would end after all others.

    Parameters
    ----------
    lengths : uint32 array, growing
    n_residues : int
        Their sum.
    n_groups : int
        Groups of lanes that the device runs at a time.
    """
    limit = max(int(n_residues / max(n_groups, 1) * LONG_SHARE), MIN_LONG_LENGTH)
    return int(np.searchsorted(lengths, limit, side="right"))


def chain_limit(n_residues: int, rows: Sequence[int], multiprocessors: int) -> int:
    """Columns from which a listed subject takes longer than the launch beside it.

    Parameters
    ----------
    n_residues : int
        Of all subjects.
    rows : sequence of int
        Lengths of the queries that are scored together.
    multiprocessors : int
        Of the device.
    """
    of_launch = n_residues * sum(rows) / (CELLS_A_CYCLE * multiprocessors)
    return int(of_launch / (STRIP_CHAIN_CYCLES if max(rows) <= STRIP_CHAIN_ROWS else TEAM_CHAIN_CYCLES))


@dataclass(frozen=True)
class InterTaskPlan:
    """The inter-task launches of a batch: type, strips, and whether the maximum is deferred.

    Attributes
    ----------
    order : tuple of int
        The batch's queries, the shorter first; the strips' low halves are the first's, the high ones the last's.
    """

    arithmetic: Arithmetic
    order: tuple[int, ...]
    strips: tuple[Strip, ...]
    deferred: bool

    def queries(self, strip: Strip) -> tuple[int, ...]:
        """The queries in a strip, the low half's first; the longer one alone, or the only one, in row blocks."""
        return self.order if strip.shape.tile.pairing is Pairing.TWO_QUERIES else self.order[-1:]


def plan_inter_task(profiles: Sequence[QueryProfile], architecture: int, *, deferred: bool) -> InterTaskPlan:
    """Type and strips of one query or of two."""
    order = tuple(sorted(range(len(profiles)), key=lambda index: profiles[index].length))
    fast = all(first_arithmetic(profile) is Arithmetic.FAST for profile in profiles)
    arithmetic = Arithmetic.FAST if fast else Arithmetic.SHORT
    deferred = deferred and arithmetic is Arithmetic.FAST
    lengths = tuple(profiles[index].length for index in order)
    found = layout(architecture, residue_columns(profiles), lengths, deferred=deferred)
    return InterTaskPlan(arithmetic, order, found.strips, deferred)


def plan_intra_task(profile: QueryProfile, architecture: int, arithmetic: Arithmetic, *, windows: bool = False) -> Tile:
    """Tile of the kernel for listed subjects, or of the one for windows of long ones."""
    pairing = Pairing.SINGLE if arithmetic is Arithmetic.WIDE else Pairing.ROW_BLOCKS
    entry: IntraTaskEntry = "score_windows" if windows else "intra_task"
    return choose_intra_task_tile(architecture, pairing, residue_columns([profile]), profile.length, entry)


@dataclass(frozen=True)
class IntraTaskTeams:
    """How the warps of a block of the kernels for listed subjects share them.

    Attributes
    ----------
    warps : int
        Warps a block.
    team : int
        Warps that have a subject together; a divisor of ``warps``.
    strips : int
        Strips that the block has in shared memory: the query's, for all teams; or one for each warp.
    """

    warps: int
    team: int
    strips: int

    @property
    def teams(self) -> int:
        """Subjects that a block is at."""
        return self.warps // self.team


def block_strips(tile: Tile, shared_bytes: int, entry: IntraTaskEntry = "intra_task") -> int:
    """Strips that a block of a kernel for listed subjects has room and warps for."""
    return min((shared_bytes - tile.intra_task_bytes(0)) // (tile.strip_units * UNIT_BYTES), max_warps(entry))


def intra_task_teams(
    tile: Tile, strips: int, shared_bytes: int, *, alone: bool, entry: IntraTaskEntry = "intra_task"
) -> list[IntraTaskTeams]:
    """Blocks that may be launched, by the subjects that they are at.

    Parameters
    ----------
    tile : Tile
    strips : int
        Of the query.
    shared_bytes : int
        Shared memory that a block can have.
    alone : bool
        A warp goes from strip to strip by itself, without waiting for others: best for many subjects, all short.
        It matters only where there are several strips.
    entry : str
        The kernel.
    """
    room = block_strips(tile, shared_bytes, entry)
    if strips > 1 and alone:
        warps = min(LIST_WARPS, room)
        return [IntraTaskTeams(warps, 1, warps)]
    if strips > room:
        return [IntraTaskTeams(room, room, room)]
    return [IntraTaskTeams(n * strips, strips, strips) for n in range(1, max_warps(entry) // strips + 1)]


def choose_teams(
    choices: Sequence[tuple[IntraTaskTeams, int]], n_listed: int, multiprocessors: int, entry: IntraTaskEntry
) -> tuple[IntraTaskTeams, int]:
    """One of the blocks that may be launched, those of few warps first, each with the subjects at a time.

    Windows are of one length, so that warps hardly wait for others of their block, and large blocks stage strips once
    for many: one block a multiprocessor. Of other lists it is the smallest blocks that are at all subjects at once.
    Where none are, it is those that are at the most.
    """
    if entry == "score_windows":
        enough = [choice for choice in choices if choice[0].teams * multiprocessors >= n_listed]
        return enough[0] if enough else max(choices, key=lambda choice: (choice[1], choice[0].teams))
    enough = [choice for choice in choices if choice[1] >= n_listed]
    return enough[0] if enough else max(choices, key=lambda choice: choice[1])


def suits_teams(n_listed: int, multiprocessors: int) -> bool:
    """Whether listed subjects are so few that each is done soonest by several warps."""
    return n_listed <= FEW_LISTED * multiprocessors
