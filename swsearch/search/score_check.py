"""A check of a run's E-values: all scores of a search are compared with the distribution that its statistics predict.

The scores of different queries and subjects are made comparable by the *reduced score* ``x = -ln(E within this one
subject)``. If the statistics are right, reduced scores of unrelated sequences follow the standard extreme-value
distribution, ``P(x >= t) = 1 - exp(-exp(-t))``. :class:`ScoreCheck` counts the reduced scores of every query with every
subject and fits an extreme-value distribution to the upper half of them. Scores above :data:`TOP` are not fitted,
because homologs of the query outnumber chance scores there. If the fit predicts more than twice, or less than half, as
many hits at the E-value cut as the statistics do, the E-values are wrong by that factor. The usual reasons are a query
of unusual composition, repeats, and a database with many homologs of the query.

An integer score represents an interval of reduced scores; it is counted at the middle of this interval.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch.deterministic import exp, log
from swsearch.errors import InputError
from swsearch.hits.limits import RankedCandidates
from swsearch.scoring.extreme_value import ExtremeValueFit, fit_extreme_value
from swsearch.scoring.karlin_altschul import Statistics
from swsearch.search.search_subjects import SearchSubjects
from swsearch.search.searcher import Searcher
from swsearch.search.significance import Significance
from swsearch.typing import Floats

LOWEST: Final = -5.0
HIGHEST: Final = 40.0
CELL: Final = 0.1
TOP: Final = float(log(1000.0))
"""Largest reduced score that is fitted; a thousandth of the chance scores exceed it."""

MIN_SCORES: Final = 1000
MIN_CELLS: Final = 10
"""Smallest number of scores, and of non-empty histogram cells, for a fit."""

TOLERANCE: Final = 2.0
"""A ratio of expected hits above this value, or below its reciprocal, causes a warning."""

_LARGEST_EVALUE: Final = 10.0
_LARGEST_SHARE: Final = 0.01


@dataclass(frozen=True, eq=False)
class CheckedScores:
    """The counted scores of a run and the distribution fitted to them.

    ``edges``, float64 of shape (n,), are the edges of the histogram cells of reduced scores, ascending; ``counts``, of
    shape (n + 1,), the numbers of scores below the first edge, between neighbouring edges, and at or above the last.
    Fit and statistics are compared at ``evalue``, the run's limit, but at most 10 and a hundredth of the number of
    subjects; ``cut`` is the reduced score of this E-value for a subject of average length.
    """

    edges: Floats
    counts: NDArray[np.int64]
    fit: ExtremeValueFit | None
    cut: float
    evalue: float

    @property
    def n_scores(self) -> int:
        """Number of scores that were counted."""
        return int(self.counts.sum(dtype=np.int64))

    @property
    def ratio(self) -> float | None:
        """Hits that the fit predicts at the cut, divided by hits that the statistics predict; None without a fit."""
        if self.fit is None:
            return None
        return float(exp(self.fit.log_k - self.fit.lam * self.cut + self.cut))

    @property
    def warning(self) -> str | None:
        """A warning, in one sentence, if the ratio exceeds :data:`TOLERANCE` in either direction, else None."""
        ratio = self.ratio
        if ratio is None or 1 / TOLERANCE <= ratio <= TOLERANCE:
            return None
        return (
            f"the scores of this run do not follow its statistics: at E = {self.evalue:.2g} the fit to them expects "
            f"{ratio * self.evalue:.2g} hits by chance; multiply its E-values by {ratio:.2g}"
        )


class ScoreCheck:
    """Counts the scores of a searcher's queries, if :attr:`Searcher.observe` is set to :meth:`add`.

    Its memory does not depend on the number of scores. Raises :class:`InputError` if the scoring scheme has no
    statistics.
    """

    def __init__(self, searcher: Searcher) -> None:
        significance = searcher.significance
        statistics = significance.statistics
        if not isinstance(statistics, Statistics):
            raise InputError(f"--plot compares scores with their statistics, and there are none: {statistics.reason}")
        self._significance = significance
        self._subjects = searcher.search_subjects
        self._evalue = min(searcher.options.evalue, _LARGEST_EVALUE, _LARGEST_SHARE * searcher.database.n_subjects)
        self._scale = significance.search_space / self._subjects.residues(searcher.database.n_residues)
        self._edges = histogram_edges()
        self._counts = np.zeros(len(self._edges) + 1, dtype=np.int64)

    def add(self, query_length: int, candidates: RankedCandidates) -> None:
        """Count the scores of one query with every subject."""
        self._counts += reduced_counts(self._edges, self._significance, self._subjects, query_length, candidates)

    def result(self) -> CheckedScores:
        """The scores counted so far, and the fit to them."""
        cut = float(log(self._subjects.database.n_subjects * self._scale / self._evalue))
        return CheckedScores(self._edges, self._counts.copy(), fitted(self._edges, self._counts), cut, self._evalue)


def histogram_edges() -> Floats:
    """The edges of the histogram cells of reduced scores, ascending; float64."""
    return np.linspace(LOWEST, HIGHEST, round((HIGHEST - LOWEST) / CELL) + 1)


def reduced_counts(
    edges: Floats,
    significance: Significance,
    subjects: SearchSubjects,
    query_length: int,
    candidates: RankedCandidates,
) -> NDArray[np.int64]:
    """The numbers of reduced scores of one query below, between and above ``edges``; int64, shape (len(edges) + 1,).

    ``candidates`` are subjects with their scores, whatever these are.
    """
    statistics = significance.statistics
    assert isinstance(statistics, Statistics)
    lengths = subjects.lengths(candidates.subject_index)
    n_residues = significance.query_residues(query_length)
    # For a search space of one residue, E times the subject's length is E within the subject.
    evalues = statistics.evalue(candidates.score, n_residues, lengths, 1, significance.n_comparisons) * lengths
    reduced = -log(evalues) + statistics.lam * statistics.score_step / 2
    return np.bincount(np.searchsorted(edges, reduced, side="right"), minlength=len(edges) + 1)


def fitted(edges: Floats, counts: NDArray[np.int64], min_scores: int = MIN_SCORES) -> ExtremeValueFit | None:
    """The distribution fitted to the scores from their median to :data:`TOP`; None if there are too few scores."""
    last = int(np.searchsorted(edges, TOP))
    below = np.cumsum(counts[: last + 1])
    first = min(int(np.searchsorted(below, below[-1] / 2)), last - 3)
    cells = np.concatenate(([below[first]], counts[first + 1 : last + 1], [counts[last + 1 :].sum(dtype=np.int64)]))
    if counts.sum(dtype=np.int64) < min_scores or np.count_nonzero(cells[:-1]) < MIN_CELLS:
        return None
    return fit_extreme_value(edges[first : last + 1], cells, top_unknown=True)
