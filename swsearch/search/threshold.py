"""How deep a search looks: the lowest score that an engine needs, and which subjects and alignments matter.

:class:`SearchThresholds` is made once for a search, and makes a :class:`Threshold` for each query. The engine, the
ranking and the alignment of subjects ask it; the limits of the lists themselves are in :mod:`swsearch.hits.limits`.

*The score threshold* is the lowest score with which a subject can have an E-value within ``--evalue``, and the lowest
one that ``--min-score`` and ``--min-bits`` allow. It increases with the length of the subject, so it is determined for
ranges of lengths. A masked profile decides only whether a subject reaches ``--evalue``.

*The initial threshold.* Engines save most of their work where they know a score threshold. An E-value limit gives one;
the N best subjects of a search without a limit (``--evalue inf``) do not. But E is, by definition, the number of
subjects that reach a score by chance, so about E subjects have E-values of at most E, related ones not counted. A
search with the initial limit 4 N + 20 therefore finds N subjects or more, and because subjects are ranked by their
E-values, the N best of those are the N best of all. Where it finds fewer, the query is scored again without it. It is
never below the inclusion E-value, so a round of an iterated search includes the same subjects.

*The top-k bound.* If N subjects have E-values of at most E, no subject with a larger E-value is among the best N; and
no subject of any length in the database whose score is less than the minimum for E has an E-value of E or less. So
engines and ranking can leave out subjects with lower scores, although E-values also depend on the lengths of subjects.

``docs/design/bound.md`` has the arguments and the limits of both.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from swsearch.hits.limits import SIGNIFICANT_EVALUE, Limits, RankedCandidates
from swsearch.query.profile import PositionSpecificQuery, SubjectRecord
from swsearch.scoring.karlin_altschul import Statistics
from swsearch.search.options import SearchOptions
from swsearch.search.search_subjects import SearchSubjects
from swsearch.search.significance import Significance
from swsearch.sequences.record import SequenceRecord
from swsearch.typing import Bools, Floats, LengthRange, Lengths, Scores, SubjectIndex

if TYPE_CHECKING:
    from swsearch.search.chaining import Chaining

LENGTH_STEPS: Final = (64, 128, 256)
"""Lengths of subjects between which score thresholds are computed. They increase little beyond the last one."""
SMALLEST_SHARE: Final = 8
"""Subjects per expected hit from which on an initial threshold saves more than it costs."""


SELECTIVE_SHARE: Final = 0.01
"""Largest share of the subjects that is expected to reach a selective threshold by chance."""
JUDGED_CELLS: Final = 1 << 24
"""Cells of the alignment matrices of one comparison that its alignments may cost where E-values are adjusted."""
RESCORED_EVALUE: Final = 1000.0
"""E-value of the score of a subject up to which a sensitive search judges it by its Forward score, which may be better
than its score."""
FEWEST_JUDGED: Final = 2
"""Alignments of a comparison that are judged, however long the sequences are."""


def expected_hits(top: int) -> float:
    """The E-value limit, for the residues that are searched, that N = ``top`` subjects very probably reach."""
    return float(4 * top + 20)


class SearchThresholds:
    """Makes the thresholds of the queries of one search."""

    def __init__(
        self, options: SearchOptions, limits: Limits, significance: Significance, search_subjects: SearchSubjects
    ) -> None:
        self.limits = limits
        self.filters_alignments = limits.filter_alignments
        self.is_rescored = options.sensitive
        self.counts_alignments = options.count_hsps
        self.significance = significance
        self.chaining: Chaining | None = None
        if options.max_intron is not None and isinstance(significance.statistics, Statistics):
            from swsearch.search.chaining import Chaining  # only here: most searches have no chains

            self.chaining = Chaining(significance, options.max_intron)
        self.subjects = search_subjects
        self.lowest_score = options.min_score or 1
        statistics = significance.statistics
        if isinstance(statistics, Statistics) and options.min_bits is not None:
            self.lowest_score = max(self.lowest_score, statistics.min_score_of_bits(options.min_bits))
        self._min_scores: dict[tuple[int, float], list[tuple[int, int, int]]] = {}

    @property
    def scored_evalue(self) -> float:
        """The largest E-value of the score of a subject that may be listed."""
        return max(self.limits.evalue, RESCORED_EVALUE) if self.is_rescored else self.limits.evalue

    @property
    def has_evalue_limit(self) -> bool:
        """Whether E-values are limited; without statistics there are none."""
        return isinstance(self.significance.statistics, Statistics) and self.limits.evalue < np.inf

    def of(
        self,
        query: SequenceRecord,
        n_frames: int,
        *,
        is_masked: bool,
        is_adjusted: bool,
        needs_all_scores: bool = False,
    ) -> Threshold:
        """The threshold of a query with ``n_frames`` strands or frames.

        ``is_masked``: it has a masked profile. ``is_adjusted``: its E-values are adjusted for composition.
        ``needs_all_scores``: the caller needs those of all subjects.
        """
        n_comparisons = n_frames * len(self.subjects.frames)
        needs_every_subject = isinstance(query, SubjectRecord)  # the best may be some that it is not compared with
        # Any subject may be needed to complete the list.
        needs_every_subject |= self.filters_alignments or self.is_rescored
        initial = None
        # The subjects that pass without a limit are counted by their letters; any other condition would change their
        # number. Further alignments of a subject may be those of a strand or a frame that scores less.
        is_counted_by_letters = not is_masked and self.lowest_score == 1
        is_counted_by_letters &= not (is_adjusted and isinstance(query, PositionSpecificQuery))
        has_all_alignments = (self.limits.max_hsps in (None, 1) and not self.counts_alignments) or n_comparisons == 1
        if not needs_every_subject and not needs_all_scores and is_counted_by_letters and has_all_alignments:
            initial = self._initial_evalue()
        # With an E-value limit, or in an iterated search, the number of subjects that pass or are included depends on
        # each E-value. Adjusted ones are those of alignments.
        is_bounded = not needs_every_subject and not is_adjusted and not self.has_evalue_limit
        is_bounded &= self.limits.inclusion_evalue is None
        return Threshold(self, len(query), n_comparisons, is_adjusted, is_masked, is_bounded, needs_all_scores, initial)

    def is_selective(self, evalue: float) -> bool:
        """Whether few subjects are expected to reach an E-value by chance, so that most that are part of others need
        not be scored.
        """
        if not isinstance(self.significance.statistics, Statistics):
            return False
        expected = evalue * self.subjects.n_residues / len(self.subjects.frames) / self.significance.search_space
        return expected <= self.subjects.n_subjects * SELECTIVE_SHARE

    @property
    def usual_evalue(self) -> float:
        """The E-value with which queries are scored first, unless they need more."""
        return self._initial_evalue() or self.scored_evalue

    def _initial_evalue(self) -> float | None:
        """The E-value limit with which the best subjects are searched first; None if there is none.

        It is for searches without an E-value limit, in a database that is large enough. If E-values refer to more
        residues than are searched, fewer subjects reach them, and the limit is larger.
        """
        if self.has_evalue_limit or not isinstance(self.significance.statistics, Statistics):
            return None
        searched = max(self.subjects.n_residues / len(self.subjects.frames), 1)
        scale = self.significance.search_space / searched
        # Long subjects have all their significant alignments, and a round includes the same subjects as without it.
        significant = 0.0 if self.limits.long_subject is None else self.limits.significant_evalue
        needed = max(significant, self.limits.inclusion_evalue or 0.0)
        expected = max(expected_hits(self.limits.top), needed / scale)
        return expected * scale if expected * SMALLEST_SHARE <= self.subjects.n_subjects else None

    def min_score(self, n_letters: int, evalue: float, lengths: LengthRange | None = None) -> int:
        """Lowest score, at least 1, with which a subject can have an E-value up to ``evalue``.

        ``lengths`` restricts it to stored subjects of these lengths, both included. It may be that of further lengths
        as well: it is computed for the ranges between :data:`LENGTH_STEPS`.
        """
        key = n_letters, evalue
        if key not in self._min_scores:
            self._min_scores[key] = self._min_scores_of(*key)
        return min(
            score
            for shortest, longest, score in self._min_scores[key]
            # A translated subject counts as many residues as its longest frame; another may be shorter by one.
            if lengths is None or (longest >= lengths[0] and shortest <= lengths[1] + 1)
        )

    def _min_scores_of(self, n_letters: int, evalue: float) -> list[tuple[int, int, int]]:
        """The shortest length, the longest length and the lowest score of each range of lengths."""
        significance, counted = self.significance, self.subjects.distinct_lengths
        if not isinstance(significance.statistics, Statistics):
            return [(0, 2**32, 1)]
        ranges = [part for part in np.split(counted, np.searchsorted(counted, LENGTH_STEPS)) if part.size] or [counted]
        residues = significance.query_residues(n_letters)
        scores = significance.statistics.min_scores(
            evalue, residues, ranges, significance.search_space, significance.n_comparisons
        )
        return [(int(part[0]), int(part[-1]), score) for part, score in zip(ranges, scores, strict=True)]


_EIGHTHS: Final = np.arange(1, 8, dtype=np.int32)


@dataclass(frozen=True, eq=False)
class Threshold:
    """The depth of the search of one query, which :meth:`SearchThresholds.of` makes.

    It has ``n_comparisons`` with each subject. If ``is_bounded``, the top-k bound may leave out subjects. ``initial``
    is the E-value limit with which the query is scored first, if it has one.
    """

    of_search: SearchThresholds
    n_letters: int
    n_comparisons: int
    is_adjusted: bool
    is_masked: bool
    is_bounded: bool
    needs_all_scores: bool
    initial: float | None

    def without_initial(self) -> Threshold:
        """The threshold with which the query is scored again if the initial one was too low."""
        return replace(self, initial=None)

    # --- what the engine scores ---

    @property
    def evalue(self) -> float:
        """The largest E-value of the score of a subject that matters."""
        return self.of_search.scored_evalue if self.initial is None else self.initial

    def min_score(self, lengths: LengthRange | None = None) -> int:
        """The score threshold of the engine, for all subjects or those from the shortest to the longest length, both
        included.
        """
        score = self._with_pieces(self.of_search.min_score(self.n_letters, self.evalue, lengths))
        # A masked profile only has to reach the E-value, and a frame without masked residues counts as its own mask.
        # An alignment of a lower score may have the best adjusted E-value of a subject that reaches the lowest score in
        # another frame.
        needs_lower = self.is_masked or (self.is_adjusted and self.n_comparisons > 1)
        return score if needs_lower else max(score, self.of_search.lowest_score)

    @property
    def is_selective(self) -> bool:
        """See :meth:`SearchThresholds.is_selective`."""
        return not self.needs_all_scores and self.of_search.is_selective(self.evalue)

    @property
    def bound(self) -> Threshold | None:
        """The top-k bound of the ranking (:meth:`lowest`), or None."""
        return self if self.is_bounded and self.initial is None else None

    @property
    def engine_bound(self) -> Threshold | None:
        """The top-k bound of the engine; None if a subject has several scores, because the engine sees only one of
        them, or if a score is that of several subjects, because the engine counts them once.
        """
        is_one = self.n_comparisons == 1 and not self.is_masked and not self.of_search.subjects.has_repeats
        return self.bound if is_one else None

    @property
    def top(self) -> int:
        """N, the number of subjects that are requested; see :class:`swsearch.engine.protocol.TopKBound`."""
        return self.of_search.limits.top

    def lowest(self, scores: Scores, lengths: Lengths) -> int:
        """Lowest score with which a subject of the database, known or unknown, may still be among the best N.

        It is derived from exact scores of some subjects and their lengths; higher scores give a tighter bound.
        """
        least = self.of_search.lowest_score
        listed = scores >= least
        if np.count_nonzero(listed) < self.top:
            return least
        scores, lengths = scores[listed], lengths[listed]
        nth = int(np.partition(scores, -self.top)[-self.top])
        significance = self.of_search.significance
        statistics = significance.statistics
        if not isinstance(statistics, Statistics):
            return nth
        residues = significance.query_residues(self.n_letters)
        space = significance.search_space, significance.n_comparisons
        best = scores >= nth
        evalues = statistics.evalue(scores[best], residues, lengths[best], *space)
        worst = float(np.partition(evalues, self.top - 1)[self.top - 1])
        every = [self.of_search.subjects.distinct_lengths]
        return max(least, *statistics.min_scores(worst, residues, every, *space))

    @property
    def chaining(self) -> Chaining | None:
        """The chains of the search; None if it has none."""
        return self.of_search.chaining

    # --- which subjects are ranked ---

    def listable(self, scored: RankedCandidates, masked: RankedCandidates | None) -> tuple[RankedCandidates, int]:
        """The subjects that may be listed by their scores, with their E-values; and the number of those left out.

        Those left out cannot be among the best N. ``masked`` has the scores of the masked query, if it has a soft mask.
        """
        scored = scored.rows(np.flatnonzero(scored.score >= self.of_search.lowest_score))
        if masked is not None:
            scored = scored.rows(np.flatnonzero(np.isin(scored.subject_index, masked.subject_index)))
            masked = masked.of_subjects(scored.subject_index)
            scored = replace(scored, masked_evalue=self._evalues(masked.subject_index, masked.score))
        n_scored = len(scored)
        if masked is None and self.bound is not None and n_scored > self.top:
            lengths = self.of_search.subjects.lengths(scored.subject_index)
            scored = scored.rows(np.flatnonzero(scored.score >= self.lowest(scored.score, lengths)))
        n_left_out = n_scored - len(scored)
        scored = replace(scored, evalue=self._evalues(scored.subject_index, scored.score))
        limits = replace(self.of_search.limits, evalue=self.of_search.scored_evalue)
        if self.chaining is not None:  # a chain may reach a limit that none of its pieces reaches
            limits = replace(limits, evalue=max(limits.evalue, SIGNIFICANT_EVALUE))
        passed = limits.passes(scored.score, None, scored.evalue, scored.masked_evalue)
        return scored.rows(np.flatnonzero(passed)), n_left_out

    def _evalues(self, subject_index: SubjectIndex, scores: Scores) -> Floats | None:
        significance = self.of_search.significance
        return significance.evalues(significance.lengths(subject_index), scores, self.n_letters)

    def is_certain(self, evalues: Floats | None) -> bool:
        """Whether a list with these E-values is complete: the initial threshold left out none of its subjects."""
        if self.initial is None:
            return True
        assert evalues is not None
        return int(np.count_nonzero(evalues <= self.initial)) >= self.top

    # --- which alignments are computed ---

    @property
    def needs_alignments(self) -> bool:
        """Whether the alignments of a subject decide whether it is listed, and where."""
        return self.is_adjusted or self.of_search.filters_alignments or self.chaining is not None

    @property
    def judges_further(self) -> bool:
        """Whether a further alignment of a subject may have a better E-value than its best score; in a sensitive
        search, E-values are those of subjects.
        """
        return self.is_adjusted and not self.of_search.is_rescored

    def farthest(self, listed: list[float], judged: list[float], wanted: int) -> float:
        """The largest E-value with which a subject matters to a list of ``wanted`` subjects.

        ``listed`` are the E-values of the subjects so far, ``judged`` the smallest ones so far of further subjects,
        which no filter on scores or alignments leaves out.
        """
        is_filtered = self.of_search.filters_alignments or self.of_search.lowest_score > 1
        known = sorted(listed if is_filtered else [*listed, *judged])
        return min(known[wanted - 1], self.evalue) if len(known) >= wanted else self.evalue

    @property
    def min_alignment_score(self) -> int:
        """The lowest score of a listed alignment; where E-values are adjusted, also of one that is only numbered."""
        return self._min_alignment_score(self.of_search.limits.evalue)

    @property
    def min_significant_score(self) -> int:
        """The lowest score of a further alignment of a long subject that is listed without ``--max-hsps``; where
        E-values are adjusted, also of one that is only numbered.
        """
        return self._min_alignment_score(self.of_search.limits.significant_evalue)

    def _with_pieces(self, score: int) -> int:
        """The score, or the lower one of a piece of a chain."""
        return score if self.chaining is None else min(score, self.chaining.min_score)

    def _min_alignment_score(self, evalue: float) -> int:
        score = self._with_pieces(self.of_search.min_score(self.n_letters, evalue))
        return score if self.is_adjusted else max(score, self.of_search.lowest_score)

    def is_significant(self, lengths: Lengths, scores: Scores) -> Bools:
        """Whether all significant alignments of a subject are computed, for each of several.

        They are for a long subject, of ``lengths`` letters in the database, if its best score is significant; unless
        the first ones alone are listed, and no adjustment of E-values can change which these are.
        """
        limits = self.of_search.limits
        is_wanted = limits.max_hsps is None or self.is_adjusted
        has_evalues = isinstance(self.of_search.significance.statistics, Statistics)
        if not is_wanted or not has_evalues or limits.long_subject is None:
            return np.zeros(len(scores), dtype=np.bool_)
        found: Bools = limits.is_long(lengths) & (scores >= self.min_significant_score)
        return found

    def most_alignments(self, lengths: Lengths) -> NDArray[np.int64]:
        """The number of alignments of subjects of these lengths, in residues, that are judged in one comparison.

        All are, unless E-values are adjusted: long sequences of repeats have thousands of alignments with each other,
        whose number increases with the product of the lengths, as does the time that one takes. The numbers depend only
        on the lengths. Where more alignments are significant (:meth:`is_significant`), all of those are judged.
        """
        if not self.is_adjusted:
            return np.full(len(lengths), np.iinfo(np.int64).max)
        cells = lengths.astype(np.int64) * self.of_search.significance.query_residues(self.n_letters)
        return np.maximum(JUDGED_CELLS // cells, FEWEST_JUDGED)

    def min_next_scores(
        self,
        lengths: Lengths,
        next_scores: Scores,
        first_evalues: Floats,
        last_evalues: Floats,
        farthest: float,
    ) -> Scores:
        """The lowest score of each subject's next alignment that could change which of its alignments are listed;
        int32.

        No adjusted E-value is less than the unadjusted one. So a further alignment matters only if its unadjusted
        E-value is less than the largest of those that are listed so far, and within the limit; and for a subject that
        is not listed so far, only if it is at most ``farthest``.

        ``lengths`` are those of the subjects in residues, and ``next_scores`` upper bounds of the score of the next
        alignment, at least 0; one more is returned where no further alignment matters. ``first_evalues`` and
        ``last_evalues`` are the adjusted E-values of the subject's best alignment so far, and of the last one that may
        be listed, infinite if there is none. All arrays have shape (n,).
        """
        limit = self.of_search.limits.evalue
        largest = np.where(first_evalues <= farthest, limit, min(farthest, limit))

        def matter(rows: NDArray[np.intp], scores: Scores) -> Bools:
            evalues = self.of_search.significance.evalues(lengths[rows, None], scores, self.n_letters)
            assert evalues is not None
            found: Bools = (evalues < last_evalues[rows, None]) & (evalues <= largest[rows, None])
            return found

        lowest = next_scores + 1
        rows = np.flatnonzero(next_scores > 0)
        rows = rows[matter(rows, next_scores[rows, None])[:, 0]]
        lowest[rows] = next_scores[rows]
        below = np.zeros_like(lowest)
        while (rows := rows[lowest[rows] - below[rows] > 1]).size:
            # Between a score that does not matter and one that does, seven others divide the range into eighths.
            least, width = below[rows, None], (lowest[rows] - below[rows])[:, None].astype(np.int64)
            some = np.maximum(least + width * _EIGHTHS // (len(_EIGHTHS) + 1), least + 1)
            scores = np.concatenate([least, some, lowest[rows, None]], axis=1)
            first = 1 + np.count_nonzero(~matter(rows, some), axis=1)
            each = np.arange(len(rows))
            lowest[rows], below[rows] = scores[each, first], scores[each, first - 1]
        return lowest
