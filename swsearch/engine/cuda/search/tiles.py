"""The tiles of the kernels with their times, and the generic kernels, a few tiles for queries of every length.

``cuda/tuning/`` has one file of tiles and times per family of architectures.

A file names its architectures and, for each pairing, lists the tiles: lanes per group, words per lane, threads per
block, blocks per multiprocessor, and a strip's picoseconds per subject residue, without boundaries (``alone``) and with
them (``edges``). The section ``bound`` lists the tiles of the bound (``bound.cuh``), each with the rows of a band. The
entry ``measured`` names the device of the family on which the times were measured (``benchmarks/tune_cuda.py``), or
says that they were calculated from instruction counts (``benchmarks/count_instructions.py``). Only the ratios of a
file's times matter, so all times of a file have one origin: plans compare those of the bound with those of the exact
kernel.

Calculated times increase linearly with the words per lane. So an entry may be a series of tiles: ``words`` are the
fewest and the most, from each to the next by the rows of a band (by one word without bands), and each time is a pair,
the picoseconds without words and those per word.

Generic kernels score a search while its own kernels are compiled, or if there is no compiler. The package contains them
compiled (:mod:`swsearch.engine.cuda.runtime.shipped_kernels`); ``scripts/build_generic_kernels.py`` compiles
:func:`generic_kernels`. A generic kernel serves all gap costs, which are arguments of its launch, and more than its own
tile would need: it reads profiles of any alphabet, and has boundaries even if the query has one strip. The module needs
no device and no NumPy, because the script runs where the package is built.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from swsearch.engine.cuda.runtime.kernels import (
    COLLECT_KERNEL,
    COLUMN_ODDS_KERNEL,
    COMPARE_CHECKPOINTS_KERNEL,
    COUNT_KERNEL,
    FORWARD_KERNEL,
    OPEN_COUNTERS_KERNEL,
    WARP,
    Arithmetic,
    BoundaryMode,
    IntraTaskEntry,
    KernelSpec,
    Pairing,
    Tile,
    inter_task_kernel,
    intra_task_kernel,
)
from swsearch.errors import EngineError
from swsearch.folders import resource_folder

BLOCK_WORDS: Final = 64
"""Maximum words per lane, summed over strips, that fit 227 kB of shared memory with the 28 columns of proteins."""
FEW_WORDS: Final = 8
STEP_WORDS: Final = 5.5
"""Cost of a column in addition to its words, in units of a word: reading scores, passing values to the next lane, and
storing the boundary."""

WINDOW_WORD_TIME: Final = 7.0
"""Picoseconds per subject residue that ``score_windows`` takes for such a unit, on an H200
(``benchmarks/benchmark_long_subjects.py``: 6.5 with 4 words per lane, 8.1 with 16)."""

GENERIC_COLUMNS: Final = 28
"""Profile columns of all generic kernels: those of proteins, which DNA fits as well."""
EXACT_WORDS: Final = {Pairing.TWO_BLOCKS: (6, 12, 20), Pairing.TWO_QUERIES: (8, 20)}
"""Words per lane of the tiles that compute every score."""
GENERIC_BAND: Final = 5
BOUND_WORDS: Final = (10, 25, 40)
"""Rows of a band of the generic bound, and words per lane of its tiles, as far as the architecture has them."""
GENERIC_LISTED_WORDS: Final = (3, 10)
LISTED_THREADS: Final = 256
LISTED_BLOCKS: Final = 3
"""Words per lane of the tiles for the list of subjects that pass a bound, threads per block, and blocks per
multiprocessor."""
LIST_WORDS: Final = 4
"""Words per lane of ``intra_task``, ``score_windows`` and ``end_positions``, in every number type."""
LIST_ENTRIES: Final[tuple[IntraTaskEntry, ...]] = ("intra_task", "score_windows", "end_positions")
SMALL_KERNELS: Final = (
    COLLECT_KERNEL, OPEN_COUNTERS_KERNEL, COUNT_KERNEL, COMPARE_CHECKPOINTS_KERNEL, COLUMN_ODDS_KERNEL, FORWARD_KERNEL,
)  # fmt: skip
"""Kernels that have no constants, and so serve every search as they are."""


@dataclass(frozen=True)
class TunedTile:
    """A tile with its threads per block, blocks per multiprocessor, and times.

    ``alone`` and ``edges`` are picoseconds per subject residue without and with boundaries.
    """

    tile: Tile
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
    return range(least, most + 1, entry.get("band", 1))


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
def tiles(architecture: int, pairing: Pairing, columns: int, band: int = 0) -> tuple[TunedTile, ...]:
    """All tiles of the inter-task kernel, ordered by rows; with ``band``, of the bound in bands of this number of rows.

    Raises :class:`EngineError` if there is no such bound.
    """
    tuned = tuned_for(architecture)
    if band:
        found = [entry for entry in tuned["bound"].get(pairing.value, ()) if entry["band"] == band]
    else:
        found = tuned["inter_task"][pairing.value]
    if not found:
        raise EngineError(f"no tile has bands of {band} rows; choose one of {list(available_bands(architecture))}")
    shapes = [
        TunedTile(
            Tile(pairing, entry["group"], words, columns), entry["threads"], entry["blocks"],
            _time(entry, "alone", words), _time(entry, "edges", words),
        )
        for entry in found
        for words in words_of(entry)
    ]  # fmt: skip
    return tuple(sorted(shapes, key=lambda shape: shape.tile.rows))


@cache
def available_bands(architecture: int) -> tuple[int, ...]:
    """Rows of the bands of all bounds that have tiles, ascending."""
    return tuple(sorted({row["band"] for rows in tuned_for(architecture)["bound"].values() for row in rows}))


@cache
def choose_intra_task_tile(
    architecture: int, pairing: Pairing, columns: int, query_length: int, kernel: str = "intra_task"
) -> Tile:
    """The warp-wide tile of ``intra_task`` or ``score_windows`` whose strips take the fewest instructions.

    If not all strips fit a block's shared memory, the tile has few words, so that a block has more warps.
    """
    entries = tuned_for(architecture)[kernel][pairing.value]
    found = [Tile(pairing, WARP, entry["words"], columns) for entry in entries]
    fitting = [tile for tile in found if tile.strips(query_length) * tile.words <= BLOCK_WORDS]
    found = fitting or [tile for tile in found if tile.words <= FEW_WORDS]
    return min(found, key=lambda tile: (tile.strips(query_length) * (tile.words + STEP_WORDS), tile.rows))


def windows_cost(tile: Tile, query_length: int) -> float:
    """About the picoseconds per subject residue that a query takes in windows, without their overlaps."""
    return tile.strips(query_length) * (tile.words + STEP_WORDS) * WINDOW_WORD_TIME


@cache
def generic_tiles(architecture: int, pairing: Pairing, band: int = 0) -> tuple[TunedTile, ...]:
    """The tiles of the generic inter-task kernels, ordered by rows; with ``band``, of the bound."""
    words = BOUND_WORDS if band else EXACT_WORDS[pairing]
    narrowest: dict[int, TunedTile] = {}
    for shape in tiles(architecture, pairing, GENERIC_COLUMNS, band):
        if shape.tile.words in words:
            narrowest.setdefault(shape.tile.words, shape)  # fewer lanes take fewer instructions per cell
    return tuple(sorted(narrowest.values(), key=lambda shape: shape.tile.rows))


def listed_tiles() -> list[Tile]:
    """The tiles for the list of subjects that pass a bound: a warp per subject."""
    return [Tile(Pairing.TWO_BLOCKS, WARP, words, GENERIC_COLUMNS) for words in GENERIC_LISTED_WORDS]


def list_tile(arithmetic: Arithmetic) -> Tile:
    """The tile of the kernels for listed subjects and windows."""
    return Tile(
        Pairing.ONE_SCORE if arithmetic is Arithmetic.WIDE else Pairing.TWO_BLOCKS, WARP, LIST_WORDS, GENERIC_COLUMNS
    )


def generic_inter_task_kernel(shape: TunedTile, *, band: int = 0, listed: bool = False) -> KernelSpec:
    """The generic inter-task kernel of a tile."""
    return inter_task_kernel(
        Arithmetic.FAST, shape.tile, None, band=band, listed=listed, edges=BoundaryMode.OWN, threads=shape.threads,
        blocks=shape.blocks,
    )  # fmt: skip


def generic_list_kernel(arithmetic: Arithmetic, entry: IntraTaskEntry) -> KernelSpec:
    """The generic kernel for listed subjects, in blocks of one warp."""
    return intra_task_kernel(arithmetic, list_tile(arithmetic), None, strips=2, warps=1, entry=entry)


def generic_kernels(architecture: int) -> list[KernelSpec]:
    """All generic kernels for a device of this architecture, and the kernels that have no constants."""
    pairings = (Pairing.TWO_BLOCKS, Pairing.TWO_QUERIES)
    kernels = [
        generic_inter_task_kernel(shape) for pairing in pairings for shape in generic_tiles(architecture, pairing)
    ]
    kernels += [
        generic_inter_task_kernel(shape, band=GENERIC_BAND)
        for pairing in pairings
        for shape in generic_tiles(architecture, pairing, GENERIC_BAND)
    ]
    kernels += [
        generic_inter_task_kernel(TunedTile(tile, LISTED_THREADS, LISTED_BLOCKS), listed=True)
        for tile in listed_tiles()
    ]
    kernels += [generic_list_kernel(arithmetic, entry) for arithmetic in Arithmetic for entry in LIST_ENTRIES]
    return [*kernels, *SMALL_KERNELS]
