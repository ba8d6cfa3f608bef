"""Kernels by name: the entries of ``cuda/entry/`` with their compile-time constants, and the shape of their tiles.

The layout that :class:`Tile` computes is that of ``cuda/include/swsearch/tile.cuh``, where it is explained.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from typing import Final, Literal

from swsearch.scoring.gap import GapPenalty

WARP: Final = 32
UNIT_BYTES: Final = 16
"""Profiles are read in units of four 32-bit words, a lane's chunk of a column."""
CHUNK_WORDS: Final = 4
PLANE_UNITS: Final = 16
"""Units of a plane's row: 256 bytes, so that a column's number is a byte of its address."""
CODE_COLUMNS: Final = 32
MAX_LIST_WARPS: Final = 12
MAX_WINDOW_WARPS: Final = 16
LIST_BLOCK_UNITS: Final = 4
"""Warps of a block of the kernels for listed subjects, and for windows; units that they share (``intra_task.cuh``)."""
CHECKPOINTS: Final = 4
CHECKPOINT_STRIDE: Final = 64
"""Checkpoints at which two windows may meet, and columns from one to the next (``checkpoints.cuh``)."""
SWEEP_WARPS: Final = 4
SWEEP_BLOCKS: Final = 4
"""Warps a block of the diamond kernel, one for each scheduler, and blocks a multiprocessor."""
CHECKPOINT_DIAMONDS: Final = 8
"""Diamonds from one state that a sweep for a path leaves to the next. With 4, a path's blocks have a quarter fewer
cells, and states take twice the memory; with 16, it is two fifths more and half."""

IntraTaskEntry = Literal["intra_task", "score_windows", "end_positions"]
"""The kernels for listed subjects."""


def max_warps(entry: IntraTaskEntry) -> int:
    """Warps of a block, at most: registers are shared out for so many."""
    return MAX_WINDOW_WARPS if entry == "score_windows" else MAX_LIST_WARPS


class Arithmetic(Enum):
    """How scores are held; the values are types of ``arithmetic.cuh``."""

    FAST = "FastPair"
    SHORT = "ShortPair"
    WIDE = "Wide"

    def largest_exact(self, max_profile_score: int) -> int:
        """The largest best score that proves itself exact; above it, a wider type must score the subject again."""
        if self is Arithmetic.FAST:
            return 2047
        return (32_767 if self is Arithmetic.SHORT else 2**31 - 1) - max_profile_score

    @property
    def wider(self) -> Arithmetic | None:
        """The next wider type."""
        return {Arithmetic.FAST: Arithmetic.SHORT, Arithmetic.SHORT: Arithmetic.WIDE}.get(self)


class Pairing(Enum):
    """What the halves of a word are; the values are those of ``tile.cuh``."""

    ROW_BLOCKS = "kRowBlocks"
    TWO_QUERIES = "kTwoQueries"
    SINGLE = "kSingle"


class BoundaryMode(Enum):
    """Which boundaries a strip has; the values are those of ``boundary.cuh``."""

    NONE = "kNone"
    OWN = "kOwn"
    READS_PAIR = "kReadsPair"
    """Row blocks that go on with the longer of two queries."""


@dataclass(frozen=True)
class Tile:
    """A tile's shape.

    Attributes
    ----------
    pairing : Pairing
    group : int
        Lanes that align one subject: 4, 8, 16 or 32.
    words : int
        Words of H, and of E, a lane.
    columns : int
        Residue columns that are staged, the padding's included; 1 to 32.
    """

    pairing: Pairing
    group: int
    words: int
    columns: int

    @property
    def rows(self) -> int:
        """Query rows of a strip (of each query, where there are two)."""
        return self.group * self.words * (2 if self.pairing is Pairing.ROW_BLOCKS else 1)

    @property
    def slots(self) -> int:
        """Lanes that have words of their own in a strip; groups of four have theirs twice."""
        return max(self.group, 8)

    @property
    def chunks(self) -> int:
        """Chunks of four words a lane reads for a column; the last may not be full."""
        return -(-self.words // CHUNK_WORDS)

    @property
    def planes(self) -> int:
        """Planes of a strip: for each column, 16 units of 16 bytes."""
        return -(-self.chunks * self.slots // PLANE_UNITS)

    @property
    def strip_units(self) -> int:
        """16-byte units of a strip."""
        return self.planes * self.columns * PLANE_UNITS

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block that stages a strip.

        There is room for the columns that no letter has: a byte that is no residue then reads a wrong score, never
        beside the block's memory.
        """
        return (self.strip_units + (CODE_COLUMNS - self.columns) * PLANE_UNITS) * UNIT_BYTES

    def intra_task_bytes(self, strips: int) -> int:
        """Shared memory of a block of the kernels for listed subjects that stages some strips.

        What its warps share lies in the room behind the strips: to the byte, as two blocks of four strips of a
        protein's 28 columns and 8 words then just fit a multiprocessor of 228 kB.
        """
        slack = max((CODE_COLUMNS - self.columns) * PLANE_UNITS, LIST_BLOCK_UNITS)
        return (strips * self.strip_units + slack) * UNIT_BYTES

    @property
    def boundary_words(self) -> int:
        """32-bit words a column that a strip hands to the next."""
        return 1 if self.pairing is Pairing.ROW_BLOCKS else 2

    @property
    def slant(self) -> int:
        """Columns that a strip of a window is behind the one above (``column_range.cuh``)."""
        return self.group * (2 if self.pairing is Pairing.ROW_BLOCKS else 1)

    @property
    def checkpoint_words(self) -> int:
        """Words that a lane keeps where two windows meet (``checkpoints.cuh``)."""
        return 2 * self.words + 3

    def strips(self, query_length: int) -> int:
        """Strips that a query takes."""
        return -(-query_length // self.rows)


@dataclass(frozen=True)
class KernelSpec:
    """An entry with its constants: all that decides its code but for architecture and compiler.

    Attributes
    ----------
    entry : str
        Function, and file in ``cuda/entry/`` without ``.cu``.
    function : str
        The function's name.
    constants : tuple of (str, str)
        Macros without their prefix ``SWS_``.
    threads : int
        Threads a block; specs that differ in this alone are equal, as their code is.
    """

    entry: str
    function: str
    constants: tuple[tuple[str, str], ...]
    threads: int = field(compare=False)

    @property
    def defines(self) -> list[str]:
        """Compiler options."""
        return [f"-DSWS_{name}={value}" for name, value in self.constants]


def _constants(**values: object) -> tuple[tuple[str, str], ...]:
    return tuple((name.upper(), str(int(v) if isinstance(v, bool) else v)) for name, v in values.items())


@cache
def inter_task_kernel(
    arithmetic: Arithmetic,
    tile: Tile,
    gap: GapPenalty,
    *,
    deferred: bool,
    edges: BoundaryMode,
    texture: bool,
    threads: int,
    blocks: int,
) -> KernelSpec:
    """The inter-task kernel ``inter_task``; ``blocks`` is how many shall fit a multiprocessor."""
    return KernelSpec(
        "inter_task",
        "inter_task",
        _constants(
            arithmetic=arithmetic.value,
            pairing=tile.pairing.value,
            group=tile.group,
            words=tile.words,
            columns=tile.columns,
            gap_open=gap.open,
            gap_extend=gap.extend,
            deferred=deferred,
            edges=edges.value,
            texture=texture,
            threads=threads,
            blocks=blocks,
        ),
        threads,
    )


@cache
def intra_task_kernel(
    arithmetic: Arithmetic,
    tile: Tile,
    gap: GapPenalty,
    *,
    strips: int,
    texture: bool,
    warps: int,
    entry: IntraTaskEntry = "intra_task",
) -> KernelSpec:
    """A kernel for listed subjects, in blocks of some warps; its code is the same for any number.

    Parameters
    ----------
    strips : int
        Of the query: one has no boundary.
    entry : str
        ``intra_task``; ``score_windows``, where the subjects are windows of longer ones; ``end_positions``, where their
        scores are known and the ends wanted.
    """
    edges = BoundaryMode.NONE if strips == 1 else BoundaryMode.OWN
    return KernelSpec(
        entry,
        entry,
        _constants(
            arithmetic=arithmetic.value,
            pairing=tile.pairing.value,
            words=tile.words,
            columns=tile.columns,
            gap_open=gap.open,
            gap_extend=gap.extend,
            edges=edges.value,
            texture=texture,
            threads=max_warps(entry) * WARP,
            blocks=1,
        ),
        warps * WARP,
    )


def sweep_kernel(
    *, narrow: bool, words: int, local: bool, affine: bool, compared: bool, entry: str = "sweep_pairs"
) -> KernelSpec:
    """The diamond kernel ``sweep_pairs``; ``locate_best``, which finds what it left open; ``trace_pairs``, which sweeps
    again for a path. A warp a strip.

    Parameters
    ----------
    narrow : bool
        16-bit scores relative to a base, two rows a word; else 32-bit scores.
    words : int
        Words a lane: 2, 4 or 8.
    local, affine, compared : bool
        The problem; whether opening a gap costs anything; whether letters are compared rather than looked up.
    """
    cells = "NarrowCells" if narrow else f"WideCells<{'true' if local else 'false'}>"
    threads = SWEEP_WARPS * WARP
    constants = _constants(
        cells=cells,
        words=words,
        local=local,
        affine=affine,
        compared=compared,
        threads=threads,
        blocks=SWEEP_BLOCKS,
    )
    if entry == "trace_pairs":
        constants += _constants(every=CHECKPOINT_DIAMONDS)
    return KernelSpec(entry, entry, constants, threads)


COMPARE_CHECKPOINTS_KERNEL: Final = KernelSpec("compare_checkpoints", "compare_checkpoints", (), 128)
COLLECT_KERNEL: Final = KernelSpec("collect", "collect_at_least", (), 256)
COUNT_KERNEL: Final = KernelSpec("count_scores", "count_scores", (), 256)
COUNTED_SCORES: Final = 4096
"""Scores that are counted each; larger ones count as the last."""
