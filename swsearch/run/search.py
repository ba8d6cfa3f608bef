"""The search of a run: each query is searched, committed and reported, in the order of the files.

:func:`run_search` performs a complete run and returns its outcome; :class:`Run` yields the results one by one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol, TextIO, cast

from swsearch.engine.protocol import Progress
from swsearch.errors import InputError, StoreError
from swsearch.file_registry import registry
from swsearch.hits.result import QueryResult, RunInfo, SearchStats
from swsearch.hits.shards import AskedQueries, FailedQuery, QueryCount, Shard
from swsearch.run.events import EventLog
from swsearch.run.queries import add_to_count, count_queries, query_key, refusal
from swsearch.run.resume import check_number, check_queries, check_query, open_run
from swsearch.run.surveys import WHOLE
from swsearch.search.planned_search import PlannedSearch
from swsearch.search.queries import Queries
from swsearch.sequences.record import InvalidRecord, SequenceRecord
from swsearch.words import as_options

if TYPE_CHECKING:  # the store imports SQLAlchemy, which takes longer than many searches
    from swsearch.store.runs import StoredRun
    from swsearch.store.store import Store


class WriteReport(Protocol):
    """Writes the results of a run one by one, for example a report format to its stream."""

    def __call__(self, run: RunInfo, results: Iterator[QueryResult], /) -> None:
        """Write the results."""


@dataclass
class RunOutcome:
    """The outcome of a call of :func:`run_search`.

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
    n_repeated : int
        Number of queries among ``n_done`` whose results were copied from a query with the same letters.
    failed : list of InvalidRecord
        Records that could not be searched, with the reason.
    """

    run_id: int | None = None
    store: str = ""
    resumed: bool = False
    n_done: int = 0
    n_before: int = 0
    n_repeated: int = 0
    n_scores: int = 0
    n_bounded: int = 0
    failed: list[InvalidRecord] = field(default_factory=list)


def run_search(
    queries: Queries,
    searcher: PlannedSearch,
    *,
    command: str = "python",
    store: Store | Callable[[], Store] | None = None,
    resume: str | None = None,
    resume_finished: bool = False,
    shard: Shard = WHOLE,
    asked: AskedQueries | None = None,
    report: WriteReport | None = None,
    skip_refused: bool = True,
    search_repeated: bool = False,
    events: TextIO | None = None,
    progress: Progress | None = None,
    notify: Callable[[str], None] | None = None,
    on_query_done: Callable[[RunOutcome], None] | None = None,
    on_run_open: Callable[[RunOutcome], None] | None = None,
    on_store_failure: Callable[[StoreError], None] | None = None,
) -> RunOutcome:
    """Search the queries that are not in the run yet, commit each when it is searched, and report all in order.

    Parameters
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
    shard : Shard
        The share of the queries to search.
    asked : AskedQueries, optional
        The ``asked`` of a :func:`survey` of these files; by default, the files are read once more.
    report : callable, optional
        Writes the record of the run and the results of all its queries in order, including those stored earlier.
    skip_refused : bool
        Whether records that cannot be searched are stored as failed; otherwise, they raise an error.
    search_repeated : bool
        Whether a query is searched although another query has the same letters.
    events : text stream, optional
        Receives one line of JSON per event.
    progress : callable, optional
        Called with the number of cells completed since the last call, including those of queries that need no search.
    notify : callable, optional
        Called with messages for the user before the run begins, for example that another process works on it.
    on_query_done : callable, optional
        Called with the outcome so far after each query.
    on_run_open : callable, optional
        Called with the outcome when the run is open in the store, before the first query.
    on_store_failure : callable, optional
        Called with the error if the store of a new run cannot be opened or written; the search then continues without
        it. By default, this error ends the run.

    Raises
    ------
    InputError
        A query file cannot be read, or has changed since the survey; committed queries remain in the store.
    StoreError
        The store cannot be written, or the run to resume is of another search or of other queries.
    """
    return Run(
        queries, searcher, command, store, shard,
        skip_refused=skip_refused, search_repeated=search_repeated, events=events, progress=progress,
        on_query_done=on_query_done, on_store_failure=on_store_failure, resume_finished=resume_finished,
    ).execute(resume, asked, report, notify or (lambda _: None), on_run_open)  # fmt: skip


@dataclass(frozen=True)
class _Entry:
    """A query in the order of the run: stored earlier, equal to another query, or (if neither) searched."""

    number: int
    stored: bool = False
    copy_of: int | None = None
    record: SequenceRecord | None = None


class Run:
    """A run in progress, for callers that process its results one by one; :func:`run_search` is based on it.

    The parameters are those of :func:`run_search`.

    Attributes
    ----------
    info : RunInfo
    outcome : RunOutcome
    """

    def __init__(
        self,
        queries: Queries,
        searcher: PlannedSearch,
        command: str = "python",
        store: Store | Callable[[], Store] | None = None,
        shard: Shard = WHOLE,
        *,
        skip_refused: bool = True,
        search_repeated: bool = False,
        events: TextIO | None = None,
        progress: Progress | None = None,
        on_query_done: Callable[[RunOutcome], None] | None = None,
        on_store_failure: Callable[[StoreError], None] | None = None,
        resume_finished: bool = False,
    ) -> None:
        info = searcher.run_info(command)
        info = replace(info, parameters={**info.parameters, **queries.parameters(searcher.scheme)})
        self.info = info.having_read(registry().sources)
        self._queries = queries
        self._searcher = searcher
        self._open_store = store if store is None or callable(store) else lambda: store
        self._store: Store | None = None
        self._shard = shard
        self._skip_refused = skip_refused
        self._search_repeated = search_repeated or store is None
        self._progress = progress
        self._on_query_done = on_query_done
        self._on_store_failure = on_store_failure
        self._resume_finished = resume_finished
        self._log = EventLog(events)
        self.outcome = RunOutcome()
        self._is_open = False
        self._refused_early: list[tuple[int, InvalidRecord]] = []
        self._counted: AskedQueries | None = None
        self._committed: dict[int, str] = {}
        self._entries: deque[_Entry] = deque()
        self._unstored_sources: dict[int, QueryResult] = {}

    def execute(
        self,
        resume: str | None,
        asked: AskedQueries | None,
        report: WriteReport | None,
        notify: Callable[[str], None],
        on_run_open: Callable[[RunOutcome], None] | None,
    ) -> RunOutcome:
        """Search, store and report all queries; return the outcome."""
        with closing(self.results(resume, asked, notify, on_run_open, stored_too=report is not None)) as results:
            next(results)
            if report is not None:
                report(self.info, cast(Iterator[QueryResult], results))
            for _ in results:  # the results that a report did not consume
                pass
        return self.outcome

    def results(
        self,
        resume: str | None = None,
        asked: AskedQueries | None = None,
        notify: Callable[[str], None] = lambda _: None,
        on_run_open: Callable[[RunOutcome], None] | None = None,
        *,
        stored_too: bool = True,
    ) -> Generator[QueryResult | None, None, None]:
        """Yield None when the run is open and the engine has started, then the results in order of their numbers.

        Each new result is committed before it is yielded. A run is interrupted if its results are not consumed to the
        end.
        """
        open_store = self._open_store
        if asked is None:
            asked = AskedQueries(self._shard)
            if open_store is not None:
                asked = count_queries(self._queries, self._searcher, self._shard)
        if resume is not None:
            if open_store is None:
                raise StoreError("a run is resumed from its store; name the store")
            self._open_run(open_store(), resume, asked, notify)
        try:
            unsearched = self._unsearched(asked, stored_too=stored_too)
            with closing(self._searcher.search(unsearched, self._progress)) as found:
                if open_store is not None and self._store is None:
                    with self._continuing_without_store():
                        self._open_run(open_store(), None, asked, notify)  # the engine works at the same time
                self._begin_events()
                if on_run_open is not None:
                    on_run_open(self.outcome)
                yield None
                yield from self._results(found)
        except BaseException:
            self._leave_interrupted()
            raise
        outcome = self.outcome
        with self._continuing_without_store():
            if self._store is not None and outcome.run_id is not None:
                self._store.runs.finish(outcome.run_id)
        self._log.write(
            "end", run=outcome.run_id, done=outcome.n_done, before=outcome.n_before, failed=len(outcome.failed)
        )

    # --- the run in the store ---

    def _open_run(self, store: Store, resume: str | None, asked: AskedQueries, notify: Callable[[str], None]) -> None:
        self._store = store
        self.outcome.store = store.name

        def check(run: StoredRun) -> None:
            known = None if run.asked is None else run.asked.digest
            if known != asked.digest:
                check_queries(self._queries, self._searcher, store, run.id)

        self.outcome.run_id, self.outcome.resumed = open_run(
            store,
            self.info,
            resume,
            asked,
            self._searcher.database.has_content,
            notify,
            check,
            or_finished=self._resume_finished,
        )
        self._committed = store.results.committed(self.outcome.run_id)
        self.outcome.n_before = len(self._committed)

    def _leave_interrupted(self) -> None:
        """Mark a run that ends with an error as interrupted, or as finished if no query is missing."""
        store, run_id = self._store, self.outcome.run_id
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
            if self._on_store_failure is None:
                raise
            store, run_id = self._store, self.outcome.run_id
            if store is not None and run_id is not None:
                for number in {entry.copy_of for entry in self._entries if entry.copy_of is not None}:
                    with suppress(StoreError):  # the original is not stored yet
                        self._unstored_sources[number] = store.results.query(run_id, number)
            self._leave_interrupted()
            self._store, self._search_repeated = None, True
            self.outcome.run_id, self.outcome.store = None, ""
            self._on_store_failure(error)

    def _begin_events(self) -> None:
        """Write the first event, and the events of records that were refused before the run was open."""
        outcome = self.outcome
        database = self.info.database.path
        self._log.write("start", run=outcome.run_id, resumed=outcome.resumed, database=database)
        self._is_open = True
        for number, refused in self._refused_early:
            self._note_refused(number, refused)

    def _note_refused(self, number: int, refused: InvalidRecord) -> None:
        if not self._is_open:
            self._refused_early.append((number, refused))
            return
        self.outcome.failed.append(refused)
        reason = as_options(refused.line)  # only commands go on without a query
        if self._store is not None and self.outcome.run_id is not None:
            self._store.results.add_failure(self.outcome.run_id, FailedQuery(number, reason))
        self._log.write("failed", number=number, reason=reason)

    # --- queries and results ---

    def _unsearched(self, asked: AskedQueries, *, stored_too: bool) -> Iterator[SequenceRecord]:
        """The queries to search; all queries with a result to yield are appended to ``_entries``, in order."""
        searcher, store, run_id = self._searcher, self._store, self.outcome.run_id
        first_with: dict[bytes, int] = {}
        count = QueryCount()
        for number, record in enumerate(self._queries.records(searcher.scheme, searcher.needs)):
            add_to_count(count, record)
            if not asked.shard.holds(number):
                continue
            refused = record if isinstance(record, InvalidRecord) else refusal(searcher, number, record)
            if refused is not None:
                if not self._skip_refused:
                    raise InputError(refused.line)
                self._note_refused(number, refused)
                continue
            assert isinstance(record, SequenceRecord)
            known = first_with.setdefault(query_key(record, searcher), number)
            if number in self._committed:
                assert store is not None
                assert run_id is not None
                check_query(searcher, store, run_id, number, record, self._committed[number])
                if stored_too:
                    self._entries.append(_Entry(number, stored=True))
                self._count_cells(record)
            elif known != number and not self._search_repeated:
                self._entries.append(_Entry(number, copy_of=known, record=record))
                self._count_cells(record)
            else:
                self._entries.append(_Entry(number))
                yield record
        self._check_files(asked, count)

    def _check_files(self, asked: AskedQueries, count: QueryCount) -> None:
        """Refuse files that do not contain the run's queries; store the description of the queries if it is new."""
        if self._store is not None and self.outcome.run_id is not None:
            check_number(self._store, self.outcome.run_id, self._committed, count.n_queries)
        read = count.asked(asked.shard)
        if asked.digest is None:
            self._counted = read
        elif read != asked:
            raise InputError(
                "the query files changed while they were read; run the search again when they stay as they are"
            )

    def _note_asked(self) -> None:
        """Store the description of the files' queries, if they were counted while they were read."""
        if self._counted is not None and self._store is not None and self.outcome.run_id is not None:
            self._store.runs.note_asked(self.outcome.run_id, self._counted)
            self._counted = None

    def _results(self, found: Iterator[QueryResult]) -> Generator[QueryResult, None, None]:
        """All results in the order of their numbers; each new result is committed before it is yielded."""
        for result in found:
            while self._entries[0].stored or self._entries[0].copy_of is not None:
                yield self._from_store(self._entries.popleft())
            yield self._added(replace(result, number=self._entries.popleft().number))
        while self._entries:
            yield self._from_store(self._entries.popleft())
        with self._continuing_without_store():
            self._note_asked()

    def _from_store(self, entry: _Entry) -> QueryResult:
        """A result without a search: it was stored before, or is that of a query with the same letters."""
        if entry.copy_of is None:
            return self._stored(entry.number)
        assert entry.record is not None
        self.outcome.n_repeated += 1
        stats = SearchStats(cells=0, score_seconds=0.0, total_seconds=0.0, n_rescored=0)
        letters = self._searcher.as_searched(entry.record).letters
        source = self._stored(entry.copy_of)
        header = entry.record.header
        hits = tuple(replace(hit, query_header=header) for hit in source.hits)
        copied = replace(source, number=entry.number, header=header, letters=letters, hits=hits, stats=stats)
        return self._added(copied)

    def _stored(self, number: int) -> QueryResult:
        """The result of a query of the run that was stored, or kept because the store could not take it."""
        if self._store is None:
            if number not in self._unstored_sources:
                raise StoreError(f"the result of query {number}, which others repeat, cannot be read from the store")
            return self._unstored_sources[number]
        assert self.outcome.run_id is not None
        return self._store.results.query(self.outcome.run_id, number)

    def _added(self, result: QueryResult) -> QueryResult:
        """Commit and count a result; return it."""
        outcome = self.outcome
        with self._continuing_without_store():
            if self._store is not None and outcome.run_id is not None:
                self._note_asked()
                self._store.results.add(outcome.run_id, result)
        if self._store is None and any(entry.copy_of == result.number for entry in self._entries):
            self._unstored_sources[result.number] = result
        outcome.n_done += 1
        outcome.n_scores += result.stats.n_scores
        outcome.n_bounded += result.stats.n_bounded
        self._log.write("query", number=result.number, id=result.header.split(" ", 1)[0], hits=len(result.hits))
        if self._on_query_done is not None:
            self._on_query_done(outcome)
        return result

    def _count_cells(self, record: SequenceRecord) -> None:
        if self._progress is not None:
            self._progress(self._searcher.cells(record))
