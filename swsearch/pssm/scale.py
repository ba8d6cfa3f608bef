"""The scale of position-specific scores: their ungapped λ, compared with the λ of the search's matrix.

E-values of a position-specific query are computed with the statistics of the search's substitution matrix and gap cost.
As in PSI-BLAST, this is correct if its scores have the scale of the matrix, that is, the same λ. λ is the solution of
``mean over positions of Σ p(a) exp(λ s(a)) = 1`` (Karlin and Altschul 1990; Altschul and others 1997), where p is the
composition of natural proteins.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch.hits.pssm import N_AMINO_ACIDS
from swsearch.query.position_specific import PositionSpecificQuery
from swsearch.scoring.background import background
from swsearch.scoring.matrix import SubstitutionMatrix
from swsearch.sequences.alphabet import PROTEIN
from swsearch.statistics.ungapped import find_lambda, matrix_lambda, score_distribution
from swsearch.words import quoted

TOLERANCE: Final = 0.2
"""Largest relative difference from the matrix's λ without a warning about E-values."""


def query_lambda(scores: NDArray[np.int8]) -> float | None:
    """λ of scores whose rows are equally likely, for letters of natural composition.

    Parameters
    ----------
    scores : int8 array, shape (n_rows, 20)

    Returns
    -------
    float or None
        None if no score is positive, or if the mean score is not negative.
    """
    shares = np.full(len(scores), 1.0 / len(scores))
    return find_lambda(*score_distribution(scores.astype(np.int64), shares, background(PROTEIN)))


def scale_note(query: PositionSpecificQuery, matrix: SubstitutionMatrix) -> str | None:
    """A message for the user if the scores of the query do not have the scale of the matrix; None if they do."""
    of_matrix, of_query = matrix_lambda(matrix), query_lambda(query.scores[:, :N_AMINO_ACIDS])
    if of_matrix is None or (of_query is not None and abs(of_query / of_matrix - 1) <= TOLERANCE):
        return None
    found = "are positive on the whole" if of_query is None else f"have a scale (λ) of {of_query:.3f}"
    advice = "E-values may be far off; choose the --matrix that the scores were made with"
    return f"the scores of {quoted(query.identifier)} {found}, {matrix.name} has {of_matrix:.3f}: {advice}"
