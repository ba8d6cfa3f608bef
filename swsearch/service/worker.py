"""A worker of a service: takes queries from the store, searches them with a resident engine, and commits the results.

:class:`Worker` takes what is queued when its engine is free, and never waits for more. A batch is bounded by its
predicted time, so that whoever comes next waits for seconds at most. A second thread tells the store that the worker
lives, which extends its leases, and hears in return which of them were taken away.

Its input may be a pipe: each line is a hint that there may be work, and its end is the order to stop, so that no worker
outlives the server that started it. Its output then has a line for each change, which the server passes on. Hints
only save time; without them a worker looks for work several times a second.
"""

from __future__ import annotations

import os
import secrets
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from typing import Final

from swsearch.errors import EngineError, InputError, StoreError, SwSearchError
from swsearch.search.searcher import Searcher
from swsearch.sequences.record import SequenceRecord
from swsearch.service.fingerprints import content, fingerprint
from swsearch.service.logs import log
from swsearch.service.residents import Residents
from swsearch.store.leases import MAX_LOSSES, Query, WorkStore
from swsearch.store.search_records import Batch, ClaimedQuery, SearchedDatabase, StoredSearch

BATCH_SECONDS: Final = 2.0
"""Predicted time of a batch. A longer one would be a little faster, and everybody else would wait longer."""
LEASE: Final = timedelta(seconds=60)
HEARTBEAT_SECONDS: Final = 1.0
"""Time between two heartbeats, and the longest time until a cancelled search is abandoned."""
LOOK_SECONDS: Final = 0.25
"""Time between two looks for work of an idle worker that gets no hint."""
RECOVER_SECONDS: Final = 5.0
MEMORY_SECONDS: Final = 20.0
"""Time of measured work after which an earlier measurement has lost about two thirds of its weight."""
COMMAND: Final = "swsearch serve"
"""The command that the runs of a service store."""


class _Abandoned(Exception):
    """All searches of the batch were cancelled."""


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
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._ended = threading.Event()
        self._speeds: dict[str, _Speed] = {}
        self._speed = _Speed()
        self._known: list[SearchedDatabase] = []
        self._recovered = -RECOVER_SECONDS
        self._in_hand: set[Query] = set()
        self._is_abandoned = False

    def stop(self) -> None:
        """Finish the queries in hand, then return from :meth:`run`; a second call gives them back instead."""
        if self._stopping.is_set():
            self._is_abandoned = True
        self._stopping.set()
        self._wake.set()

    def run(self) -> None:
        """Search until :meth:`stop` is called.

        Raises
        ------
        EngineError
            The engine failed. A GPU is of no use to this process any more; the next one searches the queries again.
        """
        self._store.enter(self.name, self._residents.engine.name)
        log("worker started", worker=self.name, engine=self._residents.engine_choice)
        threads = [threading.Thread(target=self._keep_alive, daemon=True)]
        if self._hints:
            threads.append(threading.Thread(target=self._listen, daemon=True))
        self._residents.warm_up()
        self._say("ready")
        for thread in threads:
            thread.start()
        try:
            while not self._stopping.is_set():
                with self._patience():
                    if not self._work():
                        self._wake.wait(LOOK_SECONDS)
                        self._wake.clear()
        finally:
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
            self._in_hand = set()
            seconds = 0.1
            while not self._stopping.wait(seconds):
                with suppress(StoreError):
                    self._store.give_back(self.name)
                    return
                seconds = min(5.0, seconds * 2)

    def _work(self) -> bool:
        """Take and search one batch; returns whether there was one."""
        self._notice_generations()
        if time.monotonic() - self._recovered >= RECOVER_SECONDS:
            self._recovered = time.monotonic()
            n_recovered = self._store.recover(self._keep, self._max_losses)
            if n_recovered:
                log("queries recovered", "warning", worker=self.name, queries=n_recovered)
        if not self._store.has_work():
            return False
        budget = {database.name: self._budget(database.name) for database in self._known}
        batch = self._store.claim(self.name, self._known, budget, LEASE)
        if batch is None:
            return False
        self._in_hand = {(query.search_id, query.number) for query in batch.queries}
        self._is_abandoned = False
        try:
            self._search_batch(batch)
        except _Abandoned:
            log("batch abandoned", worker=self.name)
            self._store.give_back(self.name)
        finally:
            self._in_hand = set()
        return True

    def _budget(self, name: str) -> int:
        """Number of cells of a batch."""
        speed = self._speeds[name].cells_per_second if name in self._speeds else None
        return round((speed or self._residents.first_speed) * BATCH_SECONDS)

    def _notice_generations(self) -> None:
        """Begin the unfinished searches of a database anew if it has a new generation."""
        known = self._residents.current()
        fresh = [database for database in known if database not in self._known]
        self._known = known
        for database in fresh:
            for search in self._store.outdated(database):
                self._begin_again(search, database)

    def _begin_again(self, search: StoredSearch, database: SearchedDatabase) -> None:
        compatible = fingerprint(database.digest, search.options)
        self._store.begin_again(search.id, database, compatible, content(compatible, search.asked_digest))
        log("search begun anew", worker=self.name, search=search.key, generation=database.generation)

    # --- one batch ---

    def _search_batch(self, batch: Batch) -> None:
        ids = sorted({query.search_id for query in batch.queries})
        try:
            searcher = self._residents.searcher(batch)
        except EngineError:
            raise
        except SwSearchError as error:
            reason = self._residents.databases.without_paths(str(error))
            for search_id in ids:
                self._store.fail_search(search_id, reason, self._keep)
            self._say("changed")
            return
        runs = self._runs(batch, ids, searcher)
        queries = [query for query in batch.queries if query.search_id in runs]
        records = []
        valid = []
        for query in queries:
            try:
                record = SequenceRecord(
                    query.header, searcher.query_alphabet.encode(query.letters), searcher.query_alphabet
                )
                searcher.check(record)
            except InputError as error:
                self._store.fail(self.name, query, str(error), self._keep)
                continue
            records.append(record)
            valid.append(query)
        if records:
            self._search(searcher, batch.database.name, valid, records, runs)
        self._say("changed")

    def _runs(self, batch: Batch, ids: list[int], searcher: Searcher) -> dict[int, int]:
        """The runs of the searches of a batch; a search that another program began is begun anew."""
        info = searcher.run_info(COMMAND)
        runs = {}
        for search_id, (run_id, found) in self._store.begin(ids, info).items():
            if found is not None and info.differences(found):
                compatible = batch.fingerprint
                asked = self._store.asked_digest(search_id)
                self._store.begin_again(search_id, batch.database, compatible, content(compatible, asked))
                continue
            runs[search_id] = run_id
        return runs

    def _search(
        self,
        searcher: Searcher,
        database: str,
        queries: list[ClaimedQuery],
        records: list[SequenceRecord],
        runs: dict[int, int],
    ) -> None:
        began = time.monotonic()
        results = searcher.search(records, self._advance)
        try:
            for query, result in zip(queries, results, strict=True):
                self._check_abandoned()
                found = replace(result, number=query.number)
                self._store.complete(self.name, query, runs[query.search_id], found, self._keep)
                self._in_hand.discard((query.search_id, query.number))
                self._say("changed")
        finally:
            results.close()
        seconds = time.monotonic() - began
        cells = sum(query.cells for query in queries)
        self._speeds.setdefault(database, _Speed()).add(cells, seconds)
        self._speed.add(cells, seconds)
        log("batch", worker=self.name, database=database, queries=len(queries), cells=cells, seconds=round(seconds, 4))

    def _advance(self, _cells: int) -> None:
        self._check_abandoned()

    def _check_abandoned(self) -> None:
        if self._is_abandoned:
            raise _Abandoned

    # --- beside the search ---

    def _keep_alive(self) -> None:
        """Extend the leases; notice that all of them were taken away."""
        while not self._ended.wait(HEARTBEAT_SECONDS):
            in_hand = set(self._in_hand)
            try:
                held = self._store.heartbeat(self.name, self._speed.cells_per_second or 0.0, LEASE)
            except StoreError:
                continue  # the loop reports it when it needs the store itself
            if in_hand and in_hand <= self._in_hand and not held & in_hand:
                self._is_abandoned = True

    def _listen(self) -> None:
        """Wake at each hint; stop when the server has ended."""
        with suppress(OSError):
            while os.read(0, 4096):
                self._wake.set()
        self.stop()

    def _say(self, word: str) -> None:
        if self._hints:
            with suppress(OSError, ValueError):
                sys.stdout.write(word + "\n")
                sys.stdout.flush()
