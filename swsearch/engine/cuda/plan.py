"""How a query is scored: score type, strips and their tiles, which queries share words, and which subjects go to which
kernel. Pure functions, no device.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np

from swsearch.engine.cuda.kernels import MOST_LIST_WARPS, UNIT_BYTES, Arithmetic, Edges, Pairing, Tile
from swsearch.engine.cuda.profile import residue_columns
from swsearch.engine.cuda.tuning import TunedTile, choose_list_tile, tiles
from swsearch.query.profile import QueryProfile
from swsearch.typing import Lengths

FAST_GAP_LIMIT: Final = 2047
"""Largest cost of a gap's first residue that the fast type adds exactly."""
DEFERRED_COLUMNS: Final = 4
"""Columns between two looks at the largest E in the deferred kernels (``strip.cuh``)."""
ROW_UNIT: Final = 4
"""Every tile has a multiple of this many rows."""
LONG_SHARE: Final = 0.7
LONG_LEAST: Final = 1500
"""Subjects longer than this part of a group's fair share of all residues, and than this length, get a warp each."""


LIST_WARPS: Final = 3
"""Warps a block where each has a subject of its own."""
FEW_LISTED: Final = 4
"""Listed subjects a multiprocessor, at most, that get a block each."""


@dataclass(frozen=True)
class Batch:
    """One query, or two that share words; by their place in the caller's list."""

    places: tuple[int, ...]


def fits_fast(profile: QueryProfile) -> bool:
    """Whether the fast type can hold the gap costs."""
    return profile.gap.first <= FAST_GAP_LIMIT


def pair_queries(profiles: Sequence[QueryProfile], architecture: int, *, deferred: bool = False) -> list[Batch]:
    """Batches of two queries of like length where that is faster than one after the other, else of one.

    Every profile is in exactly one batch. Two queries share words only if both fit the fast type, with equal gap costs.
    """
    order = sorted(range(len(profiles)), key=lambda place: (profiles[place].length, place))
    batches: list[Batch] = []
    waiting: int | None = None
    for place in order:
        if waiting is not None and _worth_pairing(profiles[waiting], profiles[place], architecture, deferred):
            batches.append(Batch((waiting, place)))
            waiting = None
            continue
        if waiting is not None:
            batches.append(Batch((waiting,)))
        waiting = place
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
    """Place of the first subject that gets a warp of its own; lengths grow.

    A group of lanes that gets a subject of more than its fair share of all residues would end after all others.

    Parameters
    ----------
    lengths : uint32 array, growing
    n_residues : int
        Their sum.
    n_groups : int
        Groups of lanes that the device runs at a time.
    """
    limit = max(int(n_residues / max(n_groups, 1) * LONG_SHARE), LONG_LEAST)
    return int(np.searchsorted(lengths, limit, side="right"))


@dataclass(frozen=True)
class Strip:
    """A launch of the inter-task kernel: some rows of one query, or of two.

    Attributes
    ----------
    shape : TunedTile
    first_row : int
        Of each query. A strip has all rows of its tile; only in the last one may there be fewer left.
    edges : Edges
    further, followed : bool
        Whether strips lie above and below.
    """

    shape: TunedTile
    first_row: int
    edges: Edges
    further: bool
    followed: bool


@dataclass(frozen=True)
class Layout:
    """The strips of one query or of two, from the first row down, and their picoseconds a residue of the subjects.

    Of two queries, both lie in the first strips and the longer one alone in the others.
    """

    strips: tuple[Strip, ...]
    cost: float


@cache
def layout(architecture: int, columns: int, lengths: tuple[int, ...], *, deferred: bool) -> Layout:
    """The cheapest strips for a query of this length, or for two queries, the shorter first.

    Two queries share words down to the shorter one's end or a little further, whatever fills the strips best; below,
    the longer one goes on by itself.
    """
    tables = {pairing: _table(architecture, pairing, columns, deferred) for pairing in _PAIRINGS}
    if len(lengths) == 1:
        return _linked(_cover(tables[Pairing.ROW_BLOCKS], lengths[0], whole=True), deferred)
    shorter, longer = lengths
    two = tables[Pairing.TWO_QUERIES]
    reach = two.shapes[-1].tile.rows
    found = [_linked(_cover(two, longer, whole=True), deferred)]
    for rows in range(shorter, min(longer, shorter + reach), ROW_UNIT):
        shared = _cover(two, rows, whole=False)
        left = max(longer - sum(shape.tile.rows for shape in shared), 0)
        found.append(_linked(shared + _cover(tables[Pairing.ROW_BLOCKS], left, whole=False), deferred))
    return min(found, key=lambda one: one.cost)


def _linked(shapes: Sequence[TunedTile], deferred: bool) -> Layout:
    """Tiles from the first row down as strips that hand on their boundaries."""
    strips: list[Strip] = []
    first_row = 0
    for place, shape in enumerate(shapes):
        further, followed = place > 0, place + 1 < len(shapes)
        edges = Edges.OWN if further or followed else Edges.NONE
        if further and shapes[place - 1].tile.pairing is not shape.tile.pairing:
            edges = Edges.READS_PAIR
        strips.append(Strip(shape, first_row, edges, further, followed))
        first_row += shape.tile.rows
    cost = sum((s.shape.alone if s.edges is Edges.NONE else s.shape.edges)[deferred] for s in strips)
    return Layout(tuple(strips), cost)


@dataclass(frozen=True)
class _Table:
    """The cheapest tiles with boundaries for few rows, and the tile for all rows beyond them.

    Attributes
    ----------
    shapes : tuple of TunedTile
    single : tuple of TunedTile
        By rows in units, the cheapest single tile without boundaries; as long as the tile of most rows reaches.
    first : tuple of TunedTile
        By rows in units, the first tile of the cheapest cover.
    full : TunedTile
        The cheapest by the row.
    deferred : bool
        For which kernels.
    """

    shapes: tuple[TunedTile, ...]
    single: tuple[TunedTile, ...]
    first: tuple[TunedTile, ...]
    full: TunedTile
    deferred: bool


_PAIRINGS: Final = (Pairing.ROW_BLOCKS, Pairing.TWO_QUERIES)
_TABLE_TILES: Final = 6
"""Full tiles that the table of cheapest covers reaches; nothing but full tiles is ever cheaper beyond."""


def _units(rows: int) -> int:
    return -(-rows // ROW_UNIT)


@cache
def _table(architecture: int, pairing: Pairing, columns: int, deferred: bool) -> _Table:
    shapes = tiles(architecture, pairing, columns)
    full = min(shapes, key=lambda shape: shape.edges[deferred] / shape.tile.rows)
    single = [
        min((s for s in shapes if _units(s.tile.rows) >= units), key=lambda shape: shape.alone[deferred])
        for units in range(_units(shapes[-1].tile.rows) + 1)
    ]
    costs, first = [0.0], [full]
    for units in range(1, _TABLE_TILES * _units(full.tile.rows) + 1):
        choices = [(shape.edges[deferred] + costs[max(units - _units(shape.tile.rows), 0)], shape) for shape in shapes]
        cost, shape = min(choices, key=lambda choice: choice[0])
        costs.append(cost)
        first.append(shape)
    return _Table(shapes, tuple(single), tuple(first), full, deferred)


def _cover(table: _Table, n_rows: int, *, whole: bool) -> tuple[TunedTile, ...]:
    """The cheapest tiles for this many rows; ``whole``: there are no others, so that one tile alone has no boundary."""
    chosen = []
    units = _units(n_rows)
    while units >= len(table.first):
        chosen.append(table.full)
        units -= _units(table.full.tile.rows)
    while units > 0:
        chosen.append(table.first[units])
        units -= _units(chosen[-1].tile.rows)
    if whole and _units(n_rows) < len(table.single):
        alone = table.single[_units(n_rows)]
        if alone.alone[table.deferred] <= sum(shape.edges[table.deferred] for shape in chosen):
            chosen = [alone]
    return tuple(chosen)


@dataclass(frozen=True)
class RangePlan:
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


def plan_range(profiles: Sequence[QueryProfile], architecture: int, *, deferred: bool) -> RangePlan:
    """Type and strips of one query or of two."""
    order = tuple(sorted(range(len(profiles)), key=lambda place: profiles[place].length))
    arithmetic = Arithmetic.FAST if all(fits_fast(profile) for profile in profiles) else Arithmetic.SHORT
    deferred = deferred and arithmetic is Arithmetic.FAST
    lengths = tuple(profiles[place].length for place in order)
    found = layout(architecture, residue_columns(profiles), lengths, deferred=deferred)
    return RangePlan(arithmetic, order, found.strips, deferred)


def plan_list(profile: QueryProfile, architecture: int, arithmetic: Arithmetic) -> Tile:
    """Tile of the kernel for listed subjects."""
    pairing = Pairing.SINGLE if arithmetic is Arithmetic.WIDE else Pairing.ROW_BLOCKS
    return choose_list_tile(architecture, pairing, residue_columns([profile]), profile.length)


@dataclass(frozen=True)
class ListTeams:
    """Warps a block of the kernel for listed subjects, and whether they have a subject together."""

    warps: int
    together: bool


def list_teams(tile: Tile, strips: int, n_listed: int, multiprocessors: int, shared_bytes: int) -> ListTeams:
    """Few subjects are done soonest by a block each, many by a warp each, without waiting for one another.

    Parameters
    ----------
    tile : Tile
    strips, n_listed : int
    multiprocessors, shared_bytes : int
        Of the device: how many, and the shared memory that a block can have.
    """
    together = strips > 1 and n_listed <= FEW_LISTED * multiprocessors
    room = (shared_bytes - tile.list_bytes(0)) // (tile.strip_units * UNIT_BYTES)
    return ListTeams(min(strips if together else LIST_WARPS, MOST_LIST_WARPS, room), together)
