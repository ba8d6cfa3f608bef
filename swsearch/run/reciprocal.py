"""Reciprocal best hits of two sets of sequences: pairs of which each sequence is the best hit of the other.

They are the usual estimate of orthologues of two species (Moreno-Hagelsieb and Latimer 2008, Bioinformatics 24:319).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from swsearch.hits.result import QueryResult


class BestHits:
    """The best hits of one set in the other, by which the best hits of the other set are chosen.

    Attributes
    ----------
    n_reciprocal : int
        Number of pairs that :meth:`reciprocal` has found so far.
    """

    def __init__(self) -> None:
        self._best: dict[int, int] = {}
        self.n_reciprocal = 0

    def add(self, results: Iterable[QueryResult]) -> None:
        """Add results of the one set: ``number`` is the place of a query in its set, and its first hit is the best."""
        self._best.update((result.number, result.hits[0].subject_index) for result in results if result.hits)

    def reciprocal(self, results: Iterable[QueryResult]) -> Iterator[QueryResult]:
        """Results of the other set, each with its best hit if that is reciprocal, and otherwise with none."""
        for result in results:
            chosen = tuple(hit for hit in result.hits if self._best.get(hit.subject_index) == result.number)
            self.n_reciprocal += len(chosen) > 0
            yield replace(result, hits=chosen)
