"""Iterated searches: each round searches with a profile of the subjects that the round before included.

:func:`search_in_rounds` takes queries (SequenceRecord) and returns a QueryResult for each, which is that of its last
round. :meth:`swsearch.search.searcher.Searcher.search` calls it if its options ask for several iterations. The idea is
that of PSI-BLAST (Altschul and others 1997); every round is exhaustive.

A subject is *included* if its E-value is at most the inclusion E-value; from the second round on, E-values are adjusted
for composition, so that a profile of a biased family does not meet all proteins of its bias
(:mod:`swsearch.query.composition`). The alignments of the included subjects are the rows of a multiple
alignment (:mod:`swsearch.query.multiple_alignment`), from which the scores of the next round are estimated
(:mod:`swsearch.query.estimation`). A search has *converged* when a round includes no subject that was not included
before; a query whose first round includes nothing converges at once. A round includes a limited number of subjects
(:data:`swsearch.hits.limits.MOST_INCLUDED`), the best ones, whatever the length of the reported list.

An engine that works in the background has two groups of queries, and scores one while the profiles of the other are
estimated. Neither the groups nor the number of threads affect the results.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from swsearch.arrays import divided
from swsearch.hits.hit import Hit
from swsearch.hits.result import QueryResult, SearchStats
from swsearch.query.estimation import estimated_query
from swsearch.query.multiple_alignment import anchored_rows
from swsearch.query.profile import PositionSpecificQuery
from swsearch.search.planned_search import PlannedSearch, started
from swsearch.sequences.record import SequenceRecord
from swsearch.typing import Progress


@dataclass(eq=False)
class _InRounds:
    """One query between its first and its last round.

    ``searched`` is what the next round searches with: the query, later its profile. ``entered`` has the round in which
    each included subject was included first, by subject index, and ``stats`` the cost of the finished rounds.
    """

    number: int
    given: SequenceRecord
    searched: SequenceRecord
    n_rounds: int = 0
    entered: dict[int, int] = field(default_factory=dict)
    stats: SearchStats | None = None
    result: QueryResult | None = None


@started
def search_in_rounds(
    search: PlannedSearch,
    queries: Iterable[SequenceRecord],
    progress: Progress | None,
    most_queries: int,
    most_rows: int,
    n_together: int,
) -> Generator[QueryResult | None, None, None]:
    """Yield None when the first queries are being searched, then the results of all, in their order.

    ``search`` is one of proteins whose matrix has an ungapped λ. Queries are searched in groups of at most
    ``most_queries`` queries with ``most_rows`` residues, of which ``n_together`` are in a round at a time.
    """
    all_queries = (_InRounds(number, query, query) for number, query in enumerate(queries))
    groups = divided(all_queries, lambda query: len(query.given), most_queries, most_rows)
    at_work: deque[tuple[list[_InRounds], Generator[QueryResult, None, None]]] = deque()
    unreported: deque[_InRounds] = deque()

    def start(group: list[_InRounds]) -> None:
        at_work.append((group, search.search_once([query.searched for query in group], progress)))

    def begin(more: int) -> None:
        for group in islice(groups, more):
            start(group)
            unreported.extend(group)

    try:
        begin(1)
        yield None
        while at_work:
            begin(n_together - len(at_work))
            group, results = at_work[0]
            for query, result in zip(group, results, strict=True):
                _take(search, query, result)
                if query.result is not None and progress is not None:
                    progress((search.options.iterations - query.n_rounds) * search.cells_of_round(query.given))
            at_work.popleft()
            unfinished = [query for query in group if query.result is None]
            if unfinished:
                start(unfinished)
            if not at_work:
                begin(1)
            while unreported and unreported[0].result is not None:
                yield unreported.popleft().result
    finally:
        for _, results in at_work:
            results.close()


def _take(search: PlannedSearch, query: _InRounds, result: QueryResult) -> None:
    """Take the result of a round as the final one, or make the profile of the next round of it."""
    query.n_rounds += 1
    query.stats = result.stats if query.stats is None else query.stats + result.stats
    limits = search.limits
    included = [hit for hit in result.hits if limits.includes(hit)]
    new = {hit.subject_index for hit in included if hit.hsp == 1} - query.entered.keys()
    query.entered.update(dict.fromkeys(sorted(new), query.n_rounds))
    if new and query.n_rounds < search.options.iterations:
        query.searched = _profile(search, query.given, included)
        return
    hits = tuple(
        replace(hit, round=query.entered.get(hit.subject_index, 0)) for hit in limits.first_subjects(result.hits)
    )
    query.result = replace(
        result,
        number=query.number,
        hits=hits,
        stats=query.stats,
        n_rounds=query.n_rounds,
        converged=not new,
    )


def _profile(search: PlannedSearch, given: SequenceRecord, included: Sequence[Hit]) -> PositionSpecificQuery:
    """The profile of a query and its included hits; its letters are those of the query, masked or not."""
    masked = replace(given, codes=search.as_searched(given).codes)
    rows, matrix = anchored_rows(len(given), included), search.scheme.matrix
    return estimated_query(masked, rows, matrix, search.threads, contexts=search.preparer.contexts)
