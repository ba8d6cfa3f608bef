"""The scale of position-specific scores: their ungapped λ, compared with the λ of the search's matrix.

E-values of a position-specific query are computed with the statistics of the search's substitution matrix and gap cost.
As in PSI-BLAST, this is correct if its scores have the scale of the matrix, that is, the same λ. λ is the solution of
``mean over positions of Σ p(a) exp(λ s(a)) = 1`` (Karlin and Altschul 1990; Altschul and others 1997), where p is the
composition of natural proteins.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch import _native
from swsearch.deterministic import exp
from swsearch.errors import ScoringError
from swsearch.query.profile import PositionSpecificQuery
from swsearch.scoring.matrix import MAX_SCORE, MIN_SCORE, SubstitutionMatrix
from swsearch.scoring.ungapped import background, find_lambda, matrix_lambda, score_distribution
from swsearch.sequences.alphabet import N_AMINO_ACIDS, PROTEIN
from swsearch.typing import Codes, Floats
from swsearch.words import quoted

TOLERANCE: Final = 0.2
"""Largest relative difference from the matrix's λ without a warning about E-values."""
_SMALLEST_FACTOR: Final = 0.5
_LARGEST_FACTOR: Final = 2.0
_FACTOR_STEPS: Final = 13
"""Bisections of the interval of the factor: its error is then below 0.0002."""


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


def scaled_scores(
    log_odds: Floats, present: NDArray[np.bool_], codes: Codes, matrix: SubstitutionMatrix
) -> NDArray[np.int64]:
    """Integer scores of log-odds, with the λ of the matrix over all positions and letters of natural composition.

    The scores are φ x / λ, rounded to an integer of -127 … 127; the factor φ between 0.5 and 2 gives the scores of all
    positions together the λ of the matrix, as in PSI-BLAST.

    Parameters
    ----------
    log_odds : float64 array, shape (length, 20)
        The logarithms x, in nats, none of them NaN; those of absent positions are not used.
    present : bool array, shape (length,)
        The positions that have log-odds; the others have the scores of the matrix.
    codes : uint8 array, shape (length,)
        Residue codes of the positions.
    matrix : SubstitutionMatrix

    Raises
    ------
    ScoringError
        The matrix has no ungapped λ.
    """
    lam = matrix_lambda(matrix)
    if lam is None:
        raise ScoringError(f"matrix {matrix.name} has no scale (λ) to estimate a profile in; choose another --matrix")
    scores = matrix.scores[codes, :N_AMINO_ACIDS].astype(np.int64)
    given = np.ascontiguousarray(log_odds / lam), present.view(np.uint8)
    odds, composition = _odds_of_scores(lam), background(PROTEIN)
    _native.scaled_scores(*given, _SMALLEST_FACTOR, _LARGEST_FACTOR, _FACTOR_STEPS, odds, composition, scores)
    return scores


@lru_cache(maxsize=16)
def _odds_of_scores(lam: float) -> Floats:
    """exp(λ s) of all scores."""
    return exp(lam * np.arange(MIN_SCORE, MAX_SCORE + 1, dtype=np.float64))


def scale_note(query: PositionSpecificQuery, matrix: SubstitutionMatrix) -> str | None:
    """A message for the user if the scores of the query do not have the scale of the matrix; None if they do."""
    of_matrix, of_query = matrix_lambda(matrix), query_lambda(query.scores[:, :N_AMINO_ACIDS])
    if of_matrix is None or (of_query is not None and abs(of_query / of_matrix - 1) <= TOLERANCE):
        return None
    found = "are positive on the whole" if of_query is None else f"have a scale (λ) of {of_query:.3f}"
    advice = "E-values may be far off; choose the --matrix that the scores were made with"
    return f"the scores of {quoted(query.identifier)} {found}, {matrix.name} has {of_matrix:.3f}: {advice}"
