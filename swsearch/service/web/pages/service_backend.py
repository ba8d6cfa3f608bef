"""The backend of the pages on a service's store, databases and limits (:class:`ServiceBackend`)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from datetime import timedelta
from typing import Any, Final

from fastapi.concurrency import run_in_threadpool

from swsearch.database.reader import PackedDatabase
from swsearch.errors import DatabaseError, RunNotFound, SearchNotFound
from swsearch.hits.result import DatabaseInfo
from swsearch.search.options import SearchOptions
from swsearch.service.databases import Databases
from swsearch.service.requests import Submission, new_search, plain_text
from swsearch.service.settings import LOCAL_OWNER, Settings
from swsearch.service.web.pages.backend import (
    CANCELLED,
    FAILED,
    FINISHED,
    RUNNING,
    WAITING,
    NotFound,
    OfferedDatabase,
    SearchRequest,
    SearchStatus,
)
from swsearch.store.page_store import PageStore
from swsearch.store.records import StoredRun
from swsearch.store.search_records import StoredSearch

_STATES: Final = {"queued": WAITING, "running": RUNNING, "done": FINISHED, "failed": FAILED, "cancelled": CANCELLED}
_RUN: Final = re.compile(r"run-([0-9]{1,18})")
_WATCH_SECONDS: Final = 0.5
"""Time between two looks at a search that somebody watches."""
_SEEN_WITHIN: Final = timedelta(seconds=10)


class ServiceBackend:
    """A :class:`~swsearch.service.web.pages.backend.PageBackend`.

    Parameters
    ----------
    store : PageStore
    databases : Databases
    settings : Settings
    """

    def __init__(self, store: PageStore, databases: Databases, settings: Settings) -> None:
        self.store = store
        self._databases = databases
        self._settings = settings

    def databases(self) -> Sequence[OfferedDatabase]:
        """The databases that can be read now."""
        return [
            OfferedDatabase(
                one.name, one.alphabet, one.n_subjects, one.n_residues, one.searched.digest, one.searched.generation
            )
            for one in self._databases.all()
        ]

    def submit(self, owner: str, request: SearchRequest) -> str:
        """Check and store a search; returns its key."""
        limits = self._settings.limits
        options = dict(request.options)
        alphabet = options.pop("alphabet", None)
        text = plain_text(request.sequences, limits)
        submission = Submission(text, request.database, options, None if alphabet is None else str(alphabet))
        database = self._databases.current(request.database)
        keep = timedelta(days=self._settings.expiry_days) if self._settings.expiry_days else None
        search, _ = self.store.submit(
            new_search(submission, owner, database, limits),
            queued_cells=limits.queued_cells,
            daily_cells=limits.daily_cells,
            keep=keep,
        )
        return search.key

    def status(self, owner: str, reference: str) -> SearchStatus:
        """The state of a search, or of a stored run."""
        found = self._found(owner, reference)
        return self._status_of_run(found, reference) if isinstance(found, StoredRun) else self._statuses([found])[0]

    async def watch(self, owner: str, reference: str) -> AsyncIterator[SearchStatus]:
        """The state now and whenever it has changed."""
        last = None
        while True:
            status = await run_in_threadpool(self.status, owner, reference)
            if status != last:
                yield status
            if status.has_ended:
                return
            last = status
            await asyncio.sleep(_WATCH_SECONDS)

    def cancel(self, owner: str, reference: str) -> None:
        """Cancel a search; a stored run cannot be cancelled."""
        if isinstance(self._found(owner, reference), StoredSearch):
            self.store.cancel(reference, self._owner_of_searches(owner))

    def run(self, owner: str, reference: str) -> StoredRun | None:
        """The run with the results."""
        found = self._found(owner, reference)
        if isinstance(found, StoredRun):
            return found
        return None if found.run_id is None else self.store.run(found.run_id)

    def request(self, owner: str, reference: str) -> SearchRequest | None:
        """The search as it was submitted."""
        found = self._found(owner, reference)
        if isinstance(found, StoredRun):
            return None
        fasta = self.store.fasta(found).encode("utf-8", "surrogateescape")
        return SearchRequest(fasta, found.database.name, _changed_options(found.options))

    def share(self, owner: str, reference: str) -> str:
        """The reference itself: its owner, or who may see the store's runs, knows it already."""
        self._found(owner, reference)
        return reference

    def history(self, owner: str, offset: int, limit: int) -> Sequence[SearchStatus]:
        """The owner's searches, newest first."""
        return self._statuses(self.store.searches_of(owner, offset + limit)[offset:])

    def stored_runs(self, owner: str) -> Sequence[StoredRun]:
        """The runs that no search has; all of them on a server without tokens, otherwise none."""
        if owner != LOCAL_OWNER:
            return []
        of_searches = {search.run_id for search in self.store.searches_of(owner, 10_000)}
        return [run for run in reversed(self.store.runs()) if run.id not in of_searches]

    @contextmanager
    def open_database(self, info: DatabaseInfo) -> Iterator[PackedDatabase | None]:
        """The offered database with the content that a run searched."""
        for one in self._databases.all():
            if one.searched.digest == info.digest:
                try:
                    database = PackedDatabase.open_content(self._databases.paths[one.name], info.digest)
                except DatabaseError:
                    continue
                with database:
                    yield database
                return
        yield None

    # --- searches and runs ---

    def _owner_of_searches(self, owner: str) -> str | None:
        """The owner whose searches may be seen; None for those of everybody."""
        return owner

    def _found(self, owner: str, reference: str) -> StoredSearch | StoredRun:
        run = _RUN.fullmatch(reference)
        try:
            if run is None:
                return self.store.search(reference, self._owner_of_searches(owner))
            if owner == LOCAL_OWNER:
                return self.store.run(int(run[1]))
        except (SearchNotFound, RunNotFound) as error:
            raise NotFound(str(error)) from error
        raise NotFound(f"there is no result {reference}")

    def _statuses(self, searches: Sequence[StoredSearch]) -> list[SearchStatus]:
        titles = self.store.titles(searches)
        before: Mapping[str, tuple[int, int]] = {}
        speed = 0.0
        if any(not search.is_finished for search in searches):
            before = self._queue()
            speed = sum(worker.cells_per_second for worker in self.store.workers(_SEEN_WITHIN))
        return [self._status(search, titles[search.id], before, speed) for search in searches]

    def _queue(self) -> dict[str, tuple[int, int]]:
        """Of each unfinished search, the number of those submitted before it, and the cells to its end."""
        before = {}
        cells = 0
        for place, waiting in enumerate(self.store.waiting()):
            cells += waiting.cells_left
            before[waiting.key] = (place, cells)
        return before

    @staticmethod
    def _status(search: StoredSearch, title: str, before: Mapping[str, tuple[int, int]], speed: float) -> SearchStatus:
        place = before.get(search.key)
        is_running = search.state == "running"
        return SearchStatus(
            reference=search.key,
            state=_STATES[search.state],
            database=search.database.name,
            title=title or "unnamed",
            n_queries=search.n_queries,
            n_done=search.n_done + search.n_failed,
            submitted=search.created,
            position=place[0] if place is not None and not is_running else None,
            seconds_left=place[1] / speed if place is not None and speed > 0 else None,
            share_done=search.cells_done / max(1, search.cells) if is_running else None,
            problem=search.reason or "",
            expires=search.expires,
        )

    def _status_of_run(self, run: StoredRun, reference: str) -> SearchStatus:
        first = self.store.summaries(run.id, 0, 1)
        n_asked = None if run.asked is None else run.asked.n_of_share
        n_queries = run.n_queries + run.n_failed if n_asked is None else n_asked
        return SearchStatus(
            reference=reference,
            state={"running": RUNNING, "interrupted": CANCELLED}.get(run.state, FINISHED),
            database=run.info.database.name,
            title=first[0].header if first else f"run {run.id}",
            n_queries=n_queries,
            n_done=run.n_queries + run.n_failed,
            submitted=run.started,
            share_done=(run.n_queries + run.n_failed) / max(1, n_queries),
        )


def _changed_options(stored: Mapping[str, Any]) -> dict[str, str | int | float]:
    """The options that differ from their defaults."""
    changed = {}
    for field in fields(SearchOptions):
        value = stored.get(field.name)
        if value is not None and value != field.default and not (value == "inf" == field.default):
            changed[field.name] = value
    return changed
