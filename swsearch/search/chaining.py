"""The chains of a search: which alignments of a subject are pieces of one gene, and their common E-value.

:class:`Chaining` takes the alignments of one subject, finds the chains among them (:mod:`swsearch.hits.chains`) and
computes the E-values of chains and of single alignments by sum statistics (:mod:`swsearch.scoring.sum_statistics`). The
normalized score of an alignment whose E-value was adjusted for composition is lowered by the logarithm of the change.

A piece counts for a chain if its normalized score exceeds the cost of a link, :attr:`Chaining.cost`, whatever its own
E-value is; so a search with chains looks for lower scores than one without.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from swsearch.deterministic import LN2, log
from swsearch.hits.chains import Piece, best_chains, windows
from swsearch.hits.hit import Alignment
from swsearch.scoring.karlin_altschul import Statistics
from swsearch.scoring.sum_statistics import GAP_DECAY, divisor, log_factorial, sum_evalue
from swsearch.search.alignments import SubjectAlignment
from swsearch.search.significance import Significance

if TYPE_CHECKING:
    from swsearch.typing import Floats

_MOST_SCORE: Final = 10_000


@dataclass(frozen=True, eq=False)
class Chaining:
    """The chains of one search, which has statistics, with introns of at most ``max_intron`` bases."""

    significance: Significance
    max_intron: int

    @cached_property
    def _log_window(self) -> float:
        on_query, on_subject = windows(self.max_intron)
        return float(log(on_query * on_subject))

    @property
    def cost(self) -> float:
        """The cost of a link in nats: a piece with a lower normalized score makes no chain more significant."""
        return self._log_window - float(log(GAP_DECAY))

    @cached_property
    def min_score(self) -> int:
        """The lowest score of a piece."""
        normalized = self._normalized(np.arange(_MOST_SCORE, dtype=np.int32))
        return max(1, int(np.searchsorted(normalized, self.cost, side="right")))

    def _normalized(self, scores: np.ndarray) -> Floats:
        """``λS - ln K`` of each score."""
        statistics = self.significance.statistics
        assert isinstance(statistics, Statistics)
        normalized: Floats = statistics.bits(scores) * LN2
        return normalized

    def evalues(
        self,
        subject: int,
        n_letters: int,
        found: Sequence[SubjectAlignment],
        alignments: Sequence[Alignment],
        adjusted: Sequence[float],
    ) -> list[float]:
        """The E-value of each alignment of a subject, which is that of its chain.

        ``n_letters`` is the length of the query. ``alignments`` are those that were ``found``, in coordinates of the
        input sequences; ``adjusted`` has the adjusted E-value of each.
        """
        significance = self.significance
        scores = np.array([one.score for one in found], dtype=np.int32)
        lengths = significance.lengths(np.array([subject], dtype=np.uint32))
        unadjusted = significance.evalues(lengths, scores, n_letters)
        assert unadjusted is not None
        raised = np.array(adjusted) / np.where(unadjusted > 0, unadjusted, 1.0)
        penalties = np.where((unadjusted > 0) & (raised > 1.0), log(np.maximum(raised, 1.0)), 0.0)
        values = self._normalized(scores) - penalties
        length = float(lengths[0])
        area = significance.query_residues(n_letters) * length  # the search space of the pair
        ratio = significance.search_space / length * significance.n_comparisons
        evalues = [one / divisor(1) for one in adjusted]
        for forward in (True, False):
            rows = [
                row
                for row, one in enumerate(found)
                if (one.comparison[1] > 0) is forward and one.score >= self.min_score
            ]
            pieces = [Piece.of(alignments[row], found[row].comparison[1], values[row]) for row in rows]
            for chain, value in best_chains(pieces, self.max_intron, self.cost):
                r = len(chain)
                normalized = value - float(log(area)) - (r - 1) * self._log_window - log_factorial(r)
                evalue = sum_evalue(r, normalized, ratio)
                if evalue <= min(evalues[rows[place]] for place in chain):
                    for place in chain:
                        evalues[rows[place]] = evalue
        return evalues
