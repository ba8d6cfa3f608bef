"""The upper bound of ``docs/design/bound.md`` in NumPy, cell by cell, for many small pairs at once.

Arrays of cells have the axes (query row, subject column, pair). Every pair has its own scores and gap costs, so that
one call covers many scoring systems.
"""

from __future__ import annotations

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
    kept = np.zeros((scores.shape[0] + 1, scores.shape[1] + 1, n_pairs), np.int32)
    e = np.zeros((scores.shape[0] // rows, n_pairs), np.int32)
    peak = np.zeros(n_pairs, np.int32)
    every_e = np.zeros((len(e), scores.shape[1], n_pairs), np.int32)
    for j in range(1, scores.shape[1] + 1):
        f = np.zeros(n_pairs, np.int32)
        for band in range(len(e)):
            top = band * rows
            paired = limited(steps["paired"](kept[top : top + rows, j - 1], scores[top : top + rows, j - 1]))
            opened = limited(steps["opened"](steps["band"](paired), first))
            highest_gap = steps["highest_gap"](e[band], f, opened)
            kept[top + 1 : top + rows + 1, j] = steps["kept"](paired, highest_gap)
            e[band] = limited(steps["next_e"](e[band], opened, pairs.extend))
            f = limited(steps["next_f"](highest_gap, opened, band_cost))
        every_e[:, j - 1] = e
        if j % COLUMNS_PER_LOOK == 0:
            peak = np.maximum(peak, e.max(axis=0))
    return Bounds(kept[1 : n_rows + 1, 1 : n_columns + 1], steps["look"](peak, pairs.open, pairs.extend), every_e)
