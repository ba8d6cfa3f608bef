"""Bit scores and E-values of one search.

:func:`scheme_statistics` finds or estimates the statistics of a scoring scheme. :class:`Significance` applies them to
the sequences of the search. It determines the lengths of queries and subjects in aligned residues, the search space,
and the number of comparisons of a query with a subject (strands, or query frames times subject frames).
"""

from __future__ import annotations

import math

from swsearch.errors import InputError
from swsearch.scoring.karlin_altschul import Statistics
from swsearch.scoring.published_parameters import NoStatistics, find_statistics
from swsearch.scoring.scheme import ScoringScheme
from swsearch.search.options import SearchOptions
from swsearch.search.search_subjects import SearchSubjects
from swsearch.sequences.genetic_code import CODON
from swsearch.typing import Floats, Lengths, Scores, SubjectIndex
from swsearch.words import option


def scheme_statistics(scheme: ScoringScheme, threads: int | None = None) -> Statistics | NoStatistics:
    """Statistics of a scoring scheme: published, exact or simulated ones; or the reason why there are none.

    The ``source`` of the result states which. See :func:`swsearch.search.simulation.estimate` for ``threads``.
    """
    published = find_statistics(scheme)
    if isinstance(published, Statistics):
        return published
    from swsearch.search.simulation import estimate

    return estimate(scheme, published.reason, threads)


class Significance:
    """The statistics of one search, whose queries have ``n_comparisons`` comparisons with a subject.

    ``search_space`` is the database size to which E-values refer, in residues, for one comparison. Raises
    :class:`InputError` if a filter needs statistics that the scoring scheme does not have.
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
        if not isinstance(statistics, Statistics):
            self._refuse_what_needs_statistics(statistics.reason)

    def _refuse_what_needs_statistics(self, reason: str) -> None:
        of_scores = f"; give {option('evalue', math.inf)} and limit scores with {option('min_score')}"
        for name, unused, missing, advice in (
            ("min_bits", (None,), "bit scores", ""),
            ("evalue", (SearchOptions.evalue, math.inf), "E-values", of_scores),
            ("max_intron", (None,), "E-values of chains", ""),
            ("iterations", (1,), "E-values for inclusion", ""),
            ("sensitive", (False,), "E-values to choose candidates by", ""),
            ("dbsize", (None,), "E-values to scale", "; leave it out"),
        ):
            value = getattr(self._options, name)
            if value not in unused:
                raise InputError(f"{option(name, value)}: there are no {missing}, {reason}{advice}")

    def query_residues(self, n_letters: int) -> int:
        """Length of a query for the statistics: in residues, or in codons if the query is translated."""
        return n_letters if self._options.query_frames == (0,) else n_letters // CODON

    def lengths(self, subject_index: SubjectIndex) -> Lengths:
        """Lengths of subjects in residues, or in codons if they are translated."""
        return self._subjects.lengths(subject_index)

    def evalues(self, lengths: Lengths, scores: Scores, n_letters: int) -> Floats | None:
        """The E-values of scores with subjects of these :meth:`lengths`, in the shape of ``scores``, with which they
        broadcast; None if the scoring scheme has no statistics.
        """
        if not isinstance(self.statistics, Statistics):
            return None
        residues = self.query_residues(n_letters)
        return self.statistics.evalue(scores, residues, lengths, self.search_space, self.n_comparisons)

    def bits(self, scores: Scores) -> Floats | None:
        """Bit scores; None if the scoring scheme has no statistics."""
        return self.statistics.bits(scores) if isinstance(self.statistics, Statistics) else None
