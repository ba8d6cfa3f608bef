"""Divides the rows of a query, or of two that share words, into the strips that are cheapest by their measured times.

:func:`layout` takes the lengths of the queries and returns the strips with their cost. This is a shortest-path problem:
the nodes are rows, and a tile is an edge from one row to the row below the tile. A table contains the cheapest covers
of up to a few tiles' rows; the strips of longer queries begin with tiles of the lowest cost per row, down to the rows
that the table covers. The functions are pure: ``routing`` requests the layout of each batch, and ``batch_run`` launches
a kernel for each strip.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np

from swsearch.engine.cuda.runtime.kernels import WARP, BoundaryMode, Pairing, Tile
from swsearch.engine.cuda.search.generic import LISTED_BLOCKS, LISTED_THREADS, generic_tiles, listed_tiles
from swsearch.engine.cuda.search.tuning import STEP_WORDS, TunedTile, tiles

ROW_UNIT: Final = 4
"""The number of rows of every tile is a multiple of this."""
TABLE_TILES: Final = 6
"""Height of the table of cheapest covers, in tiles of the shape with the lowest cost per row."""

LISTED_WORDS: Final = 10
"""Maximum number of words per lane of the launches for listed subjects."""


@dataclass(frozen=True)
class Strip:
    """A launch of the inter-task kernel: some rows of one query, or of two.

    Only the last strip may have fewer rows left than its tile.
    """

    shape: TunedTile
    first_row: int
    edges: BoundaryMode
    has_strip_above: bool
    has_strip_below: bool


@dataclass(frozen=True)
class Layout:
    """The strips of one query or of two, from the first row down, and their cost in picoseconds per subject residue.

    Two queries share the first strips; the remaining strips contain rows of the longer query only.
    """

    strips: tuple[Strip, ...]
    cost: float


@cache
def layout(
    architecture: int, columns: int, lengths: tuple[int, ...], *, band: int = 0, generic: bool = False
) -> Layout:
    """The cheapest strips for a query of this length, or for two queries, the shorter first.

    ``band`` is the number of rows of a band of the bound. The tiles of generic kernels have
    :data:`~swsearch.engine.cuda.search.generic.COLUMNS` columns; with them two queries share words down to the end of
    the longer one.

    Otherwise two queries share words down to the end of the shorter one, to a few rows beyond it, or to the end of the
    longer one, whichever is cheapest; below these rows the longer one continues in row blocks.
    """
    one = _table(architecture, Pairing.TWO_BLOCKS, columns, band, generic)
    if len(lengths) == 1:
        return _linked(_cover(one, lengths[0], whole=True))
    shorter, longer = lengths
    two = _table(architecture, Pairing.TWO_QUERIES, columns, band, generic)
    reach = two.shapes[-1].tile.rows
    found = [_cover(two, longer, whole=True)]
    for rows in range(shorter, min(longer, shorter + (0 if generic else reach)), ROW_UNIT):
        shared = _cover(two, rows, whole=False)
        left = max(longer - sum(shape.tile.rows for shape in shared), 0)
        found.append(shared + _cover(one, left, whole=False))
    return _linked(min(found, key=_cost))


@cache
def listed_layout(columns: int, n_rows: int) -> Layout:
    """Strips for a query against a list of subjects, one warp per subject.

    A list is short, and long subjects pass a bound most often, so the time of a launch is that of one long subject:
    many lanes per subject, which compute a column in few instructions, count for more than the columns by which they
    lag.
    """
    n_strips = -(-n_rows // (2 * WARP * LISTED_WORDS))
    words = -(-n_rows // (2 * WARP * n_strips))
    tile = Tile(Pairing.TWO_BLOCKS, WARP, words, columns)
    return _linked([TunedTile(tile, LISTED_THREADS, LISTED_BLOCKS)] * n_strips)


@cache
def generic_listed_layout(n_rows: int) -> Layout:
    """Strips of a generic kernel for a query against a list of subjects, one warp per subject."""
    tile = min(listed_tiles(), key=lambda tile: (tile.strips(n_rows) * (tile.words + STEP_WORDS), tile.rows))
    return _linked([TunedTile(tile, LISTED_THREADS, LISTED_BLOCKS)] * tile.strips(n_rows))


def _cost(shapes: Sequence[TunedTile]) -> float:
    """The time of these tiles; a single one has no boundary."""
    if len(shapes) == 1:
        return shapes[0].alone
    return sum(shape.edges for shape in shapes)


def _linked(shapes: Sequence[TunedTile]) -> Layout:
    """Convert tiles, from the first row down, to strips that pass their boundaries to the strips below."""
    strips: list[Strip] = []
    first_row = 0
    for index, shape in enumerate(shapes):
        has_strip_above, has_strip_below = index > 0, index + 1 < len(shapes)
        edges = BoundaryMode.OWN if has_strip_above or has_strip_below else BoundaryMode.NONE
        if has_strip_above and shapes[index - 1].tile.pairing is not shape.tile.pairing:
            edges = BoundaryMode.READS_PAIR
        strips.append(Strip(shape, first_row, edges, has_strip_above, has_strip_below))
        first_row += shape.tile.rows
    return Layout(tuple(strips), _cost(shapes))


@dataclass(frozen=True)
class _Table:
    """The cheapest tiles for few rows, and the tile for all rows beyond them.

    ``single`` is the cheapest single tile without boundaries, and ``first`` the first tile of the cheapest cover with
    boundaries, both indexed by rows in units. ``full`` has the lowest cost per row.
    """

    shapes: tuple[TunedTile, ...]
    single: tuple[TunedTile, ...]
    first: tuple[TunedTile, ...]
    full: TunedTile


def _units(rows: int) -> int:
    return -(-rows // ROW_UNIT)


@cache
def _table(architecture: int, pairing: Pairing, columns: int, band: int, generic: bool) -> _Table:
    shapes = generic_tiles(architecture, pairing, band) if generic else tiles(architecture, pairing, columns, band)
    full = min(shapes, key=lambda shape: shape.edges / shape.tile.rows)
    single = [
        min((s for s in shapes if _units(s.tile.rows) >= units), key=lambda shape: shape.alone)
        for units in range(_units(shapes[-1].tile.rows) + 1)
    ]
    # A command plans its first batch before the device begins, and needs several tables for it: no loop over the tiles.
    heights = np.array([_units(shape.tile.rows) for shape in shapes])
    edges = np.array([shape.edges for shape in shapes])
    costs, first = np.zeros(TABLE_TILES * _units(full.tile.rows) + 1), [full]
    for units in range(1, len(costs)):
        choices = edges + costs[np.maximum(units - heights, 0)]
        chosen = int(choices.argmin())
        costs[units] = choices[chosen]
        first.append(shapes[chosen])
    return _Table(shapes, tuple(single), tuple(first), full)


def _cover(table: _Table, n_rows: int, *, whole: bool) -> tuple[TunedTile, ...]:
    """The cheapest tiles for ``n_rows`` rows; ``whole``: these are all rows, so that a single tile has no boundary."""
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
        if alone.alone <= sum(shape.edges for shape in chosen):
            chosen = [alone]
    return tuple(chosen)
