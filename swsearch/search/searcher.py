"""The search, step by step: profile, scores, candidates, statistics, the top N, alignments, hits.

:class:`Searcher` holds what all queries of a run share (database, scheme, statistics, engine) and turns one query
after another into a :class:`swsearch.hits.result.QueryResult`. It computes; it neither stores nor prints.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from swsearch import __version__
from swsearch.alignment.traceback import align_hits
from swsearch.database.reader import PackedDatabase
from swsearch.engine.protocol import BackgroundEngine, Forecast, Progress, ScoreEngine, Scoring
from swsearch.errors import AlphabetMismatch, InputError
from swsearch.hits.hit import Alignment, Hit
from swsearch.hits.result import DatabaseInfo, QueryResult, RunInfo, SearchStats
from swsearch.hits.score_block import ScoreBlock
from swsearch.query.profile import QueryProfile, sequence_profile
from swsearch.scoring.matrix import matrix_text
from swsearch.search.options import SearchOptions
from swsearch.search.ranking import Candidates, Ranking, merge_strands, rank
from swsearch.search.top_rule import TopRule
from swsearch.sequences.alphabet import reverse_complement
from swsearch.sequences.record import SequenceRecord
from swsearch.statistics.karlin_altschul import Statistics
from swsearch.statistics.parameters import find_statistics
from swsearch.typing import Codes

MAX_QUERY_LENGTH = 2**24
"""Longest query in residues: a score stays below 127 * 2**24, inside signed 32 bits."""


@dataclass(frozen=True, eq=False)
class _Strand:
    """A query in one reading direction: its codes and profile along that direction."""

    name: str
    codes: Codes
    profile: QueryProfile


@dataclass(frozen=True, eq=False)
class _Batch:
    """Queries that are scored together.

    Attributes
    ----------
    first_number : int
        Place of the first query in the run.
    queries, strands
        One entry a query.
    profiles, floors, rules
        One entry a strand of a query.
    begun : list of Scoring
        One a partition, where the engine works in the background; else empty.
    """

    first_number: int
    queries: Sequence[SequenceRecord]
    strands: list[list[_Strand]]
    profiles: list[QueryProfile]
    floors: list[int]
    rules: list[TopRule | None]
    begun: list[Scoring] = field(default_factory=list)

    def cancel(self) -> None:
        """Stop the engine's work on these queries."""
        for scoring in self.begun:
            scoring.cancel()


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

    Raises
    ------
    ScoringError
        The options do not fit the database's alphabet.
    """

    def __init__(
        self,
        database: PackedDatabase,
        engine: ScoreEngine,
        options: SearchOptions,
        *,
        threads: int = 1,
        partition_residues: int | None = None,
    ) -> None:
        self.database = database
        self.engine = engine
        self.options = options
        self.threads = threads
        self.scheme = options.scheme(database.alphabet)
        self.strands = options.strands(database.alphabet)
        self.statistics = find_statistics(self.scheme)
        self.search_space = options.dbsize or database.n_residues
        self._partitions = list(database.partitions(partition_residues))
        self._distinct_lengths = database.distinct_lengths()
        self._floors: dict[int, int] = {}

    # --- what is searched ---

    def check(self, query: SequenceRecord) -> None:
        """Refuse a query that this search cannot take.

        Raises
        ------
        AlphabetMismatch
            The query's alphabet is not the database's.
        InputError
            The query is empty, or longer than 16,777,216 residues.
        """
        name = query.identifier or "the query"
        if query.alphabet is not self.database.alphabet:
            raise AlphabetMismatch(
                self.database.alphabet.name,
                query.alphabet.name,
                f"query {name}",
                f"the database {self.database.path} holds {self.database.alphabet.name}; search another one",
            )
        if not 0 < len(query) <= MAX_QUERY_LENGTH:
            raise InputError(f"query {name} has {len(query)} residues; 1 to {MAX_QUERY_LENGTH} can be searched")

    def cells(self, query: SequenceRecord) -> int:
        """Cells of the alignment matrices that the query's scores take, all strands counted."""
        return len(query) * self.database.n_residues * len(self.strands)

    def run_info(self, command: str) -> RunInfo:
        """The record of this run; ``command`` is how it was asked for."""
        statistics = self.statistics
        known = statistics if isinstance(statistics, Statistics) else None
        return RunInfo(
            command=command,
            parameters=self.options.as_parameters(),
            matrix=self.scheme.matrix.name,
            matrix_scores=matrix_text(self.scheme.matrix),
            gap_open=self.scheme.gap.open,
            gap_extend=self.scheme.gap.extend,
            lam=None if known is None else known.lam,
            k=None if known is None else known.k,
            statistics=statistics.source if isinstance(statistics, Statistics) else statistics.reason,
            search_space=self.search_space * len(self.strands),
            database=DatabaseInfo(
                path=str(self.database.path),
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
        step = self._queries_per_call
        batches = (
            [strand.profile for query in queries[first : first + step] for strand in self._strands(query)]
            for first in range(0, len(queries), step)
        )
        return self.engine.forecast(batches, self._partitions, n_cells)

    # --- the steps ---

    @property
    def _queries_per_call(self) -> int:
        return max(1, self.engine.profiles_per_call // len(self.strands))

    def search(self, queries: Sequence[SequenceRecord], progress: Progress | None = None) -> Iterator[QueryResult]:
        """Results of the queries, in their order, each as soon as it is there.

        All queries are checked before the first is searched. They are scored in batches of as many as the engine gains
        from; the batches never change a result. An engine that works in the background scores on while what it has
        scored is ranked and aligned, and finds the next batch begun when it ends one.
        """
        for query in queries:
            self.check(query)
        step = self._queries_per_call
        batches = (self._begin(first, queries[first : first + step]) for first in range(0, len(queries), step))
        begun = deque(islice(batches, 1))
        try:
            while begun:
                begun.extend(islice(batches, 1))
                yield from self._results(begun[0], progress)
                begun.popleft()
        finally:
            for batch in begun:
                batch.cancel()

    def _begin(self, first_number: int, queries: Sequence[SequenceRecord]) -> _Batch:
        """What the engine needs for some queries; one that works in the background begins."""
        strands = [self._strands(query) for query in queries]
        profiles = [strand.profile for strands_of_query in strands for strand in strands_of_query]
        floors = [floor for query in queries for floor in [self._floor(len(query))] * len(self.strands)]
        rules = [rule for query in queries for rule in [self._top_rule(len(query))] * len(self.strands)]
        batch = _Batch(first_number, queries, strands, profiles, floors, rules)
        if isinstance(self.engine, BackgroundEngine):
            for partition in self._partitions:
                # A subject is found on the better of two strands; those that both leave out could not be counted.
                of_engine = rules if len(self.strands) == 1 else [None] * len(rules)
                batch.begun.append(self.engine.begin(profiles, partition, floors, of_engine))
        return batch

    def _results(self, batch: _Batch, progress: Progress | None) -> Iterator[QueryResult]:
        """Results of a batch in the order of its queries; the engine may be done with a later one first."""
        blocks: list[dict[int, ScoreBlock]] = [{} for _ in batch.queries]
        done: dict[int, QueryResult] = {}
        n_taken = 0
        for profile_place, block, seconds_a_cell in self._score(batch, progress):
            place, strand = divmod(profile_place, len(self.strands))
            blocks[place][strand] = block
            if len(blocks[place]) == len(self.strands):
                in_order = [blocks[place].pop(number) for number in range(len(self.strands))]
                done[place] = self._result(batch, place, in_order, seconds_a_cell)
            while n_taken in done:
                yield done.pop(n_taken)
                n_taken += 1

    def _result(self, batch: _Batch, place: int, blocks: list[ScoreBlock], seconds_a_cell: float) -> QueryResult:
        """One query's result from its scores, one block a strand."""
        began = time.perf_counter()
        query = batch.queries[place]
        passed = merge_strands(blocks)
        candidates = self._promising(passed, batch.rules[place * len(self.strands)])
        ranking = self._rank(candidates, len(query))
        n_left_out = sum(block.n_left_out for block in blocks) + len(passed) - len(candidates)
        hits = self._hits(batch.strands[place], candidates, ranking)
        cells = self.cells(query)
        stats = SearchStats(
            cells=cells,
            score_seconds=cells * seconds_a_cell,
            total_seconds=cells * seconds_a_cell + time.perf_counter() - began,
            n_rescored=sum(block.n_rescored for block in blocks),
        )
        return QueryResult(
            batch.first_number + place, query.header, query.letters, hits, ranking.n_passed + n_left_out, stats
        )

    def _strands(self, query: SequenceRecord) -> list[_Strand]:
        strands = []
        for name in self.strands:
            codes = reverse_complement(query.codes) if name == "minus" else query.codes
            strands.append(_Strand(name, codes, sequence_profile(codes, self.scheme)))
        return strands

    def _floor(self, query_length: int) -> int:
        """Lowest score that any subject of this database could be reported with."""
        if not isinstance(self.statistics, Statistics):
            return 1
        floor = self._floors.get(query_length)
        if floor is None:
            floor = self._floors[query_length] = self.statistics.min_score(
                self.options.evalue,
                query_length,
                self._distinct_lengths,
                self.search_space,
                len(self.strands),
            )
        return floor

    def _top_rule(self, query_length: int) -> TopRule | None:
        """The rule by which subjects can be left out before they are ranked.

        None where an E-value cuts the list: then it takes each subject's E-value to count those that pass.
        """
        statistics = self.statistics if isinstance(self.statistics, Statistics) else None
        if statistics is not None and not math.isinf(self.options.evalue):
            return None
        return TopRule(
            self.options.top,
            statistics,
            query_length,
            self._distinct_lengths,
            self.search_space,
            len(self.strands),
        )

    def _score(self, batch: _Batch, progress: Progress | None) -> Iterator[tuple[int, ScoreBlock, float]]:
        """Each profile's place and its scores of at least its floor in the whole database, as soon as they are there.

        The third is the engine's time a cell: the time since it could begin, over the cells it has told of till then.
        """
        began = time.perf_counter()
        n_cells = 0

        def tell(cells: int) -> None:
            nonlocal n_cells
            n_cells += cells
            if progress is not None:
                progress(cells)

        parts: list[list[ScoreBlock]] = [[] for _ in batch.profiles]
        if not self._partitions:
            yield from ((place, ScoreBlock.concatenate([]), 0.0) for place in range(len(parts)))
        for number, partition in enumerate(self._partitions):
            if batch.begun:
                found: Iterable[tuple[int, ScoreBlock]] = batch.begun[number].results(tell)
            else:
                found = enumerate(self.engine.score(batch.profiles, partition, batch.floors, tell))
                scored = time.perf_counter()
            for place, block in found:
                parts[place].append(block)
                if number == len(self._partitions) - 1:
                    seconds = (time.perf_counter() if batch.begun else scored) - began
                    whole = ScoreBlock.concatenate(parts[place])
                    parts[place].clear()
                    yield place, whole, seconds / n_cells if n_cells else 0.0

    def _promising(self, candidates: Candidates, rule: TopRule | None) -> Candidates:
        """The candidates that can be among the best, so that not all of them need E-values and an order."""
        if rule is None or len(candidates) <= rule.top:
            return candidates
        return candidates.at_least(rule.lowest(candidates.score, self.database.lengths(candidates.subject_index)))

    def _rank(self, candidates: Candidates, query_length: int) -> Ranking:
        evalues = None
        if isinstance(self.statistics, Statistics):
            lengths = self.database.lengths(candidates.subject_index)
            evalues = self.statistics.evalue(
                candidates.score, query_length, lengths, self.search_space, len(self.strands)
            )
        return rank(candidates, evalues, self.options.evalue, self.options.top, self.options.ties)

    def _align(self, strands: list[_Strand], candidates: Candidates, ranking: Ranking) -> dict[int, Alignment]:
        """The alignment of each ranked row."""
        alignments: dict[int, Alignment] = {}
        for number, strand in enumerate(strands):
            rows = ranking.rows[candidates.strand[ranking.rows] == number]
            for places, residues, starts, lengths in self.database.stored_ranges(candidates.subject_index[rows]):
                found = align_hits(
                    strand.codes,
                    strand.profile,
                    self.database.alphabet,
                    residues=residues,
                    starts=starts,
                    lengths=lengths,
                    n_threads=self.threads,
                    strand=strand.name,
                    scores=candidates.score[rows[places]],
                )
                alignments.update(zip(rows[places].tolist(), found, strict=True))
        return alignments

    def _hits(self, strands: list[_Strand], candidates: Candidates, ranking: Ranking) -> tuple[Hit, ...]:
        alignments = self._align(strands, candidates, ranking)
        bits = self.statistics.bits(candidates.score[ranking.rows]) if isinstance(self.statistics, Statistics) else None
        hits = []
        for place, row in enumerate(ranking.rows.tolist()):
            subject = int(candidates.subject_index[row])
            hits.append(
                Hit(
                    rank=place + 1,
                    subject_index=subject,
                    subject_header=self.database.header(subject),
                    subject_length=self.database.length(subject),
                    score=int(candidates.score[row]),
                    bits=None if bits is None else float(bits[place]),
                    evalue=None if ranking.evalues is None else float(ranking.evalues[place]),
                    strand=strands[int(candidates.strand[row])].name,
                    alignment=alignments[row],
                )
            )
        return tuple(hits)
