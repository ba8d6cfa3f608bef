"""The generic kernels: a few tiles for queries of every length, with the gap costs as arguments of the launch.

They score a search while its own kernels are compiled, or if there is no compiler. The package contains them compiled
(:mod:`swsearch.engine.cuda.runtime.shipped_kernels`); ``scripts/build_generic_kernels.py`` compiles the list of
:func:`generic_kernels`. ``plan`` restricts a plan to these tiles if its options ask for it. The module needs no device
and no NumPy, because the script runs where the package is built.

A generic kernel serves all gap costs, and more than its own tile would need: it reads profiles of any alphabet, and has
boundaries even if the query has one strip.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from swsearch.engine.cuda.runtime.kernels import (
    COLLECT_KERNEL,
    COMPARE_CHECKPOINTS_KERNEL,
    COUNT_KERNEL,
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
from swsearch.engine.cuda.search.tuning import TunedTile, tiles

COLUMNS: Final = 28
"""Profile columns of all generic kernels: those of proteins, which DNA fits as well."""
EXACT_WORDS: Final = {Pairing.TWO_BLOCKS: (6, 12, 20), Pairing.TWO_QUERIES: (8, 20)}
"""Words per lane of the tiles that compute every score."""
BAND: Final = 5
BOUND_WORDS: Final = (10, 25, 40)
"""Rows of a band of the generic bound, and words per lane of its tiles, as far as the architecture has them."""
LISTED_WORDS: Final = (3, 10)
LISTED_THREADS: Final = 256
LISTED_BLOCKS: Final = 3
"""Words per lane of the tiles for the list of subjects that pass a bound, threads per block, and blocks per
multiprocessor."""
LIST_WORDS: Final = 4
"""Words per lane of ``intra_task``, ``score_windows`` and ``end_positions``, in every number type."""
LIST_ENTRIES: Final[tuple[IntraTaskEntry, ...]] = ("intra_task", "score_windows", "end_positions")
SMALL_KERNELS: Final = (COLLECT_KERNEL, OPEN_COUNTERS_KERNEL, COUNT_KERNEL, COMPARE_CHECKPOINTS_KERNEL)
"""Kernels that have no constants, and so serve every search as they are."""


@cache
def generic_tiles(architecture: int, pairing: Pairing, band: int = 0) -> tuple[TunedTile, ...]:
    """The tiles of the generic inter-task kernels, ordered by rows; with ``band``, of the bound (:data:`BAND`)."""
    words = BOUND_WORDS if band else EXACT_WORDS[pairing]
    narrowest: dict[int, TunedTile] = {}
    for shape in tiles(architecture, pairing, COLUMNS, band):
        if shape.tile.words in words:
            narrowest.setdefault(shape.tile.words, shape)  # fewer lanes take fewer instructions per cell
    return tuple(sorted(narrowest.values(), key=lambda shape: shape.tile.rows))


def listed_tiles() -> list[Tile]:
    """The tiles for the list of subjects that pass a bound: a warp per subject."""
    return [Tile(Pairing.TWO_BLOCKS, WARP, words, COLUMNS) for words in LISTED_WORDS]


def list_tile(arithmetic: Arithmetic) -> Tile:
    """The tile of the kernels for listed subjects and windows."""
    return Tile(Pairing.ONE_SCORE if arithmetic is Arithmetic.WIDE else Pairing.TWO_BLOCKS, WARP, LIST_WORDS, COLUMNS)


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
        generic_inter_task_kernel(shape, band=BAND)
        for pairing in pairings
        for shape in generic_tiles(architecture, pairing, BAND)
    ]
    kernels += [
        generic_inter_task_kernel(TunedTile(tile, LISTED_THREADS, LISTED_BLOCKS), listed=True)
        for tile in listed_tiles()
    ]
    kernels += [generic_list_kernel(arithmetic, entry) for arithmetic in Arithmetic for entry in LIST_ENTRIES]
    return [*kernels, *SMALL_KERNELS]
