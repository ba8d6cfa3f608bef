"""Reciprocal best hits of two sets of sequences: pairs of which each sequence is the best hit of the other.

They are the usual estimate of orthologues of two species (Moreno-Hagelsieb and Latimer 2008, Bioinformatics 24:319).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from swsearch.hits.result import QueryResult, RunInfo
from swsearch.report.steps import Step


class BestHits(Step):
    """Notes the best hits of one set in the other.

    Attributes
    ----------
    best : dict of int to int
        For the ``number`` of each query that has hits, the ``subject_index`` of its best one.
    """

    def __init__(self) -> None:
        self.best: dict[int, int] = {}

    def write(self, result: QueryResult) -> None:
        """Note the first hit of a query, which is its best."""
        if result.hits:
            self.best[result.number] = result.hits[0].subject_index


class ReciprocalHits(Step):
    """Passes results of the other set on, each with its best hit if that is reciprocal, and otherwise with none.

    Parameters
    ----------
    best : BestHits
        The best hits of the one set.
    steps : sequence of Step
        They are given the results.

    Attributes
    ----------
    n_pairs : int
        Number of reciprocal pairs so far.
    """

    def __init__(self, best: BestHits, steps: Sequence[Step]) -> None:
        self._best = best.best
        self._steps = steps
        self.n_pairs = 0

    def begin(self, run: RunInfo) -> None:
        """Begin the steps."""
        for step in self._steps:
            step.begin(run)

    def write(self, result: QueryResult) -> None:
        """Pass a result on."""
        chosen = tuple(hit for hit in result.hits if self._best.get(hit.subject_index) == result.number)
        self.n_pairs += len(chosen) > 0
        for step in self._steps:
            step.write(replace(result, hits=chosen))

    def end(self) -> None:
        """End the steps."""
        for step in self._steps:
            step.end()

    def close(self) -> None:
        """Close the steps."""
        for step in self._steps:
            step.close()
