"""Contexts: typical windows of columns, by which the column at a residue is predicted from its neighbours.

Each of K contexts k has a prior probability P_k and 13 columns p_kj(a). For position i of a sequence x (Biegert and
Söding 2009, doi 10.1073/pnas.0810767106)::

    weight_k  ∝  P_k · Π_j p_kj(x_(i+j))^(w_j),   j = -6 … 6,   w_j = 1.6 · 0.85^|j|
    t_i(a)    =  Σ_k weight_k · p_k0(a)

The logarithms are whole numbers in units of 1/100, the weights in units of 2^-20 of the largest, and the columns in
units of 2^-16. So all sums are exact, and every machine computes the same bytes.
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
from swsearch.sequences.alphabet import CODE_MASK
from swsearch.typing import Codes, Floats

WIDTH: Final = 13
UNITS: Final = 100.0
"""Of a logarithm."""
FILE_UNITS: Final = 20.0
"""Of a logarithm in the file."""
SHARE_UNITS: Final = 65536.0
WEIGHT_UNITS: Final = 1048576.0
CENTRAL_WEIGHT: Final = 1.6
DECAY: Final = 0.85
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
    def _costs(self) -> NDArray[np.int16]:
        """-w_j ln p_kj(a) of each place, letter and context; 0 for a letter that is no amino acid."""
        costs = np.zeros((WIDTH, N_AMINO_ACIDS + 1, len(self.priors)), dtype=np.int16)
        for place in range(WIDTH):
            weight = CENTRAL_WEIGHT * UNITS / FILE_UNITS
            for _ in range(abs(place - WIDTH // 2)):
                weight *= DECAY
            costs[place, :N_AMINO_ACIDS] = np.rint(weight * self.columns[:, place].T)
        return costs

    @cached_property
    def _central(self) -> NDArray[np.int64]:
        """p_k0(a) in units of 2^-16, shape (20, K)."""
        shares = exp(self.columns[:, WIDTH // 2].T / -FILE_UNITS)
        return np.rint(shares * SHARE_UNITS).astype(np.int64)

    def predicted(self, codes: Codes) -> Floats:
        """The predicted columns of a sequence, float64 of shape (length, 20), whose rows sum to 1.

        ``codes`` are uint8 residue codes, with or without flags; places outside of the sequence and letters that are no
        amino acid say nothing.
        """
        outside = np.full(WIDTH // 2, N_AMINO_ACIDS, dtype=np.uint8)
        letters = np.concatenate([outside, np.minimum(codes & CODE_MASK, N_AMINO_ACIDS), outside])
        sums = np.empty((len(codes), N_AMINO_ACIDS), dtype=np.int64)
        for first in range(0, len(codes), _BLOCK):
            n = min(_BLOCK, len(codes) - first)
            costs = np.tile((self.priors * np.int16(UNITS / FILE_UNITS)).astype(np.int16), (n, 1))
            for place in range(WIDTH):
                costs += self._costs[place, letters[first + place : first + place + n]]
            weights = _weights()[costs - costs.min(axis=1, keepdims=True)]
            for letter in range(N_AMINO_ACIDS):
                sums[first : first + n, letter] = (weights * self._central[letter]).sum(axis=1, dtype=np.int64)
        columns: Floats = sums / sums.sum(axis=1, keepdims=True, dtype=np.int64)
        return columns


@lru_cache(maxsize=1)
def _weights() -> NDArray[np.int64]:
    """exp(-x) of each difference of logarithms x, in units of 2^-20."""
    return np.rint(exp(np.arange(1 << 15) / -UNITS) * WEIGHT_UNITS).astype(np.int64)


@lru_cache(maxsize=16)
def predicted_columns(codes: bytes) -> Floats:
    """The columns that the library of the program predicts; a query needs them for its scores and for Forward."""
    columns = contexts().predicted(np.frombuffer(codes, dtype=np.uint8))
    columns.flags.writeable = False
    return columns


@lru_cache(maxsize=1)
def contexts() -> Contexts:
    """The library of the program."""
    with np.load(Path(__file__).with_name("contexts.npz")) as file:
        return Contexts(file["priors"], file["columns"])
