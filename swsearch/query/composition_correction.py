"""Correction of a query's scores for its local composition, so that E-values of biased regions are not too small.

A region of a query that is rich in some amino acids has high scores with every subject that is rich in the same amino
acids, whether it is homologous or not. With the composition around a position, such a match is more likely by chance
than the matrix assumes, because the matrix was derived for the average composition. Let n_b be the count of amino acid
b among the N residues within 20 residues of position i, p_b its background frequency, and λ the ungapped λ of the
matrix. Then::

    f_b     = (n_b + 40 p_b) / (N + 40)
    S'(i,b) = S(q_i, b) - round(strength · max(0, ln(f_b / p_b)) / λ)

ln(f_b / p_b) / λ is the part of the score of a match that is due to composition, in the units of the matrix. Correction
by a window was introduced by kClust, HHsuite and MMseqs2 (Hauser, Mayer and Söding 2013,
doi 10.1186/1471-2105-14-248), which shift all scores of a position by the same number, up or down. Here, the score of
each letter is lowered by a different number, and no score is raised. ``benchmarks/benchmark_composition.py`` measures
the effect, which ``docs/design/statistics.md`` describes.

The corrected scores form an ordinary query profile, which all engines and the traceback use. They belong to the value
``bias`` of the option ``composition``; with ``adjust``, E-values are adjusted for the composition of the aligned parts
instead (:mod:`swsearch.query.composition_adjustment`).
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from swsearch.deterministic import exp, log, sum_in_order
from swsearch.errors import InputError, ScoringError
from swsearch.query.profile import QueryProfile
from swsearch.scoring.matrix import MIN_SCORE, SubstitutionMatrix
from swsearch.scoring.scheme import GapPenalty, ScoringScheme
from swsearch.scoring.ungapped import background, matrix_lambda
from swsearch.sequences.alphabet import CODE_MASK, PROTEIN
from swsearch.typing import Codes, Floats, ScoreTable
from swsearch.words import option

STRENGTH: Final = 0.25
"""The strength for which the numbers of false hits at E <= 1 and 10 on SCOPe40 are closest to 1 and 10."""

WINDOW: Final = 20
"""Number of residues on each side of a position that define its local composition."""

PSEUDOCOUNTS: Final = 40.0
"""Number of residues of background composition that are added to those of the window."""


def corrected_scale(scheme: ScoringScheme) -> float:
    """λ of a scheme without gaps, with which the scores of its queries are corrected.

    Raises
    ------
    InputError
        The scheme is not for proteins.
    ScoringError
        Its matrix has no ungapped λ.
    """
    if scheme.alphabet is not PROTEIN:
        raise InputError(
            f"{option('composition', 'bias')} is for protein, not for {scheme.alphabet.name}; leave it out"
        )
    lam = matrix_lambda(scheme.matrix)
    if lam is None:
        raise ScoringError(
            f"{option('composition', 'bias')}: matrix {scheme.matrix.name} scores random residues 0 or more on "
            "average; choose another matrix"
        )
    return lam


def local_counts(codes: Codes, n_letters: int, window: int = WINDOW) -> NDArray[np.int64]:
    """Count of each of the first ``n_letters`` letters around each position.

    Parameters
    ----------
    codes : uint8 array, shape (length,)
    n_letters : int
        Number of letters, from code 0; others (X, B, …) are not counted.
    window : int
        Number of residues on each side.

    Returns
    -------
    int64 array, shape (length, n_letters)
    """
    letters = codes & CODE_MASK
    counted = np.flatnonzero(letters < n_letters)
    occurrences = np.zeros((len(codes), n_letters), dtype=np.int64)
    occurrences[counted, letters[counted]] = 1
    return _window_sums(occurrences, window)[0]


def corrected_profile(
    codes: Codes, matrix: SubstitutionMatrix, gap: GapPenalty, lam: float, strength: float = STRENGTH
) -> QueryProfile:
    """The profile of a sequence with scores corrected for local composition; uses about 2 kB of memory per residue.

    Parameters
    ----------
    codes : uint8 array, shape (query_length,)
        Residue codes; soft-mask flags do not affect scores.
    matrix : SubstitutionMatrix
    gap : GapPenalty
    lam : float
        λ of the matrix without gaps.
    strength : float
        0 for no correction.
    """
    usual = background(matrix.alphabet)
    counts = local_counts(codes, len(usual))
    n_counted = counts.sum(axis=1, keepdims=True, dtype=np.int64)
    local = (counts + PSEUDOCOUNTS * usual) / (n_counted + PSEUDOCOUNTS)
    scores = _lowered(matrix.scores[codes & CODE_MASK], local, usual, lam, strength)
    table, rows = np.unique(scores, axis=0, return_inverse=True)
    return QueryProfile(rows.reshape(-1).astype(np.int32), np.ascontiguousarray(table), gap)


def corrected_scores(
    scores: ScoreTable, matrix: SubstitutionMatrix, lam: float, strength: float = STRENGTH
) -> ScoreTable:
    """Position-specific scores corrected for the composition that they expect around each position.

    The counts n_b of the formula are sums of the proportions p_b exp(λ s(b)) that the scores of a position imply.

    Parameters
    ----------
    scores : int8 array, shape (length, 32)
    matrix : SubstitutionMatrix
    lam : float
        λ of the scores without gaps.
    strength : float
        0 for no correction.
    """
    usual = background(matrix.alphabet)
    expected = usual * exp(lam * scores[:, : len(usual)].astype(np.float64))
    expected /= sum_in_order(expected, axis=1)[:, None]
    sums, n_positions = _window_sums(expected, WINDOW)
    local = (sums + PSEUDOCOUNTS * usual) / (n_positions + PSEUDOCOUNTS)
    return _lowered(scores, local, usual, lam, strength)


def _window_sums(rows: NDArray[Any], window: int) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Sums of the rows within ``window`` positions of each, and their numbers; shapes those of ``rows`` and (n, 1)."""
    before = np.zeros((len(rows) + 1, rows.shape[1]), dtype=rows.dtype)
    np.cumsum(rows, axis=0, out=before[1:])
    positions = np.arange(len(rows))
    first, stop = np.maximum(positions - window, 0), np.minimum(positions + window + 1, len(rows))
    return before[stop] - before[first], (stop - first)[:, None]


def _lowered(scores: ScoreTable, local: Floats, usual: Floats, lam: float, strength: float) -> ScoreTable:
    """Scores without the part that is due to the local composition, shape (length, 32)."""
    excess = np.maximum(log(local / usual), 0.0)
    lowered = scores.astype(np.int64)
    of_letters = lowered[:, : len(usual)] - np.rint(strength * excess / lam).astype(np.int64)
    lowered[:, : len(usual)] = np.maximum(of_letters, MIN_SCORE)
    return lowered.astype(np.int8)
