"""Position-specific scores estimated from a multiple alignment, by the method of PSI-BLAST (Altschul and others 1997).

Inputs are a multiple alignment of protein sequences (:class:`swsearch.pssm.alignment_files.MultipleAlignment`), a
substitution matrix and a header. The output is a :class:`PositionSpecificQuery` with the consensus sequence and one row
of integer scores for each position (:func:`position_specific_query`). :mod:`swsearch.pssm.read` is the caller.

*Positions* are the columns in which at least half of the sequences have a residue (all columns of A2M and A3M).
*Weights* prevent many similar sequences from dominating few others: in each position at which a sequence has a residue,
its position weight is 1/(k n), where k is the number of different amino acids in the column and n the number of
sequences with the same amino acid; the weight of a sequence is the mean over these positions (Henikoff and Henikoff
1994), so that a fragment has full weight where it is present. *Frequencies* f are the weighted proportions of the amino
acids in a column. *Pseudocounts* account for amino acids that further sequences would have::

    Q(i) / p(i) = (α f(i) / p(i) + β Σ_j f(j) exp(λ s(j, i))) / (α + β)

where p is the composition of natural proteins, s and λ are the search's substitution matrix and its ungapped λ, α is
the mean number of different amino acids in a position minus 1, and β = 10. *Scores* are ln(Q / p) / λ, rounded; they
have the units of the matrix (half bits for BLOSUM62), so that its statistics apply. An alignment of one sequence
(α = 0) has the scores of the matrix.

Letters that are not amino acids (B, Z, X, ``*``, U, O, J) count as residues of a column, but not in its frequencies. A
position without amino acids is X. The *consensus* is the amino acid with the largest frequency; among equal
frequencies, it is the first in ``ARNDCQEGHILKMFPSTWYV``.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch.deterministic import exp, sum_in_order, total
from swsearch.errors import InputError, ScoringError
from swsearch.pssm.alignment_files import MultipleAlignment
from swsearch.query.position_specific import N_AMINO_ACIDS, PositionSpecificQuery, with_other_letters
from swsearch.scoring.background import background
from swsearch.scoring.matrix import MAX_SCORE, MIN_SCORE, SubstitutionMatrix
from swsearch.sequences.alphabet import PAD_CODE, PROTEIN
from swsearch.statistics.ungapped import matrix_lambda
from swsearch.typing import Codes, Floats
from swsearch.words import first_word

PSEUDOCOUNT: Final = 10.0
"""β of the formula: the weight of the frequencies that the matrix predicts, relative to the observed ones."""
MIN_FILLED: Final = 0.5
"""Smallest proportion of sequences with a residue in a column that is a position."""


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
    lam = matrix_lambda(matrix)
    if lam is None:
        raise ScoringError(f"matrix {matrix.name} has no scale (λ) to estimate a profile in; choose another --matrix")
    filled = np.count_nonzero(alignment.codes != PAD_CODE, axis=0)
    enough = filled > 0 if alignment.all_columns else filled >= max(1.0, MIN_FILLED * len(alignment.codes))
    codes = alignment.codes[:, enough]
    if codes.shape[1] == 0:
        raise InputError(f"{first_word(header)}: no column is filled by half of the aligned sequences")
    frequencies = column_frequencies(codes)
    known = (frequencies > 0).any(axis=1)
    consensus = np.where(known, frequencies.argmax(axis=1), PROTEIN.code("X")).astype(np.uint8)
    scores = matrix.scores[consensus, :N_AMINO_ACIDS].astype(np.int64)
    scores[known] = _scores(frequencies[known], _mean_kinds(codes) - 1.0, matrix, lam)
    return PositionSpecificQuery(header, consensus, PROTEIN, with_other_letters(scores, consensus, matrix))


def column_frequencies(codes: Codes) -> Floats:
    """Weighted proportions of the amino acids in each column; float64, shape (n_columns, 20), zeros if it has none.

    Parameters
    ----------
    codes : uint8 array, shape (n_sequences, n_columns)
        Residue codes; codes other than amino acids do not count.
    """
    counts = _counts(codes, np.ones(len(codes)))
    kinds = np.count_nonzero(counts, axis=1)
    weights = np.zeros(len(codes))
    for number, row in enumerate(codes):
        columns = np.flatnonzero(row < N_AMINO_ACIDS)
        if columns.size:
            weights[number] = total(1.0 / (kinds[columns] * counts[columns, row[columns]])) / columns.size
    weighted = _counts(codes, weights)
    whole = sum_in_order(weighted, axis=1)[:, None]
    return weighted / np.where(whole > 0, whole, 1.0)


def _counts(codes: Codes, weights: Floats) -> Floats:
    """Sum of the weights of the sequences that have each amino acid in each column, shape (n_columns, 20)."""
    counts = np.zeros((codes.shape[1], N_AMINO_ACIDS))
    for row, weight in zip(codes, weights.tolist(), strict=True):
        columns = np.flatnonzero(row < N_AMINO_ACIDS)
        counts[columns, row[columns]] += weight
    return counts


def _mean_kinds(codes: Codes) -> float:
    """Mean number of different amino acids per column, over the columns with at least one."""
    kinds = np.count_nonzero(_counts(codes, np.ones(len(codes))), axis=1)
    return int(kinds.sum(dtype=np.int64)) / max(1, int(np.count_nonzero(kinds)))


def _scores(frequencies: Floats, alpha: float, matrix: SubstitutionMatrix, lam: float) -> NDArray[np.int64]:
    """Rounded log-odds scores in the units of the matrix, shape (n_columns, 20)."""
    odds = exp(lam * matrix.scores[:N_AMINO_ACIDS, :N_AMINO_ACIDS].astype(np.float64))
    expected = sum_in_order(frequencies[:, :, None] * odds[None, :, :], axis=1)
    ratios = (alpha * frequencies / background(PROTEIN) + PSEUDOCOUNT * expected) / (alpha + PSEUDOCOUNT)
    # The score is the largest s with exp(λ (s - 1/2)) <= ratio, that is, ln(ratio) / λ rounded.
    steps = exp(lam * (np.arange(MIN_SCORE + 1, MAX_SCORE + 1, dtype=np.float64) - 0.5))
    scores: NDArray[np.int64] = MIN_SCORE + np.searchsorted(steps, ratios, side="right").astype(np.int64)
    return scores
