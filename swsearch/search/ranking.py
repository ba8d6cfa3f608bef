"""From scores to hits: which subjects of a query are reported, in which order and with which alignments.

Candidates are the subjects whose scores pass the limits. A subject is ranked once, by its best comparison (strand, or
pair of frames); among comparisons of equal score, the first one is used. Subjects are ordered by ascending E-value,
then descending raw score, then ascending subject index. E-values of one query are not a monotonic function of its
scores, because they also depend on the length of the subject. Where the list ends is decided by
:mod:`swsearch.hits.limits`.

If a filter judges alignments, or E-values are adjusted for the composition of what is aligned, as many candidates are
aligned as it takes to know the best ones; otherwise the best ones alone. :func:`adjustment_of` chooses the method of
the adjustment: if the option ``composition`` is ``adjust``, sequences by the composition of both aligned parts
(:mod:`swsearch.scoring.composition_adjustment`); in an iterated search, profiles by that of the subject
(:mod:`swsearch.query.profile_adjustment`). E-values only increase by it, so no subject is missed. In a sensitive
search, candidates have E-values of their Forward scores (:mod:`swsearch.search.rescoring`), which are adjusted in the
same way by their best alignments.

The alignments of a subject are ordered by ascending E-value, then descending score, then by comparison, then in the
order of the traceback. An adjustment may raise the E-value of the alignment with the best score above that of another;
so further alignments are computed, in growing numbers, until the unadjusted E-value of the next one shows that it
cannot be listed (:meth:`swsearch.search.threshold.Threshold.min_next_scores`). Of very long sequences, a number of
alignments that depends on the lengths alone is judged; those after them are listed last, by descending score, if they
are requested.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch.database.reader import PackedDatabase
from swsearch.hits.hit import Alignment, Hit
from swsearch.hits.limits import Rank, RankedCandidates
from swsearch.hits.score_block import ScoreBlock
from swsearch.query.profile import PositionSpecificQuery
from swsearch.scoring.composition_adjustment import EvalueAdjustment, PairAdjustment
from swsearch.scoring.karlin_altschul import Statistics
from swsearch.scoring.published_parameters import NoStatistics
from swsearch.scoring.scheme import ScoringScheme
from swsearch.search.alignments import MOST_ALIGNMENTS, Comparison, SubjectAligner, SubjectAlignment
from swsearch.search.options import SearchOptions
from swsearch.search.score_batches import PreparedQuery
from swsearch.search.significance import Significance
from swsearch.sequences.alphabet import PROTEIN
from swsearch.sequences.record import SequenceRecord
from swsearch.typing import Floats, Lengths, SubjectIndex


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
        from swsearch.query.profile_adjustment import ProfileAdjustment

        return ProfileAdjustment.of(query, scheme.matrix, statistics)
    return PairAdjustment.of(scheme.matrix, statistics) if options.composition == "adjust" else None


def adjusted_evalues(
    adjustment: EvalueAdjustment,
    evalues: Floats,
    raw_scores: NDArray[np.int32],
    query: SequenceRecord,
    alignments: Sequence[Alignment],
) -> Floats:
    """The adjusted E-values of the alignments of a query."""
    letters = query.letters
    query_parts = [one.query_letters or letters[one.query_start : one.query_end] for one in alignments]
    return adjustment.adjusted(evalues, raw_scores, query_parts, [one.subject_letters for one in alignments])


_MIN_BLOCK: Final = 16
"""Smallest number of candidates that are aligned and judged together, so that all threads have work."""
_MOST_FURTHER: Final = 64
"""Largest number of further alignments of a subject that are computed at once."""


@dataclass(frozen=True)
class ListedAlignment:
    """An alignment that is listed: its number among all of its subject, its E-value, the alignment, and the number of
    alignments of its subject that meet all limits but ``max_hsps``, if they are counted.
    """

    number: int
    evalue: float | None
    of_subject: SubjectAlignment
    n_hsps: int | None = None


@dataclass(frozen=True, eq=False)
class ReportedSubjects:
    """The subjects of a query that are reported, the best first, with the E-value of each one's first alignment.

    ``alignments`` has the alignments of each of these subjects, and perhaps of others; ``masked_evalues`` the E-values
    of the masked query with the candidates, if it has a soft mask.
    """

    subjects: list[int]
    evalues: Floats | None
    alignments: dict[int, list[ListedAlignment]]
    masked_evalues: dict[int, float]


class HitSelection:
    """Chooses and describes the hits of queries."""

    def __init__(
        self,
        database: PackedDatabase,
        options: SearchOptions,
        significance: Significance,
        aligner: SubjectAligner,
    ) -> None:
        self._database = database
        self._options = options
        self._limits = options.limits(database.alphabet)
        self._significance = significance
        self._aligner = aligner

    def best(
        self, prepared: PreparedQuery, compared: list[ScoreBlock], candidates: RankedCandidates
    ) -> ReportedSubjects:
        """The subjects that are reported.

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
        alignments: dict[int, list[ListedAlignment]] = {}
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
            ranks = sorted([*ranks, *(_rank(subject, several[0]) for subject, several in listed.items())])
            alignments.update(listed)
            first = stop
        ranks = ranks[: limits.end(ranks.__getitem__, len(ranks), wanted)]
        evalues = None if candidates.evalue is None else np.array([evalue for evalue, *_ in ranks])
        masked: dict[int, float] = {}
        if candidates.masked_evalue is not None:
            masked = dict(zip(candidates.subject_index.tolist(), candidates.masked_evalue.tolist(), strict=True))
        return ReportedSubjects([subject for *_, subject in ranks], evalues, alignments, masked)

    def _listed_alignments(
        self,
        prepared: PreparedQuery,
        compared: list[ScoreBlock],
        candidates: RankedCandidates,
        ranks: list[Rank],
        wanted: int,
    ) -> dict[int, list[ListedAlignment]]:
        """The alignments of candidates that are listed, for each subject that has such alignments.

        ``ranks`` are those of the subjects of a list of ``wanted`` subjects so far.
        """
        lengths = self._database.lengths(candidates.subject_index)
        aligned = _Alignments(self, prepared, compared, candidates, lengths)
        most = MOST_ALIGNMENTS if self._options.count_hsps else self._limits.max_hsps or 1
        aligned.compute(most, [evalue for evalue, *_ in ranks[:wanted]], wanted)
        alignment_filter = self._options.alignment_filter
        listed = {}
        in_order = aligned.in_order()
        if prepared.threshold.chaining is not None:
            in_order = [
                _chained(prepared, subject, several)
                for subject, several in zip(candidates.subject_index.tolist(), in_order, strict=True)
            ]
        subjects = zip(candidates.subject_index.tolist(), lengths.tolist(), in_order, strict=True)
        for subject, length, several in subjects:
            numbered = [ListedAlignment(n, one.evalue, one.alignment) for n, one in enumerate(several, 1)]
            if not self._options.count_hsps:
                numbered = self._admitted(numbered, length)
            numbered = [one for one in numbered if self._passes(one)]
            if alignment_filter:
                n_letters = len(prepared.query)
                numbered = [
                    one for one in numbered if alignment_filter.passes(one.of_subject.alignment, n_letters, length)
                ]
            if self._options.count_hsps:
                n_hsps = len(numbered)
                numbered = [replace(one, n_hsps=n_hsps) for one in self._admitted(numbered, length)]
            if numbered:
                listed[subject] = numbered
        return listed

    def _admitted(self, numbered: list[ListedAlignment], length: int) -> list[ListedAlignment]:
        """The alignments of a subject of this length whose numbers are listed."""
        return [one for one in numbered if self._limits.admits_number(one.number, length, one.evalue)]

    def _passes(self, one: ListedAlignment) -> bool:
        score = one.of_subject.score
        bits = None if self._limits.min_bits is None else self._significance.bits(np.array([score]))
        return self._limits.passes(score, None if bits is None else bits[0], one.evalue, None)

    # --- what the alignments of candidates need ---

    def residues(self, subjects: SubjectIndex) -> Lengths:
        """The lengths of subjects in residues, as the statistics count them."""
        return self._significance.lengths(subjects)

    def comparisons(self, prepared: PreparedQuery) -> list[Comparison]:
        """The comparisons of a query, in order of preference among equal scores."""
        return list(product(prepared.frames, self._options.subject_frames))

    def align(
        self,
        prepared: PreparedQuery,
        comparison: Comparison,
        block: ScoreBlock,
        most: int,
        floor: int | NDArray[np.int32],
        earlier: Sequence[Sequence[SubjectAlignment]],
    ) -> dict[int, list[SubjectAlignment]]:
        """See :meth:`SubjectAligner.align`."""
        n_letters = len(prepared.query)
        return dict(self._aligner.align(n_letters, comparison, block, most=most, floor=floor, earlier=earlier))

    def evalues(
        self,
        prepared: PreparedQuery,
        lengths: Lengths,
        alignments: Sequence[SubjectAlignment],
        rescored: Floats | None = None,
    ) -> list[float] | list[None]:
        """The E-values of alignments, adjusted for composition if those of the query are.

        ``lengths`` are those of their subjects in residues, and ``rescored`` the E-values of these in a sensitive
        search.
        """
        scores = np.array([one.score for one in alignments], dtype=np.int32)
        evalues = rescored
        if evalues is None:
            evalues = self._significance.evalues_with(lengths, scores, len(prepared.query))
        if evalues is None:
            return [None] * len(scores)
        if prepared.adjustment is not None:
            aligned = [one.alignment for one in alignments]
            evalues = adjusted_evalues(prepared.adjustment, evalues, scores, prepared.query, aligned)
        known: list[float] = evalues.tolist()
        return known

    def hits(self, prepared: PreparedQuery, best: ReportedSubjects) -> tuple[Hit, ...]:
        """The hits of these subjects, one for each listed alignment."""
        listed = [
            (rank, subject, hsp, one)
            for rank, subject in enumerate(best.subjects, 1)
            for hsp, one in enumerate(best.alignments[subject], 1)
        ]
        scores = np.array([one.of_subject.score for *_, one in listed], dtype=np.int32)
        lengths = self._database.lengths(np.array([subject for _, subject, *_ in listed], dtype=np.uint32)).tolist()
        bits = self._significance.bits(scores)
        return tuple(
            Hit(
                rank=rank,
                subject_index=subject,
                subject_header=self._database.header(subject),
                subject_length=lengths[row],
                score=one.of_subject.score,
                bits=None if bits is None else bits[row],
                evalue=one.evalue,
                strand=one.of_subject.strand,
                alignment=one.of_subject.alignment,
                hsp=hsp,
                query_frame=one.of_subject.query_frame,
                subject_frame=one.of_subject.subject_frame,
                query_header=prepared.query.header,
                number=one.number,
                masked_evalue=best.masked_evalues.get(subject),
                n_hsps=one.n_hsps,
            )
            for row, (rank, subject, hsp, one) in enumerate(listed)
        )


def _rank(subject: int, first: ListedAlignment) -> Rank:
    return 0.0 if first.evalue is None else first.evalue, -first.of_subject.score, subject


@dataclass(frozen=True)
class _Aligned:
    """An alignment with its E-value and its place in the order: comparison, then its number in the comparison."""

    evalue: float | None
    comparison: int
    place: int
    alignment: SubjectAlignment

    @cached_property
    def key(self) -> tuple[float, int, int, int]:
        return 0.0 if self.evalue is None else self.evalue, -self.alignment.score, self.comparison, self.place


def _chained(prepared: PreparedQuery, subject: int, several: list[_Aligned]) -> list[_Aligned]:
    """The alignments of a subject with the E-values of their chains, best first."""
    chaining = prepared.threshold.chaining
    assert chaining is not None
    adjusted = [0.0 if one.evalue is None else one.evalue for one in several]
    evalues = chaining.evalues(subject, len(prepared.query), [one.alignment for one in several], adjusted)
    chained = [replace(one, evalue=evalue) for one, evalue in zip(several, evalues, strict=True)]
    return sorted(chained, key=lambda one: one.key)


def _judged(several: list[_Aligned], n_judged: int) -> list[_Aligned]:
    """The first ``n_judged`` alignments of each comparison, best first."""
    chosen = [one for one in several if one.place < n_judged]
    return sorted(chosen, key=lambda one: one.key) if len(chosen) > 1 else chosen


class _Alignments:
    """The alignments of some candidates of a query, which are computed as far as they are needed.

    ``found`` has the alignments of each candidate, and ``next_scores``, shape (n_comparisons, n_candidates), an upper
    bound of the score of its next alignment in each comparison, which is 0 if there is none that matters;
    ``n_aligned``, of the same shape, has the number of those that are known. ``lengths`` are those of the candidates in
    the database.
    """

    def __init__(
        self,
        selection: HitSelection,
        prepared: PreparedQuery,
        compared: list[ScoreBlock],
        candidates: RankedCandidates,
        lengths: Lengths,
    ) -> None:
        self._selection = selection
        self._prepared = prepared
        self._compared = compared
        self._candidates = candidates
        self._comparisons = selection.comparisons(prepared)
        self._found: list[list[_Aligned]] = [[] for _ in range(len(candidates))]
        self._residues = selection.residues(candidates.subject_index)
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
        floor = 1 if max_hsps == 1 else threshold.min_alignment_score
        for number in range(len(self._comparisons)):
            is_aligned = (self._next_scores[number] >= floor) & (~self._is_significant | (max_hsps > 1))
            if max_hsps == 1:
                is_aligned &= candidates.comparison == number
            self._extend(number, np.flatnonzero(is_aligned), max_hsps, floor)
        size = 1
        most = self._n_judged
        while threshold.judges_further:
            judged = [_judged(several, n_judged) for several, n_judged in zip(self._found, most.tolist(), strict=True)]
            firsts = [several[0].key[0] if several else np.inf for several in judged]
            lasts = [several[max_hsps - 1] if len(several) >= max_hsps else None for several in judged]
            farthest = threshold.farthest(listed, firsts, wanted)
            lowest = threshold.min_next_scores(
                self._residues,
                self._next_scores.max(axis=0),
                np.array(firsts),
                np.array([np.inf if last is None else last.key[0] for last in lasts]),
                farthest,
            )
            self._next_scores[self._n_aligned >= most] = 0
            # An alignment with the E-value and the score of the last one precedes it if its comparison does.
            equal = np.array([0 if last is None else last.alignment.score for last in lasts], dtype=np.int32)
            of_last = np.array([0 if last is None else last.comparison for last in lasts])
            floors = [
                np.where(number < of_last, np.minimum(lowest, equal), lowest)
                for number in range(len(self._next_scores))
            ]
            further = [
                np.flatnonzero((scores > 0) & (scores >= floor))
                for scores, floor in zip(self._next_scores, floors, strict=True)
            ]
            if not any(rows.size for rows in further):
                return
            for number, rows in enumerate(further):
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
        subjects = self._candidates.subject_index[rows]
        known = [[one.alignment for one in self._found[row] if one.comparison == number] for row in rows.tolist()]
        earlier = known if any(known) else []
        block = ScoreBlock(subjects, self._next_scores[number, rows], within=self._compared[number].within)
        comparison = self._comparisons[number]
        found = self._selection.align(self._prepared, comparison, block, most, floor, earlier)
        for row, subject, before in zip(rows.tolist(), subjects.tolist(), known, strict=True):
            several = found[subject]
            self._next_scores[number, row] = several[-1].score if len(several) == most else 0
            if most_in_all is not None:
                del several[max(0, int(most_in_all[row]) - len(before)) :]
            self._n_aligned[number, row] += len(several)
        n_found = [len(found[subject]) for subject in subjects.tolist()]
        rescored = None
        if self._prepared.threshold.of_search.is_rescored and self._candidates.evalue is not None:
            rescored = np.repeat(self._candidates.evalue[rows], n_found)
        aligned = [one for subject in subjects.tolist() for one in found[subject]]
        lengths = np.repeat(self._residues[rows], n_found)
        evalues: Iterator[float | None] = iter(self._selection.evalues(self._prepared, lengths, aligned, rescored))
        for row, subject, before in zip(rows.tolist(), subjects.tolist(), known, strict=True):
            for place, one in enumerate(found[subject], len(before)):
                self._found[row].append(_Aligned(next(evalues), number, place, one))

    def in_order(self) -> list[list[_Aligned]]:
        """The alignments of each candidate, best first; those of a comparison that are not judged follow the others, in
        the order of their scores.
        """
        in_order = []
        for several, n_judged in zip(self._found, self._n_judged.tolist(), strict=True):
            judged = _judged(several, n_judged)
            if len(judged) < len(several):
                others = [one for one in several if one.place >= n_judged]
                judged += sorted(others, key=lambda one: one.key[1:])
            in_order.append(judged)
        return in_order
