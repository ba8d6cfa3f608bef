"""The search, step by step: profile, scores, candidates, statistics, the top N, alignments, hits.

:class:`Searcher` holds what all queries of a run share (database, scheme, statistics, engine) and turns one query
after another into a :class:`swsearch.hits.result.QueryResult`. It computes; it neither stores nor prints.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from swsearch import __version__
from swsearch.alignment.traceback import align_hits
from swsearch.database.partition import Partition
from swsearch.database.reader import PackedDatabase
from swsearch.engine.protocol import Progress, ScoreEngine
from swsearch.errors import AlphabetMismatch, InputError
from swsearch.hits.hit import Alignment, Hit
from swsearch.hits.result import DatabaseInfo, QueryResult, RunInfo, SearchStats
from swsearch.hits.score_block import ScoreBlock
from swsearch.query.position_specific import PositionSpecificQuery
from swsearch.query.profile import QueryProfile, sequence_profile
from swsearch.scoring.matrix import matrix_text
from swsearch.search.options import SearchOptions
from swsearch.search.ranking import Candidates, Ranking, cut, cut_passing, in_order, merge_strands
from swsearch.search.subjects import select_subjects
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
    InputError
        No subject passes the filters, a file that they name cannot be read, or a filter needs statistics that the
        scoring scheme has not.

    Attributes
    ----------
    notes : tuple of str
        What a person should hear before the search: identifiers of a list that named no subject, say.
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
        self._selection = select_subjects(database, options)
        self.notes = () if self._selection is None else self._selection.notes
        self._partitions = list(self._chosen_partitions(partition_residues))
        self._distinct_lengths = database.distinct_lengths()
        self._n_residues = database.n_residues
        if self._selection is not None:
            lengths = database.lengths(self._selection.subject_index)
            self._distinct_lengths = np.unique(lengths)
            self._n_residues = int(lengths.sum(dtype=np.uint64))
        self._least_score = self._lowest_allowed_score()
        self._floors: dict[int, int] = {}
        self._alignment_filter = options.alignment_filter

    def _chosen_partitions(self, partition_residues: int | None) -> Iterator[Partition]:
        """The subjects that pass the filters, in pieces."""
        if self._selection is None:
            yield from self.database.partitions(partition_residues)
            return
        for whole in self.database.partitions():
            places = np.flatnonzero(self._selection.chosen[whole.subject_index])
            if partition_residues is not None:
                yield from whole[places].split(partition_residues)
            elif places.size:
                yield whole[places]

    def _lowest_allowed_score(self) -> int:
        """Lowest raw score that the filters let through."""
        least = self.options.min_score or 1
        if self.options.min_bits is None:
            return least
        if not isinstance(self.statistics, Statistics):
            raise InputError(f"--min-bits {self.options.min_bits}: there are no bit scores, {self.statistics.reason}")
        return max(least, self.statistics.min_score_of_bits(self.options.min_bits))

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
        return len(query) * self._n_residues * len(self.strands)

    def run_info(self, command: str) -> RunInfo:
        """The record of this run; ``command`` is how it was asked for."""
        statistics = self.statistics
        known = statistics if isinstance(statistics, Statistics) else None
        return RunInfo(
            command=command,
            parameters=self._parameters(),
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

    def _parameters(self) -> dict[str, str | int | float | bool | None]:
        """The options, and which subjects they chose: files of identifiers may change between two searches."""
        parameters = self.options.as_parameters()
        if self._selection is not None:
            parameters |= {"chosen_subjects": self._selection.n_subjects, "chosen_digest": self._selection.digest}
        return parameters

    # --- the steps ---

    def search(self, queries: Sequence[SequenceRecord], progress: Progress | None = None) -> Iterator[QueryResult]:
        """Results of the queries, in their order, each as soon as it is there.

        All queries are checked before the first is searched. They are scored in batches of as many as the engine gains
        from; the batches never change a result.
        """
        for query in queries:
            self.check(query)
        first = 0
        while first < len(queries):
            n_queries = self._batch_size(queries[first:])
            yield from self._search_batch(first, queries[first : first + n_queries], progress)
            first += n_queries

    def _batch_size(self, queries: Sequence[SequenceRecord]) -> int:
        """How many of the queries, from the first on, the engine gains from scoring together; at least 1."""
        most = max(1, self.engine.profiles_per_call // len(self.strands))
        rows = np.cumsum([len(query) * len(self.strands) for query in queries[:most]])
        return max(1, int(np.searchsorted(rows, self.engine.rows_per_call, side="right")))

    def _search_batch(
        self, first_number: int, queries: Sequence[SequenceRecord], progress: Progress | None
    ) -> Iterator[QueryResult]:
        """Results of queries that are scored together; the engine's time is shared out by their cells."""
        began = time.perf_counter()
        strands = [self._strands(query) for query in queries]
        scored = self._score(strands, [self._floor(len(query)) for query in queries], progress)
        score_seconds = time.perf_counter() - began
        batch_cells = sum(self.cells(query) for query in queries)
        for place, query in enumerate(queries):
            began = time.perf_counter()
            blocks = scored[place]
            candidates = merge_strands(blocks)
            ranking, alignments = self._best(strands[place], candidates, len(query))
            hits = self._hits(strands[place], candidates, ranking, alignments)
            share = score_seconds * self.cells(query) / batch_cells
            stats = SearchStats(
                cells=self.cells(query),
                score_seconds=share,
                total_seconds=share + time.perf_counter() - began,
                n_rescored=sum(block.n_rescored for block in blocks),
            )
            yield QueryResult(first_number + place, query.header, query.letters, hits, ranking.n_passed, stats)

    def _strands(self, query: SequenceRecord) -> list[_Strand]:
        strands = []
        for name in self.strands:
            codes = reverse_complement(query.codes) if name == "minus" else query.codes
            strands.append(_Strand(name, codes, self._profile(query, codes)))
        return strands

    def _profile(self, query: SequenceRecord, codes: Codes) -> QueryProfile:
        """The scores of a query along the strand of ``codes``."""
        if isinstance(query, PositionSpecificQuery):
            return query.profile(self.scheme.gap)
        return sequence_profile(codes, self.scheme)

    def _floor(self, query_length: int) -> int:
        """Lowest score that any subject of this database could be reported with; the same for queries of one length."""
        if query_length not in self._floors:
            self._floors[query_length] = max(self._least_score, self._lowest_significant_score(query_length))
        return self._floors[query_length]

    def _lowest_significant_score(self, query_length: int) -> int:
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
        """For each query one block a strand: the subjects of the whole database that score its floor or more."""
        profiles = [strand.profile for strands in queries for strand in strands]
        floor_of_profile = [floor for floor, strands in zip(floors, queries, strict=True) for _ in strands]
        collected: list[list[ScoreBlock]] = [[] for _ in profiles]
        for partition in self._partitions:
            found = self.engine.score(profiles, partition, floor_of_profile, progress)
            for blocks, block in zip(collected, found, strict=True):
                blocks.append(block)
        merged = iter([ScoreBlock.concatenate(blocks) for blocks in collected])
        return [[next(merged) for _ in strands] for strands in queries]

    def _best(
        self, strands: list[_Strand], candidates: Candidates, query_length: int
    ) -> tuple[Ranking, dict[int, Alignment]]:
        """The rows that are reported, and the alignment of each."""
        evalues = None
        lengths = self.database.lengths(candidates.subject_index)
        if isinstance(self.statistics, Statistics):
            evalues = self.statistics.evalue(
                candidates.score, query_length, lengths, self.search_space, len(self.strands)
            )
        options = self.options
        ordered = in_order(candidates, evalues, options.evalue)
        if not self._alignment_filter:
            ranking = cut(candidates, ordered, options.top, options.ties)
            return ranking, self._align(strands, candidates, ranking.rows)
        alignments: dict[int, Alignment] = {}
        judge = self._alignment_filter.passes

        def passes(rows: NDArray[np.intp]) -> NDArray[np.bool_]:
            found = self._align(strands, candidates, rows)
            passed = [row for row in rows.tolist() if judge(found[row], query_length, int(lengths[row]))]
            alignments.update((row, found[row]) for row in passed)
            return np.isin(rows, passed)

        return cut_passing(candidates, ordered, options.top, options.ties, passes), alignments

    def _align(self, strands: list[_Strand], candidates: Candidates, ranked: NDArray[np.intp]) -> dict[int, Alignment]:
        """The alignment of each of some rows."""
        alignments: dict[int, Alignment] = {}
        for number, strand in enumerate(strands):
            rows = ranked[candidates.strand[ranked] == number]
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

    def _hits(
        self, strands: list[_Strand], candidates: Candidates, ranking: Ranking, alignments: dict[int, Alignment]
    ) -> tuple[Hit, ...]:
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
