"""The search, step by step: profile, scores, candidates, statistics, the top N, alignments, hits.

:class:`Searcher` holds what all queries of a run share (database, scheme, statistics, engine) and turns one query
after another into a :class:`swsearch.hits.result.QueryResult`. It computes; it neither stores nor prints.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from swsearch import __version__
from swsearch.alignment.traceback import align_hits
from swsearch.database.reader import PackedDatabase
from swsearch.engine.protocol import Progress, ScoreEngine
from swsearch.errors import AlphabetMismatch, InputError
from swsearch.hits.hit import Alignment, Hit
from swsearch.hits.result import DatabaseInfo, QueryResult, RunInfo, SearchStats
from swsearch.hits.score_block import ScoreBlock
from swsearch.query.profile import QueryProfile
from swsearch.scoring.matrix import matrix_text
from swsearch.search.options import SearchOptions
from swsearch.search.query_profiles import QueryProfiles
from swsearch.search.ranking import Candidates, Ranking, merge_strands, rank
from swsearch.search.simulation import scheme_statistics
from swsearch.sequences.alphabet import reverse_complement
from swsearch.sequences.record import SequenceRecord
from swsearch.statistics.karlin_altschul import Statistics
from swsearch.typing import Codes, Floats, Scores, SubjectIndex

MAX_QUERY_LENGTH = 2**24
"""Longest query in residues: a score stays below 127 * 2**24, inside signed 32 bits."""

Observer = Callable[[int, Candidates], None]
"""Takes a query's length and the score of every subject on its better strand."""


@dataclass(frozen=True, eq=False)
class _Strand:
    """A query in one reading direction: its codes and profile along that direction, and its screen if it has one."""

    name: str
    codes: Codes
    profile: QueryProfile
    screen: QueryProfile | None


def _profiles(strands: list[_Strand]) -> list[QueryProfile]:
    """What an engine scores for a query: its strands, then the screens of those that have one."""
    screens = [strand.screen for strand in strands if strand.screen is not None]
    return [strand.profile for strand in strands] + screens


def _in_proportion(progress: Progress, part: int, whole: int) -> Progress:
    """Tell ``progress`` of ``part`` cells for each ``whole`` done; no cell is lost in rounding."""
    done = told = 0

    def advance(cells: int) -> None:
        nonlocal done, told
        done += cells
        new = done * part // whole - told
        told += new
        progress(new)

    return advance


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

    Attributes
    ----------
    observe : callable or None
        Set it to have it called for each query with its length and the scores of all subjects, those that decide what
        is found. The engine then cannot pass over subjects that score too little to be reported, and takes longer.

    Raises
    ------
    ScoringError
        The options do not fit the database's alphabet.
    InputError
        A masker is not for this alphabet or not installed.
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
        self.observe: Observer | None = None
        self.scheme = options.scheme(database.alphabet)
        self.strands = options.strands(database.alphabet)
        self.profiles = QueryProfiles(options, self.scheme)
        self.statistics = scheme_statistics(self.scheme, threads)
        self.search_space = options.dbsize or database.n_residues
        self._partitions = list(database.partitions(partition_residues))
        self._distinct_lengths = database.distinct_lengths()

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

    # --- the steps ---

    def search(self, queries: Sequence[SequenceRecord], progress: Progress | None = None) -> Iterator[QueryResult]:
        """Results of the queries, in their order, each as soon as it is there.

        All queries are checked before the first is searched. They are scored in batches of as many as the engine gains
        from; the batches never change a result.
        """
        for query in queries:
            self.check(query)
        queries = [self.profiles.masked(query) for query in queries]
        step = max(1, self.engine.profiles_per_call // len(self.strands))
        for first in range(0, len(queries), step):
            yield from self._search_batch(first, queries[first : first + step], progress)

    def _search_batch(
        self, first_number: int, queries: Sequence[SequenceRecord], progress: Progress | None
    ) -> Iterator[QueryResult]:
        """Results of queries that are scored together; the engine's time is shared out by their cells."""
        began = time.perf_counter()
        strands = [self._strands(query) for query in queries]
        floors = [self._floor(len(query)) for query in queries]
        scored = self._score(strands, floors, progress)
        score_seconds = time.perf_counter() - began
        cells = [
            self.cells(query) // len(self.strands) * len(blocks) for query, blocks in zip(queries, scored, strict=True)
        ]
        for place, query in enumerate(queries):
            began = time.perf_counter()
            blocks = self._found(strands[place], scored[place], floors[place], len(query))
            candidates = merge_strands(blocks)
            ranking = self._rank(candidates, len(query))
            hits = self._hits(strands[place], candidates, ranking)
            share = score_seconds * cells[place] / sum(cells)
            stats = SearchStats(
                cells=cells[place],
                score_seconds=share,
                total_seconds=share + time.perf_counter() - began,
                n_rescored=sum(block.n_rescored for block in scored[place]),
            )
            yield QueryResult(first_number + place, query.header, query.letters, hits, ranking.n_passed, stats)

    def _strands(self, query: SequenceRecord) -> list[_Strand]:
        strands = []
        for name in self.strands:
            codes = reverse_complement(query.codes) if name == "minus" else query.codes
            strands.append(_Strand(name, codes, self.profiles.profile(codes), self.profiles.screen(codes)))
        return strands

    def _floor(self, query_length: int) -> int:
        """Lowest score that any subject of this database could be reported with."""
        if not isinstance(self.statistics, Statistics):
            return 1
        return self.statistics.min_score(
            self.options.evalue,
            query_length,
            self._distinct_lengths,
            self.search_space,
            len(self.strands),
        )

    def _score(
        self, queries: list[list[_Strand]], floors: list[int], progress: Progress | None
    ) -> list[list[ScoreBlock]]:
        """For each query the blocks of its strands' profiles, then those of their screens: the subjects of the whole
        database that score the query's floor or more; every subject where all scores are observed.
        """
        profiles_of = [_profiles(strands) for strands in queries]
        profiles = [profile for group in profiles_of for profile in group]
        floor_of_profile = [floor for floor, group in zip(floors, profiles_of, strict=True) for _ in group]
        if progress is not None:
            n_plain = sum(len(strands) * strands[0].profile.length for strands in queries)
            progress = _in_proportion(progress, n_plain, sum(profile.length for profile in profiles))
        collected: list[list[ScoreBlock]] = [[] for _ in profiles]
        for partition in self._partitions:
            found = self.engine.score(
                profiles, partition, None if self.observe is not None else floor_of_profile, progress
            )
            for blocks, block in zip(collected, found, strict=True):
                blocks.append(block)
        merged = iter([ScoreBlock.concatenate(blocks) for blocks in collected])
        return [[next(merged) for _ in group] for group in profiles_of]

    def _found(
        self, strands: list[_Strand], blocks: list[ScoreBlock], floor: int, query_length: int
    ) -> list[ScoreBlock]:
        """One block a strand: the subjects that its screen, where it has one, finds, with their whole scores."""
        screens = iter(blocks[len(strands) :])
        screen_of = [None if strand.screen is None else next(screens) for strand in strands]
        pairs = list(zip(blocks, screen_of, strict=False))
        if self.observe is not None:
            self.observe(query_length, merge_strands([block if screen is None else screen for block, screen in pairs]))
            pairs = [(one.at_least(floor), None if screen is None else screen.at_least(floor)) for one, screen in pairs]
        return [block if screen is None else self._screened(block, screen, query_length) for block, screen in pairs]

    def _screened(self, block: ScoreBlock, screen: ScoreBlock, query_length: int) -> ScoreBlock:
        """The subjects of ``block`` whose score with the screen could be reported."""
        found = screen.subject_index
        if isinstance(self.statistics, Statistics):
            found = found[self._evalues(screen.subject_index, screen.score, query_length) <= self.options.evalue]
        rows = np.flatnonzero(np.isin(block.subject_index, found))
        return ScoreBlock(block.subject_index[rows], block.score[rows], block.n_rescored)

    def _evalues(self, subject_index: SubjectIndex, scores: Scores, query_length: int) -> Floats:
        """E-values of some subjects' scores; there must be statistics."""
        assert isinstance(self.statistics, Statistics)
        lengths = self.database.lengths(subject_index)
        return self.statistics.evalue(scores, query_length, lengths, self.search_space, len(self.strands))

    def _rank(self, candidates: Candidates, query_length: int) -> Ranking:
        evalues = None
        if isinstance(self.statistics, Statistics):
            evalues = self._evalues(candidates.subject_index, candidates.score, query_length)
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
                    matrix=self.scheme.matrix if self.profiles.corrected else None,
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
