"""The search, step by step: profile, scores, candidates, statistics, the top N, alignments, hits.

:class:`Searcher` holds what all queries of a run share (database, scheme, statistics, engine) and turns one query
after another into a :class:`swsearch.hits.result.QueryResult`. It computes; it neither stores nor prints.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from swsearch import __version__
from swsearch.database.reader import PackedDatabase
from swsearch.database.translated import TranslatedSubjects
from swsearch.engine.protocol import Progress, ScoreEngine
from swsearch.errors import AlphabetMismatch, InputError
from swsearch.hits.hit import Hit
from swsearch.hits.result import DatabaseInfo, QueryResult, RunInfo, SearchStats
from swsearch.hits.score_block import ScoreBlock
from swsearch.scoring.matrix import matrix_text
from swsearch.search.alignments import Found, SubjectAligner
from swsearch.search.options import SearchOptions
from swsearch.search.ranking import Candidates, Ranking, merge_readings, rank
from swsearch.search.readings import Reading, reading_lengths, readings
from swsearch.sequences.alphabet import DNA, PROTEIN
from swsearch.sequences.genetic_code import CODON
from swsearch.sequences.record import SequenceRecord
from swsearch.statistics.karlin_altschul import Statistics
from swsearch.statistics.parameters import find_statistics
from swsearch.typing import Floats, Lengths, Scores, SubjectIndex

MAX_QUERY_LENGTH = 2**24
"""Longest query in residues: a score stays below 127 * 2**24, inside signed 32 bits."""


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
    AlphabetMismatch
        The database is not of what the options translate.
    ScoringError
        The options do not fit what is aligned.
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
        self._check_database()
        self.query_alphabet = options.query_alphabet(database.alphabet)
        aligned = PROTEIN if options.translate else database.alphabet
        self.scheme = options.scheme(aligned)
        self.strands = options.strands(aligned)
        self.statistics = find_statistics(self.scheme)
        self._translated: TranslatedSubjects | None = None
        if options.code is not None and options.subject_frames != (0,):
            self._translated = TranslatedSubjects(database, options.code)
        self._partitions = list((self._translated or database).partitions(partition_residues))
        self._aligner = SubjectAligner(database, self._translated, self.scheme.alphabet, options.max_hsps, threads)
        self._n_readings = len(self.strands) if options.query_frames == (0,) else len(options.query_frames)
        self.n_chances = self._n_readings * len(options.subject_frames)
        """Ways in which a query and a subject are compared: strands, or frames of one times frames of the other."""
        self.search_space = self._subject_residues(options.dbsize or database.n_residues)
        self._distinct_lengths = np.unique(self._subject_lengths(database.distinct_lengths()))

    def _check_database(self) -> None:
        needed = {"query": PROTEIN, "subject": DNA, "both": DNA}.get(self.options.translate or "")
        if needed not in (None, self.database.alphabet):
            fits = "query" if self.database.alphabet is PROTEIN else "subject or both"
            advice = f"--translate {self.options.translate} does not fit it; {fits} would"
            raise AlphabetMismatch(needed.name, self.database.alphabet.name, str(self.database.path), advice)

    # --- lengths as the statistics count them: a third of the bases where they are translated, in every frame ---

    def _subject_residues(self, n_letters: int) -> int:
        return n_letters if self._translated is None else max(1, n_letters // CODON)

    def _subject_lengths(self, lengths: Lengths) -> Lengths:
        return lengths if self._translated is None else np.maximum(lengths // np.uint32(CODON), np.uint32(1))

    def _query_residues(self, n_letters: int) -> int:
        return n_letters if self.options.query_frames == (0,) else n_letters // CODON

    # --- what is searched ---

    def check(self, query: SequenceRecord) -> None:
        """Refuse a query that this search cannot take.

        Raises
        ------
        AlphabetMismatch
            The query's alphabet is not the one that is searched with.
        InputError
            The query is empty, shorter than a codon where it is translated, or longer than 16,777,216 residues.
        """
        name = query.identifier or "the query"
        if query.alphabet is not self.query_alphabet:
            how = f" (--translate {self.options.translate})" if self.options.translate else ""
            raise AlphabetMismatch(
                self.query_alphabet.name,
                query.alphabet.name,
                f"query {name}",
                f"the database {self.database.path} holds {self.database.alphabet.name}{how}; search another one",
            )
        shortest = 1 if self.options.query_frames == (0,) else CODON
        if not shortest <= len(query) <= MAX_QUERY_LENGTH:
            raise InputError(
                f"query {name} has {len(query)} residues; {shortest} to {MAX_QUERY_LENGTH} can be searched"
            )

    def cells(self, query: SequenceRecord) -> int:
        """Cells of the alignment matrices that the query's scores take, all strands and frames counted."""
        n_residues = self.database.n_residues if self._translated is None else self._translated.n_residues
        return sum(reading_lengths(len(query), self.options, self.strands)) * n_residues

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
            search_space=self.search_space * self.n_chances,
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
        step = max(1, self.engine.profiles_per_call // self._n_readings)
        for first in range(0, len(queries), step):
            yield from self._search_batch(first, queries[first : first + step], progress)

    def _search_batch(
        self, first_number: int, queries: Sequence[SequenceRecord], progress: Progress | None
    ) -> Iterator[QueryResult]:
        """Results of queries that are scored together; the engine's time is shared out by their cells."""
        began = time.perf_counter()
        read = [readings(query, self.options, self.strands, self.scheme) for query in queries]
        scored = self._score(read, [self._floor(len(query)) for query in queries], progress)
        score_seconds = time.perf_counter() - began
        batch_cells = sum(self.cells(query) for query in queries)
        for place, query in enumerate(queries):
            began = time.perf_counter()
            blocks = scored[place]
            candidates = merge_readings(blocks)
            ranking = self._rank(candidates, len(query))
            hits = self._hits(query, read[place], blocks, candidates, ranking)
            share = score_seconds * self.cells(query) / batch_cells
            stats = SearchStats(
                cells=self.cells(query),
                score_seconds=share,
                total_seconds=share + time.perf_counter() - began,
                n_rescored=sum(block.n_rescored for block in blocks),
            )
            yield QueryResult(first_number + place, query.header, query.letters, hits, ranking.n_passed, stats)

    def _floor(self, query_length: int) -> int:
        """Lowest score that any subject of this database could be reported with."""
        if not isinstance(self.statistics, Statistics):
            return 1
        return self.statistics.min_score(
            self.options.evalue,
            self._query_residues(query_length),
            self._distinct_lengths,
            self.search_space,
            self.n_chances,
        )

    def _score(
        self, queries: list[list[Reading]], floors: list[int], progress: Progress | None
    ) -> list[list[ScoreBlock]]:
        """For each query one block a comparison: the subjects of the whole database that score its floor or more.

        A comparison is one of a reading of the query with a frame of the subjects; they come by reading, then frame.
        """
        profiles = [reading.profile for read in queries for reading in read]
        floor_of_profile = [floor for floor, read in zip(floors, queries, strict=True) for _ in read]
        collected: list[list[ScoreBlock]] = [[] for _ in profiles]
        for partition in self._partitions:
            found = self.engine.score(profiles, partition, floor_of_profile, progress)
            for blocks, block in zip(collected, found, strict=True):
                blocks.append(block)
        merged = map(ScoreBlock.concatenate, collected)
        by_frame = iter([[block] if self._translated is None else self._translated.by_frame(block) for block in merged])
        return [[block for _ in read for block in next(by_frame)] for read in queries]

    def _rank(self, candidates: Candidates, query_length: int) -> Ranking:
        evalues = self._evalues(candidates.score, query_length, candidates.subject_index)
        return rank(candidates, evalues, self.options.evalue, self.options.top, self.options.ties)

    def _evalues(self, scores: Scores, query_length: int, subjects: SubjectIndex) -> Floats | None:
        """E-value of each score with its subject; None where the scoring scheme has no statistics."""
        if not isinstance(self.statistics, Statistics):
            return None
        lengths = self._subject_lengths(self.database.lengths(subjects))
        residues = self._query_residues(query_length)
        return self.statistics.evalue(scores, residues, lengths, self.search_space, self.n_chances)

    def _align(
        self,
        query: SequenceRecord,
        read: list[Reading],
        blocks: list[ScoreBlock],
        candidates: Candidates,
        ranking: Ranking,
    ) -> dict[int, list[Found]]:
        """The alignments of each ranked subject: that of its best reading, or the best of all readings that pass."""
        comparisons = list(product(read, self.options.subject_frames))
        if self.options.max_hsps > 1:
            floor = self._floor(len(query))
            ranked = candidates.subject_index[ranking.rows]
            chosen = [block.among(ranked) for block in blocks]
            return self._aligner.align(len(query), zip(comparisons, chosen, strict=True), floor)
        best = []
        for number in range(len(comparisons)):
            rows = ranking.rows[candidates.reading[ranking.rows] == number]
            best.append(ScoreBlock(candidates.subject_index[rows], candidates.score[rows]))
        return self._aligner.align(len(query), zip(comparisons, best, strict=True), floor=1)

    def _hits(
        self,
        query: SequenceRecord,
        read: list[Reading],
        blocks: list[ScoreBlock],
        candidates: Candidates,
        ranking: Ranking,
    ) -> tuple[Hit, ...]:
        """The alignments of the ranked subjects; of a subject's further ones those that pass the E-value cut."""
        found = self._align(query, read, blocks, candidates, ranking)
        ranked = candidates.subject_index[ranking.rows].tolist()
        listed = [
            (place, subject, hsp, one)
            for place, subject in enumerate(ranked, 1)
            for hsp, one in enumerate(found[subject], 1)
        ]
        scores = np.array([one.score for *_, one in listed], dtype=np.int32)
        bits = self.statistics.bits(scores).tolist() if isinstance(self.statistics, Statistics) else None
        evalues = self._evalues(scores, len(query), np.array([subject for _, subject, *_ in listed], dtype=np.uint32))
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
            )
            for row, (place, subject, hsp, one) in enumerate(listed)
            if hsp == 1 or evalues is None or evalues[row] <= self.options.evalue
        )
