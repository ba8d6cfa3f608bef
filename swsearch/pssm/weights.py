"""Weighted frequencies of the amino acids in each column of a multiple alignment, and how many observations they are.

Input are rows of :mod:`swsearch.pssm.rows`; :mod:`swsearch.pssm.estimation` makes scores of the frequencies. The method
is that of PSI-BLAST (Altschul and others 1997, doi 10.1093/nar/25.17.3389; 2009, doi 10.1093/nar/gkn981).

*Rows and block of a column.* Hits are local alignments, so each column has its own rows: those whose aligned part
includes it. Its *block* consists of the columns that all these rows have. Many short rows leave a block of few columns,
in which weights are arbitrary; so a block has at least :data:`MIN_BLOCK` columns around the common ones (Oda, Lim and
Tomii 2017, doi 10.1186/s12859-017-1686-9).

*Weights* prevent many similar rows from dominating few others (Henikoff and Henikoff 1994). In a column of the block
with k different amino acids, one that n rows have contributes 1 / (k n) to each of these rows. The weight of a row is
the mean of its contributions over the columns of the block in which it has an amino acid; a row without any has the
mean weight. The weights of a column sum to 1.

*Frequencies* are the sums of the weights of the rows with each amino acid. The weight of rows with a gap, or with a
letter that is not an amino acid, is spread by the composition of natural proteins.

*Observations.* Similar rows are few observations. Let d be the mean number of different amino acids in the more diverse
half of the block's columns. The number of independent observations is the n for which n letters drawn from the
composition p of natural proteins are expected to have d different ones::

    Σ_a (1 - (1 - p(a))^n) = d

at most the number of rows of the column. The first observation is the query's own; the frequencies count for the n - 1
others.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch import _native
from swsearch.deterministic import sum_in_order
from swsearch.hits.result import N_AMINO_ACIDS
from swsearch.scoring.background import background
from swsearch.sequences.alphabet import PROTEIN
from swsearch.typing import Floats

MIN_BLOCK: Final = 25
"""Smallest number of columns of a block."""
MAX_OBSERVATIONS: Final = 400
"""Largest number of independent observations of a column."""


@dataclass(frozen=True, eq=False)
class ColumnFrequencies:
    """What the rows of an alignment say about its columns.

    Attributes
    ----------
    frequencies : float64 array, shape (n_columns, 20)
        They sum to 1 in each column; zeros in a column that no row has.
    observations : float64 array, shape (n_columns,)
        Number of independent observations beside the query's, at least 0.
    """

    frequencies: Floats
    observations: Floats


def column_frequencies(rows: NDArray[np.uint8], n_threads: int = 1) -> ColumnFrequencies:
    """The frequencies of the columns.

    Parameters
    ----------
    rows : uint8 array, shape (n_rows, n_columns)
        At least one row and one column.
    n_threads : int
        It does not affect the result.
    """
    n_columns = rows.shape[1]
    frequencies, diversity = np.empty((n_columns, N_AMINO_ACIDS)), np.empty(n_columns)
    n_present = np.empty(n_columns, dtype=np.int64)
    _native.column_frequencies(
        np.ascontiguousarray(rows), MIN_BLOCK, background(PROTEIN), n_threads, frequencies, diversity, n_present
    )
    independent = np.minimum(_draws_with(diversity), n_present)
    return ColumnFrequencies(frequencies, np.maximum(independent - 1.0, 0.0))


def _draws_with(diversity: Floats) -> Floats:
    """Number of random letters that are expected to have so many different ones, interpolated, at most 400."""
    expected = _expected_kinds()
    upper = np.clip(np.searchsorted(expected, diversity), 1, MAX_OBSERVATIONS)
    low, high = np.take(expected, upper - 1), np.take(expected, upper)
    draws: Floats = (upper - 1).astype(np.float64) + np.clip((diversity - low) / (high - low), 0.0, 1.0)
    return draws


@cache
def _expected_kinds() -> Floats:
    """Expected number of different letters among n, for n from 0 to 400."""
    missing: Floats = np.multiply.accumulate(np.tile(1.0 - background(PROTEIN), (MAX_OBSERVATIONS, 1)), axis=0)
    kinds = np.zeros(MAX_OBSERVATIONS + 1)
    kinds[1:] = sum_in_order(1.0 - missing, axis=1)
    return kinds
