"""Which subjects can be among the best N: a lowest score, from the scores of some, that loses none.

E-values of one query do not follow its scores, for they depend on the subject's length as well. But N subjects whose
E-values are at most E keep every subject of a larger one off the list; and no subject that scores less than the score
that ``Statistics.min_score`` gives for E has an E-value of E or less, at any length that is there.
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
        Length of the list, at least 1.
    statistics : Statistics or None
        Without them the score alone decides.
    query_length : int
    distinct_lengths : uint32 array
        Lengths of the database's subjects.
    search_space : int
        Residues that E-values are scaled to.
    strands : int
    """

    top: int
    statistics: Statistics | None
    query_length: int
    distinct_lengths: Lengths
    search_space: int
    strands: int

    def lowest(self, scores: Scores, lengths: Lengths) -> int:
        """Lowest score with which any subject of the database may still be listed, beside these or as one of them.

        Parameters
        ----------
        scores : int32 array
            Exact scores of some subjects; those with the best scores bound the list best.
        lengths : uint32 array
            Their lengths.
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
