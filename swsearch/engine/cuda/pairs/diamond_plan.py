"""Chooses the shape of strips and diamonds for pairs on the GPU, and lays out the letters of the pairs.

Inputs are pairs of uint16 letter arrays, a problem and the device's properties; outputs are a :class:`SweepShape` and
:class:`PairLetters`, the arrays that ``cuda/pairs/sweep.cuh`` reads. All functions are pure and need no device.
docs/design/diamond.md proves that the decomposition is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch.engine.cuda.runtime.device import DeviceFacts
from swsearch.engine.cuda.runtime.kernels import (
    CHECKPOINT_DIAMONDS,
    CODE_COLUMNS,
    SWEEP_BLOCKS,
    SWEEP_WARPS,
    SWEEP_WORDS,
    WARP,
)
from swsearch.engine.pair_arrays import AlignmentProblem
from swsearch.sequences.alphabet import PAD_CODE
from swsearch.typing import Letters

DIAMOND_STEPS: Final = 32
FIXED_SHARED_BYTES: Final = 8 * DIAMOND_STEPS + 1024
"""Shared memory per warp for a diamond's lowest row and for the window of letters."""
PAD_SCORE: Final = -128
LARGEST_TABLE_SCORE: Final = 127
TABLE_LETTERS: Final = 31
"""Maximum number of distinct subject letters in a table, padding excluded."""
MAX_LINES: Final = 254
"""Maximum number of distinct query letters in a table: they are numbered in 8 bits."""
MAX_GAP_FIRST: Final = 2 * 16_383
"""Largest cost of a gap's first letter; the horizon stores it in 16 bits."""
NARROW_REACH: Final = 32_767
MAX_PAIR_SCORE: Final = 1 << 30
MAX_LOCAL_SCORE: Final = (1 << 31) - (1 << 16)
SUBJECT_ALIGNMENT: Final = 16
COMPARED_FILL: Final = 0xFFFF
"""Padding of a query of compared letters; no subject letter equals it."""
CHECKPOINT_COLUMNS: Final = CHECKPOINT_DIAMONDS * DIAMOND_STEPS
"""Columns between two states that a strip saves for a path."""
LAG_STEPS: Final = 128
"""Measured number of steps by which a strip lags behind the strip above: the strip's depth, one diamond, and the memory
latency."""


@dataclass(frozen=True)
class SweepShape:
    """The layout of a strip's cells in a warp: words per lane, of two 16-bit scores (``narrow``) or one of 32 bits."""

    narrow: bool
    words: int

    @property
    def lane_rows(self) -> int:
        """Query rows of a lane."""
        return self.words * (2 if self.narrow else 1)

    @property
    def strip_rows(self) -> int:
        """Query rows of a strip."""
        return self.lane_rows * WARP

    @property
    def lag(self) -> int:
        """Columns by which a lane lags behind the lane above it."""
        return 2 if self.narrow else 1

    def reach(self, problem: AlignmentProblem) -> int:
        """Largest difference between the score at a diamond's corner and any value in it, E and F included.

        A node's distance from the corner is at most the sum of the strip's rows, the columns of one diamond, and the
        lag between the first lane and the last. After the matrix's last column the corner no longer moves, which adds
        that lag a second time.
        """
        columns = DIAMOND_STEPS + 2 * self.lag * WARP
        return (self.strip_rows + columns + 4) * problem.max_step + problem.gap_first

    def fits(self, problem: AlignmentProblem) -> bool:
        """Whether the cells can represent every score of a diamond."""
        return not self.narrow or 2 * self.reach(problem) + max(problem.max_score, 0) <= NARROW_REACH

    def warp_bytes(self, n_columns: int) -> int:
        """Shared memory of a warp whose table has ``n_columns`` columns, in bytes."""
        return FIXED_SHARED_BYTES + n_columns * WARP * max(self.lane_rows, 4)

    @property
    def lane_words(self) -> int:
        """32-bit words of a lane's state: H and E of its rows, F, H of the row above, and the base."""
        return 2 * self.words + 3

    @property
    def state_bytes(self) -> int:
        """Bytes that a strip of a local problem saves on the device, from which its best end is located."""
        above = 2 * (1 + self.lag * WARP // DIAMOND_STEPS)
        return 4 * WARP * (self.lane_words + above)

    def strips(self, rows: int) -> int:
        """Number of strips of a query with ``rows`` letters."""
        return -(-rows // self.strip_rows)


def filled_columns(columns: int) -> int:
    """``columns`` rounded up to a multiple of a diamond's columns."""
    return -(-columns // DIAMOND_STEPS) * DIAMOND_STEPS


def n_checkpoints(columns: int) -> int:
    """Number of states that a strip saves for a path: one between any two consecutive blocks of 256 columns."""
    return max(0, (columns - 1) // CHECKPOINT_COLUMNS)


def step_cycles(shape: SweepShape, warps_per_scheduler: float, *, affine: bool) -> float:
    """Cycles of a step: the larger of its issue slots times the warps of a scheduler and the latency of its F chain.

    Fitted to an H200 (benchmarks/benchmark_diamond.py): 100 to 2,000 warps, 2, 4 and 8 words, affine gaps.
    """
    issued = 26 + (13 if affine else 9) * shape.words
    chain = 77 + (11 if affine else 8) * shape.words
    return max(chain, warps_per_scheduler * issued)


def choose_shape(
    problem: AlignmentProblem, lengths: Sequence[tuple[int, int]], n_columns: int | None, device: DeviceFacts
) -> SweepShape:
    """The fastest shape for pairs of these lengths in one launch.

    It fits the device's shared memory with a table of ``n_columns`` columns; ``n_columns`` is None if letters are
    compared. More words per lane amortize the overhead of a step over more cells; fewer words give more strips that run
    concurrently, which short queries need to fill the device.
    """

    def seconds(shape: SweepShape) -> float:
        strips = [shape.strips(rows) for rows, _ in lengths]
        at_once = min(sum(strips), device.multiprocessors * SWEEP_BLOCKS * SWEEP_WARPS)
        steps = sum(count * columns for count, (_, columns) in zip(strips, lengths, strict=True))
        waiting = max(columns + count * LAG_STEPS for count, (_, columns) in zip(strips, lengths, strict=True))
        affine = problem.gap_open > 0
        cycles = step_cycles(shape, at_once / (SWEEP_WARPS * device.multiprocessors), affine=affine)
        return max(steps / at_once, waiting) * cycles

    shapes = [SweepShape(narrow, words) for narrow in (True, False) for words in SWEEP_WORDS]
    shapes = [shape for shape in shapes if SWEEP_WARPS * shape.warp_bytes(n_columns or 0) <= device.shared_bytes]
    narrow = [shape for shape in shapes if shape.narrow and shape.fits(problem)]
    return min(narrow or [shape for shape in shapes if not shape.narrow], key=seconds)


@dataclass(frozen=True, eq=False)
class PairLetters:
    """Letters of pairs as the kernel reads them.

    If letters are compared, ``query`` and ``subject`` are uint16 letters, otherwise uint8: numbers of lines, and
    codes. Starts are the index of each pair's first query letter and the byte offset of its first subject letter.
    ``lines``, int8 of shape (n_lines, 32), has the scores of a query letter against padding (column 0) and each code
    (column code + 1); line 0 is padding.
    """

    query: NDArray[np.generic]
    subject: NDArray[np.generic]
    query_starts: list[int]
    subject_starts: list[int]
    lines: NDArray[np.int8]
    n_columns: int


def table_columns(pairs: Sequence[tuple[Letters, Letters]], problem: AlignmentProblem) -> int | None:
    """Columns of the score table of the pairs, padding included; None if letters are compared instead."""
    scores = (problem.match, problem.mismatch)
    if problem.table is None and not (min(scores) >= PAD_SCORE and max(scores) <= LARGEST_TABLE_SCORE):
        return None
    n_letters = len(_letters_in([subject for _, subject in pairs]))
    return None if problem.table is None and n_letters > TABLE_LETTERS else n_letters + 1


def lay_out(
    pairs: Sequence[tuple[Letters, Letters]], problem: AlignmentProblem, shape: SweepShape, *, compared: bool
) -> PairLetters:
    """The letters of all pairs in two arrays, with queries padded to complete strips and subjects to 16 letters.

    With a score table, the subjects may have at most 31 different letters.
    """
    if compared:
        query, query_starts = _filled([query for query, _ in pairs], shape.strip_rows, COMPARED_FILL)
        subject, letter_starts = _filled([subject for _, subject in pairs], SUBJECT_ALIGNMENT, COMPARED_FILL)
        starts = [2 * start for start in letter_starts]
        return PairLetters(query, subject, query_starts, starts, np.zeros((1, CODE_COLUMNS), np.int8), 0)
    subject_letters = _letters_in([subject for _, subject in pairs])
    query_letters = _letters_in([query for query, _ in pairs])
    if problem.table is None:
        # Query letters that occur in no subject share one line, so there is at most one line more than there are codes.
        known = np.intersect1d(query_letters, subject_letters)
        used = np.where(known[:, None] == subject_letters[None, :], problem.match, problem.mismatch)
        used = np.concatenate([used, np.full((1, len(subject_letters)), problem.mismatch)])
    else:
        known = query_letters
        used = problem.table[np.ix_(query_letters, subject_letters)]
    lines = np.full((len(used) + 1, CODE_COLUMNS), PAD_SCORE, np.int8)
    lines[1:, 1 : len(subject_letters) + 1] = used
    line_of = _numbers(known, first=1, others=len(used))
    code_of = _numbers(subject_letters, first=0, others=PAD_CODE)
    query, query_starts = _filled([line_of[query] for query, _ in pairs], shape.strip_rows, 0)
    subject, subject_starts = _filled([code_of[subject] for _, subject in pairs], SUBJECT_ALIGNMENT, PAD_CODE)
    return PairLetters(query, subject, query_starts, subject_starts, lines, len(subject_letters) + 1)


def _letters_in(sides: Sequence[Letters]) -> Letters:
    """The letters that occur in the sequences, ascending."""
    seen = np.zeros(1 << 16, bool)
    for side in sides:
        seen[: int(side.max(initial=0)) + 1] |= np.bincount(side, minlength=1) > 0 if len(side) else False
    return np.flatnonzero(seen).astype(np.uint16)


def _numbers(known: Letters, *, first: int, others: int) -> NDArray[np.uint8]:
    """A number for every possible letter: consecutive numbers from ``first`` for ``known``, ``others`` for the rest."""
    numbers = np.full(1 << 16, others, np.uint8)
    numbers[known] = np.arange(first, first + len(known))
    return numbers


def _filled(sides: Sequence[NDArray[np.generic]], multiple: int, fill: int) -> tuple[NDArray[np.generic], list[int]]:
    """All sequences in one array, each starting at a multiple of ``multiple``, with ``fill`` between them."""
    starts = np.concatenate([[0], np.cumsum([-(-len(side) // multiple) * multiple for side in sides])]).tolist()
    whole = np.full(starts[-1], fill, dtype=sides[0].dtype)
    for side, start in zip(sides, starts, strict=False):
        whole[start : start + len(side)] = side
    return whole, starts[:-1]
