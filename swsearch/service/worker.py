"""A worker of a service: takes queries from the store, searches them with a resident engine, and commits the results.

:class:`Worker` takes what is queued when its engine is free, and never waits for more. A batch is bounded by its
predicted time, so that whoever comes next waits for seconds at most. An engine that works in the background has two
batches, the second of which it begins while the results of the first are ranked, aligned and stored. A second thread
tells the store that the worker lives, which extends its leases, and hears in return which of them were taken away.

Its input may be a pipe: each line is a hint that there may be work, and its end is the order to stop, so that no worker
outlives the server that started it. Its output then has a line for each change, ``changed`` and the keys of the
searches, which the server passes on. Hints only save time; without them a worker looks for work several times a second.
"""

from __future__ import annotations

import os
import secrets
import socket
import sys
import threading
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final

from swsearch.engine.protocol import BackgroundEngine
from swsearch.errors import EngineError, InputError, StoreError, SwSearchError
from swsearch.hits.result import QueryResult
from swsearch.search.searcher import Searcher
from swsearch.sequences.record import SequenceRecord
from swsearch.service.commits import Commits
from swsearch.service.fingerprints import content, fingerprint
from swsearch.service.logs import log
from swsearch.service.residents import Residents
from swsearch.store.claims import Query
from swsearch.store.leases import MAX_LOSSES, WorkStore
from swsearch.store.search_records import Batch, ClaimedQuery, SearchedDatabase, StoredSearch
from swsearch.threads import SWITCH_SECONDS

BATCH_SECONDS: Final = 2.0
"""Predicted time of the batches that an engine has. A longer one would be a little faster, and everybody else would
wait longer."""
LEASE: Final = timedelta(seconds=60)
HEARTBEAT_SECONDS: Final = 1.0
"""Time between two heartbeats, and the longest time until a cancelled search is abandoned."""
LOOK_SECONDS: Final = 0.25
"""Time between two looks for work of an idle worker that gets no hint."""
RECOVER_SECONDS: Final = 5.0
NOTICE_SECONDS: Final = 2.0
"""Longest time for which a worker under load uses a database without looking for a new generation."""
MEMORY_SECONDS: Final = 20.0
"""Time of measured work after which an earlier measurement has lost about two thirds of its weight."""
COMMAND: Final = "swsearch serve"
"""The command that the runs of a service store."""


class _Abandoned(Exception):
    """All searches of the batch were cancelled, or the worker is to stop at once."""


@dataclass(eq=False)
class _Flight:
    """A batch from its claim to the commit of its last result.

    Attributes
    ----------
    batch : Batch
    searcher : Searcher
    runs : dict of int to int
        The run of each search, by the ``id`` of the search.
    queries : list of ClaimedQuery
        Those that can be searched.
    records : list of SequenceRecord
    results : generator, optional
        The results, from the start on.
    is_read : bool
        Whether the engine has all queries.
    is_abandoned : bool
    """

    batch: Batch
    searcher: Searcher
    runs: dict[int, int]
    queries: list[ClaimedQuery]
    records: list[SequenceRecord]
    results: Generator[QueryResult, None, None] | None = None
    is_read: bool = False
    is_abandoned: bool = False
    in_hand: set[Query] = field(default_factory=set)

    @property
    def is_suspect(self) -> bool:
        """Whether one of its queries may have ended a worker; such a query is searched alone."""
        return any(query.losses for query in self.batch.queries)

    def start(self, *, is_first: bool = True) -> None:
        """Pass the queries to the engine; one that works in the background begins at once, unless it has others."""
        if self.results is None:
            self.results = self.searcher.search(self._reading(), self._advance, wait_until_prepared=is_first)

    def _reading(self) -> Iterator[SequenceRecord]:
        yield from self.records
        self.is_read = True

    def _advance(self, _cells: int) -> None:
        self.check_abandoned()

    def check_abandoned(self) -> None:
        """Raise :class:`_Abandoned` if the flight is."""
        if self.is_abandoned:
            raise _Abandoned

    def close(self) -> None:
        """Cancel what the engine has not finished."""
        self.in_hand = set()
        if self.results is not None:
            self.results.close()


class _Speed:
    """Cells per second of recent batches of one database, weighted by their time."""

    def __init__(self) -> None:
        self._cells = 0.0
        self._seconds = 0.0

    def add(self, cells: int, seconds: float) -> None:
        """Count a batch."""
        fading = 1 / (1 + seconds / MEMORY_SECONDS)
        self._cells = self._cells * fading + cells
        self._seconds = self._seconds * fading + seconds

    @property
    def cells_per_second(self) -> float | None:
        """The speed; None if nothing was measured."""
        return self._cells / self._seconds if self._seconds > 0 else None


class Worker:
    """One worker process; :meth:`run` returns when it was told to stop.

    Parameters
    ----------
    store : WorkStore
    residents : Residents
    keep : timedelta or None
        Time from the end of a search to its deletion.
    max_losses : int
        Number of workers that may die with a query before it fails.
    hints : bool
        Whether the input and the output are pipes for hints.
    """

    def __init__(
        self,
        store: WorkStore,
        residents: Residents,
        *,
        keep: timedelta | None = None,
        max_losses: int = MAX_LOSSES,
        hints: bool = False,
    ) -> None:
        self.name = f"{socket.gethostname()[:32]}-{os.getpid()}-{secrets.token_hex(4)}"
        self._store = store
        self._residents = residents
        self._keep = keep
        self._max_losses = max_losses
        self._hints = hints
        self._saying = threading.Lock()
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._ended = threading.Event()
        self._speeds: dict[str, _Speed] = {}
        self._speed = _Speed()
        self._known: list[SearchedDatabase] = []
        self._recovered = self._noticed = self._looked = -RECOVER_SECONDS
        self._saw_work = False
        self._flights: list[_Flight] = []
        self._to_store: dict[Query, _Flight] = {}
        self._is_background = isinstance(residents.engine, BackgroundEngine)
        self._commits: Commits

    def stop(self) -> None:
        """Finish the queries in hand, then return from :meth:`run`; a second call gives them back instead."""
        if self._stopping.is_set():
            for flight in list(self._flights):
                flight.is_abandoned = True
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
        self._store.enter(self.name, self._residents.engine.name)
        log("worker started", worker=self.name, engine=self._residents.engine_choice)
        threads = [threading.Thread(target=self._keep_alive, daemon=True)]
        if self._hints:
            threads.append(threading.Thread(target=self._listen, daemon=True))
        self._residents.warm_up()
        self._say("ready")
        for thread in threads:
            thread.start()
        self._commits = Commits(
            lambda completed: self._store.complete_all(self.name, completed, self._keep), self._on_stored
        )
        try:
            while not self._stopping.is_set():
                with self._patience():
                    if not self._work() and not self._stopping.is_set():
                        self._wake.wait(LOOK_SECONDS)
        finally:
            self._commits.close()
            self._ended.set()
        self._store.leave(self.name)
        log("worker stopped", worker=self.name)

    @contextmanager
    def _patience(self) -> Iterator[None]:
        """A context in which a store that does not answer is waited for; what this worker held is given back."""
        try:
            yield
        except StoreError as error:
            log("store failed", "error", worker=self.name, message=str(error))
            seconds = 0.1
            while not self._stopping.wait(seconds):
                with suppress(StoreError):
                    self._store.give_back(self.name)
                    return
                seconds = min(5.0, seconds * 2)

    def _work(self) -> bool:
        """Take and search batches while there are any; returns whether there was one."""
        self._noticed = time.monotonic()
        self._notice_generations()
        if time.monotonic() - self._recovered >= RECOVER_SECONDS:
            self._recovered = time.monotonic()
            n_recovered = self._store.recover(self._keep, self._max_losses)
            if n_recovered:
                log("queries recovered", "warning", worker=self.name, queries=n_recovered)
        if not self._take():
            return False
        try:
            while self._flights:
                self._finish(self._flights[0])
                self._flights.pop(0).close()
            self._commits.flush()
        finally:
            for flight in self._flights:
                flight.close()
            self._flights = []
            self._to_store = {}
        return True

    def _take(self) -> bool:
        """Take a batch, if there is work; returns whether there was."""
        self._wake.clear()
        self._looked = time.monotonic()
        self._saw_work = self._store.has_work()
        if not self._saw_work:
            return False
        budget = {database.name: self._budget(database.name) for database in self._known}
        batch = self._store.claim(self.name, self._known, budget, LEASE, with_lost=not self._flights)
        if batch is None:
            return False
        flight = self._prepared(batch)
        if flight is not None:
            self._flights.append(flight)
            if self._fly_together(self._flights[0], flight):
                flight.start(is_first=len(self._flights) == 1)
        self._say_changed(batch.keys.values())
        return True

    @staticmethod
    def _fly_together(first: _Flight, second: _Flight) -> bool:
        """Whether the second batch may be queued on the engine behind the first."""
        return first.searcher is second.searcher

    def _take_next(self, flight: _Flight) -> None:
        """Take the batch that follows a flight, if the engine can have it already."""
        if not self._is_background or not flight.is_read or flight.is_suspect or len(self._flights) > 1:
            return
        now = time.monotonic()
        is_told = self._hints and not self._saw_work and now - self._looked < LOOK_SECONDS
        if is_told and not self._wake.is_set():
            return  # the queue was empty, and nobody has submitted; a look takes a tenth of the time of a result
        if not self._stopping.is_set() and now - self._noticed <= NOTICE_SECONDS:
            self._take()

    def _budget(self, name: str) -> int:
        """Number of cells of a batch."""
        speed = self._speeds[name].cells_per_second if name in self._speeds else None
        seconds = BATCH_SECONDS / 2 if self._is_background else BATCH_SECONDS  # it has two batches
        return round((speed or self._residents.first_speed) * seconds)

    def _notice_generations(self) -> None:
        """Begin the unfinished searches of a database anew if it has a new generation."""
        known = self._residents.current()
        fresh = [database for database in known if database not in self._known]
        self._known = known
        for database in fresh:
            for search in self._store.outdated(database):
                self._begin_again(search, database)

    def _begin_again(self, search: StoredSearch, database: SearchedDatabase) -> None:
        compatible = fingerprint(database, search.options)
        self._store.begin_again(search.id, database, compatible, content(compatible, search.asked_digest))
        log("search begun anew", worker=self.name, search=search.key, generation=database.generation)

    # --- one batch ---

    def _prepared(self, batch: Batch) -> _Flight | None:
        """The flight of a claimed batch; None if none of its queries can be searched."""
        ids = sorted({query.search_id for query in batch.queries})
        try:
            searcher = self._residents.searcher(batch)
        except EngineError:
            raise
        except SwSearchError as error:
            reason = self._residents.databases.without_paths(error.on_command_line())
            for search_id in ids:
                self._store.fail_search(search_id, reason, self._keep)
            return None
        flight = _Flight(batch, searcher, self._runs(batch, ids, searcher), [], [])
        for query in batch.queries:
            if query.search_id not in flight.runs:
                continue
            try:
                record = SequenceRecord(
                    query.header, searcher.query_alphabet.encode(query.letters), searcher.query_alphabet
                )
                searcher.check(record)
            except InputError as error:
                self._store.fail(self.name, query, error.on_command_line(), self._keep)
                continue
            flight.queries.append(query)
            flight.records.append(record)
        flight.in_hand = {(query.search_id, query.number) for query in flight.queries}
        return flight if flight.queries else None

    def _runs(self, batch: Batch, ids: list[int], searcher: Searcher) -> dict[int, int]:
        """The runs of the searches of a batch; a search that another program began is begun anew."""
        info = self._residents.run_info(batch, COMMAND)
        runs = {}
        for search_id, (run_id, found) in self._store.begin(ids, info).items():
            if found is not None and info.differences(found):
                compatible = batch.fingerprint
                asked = self._store.asked_digest(search_id)
                self._store.begin_again(search_id, batch.database, compatible, content(compatible, asked))
                continue
            runs[search_id] = run_id
        return runs

    def _finish(self, flight: _Flight) -> None:
        """Let the results of a flight be stored as they come, and take the batch that follows."""
        began = time.monotonic()
        database = flight.batch.database.name
        speed = self._speeds.setdefault(database, _Speed())
        cells = sum(query.cells for query in flight.queries)
        try:
            flight.start()
            assert flight.results is not None
            self._take_next(flight)
            for place, (query, result) in enumerate(zip(flight.queries, flight.results, strict=True), 1):
                flight.check_abandoned()
                self._to_store[query.search_id, query.number] = flight
                numbered = replace(result, number=query.number)
                more_soon = place < len(flight.queries)
                self._commits.put(query, flight.runs[query.search_id], numbered, more_soon=more_soon)
                self._take_next(flight)
        except _Abandoned:
            log("batch abandoned", worker=self.name)
            if all(each.is_abandoned for each in self._flights):
                self._store.give_back(self.name)
            return
        seconds = time.monotonic() - began
        speed.add(cells, seconds)
        self._speed.add(cells, seconds)
        log(
            "batch",
            worker=self.name,
            database=database,
            queries=len(flight.queries),
            cells=cells,
            seconds=round(seconds, 4),
        )

    # --- beside the search ---

    def _on_stored(self, queries: Sequence[ClaimedQuery]) -> None:
        """Say which searches have changed; called by the thread that stores results."""
        keys = {}
        for query in queries:
            flight = self._to_store.pop((query.search_id, query.number), None)
            if flight is not None:
                flight.in_hand.discard((query.search_id, query.number))
                keys[query.search_id] = flight.batch.keys[query.search_id]
        self._say_changed(keys.values())

    def _keep_alive(self) -> None:
        """Extend the leases; notice that all of them were taken away."""
        while not self._ended.wait(HEARTBEAT_SECONDS):
            flights = [(flight, set(flight.in_hand)) for flight in list(self._flights)]
            try:
                held = self._store.heartbeat(self.name, self._speed.cells_per_second or 0.0, LEASE)
            except StoreError:
                continue  # the loop reports it when it needs the store itself
            for flight, in_hand in flights:
                if in_hand and in_hand <= flight.in_hand and not held & in_hand:
                    flight.is_abandoned = True

    def _listen(self) -> None:
        """Wake at each hint; stop when the server has ended."""
        with suppress(OSError):
            while os.read(0, 4096):
                self._wake.set()
        self.stop()

    def _say_changed(self, keys: Iterable[str]) -> None:
        self._say(" ".join(["changed", *keys]))

    def _say(self, word: str) -> None:
        if self._hints:
            with self._saying, suppress(OSError, ValueError):
                sys.stdout.write(word + "\n")
                sys.stdout.flush()
