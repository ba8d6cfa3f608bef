"""The kernels of ``cuda/`` with their compile-time constants, and the shapes of their tiles.

A :class:`KernelSpec` names an entry and its constants; plans refer to kernels by it, and the compiler builds it.
``cuda/search/tile.cuh`` explains the layout that :class:`Tile` computes. The module needs no device.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from functools import cache, cached_property
from itertools import product
from typing import Final, Literal

WARP: Final = 32
UNIT_BYTES: Final = 16
"""Bytes of a unit: four 32-bit words of a profile column, which a lane reads with one load."""
CHUNK_WORDS: Final = 4
PLANE_UNITS: Final = 16
"""Units of a column in a plane: 256 bytes, so that the column's index is one byte of its address."""
PROFILE_COLUMNS: Final = 28
"""Columns of a profile: padding, and the letters of proteins (:mod:`swsearch.sequences.alphabet`), which are more than
those of DNA."""
CODE_COLUMNS: Final = 32
UNUSED_UNITS: Final = (CODE_COLUMNS - PROFILE_COLUMNS) * PLANE_UNITS
"""Number of residue codes, letters or not, and the units of shared memory behind a strip for those that have no column.
The warps of a block for listed subjects coordinate there (``intra_task.cuh``)."""
MAX_LIST_WARPS: Final = 16
"""Maximum number of warps per block of the kernels for listed subjects, for which the compiler assigns registers."""
SWEEP_WARPS: Final = 4
SWEEP_BLOCKS: Final = 4
"""Warps per block of the diamond kernel, one for each scheduler, and minimum number of blocks per multiprocessor."""
SWEEP_WORDS: Final = (8, 4, 2)
"""Words per lane of the diamond kernel."""
SHORT_THREADS: Final = 64
SHORT_BLOCKS: Final = 6
"""Threads per block of the kernel for short pairs, and number of blocks that a multiprocessor must be able to run."""
SHORT_ROWS: Final = (8, 16)
"""Query rows per lane of that kernel."""
CHECKPOINT_DIAMONDS: Final = 8
"""Diamonds between two states that a sweep saves for a path. With 4, the blocks of a path have 25 % fewer cells and
states take twice the memory; with 16, 40 % more cells and half the memory."""

IntraTaskEntry = Literal["intra_task", "end_positions"]
"""The kernels for listed subjects."""

Gap = tuple[int, int] | None
COMPILED_GAPS: Final = ((11, 1), (5, 2))
"""Costs of opening and of extending a gap that kernels have as constants, which is 6 to 9 % faster: the defaults of
proteins and of DNA."""
MAX_FAST_SCORE: Final = 2047
"""Largest number such that all whole numbers up to it are exact in the fast type."""


class Arithmetic(Enum):
    """Number types of scores, the narrowest first; the values are types of ``arithmetic.cuh``."""

    FAST = "FastPair"
    SHORT = "ShortPair"
    WIDE = "Wide"

    def largest_exact(self, max_profile_score: int) -> int:
        """The largest best score that is certainly exact; above it, the subject must be scored in a wider type."""
        if self is Arithmetic.FAST:
            return MAX_FAST_SCORE
        return (32_767 if self is Arithmetic.SHORT else 2**31 - 1) - max_profile_score

    def gap_costs(self, open_cost: int, extend_cost: int) -> tuple[int, int]:
        """The gap costs of a launch, which this type can subtract exactly.

        No exact score of the fast type exceeds :data:`MAX_FAST_SCORE`, so a gap that costs this much ends an alignment
        as one does that costs more.
        """
        if self is not Arithmetic.FAST:
            return open_cost, extend_cost
        extend = min(extend_cost, MAX_FAST_SCORE)
        return min(open_cost, MAX_FAST_SCORE - extend), extend

    def compiled_gap(self, open_cost: int, extend_cost: int) -> Gap:
        """The gap costs that a kernel of this type has as constants; None if they are parameters of its launch."""
        gap = (open_cost, extend_cost)
        return gap if self is Arithmetic.FAST and gap in COMPILED_GAPS else None

    @property
    def pairing(self) -> Pairing:
        """Contents of the words of a kernel for listed subjects."""
        return Pairing.ONE_SCORE if self is Arithmetic.WIDE else Pairing.TWO_BLOCKS

    @property
    def wider(self) -> Arithmetic | None:
        """The next wider type of scores, or None."""
        return {Arithmetic.FAST: Arithmetic.SHORT, Arithmetic.SHORT: Arithmetic.WIDE}.get(self)


class Pairing(Enum):
    """Contents of the parts of a word; the values are those of ``tile.cuh``."""

    TWO_BLOCKS = "kTwoBlocks"
    TWO_QUERIES = "kTwoQueries"
    ONE_SCORE = "kOneScore"

    @property
    def blocks(self) -> int:
        """Blocks of rows of a query in a word."""
        return 2 if self is Pairing.TWO_BLOCKS else 1


class BoundaryMode(Enum):
    """Boundaries of a strip; the values are those of ``Edges`` in ``boundary.cuh``."""

    NONE = "kNone"
    OWN = "kOwn"
    READS_PAIR = "kReadsPair"
    """The mode of the first strip of row blocks below strips of two queries, which continues the longer query."""


@dataclass(frozen=True)
class Tile:
    """The shape of a tile: the cells of a strip that a group of lanes computes for one column.

    A ``group`` has 4, 8, 16 or 32 lanes, each with ``words`` words of H and of E. Sizes are computed once, since
    launches read them hundreds of times in the millisecond before a kernel begins.
    """

    pairing: Pairing
    group: int
    words: int

    @cached_property
    def rows(self) -> int:
        """Query rows of a strip, of each query where there are two."""
        return self.group * self.words * self.pairing.blocks

    @cached_property
    def closed_counter(self) -> int:
        """A work counter with which the inter-task kernel finds no work: 2^31 subjects have been taken."""
        return 2**31 // (WARP // self.group)

    @cached_property
    def slots(self) -> int:
        """Lanes with words of their own in the layout; those of a group of four lanes are stored twice."""
        return max(self.group, 8)

    @cached_property
    def chunks(self) -> int:
        """Chunks of four words that a lane reads per column; the last may be partly filled."""
        return -(-self.words // CHUNK_WORDS)

    @cached_property
    def planes(self) -> int:
        """Planes of a strip: for each column, 16 units of 16 bytes."""
        return -(-self.chunks * self.slots // PLANE_UNITS)

    @cached_property
    def strip_units(self) -> int:
        """16-byte units of a strip."""
        return self.planes * PROFILE_COLUMNS * PLANE_UNITS

    def shared_bytes(self, strips: int = 1) -> int:
        """Shared memory of a block that stages some strips.

        It includes the columns of codes that are not letters, so that a byte that is not a residue code reads a wrong
        score but never memory of another block. No byte is wasted: two blocks of the kernel for listed subjects, each
        with four strips of 8 words, just fit the 228 kB of a multiprocessor.
        """
        return (strips * self.strip_units + UNUSED_UNITS) * UNIT_BYTES

    @property
    def boundary_words(self) -> int:
        """32-bit words per column that a strip passes to the next strip."""
        return 1 if self.pairing is Pairing.TWO_BLOCKS else 2

    def strips(self, query_length: int) -> int:
        """Number of strips of a query."""
        return -(-query_length // self.rows)


def compute_capability(architecture: int) -> str:
    """The words for an architecture.

    >>> compute_capability(90)
    'compute capability 9.0'
    """
    return f"compute capability {architecture // 10}.{architecture % 10}"


@dataclass(frozen=True)
class KernelSpec:
    """The function ``entry`` of ``cuda/<folder>/<entry>.cu`` with its constants. Architecture and compiler complete its
    code.

    ``constants`` are macros without their prefix ``SWS_``, and their values. Specifications that differ only in their
    threads per block are equal, as their code is.
    """

    folder: str
    entry: str
    constants: tuple[tuple[str, str], ...]
    threads: int = field(compare=False)

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        """Computed once, since the host looks kernels up dozens of times before the first one of a call begins."""
        return hash((self.folder, self.entry, self.constants))

    @property
    def source(self) -> str:
        """The kernel's file, relative to ``cuda/``."""
        return f"{self.folder}/{self.entry}.cu"

    @property
    def defines(self) -> list[str]:
        """Compiler options."""
        return [f"-DSWS_{name}={value}" for name, value in self.constants]


def _constants(**values: object) -> tuple[tuple[str, str], ...]:
    return tuple((name.upper(), str(int(v) if isinstance(v, bool) else v)) for name, v in values.items())


def _gap_constants(gap: Gap) -> dict[str, object]:
    """The constants of ``gap_costs.cuh``, which are negative if the costs are parameters."""
    open_cost, extend_cost = gap or (-1, -1)
    return {"gap_open": open_cost, "gap_extend": extend_cost}


@cache
def inter_task_kernel(
    tile: Tile, gap: Gap, *, edges: BoundaryMode, threads: int, blocks: int, band: int = 0, listed: bool = False
) -> KernelSpec:
    """The inter-task kernel, whose scores have the fast type; without gap costs, they are parameters of a launch.

    ``blocks`` is the number of blocks that a multiprocessor must be able to run, and ``band`` the rows of a band of the
    bound, a divisor of the tile's words (``bound.cuh``), or 0 for the recurrence itself. With ``listed``, the kernel
    scores the subjects of a list.
    """
    return KernelSpec(
        "search",
        "inter_task",
        _constants(
            pairing=tile.pairing.value,
            group=tile.group,
            words=tile.words,
            **_gap_constants(gap),
            band=band,
            listed=listed,
            edges=edges.value,
            threads=threads,
            blocks=blocks,
        ),
        threads,
    )


@cache
def intra_task_kernel(
    arithmetic: Arithmetic, tile: Tile, gap: Gap, *, edges: BoundaryMode, entry: IntraTaskEntry = "intra_task"
) -> KernelSpec:
    """A kernel for listed subjects, in blocks of one warp; its code does not depend on the number of warps.

    Without gap costs, they are parameters of a launch. The ``entry`` is ``intra_task``, or ``end_positions`` if the
    scores are known and the ends are requested.
    """
    return KernelSpec(
        "search",
        entry,
        _constants(
            arithmetic=arithmetic.value,
            pairing=tile.pairing.value,
            words=tile.words,
            **_gap_constants(gap),
            edges=edges.value,
            threads=MAX_LIST_WARPS * WARP,
            blocks=1,
        ),
        WARP,
    )


def sweep_kernel(
    *, narrow: bool, words: int, local: bool, affine: bool, compared: bool, entry: str = "sweep_pairs"
) -> KernelSpec:
    """A diamond kernel, with one warp per strip and 2, 4 or 8 words per lane.

    ``sweep_pairs`` sweeps pairs, ``locate_best`` finds the end of a local sweep, and ``trace_pairs`` sweeps again for a
    path. Scores have 16 bits relative to a base, two rows per word (``narrow``), or 32. ``affine``: opening a gap has a
    cost; ``compared``: letters are compared rather than looked up.
    """
    cells = "NarrowCells" if narrow else f"WideCells<{'true' if local else 'false'}>"
    threads = SWEEP_WARPS * WARP
    constants = _constants(
        cells=cells, words=words, local=local, affine=affine, compared=compared, threads=threads, blocks=SWEEP_BLOCKS
    )
    if entry == "trace_pairs":
        constants += _constants(every=CHECKPOINT_DIAMONDS)
    return KernelSpec("pairs", entry, constants, threads)


def short_pairs_kernel(*, rows: int, affine: bool, local: bool, table: bool, path: bool) -> KernelSpec:
    """The kernel for short pairs, a warp for each, with 8 or 16 query rows per lane.

    ``affine`` is as for :func:`sweep_kernel`; ``table``: letters are looked up rather than compared; ``path``: the path
    is wanted, too.
    """
    constants = _constants(
        rows=rows, affine=affine, local=local, table=table, path=path, threads=SHORT_THREADS, blocks=SHORT_BLOCKS
    )
    return KernelSpec("pairs", "short_pairs", constants, SHORT_THREADS)


def pair_kernels() -> Iterator[KernelSpec]:
    """All kernels of pairs, but for those that serve for comparison."""
    either = (True, False)
    for narrow, words, local, affine, compared in product(either, SWEEP_WORDS, either, either, either):
        for entry in ("sweep_pairs", "trace_pairs", *["locate_best"] * local):
            yield sweep_kernel(narrow=narrow, words=words, local=local, affine=affine, compared=compared, entry=entry)
    for rows, affine, local, table, path in product(SHORT_ROWS, either, either, either, either):
        yield short_pairs_kernel(rows=rows, affine=affine, local=local, table=table, path=path)


COLLECT_KERNEL: Final = KernelSpec("search", "collect", (), 256)
OPEN_COUNTERS_KERNEL: Final = KernelSpec("search", "open_counters", (), WARP)
COLLECTED: Final = 1024
COLLECT_BYTES: Final = 8
"""Candidates that a block of this kernel tests at a time, and its shared memory."""
COLUMN_ODDS_KERNEL: Final = KernelSpec("search", "column_odds", (), 256)
FORWARD_KERNEL: Final = KernelSpec("search", "forward_totals", (), 4 * WARP)
COUNT_KERNEL: Final = KernelSpec("search", "count_scores", (), 256)
COUNTED_SCORES: Final = 4096
"""Number of bins of the histogram of scores; larger scores are counted in the last bin."""
