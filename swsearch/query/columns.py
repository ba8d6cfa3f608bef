"""Columns of subjects, and Forward scores, the sums over all local alignments of a query's model with them.

The columns of a query are those of its model (:mod:`swsearch.query.profile`), or else they are in its
position-specific scores (:func:`implied_model`). Those of subjects are predicted by a small neural network from the
neighbours of each residue, which takes a microsecond for a residue (``benchmarks/train_columns.py`` trains it); a
residue has the share 1 - a of its own column, and the predicted column a = :data:`SUBJECT_ADMIXTURE`.
:meth:`SubjectOdds.forward` computes the logarithm of the sum over all local alignments of their odds. The odds of
position i of the query and position j of the subject are Σ_a q_i(a) s_j(a) / p(a), where q and s are the columns and p
is the composition of natural proteins. Gaps have the probabilities of the model.

The network has integer weights, and every sum of floating-point numbers has a fixed order, so all machines compute the
same bytes. ``docs/design/sensitivity.md`` has the formulas.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from swsearch import _native
from swsearch.deterministic import LN2, exp, log, sum_in_order
from swsearch.query.profile import PositionSpecificQuery, ProfileModel
from swsearch.scoring.matrix import SubstitutionMatrix
from swsearch.scoring.ungapped import background, matrix_lambda
from swsearch.sequences.alphabet import N_AMINO_ACIDS, PROTEIN
from swsearch.typing import Codes, Floats

SUBJECT_ADMIXTURE: Final = 0.9
"""Share a of the predicted column in the column of a subject; the rest is its residue."""
BLOCK_ROWS: Final = 16
"""Rows of the query that have one total."""
N_POWERS: Final = 1024
"""Number of powers of two from 1 to 2 in the table that the last layer uses."""


def forward_scores(totals: NDArray[np.float32], exponents: NDArray[np.int32]) -> Floats:
    """The logarithms of sums of totals, each times two to its exponent; from shape (n, n_blocks) to (n,)."""
    largest = exponents.max(axis=1, initial=0)
    scaled = totals.astype(np.float64)
    rows = np.flatnonzero(exponents.any(axis=1))  # few subjects have exponents
    scaled[rows] = np.ldexp(scaled[rows], exponents[rows] - largest[rows, None])
    scores: Floats = log(np.maximum(sum_in_order(scaled, axis=1), np.finfo(np.float64).tiny)) + largest * LN2
    return scores


@dataclass(frozen=True, eq=False)
class SubjectOdds:
    """The odds s_j(a) / p(a) of the columns of subjects.

    Attributes
    ----------
    odds : int16 array, shape (n_residues, 20)
        In units of 1/256.
    starts, lengths : uint64 and uint32 arrays, shape (n,)
        Subject i has ``lengths[i]`` rows from ``starts[i]`` on.
    """

    odds: NDArray[np.int16]
    starts: NDArray[np.uint64]
    lengths: NDArray[np.uint32]

    def rows(self, index: NDArray[np.intp]) -> SubjectOdds:
        """Some of the subjects."""
        return SubjectOdds(self.odds, self.starts[index], self.lengths[index])

    def forward(self, query: ProfileModel, n_threads: int = 1, instruction_set: str = "auto") -> Floats:
        """Local Forward scores of a query with the subjects in nats, float64 of shape (n,).

        ``n_threads`` and ``instruction_set`` do not affect the result.
        """
        shape = len(self.starts), -(-len(query) // BLOCK_ROWS)
        totals, exponents = np.empty(shape, dtype=np.float32), np.empty(shape, dtype=np.int32)
        _native.forward_totals(
            query.odds_factors, query.gap_factors, self.odds, self.starts, self.lengths, totals, exponents, n_threads,
            instruction_set,
        )  # fmt: skip
        return forward_scores(totals, exponents)


@dataclass(frozen=True, eq=False)
class ColumnModel:
    """A network that predicts columns.

    Attributes
    ----------
    first : int16 array, shape (width * 21, n_first)
        For each place of the window and each letter (20 amino acids, others) a row that the first layer adds.
    first_bias : int16 array, shape (n_first,)
    second, second_bias : int16 array, shape (n_second, n_first), and int32 array, shape (n_second,)
    third, third_bias : int16 array, shape (20, n_second), and int32 array, shape (20,)
        The sums of the last layer are logarithms to base 2 times 2**18.
    decoys, decoy_ends : uint8 array and int32 array
        Codes of reversed proteins, one after the other, and where each ends.
    training : dict
        How the network was trained.
    """

    first: NDArray[np.int16]
    first_bias: NDArray[np.int16]
    second: NDArray[np.int16]
    second_bias: NDArray[np.int32]
    third: NDArray[np.int16]
    third_bias: NDArray[np.int32]
    decoys: Codes
    decoy_ends: NDArray[np.int32]
    training: dict[str, Any]

    @property
    def width(self) -> int:
        """Number of residues of a window."""
        return len(self.first) // (N_AMINO_ACIDS + 1)

    def odds(
        self,
        residues: Codes,
        starts: NDArray[np.uint64],
        lengths: NDArray[np.uint32],
        n_threads: int = 1,
        instruction_set: str = "auto",
    ) -> SubjectOdds:
        """The odds of the columns of subjects.

        Parameters
        ----------
        residues : uint8 array
            Codes of the subjects; subject i has ``lengths[i]`` of them from ``starts[i]`` on.
        starts, lengths : uint64 and uint32 arrays, shape (n,)
        n_threads, instruction_set
            They do not affect the result.
        """
        ends = np.cumsum(lengths, dtype=np.uint64)
        found = np.empty((int(ends[-1]) if len(ends) else 0, N_AMINO_ACIDS), dtype=np.int16)
        _native.context_odds(
            self.first, self.first_bias, self.second, self.second_bias, self.third, self.third_bias, powers_of_two(),
            inverse_background(), SUBJECT_ADMIXTURE, residues, starts, lengths, found, n_threads, instruction_set,
        )  # fmt: skip
        return SubjectOdds(found, ends - lengths, lengths)

    @cached_property
    def decoy_places(self) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
        """Where each reversed protein starts, and its length."""
        lengths = np.diff(self.decoy_ends, prepend=0).astype(np.uint32)
        return (self.decoy_ends - lengths).astype(np.uint64), lengths

    @cached_property
    def decoy_odds(self) -> SubjectOdds:
        """The odds of the reversed proteins."""
        return self.odds(self.decoys, *self.decoy_places)


def implied_model(query: PositionSpecificQuery, matrix: SubstitutionMatrix) -> ProfileModel:
    """The model of a query, or if it has none, the one that its position-specific scores s stand for.

    The columns of the latter are p(a) exp(λ s(a)), divided by their sum, where λ is the ungapped scale of the matrix,
    which has one.
    """
    if query.model is not None:
        return query.model
    lam = matrix_lambda(matrix)
    assert lam is not None
    odds = background(PROTEIN) * exp(lam * query.scores[:, :N_AMINO_ACIDS].astype(np.float64))
    return ProfileModel.of_columns(odds / sum_in_order(odds, axis=1)[:, None])


@lru_cache(maxsize=1)
def inverse_background() -> NDArray[np.float32]:
    """1 / p(a) of the composition of natural proteins, shape (20,)."""
    return (1.0 / background(PROTEIN)).astype(np.float32)


@lru_cache(maxsize=1)
def powers_of_two() -> NDArray[np.float32]:
    """2^(k / :data:`N_POWERS`) for each k below it."""
    return exp(np.arange(N_POWERS) * (LN2 / N_POWERS)).astype(np.float32)


@lru_cache(maxsize=1)
def column_model() -> ColumnModel:
    """The model of the program, from the file that ``benchmarks/train_columns.py`` wrote."""
    with np.load(Path(__file__).with_name("columns.npz")) as file:
        arrays = {name: np.ascontiguousarray(file[name]) for name in file.files}
    training = json.loads(arrays.pop("training").tobytes())
    arrays["first"] = arrays["first"].reshape(-1, arrays["first"].shape[-1])
    return ColumnModel(training=training, **arrays)
