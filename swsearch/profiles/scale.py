"""The scale of position-specific scores: the ungapped λ that makes them worth what a matrix's scores are.

E-values of a position-specific query are those of the substitution matrix and gap cost of the search. That holds, as
in PSI-BLAST, where its scores have the matrix's scale: the same λ in ``mean over positions of Σ p(a) exp(λ s(a)) = 1``
(Karlin and Altschul 1990; Altschul and others 1997), with p the composition of natural proteins.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch.query.position_specific import N_AMINO_ACIDS, PositionSpecificQuery
from swsearch.scoring.matrix import SubstitutionMatrix
from swsearch.statistics.deterministic import exp
from swsearch.typing import Floats

_PER_TEN_THOUSAND = np.array(
    [7805, 5129, 4487, 5364, 1925, 4264, 6295, 7377, 2199, 5142, 9019, 5744, 2243, 3856, 5203, 7120, 5841, 1330, 3216,
     6441], dtype=np.float64,
)  # fmt: skip
BACKGROUND: Final[Floats] = _PER_TEN_THOUSAND / 100_000
"""Amino acids of natural proteins, in the order ARNDCQEGHILKMFPSTWYV (Robinson and Robinson 1991); as in BLAST."""

TOLERANCE: Final = 0.2
"""Relative difference from the matrix's λ from which E-values are called into question."""
_LARGEST_LAMBDA: Final = 16.0
_BISECTIONS: Final = 60


def ungapped_lambda(scores: NDArray[np.int8], weights: Floats | None = None) -> float | None:
    """λ of score rows against natural proteins; None where no row is positive, or the mean score is not negative.

    Parameters
    ----------
    scores : int8 array, shape (n_rows, 20)
    weights : float64 array, shape (n_rows,), optional
        Share of each row, 1 in all; equal shares where it is not given.
    """
    share = np.full(len(scores), 1.0 / len(scores)) if weights is None else weights
    chances: Floats = share[:, None] * BACKGROUND[None, :]
    values = scores.astype(np.float64)
    if values.max() <= 0 or float((chances * values).sum()) >= 0:
        return None
    low, high = 0.0, _LARGEST_LAMBDA
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if float((chances * exp(middle * values)).sum()) > 1:
            high = middle
        else:
            low = middle
    return (low + high) / 2


def matrix_lambda(matrix: SubstitutionMatrix) -> float | None:
    """λ of a matrix between natural proteins; None where it has none."""
    return ungapped_lambda(matrix.scores[:N_AMINO_ACIDS, :N_AMINO_ACIDS], BACKGROUND)


def scale_note(query: PositionSpecificQuery, matrix: SubstitutionMatrix) -> str | None:
    """What a person should hear where the query's scores do not have the matrix's scale."""
    of_matrix, of_query = matrix_lambda(matrix), ungapped_lambda(query.scores[:, :N_AMINO_ACIDS])
    if of_matrix is None or (of_query is not None and abs(of_query / of_matrix - 1) <= TOLERANCE):
        return None
    found = "are positive on the whole" if of_query is None else f"have a scale (λ) of {of_query:.3f}"
    advice = "E-values may be far off; choose the --matrix that the scores were made with"
    return f"the scores of {query.identifier!r} {found}, {matrix.name} has {of_matrix:.3f}: {advice}"
