"""Position-specific scores estimated from a multiple alignment, by the method of PSI-BLAST.

:func:`estimated_query` makes a :class:`PositionSpecificQuery` of a query and rows of
:mod:`swsearch.query.multiple_alignment`, which are those of the hits of a round (:mod:`swsearch.search.rounds`), or
none in the first round of a sensitive search. :func:`position_specific_query` makes one of an alignment from a file;
:mod:`swsearch.query.profile_files` is its caller. The method is that of Altschul and others 1997 (doi
10.1093/nar/25.17.3389) and 2009 (doi 10.1093/nar/gkn981).

*Rows and block of a column.* Hits are local alignments, so each column has its own rows: those whose aligned part
includes it. Its *block* consists of the columns that all these rows have. Many short rows leave a block of few columns,
in which weights are arbitrary; so a block has at least :data:`MIN_BLOCK` columns around the common ones (Oda, Lim and
Tomii 2017, doi 10.1186/s12859-017-1686-9).

*Weights* prevent many similar rows from dominating few others (Henikoff and Henikoff 1994). In a column of the block
with k different amino acids, one that n rows have contributes 1 / (k n) to each of these rows. The weight of a row is
the mean of its contributions over the columns of the block in which it has an amino acid; a row without any has the
mean weight. The weights of a column sum to 1.

*Frequencies* f are the sums of the weights of the rows with each amino acid. The weight of rows with a gap, or with a
letter that is not an amino acid, is spread by the composition of natural proteins.

*Observations.* Similar rows are few observations. Let d be the mean number of different amino acids in the more diverse
half of the block's columns. The number of independent observations is the n for which n letters drawn from the
composition p of natural proteins are expected to have d different ones::

    Σ_a (1 - (1 - p(a))^n) = d

at most the number of rows of the column. The first observation is the query's own; the frequencies count for the n - 1
others.

*Pseudocounts* account for amino acids that further sequences would have (Altschul and others 1997)::

    Q(i) / p(i) = (n f(i) / p(i) + m Σ_j f(j) exp(λ s(j, i))) / (n + m)

where p is the composition of natural proteins, and s and λ are the search's substitution matrix and its ungapped λ. A
conserved column has a smaller number m of pseudocounts (Altschul and others 2009): with the relative entropy ρ of
(n f + 5.5 p) / (n + 5.5) and p, in nats, ::

    m = 500 c / (1 - c),   c = 0.0457 / ρ^0.8

A column whose c is not below 1 tells nothing: n = 0 and m = 30.

*Contexts.* In a sensitive search, the expected column e(i) = p(i) Σ_j f(j) exp(λ s(j, i)) of the pseudocounts is
replaced by one that depends on the neighbouring positions too: t(i)^w e(i)^(1-w), divided by its sum, where t is the
column that contexts predict from n + 1 observations f (:mod:`swsearch.query.contexts`) and w is :data:`CONTEXT_WEIGHT`
or, for a single sequence, :data:`CONTEXT_WEIGHT_OF_ONE`. For the latter, n = 0, so this column is Q.

*Scores* are φ ln(Q / p) / λ, rounded, in the units of the matrix (half bits for BLOSUM62). The factor φ gives the
scores of all columns together the λ of the matrix, as in PSI-BLAST, so that the statistics of the matrix and its gap
costs apply. If no column has an observation, there is nothing to scale, and the scores are those of the matrix.

Columns without an amino acid have the scores of X. The *consensus* of an alignment from a file is the amino acid with
the largest frequency; among equal frequencies, it is the first in ``ARNDCQEGHILKMFPSTWYV``. Its *positions* are the
columns in which at least half of the sequences have a residue (all columns of A2M and A3M).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch import _native
from swsearch.deterministic import exp, log, sum_in_order
from swsearch.errors import InputError
from swsearch.query.contexts import Contexts, predicted_columns
from swsearch.query.multiple_alignment import MultipleAlignment, distinct_rows, rows_of_alignment
from swsearch.query.profile import PositionSpecificQuery, with_other_letters
from swsearch.query.scale import scaled_scores
from swsearch.scoring.matrix import SubstitutionMatrix
from swsearch.scoring.ungapped import background, matrix_lambda
from swsearch.sequences.alphabet import CODE_MASK, N_AMINO_ACIDS, PAD_CODE, PROTEIN
from swsearch.sequences.record import SequenceRecord
from swsearch.typing import Codes, Floats
from swsearch.words import first_word

MIN_BLOCK: Final = 25
"""Smallest number of columns of a block."""
MAX_OBSERVATIONS: Final = 400
"""Largest number of independent observations of a column."""
CONTEXT_WEIGHT: Final = 0.6
CONTEXT_WEIGHT_OF_ONE: Final = 0.7
"""w: how much contexts decide about pseudocounts, and not the matrix."""


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

    @property
    def has_relatives(self) -> bool:
        """Whether any column has observations beside the query's."""
        return bool(self.observations.any())


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
    """Number of random letters with this expected number of different ones, interpolated, at most 400."""
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
    alignment: MultipleAlignment, matrix: SubstitutionMatrix, header: str, *, contexts: Contexts | None = None
) -> PositionSpecificQuery:
    """The query that is estimated from an alignment; ``contexts``, if any, decide about pseudocounts too.

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
    scores = scores_of(columns, consensus, matrix, contexts=contexts)
    table = with_other_letters(scores, consensus, matrix)
    return PositionSpecificQuery(header, consensus, PROTEIN, table, has_relatives=columns.has_relatives)


def estimated_query(
    query: SequenceRecord,
    rows: NDArray[np.uint8],
    matrix: SubstitutionMatrix,
    n_threads: int = 1,
    *,
    contexts: Contexts | None = None,
) -> PositionSpecificQuery:
    """The query with the scores that the rows of its hits imply; see :func:`scores_of`.

    ``rows``, uint8 of shape (n_hits, length), may be none.
    """
    codes = query.codes & np.uint8(CODE_MASK)
    columns = column_frequencies(distinct_rows(np.concatenate((codes[None, :], rows))), n_threads)
    table = with_other_letters(scores_of(columns, codes, matrix, n_threads, contexts=contexts), codes, matrix)
    return PositionSpecificQuery(query.header, query.codes, PROTEIN, table, has_relatives=columns.has_relatives)


def scores_of(
    columns: ColumnFrequencies,
    codes: Codes,
    matrix: SubstitutionMatrix,
    n_threads: int = 1,
    *,
    contexts: Contexts | None = None,
) -> NDArray[np.int64]:
    """The scores of the columns of a query-anchored alignment.

    Parameters
    ----------
    columns : ColumnFrequencies
        Those of the query and its rows.
    codes : uint8 array, shape (length,)
        Residue codes of the query. Positions that are not amino acids keep the scores of the matrix.
    matrix : SubstitutionMatrix
    n_threads : int
        It does not affect the result.
    contexts : Contexts, optional
        Those that decide about pseudocounts too.

    Returns
    -------
    int64 array, shape (length, 20)

    Raises
    ------
    ScoringError
        The matrix has no ungapped λ.
    """
    lam = matrix_lambda(matrix)
    known = codes < N_AMINO_ACIDS
    log_odds = np.zeros((len(codes), N_AMINO_ACIDS))
    if lam is None or (contexts is None and not columns.observations[known].any()):
        return scaled_scores(log_odds, np.zeros(len(codes), dtype=bool), codes, matrix)
    frequencies, observations = columns.frequencies, columns.observations[known]
    expected = _expected(frequencies[known], matrix, lam)
    if contexts is not None:
        counts = frequencies * (columns.observations + 1.0)[:, None]
        weight = CONTEXT_WEIGHT if columns.has_relatives else CONTEXT_WEIGHT_OF_ONE
        expected = _with_context(expected, predicted_columns(contexts, counts.tobytes(), n_threads)[known], weight)
    log_odds[known] = _log_odds(frequencies[known], observations, expected)
    return scaled_scores(log_odds, known, codes, matrix)


def _expected(frequencies: Floats, matrix: SubstitutionMatrix, lam: float) -> Floats:
    """The odds e / p of the amino acids that replace those of a column, shape (n_columns, 20)."""
    odds = exp(lam * matrix.scores[:N_AMINO_ACIDS, :N_AMINO_ACIDS].astype(np.float64))
    expected: Floats = frequencies[:, :1] * odds[0]
    for letter in range(1, N_AMINO_ACIDS):  # in order, and without an array of 400 products per column
        expected = expected + frequencies[:, letter : letter + 1] * odds[letter]
    return expected


def _with_context(expected: Floats, predicted: Floats, weight: float) -> Floats:
    """The expected odds where ``predicted`` are the columns of contexts, and ``weight`` is w."""
    p = background(PROTEIN)
    mixed = exp(weight * log(predicted / p) + (1.0 - weight) * log(expected))
    odds: Floats = mixed / sum_in_order(mixed * p, axis=1)[:, None]
    return odds


def _log_odds(frequencies: Floats, observations: Floats, expected: Floats) -> Floats:
    """ln(Q / p), shape (n_columns, 20)."""
    p = background(PROTEIN)
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
