"""A lower bound on the score of a subject among the best N, derived from the scores of some of the subjects.

Engines and ranking can leave out subjects with lower scores without losing a hit. The E-values of one query are not a
monotonic function of its scores, because they also depend on the length of the subject. The bound holds nevertheless:
if N subjects have E-values of at most E, no subject with a larger E-value is among the best N; and by definition of
``Statistics.min_score``, no subject of any length in the database whose score is less than the minimum for E has an
E-value of E or less.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from swsearch.statistics.karlin_altschul import Statistics
from swsearch.typing import Lengths, Scores


@dataclass(frozen=True, eq=False)
class TopKBound:
    """The rule for one query; see :class:`swsearch.engine.protocol.TopKBound`.

    Attributes
    ----------
    top : int
        N, the length of the list, at least 1.
    statistics : Statistics or None
        If None, subjects are ordered by score alone.
    query_length : int
        Length of the query in residues, as for :meth:`Statistics.evalue`.
    distinct_lengths : uint32 array
        The distinct lengths of the database's subjects.
    search_space : int
        Database size to which E-values refer, in residues.
    strands : int
        Number of comparisons of a query with a subject, as for :meth:`Statistics.evalue`.
    """

    top: int
    statistics: Statistics | None
    query_length: int
    distinct_lengths: Lengths
    search_space: int
    strands: int

    def lowest(self, scores: Scores, lengths: Lengths) -> int:
        """Lowest score with which a subject of the database, known or unknown, may still be among the best N.

        Parameters
        ----------
        scores : int32 array
            Exact scores of some subjects. Higher scores give a tighter bound.
        lengths : uint32 array
            Lengths of these subjects.
        """
        if len(scores) < self.top:
            return 1
        nth = int(np.partition(scores, -self.top)[-self.top])
        if self.statistics is None:
            return max(nth, 1)
        best = scores >= nth
        evalues = self.statistics.evalue(
            scores[best], self.query_length, lengths[best], self.search_space, self.strands
        )
        worst = float(np.partition(evalues, self.top - 1)[self.top - 1])
        return self.statistics.min_score(
            worst, self.query_length, self.distinct_lengths, self.search_space, self.strands
        )
