"""The search of a run: each query is searched and committed, in the order of the files; then its steps have the result.

A :class:`Run` is a context in which the engine works and the run is open in the store; its results are read by a loop.
:meth:`Run.execute` performs a complete run with its steps.
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self, TextIO

from swsearch.errors import InputError, StoreError
from swsearch.file_registry import registry
from swsearch.hits.result import QueryResult, RunInfo, SearchStats
from swsearch.hits.shards import AskedQueries, Failure, RecordCount
from swsearch.report.base import Step, perform
from swsearch.run.preparation import (
    add_to_count,
    check_number,
    check_query,
    count_queries,
    open_run,
    query_key,
    refusal,
)
from swsearch.search.planned_search import PlannedSearch
from swsearch.search.queries import Queries
from swsearch.sequences.record import InvalidRecord, SequenceRecord
from swsearch.typing import Closeable, Progress
from swsearch.words import as_options

if TYPE_CHECKING:  # the store imports SQLAlchemy, which takes longer than many searches
    from swsearch.store.store import Store


@dataclass
class RunOutcome:
    """The outcome of a :class:`Run`.

    Attributes
    ----------
    run_id : int or None
        Id of the run in the store; None if nothing is stored, or if the store could not take all results.
    store : str
        Name of the store, without a password; empty if nothing is stored.
    resumed : bool
        Whether the run was already in the store.
    n_done : int
        Number of queries searched or copied in this call.
    n_before : int
        Number of queries that the run had before this call.
    n_scores, n_bounded : int
        Number of scores that the search needed, and of those that a bound proved to be too low to report.
    failed : list of InvalidRecord
        Records that could not be searched, with the reason.
    """

    run_id: int | None = None
    store: str = ""
    resumed: bool = False
    n_done: int = 0
    n_before: int = 0
    n_scores: int = 0
    n_bounded: int = 0
    failed: list[InvalidRecord] = field(default_factory=list)


@dataclass(frozen=True)
class _RunEntry:
    """A query in the order of the run: stored earlier, equal to another query, or (if neither) searched."""

    number: int
    stored: bool = False
    copy_of: int | None = None
    record: SequenceRecord | None = None


@dataclass
class Run(Closeable):
    """A run: a context in which its results can be read once, in the order of their numbers.

    When the context is entered, the engine has started and the run is open in the store. Each new result is committed
    before it is yielded. A run is interrupted if its results are not read to the end.

    Attributes
    ----------
    queries : Queries
        Query files or records, in an order that stays the same when the run is resumed or sharded.
    searcher : PlannedSearch
    command : str
        The command line, stored with the run.
    store : Store or callable, optional
        The store of the run, or a function that opens it and is called after the engine has started. By default,
        nothing is stored.
    resume : str, optional
        The id of a run of the same search; or ``latest`` for the newest unfinished run of the same search, or a new run
        if there is none. Requires a store.
    resume_finished : bool
        Whether ``latest`` may also be a finished run of the same search, in which nothing is missing.
    asked : AskedQueries, optional
        The ``asked`` of a :func:`survey` of these files, with the shard of the queries to search. By default, all are
        searched, and the files are read once more.
    skip_refused : bool
        Whether records that cannot be searched are stored as failed; otherwise, they raise an error.
    search_repeated : bool
        Whether a query is searched although another query has the same letters.
    stored_too : bool
        Whether results that were stored earlier are yielded, too.
    events : text stream, optional
        Receives one line of JSON per event (:meth:`tell`).
    progress : callable, optional
        Called with the number of cells completed since the last call, including those of queries that need no search.
    notify : callable, optional
        Called with messages for the user before the run begins, for example that another process works on it.
    on_query_done : callable, optional
        Called with the outcome so far after each query.
    on_store_failure : callable, optional
        Called with the error if the store of a new run cannot be opened or written; the search then continues without
        it. By default, this error ends the run.
    info : RunInfo
        The record of the run.
    outcome : RunOutcome
        What was done so far.
    is_open : bool
        Whether the run has begun: if there is a store, the run is open in it.
    open_store : Store or None
        The store, while it takes the results.

    Raises
    ------
    InputError
        A query file cannot be read, or has changed since the survey; committed queries remain in the store.
    StoreError
        The store cannot be written, or the run to resume is of another search or of other queries.
    """

    queries: Queries
    searcher: PlannedSearch
    command: str = "python"
    store: Store | Callable[[], Store] | None = None
    resume: str | None = None
    resume_finished: bool = False
    asked: AskedQueries | None = None
    skip_refused: bool = True
    search_repeated: bool = False
    stored_too: bool = True
    events: TextIO | None = None
    progress: Progress | None = None
    notify: Callable[[str], None] | None = None
    on_query_done: Callable[[RunOutcome], None] | None = None
    on_store_failure: Callable[[StoreError], None] | None = None

    def __post_init__(self) -> None:
        info = self.searcher.run_info(self.command)
        info = replace(info, parameters={**info.parameters, **self.queries.parameters(self.searcher)})
        self.info: RunInfo = info.having_read(registry().sources)
        self.outcome = RunOutcome()
        self.search_repeated = self.search_repeated or self.store is None
        self.is_open = False
        self.open_store: Store | None = None
        self._began = time.monotonic()
        self._found: Generator[QueryResult, None, None] | None = None
        self._is_complete = False
        self._refused_early: list[tuple[int, InvalidRecord]] = []
        self._counted: AskedQueries | None = None
        self._committed: dict[int, str] = {}
        self._entries: deque[_RunEntry] = deque()
        """The queries that were read and whose results were not yielded, in order."""
        self._unstored_sources: dict[int, QueryResult] = {}

    def execute(
        self, steps: Sequence[Step] = (), of_each: Callable[[QueryResult], QueryResult] | None = None
    ) -> RunOutcome:
        """Search and store all queries, and give each result, or what ``of_each`` makes of it, to the steps."""
        self.stored_too = self.stored_too and bool(steps or of_each)
        with self:
            perform(steps, self.info, self if of_each is None else map(of_each, self))
        return self.outcome

    def __enter__(self) -> Self:
        asked = self._asked()
        if self.resume is not None:
            if self.store is None:
                raise StoreError("a run is resumed from its store; name the store")
            self._open_run(self.resume, asked)
        try:
            self._found = self.searcher.search(self._unsearched(asked), self.progress)
            if self.store is not None and self.open_store is None:
                with self._continuing_without_store():
                    self._open_run(None, asked)  # the engine works at the same time
            self._begin_events()
        except BaseException:
            self.close()
            raise
        return self

    def __iter__(self) -> Iterator[QueryResult]:
        assert self._found is not None
        for result in self._found:
            while self._entries[0].stored or self._entries[0].copy_of is not None:
                yield self._from_store(self._entries.popleft())
            yield self._added(replace(result, number=self._entries.popleft().number))
        while self._entries:
            yield self._from_store(self._entries.popleft())
        outcome = self.outcome
        with self._continuing_without_store():
            self._note_asked()
        self._is_complete = True
        with self._continuing_without_store():
            if self.open_store is not None and outcome.run_id is not None:
                self.open_store.runs.finish(outcome.run_id)
        self.tell("end", run=outcome.run_id, done=outcome.n_done, before=outcome.n_before, failed=len(outcome.failed))

    def close(self) -> None:
        """End the search; a run that is not complete is marked as interrupted."""
        if self._found is not None:
            self._found.close()
        if not self._is_complete:
            self._is_complete = True
            self._leave_interrupted()

    def tell(self, event: str, **values: Any) -> None:
        """Write an event, if there is a stream for them: a line of JSON, which is flushed at once.

        It has ``event`` (``start``, ``query``, ``failed``, ``end``) and ``seconds`` since the start.
        """
        if self.events is not None:
            seconds = round(time.monotonic() - self._began, 3)
            self.events.write(json.dumps({"event": event, "seconds": seconds, **values}) + "\n")
            self.events.flush()

    def _asked(self) -> AskedQueries:
        if self.asked is not None:
            return self.asked
        if self.store is None:
            return AskedQueries()
        return count_queries(self.queries, self.searcher)

    # --- the run in the store ---

    def _open_run(self, resume: str | None, asked: AskedQueries) -> None:
        assert self.store is not None
        store = self.open_store = self.store() if callable(self.store) else self.store
        self.outcome.store = store.name
        if resume is None:
            self.outcome.run_id = store.runs.start(self.info, asked)
            return
        self.outcome.run_id, self.outcome.resumed = open_run(
            store,
            self.info,
            resume,
            asked,
            self.queries,
            self.searcher,
            self.notify or (lambda _: None),
            or_finished=self.resume_finished,
        )
        self._committed = store.results.committed(self.outcome.run_id)
        self.outcome.n_before = len(self._committed)

    def _leave_interrupted(self) -> None:
        """Mark a run that ends with an error as interrupted, or as finished if no query is missing."""
        store, run_id = self.open_store, self.outcome.run_id
        if store is None or run_id is None:
            return
        # The error that ends the run is reported, not one of this method; a run whose process has ended counts as
        # interrupted even without this mark.
        with suppress(StoreError):
            (store.runs.finish if store.runs.get(run_id).n_missing == 0 else store.runs.interrupt)(run_id)

    @contextmanager
    def _continuing_without_store(self) -> Iterator[None]:
        """A context in which an error of the store ends its use instead of the run, if the caller wants to know of it.

        Queries that are to be copied from stored ones, and were read before the error, are copied from memory.
        """
        try:
            yield
        except StoreError as error:
            if self.on_store_failure is None:
                raise
            store, run_id = self.open_store, self.outcome.run_id
            if store is not None and run_id is not None:
                for number in {entry.copy_of for entry in self._entries if entry.copy_of is not None}:
                    with suppress(StoreError):  # the original is not stored yet
                        self._unstored_sources[number] = store.results.query(run_id, number)
            self._leave_interrupted()
            self.open_store, self.search_repeated = None, True
            self.outcome.run_id, self.outcome.store = None, ""
            self.on_store_failure(error)

    def _begin_events(self) -> None:
        """Write the first event, and the events of records that were refused before the run was open."""
        outcome = self.outcome
        database = self.info.database.path
        self.tell("start", run=outcome.run_id, resumed=outcome.resumed, database=database)
        self.is_open = True
        for number, refused in self._refused_early:
            self._note_refused(number, refused)

    def _note_refused(self, number: int, refused: InvalidRecord) -> None:
        if not self.is_open:
            self._refused_early.append((number, refused))
            return
        self.outcome.failed.append(refused)
        reason = as_options(refused.line)  # only commands go on without a query
        if self.open_store is not None and self.outcome.run_id is not None:
            self.open_store.results.add_failure(self.outcome.run_id, Failure(number, reason))
        self.tell("failed", number=number, reason=reason)

    # --- queries and results ---

    def _unsearched(self, asked: AskedQueries) -> Iterator[SequenceRecord]:
        """The queries to search; all queries with a result to yield are appended to ``_entries``, in order."""
        searcher, store, run_id = self.searcher, self.open_store, self.outcome.run_id
        first_with: dict[bytes, int] = {}
        count = RecordCount()
        for number, record in enumerate(self.queries.records(searcher)):
            add_to_count(count, record)
            if not asked.shard.holds(number):
                continue
            refused = record if isinstance(record, InvalidRecord) else refusal(searcher, number, record)
            if refused is not None:
                if not self.skip_refused:
                    raise InputError(refused.line)
                self._note_refused(number, refused)
                continue
            assert isinstance(record, SequenceRecord)
            known = first_with.setdefault(query_key(record, searcher), number)
            if number in self._committed:
                assert store is not None
                assert run_id is not None
                check_query(searcher, store.name, run_id, number, record, self._committed[number])
                if self.stored_too:
                    self._entries.append(_RunEntry(number, stored=True))
                self._count_cells(record)
            elif known != number and not self.search_repeated:
                self._entries.append(_RunEntry(number, copy_of=known, record=record))
                self._count_cells(record)
            else:
                self._entries.append(_RunEntry(number))
                yield record
        self._check_files(asked, count)

    def _check_files(self, asked: AskedQueries, count: RecordCount) -> None:
        """Refuse files that do not contain the run's queries; store the description of the queries if it is new."""
        if self.open_store is not None and self.outcome.run_id is not None:
            check_number(self.open_store.name, self.outcome.run_id, self._committed, count.n_queries)
        read = count.asked(asked.shard)
        if asked.digest is None:
            self._counted = read
        elif read != asked:
            raise InputError(
                "the query files changed while they were read; run the search again when they stay as they are"
            )

    def _note_asked(self) -> None:
        """Store the description of the files' queries, if they were counted while they were read."""
        if self._counted is not None and self.open_store is not None and self.outcome.run_id is not None:
            self.open_store.runs.note_asked(self.outcome.run_id, self._counted)
            self._counted = None

    def _from_store(self, entry: _RunEntry) -> QueryResult:
        """A result without a search: it was stored before, or is that of a query with the same letters."""
        if entry.copy_of is None:
            return self._stored(entry.number)
        assert entry.record is not None
        stats = SearchStats(cells=0, score_seconds=0.0, total_seconds=0.0, n_rescored=0)
        letters = self.searcher.as_searched(entry.record).letters
        source = self._stored(entry.copy_of)
        header = entry.record.header
        hits = tuple(replace(hit, query_header=header) for hit in source.hits)
        copied = replace(source, number=entry.number, header=header, letters=letters, hits=hits, stats=stats)
        return self._added(copied)

    def _stored(self, number: int) -> QueryResult:
        """The result of a query of the run that was stored, or kept because the store could not take it."""
        if self.open_store is None:
            if number not in self._unstored_sources:
                raise StoreError(f"the result of query {number}, which others repeat, cannot be read from the store")
            return self._unstored_sources[number]
        assert self.outcome.run_id is not None
        return self.open_store.results.query(self.outcome.run_id, number)

    def _added(self, result: QueryResult) -> QueryResult:
        """Commit and count a result; return it."""
        outcome = self.outcome
        with self._continuing_without_store():
            if self.open_store is not None and outcome.run_id is not None:
                self._note_asked()
                self.open_store.results.add(outcome.run_id, result)
        if self.open_store is None and any(entry.copy_of == result.number for entry in self._entries):
            self._unstored_sources[result.number] = result
        outcome.n_done += 1
        outcome.n_scores += result.stats.n_scores
        outcome.n_bounded += result.stats.n_bounded
        self.tell("query", number=result.number, id=result.header.split(" ", 1)[0], hits=len(result.hits))
        if self.on_query_done is not None:
            self.on_query_done(outcome)
        return result

    def _count_cells(self, record: SequenceRecord) -> None:
        if self.progress is not None:
            self.progress(self.searcher.cells(record))
