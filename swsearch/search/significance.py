"""Bit scores and E-values of one search, and the lowest score that can be reported.

:class:`Significance` applies the statistics of the scoring scheme to the sequences of the search. It determines the
lengths of queries and subjects in aligned residues, the search space, and the number of comparisons of a query with a
subject (strands, or query frames times subject frames).
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from swsearch.errors import InputError
from swsearch.search.options import SearchOptions
from swsearch.search.provisional_cut import provisional_evalue
from swsearch.search.search_subjects import SearchSubjects
from swsearch.search.top_k_bound import TopKBound
from swsearch.sequences.genetic_code import CODON
from swsearch.statistics.karlin_altschul import Statistics
from swsearch.statistics.parameters import NoStatistics
from swsearch.typing import Floats, LengthRange, Scores, SubjectIndex
from swsearch.words import option

LENGTH_STEPS: Final = (64, 128, 256)
"""Lengths of subjects between which floors are computed. They increase little beyond the last one."""


class Significance:
    """The statistics of one search.

    Parameters
    ----------
    statistics : Statistics or NoStatistics
        The statistics of the scoring scheme.
    search_subjects : SearchSubjects
    options : SearchOptions
    n_comparisons : int
        Number of comparisons of a query with a subject.

    Attributes
    ----------
    search_space : int
        Database size to which E-values refer, in residues, for one comparison.

    Raises
    ------
    InputError
        A filter needs statistics that the scoring scheme does not have.
    """

    def __init__(
        self,
        statistics: Statistics | NoStatistics,
        search_subjects: SearchSubjects,
        options: SearchOptions,
        n_comparisons: int,
    ) -> None:
        self.statistics = statistics
        self.n_comparisons = n_comparisons
        self.search_space = search_subjects.residues(options.dbsize or search_subjects.database.n_residues)
        self._subjects = search_subjects
        self._options = options
        self._lowest_score = self._lowest_allowed_score()
        self._floors: dict[tuple[int, float], list[tuple[int, int, int]]] = {}

    def _lowest_allowed_score(self) -> int:
        lowest = self._options.min_score or 1
        if not isinstance(self.statistics, Statistics):
            self._refuse_what_needs_statistics(self.statistics.reason)
            return lowest
        if self._options.min_bits is None:
            return lowest
        return max(lowest, self.statistics.min_score_of_bits(self._options.min_bits))

    def _refuse_what_needs_statistics(self, reason: str) -> None:
        options = self._options
        if options.min_bits is not None:
            raise InputError(f"{option('min_bits', options.min_bits)}: there are no bit scores, {reason}")
        if options.evalue != SearchOptions.evalue and not math.isinf(options.evalue):
            advice = f"say {option('evalue', math.inf)} and cut by score with {option('min_score')}"
            raise InputError(f"{option('evalue', options.evalue)}: there are no E-values, {reason}; {advice}")
        if options.iterations > 1:
            raise InputError(
                f"{option('iterations', options.iterations)}: there are no E-values to include by, {reason}"
            )
        if options.dbsize is not None:
            raise InputError(
                f"{option('dbsize', options.dbsize)}: there are no E-values to scale, {reason}; leave it out"
            )

    def query_residues(self, n_letters: int) -> int:
        """Length of a query for the statistics: in residues, or in codons if the query is translated."""
        return n_letters if self._options.query_frames == (0,) else n_letters // CODON

    @property
    def provisional_evalue(self) -> float | None:
        """The E-value cut with which the best subjects are searched first; None if there is none.

        See :mod:`swsearch.search.provisional_cut`. It is for searches whose options cut neither by E-value nor by
        score, and whose alignments are not filtered: any subject may then be needed to complete the list. If E-values
        refer to more residues than are searched, fewer subjects reach them, and the cut is larger.
        """
        options = self._options
        if not isinstance(self.statistics, Statistics) or not math.isinf(options.evalue):
            return None
        if options.alignment_filter or self._lowest_score > 1:
            return None
        evalue = provisional_evalue(options.top, self._subjects.n_subjects)
        searched = self._subjects.n_residues / len(self._subjects.frames)
        return None if evalue is None else evalue * self.search_space / max(searched, 1)

    def floor(self, n_letters: int, lengths: LengthRange | None = None, evalue: float | None = None) -> int:
        """Lowest score with which a subject can be reported for a query of ``n_letters``.

        ``lengths`` restricts it to stored subjects of these lengths, both included. Long subjects need higher scores.
        The floor may be that of further lengths as well: floors are computed for the ranges between
        :data:`LENGTH_STEPS`. ``evalue`` is the E-value cut, by default that of the options.
        """
        key = n_letters, self._options.evalue if evalue is None else evalue
        if key not in self._floors:
            self._floors[key] = self._floors_of(*key)
        return min(
            floor
            for shortest, longest, floor in self._floors[key]
            # A translated subject counts as many residues as its longest frame; another may be shorter by one.
            if lengths is None or (longest >= lengths[0] and shortest <= lengths[1] + 1)
        )

    def _floors_of(self, n_letters: int, evalue: float) -> list[tuple[int, int, int]]:
        """The shortest length, the longest length and the floor of each range of lengths."""
        counted = self._subjects.distinct_lengths
        if not isinstance(self.statistics, Statistics):
            return [(0, 2**32, self._lowest_score)]
        ranges = [part for part in np.split(counted, np.searchsorted(counted, LENGTH_STEPS)) if part.size] or [counted]
        floors = self.statistics.min_scores(
            evalue, self.query_residues(n_letters), ranges, self.search_space, self.n_comparisons
        )
        return [
            (int(part[0]), int(part[-1]), max(self._lowest_score, floor))
            for part, floor in zip(ranges, floors, strict=True)
        ]

    def evalues(self, subject_index: SubjectIndex, scores: Scores, n_letters: int) -> Floats | None:
        """The E-value of each score with its subject; None if the scoring scheme has no statistics."""
        if not isinstance(self.statistics, Statistics):
            return None
        lengths = self._subjects.lengths(subject_index)
        residues = self.query_residues(n_letters)
        return self.statistics.evalue(scores, residues, lengths, self.search_space, self.n_comparisons)

    def bits(self, scores: Scores) -> list[float] | None:
        """Bit scores; None if the scoring scheme has no statistics."""
        return self.statistics.bits(scores).tolist() if isinstance(self.statistics, Statistics) else None

    def top_k_bound(self, n_letters: int) -> TopKBound | None:
        """The bound by which subjects are left out before they are ranked, or None if it cannot be used.

        It cannot be used with an E-value cut, because the number of subjects that pass depends on the E-value of each;
        nor with a filter on alignments, because any subject may then be needed to complete the list.
        """
        statistics = self.statistics if isinstance(self.statistics, Statistics) else None
        if self._options.alignment_filter or (statistics is not None and not math.isinf(self._options.evalue)):
            return None
        return TopKBound(
            self._options.top,
            statistics,
            self.query_residues(n_letters),
            self._subjects.distinct_lengths,
            self.search_space,
            self.n_comparisons,
        )
