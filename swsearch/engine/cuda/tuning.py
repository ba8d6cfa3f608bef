"""Tiles of the kernels and what they cost: data of ``cuda/tuning/``, one file for a family of architectures.

A file names the architectures it is for, and for each pairing its tiles: lanes a group, words a lane, threads a block,
the blocks that run on a multiprocessor, and a strip's picoseconds for each residue of the subjects: without boundaries
(``alone``) and with (``edges``), each for the kernel that keeps every score and for the deferred one. The figures are
of one device (``benchmarks/tune_cuda.py`` measures them); on others of the family their ratios serve.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from swsearch.engine.cuda.kernels import WARP, Pairing, Tile
from swsearch.errors import EngineError
from swsearch.resources import resource_folder

BLOCK_WORDS: Final = 64
"""Words of all strips, a lane, that 227 kB of shared memory have room for, for the 28 columns of proteins."""
FEW_WORDS: Final = 8
STEP_WORDS: Final = 5.5
"""What a lane does for each column beside its words, in words: reading scores, handing on, storing the boundary."""


@dataclass(frozen=True)
class TunedTile:
    """A tile with its launch shape.

    Attributes
    ----------
    tile : Tile
    threads : int
        Threads a block.
    blocks : int
        Blocks a multiprocessor.
    alone, edges : (float, float)
        Picoseconds a residue, without boundaries and with: of the kernel for every score, and of the deferred one.
    """

    tile: Tile
    threads: int
    blocks: int
    alone: tuple[float, float] = (0.0, 0.0)
    edges: tuple[float, float] = (0.0, 0.0)


@cache
def _files() -> tuple[dict[str, Any], ...]:
    paths = sorted((resource_folder("cuda") / "tuning").glob("*.json"))
    if not paths:
        raise EngineError(f"no tile shapes in {resource_folder('cuda') / 'tuning'}; install the package again")
    return tuple(json.loads(path.read_text(encoding="utf-8")) for path in paths)


def tuned_for(architecture: int) -> dict[str, Any]:
    """The file of the nearest architecture that is not newer, or of the oldest."""
    known = [(int(arch), tuning) for tuning in _files() for arch in tuning["architectures"]]
    older = [entry for entry in known if entry[0] <= architecture]
    return max(older, key=lambda e: e[0])[1] if older else min(known, key=lambda e: e[0])[1]


@cache
def tiles(architecture: int, pairing: Pairing, columns: int) -> tuple[TunedTile, ...]:
    """All tiles of the inter-task kernel, those of the fewest rows first."""
    found = tuned_for(architecture)["inter_task"][pairing.value]
    shapes = [
        TunedTile(
            Tile(pairing, entry["group"], entry["words"], columns),
            entry["threads"],
            entry["blocks"],
            tuple(entry["alone"]),
            tuple(entry["edges"]),
        )
        for entry in found
    ]
    return tuple(sorted(shapes, key=lambda shape: shape.tile.rows))


def choose_intra_task_tile(
    architecture: int, pairing: Pairing, columns: int, query_length: int, kernel: str = "intra_task"
) -> Tile:
    """The tile of ``intra_task`` or ``score_windows``, a warp wide, whose strips take the fewest instructions.

    Where not all strips fit a block's shared memory, it is one of few words: a block then has more warps.
    """
    entries = tuned_for(architecture)[kernel][pairing.value]
    found = [Tile(pairing, WARP, entry["words"], columns) for entry in entries]
    fitting = [tile for tile in found if tile.strips(query_length) * tile.words <= BLOCK_WORDS]
    found = fitting or [tile for tile in found if tile.words <= FEW_WORDS]
    return min(found, key=lambda tile: (tile.strips(query_length) * (tile.words + STEP_WORDS), tile.rows))
