"""Deep alignments: the hits of a query in several databases, which are searched in turn, as one alignment.

The hits of the databases follow each other. :func:`deep_alignments` gives the hits of all databases, and
:func:`distinct` leaves out those that repeat a row, such as a sequence that two databases have.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

from swsearch.engine.protocol import Progress
from swsearch.errors import InputError
from swsearch.hits.hit import Hit
from swsearch.hits.result import QueryResult
from swsearch.report.anchored_rows import aligned_letters
from swsearch.search.searcher import Searcher
from swsearch.sequences.record import SequenceRecord

QUERIES_AT_ONCE: Final = 16
"""Queries whose hits in all databases are in memory together."""


@dataclass(frozen=True)
class DeepAlignment:
    """A query and its hits in all databases.

    Attributes
    ----------
    query : QueryResult
        That of the first database, with the hits of all, in the order of the databases; ranks are counted through.
    n_subjects : tuple of int
        Number of subjects that each database contributes.
    """

    query: QueryResult
    n_subjects: tuple[int, ...]


def deep_alignments(
    queries: Iterable[SequenceRecord], searchers: Sequence[Searcher], progress: Progress | None = None
) -> Iterator[DeepAlignment]:
    """The hits of each query in all databases, in the order of the queries.

    Parameters
    ----------
    queries : iterable of SequenceRecord
        Checked by the searchers' ``check``.
    searchers : sequence of Searcher
        One for each database, at least one.
    progress : callable, optional
        Called with the number of cells completed since the last call.
    """
    first, *further = searchers
    remaining = iter(queries)
    while batch := list(islice(remaining, QUERIES_AT_ONCE)):
        found = [list(first.search(batch, progress))]
        found += [list(searcher.search(batch, progress)) for searcher in further]
        for results in zip(*found, strict=True):
            yield _joined(results)


def refuse_mixed_databases(searchers: Sequence[Searcher]) -> None:
    """Refuse databases of different alphabets.

    Raises
    ------
    InputError
        A database has another alphabet than the first.
    """
    first = searchers[0].database
    for searcher in searchers[1:]:
        other = searcher.database
        if other.alphabet is not first.alphabet:
            problem = f"{other.path} is {other.alphabet.name}, {first.path} is {first.alphabet.name}"
            raise InputError(f"{problem}; an alignment is of one alphabet: leave one of them out")


def distinct(query: QueryResult) -> QueryResult:
    """The query with the hits whose rows differ from the rows of all hits before them."""
    rows: dict[str, Hit] = {}
    for hit in query.hits:
        rows.setdefault(aligned_letters(query, hit), hit)
    return query if len(rows) == len(query.hits) else replace(query, hits=tuple(rows.values()))


def _joined(results: Sequence[QueryResult]) -> DeepAlignment:
    hits: list[Hit] = []
    n_before = 0
    for result in results:
        hits += [replace(hit, rank=hit.rank + n_before) for hit in result.hits] if n_before else result.hits
        n_before += result.n_subjects
    n_passed = sum(result.n_passed for result in results)
    query = replace(results[0], hits=tuple(hits), n_passed=n_passed)
    return DeepAlignment(query, tuple(result.n_subjects for result in results))
