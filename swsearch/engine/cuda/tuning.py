"""Which tile for which query: data of ``cuda/tuning/``, one file for a family of architectures.

A file names the architectures it is for, and for each pairing its tiles: lanes a group, words a lane, threads a block,
and blocks that shall fit a multiprocessor. A query takes the tile that costs least over all its
strips: padding rows cost as much as others, and every strip some rows more.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from swsearch.engine.cuda.kernels import Pairing, Tile, source_folder
from swsearch.errors import EngineError

COLUMN_ROWS: Final = 3.5
"""What a column costs a lane beside its rows, in rows of one lane: loads, shuffles, the loop, the boundary."""


def _cost(tile: Tile, query_length: int) -> float:
    """Time of a query in this tile, in an arbitrary unit: strips times rows, a lane's overhead a column included."""
    return tile.strips(query_length) * tile.group * (tile.words + COLUMN_ROWS)


@dataclass(frozen=True)
class TunedTile:
    """A tile with its launch shape."""

    tile: Tile
    threads: int
    blocks: int


@cache
def _files() -> tuple[dict[str, Any], ...]:
    paths = sorted((source_folder() / "tuning").glob("*.json"))
    if not paths:
        raise EngineError(f"no tile shapes in {source_folder() / 'tuning'}; install the package again")
    return tuple(json.loads(path.read_text(encoding="utf-8")) for path in paths)


def tuned_for(architecture: int) -> dict[str, Any]:
    """The file of the nearest architecture that is not newer, or of the oldest."""
    known = [(int(arch), tuning) for tuning in _files() for arch in tuning["architectures"]]
    older = [entry for entry in known if entry[0] <= architecture]
    return max(older, key=lambda e: e[0])[1] if older else min(known, key=lambda e: e[0])[1]


def tiles(architecture: int, pairing: Pairing, columns: int) -> list[TunedTile]:
    """All tiles of the inter-task kernel, narrowest first."""
    found = tuned_for(architecture)["score_range"][pairing.value]
    shapes = [
        TunedTile(Tile(pairing, entry["group"], entry["words"], columns), entry["threads"], entry["blocks"])
        for entry in found
    ]
    return sorted(shapes, key=lambda shape: shape.tile.rows)


def choose_tile(architecture: int, pairing: Pairing, columns: int, query_length: int) -> TunedTile:
    """The tile for a query of this length."""
    return min(tiles(architecture, pairing, columns), key=lambda shape: _cost(shape.tile, query_length))


def choose_list_tile(architecture: int, pairing: Pairing, columns: int, query_length: int) -> TunedTile:
    """The same for the kernel that gives a warp to each subject."""
    shapes = [
        TunedTile(Tile(pairing, 32, entry["words"], columns), entry["threads"], entry["blocks"])
        for entry in tuned_for(architecture)["score_list"][pairing.value]
    ]
    return min(shapes, key=lambda shape: (shape.tile.strips(query_length), shape.tile.rows))
