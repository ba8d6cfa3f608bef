"""How deep a search looks: the top-k bound loses none of the best, and nothing but one module compares with a limit.

The expected values come from the ranking of all candidates, and from the source text.
"""

import ast
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import swsearch
from swsearch.hits.limits import RankedCandidates
from swsearch.scoring.karlin_altschul import Statistics
from swsearch.scoring.published_parameters import find_statistics
from swsearch.scoring.scheme import default_scheme
from swsearch.search.options import SearchOptions
from swsearch.search.threshold import Threshold
from swsearch.sequences.alphabet import DNA, PROTEIN


def bound(top, statistics, query_length, distinct_lengths, space, comparisons, lowest_score=1) -> Threshold:
    """The bound of a query of this length in a search with these statistics."""
    significance = SimpleNamespace(
        statistics=statistics, search_space=space, n_comparisons=comparisons, query_residues=lambda n: n
    )
    of_search = SimpleNamespace(
        limits=SearchOptions(top=top).limits(PROTEIN), significance=significance, lowest_score=lowest_score,
        subjects=SimpleNamespace(distinct_lengths=distinct_lengths, has_repeats=False),
    )  # fmt: skip
    return Threshold(of_search, query_length, 1, False, False, True, False, None)  # type: ignore[arg-type]


def statistics_of(alphabet) -> Statistics:
    found = find_statistics(default_scheme(alphabet))
    assert isinstance(found, Statistics)
    return found


def candidates_of(scores) -> RankedCandidates:
    n = len(scores)
    return RankedCandidates(np.arange(n, dtype=np.uint32), scores.astype(np.int32), np.zeros(n, dtype=np.uint8))


def at_least(candidates: RankedCandidates, lowest: int) -> RankedCandidates:
    return candidates.rows(np.flatnonzero(candidates.score >= lowest))


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
        rule = bound(top, statistics, query_length, np.unique(lengths), space, strands)
        lowest = rule.lowest(scores, lengths)

        limits = SearchOptions(top=top, ties=ties).limits(PROTEIN)

        def best(kept, top=top, limits=limits):
            if statistics is not None:
                evalues = statistics.evalue(kept.score, query_length, lengths[kept.subject_index], space, strands)
                kept = replace(kept, evalue=evalues)
            ordered = kept.in_order()
            return ordered.subject_index[: limits.end(ordered.rank, len(ordered), top)].tolist()

        everyone = candidates_of(scores)
        assert best(at_least(everyone, lowest)) == best(everyone)
        # The scores of a subset, as in one part of a database, also give a bound for the complete list.
        some = rng.random(n) < 0.5
        assert best(at_least(everyone, rule.lowest(scores[some], lengths[some]))) == best(everyone)


def test_the_rule_leaves_most_subjects_out():
    """A rule that omits nothing would pass the test above: here 25 of 100,000 random proteins are requested."""
    rng = np.random.default_rng(1)
    lengths = rng.lognormal(5.7, 0.66, 100_000).clip(20, 3000).astype(np.uint32)
    scores = rng.gumbel(35, 4, 100_000).astype(np.int32)
    for statistics in (statistics_of(PROTEIN), None):
        lowest = bound(25, statistics, 300, np.unique(lengths), int(lengths.sum()), 1).lowest(scores, lengths)
        assert 25 <= (scores >= lowest).sum() < 1000


def test_fewer_subjects_than_wanted_bound_nothing():
    rule = bound(5, None, 100, np.array([10], dtype=np.uint32), 1000, 1)
    assert rule.lowest(np.full(4, 50, dtype=np.int32), np.full(4, 10, dtype=np.uint32)) == 1


def test_subjects_below_the_lowest_score_bound_nothing():
    """By hand: the short subject has the best E-value and too low a score; the long one is the best that is listed."""
    statistics = statistics_of(PROTEIN)
    scores, lengths = np.array([95, 101], dtype=np.int32), np.array([20, 30_000], dtype=np.uint32)
    evalues = statistics.evalue(scores, 300, lengths, 10**7)
    assert evalues[0] < evalues[1]
    rule = bound(1, statistics, 300, np.unique(lengths), 10**7, 1, lowest_score=100)
    assert rule.lowest(scores, lengths) in (100, 101)


LIMITED = re.compile(r"(^|_)(evalues?|scores?|bits)$")
PERMITTED = {
    "hits/limits.py": "the limits themselves",
    "search/threshold.py": "the depth of a search",
    "search/options.py": "checks of arguments",
    "search/ranking.py": "scores of alignments with those that the threshold of the query requires",
    "hits/score_block.py": "rows of an engine's scores with the score that the engine was given",
    "engine/cuda/search/batch_run.py": "the same on a GPU, and the largest score that its arithmetic holds",
    "engine/cuda/search/selection.py": "the top-k bound that the engine was given",
    "engine/cuda/search/end_positions.py": "the largest score that an arithmetic holds",
    "engine/cuda/search/launches.py": "the same",
    "engine/cuda/history/cudasw2.py": "the largest score that an arithmetic holds",
    "search/simulation.py": "statistics",
    "hits/chains.py": "which chain of alignments is the best",
    "search/chaining.py": "which alignments can be pieces of a chain, and whether the chain is better than they are",
    "search/score_check.py": "statistics",
    "scoring/karlin_altschul.py": "statistics: the score that an E-value or bit score requires",
    "domains/decoding.py": "which of two scores of a protein is the larger one",
    "domains/annotation.py": "the limits of domains, whose scores are those of another method",
    "report/html.py": "the colours of the classes of bit scores",
    "report/exons.py": "the places of one border, the best of which is taken",
    "hits/formatting.py": "how many digits a number is shown with",
    "service/pages/figures.py": "the colours of the classes of E-values",
}


def compared_with_limits(text: str) -> set[str]:
    """The comparisons by order in a text of Python, one of whose sides is named as a score; not those with zero."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Lt, ast.LtE, ast.Gt, ast.GtE)):
            sides = [ast.unparse(side) for side in (node.left, *node.comparators)]
            if any(LIMITED.search(side.split(".")[-1].split("[")[0]) for side in sides) and "0" not in sides:
                found.add(ast.unparse(node))
    return found


def test_no_other_module_compares_a_score_or_an_evalue_with_a_limit():
    root = Path(swsearch.__file__).parent
    found = {path.relative_to(root).as_posix(): compared_with_limits(path.read_text()) for path in root.rglob("*.py")}
    assert {name: comparisons for name, comparisons in found.items() if comparisons and name not in PERMITTED} == {}
    assert [name for name in PERMITTED if not found[name]] == []  # no entry without need


def test_adjusted_evalues_have_no_top_k_bound_when_the_initial_threshold_was_too_low():
    """The condition is one for the first scoring of a query and for the second."""
    for is_adjusted in (False, True):
        first = replace(
            bound(1, None, 100, np.array([10], np.uint32), 1000, 1), is_bounded=not is_adjusted, initial=24.0
        )
        assert first.engine_bound is None
        assert (first.without_initial().engine_bound is None) == is_adjusted
