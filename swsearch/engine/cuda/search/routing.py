"""Decides how the CUDA engine scores queries. All functions are pure and need no GPU.

Inputs are query profiles, subject lengths in ascending order, and properties of the GPU. Outputs:

:func:`pair_queries`      which two queries are scored together, one in each half of a 32-bit word
:func:`plan_inter_task`   score type and strips for the kernel that scores most subjects
:func:`plan_intra_task`   the tile of the kernels for listed subjects: those that are very long, or whose score exceeds
                          the range of a score type
:func:`first_long`, :func:`chain_limit`         from which length on a subject is scored by another kernel
:func:`intra_task_teams`, :func:`choose_teams`  warps per subject and per block of these kernels

docs/glossary.md explains strip and tile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

import numpy as np

from swsearch.engine.cuda.runtime.kernels import UNIT_BYTES, Arithmetic, IntraTaskEntry, Pairing, Tile, max_warps
from swsearch.engine.cuda.search.generic import BAND, COLUMNS, list_tile
from swsearch.engine.cuda.search.layout import Strip, generic_listed_layout, layout, listed_layout
from swsearch.engine.cuda.search.profile import ProfileStrips, residue_columns
from swsearch.engine.cuda.search.tuning import available_bands, choose_intra_task_tile
from swsearch.query.profile import QueryProfile
from swsearch.typing import Lengths

BITS: Final = {
    Arithmetic.FAST: "11 bits",
    Arithmetic.SHORT: "16 bits",
    Arithmetic.WIDE: "32 bits",
}
"""The number types, as the plan names them for the user."""
FAST_GAP_LIMIT: Final = 2047
"""Largest cost of a gap's first residue for which additions in the fast type are exact."""
BOUND_COLUMNS: Final = 4
"""Number of columns after which the bound updates the largest E (``bound.cuh``)."""
LONG_SHARE: Final = 0.7
MIN_LONG_LENGTH: Final = 1500
"""A warp of its own is given to each subject that is longer than this share of a group's mean residues, and longer than
this length."""
WIDEST_BANDS: Final = {1: ((8, 200), (6, 750)), 2: ((8, 200), (6, 400))}
NARROW_BAND: Final = 5
"""For one query or two, most rows of a band of the bound, each with the rows of the longest query for which it may be
used; and most rows of a band for longer queries (``benchmarks/benchmark_bound.py``). Two queries gain less from wide
bands."""
LIST_WARPS: Final = 3
"""Warps per block if each warp has a subject of its own."""
CELLS_PER_CYCLE: Final = 26
"""Cells that a multiprocessor with enough subjects computes per cycle."""
STRIP_CHAIN_ROWS: Final = 256
STRIP_CHAIN_CYCLES: Final = 200
TEAM_CHAIN_CYCLES: Final = 3200
"""Cycles per column of the kernel for listed subjects while the inter-task kernel runs. The first constant is the
largest number of rows of a query of one strip, the second gives the cycles for such a query, and the third gives the
cycles for longer ones, whose warps wait for one another (``benchmarks/benchmark_long_subjects.py``)."""
FEW_LISTED: Final = 4
"""Largest number of listed subjects per multiprocessor with which each subject is given several warps."""


def fits_fast(profile: QueryProfile) -> bool:
    """Whether the fast type can represent the gap costs."""
    return profile.gap.first <= FAST_GAP_LIMIT


def first_arithmetic(profile: QueryProfile) -> Arithmetic:
    """The type in which a query's scores are first computed: the narrowest that can represent its gap costs."""
    return Arithmetic.FAST if fits_fast(profile) else Arithmetic.SHORT


def pair_queries(profiles: Sequence[QueryProfile], architecture: int) -> list[tuple[int, ...]]:
    """Indices of two queries of similar length if they are faster together than one after the other, else of one.

    Every profile is in exactly one batch. Two queries share words only if both fit the fast type, with equal gap costs.
    """
    order = sorted(range(len(profiles)), key=lambda index: (profiles[index].length, index))
    batches: list[tuple[int, ...]] = []
    waiting: int | None = None
    for index in order:
        if waiting is not None and _worth_pairing(profiles[waiting], profiles[index], architecture):
            batches.append((waiting, index))
            waiting = None
            continue
        if waiting is not None:
            batches.append((waiting,))
        waiting = index
    if waiting is not None:
        batches.append((waiting,))
    return batches


def _worth_pairing(first: QueryProfile, second: QueryProfile, architecture: int) -> bool:
    """Whether two queries are faster together; ``second`` is not the shorter one."""
    if first.gap != second.gap or not fits_fast(first):
        return False
    columns = residue_columns([first, second])

    def cost(*lengths: int) -> float:
        return layout(architecture, columns, lengths).cost

    return cost(first.length, second.length) < cost(first.length) + cost(second.length)


def widest_band(profiles: Sequence[QueryProfile]) -> int:
    """Most rows of a band of the bound for one query or two: wider bands let too many subjects pass."""
    n_rows = max(profile.length for profile in profiles)
    return next((band for band, most_rows in WIDEST_BANDS[len(profiles)] if n_rows <= most_rows), NARROW_BAND)


def bound_limit(profile: QueryProfile, floor: int | None) -> int | None:
    """Lowest result of a bound with which a subject may score ``floor``; None if every result may.

    The floor is lowered to a score that the fast type certainly represents exactly, so that no larger score is missed.
    """
    if floor is None:
        return None
    certain = min(floor, Arithmetic.FAST.largest_exact(profile.max_score) - profile.max_score)
    limit = certain - profile.gap.open - BOUND_COLUMNS * profile.gap.extend
    return limit if limit > 0 else None


def first_long(lengths: Lengths, n_residues: int, n_groups: int) -> int:
    """Index of the first subject that is given a warp of its own, among ascending lengths with the sum ``n_residues``.

    One of ``n_groups`` groups of lanes that run at a time would otherwise end after all others, because its subject is
    much larger than a group's share of all residues.
    """
    limit = max(int(n_residues / max(n_groups, 1) * LONG_SHARE), MIN_LONG_LENGTH)
    return first_longer(lengths, limit)


def first_longer(lengths: Lengths, limit: int) -> int:
    """Index of the first subject of more than ``limit`` residues, among ascending lengths."""
    # A limit of another type would make NumPy convert all lengths.
    return int(np.searchsorted(lengths, lengths.dtype.type(min(limit, np.iinfo(lengths.dtype).max)), side="right"))


def chain_limit(n_residues: int, rows: Sequence[int], multiprocessors: int) -> int:
    """Number of columns from which a listed subject takes longer than the launch of all other subjects.

    ``rows`` are the lengths of the queries that are scored together.
    """
    of_launch = n_residues * sum(rows) / (CELLS_PER_CYCLE * multiprocessors)
    return int(of_launch / (STRIP_CHAIN_CYCLES if max(rows) <= STRIP_CHAIN_ROWS else TEAM_CHAIN_CYCLES))


@dataclass(frozen=True)
class InterTaskPlan:
    """The inter-task launches of a batch: type and strips of the exact kernel or of the bound.

    ``cost`` are picoseconds per subject residue. ``band`` is the number of rows of a band of the bound, or 0. ``order``
    has the indices of the batch's queries, the shorter first: the first query is in the low halves of words, the last
    one in the high halves.
    """

    arithmetic: Arithmetic
    order: tuple[int, ...]
    strips: tuple[Strip, ...]
    cost: float
    band: int = 0
    generic: bool = False

    def queries(self, strip: Strip) -> tuple[int, ...]:
        """Indices of the strip's queries, that of the low halves first.

        Row blocks below a pair have one query, the longer one.
        """
        return self.order if strip.shape.tile.pairing is Pairing.TWO_QUERIES else self.order[-1:]

    def line(self) -> str:
        """A description for the user."""
        kind = f"bound, bands of {self.band} rows" if self.band else "exact"
        shapes = [f"{strip.shape.tile.group} x {strip.shape.tile.words}" for strip in self.strips]
        runs = [(shape, len(list(same))) for shape, same in groupby(shapes)]
        tiles = ", ".join(shape if n == 1 else f"{n} times {shape}" for shape, n in runs)
        return f"{BITS[self.arithmetic]}, {kind}, strips of lanes x words: {tiles}"

    def packed(self, profiles: Sequence[QueryProfile]) -> list[ProfileStrips]:
        """The strips of the batch's profiles as they are packed: consecutive strips of one tile together."""
        found = []
        for (tile, queries), same in groupby(self.strips, lambda strip: (strip.shape.tile, self.queries(strip))):
            strips = list(same)
            chosen = [profiles[index] for index in queries]
            found.append(ProfileStrips(chosen, tile, self.arithmetic, strips[0].first_row, len(strips)))
        return found


def plan_inter_task(
    profiles: Sequence[QueryProfile], architecture: int, *, band: int = 0, generic: bool = False
) -> InterTaskPlan:
    """Score type and strips of one query or of two, whose gap costs are equal.

    With ``band``, the kernel is the bound in bands of this number of rows if the fast type can represent the gap costs.
    Generic kernels have one height of bands.
    """
    order = tuple(sorted(range(len(profiles)), key=lambda index: profiles[index].length))
    fast = all(first_arithmetic(profile) is Arithmetic.FAST for profile in profiles)
    arithmetic = Arithmetic.FAST if fast else Arithmetic.SHORT
    band = (BAND if generic else band) if fast and band else 0
    columns = COLUMNS if generic else residue_columns(profiles)
    lengths = tuple(profiles[index].length for index in order)
    found = layout(architecture, columns, lengths, band=band, generic=generic)
    return InterTaskPlan(arithmetic, order, found.strips, found.cost, band, generic)


def plan_inter_task_bound(
    profiles: Sequence[QueryProfile], architecture: int, *, generic: bool = False
) -> InterTaskPlan:
    """The bound for one query or two.

    One query takes the bands with the fastest tiles, since those of narrower bands may fit its rows better. Two queries
    that share words always have a tile that fits, so they take the widest bands, and no time is spent on other plans.
    """
    if generic:
        return plan_inter_task(profiles, architecture, band=BAND, generic=True)
    widest = widest_band(profiles)
    bands = [band for band in available_bands(architecture) if band <= widest] if len(profiles) == 1 else [widest]
    plans = [plan_inter_task(profiles, architecture, band=band) for band in bands]
    return min(plans, key=lambda plan: plan.cost)


def plan_listed_inter_task(profile: QueryProfile, *, generic: bool = False) -> InterTaskPlan:
    """Strips of a query against the subjects that pass a bound; scores up to 2,047 are exact."""
    if generic:
        found = generic_listed_layout(profile.length)
    else:
        found = listed_layout(residue_columns([profile]), profile.length)
    return InterTaskPlan(Arithmetic.FAST, (0,), found.strips, found.cost, generic=generic)


def plan_intra_task(
    profile: QueryProfile, architecture: int, arithmetic: Arithmetic, *, windows: bool = False, generic: bool = False
) -> Tile:
    """Tile of the kernel for listed subjects, or of the kernel for windows."""
    if generic:
        return list_tile(arithmetic)
    pairing = Pairing.ONE_SCORE if arithmetic is Arithmetic.WIDE else Pairing.TWO_BLOCKS
    entry: IntraTaskEntry = "score_windows" if windows else "intra_task"
    return choose_intra_task_tile(architecture, pairing, residue_columns([profile]), profile.length, entry)


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
