"""Conversion of records to rows of the store's tables, and of rows to records.

:mod:`swsearch.store.repository` uses these functions for the values that it writes and for the rows that it reads.
Every row is checked before it is converted (:mod:`swsearch.store.rows`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Row

from swsearch.hits.hit import Alignment, Hit
from swsearch.hits.result import DatabaseInfo, Pssm, QueryResult, RunInfo, SearchStats
from swsearch.hits.shards import AskedQueries, Shard, query_digest
from swsearch.sequences.record import identifier
from swsearch.store.models import HITS, INTERRUPTED, QUERIES, RUNNING, RUNS, storable
from swsearch.store.rows import checked
from swsearch.store.workers import Worker
from swsearch.words import without_secrets


@dataclass(frozen=True)
class StoredRun:
    """A stored run.

    Attributes
    ----------
    id : int
        Its number in the store, from 1; it is never reused for another run.
    info : RunInfo
    state : str
        ``finished``; ``running``; or ``interrupted``: it was stopped, or its process on this machine has ended. A run
        of another machine is ``running`` until that machine stores its end.
    worker : Worker
        The process that worked on it last.
    started, finished : datetime
        Times in UTC; ``finished`` is None if the run is not finished.
    n_queries, n_hits : int
        Numbers of queries and hits committed so far.
    n_failed : int
        Number of queries found so far that cannot be searched.
    asked : AskedQueries or None
        The queries that the run is to search; None if that is not known.
    remark : str or None
        A remark on the run for the user.
    """

    id: int
    info: RunInfo
    state: str
    worker: Worker
    started: datetime
    finished: datetime | None
    n_queries: int
    n_hits: int
    n_failed: int
    asked: AskedQueries | None
    remark: str | None

    @property
    def is_at_work(self) -> bool:
        """Whether a process works on the run, or may work on it on another machine."""
        return self.state == RUNNING

    @property
    def n_missing(self) -> int | None:
        """Number of queries that the run is to search and has neither searched nor refused; None if unknown."""
        n_asked = None if self.asked is None else self.asked.n_of_share
        return None if n_asked is None else n_asked - self.n_queries - self.n_failed


def utc_now() -> datetime:
    """The current time in UTC."""
    return datetime.now(UTC)


def asked_values(asked: AskedQueries | None) -> dict[str, Any]:
    """The columns that define which queries a run is to search."""
    if asked is None:
        return {}
    return {
        "shard_index": asked.shard.index,
        "shard_count": asked.shard.count,
        "asked_n_queries": asked.n_queries,
        "asked_digest": asked.digest,
    }


def claim_values() -> dict[str, Any]:
    """The columns that identify the process that works on a run, namely this process."""
    worker = Worker.this()
    return {"state": RUNNING, "host": worker.host, "process": worker.process, "process_began": worker.began}


def state_of(row: Row[Any], worker: Worker) -> str:
    """The state of a run; a run whose process on this machine has ended is interrupted."""
    return INTERRUPTED if row.state == RUNNING and worker.has_ended else str(row.state)


def run_values(info: RunInfo) -> dict[str, Any]:
    """The columns of a run that its :class:`~swsearch.hits.result.RunInfo` determines."""
    database = info.database
    return {
        "command": without_secrets(info.command),
        "parameters": json.dumps(info.parameters),
        "matrix": info.matrix,
        "matrix_scores": info.matrix_scores,
        "gap_open": info.gap_open,
        "gap_extend": info.gap_extend,
        "lam": info.lam,
        "k": info.k,
        "statistics": info.statistics,
        "search_space": info.search_space,
        "database_path": database.path,
        "database_digest": database.digest,
        "database_generation": database.generation,
        "database_alphabet": database.alphabet,
        "database_n_subjects": database.n_subjects,
        "database_n_residues": database.n_residues,
        "program": info.program,
        "engine": info.engine,
        "threads": info.threads,
    }


def stored_run(row: Row[Any]) -> StoredRun:
    """The run of a row, which also contains the numbers of its queries, hits and failures.

    Raises
    ------
    ValueError
        A value is not valid in its column.
    """
    checked(row, RUNS)
    try:
        parameters = json.loads(row.parameters)
    except ValueError as error:
        raise ValueError(f"table runs, column parameters: {error}") from error
    if not isinstance(parameters, dict):
        raise ValueError("table runs, column parameters: no JSON object")
    database = DatabaseInfo(
        path=row.database_path,
        digest=row.database_digest,
        generation=row.database_generation,
        alphabet=row.database_alphabet,
        n_subjects=row.database_n_subjects,
        n_residues=row.database_n_residues,
    )
    info = RunInfo(
        command=row.command,
        parameters=parameters,
        matrix=row.matrix,
        matrix_scores=row.matrix_scores,
        gap_open=row.gap_open,
        gap_extend=row.gap_extend,
        lam=row.lam,
        k=row.k,
        statistics=row.statistics,
        search_space=row.search_space,
        database=database,
        program=row.program,
        engine=row.engine,
        threads=row.threads,
    )
    worker = Worker(row.host, row.process, row.process_began)
    asked = None
    if row.shard_index is not None:
        asked = AskedQueries(Shard(row.shard_index, row.shard_count), row.asked_n_queries, row.asked_digest)
    return StoredRun(
        id=row.id,
        info=info,
        state=state_of(row, worker),
        worker=worker,
        started=row.started_at,
        finished=row.finished_at,
        n_queries=int(row.n_queries),
        n_hits=int(row.n_hits),
        n_failed=int(row.n_failed),
        asked=asked,
        remark=row.remark,
    )


def query_values(result: QueryResult) -> dict[str, Any]:
    """The columns of a query, without the id of its run."""
    return {
        "number": result.number,
        "digest": query_digest(result.header, result.letters),
        "header": result.header,
        "letters": result.letters,
        "n_hits": len(result.hits),
        "n_passed": result.n_passed,
        "cells": result.stats.cells,
        "score_seconds": result.stats.score_seconds,
        "total_seconds": result.stats.total_seconds,
        "n_rescored": result.stats.n_rescored,
        "committed_at": utc_now(),
        "n_rounds": result.n_rounds,
        "converged": int(result.converged),
        "pssm": None if result.pssm is None else result.pssm.as_text(),
        "identifier": identifier(result.header),
    }


def query_result(row: Row[Any], hits: tuple[Hit, ...]) -> QueryResult:
    """The result of a query, from its row and its hits.

    Raises
    ------
    ValueError
        A value is not valid in its column.
    """
    checked(row, QUERIES)
    stats = SearchStats(row.cells, row.score_seconds, row.total_seconds, row.n_rescored)
    try:
        pssm = None if row.pssm is None else Pssm.from_text(row.pssm, len(row.letters))
    except ValueError as error:
        raise ValueError(f"table queries, column pssm: {error}") from error
    return QueryResult(
        row.number, row.header, row.letters, hits, row.n_passed, stats, row.n_rounds, bool(row.converged), pssm
    )


def hit_values(query_id: int, hit: Hit) -> tuple[Any, ...]:
    """A hit's row, in the order of the table's columns."""
    alignment = hit.alignment
    header = storable(hit.subject_header)
    name = identifier(hit.subject_header)
    return (
        query_id,
        hit.rank,
        hit.hsp,
        hit.subject_index,
        header,
        hit.subject_length,
        hit.score,
        hit.bits,
        hit.evalue,
        hit.strand,
        alignment.query_start,
        alignment.query_end,
        alignment.subject_start,
        alignment.subject_end,
        alignment.cigar,
        alignment.identities,
        alignment.positives,
        alignment.columns,
        alignment.gap_openings,
        alignment.gap_residues,
        storable(alignment.subject_letters),
        storable(alignment.query_letters),
        hit.query_frame,
        hit.subject_frame,
        hit.round,
        name if header is hit.subject_header else storable(name),
        hit.number,
        hit.masked_evalue,
    )


def hit_of(row: Row[Any], query_header: str) -> Hit:
    """The hit of a row; ``query_header`` is the header of its query.

    Raises
    ------
    ValueError
        A value is not valid in its column.
    """
    checked(row, HITS)
    alignment = Alignment(
        query_start=row.query_start,
        query_end=row.query_end,
        subject_start=row.subject_start,
        subject_end=row.subject_end,
        cigar=row.cigar,
        identities=row.identities,
        positives=row.positives,
        columns=row.columns,
        gap_openings=row.gap_openings,
        gap_residues=row.gap_residues,
        subject_letters=row.subject_letters,
        query_letters=row.query_letters,
    )
    return Hit(
        rank=row.rank,
        subject_index=row.subject_index,
        subject_header=row.subject_header,
        subject_length=row.subject_length,
        score=row.score,
        bits=row.bits,
        evalue=row.evalue,
        strand=row.strand,
        alignment=alignment,
        hsp=row.hsp,
        query_frame=row.query_frame,
        subject_frame=row.subject_frame,
        query_header=query_header,
        round=row.round,
        number=row.number,
        masked_evalue=row.masked_evalue,
    )
