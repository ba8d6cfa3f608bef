"""The backend of the pages on the service of the web process (:class:`ServiceBackend`)."""

from __future__ import annotations

import io
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import fields
from typing import Any, Final

from starlette.concurrency import run_in_threadpool

from swsearch.database.export import export
from swsearch.database.reader import PackedDatabase
from swsearch.errors import AlphabetMismatch, DatabaseError, Refused, RunNotFound, SearchNotFound
from swsearch.hits.result import DatabaseInfo
from swsearch.search.options import SearchOptions
from swsearch.service import service as state
from swsearch.service.bodies import CLAIM
from swsearch.service.databases import UnreadableSubjects, is_subject_set
from swsearch.service.hub import Hub
from swsearch.service.pages.backend import (
    CANCELLED,
    FAILED,
    FINISHED,
    RUNNING,
    WAITING,
    NotFound,
    OfferedDatabase,
    RequestRefused,
    SearchRequest,
    SearchStatus,
)
from swsearch.service.settings import LOCAL_OWNER
from swsearch.service.submit import Submission, plain_text
from swsearch.store.links import StoredLink, is_link_key
from swsearch.store.page_store import PageStore
from swsearch.store.records import StoredRun
from swsearch.store.result_views import ResultViews
from swsearch.store.search_records import StoredSearch

_STATES: Final = {"queued": WAITING, "running": RUNNING, "done": FINISHED, "failed": FAILED, "cancelled": CANCELLED}
_RUN: Final = re.compile(r"run-([0-9]{1,18})")
_MAX_AGAIN: Final = 1000
"""Largest number of queries of a run of the command line with which a form is filled."""
_FIELDS: Final = {
    "unknown_database": "databases", "top_too_large": "top", "no_such_organism": "taxid",
    **dict.fromkeys(("no_subjects", "too_many_subjects", "too_many_subject_sets"), "subjects"),
}  # fmt: skip
"""The fields that refusals are about; the others are about the sequences."""


class ServiceBackend:
    """A :class:`~swsearch.service.pages.backend.PageBackend`.

    Parameters
    ----------
    service : Service
    hub : Hub
    """

    def __init__(self, service: state.Service, hub: Hub) -> None:
        self._service = service
        self._hub = hub
        self.store = PageStore.beside(service.store)

    def databases(self) -> Sequence[OfferedDatabase]:
        """The databases that can be read now."""
        return [
            OfferedDatabase(
                one.name, one.alphabet, one.n_subjects, one.n_residues, one.searched.digest, one.searched.generation
            )
            for one in self._service.offered()
        ]

    @property
    def takes_subjects(self) -> bool:
        """Whether the server was started with a folder for them."""
        return self._service.settings.subject_sets is not None

    def subjects(self, name: str) -> str:
        """The FASTA of a set of subjects; empty if there is no such set."""
        path = self._service.databases.paths.get(name)
        if path is None or not is_subject_set(name):
            return ""
        text = io.StringIO()
        try:
            with PackedDatabase.open(path) as database:
                export(database, text, threads=1)
        except DatabaseError:  # it was deleted just now
            return ""
        return text.getvalue()

    def submit(self, owner: str, request: SearchRequest) -> str:
        """Check and store a search; returns its key."""
        options = dict(request.options)
        alphabet = options.pop("alphabet", None)
        try:
            text = plain_text(request.sequences, self._service.settings.limits, CLAIM.get().take)
            queries_are = None if alphabet is None else str(alphabet)
            submission = Submission(text, request.database, options, queries_are, subjects=request.subjects)
            stored, _ = self._service.submit(submission, owner)
        except Refused as error:
            raise RequestRefused(_FIELDS.get(error.code, "sequences"), error.marked) from error
        except UnreadableSubjects as error:
            raise RequestRefused("subjects", error.marked) from error
        except AlphabetMismatch as error:
            # The database refuses what is translated, or the queries are not what they are said to be.
            is_translation = str(error).startswith(request.database)
            field = "translate" if is_translation else "sequences" if alphabet is None else "alphabet"
            raise RequestRefused(field, error.marked) from error
        return stored.key

    def status(self, owner: str, reference: str) -> SearchStatus:
        """The state of a search, or of a stored run."""
        if _RUN.fullmatch(reference):
            return self._status_of_run(self._run(owner, reference), reference)
        try:
            found = self._service.status(reference, owner)
        except SearchNotFound as error:
            raise NotFound(str(error)) from error
        return self._statuses([found])[0]

    async def watch(self, owner: str, reference: str) -> AsyncIterator[SearchStatus]:
        """The state now and whenever it has changed; whether the owner may see it was checked before."""
        title = None
        watched = await run_in_threadpool(self._service.watched_key, reference, owner)
        async for found in self._hub.changes(watched):
            if title is None:
                title = self.store.titles([found.search])[found.search.id]
            yield self._status(found.under(reference), title)

    def cancel(self, owner: str, reference: str) -> None:
        """Cancel a search; a stored run cannot be cancelled."""
        if not _RUN.fullmatch(reference):
            try:
                self._service.cancel(reference, owner)
            except SearchNotFound as error:
                raise NotFound(str(error)) from error
            self._service.on_submit()  # whoever watches it looks at once

    def run(self, owner: str, reference: str) -> StoredRun | None:
        """The run with the results."""
        if _RUN.fullmatch(reference):
            return self._run(owner, reference)
        run_id = self._search(owner, reference).run_id
        return None if run_id is None else self.store.run(run_id)

    def request(self, owner: str, reference: str) -> SearchRequest | None:
        """The search as it was submitted."""
        if _RUN.fullmatch(reference):
            run = self._run(owner, reference)
            if run.n_queries > _MAX_AGAIN:
                return None
            fasta = self.store.run_fasta(run.id).encode("utf-8", "surrogateescape")
            return SearchRequest(fasta, run.info.database.name, _changed_options(run.info.reported_parameters))
        search = self._search(owner, reference)
        fasta = self.store.fasta(search).encode("utf-8", "surrogateescape")
        return SearchRequest(fasta, search.database.name, _changed_options(search.options))

    def share(self, owner: str, reference: str) -> str:
        """A new link; on a server without tokens, where everyone who reaches it sees all results, the reference."""
        if not self._service.settings.tokens_required:
            self.status(owner, reference)
            return reference
        try:
            return self._service.add_link(reference, owner)[1]
        except SearchNotFound as error:
            raise NotFound(str(error)) from error

    def links(self, owner: str, reference: str) -> Sequence[StoredLink]:
        """The links to a search."""
        if _RUN.fullmatch(reference):
            return []
        try:
            return self._service.links(reference, owner)
        except SearchNotFound as error:
            raise NotFound(str(error)) from error

    def withdraw(self, owner: str, reference: str, link_id: str) -> None:
        """Withdraw a link to a search."""
        try:
            self._service.delete_links(reference, owner, link_id)
        except SearchNotFound as error:
            raise NotFound(str(error)) from error

    def history(self, owner: str, offset: int, limit: int) -> Sequence[SearchStatus]:
        """The owner's searches, newest first."""
        return self._statuses(self._service.history(owner, offset + limit)[offset:])

    def stored_runs(self, owner: str) -> Sequence[StoredRun]:
        """The runs that no search has; all of them on a server without tokens, otherwise none."""
        return [] if owner != LOCAL_OWNER else self.store.runs_without_search(limit=50)

    @contextmanager
    def downloading(self) -> Iterator[ResultViews]:
        """The store whose connections are for downloads."""
        if not self._service.download_slots.acquire():
            most = self._service.settings.limits.downloads
            raise Refused("too_many_downloads", f"{most} files are being made; try again in some seconds")
        try:
            yield ResultViews.beside(self._service.downloads)
        finally:
            self._service.download_slots.release()

    def open_database(self, info: DatabaseInfo) -> AbstractContextManager[PackedDatabase | None]:
        """The offered database with the content that a run searched."""
        return self._service.open_database(info)

    # --- searches and runs ---

    def _search(self, owner: str, reference: str) -> StoredSearch:
        try:
            return self._service.search(reference, owner)
        except SearchNotFound as error:
            raise NotFound(str(error)) from error

    def _run(self, owner: str, reference: str) -> StoredRun:
        found = _RUN.fullmatch(reference)
        if found is None or owner != LOCAL_OWNER:
            raise NotFound(f"there is no result {reference}")
        try:
            return self.store.run(int(found[1]))
        except RunNotFound as error:
            raise NotFound(str(error)) from error

    def _statuses(self, found: Sequence[state.SearchStatus]) -> list[SearchStatus]:
        titles = self.store.titles([one.search for one in found])
        return [self._status(one, titles[one.search.id]) for one in found]

    def _status(self, found: state.SearchStatus, title: str) -> SearchStatus:
        search, forecast = found.search, found.forecast
        is_running = search.state == "running"
        return SearchStatus(
            reference=search.key,
            state=_STATES[search.state],
            database=search.database.name,
            title=title or "unnamed",
            n_queries=search.n_queries,
            n_done=search.n_done + search.n_failed,
            submitted=search.created,
            position=None if forecast is None or is_running else forecast.position - 1,
            seconds_left=None if forecast is None else forecast.seconds,
            share_done=search.cells_done / max(1, search.cells) if is_running else None,
            problem=self._service.databases.without_paths(search.reason or ""),
            expires=search.expires,
            is_linked=is_link_key(search.key),
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
