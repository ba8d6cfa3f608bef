"""The upper bound of ``docs/design/bound.md`` in NumPy, cell by cell, for many small pairs at once.

Arrays of cells have the axes (query row, subject column, pair). Every pair has its own scores and gap costs, so that
one call covers many scoring systems.
"""

from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.int32]
NEVER: Final = -(1 << 24)
"""Below every sum of scores."""
LARGEST: Final = 255
"""The largest number of an 8-bit lane; it stands for every larger one, too."""
COLUMNS_PER_LOOK: Final = 4


@dataclass(frozen=True)
class Pairs:
    """Small matrices: ``scores`` of shape (rows, columns, pairs), and the gap costs of every pair."""

    scores: Values
    open: Values
    extend: Values


def exact_cells(pairs: Pairs) -> Values:
    """H of every cell by Gotoh's recurrence, in which a gap may begin right after a gap of the other kind."""
    first, extend = pairs.open + pairs.extend, pairs.extend
    n_rows, n_columns, n_pairs = pairs.scores.shape
    h = np.zeros((n_rows + 1, n_columns + 1, n_pairs), np.int32)
    e = np.full((n_rows + 1, n_pairs), NEVER, np.int32)
    for j in range(1, n_columns + 1):
        f = np.full(n_pairs, NEVER, np.int32)
        for i in range(1, n_rows + 1):
            e[i] = np.maximum(h[i, j - 1] - first, e[i] - extend)
            f = np.maximum(h[i - 1, j] - first, f - extend)
            paired = h[i - 1, j - 1] + pairs.scores[i - 1, j - 1]
            h[i, j] = np.maximum(np.maximum(paired, 0), np.maximum(e[i], f))
    return h[1:, 1:]


def largest(*terms: Values | int) -> Values:
    found = terms[0]
    for term in terms[1:]:
        found = np.maximum(found, term)
    return np.asarray(found, np.int32)


Step = Callable[..., Values]

RECURRENCE: Final[MappingProxyType[str, Step]] = MappingProxyType(
    {
        "paired": lambda diagonal, score: diagonal + score,
        "band": lambda paired: paired.max(axis=0),
        "opened": lambda best, first: best - first,
        "highest_gap": lambda e, f, opened: largest(e, f, opened, 0),
        "kept": largest,
        "next_e": lambda e, opened, extend: largest(e - extend, opened),
        "band_cost": lambda rows, first, extend: np.minimum(rows * extend, first),
        "next_f": lambda highest_gap, opened, band_cost: largest(highest_gap - band_cost, opened),
        "look": lambda e, open_, extend: e + open_ + COLUMNS_PER_LOOK * extend,
    }
)
"""The steps of the recurrence by name; tests replace some of them."""

ROOM: Final = 48
"""Numbers of wrapping lanes are -ROOM … 255 - ROOM."""
LOWEST_SCORE: Final = -24
HIGHEST_SCORE: Final = 24
LARGEST_WRAPPING: Final = LARGEST - ROOM - HIGHEST_SCORE
"""The smallest bound that stands for every larger one, too, if additions wrap."""


def wrapped(a: Values) -> Values:
    """What a byte makes of a sum or a difference that is not limited."""
    return np.asarray((a + ROOM) % 256 - ROOM, np.int32)


WRAPPING: Final[MappingProxyType[str, Step]] = MappingProxyType(
    {
        **RECURRENCE,
        "paired": lambda diagonal, score: wrapped(diagonal + largest(score, LOWEST_SCORE)),
        "opened": lambda best, first: wrapped(best - first),
        "next_e": lambda e, opened, extend: largest(wrapped(e - extend), opened),
        "next_f": lambda highest_gap, opened, band_cost: largest(wrapped(highest_gap - band_cost), opened),
    }
)
"""The steps as lanes of 8 bits compute them whose additions wrap."""


@dataclass(frozen=True)
class Bounds:
    """Upper bounds: ``kept`` of every cell, and ``score`` of every pair; and the ``e`` of every band after each column.

    ``e`` has the axes (band, column, pair), the missing columns of the last look included.
    """

    kept: Values
    score: Values
    e: Values


def bounds(
    pairs: Pairs, rows: int, steps: MappingProxyType[str, Step] | dict[str, Step] = RECURRENCE, *, lanes: bool = False
) -> Bounds:
    """Bounds of all cells, with ``rows`` query rows per band.

    ``lanes`` restricts every value to 0 … 255, as saturating lanes of 8 bits do. Missing rows of the last band and
    missing columns of the last look score -128, as in the kernels.
    """
    limited: Callable[[Values], Values] = (lambda a: np.clip(a, 0, LARGEST)) if lanes else lambda a: a
    n_rows, n_columns, n_pairs = pairs.scores.shape
    missing = [(0, -n_rows % rows), (0, -n_columns % COLUMNS_PER_LOOK), (0, 0)]
    scores = np.pad(pairs.scores, missing, constant_values=-128)
    first = pairs.open + pairs.extend
    band_cost = steps["band_cost"](rows, first, pairs.extend)
    n_bands, width = len(scores) // rows, scores.shape[1]
    kept = np.zeros((len(scores) + 1, width + 1, n_pairs), np.int32)
    e = np.zeros((n_bands, n_pairs), np.int32)
    f = np.zeros((n_bands + 1, n_pairs), np.int32)
    every_e = np.zeros((n_bands, width, n_pairs), np.int32)
    # Each band computes a column one step after the band above: all bands of a step at once.
    for step in range(width + n_bands - 1):
        bands = np.arange(max(0, step - width + 1), min(n_bands, step + 1))
        j = step - bands
        i = bands * rows + np.arange(rows)[:, None]
        paired = limited(steps["paired"](kept[i, j], scores[i, j]))
        opened = limited(steps["opened"](steps["band"](paired), first))
        highest_gap = steps["highest_gap"](e[bands], f[bands], opened)
        kept[i + 1, j + 1] = steps["kept"](paired, highest_gap)
        e[bands] = limited(steps["next_e"](e[bands], opened, pairs.extend))
        f[bands + 1] = limited(steps["next_f"](highest_gap, opened, band_cost))
        every_e[bands, j] = e[bands]
    peak = every_e[:, COLUMNS_PER_LOOK - 1 :: COLUMNS_PER_LOOK].max(axis=(0, 1), initial=0)
    return Bounds(kept[1 : n_rows + 1, 1 : n_columns + 1], steps["look"](peak, pairs.open, pairs.extend), every_e)
