"""Iterated searches: each round searches with a profile of the subjects that the round before included.

:class:`IteratedSearch` takes queries (SequenceRecord) and returns a QueryResult for each, which is that of its last
round. :class:`swsearch.search.searcher.Searcher` makes one if its options ask for several iterations, and gives it the
search of one round. The idea is that of PSI-BLAST (Altschul and others 1997); every round is exhaustive.

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
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

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


@dataclass(eq=False)
class _Group:
    """Queries that are searched together, and the results of their current round."""

    queries: list[_InRounds]
    results: Generator[QueryResult, None, None] | None = None

    @property
    def unfinished(self) -> list[_InRounds]:
        return [query for query in self.queries if query.result is None]

    def close(self) -> None:
        if self.results is not None:
            self.results.close()


@dataclass(frozen=True, eq=False)
class IteratedSearch:
    """Searches queries in rounds.

    ``search_once`` is the search of one round by ``plan``, whose matrix is for proteins and has an ungapped λ. It
    lists at least the subjects that are included, even if fewer are reported. A group has the limits of one batch of
    the engine, which has ``n_together`` groups at a time.
    """

    plan: PlannedSearch
    search_once: Callable[..., Generator[QueryResult, None, None]]
    most_queries: int
    most_rows: int
    n_together: int

    def search(
        self, queries: Iterable[SequenceRecord], progress: Progress | None, *, wait_until_prepared: bool
    ) -> Generator[QueryResult, None, None]:
        """The results of the queries, in their order; parameters and behaviour are those of ``Searcher.search``."""
        return started(self._search(queries, progress, wait_until_prepared))

    def _search(
        self, queries: Iterable[SequenceRecord], progress: Progress | None, wait_until_prepared: bool
    ) -> Generator[QueryResult | None, None, None]:
        """Yield None when the first group has started, then the results."""
        groups = self._groups(queries)
        at_work: deque[_Group] = deque()
        unreported: deque[_InRounds] = deque()

        def begin(more: int) -> None:
            for group in islice(groups, more):
                self._start(group, progress, wait_until_prepared=wait_until_prepared and not at_work)
                at_work.append(group)
                unreported.extend(group.queries)

        try:
            begin(1)
            yield None
            while at_work:
                begin(self.n_together - len(at_work))
                group = at_work[0]
                self._finish_round(group, progress)
                at_work.popleft()
                if group.unfinished:
                    self._start(group, progress, wait_until_prepared=False)
                    at_work.append(group)
                if not at_work:
                    begin(1)
                while unreported and unreported[0].result is not None:
                    yield unreported.popleft().result
        finally:
            for group in at_work:
                group.close()

    def _groups(self, queries: Iterable[SequenceRecord]) -> Iterator[_Group]:
        group: list[_InRounds] = []
        n_rows = 0
        for number, query in enumerate(queries):
            if group and (len(group) == self.most_queries or n_rows + len(query) > self.most_rows):
                yield _Group(group)
                group, n_rows = [], 0
            group.append(_InRounds(number, query, query))
            n_rows += len(query)
        if group:
            yield _Group(group)

    def _start(self, group: _Group, progress: Progress | None, *, wait_until_prepared: bool) -> None:
        searched = [query.searched for query in group.unfinished]
        group.results = self.search_once(searched, progress, wait_until_prepared=wait_until_prepared)

    def _finish_round(self, group: _Group, progress: Progress | None) -> None:
        """Take the results of a round: for each query the final result, or the profile of the next round."""
        assert group.results is not None
        for query, result in zip(group.unfinished, group.results, strict=True):
            self._take(query, result)
            if query.result is not None and progress is not None:
                progress((self.plan.options.iterations - query.n_rounds) * self.plan.cells_of_round(query.given))

    def _take(self, query: _InRounds, result: QueryResult) -> None:
        query.n_rounds += 1
        query.stats = result.stats if query.stats is None else query.stats + result.stats
        limits = self.plan.limits
        included = [hit for hit in result.hits if limits.includes(hit)]
        new = {hit.subject_index for hit in included if hit.hsp == 1} - query.entered.keys()
        query.entered.update(dict.fromkeys(sorted(new), query.n_rounds))
        if new and query.n_rounds < self.plan.options.iterations:
            query.searched = self._profile(query.given, included)
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

    def _profile(self, given: SequenceRecord, included: Sequence[Hit]) -> PositionSpecificQuery:
        """The profile of a query and its included hits; its letters are those of the query, masked or not."""
        masked = replace(given, codes=self.plan.as_searched(given).codes)
        rows, matrix = anchored_rows(len(given), included), self.plan.scheme.matrix
        return estimated_query(masked, rows, matrix, self.plan.threads, by_context=self.plan.options.sensitive)
