"""A worker of a service: takes queries from the store, searches them with one engine, and commits the results.

:class:`SearchWorker` takes what is queued when its engine is free, and never waits for more. A batch is bounded by its
estimated time (:class:`~swsearch.service.estimates.Pace`), so that whoever comes next waits for seconds at most. An
engine that works in the background has two batches, the second of which it begins while the results of the first are
ranked, aligned and stored. A second thread tells the store when the work last made progress (:mod:`swsearch.threads`)
and extends the leases, and hears in return which of them were taken away. Of a worker that hangs, the leases end, and
the server that started it ends its process.

A store has one writer at a time, and the web process writes too. A worker that waited for its turn after each result
would leave its engine idle, so a third thread stores the results (:class:`ResultWriter`). Those that come while it
waits are stored in one transaction, which takes a third of the time; if more are about to come, the thread waits for a
moment.

Its input may be a pipe: each line is a hint that there may be work, and its end is the order to stop, so that no worker
outlives the server that started it. Its output then has a line for each change, ``changed`` or ``ended`` and the
keys of the searches, which the server passes on, and a line ``alive`` for each second with progress. Hints only save
time; without them a worker looks for work several times a second.
"""

from __future__ import annotations

import os
import secrets
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final

from swsearch.engine.protocol import BackgroundEngine
from swsearch.errors import DatabaseError, EngineError, InputError, StoreError, SwSearchError
from swsearch.hits.result import QueryResult, RunInfo
from swsearch.search.searcher import Searcher
from swsearch.sequences.record import SequenceRecord
from swsearch.service.estimates import Pace
from swsearch.service.logs import log, log_seldom
from swsearch.service.searcher_cache import SearcherCache
from swsearch.service.submit import fingerprint
from swsearch.service.worker_processes import ALIVE, CHANGED, ENDED, READY
from swsearch.store.queue import MAX_LOSSES, Queue
from swsearch.store.scheduling import Query
from swsearch.store.search_records import Batch, Completed, Lease, Parameters, SearchedDatabase
from swsearch.threads import SWITCH_SECONDS, beat, listening
from swsearch.typing import Closeable

BATCH_SECONDS: Final = 2.0
"""Predicted time of the batches that an engine has. A longer one would be a little faster, and everybody else would
wait longer."""
LEASE: Final = timedelta(seconds=60)
HEARTBEAT_SECONDS: Final = 1.0
"""Time between two heartbeats, and the longest time until a cancelled search is abandoned."""
LOOK_SECONDS: Final = 0.25
"""Time between two looks for work of an idle worker that gets no hint."""
RECOVER_SECONDS: Final = 5.0
HANG_SECONDS: Final = 300.0
"""Time without progress after which a worker no longer extends its leases."""
NOTICE_SECONDS: Final = 2.0
"""Longest time for which a worker under load uses a database without looking for a new generation."""
OPEN_AGAIN_SECONDS: Final = 5.0
"""Time after which a database that could not be opened is tried again."""
_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 5.0
"""Seconds between a failure of the store and the next attempt, doubled with each failure."""


class _Abandoned(Exception):
    """All searches of the batch were cancelled, or the worker is to stop at once."""


@dataclass(eq=False)
class _RunningBatch:
    """A batch from its claim to the commit of its last result."""

    batch: Batch
    searcher: Searcher
    info: RunInfo
    queries: list[tuple[Lease, SequenceRecord]] = field(default_factory=list)
    """Those that can be searched."""
    refused: list[tuple[Lease, str]] = field(default_factory=list)
    """The others, each with the reason."""
    runs: dict[int, int] = field(default_factory=dict)
    """The run of each search that has one, by the ``id`` of the search."""
    results: Generator[QueryResult, None, None] | None = None
    """The results, from the start on."""
    is_read: bool = False
    """Whether the engine has all queries."""
    is_abandoned: bool = False
    in_hand: set[Query] = field(default_factory=set)

    @property
    def is_suspect(self) -> bool:
        """Whether one of its queries may have ended a worker; such a query is searched alone."""
        return any(query.losses for query in self.batch.queries)

    def start(self) -> None:
        """Pass the queries to the engine; one that works in the background begins at once, unless it has others."""
        if self.results is None:
            self.results = self.searcher.search(self._reading(), self._advance)

    def _reading(self) -> Iterator[SequenceRecord]:
        for _, record in self.queries:
            yield record
        self.is_read = True

    def _advance(self, _cells: int) -> None:
        beat()
        self.check_abandoned()

    def check_abandoned(self) -> None:
        """Raise :class:`_Abandoned` if the batch is."""
        if self.is_abandoned:
            raise _Abandoned

    def close(self) -> None:
        """Cancel what the engine has not finished."""
        self.in_hand = set()
        if self.results is not None:
            self.results.close()


_Result = tuple[_RunningBatch, Completed]


class SearchWorker:
    """One worker process; :meth:`run` returns when it was told to stop.

    Parameters
    ----------
    queue : Queue
    searchers : SearcherCache
    keep : timedelta or None
        Time from the end of a search to its deletion.
    max_losses : int
        Number of workers that may die with a query before it fails.
    hints : bool
        Whether the input and the output are pipes for hints.
    """

    def __init__(
        self,
        queue: Queue,
        searchers: SearcherCache,
        *,
        keep: timedelta | None = None,
        max_losses: int = MAX_LOSSES,
        hints: bool = False,
    ) -> None:
        self.name = f"{socket.gethostname()[:32]}-{os.getpid()}-{secrets.token_hex(4)}"
        self._queue = queue
        self._searchers = searchers
        self._keep = keep
        self._max_losses = max_losses
        self._hints = hints
        self._saying = threading.Lock()
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._ended = threading.Event()
        self._paces: dict[str, Pace] = {}
        self._pace: Pace | None = None
        """The predictions for each database, and for all together."""
        self._pause = _FIRST_PAUSE
        self._closed_until: dict[SearchedDatabase, float] = {}
        """The generations that could not be opened, and when each is tried again."""
        self._known: list[SearchedDatabase] = []
        self._recovered = self._noticed = self._looked = -RECOVER_SECONDS
        self._saw_work = False
        self._running: list[_RunningBatch] = []
        self._is_background = isinstance(searchers.engine, BackgroundEngine)
        self._progressed = time.monotonic()
        self._writer: ResultWriter

    def stop(self) -> None:
        """Finish the queries in hand, then return from :meth:`run`; a second call gives them back instead."""
        if self._stopping.is_set():
            for running in list(self._running):
                running.is_abandoned = True
        self._stopping.set()
        self._wake.set()

    def run(self) -> None:
        """Search until :meth:`stop` is called.

        Raises
        ------
        EngineError
            The engine failed. A GPU is of no use to this process any more; the next one searches the queries again.
        """
        sys.setswitchinterval(SWITCH_SECONDS)  # the threads of the engine and of the store must not wait for this one
        self._queue.enter(self.name, self._searchers.engine.name)
        log("worker started", worker=self.name, engine=self._searchers.engine_choice)
        threads = [threading.Thread(target=self._keep_alive, daemon=True)]
        if self._hints:
            threads.append(threading.Thread(target=self._listen, daemon=True))
        for thread in threads:
            thread.start()
        self._writer = ResultWriter(self._store)
        try:
            with listening(self._progress):
                self._searchers.warm_up()
                self._say(READY)
                self._work_on()
        finally:
            self._writer.close()
            self._ended.set()
        self._queue.leave(self.name)
        log("worker stopped", worker=self.name)

    def _work_on(self) -> None:
        while not self._stopping.is_set():
            beat()
            with self._patience():
                if not self._work() and not self._stopping.is_set():
                    self._wake.wait(LOOK_SECONDS)

    @contextmanager
    def _patience(self) -> Iterator[None]:
        """A context in which a store that does not answer is waited for; what this worker held is given back."""
        try:
            yield
            self._pause = _FIRST_PAUSE
        except StoreError as error:
            log_seldom("store failed", worker=self.name, message=str(error))
            while not self._stopping.wait(self._pause):
                self._pause = min(_LONGEST_PAUSE, self._pause * 2)
                beat()  # it waits for something else than its own work
                with suppress(StoreError):
                    self._queue.give_back(self.name)
                    return

    def _work(self) -> bool:
        """Take and search batches while there are any; returns whether there was one."""
        self._noticed = time.monotonic()
        self._notice_generations()
        if time.monotonic() - self._recovered >= RECOVER_SECONDS:
            self._recovered = time.monotonic()
            n_recovered = self._queue.recover(self._keep, self._max_losses)
            if n_recovered:
                log("queries recovered", "warning", worker=self.name, queries=n_recovered)
        try:
            if not self._take():
                return False
            while self._running:
                self._finish(self._running[0])
                self._running.pop(0).close()
            self._writer.flush()
        finally:
            for running in self._running:
                running.close()
            self._running = []
        return True

    def _take(self) -> bool:
        """Take a batch, if there is work; returns whether there was.

        An engine that works in the background begins before the store has the runs of the searches.
        """
        is_told = self._wake.is_set()
        self._wake.clear()
        self._looked = time.monotonic()
        batch = self._claim() if is_told or self._queue.has_work() else None
        self._saw_work = batch is not None
        while batch is not None and not self._opens(batch):
            batch = self._claim()
        if batch is None:
            return False
        running = self._prepared(batch)
        if running is not None:
            if running.queries:
                self._running.append(running)
                if self._running[0].searcher is running.searcher:  # the engine takes the second behind the first
                    running.start()
            self._begin(running)
        goes_on = running is not None and not running.refused
        self._say(CHANGED if goes_on else ENDED, batch.keys.values())
        return True

    def _take_next(self, running: _RunningBatch) -> None:
        """Take the batch that follows a running one, if the engine can have it already."""
        if not self._is_background or not running.is_read or running.is_suspect or len(self._running) > 1:
            return
        now = time.monotonic()
        is_told = self._hints and not self._saw_work and now - self._looked < LOOK_SECONDS
        if is_told and not self._wake.is_set():
            return  # the queue was empty, and nobody has submitted; a look takes a tenth of the time of a result
        if not self._stopping.is_set() and now - self._noticed <= NOTICE_SECONDS:
            self._take()

    def _claim(self) -> Batch | None:
        """Lease a batch whose database is not known to be closed, if there is one."""
        now = time.monotonic()
        known = [database for database in self._known if self._closed_until.get(database, now) <= now]
        seconds = BATCH_SECONDS / 2 if self._is_background else BATCH_SECONDS  # it has two batches
        budget = {one.name: round(self._pace_of(one.name).cells_per_second * seconds) for one in known}
        return self._queue.claim(self.name, known, budget, LEASE, overhead=self._overhead, with_lost=not self._running)

    def _opens(self, batch: Batch) -> bool:
        """Open the database of a batch; if that fails, the batch goes back, and others come first for a while."""
        database = batch.database
        try:
            self._searchers.open(database)
        except DatabaseError as error:
            self._closed_until[database] = time.monotonic() + OPEN_AGAIN_SECONDS
            cause = error.__cause__
            problem = f": {cause.strerror}" if isinstance(cause, OSError) else ""
            reason = f"the database {database.name} cannot be opened at the moment{problem}; it is tried again"
            self._queue.put_off(self.name, {query.search_id for query in batch.queries}, reason)
            log_seldom("database cannot be opened", worker=self.name, message=str(error))
            self._say(CHANGED, batch.keys.values())
            return False
        self._closed_until.pop(database, None)
        return True

    def _pace_of(self, name: str) -> Pace:
        """The prediction for a database."""
        if name not in self._paces:
            self._paces[name] = Pace(self._searchers.first_speed)
        return self._paces[name]

    def _overhead(self, database: SearchedDatabase, options: Parameters) -> int:
        """Cells that take as long as what a query costs besides its own: its handling, and its alignments."""
        n_hits = self._searchers.databases.most_hits(database.name, options)
        return self._pace_of(database.name).overhead(n_hits)

    def _notice_generations(self) -> None:
        """Begin the unfinished searches of a database anew if it has a new generation."""
        known = self._searchers.current()
        fresh = [database for database in known if database not in self._known]
        self._known = known
        for database in fresh:
            for search in self._queue.outdated(database):
                self._queue.begin_again(search.id, database, fingerprint(database, search.options))
                log("search begun anew", worker=self.name, search=search.key, generation=database.generation)

    # --- one batch ---

    def _prepared(self, batch: Batch) -> _RunningBatch | None:
        """A claimed batch with its searcher; None if the searches cannot be searched at all."""
        try:
            searcher, info = self._searchers.searcher(batch)
        except EngineError:
            raise
        except SwSearchError as error:
            reason = self._searchers.databases.without_paths(error.on_command_line())
            for search_id in {query.search_id for query in batch.queries}:
                self._queue.fail_search(search_id, reason, self._keep)
            return None
        running = _RunningBatch(batch, searcher, info)
        for query in batch.queries:
            try:
                record = SequenceRecord(
                    query.header, searcher.query_alphabet.encode(query.letters), searcher.query_alphabet
                )
                searcher.check(record)
            except InputError as error:
                running.refused.append((query, error.on_command_line()))
                continue
            running.queries.append((query, record))
        running.in_hand = {(query.search_id, query.number) for query, _ in running.queries}
        return running

    def _begin(self, running: _RunningBatch) -> None:
        """Store the runs of the searches of a batch, and which queries cannot be searched.

        A search that another program began is begun anew. Such searches, and those that were cancelled, have no run;
        their results are left out.
        """
        batch = running.batch
        ids = sorted({query.search_id for query in batch.queries})
        for search_id, (run_id, found) in self._queue.begin(ids, running.info).items():
            if found is not None and running.info.differences(found):
                self._queue.begin_again(search_id, batch.database, batch.fingerprint)
            else:
                running.runs[search_id] = run_id
        running.in_hand = {query for query in running.in_hand if query[0] in running.runs}
        for query, reason in running.refused:
            if query.search_id in running.runs:
                self._queue.fail(self.name, query, reason, self._keep)

    def _finish(self, running: _RunningBatch) -> None:
        """Let the results of a batch be stored as they come, and take the batch that follows."""
        began = time.monotonic()
        database = running.batch.database.name
        n_hits = 0
        cells = sum(query.cells for query, _ in running.queries)
        try:
            running.start()
            assert running.results is not None
            self._take_next(running)
            for place, ((query, _), result) in enumerate(zip(running.queries, running.results, strict=True), 1):
                beat()
                running.check_abandoned()
                if query.search_id not in running.runs:
                    continue
                n_hits += len(result.hits)
                completed = Completed(query, running.runs[query.search_id], replace(result, number=query.number))
                is_last = place == len(running.queries)
                if is_last and self._hints and not self._wake.is_set() and len(self._running) == 1:
                    self._writer.finish((running, completed))
                else:
                    self._writer.put((running, completed), more_soon=not is_last)
                self._take_next(running)
                if is_last and len(self._running) == 1:
                    self._writer.flush()  # whatever this thread did now, the one that stores would wait for
        except _Abandoned:
            log("batch abandoned", worker=self.name)
            if all(each.is_abandoned for each in self._running):
                self._queue.give_back(self.name)
            return
        seconds = time.monotonic() - began
        if self._pace is None:
            self._pace = Pace(self._searchers.first_speed)
        for pace in (self._pace_of(database), self._pace):
            pace.add(len(running.queries), cells, n_hits, seconds)
        log(
            "batch",
            worker=self.name,
            database=database,
            queries=len(running.queries),
            cells=cells,
            seconds=round(seconds, 4),
        )

    # --- beside the search ---

    def _store(self, results: Sequence[_Result]) -> None:
        """Store results and say which searches have changed; called by the thread that stores."""
        have_ended = self._queue.complete(self.name, [completed for _, completed in results], self._keep)
        beat()  # the search may be waiting for this
        keys: dict[str, list[str]] = {}
        for running, completed in results:
            query = completed.query
            running.in_hand.discard((query.search_id, query.number))
            word = ENDED if have_ended.get(query.search_id, True) else CHANGED
            keys.setdefault(word, []).append(running.batch.keys[query.search_id])
        for word, of_word in keys.items():
            self._say(word, of_word)

    def _progress(self) -> None:
        self._progressed = time.monotonic()

    def _keep_alive(self) -> None:
        """Extend the leases while there is progress; notice that all of them were taken away."""
        told = 0.0
        while not self._ended.wait(HEARTBEAT_SECONDS):
            progressed = self._progressed
            if progressed > told:
                told = progressed
                self._say(ALIVE)
            silence = time.monotonic() - progressed
            if silence > HANG_SECONDS:
                continue
            in_hand_before = [(running, set(running.in_hand)) for running in list(self._running)]
            try:
                speed = 0.0 if self._pace is None else self._pace.cells_per_second
                held = self._queue.heartbeat(self.name, speed, LEASE, timedelta(seconds=silence))
            except StoreError:
                continue  # the loop reports it when it needs the store itself
            for running, in_hand in in_hand_before:
                if in_hand and in_hand <= running.in_hand and not held & in_hand:
                    running.is_abandoned = True

    def _listen(self) -> None:
        """Wake at each hint; stop when the server has ended."""
        with suppress(OSError):
            while os.read(0, 4096):
                self._wake.set()
        self.stop()

    def _say(self, word: str, keys: Iterable[str] = ()) -> None:
        if self._hints:
            with self._saying, suppress(OSError, ValueError):
                sys.stdout.write(" ".join([word, *keys]) + "\n")
                sys.stdout.flush()


# --- results on their way to the store ---


MAX_WAITING: Final = 32
"""Number of results that may wait; the search then waits for the store."""
GROUP: Final = 8
LINGER_SECONDS: Final = 0.025
"""Number of results, and the longest time, for which the thread waits if more are about to come."""


class ResultWriter(Closeable):
    """The results of one worker on their way to the store, which a thread writes.

    ``store`` stores results in one transaction, or raises StoreError.
    """

    def __init__(self, store: Callable[[list[_Result]], None]) -> None:
        self._store = store
        self._thread = ThreadPoolExecutor(1)
        self._waiting: deque[_Result] = deque()
        self._writes: deque[Future[None]] = deque()
        """One for each result; when it has ended, the result was written, with others, or discarded."""
        self._is_due = threading.Event()
        self._error: BaseException | None = None

    def put(self, result: _Result, *, more_soon: bool = False) -> None:
        """Let a result be stored; ``more_soon`` says that others of its batch will follow.

        Raises
        ------
        StoreError
            An earlier one could not be stored; those that waited were discarded.
        """
        if len(self._writes) > MAX_WAITING:
            self._writes.popleft().result()
        if self._error is not None:
            self.flush()
        self._waiting.append(result)
        if not more_soon or len(self._waiting) >= GROUP:
            self._is_due.set()
        self._writes.append(self._thread.submit(self._write))

    def finish(self, result: _Result) -> None:
        """Store a result that none will follow soon, with those that wait; raises StoreError as :meth:`put` does.

        The caller has nothing else to do, so if no result waits, it stores this one itself, which saves the time in
        which the thread wakes.
        """
        if all(write.done() for write in self._writes):
            self.flush()
            self._store([result])
        else:
            self.put(result)
            self.flush()

    def flush(self) -> None:
        """Return when everything is stored; raises StoreError as :meth:`put` does."""
        self._is_due.set()
        wait(self._writes)
        self._writes.clear()
        self._is_due.clear()
        error, self._error = self._error, None
        if error is not None:
            raise error

    def close(self) -> None:
        """End the thread, after what it stores at the moment."""
        self._is_due.set()
        self._thread.shutdown(cancel_futures=True)

    def _write(self) -> None:
        if not self._waiting:  # it was stored with an earlier one
            return
        self._is_due.wait(LINGER_SECONDS)
        self._is_due.clear()
        results = [self._waiting.popleft() for _ in range(len(self._waiting))]
        if self._error is None:
            try:
                self._store(results)
            except BaseException as error:
                self._error = error
