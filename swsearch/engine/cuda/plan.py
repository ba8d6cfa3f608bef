"""How a query is scored: score type, strips and their tiles, which queries share words, and which subjects go to which
kernel. Pure functions, no device.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np

from swsearch.engine.cuda.kernels import Arithmetic, Edges, Pairing
from swsearch.engine.cuda.profile import residue_columns
from swsearch.engine.cuda.tuning import TunedTile, choose_list_tile, strip_cost, tiles
from swsearch.query.profile import QueryProfile
from swsearch.typing import Lengths

FAST_GAP_LIMIT: Final = 2047
"""Largest cost of a gap's first residue that the fast type adds exactly."""
DEFERRED_COLUMNS: Final = 4
"""Columns between two looks at the largest E in the deferred kernels (``strip.cuh``)."""
SHARED_STEP: Final = 4
"""Rows between the places that are tried as the end of two queries' strips; tiles have multiples of it."""
LONG_SHARE: Final = 0.7
LONG_LEAST: Final = 1500
"""Subjects longer than this part of a group's fair share of all residues, and than this length, get a warp each."""


@dataclass(frozen=True)
class Batch:
    """One query, or two that share words; by their place in the caller's list."""

    places: tuple[int, ...]


def fits_fast(profile: QueryProfile) -> bool:
    """Whether the fast type can hold the gap costs."""
    return profile.gap.first <= FAST_GAP_LIMIT


def pair_queries(profiles: Sequence[QueryProfile], architecture: int) -> list[Batch]:
    """Batches of two queries of like length where that is faster than one after the other, else of one.

    Every profile is in exactly one batch. Two queries share words only if both fit the fast type, with equal gap costs.
    """
    order = sorted(range(len(profiles)), key=lambda place: (profiles[place].length, place))
    batches: list[Batch] = []
    waiting: int | None = None
    for place in order:
        if waiting is not None and _worth_pairing(profiles[waiting], profiles[place], architecture):
            batches.append(Batch((waiting, place)))
            waiting = None
            continue
        if waiting is not None:
            batches.append(Batch((waiting,)))
        waiting = place
    if waiting is not None:
        batches.append(Batch((waiting,)))
    return batches


def _worth_pairing(first: QueryProfile, second: QueryProfile, architecture: int) -> bool:
    if first.gap != second.gap or not fits_fast(first):
        return False
    columns = residue_columns([first, second])
    lengths = sorted([first.length, second.length])
    together = layout(architecture, columns, *lengths)
    return together.cost < sum(layout(architecture, columns, length).cost for length in lengths)


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
    """The strips of one query or of two, from the first row down, and their time for each residue of the subjects.

    Of two queries, both lie in the first strips and the longer one alone in the others.
    """

    strips: tuple[Strip, ...]
    cost: float


@cache
def layout(architecture: int, columns: int, *lengths: int) -> Layout:
    """The cheapest strips found for a query of this length, or for two queries, the shorter first.

    Two queries share words down to the shorter one's end or a little further, whatever fills the strips best; below, the
    longer one goes on by itself.
    """
    if len(lengths) == 1:
        return _linked(architecture, _cover(architecture, Pairing.ROW_BLOCKS, columns, lengths[0]))
    shorter, longer = lengths
    reach = max(shape.tile.rows for shape in tiles(architecture, Pairing.TWO_QUERIES, columns))
    found = []
    for rows in {longer, *range(shorter, min(longer, shorter + reach), SHARED_STEP)}:
        shared = _cover(architecture, Pairing.TWO_QUERIES, columns, rows)
        left = max(longer - sum(shape.tile.rows for shape in shared), 0)
        found.append(_linked(architecture, shared + _cover(architecture, Pairing.ROW_BLOCKS, columns, left)))
    return min(found, key=lambda one: one.cost)


def _linked(architecture: int, shapes: Sequence[TunedTile]) -> Layout:
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
    cost = sum(strip_cost(architecture, strip.shape.tile, edges=strip.edges is not Edges.NONE) for strip in strips)
    return Layout(tuple(strips), cost)


@cache
def _cover(architecture: int, pairing: Pairing, columns: int, n_rows: int) -> tuple[TunedTile, ...]:
    """Tiles for this many rows: as many as need be of the one that is cheapest by the row, and one that fits the rest."""
    shapes = tiles(architecture, pairing, columns)

    def cost(shape: TunedTile) -> float:
        return strip_cost(architecture, shape.tile, edges=True)

    full = min(shapes, key=lambda shape: cost(shape) / shape.tile.rows)
    n_full = n_rows // full.tile.rows
    found = []
    for fulls in {n_full, max(n_full - 1, 0)}:
        rest = n_rows - fulls * full.tile.rows
        fitting = [shape for shape in shapes if shape.tile.rows >= rest]
        if rest == 0:
            found.append((full,) * fulls)
        elif fitting:
            found.append((*(full,) * fulls, min(fitting, key=cost)))
    return min(found, key=lambda shapes: sum(map(cost, shapes)))


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


def plan_range(profiles: Sequence[QueryProfile], architecture: int, *, deferred: bool) -> RangePlan:
    """Type and strips of one query or of two."""
    order = tuple(sorted(range(len(profiles)), key=lambda place: profiles[place].length))
    arithmetic = Arithmetic.FAST if all(fits_fast(profile) for profile in profiles) else Arithmetic.SHORT
    found = layout(architecture, residue_columns(profiles), *(profiles[place].length for place in order))
    return RangePlan(arithmetic, order, found.strips, deferred and arithmetic is Arithmetic.FAST)


def plan_list(profile: QueryProfile, architecture: int, arithmetic: Arithmetic) -> TunedTile:
    """Tile of the kernel for listed subjects."""
    pairing = Pairing.SINGLE if arithmetic is Arithmetic.WIDE else Pairing.ROW_BLOCKS
    return choose_list_tile(architecture, pairing, residue_columns([profile]), profile.length)
