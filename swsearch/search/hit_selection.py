"""From candidates to hits: which subjects of a query are reported, in which order and with which alignments.

Candidates are the subjects whose scores pass the E-value cut. :class:`HitSelection` ranks them
(:mod:`swsearch.search.ranking`). If a filter judges alignments, or E-values are adjusted for the composition of what is
aligned, as many candidates are aligned as it takes to know the best ones; otherwise the best ones alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch.database.reader import PackedDatabase
from swsearch.hits.hit import Hit
from swsearch.hits.score_block import ScoreBlock
from swsearch.search.alignments import SubjectAligner, SubjectAlignment
from swsearch.search.evalue_adjustment import adjusted_evalues
from swsearch.search.options import SearchOptions
from swsearch.search.prepared_query import PreparedQuery
from swsearch.search.ranking import RankedCandidates, cut, cut_passing, in_order
from swsearch.search.significance import Significance
from swsearch.typing import Floats, SubjectIndex

MOST_INCLUDED: Final = 10_000
"""Largest number of subjects that a round of an iterated search includes (:mod:`swsearch.search.rounds`)."""


@dataclass(frozen=True, eq=False)
class ReportedSubjects:
    """The subjects of a query that are reported.

    Attributes
    ----------
    subjects : list of int
        Best first.
    evalues : float64 array or None
        The E-value of each subject's best alignment, if there are E-values.
    n_passed : int
        Number of subjects that passed the E-value cut by their scores.
    alignments : dict of int to list of SubjectAlignment
        The alignments of each of these subjects, and perhaps of others.
    is_certain : bool
        Whether no subject beyond a provisional cut may be better.
    """

    subjects: list[int]
    evalues: Floats | None
    n_passed: int
    alignments: dict[int, list[SubjectAlignment]]
    is_certain: bool = True


class HitSelection:
    """Chooses and describes the hits of queries.

    Parameters
    ----------
    database : PackedDatabase
    options : SearchOptions
    significance : Significance
    aligner : SubjectAligner
    """

    def __init__(
        self,
        database: PackedDatabase,
        options: SearchOptions,
        significance: Significance,
        aligner: SubjectAligner,
    ) -> None:
        self._database = database
        self._options = options
        self._significance = significance
        self._aligner = aligner

    def best(
        self, prepared: PreparedQuery, compared: list[ScoreBlock], candidates: RankedCandidates
    ) -> ReportedSubjects:
        """The subjects that are reported.

        Parameters
        ----------
        prepared : PreparedQuery
        compared : list of ScoreBlock
            The candidates of each comparison with their scores, ordered by query frame, then by subject frame.
        candidates : RankedCandidates
            Those that can be among the best, each with its best comparison.
        """
        options = self._options
        n_letters = len(prepared.query)
        evalues = self._significance.evalues(candidates.subject_index, candidates.score, n_letters)
        ordered = in_order(candidates, evalues, options.evalue)
        top = options.top
        if options.iterations > 1 and ordered.evalues is not None:
            n_included = int(np.searchsorted(ordered.evalues, options.inclusion_evalue, side="right"))
            top = max(top, min(n_included, MOST_INCLUDED))
        if not options.alignment_filter and prepared.adjustment is None:
            ranking = cut(candidates, ordered, top, options.ties)
            alignments = self._align(prepared, compared, candidates, ranking.rows)
            subjects = candidates.subject_index[ranking.rows].tolist()
            return ReportedSubjects(subjects, ranking.evalues, ranking.n_passed, alignments)
        passing: dict[int, list[SubjectAlignment]] = {}

        def judge(rows: NDArray[np.intp]) -> tuple[RankedCandidates, Floats | None]:
            passing.update(self._passing(n_letters, self._align(prepared, compared, candidates, rows)))
            judged = candidates.rows(rows[[subject in passing for subject in candidates.subject_index[rows].tolist()]])
            best = [passing[subject][0] for subject in judged.subject_index.tolist()]
            scores = np.array([one.score for one in best], dtype=np.int32)
            known = None
            if evalues is not None and len(judged) == len(rows) and bool((scores == judged.score).all()):
                known = evalues[rows]
            judged_evalues = self._evalues(prepared, judged.subject_index, scores, best, known)
            return replace(judged, score=scores), judged_evalues

        passed, ranking = cut_passing(candidates, ordered, top, options.ties, judge, options.evalue)
        is_certain = True
        if prepared.provisional_evalue is not None and ranking.evalues is not None:
            is_certain = int(np.count_nonzero(ranking.evalues <= prepared.provisional_evalue)) >= options.top
        subjects = passed.subject_index[ranking.rows].tolist()
        return ReportedSubjects(subjects, ranking.evalues, ranking.n_passed, passing, is_certain)

    def _evalues(
        self,
        prepared: PreparedQuery,
        subjects: SubjectIndex,
        scores: NDArray[np.int32],
        alignments: Sequence[SubjectAlignment],
        known: Floats | None = None,
    ) -> Floats | None:
        """The E-values of alignments, adjusted for composition if those of the query are.

        ``known`` are those without adjustment, if the caller has them.
        """
        evalues = self._significance.evalues(subjects, scores, len(prepared.query)) if known is None else known
        if evalues is None or prepared.adjustment is None:
            return evalues
        aligned = [one.alignment for one in alignments]
        return adjusted_evalues(prepared.adjustment, evalues, scores, prepared.query, aligned)

    def _passing(
        self, n_letters: int, alignments: dict[int, list[SubjectAlignment]]
    ) -> dict[int, list[SubjectAlignment]]:
        """The alignments that pass the filter, for each subject that has such alignments."""
        alignment_filter = self._options.alignment_filter
        if not alignment_filter:
            return alignments
        passing = {}
        for subject, several in alignments.items():
            length = self._database.length(subject)
            accepted = [one for one in several if alignment_filter.passes(one.alignment, n_letters, length)]
            if accepted:
                passing[subject] = accepted
        return passing

    def _align(
        self, prepared: PreparedQuery, compared: list[ScoreBlock], candidates: RankedCandidates, rows: NDArray[np.intp]
    ) -> dict[int, list[SubjectAlignment]]:
        """The alignments of the candidates at ``rows``: one of the best comparison, or ``max_hsps`` of all."""
        comparisons = list(product(prepared.frames, self._options.subject_frames))
        n_letters = len(prepared.query)
        if self._options.max_hsps > 1:
            subjects = candidates.subject_index[rows]
            chosen = [block.among(subjects) for block in compared]
            floor = self._significance.floor(n_letters)
            return self._aligner.align(n_letters, zip(comparisons, chosen, strict=True), floor)
        best = []
        for number in range(len(comparisons)):
            of_comparison = rows[candidates.comparison[rows] == number]
            subjects, scores = candidates.subject_index[of_comparison], candidates.score[of_comparison]
            best.append(ScoreBlock(subjects, scores, within=compared[number].within))
        return self._aligner.align(n_letters, zip(comparisons, best, strict=True), floor=1)

    def hits(self, prepared: PreparedQuery, best: ReportedSubjects) -> tuple[Hit, ...]:
        """The hits of these subjects: the first alignment of each, and its further ones that pass the E-value cut."""
        listed = [
            (rank, subject, hsp, one)
            for rank, subject in enumerate(best.subjects, 1)
            for hsp, one in enumerate(best.alignments[subject], 1)
        ]
        scores = np.array([one.score for *_, one in listed], dtype=np.int32)
        subjects = np.array([subject for _, subject, *_ in listed], dtype=np.uint32)
        lengths = self._database.lengths(subjects).tolist()
        bits = self._significance.bits(scores)
        evalues = best.evalues
        if len(listed) > len(best.subjects):
            evalues = self._evalues(prepared, subjects, scores, [one for *_, one in listed])
        return tuple(
            Hit(
                rank=rank,
                subject_index=subject,
                subject_header=self._database.header(subject),
                subject_length=lengths[row],
                score=one.score,
                bits=None if bits is None else bits[row],
                evalue=None if evalues is None else float(evalues[row]),
                strand=one.strand,
                alignment=one.alignment,
                hsp=hsp,
                query_frame=one.query_frame,
                subject_frame=one.subject_frame,
                query_header=prepared.query.header,
            )
            for row, (rank, subject, hsp, one) in enumerate(listed)
            if hsp == 1 or evalues is None or evalues[row] <= self._options.evalue
        )
