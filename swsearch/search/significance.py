"""What scores of one search are worth: bit scores and E-values, and the lowest score that can be reported.

Joins the statistics of the scoring scheme to what is compared: lengths of queries and subjects as they are counted, the
search space, and the number of comparisons of a query with a subject (strands, or frames times frames).
"""

from __future__ import annotations

import math

from swsearch.errors import InputError
from swsearch.search.options import SearchOptions
from swsearch.search.search_subjects import SearchSubjects
from swsearch.search.top_k_bound import TopKBound
from swsearch.sequences.genetic_code import CODON
from swsearch.statistics.karlin_altschul import Statistics
from swsearch.statistics.parameters import NoStatistics
from swsearch.typing import Floats, Scores, SubjectIndex


class Significance:
    """The statistics of one search.

    Parameters
    ----------
    statistics : Statistics or NoStatistics
        Of the scoring scheme.
    search_subjects : SearchSubjects
    options : SearchOptions
    n_comparisons : int
        Ways in which a query and a subject are compared.

    Attributes
    ----------
    search_space : int
        Residues that E-values are scaled to, of one comparison.

    Raises
    ------
    InputError
        A filter needs statistics that the scoring scheme has not.
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
        self._least_score = self._lowest_allowed_score()
        self._floors: dict[int, int] = {}

    def _lowest_allowed_score(self) -> int:
        least = self._options.min_score or 1
        if not isinstance(self.statistics, Statistics):
            self._refuse_what_needs_statistics(self.statistics.reason)
            return least
        if self._options.min_bits is None:
            return least
        return max(least, self.statistics.min_score_of_bits(self._options.min_bits))

    def _refuse_what_needs_statistics(self, reason: str) -> None:
        options = self._options
        if options.min_bits is not None:
            raise InputError(f"--min-bits {options.min_bits}: there are no bit scores, {reason}")
        if options.evalue != SearchOptions.evalue and not math.isinf(options.evalue):
            raise InputError(f"--evalue {options.evalue:g}: there are no E-values, {reason}; --min-score cuts by score")
        if options.dbsize is not None:
            raise InputError(f"--dbsize {options.dbsize}: there are no E-values to scale, {reason}; leave it out")

    def query_residues(self, n_letters: int) -> int:
        """Length of a query as it is counted: codons where it is translated."""
        return n_letters if self._options.query_frames == (0,) else n_letters // CODON

    def floor(self, n_letters: int) -> int:
        """Lowest score that any subject could be reported with for a query of ``n_letters``."""
        if n_letters not in self._floors:
            lowest = 1
            if isinstance(self.statistics, Statistics):
                lowest = self.statistics.min_score(
                    self._options.evalue,
                    self.query_residues(n_letters),
                    self._subjects.distinct_lengths,
                    self.search_space,
                    self.n_comparisons,
                )
            self._floors[n_letters] = max(self._least_score, lowest)
        return self._floors[n_letters]

    def evalues(self, subject_index: SubjectIndex, scores: Scores, n_letters: int) -> Floats | None:
        """E-value of each score with its subject; None where the scoring scheme has no statistics."""
        if not isinstance(self.statistics, Statistics):
            return None
        lengths = self._subjects.lengths(subject_index)
        residues = self.query_residues(n_letters)
        return self.statistics.evalue(scores, residues, lengths, self.search_space, self.n_comparisons)

    def bits(self, scores: Scores) -> list[float] | None:
        """Bit scores; None where the scoring scheme has no statistics."""
        return self.statistics.bits(scores).tolist() if isinstance(self.statistics, Statistics) else None

    def top_k_bound(self, n_letters: int) -> TopKBound | None:
        """The rule by which subjects can be left out before they are ranked.

        None where an E-value cuts the list, for then it takes each subject's E-value to count those that pass; and
        where alignments are judged, for then any subject may be needed.
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
