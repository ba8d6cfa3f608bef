"""The upper bound of ``cuda/search/bound.cuh`` in plain NumPy, for many pairs at a time, as its lanes compute it.

Each function takes the score of every cell, so that any profile and any subject can be tried, whether or not sequences
with these scores exist.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from swsearch.scoring.gap import GapPenalty

Cells = NDArray[np.int64]


@dataclass(frozen=True)
class Bound:
    """The values of the bound.

    Attributes
    ----------
    kept : int64 array, shape (pairs, rows, columns)
        The bound of H in each cell.
    e : int64 array, shape (pairs, bands, columns)
        E of each band after each column, which is that of the next column.
    """

    kept: Cells
    e: Cells


def band_bound(scores: Cells, band: int, gap: GapPenalty) -> Bound:
    """Return the bound.

    Parameters
    ----------
    scores : int64 array, shape (pairs, rows, columns)
        The score of each cell; the rows are a multiple of ``band``.
    band : int
        Rows of a band.
    gap : GapPenalty
    """
    band_gap = min(band * gap.extend, gap.first)  # what F loses in a band
    n_pairs, n_rows, n_columns = scores.shape
    kept = np.zeros((n_pairs, n_rows + 1, n_columns + 1), np.int64)
    e = np.zeros((n_pairs, n_rows // band, n_columns + 1), np.int64)
    for j in range(1, n_columns + 1):
        f = np.zeros(n_pairs, np.int64)
        for index, first in enumerate(range(0, n_rows, band)):
            t = kept[:, first : first + band, j - 1] + scores[:, first : first + band, j - 1]
            g = t.max(axis=1) - gap.first
            y = np.maximum.reduce([e[:, index, j - 1], f, g, np.zeros_like(f)])
            kept[:, first + 1 : first + band + 1, j] = np.maximum(t, y[:, None])
            e[:, index, j] = np.maximum.reduce([e[:, index, j - 1] - gap.extend, g, np.zeros_like(f)])
            f = np.maximum(y - band_gap, g)
    return Bound(kept[:, 1:, 1:], e[:, :, 1:])


def result(bound: Bound, lanes: NDArray[np.intp]) -> Cells:
    """Return the kernel's result for each pair: the largest E, looked at after every fourth step.

    Parameters
    ----------
    bound : Bound
        Of subjects followed by at least three columns of padding.
    lanes : int array, shape (bands,)
        The lane of each band. A lane computes a column one step later than the lane above.
    """
    columns = np.arange(bound.e.shape[2])
    seen = (columns[None, :] + lanes[:, None]) % 4 == 3
    found: Cells = np.where(seen, bound.e, 0).max(axis=(1, 2))
    return found
