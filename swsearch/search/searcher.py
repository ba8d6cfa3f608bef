"""Searches one database: computes for each query (SequenceRecord) a QueryResult with its ranked hits.

:class:`Searcher` is a planned search (:mod:`swsearch.search.planned_search`) with an open engine. :func:`open_searcher`
opens a database and an engine for it; :mod:`swsearch.run` and :mod:`swsearch.api` use it. It neither stores nor prints
results. :mod:`swsearch.search` has the steps of a search, and the modules in which they are.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np

from swsearch.arguments import function, of_type, whole_number
from swsearch.arrays import divided
from swsearch.database.opening import Databases, opened
from swsearch.database.partition import Partition
from swsearch.database.reader import PackedDatabase
from swsearch.engine.cpu.engine import CpuEngine
from swsearch.engine.protocol import BackgroundEngine, Forecast, ScoreEngine
from swsearch.engine.registry import ONE_THREAD, Machine, open_engine
from swsearch.errors import InputError
from swsearch.hits.limits import RankedCandidates
from swsearch.hits.result import QueryResult, SearchStats
from swsearch.hits.score_block import ScoreBlock
from swsearch.hits.traceback import LocalAligner
from swsearch.query.profile import PositionSpecificQuery, SubjectRecord
from swsearch.search.alignments import SubjectAligner
from swsearch.search.options import SearchOptions
from swsearch.search.planned_search import PlannedSearch, started
from swsearch.search.ranking import HitSelection, adjustment_of, merge_frames
from swsearch.search.score_batches import PreparedQuery, ScoreBatch, in_proportion
from swsearch.sequences.record import SequenceRecord
from swsearch.threads import Threads, beat
from swsearch.typing import Progress, SubjectIndex
from swsearch.words import counted, option

if TYPE_CHECKING:
    from swsearch.search.rescoring import Rescoring

Observer = Callable[[int, RankedCandidates], None]
"""A function of the length of a query and of all subjects with the scores of their best comparisons."""
USUAL_RESIDUES: Final = 100_000
"""Residues of all queries of a search, where their number is not known: some hundred proteins."""
_RANKING_THREADS: Final = 8
"""Queries whose results are computed at once while an engine scores in the background. Alignments and writes to a store
release Python's global lock, so a GPU waits for them less often (benchmarks/benchmark_gpu_commands.py)."""
_PREPARING_THREADS: Final = 4
"""Queries of a sensitive search whose scores are estimated at once for GPUs."""
FIRST_SHARE: Final = 8
"""The number of queries of a full batch divided by that of the first one of such a search: several for each GPU."""
T = TypeVar("T")
OfScores = Callable[[PreparedQuery, list[ScoreBlock], float, ScoreBatch], T | None]
"""What follows from the scores of a query in a batch, which are one block per profile, and from the time of a cell.

None if subjects below the initial threshold might belong to it (:meth:`Searcher._without_initial`)."""


class Searcher(PlannedSearch):
    """Searches one database with one set of options and one engine. It must not be shared between threads.

    Parameters
    ----------
    database : PackedDatabase
        An open database; the caller closes it. It may be one slice of a database (:mod:`swsearch.search.slices`).
    engine : ScoreEngine
        An open engine; the caller closes it.
    options : SearchOptions
    machine, translating, engine_choice
        As for :class:`swsearch.search.planned_search.PlannedSearch`, which describes the other attributes and the
        errors; the threads of ``machine`` compute alignments.

    Attributes
    ----------
    observe : callable or None
        If set, it is called for each query with the query's length and the scores of all subjects; for a softly masked
        query these are the scores of its masked profiles. The engine then cannot skip subjects that score too low to be
        reported, and takes longer.
    """

    def __init__(
        self,
        database: PackedDatabase,
        engine: ScoreEngine,
        options: SearchOptions,
        *,
        machine: Machine = ONE_THREAD,
        translating: Progress | None = None,
        engine_choice: str = "",
    ) -> None:
        super().__init__(
            database,
            options,
            machine=machine,
            translating=translating,
            engine_choice=engine_choice,
        )
        self.engine = engine
        self.engine_name = engine.name
        self.observe: Observer | None = None
        matrix = self.scheme.matrix if self.preparer.changes_scores else None
        gpus = self._gpus = engine if isinstance(engine, BackgroundEngine) else None
        self.works_in_background = gpus is not None
        self._estimates_for_gpus = gpus is not None and options.sensitive
        one_query = LocalAligner(self.scheme.alphabet, matrix, self.threads, progress=beat)
        aligner = SubjectAligner(self.search_subjects, one_query, gpus)
        self._selection = HitSelection(self, aligner)
        self._n_at_work = 0
        """Searches whose results are not read to the end."""
        self._part_engine = CpuEngine(1)  # for few subjects, in the thread that ranks them
        self._rescoring: Rescoring | None = None
        if options.sensitive:
            from swsearch.search.rescoring import Rescoring

            self._rescoring = Rescoring(self, gpus)

    # --- the plan of the engine ---

    def forecast(self, n_cells: int, queries: Sequence[SequenceRecord] = ()) -> Forecast | None:
        """A forecast of the time to score ``n_cells`` cells, of ``queries`` if known; None if the engine gives none."""
        if self._gpus is None:
            return None
        batches = ([p for prepared in batch for p in prepared.profiles] for batch in self._batches(queries, Threads(1)))
        return self._gpus.forecast(batches, self.usual_partitions, n_cells, floors=self.observe is None)

    @property
    def usual_partitions(self) -> list[Partition]:
        """The partitions that most queries are scored with."""
        return self._partitions(is_selective=self.thresholds.is_selective(self.thresholds.usual_evalue))

    def _partitions(self, *, is_selective: bool) -> list[Partition]:
        """The partitions to score: if few subjects are found, without parts of others.

        The cores score the parts of found subjects, which takes longer than a GPU takes for all parts.
        """
        subjects = self.search_subjects
        return subjects.maximal if is_selective and self._gpus is None else subjects.distinct

    def explain(self, queries: Sequence[SequenceRecord]) -> list[str]:
        """The plan by which the engine will score these queries, in lines of text."""
        lines = []
        if self.options.iterations > 1:
            lines.append(f"up to {self.options.iterations} rounds; each scores all subjects by the same plan")
        if self._gpus is None:
            n_subjects = sum(map(len, self.search_subjects.partitions))
            return [*lines, f"one query at a time against {counted(n_subjects, 'subject')}, divided among the threads"]
        for batch in self._batches(queries, Threads(1)):
            scores = self._score_batch(batch)
            for partition in scores.partitions:
                lines += self._gpus.explain(scores.requests(partition), partition)
        return lines

    def search(
        self, queries: Iterable[SequenceRecord], progress: Progress | None = None
    ) -> Generator[QueryResult, None, None]:
        """The results of the queries, in the order of the queries, each as soon as it is computed.

        If ``queries`` is a sequence, all queries are checked before the first is searched. The queries of any other
        iterable must have been checked by the caller; they are read one batch ahead, or a few further ones. The engine
        scores a batch of queries together; the division into batches does not affect the results. An engine that works
        in the background has started when this method returns. It continues to score while its earlier results are
        ranked and aligned, and its next batch is queued before it finishes the current one. Closing the generator
        cancels all scoring that was started.

        The method returns when such an engine needs no more of this process, so that what the caller does next does not
        delay it; unless there are further results of an earlier search, which the caller can handle meanwhile.

        An iterated search returns the results of the last rounds (:mod:`swsearch.search.rounds`).
        """
        if isinstance(queries, Sequence):
            for query in queries:
                self.check(query)
        if self.options.iterations > 1:
            from swsearch.search.rounds import search_in_rounds  # only here: most searches have one round

            engine = self.engine
            at_once = 1 if self._gpus is None else 2
            return search_in_rounds(self, queries, progress, engine.profiles_per_call, engine.rows_per_call, at_once)
        return self.search_once(queries, progress)

    def search_once(
        self, queries: Iterable[SequenceRecord], progress: Progress | None = None
    ) -> Generator[QueryResult, None, None]:
        """See :meth:`PlannedSearch.search_once`."""
        return self._search(queries, progress, self._result)

    def passing(
        self, queries: Iterable[SequenceRecord], progress: Progress | None = None
    ) -> Generator[SubjectIndex, None, None]:
        """The subjects that :meth:`search_once` would list for each query, ascending; nothing is aligned.

        All subjects that pass the limits must be listed, and no option may judge alignments.
        """
        return self._search(queries, progress, self._passing)

    @started
    def _search(
        self, queries: Iterable[SequenceRecord], progress: Progress | None, of: OfScores[T]
    ) -> Generator[T | None, None, None]:
        """Yield None when the first batch has started, then the results."""
        with Threads(min(_PREPARING_THREADS, self.threads) if self._estimates_for_gpus else 1) as preparing:
            batches = ((batch, self._begin(batch)) for batch in self._batches(queries, preparing))
            idle_since = time.perf_counter()
            begun = deque(islice(batches, 1))
            self._n_at_work += 1
            try:
                for _, scores in begun if self._n_at_work == 1 else ():
                    scores.wait_until_prepared()
                yield None
                while begun:
                    begun.extend(islice(batches, 1))
                    yield from self._results(*begun[0], progress, idle_since, of)
                    idle_since = time.perf_counter()
                    begun.popleft()
            finally:
                self._n_at_work -= 1
                for _, scores in begun:
                    scores.cancel()

    def _batches(self, queries: Iterable[SequenceRecord], threads: Threads) -> Iterator[list[PreparedQuery]]:
        """Batches of queries within the engine's limits on profiles and rows; each has at least one query."""
        max_queries = max(1, self.engine.profiles_per_call // self.preparer.n_frames)
        prepared = threads.in_order(self._prepared, enumerate(queries))
        # A GPU begins with few queries if the others take long to prepare.
        first = max(1, max_queries // FIRST_SHARE) if self._estimates_for_gpus else max_queries
        return divided(prepared, lambda query: query.rows, max_queries, self.engine.rows_per_call, first)

    def _prepared(self, numbered: tuple[int, SequenceRecord]) -> PreparedQuery:
        number, query = numbered[0], self.as_searched(numbered[1])
        frames = self.preparer.frames(query)
        adjustment = adjustment_of(query, self.options, self.scheme, self.significance.statistics)
        threshold = self.thresholds.of(
            query,
            len(frames),
            is_masked=any(frame.masked_profile is not None for frame in frames),
            is_adjusted=adjustment is not None,
            needs_all_scores=self.observe is not None,
        )
        return PreparedQuery(number, query, frames, threshold, adjustment)

    def _begin(self, batch: list[PreparedQuery]) -> ScoreBatch:
        scores = self._score_batch(batch)
        if self._gpus is not None:
            scores.begin(self._gpus)
        return scores

    def _score_batch(self, batch: list[PreparedQuery]) -> ScoreBatch:
        subjects = self.search_subjects
        compared_before = [prepared.query for prepared in batch if isinstance(prepared.query, SubjectRecord)]
        if len(compared_before) == len(batch):
            return ScoreBatch(self.engine, subjects.before(compared_before), batch)
        is_selective = not compared_before and all(prepared.threshold.is_selective for prepared in batch)
        partitions = self._partitions(is_selective=is_selective)
        shortest_part = subjects.shortest_part if partitions is subjects.maximal else None
        return ScoreBatch(self.engine, partitions, batch, shortest_part)

    def _results(
        self,
        batch: list[PreparedQuery],
        scores: ScoreBatch,
        progress: Progress | None,
        idle_since: float,
        of: OfScores[T],
    ) -> Iterator[T]:
        n_wanted = sum(
            frame.profile.length * self.search_subjects.n_compared_residues(prepared.query)
            for prepared in batch
            for frame in prepared.frames
        )
        n_residues = sum(partition.n_residues for partition in scores.partitions)
        scaled = in_proportion(progress, n_wanted, scores.n_rows * n_residues)
        overlaps = self._gpus is not None and self.observe is None
        n_threads = min(_RANKING_THREADS, self.threads, len(batch)) if overlaps else 1

        def ranked(scored: tuple[int, list[ScoreBlock], float]) -> tuple[PreparedQuery, T | None]:
            index, blocks, seconds = scored
            return batch[index], of(batch[index], blocks, seconds, scores)

        with Threads(n_threads) as threads:
            for prepared, result in threads.in_order(ranked, scores.results(scaled, idle_since)):
                yield self._without_initial(prepared, of) if result is None else result
        if self.observe_batch is not None:
            self.observe_batch([(prepared.query, prepared.frames) for prepared in batch])

    def _result(
        self, prepared: PreparedQuery, blocks: list[ScoreBlock], seconds_a_cell: float, scores: ScoreBatch
    ) -> QueryResult | None:
        """The result of one query."""
        began = time.perf_counter()
        query = prepared.query
        threshold = prepared.threshold
        blocks, compared, candidates, n_left_out = self._candidates(prepared, blocks, scores)
        if not threshold.is_certain(candidates.evalue):
            return None
        best = self._selection.best(prepared, compared, candidates.in_order())
        if not threshold.is_certain(np.array([first.evalue or 0.0 for first, *_ in best.values()])):
            return None
        cells = prepared.rows * self.search_subjects.n_compared_residues(query)
        stats = SearchStats(
            cells=cells,
            score_seconds=cells * seconds_a_cell,
            total_seconds=cells * seconds_a_cell + time.perf_counter() - began,
            n_rescored=sum(block.n_rescored for block in blocks),
            n_scores=len(prepared.profiles) * scores.n_subjects,
            n_bounded=sum(block.n_bounded for block in blocks),
        )
        hits = self._selection.hits(prepared, candidates, best)
        n_passed = len(candidates) + n_left_out + sum(block.n_left_out for block in blocks)
        if threshold.initial is not None:
            n_passed = self.search_subjects.n_positive(prepared.profiles)
        pssm = query.pssm if isinstance(query, PositionSpecificQuery) else None
        return QueryResult(prepared.number, query.header, query.letters, hits, n_passed, stats, pssm=pssm)

    def _passing(
        self, prepared: PreparedQuery, blocks: list[ScoreBlock], _seconds_a_cell: float, scores: ScoreBatch
    ) -> SubjectIndex | None:
        """The subjects of one query that pass the limits."""
        assert not prepared.threshold.needs_alignments
        *_, candidates, _ = self._candidates(prepared, blocks, scores)
        return np.sort(candidates.subject_index) if prepared.threshold.is_certain(candidates.evalue) else None

    def _without_initial(self, prepared: PreparedQuery, of: OfScores[T]) -> T:
        """What follows from the scores of a query that is scored once more, without its initial threshold."""
        prepared = replace(prepared, threshold=prepared.threshold.without_initial())
        scores = self._begin([prepared])
        try:
            ((_, blocks, seconds_a_cell),) = scores.results(beat, time.perf_counter())
        finally:
            scores.cancel()
        result = of(prepared, blocks, seconds_a_cell, scores)
        assert result is not None
        return result

    # --- from scores to candidates ---

    def _candidates(
        self, prepared: PreparedQuery, blocks: list[ScoreBlock], scores: ScoreBatch
    ) -> tuple[list[ScoreBlock], list[ScoreBlock], RankedCandidates, int]:
        """The blocks with all parts, the scores of each comparison, the candidates, and the number left out of them."""
        if scores.shortest_part is not None:
            of_profiles = zip(blocks, prepared.profiles, prepared.min_scores(), strict=True)
            blocks = [self.search_subjects.with_parts(*each, self._part_engine) for each in of_profiles]
        compared, masked = self._compared(prepared, blocks)
        candidates, n_left_out = prepared.threshold.listable(merge_frames(compared), masked)
        if self._rescoring is not None:
            assert isinstance(prepared.query, PositionSpecificQuery)
            candidates = self._rescoring.rescored(prepared.query, candidates)
        return blocks, compared, candidates, n_left_out

    def _compared(
        self, prepared: PreparedQuery, blocks: list[ScoreBlock]
    ) -> tuple[list[ScoreBlock], RankedCandidates | None]:
        """The subjects of each comparison with their scores, and the best score of each with the masked query.

        Comparisons are ordered by query frame, then by subject frame. The masked scores are None if the query has no
        soft mask; a frame without masked residues is its own masked frame.
        """
        n_frames = len(prepared.frames)
        given = [self.search_subjects.compared(block, prepared.query) for block in blocks]
        if self.observe is not None:
            observed = self._with_masks(prepared, given)
            self.observe(len(prepared.query), merge_frames(observed))
            given = [block.at_least(score) for block, score in zip(given, prepared.min_scores(), strict=True)]
        compared = [of_frame for block in given[:n_frames] for of_frame in self.search_subjects.by_frame(block)]
        masked = None
        if prepared.threshold.is_masked:
            masked = merge_frames(self._with_masks(prepared, given))
        return compared, masked

    def _with_masks(self, prepared: PreparedQuery, blocks: list[ScoreBlock]) -> list[ScoreBlock]:
        """The scores of each comparison, with the masked profiles of the frames that have one."""
        masked = iter(blocks[len(prepared.frames) :])
        of_frames = zip(prepared.frames, blocks, strict=False)
        chosen = [block if frame.masked_profile is None else next(masked) for frame, block in of_frames]
        return [of_frame for block in chosen for of_frame in self.search_subjects.by_frame(block)]


# --- a searcher with its database and engine ---


def open_searcher(
    database: Databases,
    options: SearchOptions | None = None,
    *,
    engine: str = "auto",
    threads: int | None = None,
    devices: Sequence[int] | None = None,
    bound: bool = True,
    partition_residues: int | None = None,
    query_residues: int = USUAL_RESIDUES,
    translating: Progress | None = None,
) -> AbstractContextManager[Searcher]:
    """A searcher with its database and engine open, as a context manager that closes both on exit.

    ``database`` is a path, as for :func:`swsearch.database.opening.open_database`, or an open database, which stays
    open; or a sequence of several, which are searched as one.

    ``query_residues`` is about the number of residues of all queries, from which ``auto`` predicts the time of the
    search on each engine. Without ``bound``, no engine excludes subjects by an upper bound of their scores.

    If subjects are translated, they are translated on entry; ``translating`` is called repeatedly with the number of
    bases translated since the last call.

    Yields
    ------
    searcher : Searcher
        Its ``engine_choice`` states which engine was selected, and why.

    Raises
    ------
    DatabaseError
        The database cannot be opened.
    EngineUnavailable
        The requested engine cannot be used on this machine.
    InputError
        An option is out of range or does not fit the database.
    """
    chosen = SearchOptions() if options is None else of_type("options", options, SearchOptions, "a SearchOptions")
    function("translating", translating)
    if whole_number("query_residues", query_residues) < 0:
        raise InputError(f"{option('query_residues', query_residues)}: choose a number of residues, at least 0")
    machine = Machine(engine, threads, devices, bound, partition_residues)
    return searcher_on(machine, database, chosen, query_residues, translating)


@contextmanager
def searcher_on(
    machine: Machine,
    database: Databases,
    options: SearchOptions,
    query_residues: int = USUAL_RESIDUES,
    translating: Progress | None = None,
) -> Iterator[Searcher]:
    """A searcher that uses ``machine``; see :func:`open_searcher`, whose ``options`` are checked."""
    with opened(database) as subjects, ExitStack() as stack:
        # While GPUs start, the modules and data of the scoring are loaded, and the layout of the database is checked.
        options.scheme(options.aligned_alphabet(subjects.alphabet))
        subjects.distinct_lengths()
        scorer, why = open_engine(machine, subjects.n_residues * query_residues)
        stack.enter_context(scorer)
        searcher = Searcher(subjects, scorer, options, machine=machine, translating=translating, engine_choice=why)
        if isinstance(scorer, BackgroundEngine):
            for partition in searcher.usual_partitions[:1]:
                scorer.preload(partition)
        yield searcher
