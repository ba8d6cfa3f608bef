"""The rule that omits subjects before they are ranked: it must lose none of the best, including ties.

The expected values come from the ranking of all candidates.
"""

import numpy as np
import pytest

from swsearch.scoring.scheme import default_scheme
from swsearch.search.ranking import RankedCandidates, Ranking, cut, in_order
from swsearch.search.top_k_bound import TopKBound
from swsearch.sequences.alphabet import DNA, PROTEIN
from swsearch.statistics.karlin_altschul import Statistics
from swsearch.statistics.parameters import find_statistics


def rank(candidates: RankedCandidates, evalues: np.ndarray | None, largest: float, top: int, ties: str) -> Ranking:
    return cut(candidates, in_order(candidates, evalues, largest), top, ties)


def statistics_of(alphabet) -> Statistics:
    found = find_statistics(default_scheme(alphabet))
    assert isinstance(found, Statistics)
    return found


def candidates_of(scores) -> RankedCandidates:
    n = len(scores)
    return RankedCandidates(np.arange(n, dtype=np.uint32), scores.astype(np.int32), np.zeros(n, dtype=np.uint8))


@pytest.mark.parametrize("alphabet", [PROTEIN, DNA, None], ids=["protein", "dna", "no statistics"])
@pytest.mark.parametrize("ties", ["cut", "all"])
@pytest.mark.parametrize("seed", range(6))
def test_ranking_what_the_rule_leaves_is_ranking_all(alphabet, ties, seed):
    """Source: the ranking of all candidates. Few distinct scores, so that ties are frequent; lengths 5 to 50,000."""
    rng = np.random.default_rng(seed)
    statistics = None if alphabet is None else statistics_of(alphabet)
    n, query_length, space, strands = 3000, int(rng.integers(10, 2000)), 10**7, 2 if alphabet is DNA else 1
    lengths = (10 ** rng.uniform(0.7, 4.7, n)).astype(np.uint32)
    scores = rng.gumbel(30, [3, 10][seed % 2], n).clip(1).astype(np.int32) // (1 + seed % 3)
    for top in (1, 25, 2999, 3000):
        rule = TopKBound(top, statistics, query_length, np.unique(lengths), space, strands)
        lowest = rule.lowest(scores, lengths)

        def best(kept, top=top):
            evalues = None
            if statistics is not None:
                evalues = statistics.evalue(kept.score, query_length, lengths[kept.subject_index], space, strands)
            ranking = rank(kept, evalues, np.inf, top, ties)
            return kept.subject_index[ranking.rows].tolist()

        everyone = candidates_of(scores)
        assert best(everyone.at_least(lowest)) == best(everyone)
        # The scores of a subset, as in one part of a database, also give a bound for the complete list.
        some = rng.random(n) < 0.5
        assert best(everyone.at_least(rule.lowest(scores[some], lengths[some]))) == best(everyone)


def test_the_rule_leaves_most_subjects_out():
    """A rule that omits nothing would pass the test above: here 25 of 100,000 random proteins are requested."""
    rng = np.random.default_rng(1)
    lengths = rng.lognormal(5.7, 0.66, 100_000).clip(20, 3000).astype(np.uint32)
    scores = rng.gumbel(35, 4, 100_000).astype(np.int32)
    for statistics in (statistics_of(PROTEIN), None):
        lowest = TopKBound(25, statistics, 300, np.unique(lengths), int(lengths.sum()), 1).lowest(scores, lengths)
        assert 25 <= (scores >= lowest).sum() < 1000


def test_fewer_subjects_than_wanted_bound_nothing():
    rule = TopKBound(5, None, 100, np.array([10], dtype=np.uint32), 1000, 1)
    assert rule.lowest(np.full(4, 50, dtype=np.int32), np.full(4, 10, dtype=np.uint32)) == 1
