"""The list of a query by its definition: every alignment of every subject, then the documented rules, one by one.

:class:`CompleteLists` computes, for the subjects of one database, all alignments of a query: each subject on each
strand and frame, each declumped alignment down to the lowest score, with its E-value before and after the adjustment
for composition. Nothing is left out on the way, so there is no threshold to decide. :func:`expected_list` applies the
options to a complete list in plain Python.

The rules (docs/reference/filters.md, low-complexity.md, iterations.md; docs/design/statistics.md):

- Scores are those of the reference engine; alignments those of the traceback, whose own tests compare it with complete
  matrices. Both must agree in the best score of every pair.
- A subject of a softly masked query counts if its best score with the masked profile, on any strand or frame, is above
  0 and reaches ``evalue``.
- The alignments of a subject are in the order of their E-values, then of descending score, then of comparisons
  (strands, or pairs of frames), then of the traceback. The first ``max_hsps`` are tested: those that pass ``evalue``,
  ``min_score``, ``min_bits`` and the filters on alignments are reported. No further one moves up. Where E-values are
  adjusted, the alignments of long sequences beyond a stated number, which depends on the lengths, come last.
- A subject of a sensitive search whose best score has an E-value of at most 1,000, or of ``evalue`` if that is larger,
  has the E-value of its Forward score (docs/design/sensitivity.md), adjusted for the composition of its best alignment.
- The first alignment that is reported decides E-value and score of its subject. Subjects are in the order of E-values,
  then of descending score, then of their index; ``top`` and ``ties`` cut this list.
- A round of an iterated search includes the alignments, of that uncut list, that reach the inclusion E-value; of a
  softly masked query, only those of subjects whose score with the masked profile reaches it, too.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from swsearch import _native
from swsearch.deterministic import exp, log
from swsearch.engine.reference import local_scores
from swsearch.hits.hit import Alignment, Hit
from swsearch.hits.limits import Limits
from swsearch.hits.traceback import on_bases
from swsearch.query.columns import column_model, implied_model
from swsearch.query.composition import EvalueAdjustment, PairAdjustment, ProfileAdjustment
from swsearch.query.estimation import estimated_query
from swsearch.query.multiple_alignment import anchored_rows
from swsearch.query.profile import PositionSpecificQuery, SubjectRecord
from swsearch.scoring.karlin_altschul import Statistics
from swsearch.scoring.scheme import ScoringScheme
from swsearch.search.frames import Frame, Preparer
from swsearch.search.options import SearchOptions
from swsearch.search.significance import scheme_statistics
from swsearch.sequences.alphabet import PROTEIN, Alphabet
from swsearch.sequences.record import SequenceRecord
from swsearch.typing import Codes

MOST = 2**31 - 1
MOST_SCORE = 1 << 17
"""More than any score of the test's databases."""
JUDGED_CELLS, FEWEST_JUDGED = 1 << 24, 2
"""Cells of the alignments that are judged in one comparison, and their smallest number (docs/design/statistics.md)."""
RESCORED_EVALUE = 1000.0
"""Largest E-value of a candidate of a sensitive search."""
MOST_INCLUDED = 10_000
"""Subjects that a round includes (docs/reference/iterations.md)."""


@dataclass(eq=False)
class Comparison:
    """A query frame with one frame of all subjects.

    Attributes
    ----------
    query : Frame
    subject_frame : int
    subjects : list of array
        The residues of each subject in this frame.
    scores, screens : list of int
        The score of each subject with the profile, and with the masked one; they are the same without a soft mask.
    """

    query: Frame
    subject_frame: int
    subjects: list[Codes]
    scores: list[int]
    screens: list[int]


class OneAlignment:
    """One alignment of one subject in a comparison, as the traceback gives it.

    Attributes
    ----------
    of : AllAlignments
    subject, comparison : int
    order : int
        Its number among the alignments of this subject in this comparison.
    row : tuple
        Score, query start and end, subject start and end, CIGAR, and the counts of :class:`Alignment`.
    """

    __slots__ = ("_alignment", "comparison", "of", "order", "row", "subject")

    def __init__(self, of: AllAlignments, subject: int, comparison: int, order: int, row: tuple[Any, ...]) -> None:
        self.of, self.subject, self.comparison, self.order, self.row = of, subject, comparison, order, row
        self._alignment: Alignment | None = None

    @property
    def score(self) -> int:
        return int(self.row[0])

    @property
    def alignment(self) -> Alignment:
        """The alignment with coordinates on the given sequences."""
        if self._alignment is None:
            self._alignment = self._as_given()
        return self._alignment

    @property
    def parts(self) -> tuple[Codes, Codes]:
        """The aligned residues of both frames."""
        compared, row = self.of.comparisons[self.comparison], self.row
        return compared.query.codes[row[1] : row[2]], compared.subjects[self.subject][row[3] : row[4]]

    def _as_given(self) -> Alignment:
        compared = self.of.comparisons[self.comparison]
        _, start, end, subject_start, subject_end, cigar, *counts = self.row
        letters = self.of.alphabet.decode(self.parts[1])
        frame = compared.query
        if frame.strand == "minus" and not frame.number:
            start, end = len(frame.codes) - end, len(frame.codes) - start
        identities, positives, columns, openings, gaps = counts
        ends = (start, end, subject_start, subject_end)
        found = Alignment(*ends, cigar, identities, positives, columns, openings, gaps, letters)
        length = self.of.subject_lengths[self.subject]
        return on_bases(found, frame.codes, frame.number, self.of.n_letters, compared.subject_frame, length)

    def essence(self, evalue: float) -> tuple[Any, ...]:
        """What a hit must have in common with it."""
        compared = self.of.comparisons[self.comparison]
        statistics = self.of.statistics
        bits = None if statistics is None else float(statistics.bits(np.array([self.score]))[0])
        known = None if statistics is None else evalue
        forward = None if self.of.forward_bits is None else float(self.of.forward_bits[self.subject])
        frames = (compared.query.strand, compared.query.number, compared.subject_frame)
        return self.subject, self.score, bits, forward, known, *frames, *placed(self.alignment)


Placed = tuple[float, int, int, int, OneAlignment]
"""An alignment with its place among those of its subject: E-value, negative score, comparison, order."""


def placed(alignment: Alignment) -> tuple[Any, ...]:
    """Coordinates and letters of an alignment."""
    one = alignment
    ends = (one.query_start, one.query_end, one.subject_start, one.subject_end)
    return *ends, one.cigar, one.identities, one.columns, one.subject_letters, one.query_letters


def essence(hit: Hit) -> tuple[Any, ...]:
    """The fields of a reported hit that :attr:`OneAlignment.essence` has."""
    frames = (hit.strand, hit.query_frame, hit.subject_frame)
    return hit.subject_index, hit.score, hit.bits, hit.forward_bits, hit.evalue, *frames, *placed(hit.alignment)


@dataclass(eq=False)
class AllAlignments:
    """All alignments of one query, without E-values."""

    searched: SequenceRecord
    n_letters: int
    alphabet: Alphabet
    statistics: Statistics | None
    subject_lengths: list[int]
    comparisons: list[Comparison]
    by_subject: list[list[OneAlignment]]
    forward_bits: NDArray[np.float64] | None = None

    def best_score(self, subject: int) -> int:
        """The highest score of a subject's alignments."""
        return max(compared.scores[subject] for compared in self.comparisons)


@dataclass(eq=False)
class CompleteList:
    """All alignments of one query with E-values.

    Attributes
    ----------
    alignments : list of list of Placed
        For each subject, in their order.
    scores, screens, evalues, screen_evalues : array, shape (n_comparisons, n_subjects)
        The best score of the profile and that of the masked profile, and their E-values without adjustment, which are 0
        if there are none.
    """

    alignments: list[list[Placed]]
    scores: NDArray[np.int64]
    screens: NDArray[np.int64]
    evalues: NDArray[np.float64]
    screen_evalues: NDArray[np.float64]
    is_masked: bool


class CompleteLists:
    """The complete lists of queries against the subjects of one database.

    Parameters
    ----------
    records : sequence of (str, str)
        Header and letters of the subjects.
    alphabet : Alphabet
        That of the database.
    scheme_options : dict
        Options of scoring and translation, the same in all searches.
    floor : int
        Lowest score of an alignment. Above 1, a list is complete only for options that no lower score can pass.
    """

    def __init__(
        self, records: Sequence[tuple[str, str]], alphabet: Alphabet, scheme_options: dict[str, Any], floor: int = 1
    ) -> None:
        self.records = records
        options = SearchOptions(**scheme_options)
        self.aligned = options.aligned_alphabet(alphabet)
        self.scheme: ScoringScheme = options.scheme(self.aligned)
        found = scheme_statistics(self.scheme)
        self.statistics = found if isinstance(found, Statistics) else None
        self.floor = floor
        self.lengths = [len(letters) for _, letters in records]
        codes = [alphabet.encode(letters) for _, letters in records]
        self.frames = {0: codes}
        if options.subject_frames != (0,):
            assert options.code is not None
            self.frames = {
                frame: [options.code.translate(one, frame) for one in codes] for frame in options.subject_frames
            }
        self._all: dict[tuple[Any, ...], AllAlignments] = {}
        self._lists: dict[tuple[Any, ...], CompleteList] = {}

    # --- E-values ---

    def query_residues(self, n_letters: int, options: SearchOptions) -> int:
        return n_letters if options.query_frames == (0,) else n_letters // 3

    def evalues(self, scores: Sequence[int], subjects: Sequence[int], n_letters: int, options: SearchOptions) -> Any:
        """The E-values of scores of subjects, not adjusted; 0 without statistics."""
        if self.statistics is None:
            return np.zeros(len(scores))
        space = options.dbsize or sum(self.lengths)
        lengths = np.array([self.lengths[subject] for subject in subjects], np.uint32)
        if options.subject_frames != (0,):
            space, lengths = max(1, space // 3), np.maximum(lengths // 3, 1)
        n_query_frames = len(options.query_frames)
        if options.query_frames == (0,):
            n_query_frames = len(options.strands(self.aligned))
        n_comparisons = n_query_frames * len(options.subject_frames)
        residues = self.query_residues(n_letters, options)
        return self.statistics.evalue(np.array(scores, np.int32), residues, lengths, space, n_comparisons)

    def residues_of(self, subject: int, options: SearchOptions) -> int:
        length = self.lengths[subject]
        return length if options.subject_frames == (0,) else max(length // 3, 1)

    def _adjustment(self, query: SequenceRecord, options: SearchOptions) -> EvalueAdjustment | None:
        if self.aligned is not PROTEIN or self.statistics is None:
            return None
        if isinstance(query, PositionSpecificQuery):
            return ProfileAdjustment.of(query, self.scheme.matrix, self.statistics) if options.iterations > 1 else None
        return PairAdjustment.of(self.scheme.matrix, self.statistics) if options.composition == "adjust" else None

    # --- alignments ---

    def all_alignments(self, query: SequenceRecord, options: SearchOptions) -> AllAlignments:
        """Every alignment of a query, which may be a profile."""
        makes = Preparer(options, self.scheme)
        searched = makes.as_searched(query)
        frames = makes.frames(searched)
        comparisons = [
            self._comparison(frame, subject_frame) for frame, subject_frame in product(frames, options.subject_frames)
        ]
        found = AllAlignments(searched, len(query), self.aligned, self.statistics, self.lengths, comparisons, [])
        found.by_subject = [[] for _ in self.records]
        for number, compared in enumerate(comparisons):
            profile, subjects = compared.query.profile, compared.subjects
            lengths = np.array([len(one) for one in subjects], np.uint32)
            starts = np.cumsum(lengths, dtype=np.uint64) - lengths.astype(np.uint64)
            rows = _native.align_local(
                np.ascontiguousarray(compared.query.codes), np.ascontiguousarray(profile.rows, dtype=np.int32),
                np.ascontiguousarray(profile.table), profile.gap.open, profile.gap.extend, self.aligned.identity_table,
                np.concatenate([*subjects, np.zeros(0, np.uint8)]), starts, lengths, most=MOST, floor=self.floor,
            )  # fmt: skip
            for subject, several in enumerate(rows):
                best = several[0][0] if several else 0
                wanted = compared.scores[subject]
                assert best == wanted or (not several and wanted < self.floor), (subject, number, best, wanted)
                found.by_subject[subject] += [
                    OneAlignment(found, subject, number, order, row) for order, row in enumerate(several)
                ]
        return found

    def _comparison(self, frame: Frame, subject_frame: int) -> Comparison:
        subjects = self.frames[subject_frame]
        scores = _scores(frame.profile, subjects)
        screens = scores if frame.masked_profile is None else _scores(frame.masked_profile, subjects)
        return Comparison(frame, subject_frame, subjects, scores, screens)

    def complete(self, number: tuple[str, int], query: SequenceRecord, options: SearchOptions) -> CompleteList:
        """The complete list of a query or of its profile; ``number`` identifies the query."""
        profile = query.scores.tobytes() if isinstance(query, PositionSpecificQuery) else b""
        is_biased = options.composition == "bias"
        treated = (number, profile, options.mask, options.mask_mode, options.strand, is_biased, options.sensitive)
        if treated not in self._all:
            self._all[treated] = self.all_alignments(query, options)
        found = self._all[treated]
        if options.sensitive:
            return self._in_context(found, options)
        adjustment = self._adjustment(query, options)
        key = (*treated, adjustment is None, options.dbsize)
        if key not in self._lists:
            self._lists[key] = self._with_evalues(found, adjustment, options)
        return self._lists[key]

    def _with_evalues(
        self, found: AllAlignments, adjustment: EvalueAdjustment | None, options: SearchOptions
    ) -> CompleteList:
        flat = [one for several in found.by_subject for one in several]
        scores, subjects = [one.score for one in flat], [one.subject for one in flat]
        evalues = self.evalues(scores, subjects, found.n_letters, options)
        if adjustment is not None and flat:
            parts = list(zip(*(one.parts for one in flat), strict=True))
            evalues = adjustment.adjusted(evalues, np.array(scores, np.int32), parts[0], parts[1])
        alignments: list[list[Placed]] = [[] for _ in self.records]
        for one, evalue in zip(flat, evalues.tolist(), strict=True):
            alignments[one.subject].append((evalue, -one.score, one.comparison, one.order, one))
        for subject, several in enumerate(alignments):
            residues = self.residues_of(subject, options) * self.query_residues(found.n_letters, options)
            n_judged = MOST if adjustment is None else max(FEWEST_JUDGED, JUDGED_CELLS // max(residues, 1))
            several.sort(key=lambda one: (one[3] >= n_judged, *one[1 if one[3] >= n_judged else 0 : 4]))
        everything = range(len(self.records))

        def evalues_of(rows: list[list[int]]) -> NDArray[np.float64]:
            return np.array([self.evalues(row, everything, found.n_letters, options) for row in rows])

        is_masked = any(compared.query.masked_profile is not None for compared in found.comparisons)
        best = [compared.scores for compared in found.comparisons]
        screens = [compared.screens for compared in found.comparisons]
        return CompleteList(
            alignments, np.array(best), np.array(screens), evalues_of(best), evalues_of(screens), is_masked
        )

    def _in_context(self, found: AllAlignments, options: SearchOptions) -> CompleteList:
        """The list of a sensitive search: the best alignment of each candidate."""
        assert isinstance(found.searched, PositionSpecificQuery)
        assert self.statistics is not None
        (compared,) = found.comparisons
        scores = np.array(compared.scores)
        of_scores = self.evalues(compared.scores, range(len(scores)), found.n_letters, options)
        is_candidate = (scores > 0) & (of_scores <= max(options.evalue, RESCORED_EVALUE))
        space = options.dbsize or sum(self.lengths)
        of_forward = forward_evalues(found.searched, self.scheme, compared.subjects, of_scores, space)
        evalues, found.forward_bits = np.where(is_candidate, of_forward[0], np.inf), of_forward[1]
        share = 1.0 if found.searched.has_relatives else 0.5
        adjustment = ProfileAdjustment.of(found.searched, self.scheme.matrix, self.statistics, share)
        assert adjustment is not None
        alignments: list[list[Placed]] = [[] for _ in self.records]
        for subject in np.flatnonzero(is_candidate).tolist():
            best = found.by_subject[subject][0]
            given = evalues[[subject]], np.array([best.score], np.int32)
            (evalue,) = adjustment.adjusted(*given, *([part] for part in best.parts)).tolist()
            alignments[subject] = [(evalue, -best.score, 0, 0, best)]
        of_candidates = np.where(is_candidate, 0.0, np.inf)
        return CompleteList(alignments, scores[None], scores[None], evalues[None], of_candidates[None], False)

    # --- the list of a search ---

    def searched(self, options: SearchOptions) -> list[int]:
        """The subjects that pass the filters on subjects."""
        filters = options
        found = []
        for subject, (header, letters) in enumerate(self.records):
            is_long = filters.min_length is None or len(letters) >= filters.min_length
            is_short = filters.max_length is None or len(letters) <= filters.max_length
            if is_long and is_short and _has(filters.id_pattern, header):
                found.append(subject)
        return found

    def first_of(self, several: list[Placed], options: SearchOptions) -> list[Placed]:
        """The alignments of a subject whose numbers are admitted; no untranslated subject is long."""
        if options.max_hsps is not None:
            return several[: options.max_hsps]
        if options.subject_frames == (0,) or self.statistics is None:
            return several[:1]
        return several[:1] + [one for one in several[1:] if one[0] <= min(options.evalue, 10.0)]

    def uncut(
        self, complete: CompleteList, query: SequenceRecord, options: SearchOptions
    ) -> tuple[list[list[Placed]], int]:
        """All subjects that can be reported, each with its reported alignments; and the number that passed by score."""
        names = ("min_identity", "min_query_coverage", "min_subject_coverage", "min_alignment_length")
        limits = Limits(1, "cut", 1.0, **{name: getattr(options, name) or 0 for name in names})
        lowest = options.min_score or 1
        if options.min_bits is not None:
            assert self.statistics is not None
            bits = self.statistics.bits(np.arange(MOST_SCORE)) >= options.min_bits
            lowest = max(lowest, int(np.flatnonzero(bits)[0]))
        # The best comparison has the highest score and the lowest E-value.
        shown = (complete.screens.max(axis=0) > 0) & (complete.screen_evalues.min(axis=0) <= options.evalue)
        by_score = (complete.evalues.min(axis=0) <= options.evalue) & (complete.scores.max(axis=0) >= lowest)
        listed = []
        searched = self.searched(options)
        if isinstance(query, SubjectRecord):
            place = (len(query), query.subject_index)
            searched = [subject for subject in searched if (self.lengths[subject], subject) < place]
        for subject in searched:
            if not shown[subject]:
                continue
            several = self.first_of(complete.alignments[subject], options)
            several = [one for one in several if one[0] <= options.evalue and -one[1] >= lowest]
            if limits.filter_alignments:
                length = self.lengths[subject]
                several = [one for one in several if limits.passes_alignment(one[-1].alignment, len(query), length)]
            if several:
                listed.append(several)
        listed.sort(key=lambda several: (several[0][:2], several[0][-1].subject))
        return listed, int((shown & by_score)[searched].sum())


def forward_evalues(
    query: PositionSpecificQuery, scheme: ScoringScheme, subjects: list[Codes], of_scores: Any, space: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The E-values of subjects by their Forward scores and ``of_scores``, before any adjustment; and these in bits."""
    model = column_model()
    of_query = implied_model(query, scheme.matrix)
    lengths = np.array([len(one) for one in subjects], np.uint32)
    starts = np.cumsum(lengths, dtype=np.uint64) - lengths
    odds = model.odds(np.concatenate([*subjects, np.zeros(0, np.uint8)]), starts, lengths)
    forward, of_reversed = odds.forward(of_query), odds.forward(of_query.reversed)
    of_decoys = model.decoy_odds.forward(of_query) - log(model.decoy_odds.lengths.astype(np.float64))
    location = float(np.sort(of_decoys)[len(of_decoys) // 2]) - 0.36651292058166435 / 0.9  # -ln ln 2: a Gumbel median
    of_scores = np.maximum(log(of_scores), -745.0)
    of_space = log(space / 350.0)

    def evalues(excess: NDArray[np.float64]) -> NDArray[np.float64]:
        k, of_several = 2.0 if query.has_relatives else 4.0, 1.0 if query.model is None else 3.0
        mean = exp((k * (of_space - 0.9 * excess) + of_scores) / (k + 1.0))
        surplus = of_several if query.has_relatives else 13.0
        share = exp(0.7 * np.minimum(log(mean / (space / 350.0)), 0.0))
        found: NDArray[np.float64] = mean / surplus * (1.0 + (surplus - 1.0) * share)
        return found

    of_length = log(lengths.astype(np.float64))
    usual = of_length + location
    turned = of_reversed - usual
    of_order = evalues(forward - usual - turned + 2.0 - np.maximum(turned - 2.5, 0.0))
    return np.maximum(evalues(forward - usual), of_order), (forward - of_length) / 0.6931471805599453


def _scores(profile: Any, subjects: list[Codes]) -> list[int]:
    """The score of each subject, by the reference engine's recurrence; subjects of similar lengths are together."""
    order = sorted(range(len(subjects)), key=lambda subject: len(subjects[subject]))
    scores = [0] * len(subjects)
    for first in range(0, len(order), 64):
        chosen = order[first : first + 64]
        for subject, score in zip(chosen, local_scores(profile, [subjects[one] for one in chosen]), strict=True):
            scores[subject] = score
    return scores


def _has(pattern: str | None, header: str) -> bool:
    return pattern is None or re.search(pattern, header.split(maxsplit=1)[0]) is not None


@dataclass(frozen=True, eq=False)
class ExpectedList:
    """What a search must report of one query.

    Attributes
    ----------
    subjects : list of list of Placed
        The listed subjects with their reported alignments.
    rounds : list of int
        For each, the round in which it was included first.
    n_passed, n_rounds, converged
        As in :class:`swsearch.hits.result.QueryResult`.
    n_complete : int
        Number of subjects of the list before it was cut.
    """

    subjects: list[list[Placed]]
    rounds: list[int]
    n_passed: int
    n_rounds: int
    converged: bool
    n_complete: int


def cut(subjects: list[list[Placed]], top: int, ties: str) -> list[list[Placed]]:
    """The best ``top`` subjects, or also those that equal the last of these."""
    n_kept = min(top, len(subjects))
    if ties == "all" and n_kept > 0:
        last = subjects[n_kept - 1][0]
        while n_kept < len(subjects):
            one = subjects[n_kept][0]
            if one[:2] != last[:2]:
                break
            n_kept += 1
    return subjects[:n_kept]


def expected_list(
    lists: CompleteLists,
    number: tuple[str, int],
    query: SequenceRecord,
    options: SearchOptions,
    last: SearchOptions | None = None,
) -> ExpectedList:
    """The list of a query.

    Parameters
    ----------
    lists : CompleteLists
    number : (str, int)
        Identifies the query among those of ``lists``.
    query : SequenceRecord
        As given.
    options : SearchOptions
        Those of the search.
    last : SearchOptions, optional
        Those by which its last list is narrowed.
    """
    entered: dict[int, int] = {}
    searched, n_rounds, converged = query, 0, False
    while True:
        n_rounds += 1
        complete = lists.complete(number, searched, options)
        listed, n_passed = lists.uncut(complete, query, options)
        if options.iterations == 1:
            break
        masked = complete.screen_evalues.min(axis=0) if complete.is_masked else np.zeros(len(lists.records))
        included = [
            one
            for several in listed[:MOST_INCLUDED]
            for one in several
            if max(one[0], masked[one[-1].subject]) <= options.inclusion_evalue
        ]
        new = {one[-1].subject for one in included} - entered.keys()
        entered.update(dict.fromkeys(new, n_rounds))
        if not new or n_rounds == options.iterations:
            converged = not new
            break
        searched = _profile(lists, query, options, included)
    if last is not None:
        listed, n_passed = lists.uncut(complete, query, last)
    final = options if last is None else last
    kept = cut(listed, final.top, final.ties)
    rounds = [entered.get(several[0][-1].subject, 0) for several in kept]
    return ExpectedList(kept, rounds, n_passed, n_rounds, converged, len(listed))


def _profile(
    lists: CompleteLists, query: SequenceRecord, options: SearchOptions, included: list[Placed]
) -> PositionSpecificQuery:
    """The profile of the next round (docs/reference/profiles.md), by the estimation that has tests of its own."""
    masked = Preparer(options, lists.scheme).as_searched(query).codes
    hits = cast(Sequence[Hit], [SimpleNamespace(alignment=one[-1].alignment) for one in included])
    rows = anchored_rows(len(masked), hits)
    return estimated_query(replace(query, codes=masked), rows, lists.scheme.matrix, contexts=options.context_library())


def lowest_score(lists: CompleteLists, n_letters: int, options: SearchOptions) -> int:
    """The lowest score with which some subject has an E-value of at most that of the options; found one by one."""
    if lists.statistics is None or math.isinf(options.evalue):
        return 1
    scores = list(range(1, 4000))
    by_length = {length: subject for subject, length in enumerate(lists.lengths)}
    lowest = len(scores)
    for subject in by_length.values():
        evalues = lists.evalues(scores, [subject] * len(scores), n_letters, options)
        passing = np.flatnonzero(evalues <= options.evalue)
        if passing.size:
            lowest = min(lowest, int(passing[0]) + 1)
    return lowest
