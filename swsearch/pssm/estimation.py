"""Position-specific scores estimated from a multiple alignment, by the method of PSI-BLAST.

:func:`estimate_scores` takes rows of :mod:`swsearch.pssm.rows` and returns one row of integer scores for each column.
:func:`position_specific_query` makes a :class:`PositionSpecificQuery` of an alignment from a file;
:mod:`swsearch.pssm.read` is its caller, and :mod:`swsearch.search.rounds` estimates from hits.

*Frequencies* f and the number n of *observations* of each column are those of :mod:`swsearch.pssm.weights`.
*Pseudocounts* account for amino acids that further sequences would have (Altschul and others 1997)::

    Q(i) / p(i) = (n f(i) / p(i) + m Σ_j f(j) exp(λ s(j, i))) / (n + m)

where p is the composition of natural proteins, and s and λ are the search's substitution matrix and its ungapped λ. A
conserved column has a smaller number m of pseudocounts (Altschul and others 2009, doi 10.1093/nar/gkn981): with the
relative entropy ρ of (n f + 5.5 p) / (n + 5.5) and p, in nats, ::

    m = 500 c / (1 - c),   c = 0.0457 / ρ^0.8

A column whose c is not below 1 tells nothing: n = 0 and m = 30.

*Scores* are φ ln(Q / p) / λ, rounded, in the units of the matrix (half bits for BLOSUM62). The factor φ gives the
scores of all columns together the λ of the matrix, as in PSI-BLAST, so that the statistics of the matrix and its gap
costs apply. If no column has an observation, there is nothing to scale, and the scores are those of the matrix.

Columns without an amino acid have the scores of X. The *consensus* of an alignment from a file is the amino acid with
the largest frequency; among equal frequencies, it is the first in ``ARNDCQEGHILKMFPSTWYV``. Its *positions* are the
columns in which at least half of the sequences have a residue (all columns of A2M and A3M).
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch.deterministic import exp, log, sum_in_order
from swsearch.errors import InputError
from swsearch.hits.result import N_AMINO_ACIDS
from swsearch.pssm.alignment_files import MultipleAlignment
from swsearch.pssm.rows import distinct_rows, rows_of_alignment
from swsearch.pssm.scale import scaled_scores
from swsearch.pssm.weights import ColumnFrequencies, column_frequencies
from swsearch.query.position_specific import PositionSpecificQuery, with_other_letters
from swsearch.scoring.background import background
from swsearch.scoring.matrix import SubstitutionMatrix
from swsearch.sequences.alphabet import PAD_CODE, PROTEIN
from swsearch.statistics.ungapped import matrix_lambda
from swsearch.typing import Codes, Floats
from swsearch.words import first_word

MIN_FILLED: Final = 0.5
"""Smallest proportion of sequences with a residue in a column that is a position."""
SMALL_PSEUDOCOUNT: Final = 5.5
"""Weight of p in the distribution whose relative entropy determines the pseudocounts."""
_ENTROPY_FACTOR: Final = 0.0457
_ENTROPY_EXPONENT: Final = 0.8
_PSEUDOCOUNT_FACTOR: Final = 500.0
_UNINFORMATIVE: Final = 30.0
_SMALLEST: Final = 1e-4
"""Smallest relative entropy, and smallest 1 - c."""


def position_specific_query(
    alignment: MultipleAlignment, matrix: SubstitutionMatrix, header: str
) -> PositionSpecificQuery:
    """The query that is estimated from an alignment.

    Raises
    ------
    InputError
        No column is a position.
    ScoringError
        The matrix has no ungapped λ, so its scores do not imply frequencies.
    """
    filled = np.count_nonzero(alignment.codes != PAD_CODE, axis=0)
    enough = filled > 0 if alignment.all_columns else filled >= max(1.0, MIN_FILLED * len(alignment.codes))
    codes = alignment.codes[:, enough]
    if codes.shape[1] == 0:
        raise InputError(f"{first_word(header)}: no column is filled by half of the aligned sequences")
    rows = rows_of_alignment(codes)
    has_amino_acid = (rows < N_AMINO_ACIDS).any(axis=0)
    columns = column_frequencies(distinct_rows(rows))
    consensus = np.where(has_amino_acid, columns.frequencies.argmax(axis=1), PROTEIN.code("X")).astype(np.uint8)
    scores = scores_of(columns, consensus, matrix)
    return PositionSpecificQuery(header, consensus, PROTEIN, with_other_letters(scores, consensus, matrix))


def estimate_scores(
    rows: NDArray[np.uint8], codes: Codes, matrix: SubstitutionMatrix, n_threads: int = 1
) -> NDArray[np.int64]:
    """The scores that rows of a query-anchored alignment imply.

    Parameters
    ----------
    rows : uint8 array, shape (n_rows, length)
        The first row is the query.
    codes : uint8 array, shape (length,)
        Residue codes of the query. Positions that are not amino acids keep the scores of the matrix.
    matrix : SubstitutionMatrix
    n_threads : int
        It does not affect the result.

    Returns
    -------
    int64 array, shape (length, 20)

    Raises
    ------
    ScoringError
        The matrix has no ungapped λ.
    """
    return scores_of(column_frequencies(distinct_rows(rows), n_threads), codes, matrix)


def scores_of(columns: ColumnFrequencies, codes: Codes, matrix: SubstitutionMatrix) -> NDArray[np.int64]:
    """The scores of columns; those whose code is not an amino acid have the scores of the matrix.

    Raises
    ------
    ScoringError
        The matrix has no ungapped λ.
    """
    lam = matrix_lambda(matrix)
    known = codes < N_AMINO_ACIDS
    if lam is None or not columns.observations[known].any():
        return scaled_scores(np.zeros((len(codes), N_AMINO_ACIDS)), np.zeros(len(codes), dtype=bool), codes, matrix)
    return scaled_scores(_log_odds(columns.frequencies, columns.observations, matrix, lam), known, codes, matrix)


def _log_odds(frequencies: Floats, observations: Floats, matrix: SubstitutionMatrix, lam: float) -> Floats:
    """ln(Q / p), shape (n_columns, 20)."""
    p = background(PROTEIN)
    odds = exp(lam * matrix.scores[:N_AMINO_ACIDS, :N_AMINO_ACIDS].astype(np.float64))
    expected: Floats = frequencies[:, :1] * odds[0]
    for letter in range(1, N_AMINO_ACIDS):  # in order, and without an array of 400 products per column
        expected = expected + frequencies[:, letter : letter + 1] * odds[letter]
    pseudocounts, n = _pseudocounts(frequencies, observations)
    ratios = (n[:, None] * frequencies / p + pseudocounts[:, None] * expected) / (n + pseudocounts)[:, None]
    return log(ratios)


def _pseudocounts(frequencies: Floats, observations: Floats) -> tuple[Floats, Floats]:
    """The numbers m of pseudocounts and n of observations of each column."""
    p = background(PROTEIN)
    n = observations[:, None]
    smoothed = (n * frequencies + SMALL_PSEUDOCOUNT * p) / (n + SMALL_PSEUDOCOUNT)
    entropy = np.maximum(sum_in_order(smoothed * log(smoothed / p), axis=1), _SMALLEST)
    share = _ENTROPY_FACTOR / exp(_ENTROPY_EXPONENT * log(entropy))
    tells = share < 1.0 - _SMALLEST
    pseudocounts = np.where(tells, _PSEUDOCOUNT_FACTOR * share / (1.0 - np.where(tells, share, 0.0)), _UNINFORMATIVE)
    return pseudocounts, np.where(tells, observations, 0.0)
