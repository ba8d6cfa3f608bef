"""How the rows of a query, or of two that share words, are cut into strips: the cheapest tiles by their measured times.

The rows are a path from the first to the last, and a tile a step along it; the cheapest path is found once for as many
rows as a few tiles have, and longer queries begin with the tile that is cheapest by the row. Pure functions; ``plan``
asks for the layout of each batch, and ``engine`` launches a kernel for each strip.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from swsearch.engine.cuda.kernels import BoundaryMode, Pairing
from swsearch.engine.cuda.tuning import TunedTile, tiles

ROW_UNIT: Final = 4
"""Every tile has a multiple of this many rows."""
TABLE_TILES: Final = 6
"""Tiles, of the kind that is cheapest by the row, whose rows the table of cheapest covers reaches."""


@dataclass(frozen=True)
class Strip:
    """A launch of the inter-task kernel: some rows of one query, or of two.

    Attributes
    ----------
    shape : TunedTile
    first_row : int
        Of each query. A strip has all rows of its tile; only in the last one may there be fewer left.
    edges : BoundaryMode
    has_strip_above, has_strip_below : bool
        Whether the strip reads a boundary and whether it writes one.
    """

    shape: TunedTile
    first_row: int
    edges: BoundaryMode
    has_strip_above: bool
    has_strip_below: bool


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
    one = _table(architecture, Pairing.ROW_BLOCKS, columns, deferred)
    if len(lengths) == 1:
        return _linked(_cover(one, lengths[0], whole=True), deferred)
    shorter, longer = lengths
    two = _table(architecture, Pairing.TWO_QUERIES, columns, deferred)
    reach = two.shapes[-1].tile.rows
    found = [_linked(_cover(two, longer, whole=True), deferred)]
    for rows in range(shorter, min(longer, shorter + reach), ROW_UNIT):
        shared = _cover(two, rows, whole=False)
        left = max(longer - sum(shape.tile.rows for shape in shared), 0)
        found.append(_linked(shared + _cover(one, left, whole=False), deferred))
    return min(found, key=lambda layout: layout.cost)


def _linked(shapes: Sequence[TunedTile], deferred: bool) -> Layout:
    """Tiles from the first row down as strips that hand on their boundaries."""
    strips: list[Strip] = []
    first_row = 0
    for index, shape in enumerate(shapes):
        has_strip_above, has_strip_below = index > 0, index + 1 < len(shapes)
        edges = BoundaryMode.OWN if has_strip_above or has_strip_below else BoundaryMode.NONE
        if has_strip_above and shapes[index - 1].tile.pairing is not shape.tile.pairing:
            edges = BoundaryMode.READS_PAIR
        strips.append(Strip(shape, first_row, edges, has_strip_above, has_strip_below))
        first_row += shape.tile.rows
    cost = sum((s.shape.alone if s.edges is BoundaryMode.NONE else s.shape.edges)[deferred] for s in strips)
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
    for units in range(1, TABLE_TILES * _units(full.tile.rows) + 1):
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
