"""Position-specific scores from a multiple alignment, in the manner of PSI-BLAST (Altschul and others 1997).

*Positions* are the columns that at least half of the sequences fill (all columns of A2M and A3M). *Weights*, so that
many like sequences do not outvote few others: a sequence gets 1/(k n) in each position that it fills, where k amino
acids occur in the column and n sequences share its own; its weight is the mean over these positions (Henikoff and
Henikoff 1994), so that a fragment counts fully where it is. *Frequencies* f are the weights' shares in a column.
*Pseudocounts* stand for the amino acids that more sequences would show::

    Q(i) / p(i) = (α f(i) / p(i) + β Σ_j f(j) exp(λ s(j, i))) / (α + β)

with p the composition of natural proteins, s and λ the search's substitution matrix and its ungapped λ, α the mean
number of different amino acids in a position less 1, and β = 10. *Scores* are ln(Q / p) / λ, rounded: in the matrix's
own units, so half bits for BLOSUM62, and with its statistics. An alignment of one sequence (α = 0) has the matrix's
scores.

Letters that are no amino acid (B, Z, X, ``*``, U, O, J) fill a column and count no further. A position that has no
other is X. The *consensus* is the amino acid with the largest frequency, among equals the first of
``ARNDCQEGHILKMFPSTWYV``.
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

PSEUDOCOUNT: Final = 10.0
"""β of the formula: the weight of what the matrix expects against what the alignment shows."""
MIN_FILLED: Final = 0.5
"""Share of the sequences that must fill a column that is a position."""


def position_specific_query(
    alignment: MultipleAlignment, matrix: SubstitutionMatrix, header: str
) -> PositionSpecificQuery:
    """The query that an alignment stands for.

    Raises
    ------
    InputError
        No column is a position.
    ScoringError
        The matrix has no ungapped λ, so it says nothing of frequencies.
    """
    lam = matrix_lambda(matrix)
    if lam is None:
        raise ScoringError(f"matrix {matrix.name} has no scale (λ) to estimate a profile in; choose another --matrix")
    filled = np.count_nonzero(alignment.codes != PAD_CODE, axis=0)
    enough = filled > 0 if alignment.all_columns else filled >= max(1.0, MIN_FILLED * len(alignment.codes))
    codes = alignment.codes[:, enough]
    if codes.shape[1] == 0:
        raise InputError(f"{header.split(None, 1)[0]}: no column is filled by half of the aligned sequences")
    frequencies = column_frequencies(codes)
    known = (frequencies > 0).any(axis=1)
    consensus = np.where(known, frequencies.argmax(axis=1), PROTEIN.code("X")).astype(np.uint8)
    scores = matrix.scores[consensus, :N_AMINO_ACIDS].astype(np.int64)
    scores[known] = _scores(frequencies[known], _mean_kinds(codes) - 1.0, matrix, lam)
    return PositionSpecificQuery(header, consensus, PROTEIN, with_other_letters(scores, consensus, matrix))


def column_frequencies(codes: Codes) -> Floats:
    """Weighted shares of the amino acids in each column, float64 of shape (n_columns, 20); zeros where it has none.

    Parameters
    ----------
    codes : uint8 array, shape (n_sequences, n_columns)
        Residue codes; what is no amino acid does not count.
    """
    counts = _counts(codes, np.ones(len(codes)))
    kinds = np.count_nonzero(counts, axis=1)
    weights = np.zeros(len(codes))
    for number, row in enumerate(codes):
        places = np.flatnonzero(row < N_AMINO_ACIDS)
        if places.size:
            weights[number] = total(1.0 / (kinds[places] * counts[places, row[places]])) / places.size
    weighted = _counts(codes, weights)
    whole = sum_in_order(weighted, axis=1)[:, None]
    return weighted / np.where(whole > 0, whole, 1.0)


def _counts(codes: Codes, weights: Floats) -> Floats:
    """Sum of the weights of the sequences that have each amino acid in each column, shape (n_columns, 20)."""
    counts = np.zeros((codes.shape[1], N_AMINO_ACIDS))
    for row, weight in zip(codes, weights.tolist(), strict=True):
        places = np.flatnonzero(row < N_AMINO_ACIDS)
        counts[places, row[places]] += weight
    return counts


def _mean_kinds(codes: Codes) -> float:
    """Different amino acids in a column, on average over the columns that have any."""
    kinds = np.count_nonzero(_counts(codes, np.ones(len(codes))), axis=1)
    return int(kinds.sum(dtype=np.int64)) / max(1, int(np.count_nonzero(kinds)))


def _scores(frequencies: Floats, alpha: float, matrix: SubstitutionMatrix, lam: float) -> NDArray[np.int64]:
    """Rounded log-odds in the matrix's units, shape (n_columns, 20)."""
    odds = exp(lam * matrix.scores[:N_AMINO_ACIDS, :N_AMINO_ACIDS].astype(np.float64))
    expected = sum_in_order(frequencies[:, :, None] * odds[None, :, :], axis=1)
    ratios = (alpha * frequencies / background(PROTEIN) + PSEUDOCOUNT * expected) / (alpha + PSEUDOCOUNT)
    # The score is where the ratio stands among exp(λ (s - 1/2)).
    steps = exp(lam * (np.arange(MIN_SCORE + 1, MAX_SCORE + 1, dtype=np.float64) - 0.5))
    scores: NDArray[np.int64] = MIN_SCORE + np.searchsorted(steps, ratios, side="right").astype(np.int64)
    return scores
