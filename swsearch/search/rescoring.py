"""Forward scores of the candidates of a sensitive search, and their E-values.

A sensitive search scores all subjects with the scores of the query (:mod:`swsearch.query.estimation`), as any other
search does. Each subject whose score has an E-value E_S of at most
:data:`swsearch.search.threshold.RESCORED_EVALUE` is then judged by its local Forward score F too, the logarithm of the
sum over all alignments (:mod:`swsearch.query.columns`)::

    N   = A / L
    X   = F - ln n - μ
    E_F = N · exp(-λ min(X, X - X' + c - max(X' - d, 0)))
    M   = (E_F^k · E_S)^(1 / (k + 1))
    E   = M / s · (1 + (s - 1) · min(M / N, 1)^0.7)

A is the search space in residues, L = :data:`USUAL_LENGTH`, and n the length of the subject. X' is the X of the same
subject with the reversed model of the query (Karplus, Barrett and Hughey 1998, doi 10.1093/bioinformatics/14.10.846):
repeats, low complexity and a common composition raise X' as they raise X, a relative does not. The larger X', the more
the difference varies among unrelated subjects, so what is above d counts twice. μ is estimated for each query from its
scores with reversed proteins. Few unrelated subjects have extreme values of both E_F and E_S, so there are s times
fewer false hits than M says, unless M is about as large as N. E is the E-value of a candidate until it is adjusted for
the composition of its alignment (:mod:`swsearch.search.ranking`). :class:`Balance` has k, s, and how much of this
adjustment applies; they depend on what the query is.
``docs/design/sensitivity.md`` defines the score in bits, and has what was measured.

The E-value depends on the query, the subject and the search space alone, so it is the same in every slice, engine and
number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from swsearch.database.partition import Partition
from swsearch.deterministic import LN2, exp, log
from swsearch.engine.protocol import BackgroundEngine
from swsearch.hits.limits import RankedCandidates
from swsearch.query.columns import column_model, implied_model
from swsearch.query.profile import PositionSpecificQuery, ProfileModel
from swsearch.search.planned_search import PlannedSearch
from swsearch.typing import Floats, SubjectIndex

DECAY: Final = 0.9
"""λ, in 1/nat."""
ALLOWANCE: Final = 2.0
"""c, in nats: how much of a subject's score its score with the reversed query may account for."""
USUAL_REVERSED: Final = 2.5
"""d, in nats: the X' up to which unrelated subjects are alike."""
_SHARE_EXPONENT: Final = 0.7
"""Of M / N."""
USUAL_LENGTH: Final = 350.0
"""L, about the mean length of natural proteins."""
PART_RESIDUES: Final = 1 << 21
"""Residues of subjects whose odds are in memory together, which take 40 bytes each."""
_LOWEST: Final = -745.0
"""In place of the logarithm of an E-value of 0."""
_MEDIAN: Final = 0.36651292058166435
"""Median of the standard Gumbel distribution, -ln ln 2."""


class Balance(NamedTuple):
    """How the two scores of a subject count together.

    Attributes
    ----------
    forward : float
        k, the weight of ln E_F beside ln E_S.
    surplus : float
        s.
    composition : float
        Share, 0 to 1, of the logarithm of the factor by which the composition of its alignment would raise E_S.
    """

    forward: float
    surplus: float
    composition: float


OF_PROFILE: Final = Balance(2.0, 1.0, 1.0)
"""For a profile that was estimated from several sequences, some of which may be no relatives."""
OF_MODEL: Final = Balance(2.0, 3.0, 1.0)
"""For the model of a file."""
OF_ONE: Final = Balance(4.0, 13.0, 0.5)
"""For a single sequence, whose two scores of an unrelated subject have less in common."""


def balance_of(query: PositionSpecificQuery) -> Balance:
    """The balance for a query."""
    if not query.has_relatives:
        return OF_ONE
    return OF_PROFILE if query.model is None else OF_MODEL


_Scores = tuple[Floats, Callable[[NDArray[np.intp]], Floats]]
"""F of subjects in nats, and a function that returns F' of some of them."""


class Rescoring:
    """Computes the Forward scores and E-values of one search."""

    def __init__(self, search: PlannedSearch, engine: BackgroundEngine | None) -> None:
        self._database = search.database
        self._engine = engine
        self._matrix = search.scheme.matrix
        self._search_space = search.significance.search_space
        self._limits = search.limits
        self._threads = search.threads
        self._model = column_model()
        starts, lengths = self._model.decoy_places
        self._decoys = Partition(self._model.decoys, starts, lengths, np.arange(len(starts), dtype=np.uint32))

    def rescored(self, query: PositionSpecificQuery, candidates: RankedCandidates) -> RankedCandidates:
        """The candidates whose E-values E are within the limit, with these and their Forward scores."""
        assert candidates.evalue is not None
        model = implied_model(query, self._matrix)
        balance = balance_of(query)
        location = None
        of_scores = log(candidates.evalue)
        found, forward_bits = np.empty((2, len(candidates)))
        for rows, part in self._parts(candidates.subject_index):
            if location is None:
                (of_decoys, _), scores = self._forward(model, [self._decoys, part])
                location = self._location(of_decoys)
            else:
                (scores,) = self._forward(model, [part])
            forward, reversed_forward = scores
            places = log(part.lengths.astype(np.float64))
            forward_bits[rows] = (forward - places) / LN2
            usual = places + location
            excess = forward - usual
            evalues = self._evalues(of_scores[rows], excess, balance)
            near = np.flatnonzero(self._limits.passes(candidates.score[rows], None, evalues, None))
            turned = reversed_forward(near) - usual[near]
            of_order = excess[near] - turned + ALLOWANCE - np.maximum(turned - USUAL_REVERSED, 0.0)
            limits = self._evalues(of_scores[rows][near], of_order, balance)
            evalues[near] = np.maximum(evalues[near], limits)
            found[rows] = evalues
        passed = self._limits.passes(candidates.score, None, found, None)
        return replace(candidates, evalue=found, forward_bits=forward_bits).rows(np.flatnonzero(passed))

    def _evalues(self, of_scores: Floats, excess: Floats, balance: Balance) -> Floats:
        """E of subjects from ln E_S and the excess of their Forward scores, in nats."""
        n_usual = self._search_space / USUAL_LENGTH
        of_forward = log(n_usual) - DECAY * excess
        k, surplus = balance.forward, balance.surplus
        mean = exp((k * of_forward + np.maximum(of_scores, _LOWEST)) / (k + 1.0))
        share = exp(_SHARE_EXPONENT * np.minimum(log(mean / n_usual), 0.0))
        found: Floats = mean / surplus * (1.0 + (surplus - 1.0) * share)
        return found

    def _location(self, of_decoys: Floats) -> float:
        """μ, from the scores of the query with reversed proteins."""
        excess = np.sort(of_decoys - log(self._decoys.lengths.astype(np.float64)))
        return float(excess[len(excess) // 2]) - _MEDIAN / DECAY

    def _parts(self, subjects: SubjectIndex) -> Iterator[tuple[NDArray[np.intp], Partition]]:
        """The indices of some of the subjects, and these, in parts of about :data:`PART_RESIDUES` residues.

        The network takes any code for a letter; the residues of reported subjects are checked when they are aligned.
        """
        for rows, residues, starts, lengths in self._database.stored_ranges(subjects, checked=False):
            ends = np.cumsum(lengths, dtype=np.int64)
            bounds = np.flatnonzero(np.diff((ends - lengths) // PART_RESIDUES)) + 1
            for some in np.split(np.arange(len(rows)), bounds):
                yield rows[some], Partition(residues, starts[some], lengths[some], subjects[rows[some]])

    def _forward(self, model: ProfileModel, parts: Sequence[Partition]) -> Iterator[_Scores]:
        """The scores of the subjects of each part."""
        forward = None if self._engine is None else self._engine.forward(model, parts)
        if forward is None:
            yield from (self._forward_on_cpu(model, part) for part in parts)
            return
        ends = np.cumsum([len(part) for part in parts])[:-1]
        for part, of_part in zip(parts, np.split(forward, ends), strict=True):
            yield of_part, partial(self._reversed_forward, model, part)

    def _reversed_forward(self, model: ProfileModel, part: Partition, rows: NDArray[np.intp]) -> Floats:
        """F' of some subjects by the engine, which predicts their columns again: they are few."""
        assert self._engine is not None
        scores = self._engine.forward(model.reversed, [part[rows]])
        return self._forward_on_cpu(model.reversed, part[rows])[0] if scores is None else scores

    def _forward_on_cpu(self, model: ProfileModel, part: Partition) -> _Scores:
        odds = self._model.decoy_odds
        if part is not self._decoys:
            odds = self._model.odds(part.residues, part.starts, part.lengths, self._threads)
        return odds.forward(model, self._threads), lambda rows: odds.rows(rows).forward(model.reversed, self._threads)
