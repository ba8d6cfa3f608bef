"""The tiles of the kernels with their times, and the kernels that a search may launch.

``cuda/tuning/`` has one file of tiles and times per family of architectures.

A file names its architectures and, for each pairing, lists the tiles: lanes per group, words per lane, threads per
block, blocks per multiprocessor, and a strip's picoseconds per subject residue, without boundaries (``alone``) and with
them (``edges``). The section ``bound`` lists the tiles of the bound (``bound.cuh``), each with the rows of a band. The
entry ``measured`` names the device of the family on which the times were measured (``benchmarks/tune_cuda.py``), or
says that they were calculated from instruction counts (``benchmarks/count_instructions.py``). Only the ratios of a
file's times matter, so all times of a file have one origin: plans compare those of the bound with those of the exact
kernel.

Calculated times increase linearly with the words per lane. So an entry may be a series of tiles: ``words`` are the
fewest and the most, from each to the next by the rows of a band (by ``step`` words without bands), and each time is a
pair, the picoseconds without words and those per word.

The kernels differ in their tiles, in the boundaries of a strip, and in gap costs, of which the defaults are constants
and all others parameters; a profile has the columns of all letters. So their number is finite, and the package contains
all of them compiled (:mod:`swsearch.engine.cuda.runtime.compiled_kernels`); ``scripts/build_kernels.py`` compiles
:func:`package_kernels`. The module needs no device and no NumPy, because the script runs where the package is built.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, get_args

from swsearch.engine.cuda.runtime import kernels
from swsearch.errors import EngineError
from swsearch.folders import resource_folder

BLOCK_WORDS: Final = 64
"""Maximum words per lane, summed over strips, that fit 227 kB of shared memory with the 28 columns of proteins."""
FEW_WORDS: Final = 8
STEP_WORDS: Final = 5.5
"""Cost of a column in addition to its words, in units of a word: reading scores, passing values to the next lane, and
storing the boundary."""

LIST_WORD_TIME: Final = 7.0
"""Picoseconds per subject residue that ``intra_task`` takes for such a unit if the list is long, on an H200
(``benchmarks/benchmark_long_subjects.py``: 6.1 with 4 words per lane, 7.8 with 16)."""
FEW_LISTED: Final = 4
"""Largest number of listed subjects per multiprocessor with which each subject is given several warps."""
LOW_WORDS: Final = 4
"""Most words per lane of the tiles for few listed subjects: the time is that of one subject, whose strips are computed
at the same time, and a column of a low strip takes the fewest instructions."""

LEAST_EDGED: Final = {"inter_task": 12, "bound": 20}
"""Fewest words per lane of tiles with boundaries, by the section of the tuning: few queries gain from smaller ones."""
MOST_LISTED_WORDS: Final = 10
LISTED_THREADS: Final = 256
LISTED_BLOCKS: Final = 3
"""Most words per lane of the tiles for the list of subjects that pass a bound, threads per block, and blocks per
multiprocessor."""


@dataclass(frozen=True)
class TunedTile:
    """A tile with its threads per block, blocks per multiprocessor, and times.

    ``alone`` and ``edges`` are picoseconds per subject residue without and with boundaries; ``edges`` is infinite if
    there is no kernel with boundaries.
    """

    tile: kernels.Tile
    threads: int
    blocks: int
    alone: float = 0.0
    edges: float = 0.0


@cache
def _files() -> tuple[dict[str, Any], ...]:
    paths = sorted((resource_folder("cuda") / "tuning").glob("*.json"))
    if not paths:
        raise EngineError(f"no tile shapes in {resource_folder('cuda') / 'tuning'}; install the package again")
    return tuple(json.loads(path.read_text(encoding="utf-8")) for path in paths)


def words_of(entry: dict[str, Any]) -> range:
    """The words per lane of the tiles of an entry with times: of one tile, or of a series."""
    words = entry["words"]
    least, most = words if isinstance(words, list) else (words, words)
    return range(least, most + 1, entry.get("band") or entry.get("step", 1))


def _time(entry: dict[str, Any], key: str, words: int) -> float:
    """A time of a tile of an entry."""
    if not isinstance(entry["words"], list):
        return float(entry[key])
    base, per_word = entry[key]
    return float(round(base + per_word * words, 2))


def tuned_for(architecture: int) -> dict[str, Any]:
    """The data of the newest architecture that is not newer than this one, or of the oldest if all are newer."""
    known = [(int(arch), tuning) for tuning in _files() for arch in tuning["architectures"]]
    older = [entry for entry in known if entry[0] <= architecture]
    return max(older, key=lambda e: e[0])[1] if older else min(known, key=lambda e: e[0])[1]


@cache
def tiles(architecture: int, pairing: kernels.Pairing, band: int = 0) -> tuple[TunedTile, ...]:
    """All tiles of the inter-task kernel, ordered by rows; with ``band``, of the bound in bands of this number of rows.

    Raises :class:`EngineError` if there is no such bound.
    """
    section = "bound" if band else "inter_task"
    entries = tuned_for(architecture)[section].get(pairing.value, ())
    found = [
        TunedTile(
            kernels.Tile(pairing, entry["group"], words), entry["threads"], entry["blocks"],
            _time(entry, "alone", words),
            _time(entry, "edges", words) if words >= LEAST_EDGED[section] else math.inf,
        )
        for entry in entries
        if entry.get("band", 0) == band
        for words in words_of(entry)
    ]  # fmt: skip
    if not found:
        raise EngineError(f"no tile has bands of {band} rows; choose one of {list(available_bands(architecture))}")
    return tuple(sorted(found, key=lambda shape: shape.tile.rows))


@cache
def available_bands(architecture: int) -> tuple[int, ...]:
    """Rows of the bands of all bounds that have tiles, ascending."""
    return tuple(sorted({row["band"] for rows in tuned_for(architecture)["bound"].values() for row in rows}))


@cache
def list_tiles(architecture: int, pairing: kernels.Pairing, *, tall: bool) -> tuple[kernels.Tile, ...]:
    """The tiles, a warp wide, of the kernels for listed subjects: the low ones and, with ``tall``, all others."""
    words = [each["words"] for each in tuned_for(architecture)["intra_task"][pairing.value]]
    return tuple(kernels.Tile(pairing, kernels.WARP, each) for each in words if tall or each <= LOW_WORDS)


@cache
def choose_list_tile(
    architecture: int, arithmetic: kernels.Arithmetic, query_length: int, *, tall: bool
) -> kernels.Tile:
    """The tile of a kernel for listed subjects whose strips take the fewest instructions.

    With ``tall``, the list is so long that the device computes many subjects at a time. If not all strips fit a block's
    shared memory, the tile has few words, so that a block has more warps.
    """
    found = list_tiles(architecture, arithmetic.pairing, tall=tall)
    fitting = [tile for tile in found if tile.strips(query_length) * tile.words <= BLOCK_WORDS]
    chosen = fitting or [tile for tile in found if tile.words <= FEW_WORDS]
    return min(chosen, key=lambda tile: (tile.strips(query_length) * (tile.words + STEP_WORDS), tile.rows))


def list_cost(tile: kernels.Tile, query_length: int) -> float:
    """About the picoseconds per subject residue that a query takes against a long list of subjects."""
    return tile.strips(query_length) * (tile.words + STEP_WORDS) * LIST_WORD_TIME


def listed_shape(words: int) -> TunedTile:
    """The tile for the list of subjects that pass a bound: a warp per subject."""
    return TunedTile(kernels.Tile(kernels.Pairing.TWO_BLOCKS, kernels.WARP, words), LISTED_THREADS, LISTED_BLOCKS)


def shape_kernel(
    shape: TunedTile, gap: kernels.Gap, edges: kernels.BoundaryMode, *, band: int = 0, listed: bool = False
) -> kernels.KernelSpec:
    """The inter-task kernel of a tile."""
    return kernels.inter_task_kernel(
        shape.tile, gap, band=band, listed=listed, edges=edges, threads=shape.threads, blocks=shape.blocks
    )


def _inter_task_kernels(architecture: int, gap: kernels.Gap) -> Iterator[kernels.KernelSpec]:
    for pairing in (kernels.Pairing.TWO_BLOCKS, kernels.Pairing.TWO_QUERIES):
        with_boundaries = [kernels.BoundaryMode.OWN] + [kernels.BoundaryMode.READS_PAIR] * (
            pairing is kernels.Pairing.TWO_BLOCKS
        )
        for band in (0, *available_bands(architecture)):
            for shape in tiles(architecture, pairing, band):
                for edges in [kernels.BoundaryMode.NONE, *(with_boundaries if math.isfinite(shape.edges) else ())]:
                    yield shape_kernel(shape, gap, edges, band=band)
    for words in range(1, MOST_LISTED_WORDS + 1):
        for edges in (kernels.BoundaryMode.NONE, kernels.BoundaryMode.OWN):
            if edges is kernels.BoundaryMode.NONE or 2 * words > MOST_LISTED_WORDS:  # strips of equal height
                yield shape_kernel(listed_shape(words), gap, edges, listed=True)


def _list_kernels(architecture: int, gap: kernels.Gap) -> Iterator[kernels.KernelSpec]:
    for entry in get_args(kernels.IntraTaskEntry):
        for arithmetic in kernels.Arithmetic if gap is None else (kernels.Arithmetic.FAST,):
            tall = entry == "intra_task" and arithmetic is kernels.Arithmetic.FAST
            for tile in list_tiles(architecture, arithmetic.pairing, tall=tall):
                for edges in (kernels.BoundaryMode.NONE, kernels.BoundaryMode.OWN):
                    yield kernels.intra_task_kernel(arithmetic, tile, gap, edges=edges, entry=entry)


def package_kernels(architecture: int) -> list[kernels.KernelSpec]:
    """All kernels that a search or the alignment of pairs may need on a device of this architecture."""
    of_no_constants = (
        kernels.COLLECT_KERNEL,
        kernels.OPEN_COUNTERS_KERNEL,
        kernels.COUNT_KERNEL,
        kernels.COLUMN_ODDS_KERNEL,
        kernels.FORWARD_KERNEL,
    )
    found = [*of_no_constants, *kernels.pair_kernels()]
    for gap in (None, *kernels.COMPILED_GAPS):
        found += [*_inter_task_kernels(architecture, gap), *_list_kernels(architecture, gap)]
    return found
