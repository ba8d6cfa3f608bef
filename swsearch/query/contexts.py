"""Contexts: typical windows of columns, by which the column at a position is predicted from its neighbours.

Each of K contexts k has a prior probability P_k and 13 columns p_kj(a). For position i of a sequence or an alignment
that has c_i(a) observations of amino acid a there (Biegert and Söding 2009, doi 10.1073/pnas.0810767106)::

    weight_k  ∝  P_k · Π_j Π_a p_kj(a)^(w_j · c_(i+j)(a)),   j = -6 … 6,   w_j = 1.6 · 0.85^|j|
    t_i(a)    =  Σ_k weight_k · p_k0(a)

The observations are whole numbers in units of 1/64, the logarithms in units of 1/100, the weights in units of 2^-20 of
the largest, and the columns in units of 2^-16. Sums are whole numbers below 2^53, so they are exact in any order, and
every machine computes the same bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch import _native
from swsearch.deterministic import exp, sum_in_order
from swsearch.sequences.alphabet import N_AMINO_ACIDS
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
_MULTIPLE: Final = 32
"""The number of contexts is rounded up to a multiple of it, with contexts that never have a weight."""
_NEVER: Final = 1 << 29


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
    def _arrays(self) -> tuple[NDArray[np.int16], NDArray[np.int32], Floats, Floats]:
        """What the native function takes: -w_j ln p_kj(a) of each place and letter, shape (13 * 20, n), -ln P_k, shape
        (n,), the weights by the difference of the logarithms, and p_k0(a), shape (n, 20).
        """
        n = -(-len(self.priors) // _MULTIPLE) * _MULTIPLE
        costs = np.zeros((WIDTH, N_AMINO_ACIDS, n), dtype=np.int16)
        for place in range(WIDTH):
            weight = CENTRAL_WEIGHT * UNITS / FILE_UNITS
            for _ in range(abs(place - WIDTH // 2)):
                weight *= DECAY
            costs[place, :, : len(self.priors)] = np.rint(weight * self.columns[:, place].T)
        priors = np.full(n, _NEVER, dtype=np.int32)
        priors[: len(self.priors)] = self.priors * (UNITS / FILE_UNITS)
        weights = np.rint(exp(np.arange(_N_WEIGHTS) / -UNITS) * WEIGHT_UNITS)
        central = np.zeros((n, N_AMINO_ACIDS))
        central[: len(self.priors)] = np.rint(exp(self.columns[:, WIDTH // 2] / -FILE_UNITS) * SHARE_UNITS)
        return costs.reshape(WIDTH * N_AMINO_ACIDS, n), priors, weights, central

    def predicted(self, counts: Floats, n_threads: int = 1, instruction_set: str = "auto") -> Floats:
        """The predicted columns, float64 of shape (length, 20), whose rows sum to 1.

        ``counts``, float64 of shape (length, 20), has the observations c_i(a), at most 1,000 at a position. A residue
        of a sequence is one observation; positions without any, and places outside of the sequence, say nothing.
        ``n_threads`` and ``instruction_set`` do not affect the result.
        """
        observed = np.rint(counts * COUNT_UNITS).astype(np.int32)
        sums = np.empty(observed.shape)
        _native.context_sums(*self._arrays, observed, sums, n_threads, instruction_set)
        columns: Floats = sums / sum_in_order(sums, axis=1)[:, None]
        return columns


@lru_cache(maxsize=16)
def predicted_columns(counts: bytes, n_threads: int = 1) -> Floats:
    """The columns that the library of the program predicts; they are computed once where a query is prepared again.

    ``counts`` are the bytes of the array that :meth:`Contexts.predicted` takes.
    """
    columns = contexts().predicted(np.frombuffer(counts).reshape(-1, N_AMINO_ACIDS), n_threads)
    columns.flags.writeable = False
    return columns


@lru_cache(maxsize=1)
def contexts() -> Contexts:
    """The library of the program."""
    with np.load(Path(__file__).with_name("contexts.npz")) as file:
        return Contexts(file["priors"], file["columns"])
