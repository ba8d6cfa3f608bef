"""A stored result with fewer hits, as a search with narrower limits would report it; nothing is computed.

:class:`Narrowing` has the limits. A limit that is wider than that of the search is refused, because the store has no
hits beyond it; and so is one that decides what the rounds of an iterated search include, because their profiles would
be others. All others are conditions on single alignments (:mod:`swsearch.hits.limits`), so the hits that meet them are
those of a search with these limits.

A list that the search cut at its ``top`` has no subjects behind the cut. They are ranked after its last subject; but
where a narrower limit leaves out subjects of the list, or ranks them by other alignments, those behind the cut may take
their place. Such queries are counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from swsearch.errors import InputError
from swsearch.hits.hit import Hit
from swsearch.hits.limits import Limits, rank_of, ranked
from swsearch.hits.result import QueryResult, RunInfo

_LARGEST: Final = {
    "top": "the best {:,g} subjects of each query",
    "evalue": "hits with E-values up to {:g}",
    "max_hsps": "alignments of each subject up to number {:,g}",
}
"""The limits above which the store has nothing, and what it has with a limit."""
_LOWEST: Final = {
    "min_score": "hits with scores from {:,g}",
    "min_bits": "hits with bit scores from {:,g}",
    "min_identity": "alignments with {:g}% identity and more",
    "min_query_coverage": "alignments of {:g}% of the query and more",
    "min_subject_coverage": "alignments of {:g}% of the subject and more",
    "min_alignment_length": "alignments of {:,g} columns and more",
}
"""The limits below which the store has nothing, and what it has with a limit."""
_OF_ROUNDS: Final = ("max_hsps", *_LOWEST)
"""The limits that decide what the rounds of an iterated search include."""


LIMITS: Final = (*_LARGEST, *_LOWEST)
"""The options by which a stored result can be narrowed."""


class Narrowing:
    """Limits for the hits of a stored run.

    Parameters
    ----------
    **limits : int, float or None
        Some of :data:`LIMITS`, as in :class:`swsearch.search.options.SearchOptions`, which checks their ranges; None
        leaves a limit as it is.

    Attributes
    ----------
    given : dict of str to int or float
        The limits that are not None.
    n_incomplete : int
        Number of narrowed queries whose list was cut by the search, so that further subjects may pass the limits.
    """

    def __init__(self, **limits: float | None) -> None:
        self.given = {name: value for name, value in limits.items() if value is not None}
        self.n_incomplete = 0

    def of_run(self, run: RunInfo) -> RunInfo:
        """The record of the run with these limits among its parameters.

        Raises
        ------
        InputError
            A limit is wider than that of the search, or limits E-values or bit scores that the run does not have.
        """
        for name, value in self.given.items():
            option = f"--{name.replace('_', '-')}"
            if name in ("evalue", "min_bits") and run.lam is None:
                values = "E-values" if name == "evalue" else "bit scores"
                raise InputError(f"{option} {value:g}: the run has no {values}; say --min-score")
            if run.iterations > 1 and name in _OF_ROUNDS:
                decides = f"it decides what the {run.iterations} rounds of the run include"
                raise InputError(f"{option} {value:g}: {decides}; search again with {option}")
            if name == "max_hsps" and not _has_first(run, int(value)):
                kept = "the best alignment of a subject and, of long ones, all that are significant"
                raise InputError(f"{option} {value:g}: the run keeps {kept}; for others, search again with {option}")
            stored = run.parameters.get(name)
            limit = None if stored is None else float(stored)  # an infinite E-value is stored as text
            if limit is not None and (value > limit if name in _LARGEST else value < limit):
                kept = {**_LARGEST, **_LOWEST}[name].format(limit)
                raise InputError(f"{option} {value:g}: the run keeps {kept}; for others, search again with {option}")
        return replace(run, parameters={**run.parameters, **self.given})

    def results(self, run: RunInfo, queries: Iterable[QueryResult]) -> Iterator[QueryResult]:
        """The results of a run's queries, as far as these limits allow.

        Parameters
        ----------
        run : RunInfo
            The stored record of the run.
        queries : iterable of QueryResult
            Its complete results.
        """
        for query in queries:
            yield self._narrowed(run, query) if self.given else query

    def _narrowed(self, run: RunInfo, query: QueryResult) -> QueryResult:
        stored = Limits.of_run(run.parameters, run.database.alphabet)
        limits = Limits.of_run({**run.parameters, **self.given}, run.database.alphabet)
        keeps_counts = self.given.keys() <= {"top", "max_hsps"}

        def passes(hit: Hit) -> bool:
            is_within = limits.passes(hit.score, hit.bits, hit.evalue, hit.masked_evalue)
            return bool(is_within) and limits.passes_alignment(hit.alignment, query.length, hit.subject_length)

        def listed_of(several: Sequence[Hit]) -> list[Hit]:
            passing = list(filter(passes, several))
            kept = [hit for hit in passing if limits.admits_number(hit.number, hit.subject_length, hit.evalue)]
            if keeps_counts or several[0].n_hsps is None:
                return kept
            n_hsps = len(passing) if len(several) == several[0].n_hsps else None
            return [replace(hit, n_hsps=n_hsps) for hit in kept]

        subjects = query.by_subject
        left = ranked(kept for several in subjects if (kept := listed_of(several)))
        hits = tuple(limits.first_subjects(left))
        listed = [rank_of(hit) for hit in left if hit.hsp == 1]
        if keeps_counts and len(listed) == len(subjects):
            return replace(query, hits=hits)
        was_cut = len(subjects) >= stored.top and query.n_passed > len(subjects)
        if was_cut and limits.may_lack(listed, rank_of(subjects[-1][0])):
            self.n_incomplete += 1
        n_passed = sum(any(map(limits.admits, several)) for several in subjects)
        return replace(query, hits=hits, n_passed=n_passed, n_stored=len(subjects))


def _has_first(run: RunInfo, max_hsps: int) -> bool:
    """Whether a run has the first ``max_hsps`` alignments of each subject, unless its own limit is lower."""
    if not run.orders_alignments or (max_hsps == 1 and run.max_intron is None):
        return True
    if run.max_intron is not None:
        return False
    stored = Limits.of_run(run.parameters, run.database.alphabet)
    return bool(stored.is_long(1)) and stored.evalue == stored.significant_evalue
