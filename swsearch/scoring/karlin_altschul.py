"""Bit scores and E-values of raw scores: Karlin-Altschul statistics with Spouge's finite-size correction.

:class:`Statistics` has the parameters of one scoring scheme: λ (``lam``), K (``k``) and the finite-size parameters a,
b, α, β, σ and τ, from NCBI's table (:mod:`swsearch.scoring.published_parameters`) or from simulation. Inputs are raw
scores and the lengths of the query and the subjects; outputs are bit scores, E-values, and the lowest raw score that
can reach an E-value limit. The caller is :mod:`swsearch.search.significance`.

E-values are computed after the scores of all partitions are merged, with the number of residues of the complete
database, so they do not depend on the partitions. For a raw score S, a query of m and a subject of n residues, and a
search space of D residues::

    E = k * area(S, m, n) * exp(-lam * S) * (D / n) * strands
    bits = (lam * S - ln k) / ln 2

where E uses S rounded down to a multiple of ``score_step``, and bits use S itself, as in BLAST, and::

    area = P(m) * P(n) + C * Phi(m) * Phi(n)
    P(m) = mean of max(0, room),  Phi(m) = probability of room > 0,  where room is normal with
           mean m - (a * S + b)  and variance max(2 * alpha / lam, alpha * S + beta, 1/12)
    C    = max(2 * sigma / lam, sigma * S + tau, 1/12)

``room`` is the number of positions of a sequence at which an alignment of score S can still begin; the alignment has
a * S + b residues on average. The lower bounds of variance and C are necessary: without them, E of a subject of ten
residues is near 1e-298. The theory is that of Park, Sheetlin, Ma, Madden & Spouge 2012 (doi 10.1186/1756-0500-5-286).
The bound of 1/12, the variance of rounding to integers, is necessary for schemes whose mismatches cost so much that a
score determines the length: their alpha and sigma are 0.

For subjects of one length, E decreases as S increases; for subjects of different lengths, the order by E is not the
order by S. All arithmetic is that of :mod:`swsearch.deterministic`, so E has the same bytes on every machine, as a
scalar or in an array.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from swsearch import _native
from swsearch.arrays import distinct
from swsearch.deterministic import LN2
from swsearch.errors import InputError
from swsearch.typing import Floats

_MAX_POWER: Final = 40
"""E of a score of 2**40 is 0 for every scheme whose λ is above 1e-7."""
_MIN_VARIANCE: Final = 1 / 12
_TOO_SHORT: Final = "E-values need a query, subjects and a search space of at least 1 residue"
_SOME_LENGTHS: Final = 4
_GRID: Final = 16
"""Number of scores tested at a time. With 16 scores and 4 lengths a query takes 0.55 to 0.7 of the time of 64 and 8."""
_STEPS: Final = np.arange(_GRID, dtype=np.int64)[:, None]
_POWERS: Final = 2 ** (_STEPS * _MAX_POWER // (_GRID - 1))


@dataclass(frozen=True)
class Statistics:
    """Parameters of one scoring scheme, and the significance of its scores.

    Attributes
    ----------
    lam : float
        λ, the decay rate of the score distribution, in nats per unit of score.
    k : float
        Scale of the score distribution.
    a, b : float
        Mean aligned length of score S is ``a * S + b`` residues.
    alpha, beta : float
        Variance of that length is ``alpha * S + beta``.
    sigma, tau : float
        Covariance of the lengths in query and subject is ``sigma * S + tau``.
    score_step : int
        Scores are rounded down to a multiple of this number before their E-value is computed. It is 2 for
        match/mismatch pairs whose odd scores are so rare that NCBI's parameters are valid only for even ones, and for
        multiples of these pairs, as in BLAST; and 1 otherwise. Bit scores are computed from the raw score.
    source : str
        The source of the parameters, as a sentence for reports.
    """

    lam: float
    k: float
    a: float
    b: float
    alpha: float
    beta: float
    sigma: float
    tau: float
    score_step: int
    source: str

    @cached_property
    def _log_k(self) -> float:
        return float(Decimal(self.k).ln(Context(prec=28)))  # correctly rounded, unlike the C library's logarithm

    @cached_property
    def _model(self) -> tuple[float, ...]:
        """What :func:`swsearch._native.evalues` takes of these parameters, with the lower bounds of the variances."""
        least_variance = max(2.0 * self.alpha / self.lam, _MIN_VARIANCE)
        least_covariance = max(2.0 * self.sigma / self.lam, _MIN_VARIANCE)
        lengths = (self.a, self.b, self.alpha, self.beta, least_variance, self.sigma, self.tau, least_covariance)
        return self.lam, self.k, *lengths

    def bits(self, scores: ArrayLike) -> Floats:
        """Bit scores of raw scores, without rounding: with 2/-3, blastn prints 209 for 231 and 208 for 230.

        Parameters
        ----------
        scores : int array of any shape
            Raw scores, at least 0.

        Returns
        -------
        float64 array of the same shape
        """
        raw = np.asarray(np.asarray(scores, dtype=np.int64), dtype=np.float64)
        value: Floats = (self.lam * raw - self._log_k) / LN2
        return value

    def min_score_of_bits(self, bits: float) -> int:
        """The smallest raw score, at least 1, whose bit score is at least ``bits``."""
        score = max(1, int((bits * LN2 + self._log_k) / self.lam) - 1)
        while float(self.bits(score)) < bits:
            score += 1
        return score

    def evalue(
        self,
        scores: ArrayLike,
        query_length: int,
        subject_lengths: ArrayLike,
        search_space_residues: int,
        strands: int = 1,
    ) -> Floats:
        """Expected number of subjects that reach each score by chance.

        Parameters
        ----------
        scores : int array
            Raw scores, at least 0.
        query_length : int
            Number of residues of the query, at least 1.
        subject_lengths : int array, of a shape that broadcasts with ``scores``
            Number of residues of each score's subject, at least 1.
        search_space_residues : int
            Number of residues of the complete database, or the number that the user set instead; at least 1.
        strands : int
            Number of comparisons of the query with a subject, at least 1: 2 if both strands of DNA are searched, 6 if
            one side is translated in six frames, 36 if both are. E is multiplied by it.

        Returns
        -------
        float64 array
            Finite, at least 0; 0 if the value is below 5e-324.

        Raises
        ------
        InputError
            A score is negative, or a length, the search space or ``strands`` is below 1.
        """
        if query_length < 1 or search_space_residues < 1:
            raise InputError(_TOO_SHORT)
        if strands < 1:
            raise InputError(f"strands is {strands}; at least one strand or frame is searched")
        raw = np.asarray(scores, dtype=np.int64)
        lengths = np.asarray(subject_lengths, dtype=np.float64)
        if raw.shape != lengths.shape:
            raw, lengths = np.broadcast_arrays(raw, lengths)
        model = np.array([*self._model, query_length, float(search_space_residues) * strands], dtype=np.float64)
        values = np.empty(raw.shape)
        flat = np.ascontiguousarray(raw).ravel(), np.ascontiguousarray(lengths).ravel()
        if not _native.evalues(*flat, model, self.score_step, values.reshape(-1)):
            if raw.min() < 0:
                raise InputError(f"a raw score of {int(raw.min())} has no E-value; scores are at least 0")
            raise InputError(_TOO_SHORT)
        found: Floats = values[()]
        return found

    def min_scores(
        self,
        evalue: float,
        query_length: int,
        groups: Sequence[ArrayLike],
        search_space_residues: int,
        strands: int = 1,
    ) -> list[int]:
        """The smallest raw score with which a subject of each group can have an E-value of at most ``evalue``.

        A search may discard lower scores without losing a hit: the minimum is taken over all lengths of subjects, and
        for each length, E decreases as the score increases. Several groups take less time than one after another.

        Parameters
        ----------
        evalue : float
            Cut-off, at least 0; with infinity, all scores of at least 1 pass.
        query_length, search_space_residues, strands
            As for :meth:`evalue`.
        groups : sequence of int arrays
            Lengths of the subjects of each group; duplicates and order do not matter.

        Returns
        -------
        list of int
            Each at least 1.

        Raises
        ------
        InputError
            ``evalue`` is negative or not a number, or a group has no subjects; or as for :meth:`evalue`.
        """
        if not evalue >= 0:
            raise InputError(f"E-value cut-off {evalue} is out of range; choose 0 or more")
        lengths_of = [distinct(np.ravel(lengths)) for lengths in groups]
        if any(lengths.size == 0 for lengths in lengths_of):
            raise InputError("there are no subjects, so no score can be significant; index at least one sequence")

        def passes(scores: NDArray[np.int64], among: Sequence[NDArray[np.generic]]) -> NDArray[np.bool_]:
            """Whether the scores of each group, a column of ``scores``, pass at each of its lengths, side by side."""
            each = np.repeat(scores, [lengths.size for lengths in among], axis=1)
            found: NDArray[np.bool_] = (
                self.evalue(each, query_length, np.concatenate(among), search_space_residues, strands) <= evalue
            )
            return found

        # Some lengths give a score that passes; then all lengths are tested for lower scores that pass.
        some = [
            lengths[np.linspace(0, lengths.size - 1, min(lengths.size, _SOME_LENGTHS)).astype(np.intp)]
            for lengths in lengths_of
        ]
        passing = np.full(len(lengths_of), 2**_MAX_POWER, dtype=np.int64)
        ends = np.cumsum([lengths.size for lengths in lengths_of])
        while True:
            passing = _min_passing(passes, some, passing)
            reached = np.split(passes(passing[None, :] - 1, lengths_of)[0], ends[:-1])
            lower = [score > 1 and bool(found.any()) for score, found in zip(passing, reached, strict=True)]
            if not any(lower):
                return passing.tolist()
            some = [
                lengths[found] if is_lower else lengths[:1]
                for lengths, found, is_lower in zip(lengths_of, reached, lower, strict=True)
            ]
            passing -= np.array(lower)


def _min_passing(
    passes: Callable[[NDArray[np.int64], Sequence[NDArray[np.generic]]], NDArray[np.bool_]],
    among: Sequence[NDArray[np.generic]],
    known: NDArray[np.int64],
) -> NDArray[np.int64]:
    """For each group, the smallest score, at least 1, that passes at one of its lengths ``among``.

    All scores above it also pass, among them ``known``. ``passes`` takes scores, with one column per group, and the
    groups' lengths, and returns a bool array with one row per score and one column per length of each group.
    """
    failing, passing = np.zeros_like(known), known.copy()
    ends = np.cumsum([lengths.size for lengths in among[:-1]])
    groups = np.arange(len(known))
    while (passing - failing > 1).any():
        scores = _between(failing, passing)
        parts = np.split(passes(scores, among), ends, axis=1)
        found = np.stack([part.any(axis=1) for part in parts], axis=1)
        which = found.argmax(axis=0)  # the first score of each group that passes, or 0 if none does
        is_found = found[which, groups]
        failing = np.where(is_found, np.where(which > 0, scores[which - 1, groups], failing), scores[-1])
        passing = np.where(is_found, scores[which, groups], passing)
    return passing


def _between(failing: NDArray[np.int64], passing: NDArray[np.int64]) -> NDArray[np.int64]:
    """Scores to try between those that fail and those that pass, ascending; the latter if there is none between.

    Powers of 2 if nothing is known about many scores, otherwise all scores or some at equal distances; shape
    (:data:`_GRID`, number of groups).
    """
    highest = np.maximum(failing + 1, passing - 1)
    steps = (highest - failing - 1) * _STEPS // (_GRID - 1)
    return np.where((failing == 0) & (passing > _GRID), np.minimum(_POWERS, highest), failing + 1 + steps)
