"""Contexts: typical windows of columns, by which the column at a position is predicted from its neighbours.

Each of K contexts k has a prior probability P_k and 13 columns p_kj(a). For position i of a sequence or an alignment
that has c_i(a) observations of amino acid a there (Biegert and Söding 2009, doi 10.1073/pnas.0810767106)::

    weight_k  ∝  P_k · Π_j Π_a p_kj(a)^(w_j · c_(i+j)(a)),   j = -6 … 6,   w_j = 1.6 · 0.85^|j|
    t_i(a)    =  Σ_k weight_k · p_k0(a)

The observations are whole numbers in units of 1/64, the logarithms in units of 1/100, the weights in units of 2^-20 of
the largest, and the columns in units of 2^-16. All products and sums of these are whole numbers below 2^53, which
float64 holds; so they are exact in any order, and every machine computes the same bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch.deterministic import exp
from swsearch.hits.result import N_AMINO_ACIDS
from swsearch.typing import Floats

WIDTH: Final = 13
UNITS: Final = 100.0
"""Of a logarithm."""
FILE_UNITS: Final = 20.0
"""Of a logarithm in the file."""
SHARE_UNITS: Final = 65536.0
WEIGHT_UNITS: Final = 1048576.0
CENTRAL_WEIGHT: Final = 1.6
DECAY: Final = 0.85
COUNT_UNITS: Final = 64.0
"""Of an observation."""
_N_WEIGHTS: Final = 2048
"""A context whose logarithm is 20.47 below that of the best one, or lower, has the weight 0."""
_BLOCK: Final = 128
"""Positions that are computed together: about 10 MB."""


@dataclass(frozen=True, eq=False)
class Contexts:
    """A library of contexts.

    Attributes
    ----------
    priors : uint8 array, shape (K,)
        -ln P_k in units of 1/20.
    columns : uint8 array, shape (K, 13, 20)
        -ln p_kj(a) in units of 1/20.
    """

    priors: NDArray[np.uint8]
    columns: NDArray[np.uint8]

    @cached_property
    def _costs(self) -> Floats:
        """-w_j ln p_kj(a) of each place and letter, whole numbers of shape (13 * 20, K)."""
        costs = np.empty((WIDTH, N_AMINO_ACIDS, len(self.priors)))
        for place in range(WIDTH):
            weight = CENTRAL_WEIGHT * UNITS / FILE_UNITS
            for _ in range(abs(place - WIDTH // 2)):
                weight *= DECAY
            costs[place] = np.rint(weight * self.columns[:, place].T)
        return costs.reshape(WIDTH * N_AMINO_ACIDS, -1)

    @cached_property
    def _central(self) -> Floats:
        """p_k0(a) in units of 2^-16, whole numbers of shape (K, 20)."""
        return np.rint(exp(self.columns[:, WIDTH // 2] / -FILE_UNITS) * SHARE_UNITS)

    def predicted(self, counts: Floats) -> Floats:
        """The predicted columns, float64 of shape (length, 20), whose rows sum to 1.

        ``counts``, float64 of shape (length, 20), has the observations c_i(a), at most 1,000. A residue of a sequence
        is one observation; positions without any, and places outside of the sequence, say nothing.
        """
        length = len(counts)
        padded = np.zeros((length + WIDTH - 1, N_AMINO_ACIDS))
        padded[WIDTH // 2 : WIDTH // 2 + length] = np.rint(counts * COUNT_UNITS)
        windows = np.lib.stride_tricks.sliding_window_view(padded.reshape(-1), WIDTH * N_AMINO_ACIDS)[::N_AMINO_ACIDS]
        columns = np.empty((length, N_AMINO_ACIDS))
        priors = self.priors * (UNITS / FILE_UNITS)
        for first in range(0, length, _BLOCK):
            costs = priors + np.rint(windows[first : first + _BLOCK] @ self._costs / COUNT_UNITS)
            places = np.minimum(costs - costs.min(axis=1, keepdims=True), _N_WEIGHTS - 1).astype(np.int64)
            columns[first : first + _BLOCK] = _weights()[places] @ self._central
        columns /= columns.sum(axis=1, keepdims=True)
        return columns


@lru_cache(maxsize=1)
def _weights() -> Floats:
    """exp(-x) of each difference of logarithms x, whole numbers in units of 2^-20."""
    return np.rint(exp(np.arange(_N_WEIGHTS) / -UNITS) * WEIGHT_UNITS)


@lru_cache(maxsize=16)
def predicted_columns(counts: bytes) -> Floats:
    """The columns that the library of the program predicts; they are computed once where a query is prepared again.

    ``counts`` are the bytes of the array that :meth:`Contexts.predicted` takes.
    """
    columns = contexts().predicted(np.frombuffer(counts).reshape(-1, N_AMINO_ACIDS))
    columns.flags.writeable = False
    return columns


@lru_cache(maxsize=1)
def contexts() -> Contexts:
    """The library of the program."""
    with np.load(Path(__file__).with_name("contexts.npz")) as file:
        return Contexts(file["priors"], file["columns"])
