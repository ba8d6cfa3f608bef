"""From scores to hits: which subjects of a query are reported, in which order and with which alignments.

Candidates are the subjects whose scores pass the limits. A subject is ranked once, by its best comparison (strand, or
pair of frames); among comparisons of equal score, the first one is used. Subjects are ordered by ascending E-value,
then descending raw score, then ascending subject index. E-values of one query are not a monotonic function of its
scores, because they also depend on the length of the subject. Where the list ends is decided by
:mod:`swsearch.hits.limits`.

If a filter judges alignments, or E-values are adjusted for the composition of what is aligned, as many candidates are
aligned as it takes to know the best ones; otherwise the best ones alone. :func:`adjustment_of` chooses the method of
the adjustment (:mod:`swsearch.query.composition`): if the option ``composition`` is ``adjust``, sequences by
the composition of both aligned parts; in an iterated search, profiles by that of the subject. E-values only increase by
it, so no subject is missed. In a sensitive search, candidates have E-values of their Forward scores
(:mod:`swsearch.search.rescoring`), which are adjusted in the same way, or by less, by their best alignments.

The alignments of a subject are ordered by ascending E-value, then descending score, then by comparison, then in the
order of the traceback. An adjustment may raise the E-value of the alignment with the best score above that of another;
so further alignments are computed, in growing numbers, until the unadjusted E-value of the next one shows that it
cannot be listed (:meth:`swsearch.search.threshold.Threshold.min_next_scores`). Of very long sequences, a number of
alignments that depends on the lengths alone is judged; those after them are listed last, by descending score, if they
are requested.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from swsearch.hits.hit import Hit
from swsearch.hits.limits import Rank, RankedCandidates
from swsearch.hits.score_block import ScoreBlock
from swsearch.query.composition import EvalueAdjustment, PairAdjustment, ProfileAdjustment
from swsearch.query.profile import PositionSpecificQuery
from swsearch.scoring.karlin_altschul import Statistics
from swsearch.scoring.published_parameters import NoStatistics
from swsearch.scoring.scheme import ScoringScheme
from swsearch.search.alignments import MOST_ALIGNMENTS, Comparison, SubjectAligner, SubjectAlignment
from swsearch.search.options import SearchOptions
from swsearch.search.planned_search import PlannedSearch
from swsearch.search.score_batches import PreparedQuery
from swsearch.search.significance import Significance
from swsearch.sequences.alphabet import PROTEIN
from swsearch.sequences.record import SequenceRecord
from swsearch.typing import Bools, Floats, Lengths

if TYPE_CHECKING:
    from swsearch.search.chaining import Chaining


def merge_frames(blocks: list[ScoreBlock]) -> RankedCandidates:
    """Each subject once, with its best score; ``blocks`` has one block per comparison, in order of preference."""
    if len(blocks) == 1:
        return RankedCandidates(blocks[0].subject_index, blocks[0].score, np.zeros(len(blocks[0]), dtype=np.uint8))
    index = np.concatenate([block.subject_index for block in blocks])
    score = np.concatenate([block.score for block in blocks])
    comparison = np.repeat(np.arange(len(blocks), dtype=np.uint8), [len(block) for block in blocks])
    order = np.lexsort((comparison, -score, index))
    first = np.ones(len(order), dtype=bool)
    first[1:] = index[order[1:]] != index[order[:-1]]
    keep = order[first]
    return RankedCandidates(index[keep], score[keep], comparison[keep])


def adjustment_of(
    query: SequenceRecord, options: SearchOptions, scheme: ScoringScheme, statistics: Statistics | NoStatistics
) -> EvalueAdjustment | None:
    """The adjustment of the E-values of a query; None if they are not adjusted.

    Those of DNA are never adjusted, nor those without statistics. Those of profiles are adjusted in iterated and in
    sensitive searches.
    """
    if scheme.alphabet is not PROTEIN:
        return None
    if isinstance(query, PositionSpecificQuery):
        if options.iterations == 1 and not options.sensitive:
            return None
        share = 1.0
        if options.sensitive:
            from swsearch.search.rescoring import balance_of  # only here: most searches are not sensitive

            share = balance_of(query).composition
        return ProfileAdjustment.of(query, scheme.matrix, statistics, share)
    return PairAdjustment.of(scheme.matrix, statistics) if options.composition == "adjust" else None


_MIN_BLOCK: Final = 16
"""Smallest number of candidates that are aligned and judged together, so that all threads have work."""
_MOST_FURTHER: Final = 64
"""Largest number of further alignments of a subject that are computed at once."""


class ListedAlignment(NamedTuple):
    """An alignment that is listed: its number among all of its subject, its E-value, the alignment, and the number of
    alignments of its subject that meet all limits but ``max_hsps``, if they are counted.
    """

    number: int
    evalue: float | None
    of_subject: SubjectAlignment
    n_hsps: int | None = None


ListedSubjects = dict[int, list[ListedAlignment]]
"""Subjects by index, each with its alignments that are listed, the best first."""


class HitSelection:
    """Chooses and describes the hits of the queries of a search."""

    def __init__(self, search: PlannedSearch, aligner: SubjectAligner) -> None:
        self._database = search.database
        self._options = search.options
        self._limits = search.limits
        self._significance = search.significance
        self._aligner = aligner

    def best(self, prepared: PreparedQuery, compared: list[ScoreBlock], candidates: RankedCandidates) -> ListedSubjects:
        """The subjects that are reported, the best first.

        ``compared`` has the scores of each comparison, ordered by query frame, then by subject frame; ``candidates``
        are those that can be among the best, in order. Subjects are aligned in this order. A subject may be ranked by
        an alignment with a larger E-value than that of its best score. The list is complete when the next candidate,
        even with the E-value of its best score, would be ranked after the last subject of the list.
        """
        limits, threshold = self._limits, prepared.threshold
        wanted = limits.n_wanted(candidates.evalue)
        size = max(wanted, _MIN_BLOCK)
        n_candidates = len(candidates)
        if not threshold.needs_alignments:
            n_candidates = size = limits.end(candidates.rank, n_candidates, wanted)
        alignments: ListedSubjects = {}
        ranks: list[Rank] = []
        first = 0
        while first < n_candidates:
            stop = min(first + size, n_candidates)
            if len(ranks) >= wanted and threshold.chaining is None:  # a chain may be better than its best score
                worst = ranks[wanted - 1]
                if limits.is_complete(worst, candidates.rank(first)):
                    break
                stop = min(stop, max(candidates.n_up_to(worst[0]), first + 1))
            some = candidates.rows(np.arange(first, stop))
            listed = self._listed_alignments(prepared, compared, some, ranks, wanted)
            new = ((one.evalue or 0.0, -one.of_subject.score, subject) for subject, (one, *_) in listed.items())
            ranks = sorted([*ranks, *new])
            alignments.update(listed)
            first, size = stop, 2 * size
        ranks = ranks[: limits.end(ranks.__getitem__, len(ranks), wanted)]
        return {subject: alignments[subject] for *_, subject in ranks}

    def _listed_alignments(
        self,
        prepared: PreparedQuery,
        compared: list[ScoreBlock],
        candidates: RankedCandidates,
        ranks: list[Rank],
        wanted: int,
    ) -> ListedSubjects:
        """The candidates that have alignments that are listed.

        ``ranks`` are those of the subjects of a list of ``wanted`` subjects so far.
        """
        options, limits = self._options, self._limits
        lengths = self._database.lengths(candidates.subject_index)
        comparisons = list(product(prepared.frames, options.subject_frames))  # in order of preference
        aligned = _Alignments(self._aligner, self._significance, prepared, comparisons, compared, candidates, lengths)
        most = MOST_ALIGNMENTS if options.count_hsps else limits.max_hsps or 1
        aligned.compute(most, [evalue for evalue, *_ in ranks[:wanted]], wanted)
        table, in_order = aligned.in_order()
        rows, scores = table["row"], table["score"]
        evalues = None if candidates.evalue is None else table["evalue"]
        numbers = 1 + np.arange(len(rows)) - np.searchsorted(rows, rows)
        bits = None if limits.min_bits is None else self._significance.bits(scores)
        passed = limits.passes(scores, bits, evalues, None)
        admitted = limits.admits_number(numbers, lengths[rows], evalues)
        if not options.count_hsps:
            passed &= admitted
        if limits.filter_alignments:
            n_letters = len(prepared.query)
            for place in np.flatnonzero(passed).tolist():
                alignment = self._aligner.alignment(in_order[place], n_letters)
                passed[place] = limits.passes_alignment(alignment, n_letters, int(lengths[rows[place]]))
        n_hsps: list[int] | None = None
        if options.count_hsps:
            n_hsps = np.bincount(rows[passed], minlength=len(candidates)).tolist()
            passed &= admitted
        listed: ListedSubjects = {}
        places = np.flatnonzero(passed)
        values = [None] * len(places) if evalues is None else evalues[places].tolist()
        each = zip(places.tolist(), rows[places].tolist(), numbers[places].tolist(), values, strict=True)
        for place, row, number, evalue in each:
            one = in_order[place]
            n_of_subject = None if n_hsps is None else n_hsps[row]
            listed.setdefault(one.subject, []).append(ListedAlignment(number, evalue, one, n_of_subject))
        return listed

    def hits(self, prepared: PreparedQuery, candidates: RankedCandidates, best: ListedSubjects) -> tuple[Hit, ...]:
        """The hits of the best of the candidates, one for each listed alignment."""
        listed = [
            (rank, subject, hsp, one)
            for rank, (subject, alignments) in enumerate(best.items(), 1)
            for hsp, one in enumerate(alignments, 1)
        ]
        scores = np.array([one.of_subject.score for *_, one in listed], dtype=np.int32)
        subjects = candidates.of_subjects(np.array([subject for _, subject, *_ in listed], dtype=np.uint32))
        lengths = self._database.lengths(subjects.subject_index).tolist()
        bits, masked, forward = (
            [None] * len(listed) if values is None else values.tolist()
            for values in (self._significance.bits(scores), subjects.masked_evalue, subjects.forward_bits)
        )
        return tuple(
            Hit(
                rank=rank,
                subject_index=subject,
                subject_header=self._database.header(subject),
                subject_length=lengths[row],
                score=one.of_subject.score,
                bits=bits[row],
                evalue=one.evalue,
                strand=one.of_subject.comparison[0].strand,
                alignment=self._aligner.alignment(one.of_subject, len(prepared.query)),
                hsp=hsp,
                query_frame=one.of_subject.comparison[0].number,
                subject_frame=one.of_subject.comparison[1],
                query_header=prepared.query.header,
                number=one.number,
                masked_evalue=masked[row],
                n_hsps=one.n_hsps,
                forward_bits=forward[row],
            )
            for row, (rank, subject, hsp, one) in enumerate(listed)
        )


_COLUMNS: Final = np.dtype(
    [("row", np.intp), ("comparison", np.intp), ("place", np.int64), ("score", np.int32), ("evalue", np.float64)]
)
"""Of an alignment: the row of its candidate, its comparison, its number in this, from 0, its score and its E-value."""


class _Alignments:
    """The alignments of some candidates of a query, which are computed as far as they are needed.

    ``found`` has the alignments of each candidate in each comparison, and ``next_scores``, shape (n_comparisons,
    n_candidates), an upper bound of the score of the next one, which is 0 if there is none that matters; ``n_aligned``,
    of the same shape, has the number of those that are known. ``table`` and ``alignments`` have all in the order in
    which they were found. E-values in the table are 0 unless the search has them. ``lengths`` are those of the
    candidates in the database.
    """

    def __init__(
        self,
        aligner: SubjectAligner,
        significance: Significance,
        prepared: PreparedQuery,
        comparisons: list[Comparison],
        compared: list[ScoreBlock],
        candidates: RankedCandidates,
        lengths: Lengths,
    ) -> None:
        self._aligner = aligner
        self._significance = significance
        self._prepared = prepared
        self._compared = compared
        self._candidates = candidates
        self._comparisons = comparisons
        self._found: list[list[list[SubjectAlignment]]] = [[[] for _ in range(len(candidates))] for _ in compared]
        self._table = np.empty(0, dtype=_COLUMNS)
        self._alignments: list[SubjectAlignment] = []
        self._residues = significance.lengths(candidates.subject_index)
        self._n_judged = prepared.threshold.most_alignments(self._residues)
        self._is_significant = prepared.threshold.is_significant(lengths, candidates.score)
        self._next_scores = np.zeros((len(compared), len(candidates)), dtype=np.int32)
        self._n_aligned = np.zeros_like(self._next_scores)
        if len(compared) == 1:
            self._next_scores[0] = candidates.score
            return
        rows_of = {subject: row for row, subject in enumerate(candidates.subject_index.tolist())}
        for number, block in enumerate(compared):
            known = block.among(candidates.subject_index)
            rows = [rows_of[subject] for subject in known.subject_index.tolist()]
            self._next_scores[number, rows] = known.score

    def compute(self, max_hsps: int, listed: list[float], wanted: int) -> None:
        """Compute all alignments that may be among the first ``max_hsps`` of their subject and be listed, and all
        significant ones of long subjects.

        ``listed`` are the E-values of a list of ``wanted`` subjects so far.
        """
        candidates, threshold = self._candidates, self._prepared.threshold
        self._compute_significant()
        least = threshold.min_alignment_score
        # Most subjects need their next alignment, too, but none precedes one with an E-value of 0; one call finds both.
        with_next = np.full(len(candidates), threshold.judges_further)
        if candidates.evalue is not None:
            with_next &= candidates.evalue > 0
        for number, scores in enumerate(self._next_scores):
            floors = np.minimum(scores, least) if max_hsps == 1 else np.full_like(scores, least)
            is_aligned = (scores > 0) & (scores >= floors) & (~self._is_significant | (max_hsps > 1))
            if max_hsps == 1:
                is_aligned &= candidates.comparison == number
            several = with_next & ~self._aligner.may_spare(len(self._comparisons[number][0].codes), self._residues)
            for chosen, at_once in ((several, max_hsps + 1), (~several, max_hsps)):
                rows = np.flatnonzero(is_aligned & chosen)
                self._extend(number, rows, at_once, floors[rows])
        size, most = 1, self._n_judged
        numbers = np.arange(len(self._comparisons))[:, None]
        while threshold.judges_further:
            firsts, last_evalues, last_scores, last_comparisons = self._judged(max_hsps)
            farthest = threshold.farthest(listed, firsts.tolist(), wanted)
            next_scores = self._next_scores.max(axis=0)
            lowest = threshold.min_next_scores(self._residues, next_scores, firsts, last_evalues, farthest)
            self._next_scores[self._n_aligned >= most] = 0
            # An alignment with the E-value and the score of the last one precedes it if its comparison does.
            floors = np.where(numbers < last_comparisons, np.minimum(lowest, last_scores), lowest)
            is_further = (self._next_scores > 0) & (self._next_scores >= floors)
            if not is_further.any():
                return
            for number, is_extended in enumerate(is_further):
                rows = np.flatnonzero(is_extended)
                self._extend(number, rows, size, floors[number][rows], most)
            size = min(2 * size, _MOST_FURTHER)

    def _compute_significant(self) -> None:
        """Compute the significant alignments of long subjects; the next one of each has a lower score."""
        floor = self._prepared.threshold.min_significant_score
        for number, next_scores in enumerate(self._next_scores):
            rows = np.flatnonzero(self._is_significant & (next_scores >= floor))
            self._extend(number, rows, MOST_ALIGNMENTS, floor)
            next_scores[rows] = floor - 1
        known = self._n_aligned.max(axis=0)
        self._n_judged = np.where(self._is_significant, np.maximum(self._n_judged, known), self._n_judged)

    def _extend(
        self,
        number: int,
        rows: NDArray[np.intp],
        most: int,
        floor: int | NDArray[np.int32],
        most_in_all: NDArray[np.int64] | None = None,
    ) -> None:
        """Compute up to ``most`` further alignments of the candidates at ``rows`` in a comparison."""
        if not rows.size:
            return
        subjects, comparison = self._candidates.subject_index[rows], self._comparisons[number]
        n_before = self._n_aligned[number, rows]
        known = [self._found[number][row] for row in rows.tolist()] if n_before.any() else []
        block = ScoreBlock(subjects, self._next_scores[number, rows], within=self._compared[number].within)
        of_subject = dict(self._aligner.align(comparison, block, most=most, floor=floor, earlier=known))
        found = [of_subject[subject] for subject in subjects.tolist()]
        self._next_scores[number, rows] = [several[-1].score if len(several) == most else 0 for several in found]
        if most_in_all is not None:
            for several, n_left in zip(found, (most_in_all[rows] - n_before).tolist(), strict=True):
                del several[max(0, n_left) :]
        self._add(number, rows, found)

    def _add(self, number: int, rows: NDArray[np.intp], found: list[list[SubjectAlignment]]) -> None:
        """Append alignments of the candidates at ``rows`` in a comparison, with their E-values."""
        counts = np.array([len(several) for several in found])
        alignments = [one for several in found for one in several]
        new = np.zeros(len(alignments), dtype=_COLUMNS)
        new["row"], new["comparison"] = np.repeat(rows, counts), number
        in_call = np.arange(len(new)) - np.repeat(np.cumsum(counts) - counts, counts)
        new["place"] = np.repeat(self._n_aligned[number, rows], counts) + in_call
        scores = np.array([one.score for one in alignments], dtype=np.int32)
        evalues, adjustment = self._candidates.evalue, self._prepared.adjustment
        if evalues is not None and self._prepared.threshold.of_search.is_rescored:
            evalues = evalues[new["row"]]
        elif evalues is not None:
            lengths = self._residues[new["row"]]
            evalues = self._significance.evalues(lengths, scores, len(self._prepared.query))
        if evalues is not None and adjustment is not None:
            parts = [one.query_codes for one in alignments], [one.subject_codes for one in alignments]
            evalues = adjustment.adjusted(evalues, scores, *parts)
        new["score"], new["evalue"] = scores, 0.0 if evalues is None else evalues
        self._table = np.concatenate([self._table, new])
        self._alignments += alignments
        self._n_aligned[number, rows] += counts
        for row, several in zip(rows.tolist(), found, strict=True):
            self._found[number][row] += several

    def _order(self) -> tuple[NDArray[np.intp], Bools]:
        """The order of all alignments, and whether each is judged: those of a candidate side by side, the best first.

        Those of a comparison that are not judged follow the others, in the order of their scores.
        """
        table = self._table
        is_judged = table["place"] < self._n_judged[table["row"]]
        evalues = np.where(is_judged, table["evalue"], 0.0)
        keys = table["place"], table["comparison"], -table["score"], evalues, ~is_judged, table["row"]
        return np.lexsort(keys), is_judged

    def _judged(self, max_hsps: int) -> tuple[Floats, Floats, NDArray[np.int32], NDArray[np.intp]]:
        """The E-value of each candidate's best alignment, which is infinite if it has none; then the E-value, the score
        and the comparison of its alignment number ``max_hsps``, which are infinite, 0 and 0 if it has fewer.
        """
        order, is_judged = self._order()
        table, n = self._table[order], len(self._candidates)
        begins = np.searchsorted(table["row"], np.arange(n))
        counts = np.bincount(self._table["row"][is_judged], minlength=n)
        firsts, last_evalues = np.full(n, np.inf), np.full(n, np.inf)
        last_scores, last_comparisons = np.zeros(n, dtype=np.int32), np.zeros(n, dtype=np.intp)
        firsts[counts > 0] = table["evalue"][begins[counts > 0]]
        is_full = counts >= max_hsps
        lasts = table[begins[is_full] + max_hsps - 1]
        last_evalues[is_full], last_scores[is_full] = lasts["evalue"], lasts["score"]
        last_comparisons[is_full] = lasts["comparison"]
        return firsts, last_evalues, last_scores, last_comparisons

    def in_order(self) -> tuple[NDArray[np.void], list[SubjectAlignment]]:
        """The rows of the table and the alignments: those of a candidate side by side, the best first; those of a
        comparison that are not judged follow the others, in the order of their scores. Where chains are searched, all
        are ordered by the E-values of their chains.
        """
        (order, _), table, chaining = self._order(), self._table, self._prepared.threshold.chaining
        if chaining is not None and order.size:
            table = self._chained(chaining, order)
            order = np.lexsort((table["place"], table["comparison"], -table["score"], table["evalue"], table["row"]))
        return table[order], [self._alignments[index] for index in order.tolist()]

    def _chained(self, chaining: Chaining, order: NDArray[np.intp]) -> NDArray[np.void]:
        """The table with the E-values of chains; the alignments of each candidate are side by side in ``order``."""
        table, n_letters = self._table.copy(), len(self._prepared.query)
        for indices in np.split(order, np.flatnonzero(np.diff(table["row"][order])) + 1):
            found = [self._alignments[index] for index in indices.tolist()]
            placed = [self._aligner.alignment(one, n_letters) for one in found]
            adjusted = table["evalue"][indices].tolist()
            table["evalue"][indices] = chaining.evalues(found[0].subject, n_letters, found, placed, adjusted)
        return table
