"""The search, step by step: profiles, scores, candidates, statistics, the top N, alignments, hits.

:class:`Searcher` holds what all queries of a run share (subjects, scheme, statistics, engine) and turns one query after
another into a :class:`swsearch.hits.result.QueryResult`. It computes; it neither stores nor prints. The steps stand in
modules of their own: ``search_subjects`` (the subjects), ``readings`` (the query's profiles), ``scoring`` (the engine),
``ranking`` and ``significance`` (the list), ``alignments``.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
from typing import cast

import numpy as np
from numpy.typing import NDArray

from swsearch import __version__
from swsearch.database.reader import PackedDatabase
from swsearch.engine.protocol import BackgroundEngine, EndsEngine, Forecast, Progress, ScoreEngine
from swsearch.errors import InputError
from swsearch.hits.hit import Hit
from swsearch.hits.result import DatabaseInfo, QueryResult, RunInfo, SearchStats
from swsearch.hits.score_block import ScoreBlock
from swsearch.query.position_specific import PositionSpecificQuery
from swsearch.query.profile import QueryProfile
from swsearch.scoring.matrix import matrix_text
from swsearch.search.alignments import Found, SubjectAligner
from swsearch.search.needs import QueryNeeds
from swsearch.search.options import SearchOptions
from swsearch.search.query_frames import Reader, Reading, reading_lengths
from swsearch.search.ranking import RankedCandidates, cut, cut_passing, in_order, merge_readings
from swsearch.search.score_batches import ScoreBatch, begin, in_proportion, results
from swsearch.search.search_subjects import SearchSubjects
from swsearch.search.significance import Significance
from swsearch.search.simulation import scheme_statistics
from swsearch.search.top_k_bound import TopKBound
from swsearch.sequences.genetic_code import CODON
from swsearch.sequences.record import SequenceRecord
from swsearch.statistics.karlin_altschul import Statistics
from swsearch.typing import Floats
from swsearch.words import counted

MAX_QUERY_LENGTH = 2**24
"""Longest query in residues: a score stays below 127 * 2**24, inside signed 32 bits."""

Observer = Callable[[int, RankedCandidates], None]
"""Takes a query's length and the score of every subject in its best reading."""


@dataclass(frozen=True, eq=False)
class _Asked:
    """One query on its way.

    Attributes
    ----------
    number : int
        Its place in the run.
    query : SequenceRecord
        As it is searched and reported.
    readings : list of Reading
    rule : TopKBound or None
    """

    number: int
    query: SequenceRecord
    readings: list[Reading]
    rule: TopKBound | None

    @property
    def profiles(self) -> list[QueryProfile]:
        """What the engine scores: the readings, then the screens of those that have one."""
        screens = [reading.screen for reading in self.readings if reading.screen is not None]
        return [reading.profile for reading in self.readings] + screens

    @property
    def rows(self) -> int:
        """Positions of all profiles."""
        return sum(profile.length for profile in self.profiles)


class Searcher:
    """Searches one database with one set of options and one engine. Not shared between threads.

    Parameters
    ----------
    database : PackedDatabase
        Open; stays the caller's.
    engine : ScoreEngine
        Open; stays the caller's.
    options : SearchOptions
    threads : int
        Threads that make alignments, at least 1.
    partition_residues : int, optional
        Residues handed to the engine at a time; decides memory and how often progress is told, never the hits.
    translating : callable, optional
        Called with the bases translated since the last call, where subjects are translated: before the first query.
    engine_choice : str
        Which engine this is, and why it was taken.

    Attributes
    ----------
    needs : QueryNeeds
        What queries must be, and what to say of others.
    query_alphabet : Alphabet
        What queries must be.
    scheme : ScoringScheme
    significance : Significance
    search_subjects : SearchSubjects
    observe : callable or None
        Set it to have it called for each query with its length and the scores of all subjects, those that decide what
        is found. The engine then cannot pass over subjects that score too little to be reported, and takes longer.

    Raises
    ------
    AlphabetMismatch
        The database is not of what the options translate.
    ScoringError
        The options do not fit what is aligned.
    InputError
        No subject passes the filters, a file that they name cannot be read, a filter needs statistics that the scoring
        scheme has not, or a masker is not for this alphabet or not installed.
    """

    def __init__(
        self,
        database: PackedDatabase,
        engine: ScoreEngine,
        options: SearchOptions,
        *,
        threads: int = 1,
        partition_residues: int | None = None,
        translating: Progress | None = None,
        engine_choice: str = "",
    ) -> None:
        self.engine_choice = engine_choice
        self.database = database
        self.engine = engine
        self.options = options
        self.threads = threads
        self.observe: Observer | None = None
        self.needs = QueryNeeds(str(database.path), database.alphabet, options.translate)
        self.needs.check_database()
        self.query_alphabet = self.needs.alphabet
        aligned = options.aligned_alphabet(database.alphabet)
        self.scheme = options.scheme(aligned)
        self._strands = options.strands(aligned)
        self._reader = Reader(options, self._strands, self.scheme)
        self.search_subjects = SearchSubjects(database, options, partition_residues, translating)
        n_comparisons = self._reader.n_readings * len(self.search_subjects.frames)
        statistics = scheme_statistics(self.scheme, threads)
        self.significance = Significance(statistics, self.search_subjects, options, n_comparisons)
        matrix = self.scheme.matrix if self._reader.profiles.corrected else None
        tells_ends = engine if isinstance(engine, EndsEngine) else None
        self._aligner = SubjectAligner(self.search_subjects, aligned, matrix, options.max_hsps, threads, tells_ends)

    # --- what is searched ---

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person should hear before the search: identifiers of a list that named no subject, say."""
        return self.search_subjects.notes

    @property
    def case_counts(self) -> bool:
        """Whether queries that differ in case alone may have different hits."""
        return self._reader.profiles.case_counts

    def as_searched(self, query: SequenceRecord) -> SequenceRecord:
        """The query as it is reported: masked, where that is asked for."""
        return self._reader.as_searched(query)

    def check(self, query: SequenceRecord) -> None:
        """Refuse a query that this search cannot take.

        Raises
        ------
        AlphabetMismatch
            The query's alphabet is not the one that is searched with.
        InputError
            The query is empty, shorter than a codon where it is translated, or longer than 16,777,216 residues; or it
            has scores of its own that cannot be masked or corrected.
        TypeError
            It is no record.
        """
        if not isinstance(query, SequenceRecord):
            advice = "swsearch.sequence makes a record of letters, swsearch.search_database takes other kinds too"
            raise TypeError(f"a query is of type {type(query).__name__}; {advice}")
        name = f"query {query.identifier}" if query.identifier else "the query"
        if query.alphabet is not self.query_alphabet:
            raise self.needs.refusal(name, query.alphabet)
        shortest = 1 if self.options.query_frames == (0,) else CODON
        if not shortest <= len(query) <= MAX_QUERY_LENGTH:
            raise InputError(
                f"{name} has {counted(len(query), 'residue')}; {shortest} to {MAX_QUERY_LENGTH} can be searched"
            )
        if isinstance(query, PositionSpecificQuery) and (self.options.mask, self.options.composition) != ("none",) * 2:
            raise InputError(f"{name} has scores of its own; leave --mask and --composition out")

    def cells(self, query: SequenceRecord) -> int:
        """Cells of the alignment matrices that the query's scores take, all strands and frames counted."""
        return sum(reading_lengths(len(query), self.options, self._strands)) * self.search_subjects.n_residues

    def run_info(self, command: str) -> RunInfo:
        """The record of this run; ``command`` is how it was asked for."""
        statistics = self.significance.statistics
        known = statistics if isinstance(statistics, Statistics) else None
        return RunInfo(
            command=command,
            parameters={**self.options.as_parameters(), **self.search_subjects.parameters},
            matrix=self.scheme.matrix.name,
            matrix_scores=matrix_text(self.scheme.matrix),
            gap_open=self.scheme.gap.open,
            gap_extend=self.scheme.gap.extend,
            lam=None if known is None else known.lam,
            k=None if known is None else known.k,
            statistics=statistics.source if isinstance(statistics, Statistics) else statistics.reason,
            search_space=self.significance.search_space * self.significance.n_comparisons,
            database=DatabaseInfo(
                path=os.path.realpath(self.database.path),
                digest=self.database.digest,
                generation=self.database.catalogue.generation,
                alphabet=self.database.alphabet.name,
                n_subjects=self.database.n_subjects,
                n_residues=self.database.n_residues,
            ),
            program=f"swsearch {__version__}",
            engine=self.engine.name,
            threads=self.threads,
        )

    def forecast(self, n_cells: int, queries: Sequence[SequenceRecord] = ()) -> Forecast | None:
        """How the engine is going to score ``n_cells``, of ``queries`` if they are known; None where it cannot say."""
        if not isinstance(self.engine, BackgroundEngine):
            return None
        batches = ([p for asked in batch for p in asked.profiles] for batch in self._batches(queries))
        return self.engine.forecast(batches, self.search_subjects.partitions, n_cells)

    # --- the steps ---

    def search(
        self, queries: Iterable[SequenceRecord], progress: Progress | None = None
    ) -> Generator[QueryResult, None, None]:
        """Results of the queries, in their order, each as soon as it is there.

        The queries of a sequence are checked before the first is searched. Those of any other iterable must have been
        checked; they are read a batch ahead. Queries are scored in batches of as many as the engine gains from; the
        batches never change a result. An engine that works in the background has begun when this returns,
        scores on while what it has scored is ranked and aligned, and finds the next batch begun when it ends one.
        Closeable the results gives up what was begun.
        """
        if isinstance(queries, Sequence):
            for query in queries:
                self.check(query)
        results = self._search(queries, progress)
        next(results)  # the first batch is begun
        return cast(Generator[QueryResult, None, None], results)

    def _search(
        self, queries: Iterable[SequenceRecord], progress: Progress | None
    ) -> Generator[QueryResult | None, None, None]:
        """None when the first batch is begun, then the results."""
        batches = ((batch, self._begin(batch)) for batch in self._batches(queries))
        idle_since = time.perf_counter()
        begun = deque(islice(batches, 1))
        try:
            for _, scores in begun:
                scores.wait_until_prepared()
            yield None
            while begun:
                begun.extend(islice(batches, 1))
                yield from self._results(*begun[0], progress, idle_since)
                idle_since = time.perf_counter()
                begun.popleft()
        finally:
            for _, scores in begun:
                scores.cancel()

    def _batches(self, queries: Iterable[SequenceRecord]) -> Iterator[list[_Asked]]:
        """Queries that the engine gains from scoring together: at least one, not too many, not too long."""
        most = max(1, self.engine.profiles_per_call // self._reader.n_readings)
        batch: list[_Asked] = []
        n_rows = 0
        for number, query in enumerate(queries):
            searched = self.as_searched(query)
            rule = self.significance.top_k_bound(len(query))
            asked = _Asked(number, searched, self._reader.readings(searched), rule)
            if batch and (len(batch) == most or n_rows + asked.rows > self.engine.rows_per_call):
                yield batch
                batch, n_rows = [], 0
            batch.append(asked)
            n_rows += asked.rows
        if batch:
            yield batch

    def _begin(self, batch: list[_Asked]) -> ScoreBatch:
        floors = None if self.observe is not None else [self.significance.floor(len(asked.query)) for asked in batch]
        rules = [asked.rule if len(self.search_subjects.frames) == 1 else None for asked in batch]
        groups = [asked.profiles for asked in batch]
        return begin(self.engine, self.search_subjects.partitions, groups, floors, rules)

    def _results(
        self, batch: list[_Asked], scores: ScoreBatch, progress: Progress | None, idle_since: float
    ) -> Iterator[QueryResult]:
        n_plain = sum(reading.profile.length for asked in batch for reading in asked.readings)
        told = in_proportion(progress, n_plain, sum(asked.rows for asked in batch))
        for place, blocks, seconds in results(self.engine, self.search_subjects.partitions, scores, told, idle_since):
            yield self._result(batch[place], blocks, seconds)

    def _result(self, asked: _Asked, blocks: list[ScoreBlock], seconds_a_cell: float) -> QueryResult:
        """One query's result from its scores, one block a profile."""
        began = time.perf_counter()
        query = asked.query
        compared = self._compared(asked, blocks)
        passed = merge_readings(compared)
        candidates = self._promising(passed, asked.rule)
        ranked, n_passed, found = self._best(asked, compared, candidates)
        cells = asked.rows * self.search_subjects.n_residues
        stats = SearchStats(
            cells=cells,
            score_seconds=cells * seconds_a_cell,
            total_seconds=cells * seconds_a_cell + time.perf_counter() - began,
            n_rescored=sum(block.n_rescored for block in blocks),
        )
        hits = self._hits(query, ranked, found)
        n_left_out = sum(block.n_left_out for block in blocks) + len(passed) - len(candidates)
        return QueryResult(asked.number, query.header, query.letters, hits, n_passed + n_left_out, stats)

    # --- from scores to candidates ---

    def _compared(self, asked: _Asked, blocks: list[ScoreBlock]) -> list[ScoreBlock]:
        """One block a comparison (readings, and frames of the subjects within one): the subjects that are found.

        A reading with a screen finds those whose score with the screen could be reported, with their whole scores.
        """
        n_letters = len(asked.query)
        whole = [self.search_subjects.by_frame(block) for block in blocks]
        screens = iter(whole[len(asked.readings) :])
        pairs = [
            pair
            for reading, of_frames in zip(asked.readings, whole, strict=False)
            for pair in zip(of_frames, of_frames if reading.screen is None else next(screens), strict=True)
        ]
        if self.observe is not None:
            self.observe(n_letters, merge_readings([screen for _, screen in pairs]))
            floor = self.significance.floor(n_letters)
            pairs = [
                (block.at_least(floor), screen if screen is block else screen.at_least(floor))
                for block, screen in pairs
            ]
        screened = [reading.screen is not None for reading in asked.readings for _ in self.search_subjects.frames]
        return [
            self._screened(block, screen, n_letters) if has_screen else block
            for has_screen, (block, screen) in zip(screened, pairs, strict=True)
        ]

    def _screened(self, block: ScoreBlock, screen: ScoreBlock, n_letters: int) -> ScoreBlock:
        """The subjects of ``block`` whose score with the screen could be reported."""
        found = screen.subject_index
        evalues = self.significance.evalues(found, screen.score, n_letters)
        return block.among(found if evalues is None else found[evalues <= self.options.evalue])

    def _promising(self, candidates: RankedCandidates, rule: TopKBound | None) -> RankedCandidates:
        """The candidates that can be among the best, so that not all of them need E-values and an order."""
        if rule is None or len(candidates) <= rule.top:
            return candidates
        return candidates.at_least(
            rule.lowest(candidates.score, self.search_subjects.lengths(candidates.subject_index))
        )

    # --- from candidates to hits ---

    def _best(
        self, asked: _Asked, compared: list[ScoreBlock], candidates: RankedCandidates
    ) -> tuple[list[int], int, dict[int, list[Found]]]:
        """The subjects that are reported, best first, how many passed the E-value cut, and the alignments of each."""
        options = self.options
        n_letters = len(asked.query)
        evalues = self.significance.evalues(candidates.subject_index, candidates.score, n_letters)
        ordered = in_order(candidates, evalues, options.evalue)
        if not options.alignment_filter:
            ranking = cut(candidates, ordered, options.top, options.ties)
            alignments = self._align(asked, compared, candidates, ranking.rows)
            return candidates.subject_index[ranking.rows].tolist(), ranking.n_passed, alignments
        passing: dict[int, list[Found]] = {}

        def judge(rows: NDArray[np.intp]) -> tuple[RankedCandidates, Floats | None]:
            passing.update(self._passing(n_letters, self._align(asked, compared, candidates, rows)))
            judged = candidates.rows(rows[[subject in passing for subject in candidates.subject_index[rows].tolist()]])
            scores = np.array([passing[subject][0].score for subject in judged.subject_index.tolist()], dtype=np.int32)
            evalues = self.significance.evalues(judged.subject_index, scores, n_letters)
            return replace(judged, score=scores), evalues

        passed, ranking = cut_passing(candidates, ordered, options.top, options.ties, judge, options.evalue)
        return passed.subject_index[ranking.rows].tolist(), ranking.n_passed, passing

    def _passing(self, n_letters: int, alignments: dict[int, list[Found]]) -> dict[int, list[Found]]:
        """Of the subjects' alignments those that pass the filter, and only subjects that have one."""
        alignment_filter = self.options.alignment_filter
        passing = {}
        for subject, several in alignments.items():
            length = self.database.length(subject)
            kept = [one for one in several if alignment_filter.passes(one.alignment, n_letters, length)]
            if kept:
                passing[subject] = kept
        return passing

    def _align(
        self, asked: _Asked, compared: list[ScoreBlock], candidates: RankedCandidates, rows: NDArray[np.intp]
    ) -> dict[int, list[Found]]:
        """The alignments of some candidates: that of the best comparison, or the best of all comparisons."""
        comparisons = list(product(asked.readings, self.search_subjects.frames))
        n_letters = len(asked.query)
        if self.options.max_hsps > 1:
            subjects = candidates.subject_index[rows]
            chosen = [block.among(subjects) for block in compared]
            floor = self.significance.floor(n_letters)
            return self._aligner.align(n_letters, zip(comparisons, chosen, strict=True), floor)
        best = []
        for number in range(len(comparisons)):
            of_comparison = rows[candidates.reading[rows] == number]
            best.append(ScoreBlock(candidates.subject_index[of_comparison], candidates.score[of_comparison]))
        return self._aligner.align(n_letters, zip(comparisons, best, strict=True), floor=1)

    def _hits(self, query: SequenceRecord, ranked: list[int], found: dict[int, list[Found]]) -> tuple[Hit, ...]:
        """The alignments of the ranked subjects; of a subject's further ones those that pass the E-value cut."""
        listed = [
            (place, subject, hsp, one)
            for place, subject in enumerate(ranked, 1)
            for hsp, one in enumerate(found[subject], 1)
        ]
        scores = np.array([one.score for *_, one in listed], dtype=np.int32)
        subjects = np.array([subject for _, subject, *_ in listed], dtype=np.uint32)
        bits = self.significance.bits(scores)
        evalues = self.significance.evalues(subjects, scores, len(query))
        return tuple(
            Hit(
                rank=place,
                subject_index=subject,
                subject_header=self.database.header(subject),
                subject_length=self.database.length(subject),
                score=one.score,
                bits=None if bits is None else bits[row],
                evalue=None if evalues is None else float(evalues[row]),
                strand=one.strand,
                alignment=one.alignment,
                hsp=hsp,
                query_frame=one.query_frame,
                subject_frame=one.subject_frame,
                query_header=query.header,
            )
            for row, (place, subject, hsp, one) in enumerate(listed)
            if hsp == 1 or evalues is None or evalues[row] <= self.options.evalue
        )
