"""The searches that pages show, by the *reference* in an address, and the same search by other means.

A reference is the key of a search, the key of a link to one, or ``run-7`` for a run that a command stored, which is
shown as a search that has ended. :func:`curl_lines`, :func:`python_lines` and :func:`query_line` say how a script
searches in the same way.
"""

from __future__ import annotations

import io
import json
import re
import shlex
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Final

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from swsearch.database.export import export
from swsearch.errors import AlphabetMismatch, DatabaseError, InputError, Refused, SearchNotFound
from swsearch.options import INCLUSION_EVALUE, SEARCH_FILES
from swsearch.search.options import SearchOptions
from swsearch.service.databases import SubjectsError, is_subject_set
from swsearch.service.json_api import hub_of, owner_of, service_of
from swsearch.service.service import SearchStatus
from swsearch.service.submit import Submission
from swsearch.store.accounts import LOCAL_OWNER, StoredLink, is_link_key
from swsearch.store.rows import CANCELLED, DONE, FAILED, RUNNING
from swsearch.store.runs import StoredRun

_RUN: Final = re.compile(r"run-([0-9]{1,18})")
_MAX_AGAIN: Final = 1000
"""Largest number of queries of a run of the command line with which a form is filled."""
_FIELDS: Final = {
    "unknown_database": "databases", "top_too_large": "top", "no_such_organism": "taxid",
    **dict.fromkeys(("no_subjects", "too_many_subjects", "too_many_subject_sets"), "subjects"),
}  # fmt: skip
"""The fields that refusals are about; the others are about the sequences."""


@dataclass(frozen=True)
class SearchView:
    """A search, or a stored run, as templates show it."""

    reference: str
    state: str
    database: str
    title: str
    """The header of the first query."""
    n_queries: int
    n_done: int
    submitted: datetime
    position: int | None = None
    """Number of searches before this one, if it waits."""
    seconds_left: float | None = None
    share_done: float | None = None
    """Completed share of the work, 0 to 1; None if unknown."""
    problem: str = ""
    """Why it failed."""
    expires: datetime | None = None
    """When the result is deleted; None if it is kept."""
    is_linked: bool = False
    """Whether it is seen through a link, which shows it and no more."""

    @property
    def has_ended(self) -> bool:
        """Whether the state does not change any more."""
        return self.state in (DONE, FAILED, CANCELLED)


class PageSearches:
    """The searches that the sender of a request may see, by reference. All methods but :meth:`watched` may block.

    Methods that take a reference raise :class:`~swsearch.errors.SearchNotFound` or
    :class:`~swsearch.errors.RunNotFound` if the sender may not see it.
    """

    def __init__(self, request: Request) -> None:
        self._owner = owner_of(request)
        self.service = service_of(request)
        self._store = self.service.store
        self._hub = hub_of(request)

    def view(self, reference: str) -> SearchView:
        """A search, or a stored run."""
        if _RUN.fullmatch(reference):
            return self._view_of_run(self._stored_run(reference), reference)
        return self._views([self.service.status(reference, self._owner)])[0]

    async def watched(self, reference: str) -> AsyncIterator[SearchView]:
        """A search now and whenever it has changed; a run of another program tells no changes, and is not found."""

        def found() -> tuple[str, str]:
            search = self.service.search(reference, self._owner)
            return search.key, self._store.searches.titles([search])[search.id]

        key, title = await run_in_threadpool(found)
        return (self._view(status.under(reference), title) async for status in self._hub.changes(key))

    def run(self, reference: str) -> StoredRun:
        """The run with the results; raises SearchNotFound, too, if no query has been searched yet."""
        run = self.begun_run(reference)
        if run is None:
            raise SearchNotFound(reference)
        return run

    def begun_run(self, reference: str) -> StoredRun | None:
        """The run with the results; None if no query has been searched yet."""
        if _RUN.fullmatch(reference):
            return self._stored_run(reference)
        run_id = self.service.search(reference, self._owner).run_id
        return None if run_id is None else self._store.runs.get(run_id)

    def submission(self, reference: str) -> Submission | None:
        """The search as it was submitted, to search again; None for a large run of the command line, and for one that
        has read files of options, which a server does not read.

        Its options are those that differ from their defaults.
        """
        if _RUN.fullmatch(reference):
            run = self._stored_run(reference)
            if run.n_queries > _MAX_AGAIN or any(run.info.parameters.get(name) for name in SEARCH_FILES):
                return None
            options = changed_options(run.info.reported_parameters)
            return Submission(self._store.results.fasta(run.id), run.info.database.name, options)
        search = self.service.search(reference, self._owner)
        return Submission(self._store.searches.fasta(search), search.database.name, changed_options(search.options))

    def cancel(self, reference: str) -> None:
        """Cancel a search that has not ended; a stored run cannot be cancelled."""
        if not _RUN.fullmatch(reference):
            self.service.cancel(reference, self._owner)

    def share(self, reference: str) -> str:
        """A new link; on a server without tokens, where everyone who reaches it sees all results, the reference."""
        if not self.service.settings.tokens_required:
            self.view(reference)
            return reference
        return self.service.store.accounts.add_link(reference, self._owner)[1]

    def links(self, reference: str) -> Sequence[StoredLink]:
        """The links to a search, oldest first."""
        return [] if _RUN.fullmatch(reference) else self.service.store.accounts.links(reference, self._owner)

    def sent_subjects(self, name: str) -> str:
        """The FASTA of the subjects that somebody sent, by the name of their set; empty if there is no such set."""
        if not is_subject_set(name):
            return ""
        text = io.StringIO()
        try:
            with self.service.databases.open(name) as database:
                export(database, text, threads=1)
        except DatabaseError:  # it was deleted
            return ""
        return text.getvalue()

    def history(self, offset: int, limit: int) -> Sequence[SearchView]:
        """The sender's searches, newest first."""
        return self._views(self.service.history(self._owner, offset + limit)[offset:])

    def stored_runs(self) -> Sequence[StoredRun]:
        """The runs that no search has; all of them on a server without tokens, otherwise none."""
        return [] if self._owner != LOCAL_OWNER else self._store.runs.without_search(limit=50)

    def _stored_run(self, reference: str) -> StoredRun:
        number = _RUN.fullmatch(reference)
        if number is None or self._owner != LOCAL_OWNER:
            raise SearchNotFound(reference)
        return self._store.runs.get(int(number[1]))

    def _views(self, statuses: Sequence[SearchStatus]) -> list[SearchView]:
        titles = self._store.searches.titles([status.search for status in statuses])
        return [self._view(status, titles[status.search.id]) for status in statuses]

    def _view(self, status: SearchStatus, title: str) -> SearchView:
        search = status.search
        is_running = search.state == RUNNING
        return SearchView(
            reference=search.key,
            state=search.state,
            database=search.database.name,
            title=title or "unnamed",
            n_queries=search.n_queries,
            n_done=search.n_done + search.n_failed,
            submitted=search.created,
            position=None if status.position is None or is_running else status.position - 1,
            seconds_left=status.seconds_left,
            share_done=search.cells_done / max(1, search.cells) if is_running else None,
            problem=self.service.databases.without_paths(search.reason or ""),
            expires=search.expires,
            is_linked=is_link_key(search.key),
        )

    def _view_of_run(self, run: StoredRun, reference: str) -> SearchView:
        first = self._store.results.summaries(run.id, 0, 1)
        n_asked = None if run.asked is None else run.asked.n_of_shard
        n_queries = run.n_queries + run.n_failed if n_asked is None else n_asked
        return SearchView(
            reference=reference,
            state={"running": RUNNING, "interrupted": CANCELLED}.get(run.state, DONE),
            database=run.info.database.name,
            title=first[0].header if first else f"run {run.id}",
            n_queries=n_queries,
            n_done=run.n_queries + run.n_failed,
            submitted=run.started,
            share_done=(run.n_queries + run.n_failed) / max(1, n_queries),
        )


def field_of(error: InputError, database: str, alphabet: str | None) -> str | None:
    """The field of the form that the refusal of a search is about; None if its message tells.

    ``database`` is the one that was chosen, and ``alphabet`` what the queries are said to be.
    """
    if isinstance(error, Refused):
        return _FIELDS.get(error.code, "sequences")
    if isinstance(error, SubjectsError):
        return "subjects"
    if isinstance(error, AlphabetMismatch):
        # The database refuses what is translated, or the queries are not what they are said to be.
        is_translation = str(error).startswith(database)
        return "translate" if is_translation else "sequences" if alphabet is None else "alphabet"
    return None


def changed_options(stored: Mapping[str, Any]) -> dict[str, str | int | float]:
    """The options that differ from their defaults."""
    usual = {field.name: field.default for field in fields(SearchOptions)}
    usual["inclusion_evalue"] = min(INCLUSION_EVALUE, float(stored.get("evalue", "inf")))
    return {name: stored[name] for name in usual if stored.get(name) not in (None, usual[name])}


# --- the same search from a shell, from Python and on the command line ---


def request_body(queries: str, database: str, options: Mapping[str, Any]) -> str:
    """The body of the request to the API that submits the search, as JSON."""
    return json.dumps({"queries": queries, "database": database, "options": dict(options)}, indent=1)


def curl_lines(server: str, reference: str, *, needs_token: bool = False) -> str:
    """Commands that submit the search with ``curl``, wait for its end, and print its hits.

    A token is that of the environment variable ``SWSEARCH_TOKEN``, which the client of the package uses too.
    """
    api = f"{server}/api/v1/searches"
    curl = 'curl -s -H "Authorization: Bearer $SWSEARCH_TOKEN"' if needs_token else "curl -s"
    return (
        f"{curl} -o search.json {server}/results/{reference}/request.json\n"
        f"id=$({curl} -H 'Content-Type: application/json' --data-binary @search.json {api} |\n"
        '  sed \'s/.*"id": *"\\([^"]*\\)".*/\\1/\')\n'
        f'{curl} "{api}/$id?wait=50"\n'
        f'{curl} "{api}/$id/report?format=blast6"'
    )


def python_lines(server: str, database: str, options: Mapping[str, Any]) -> str:
    """A script that does the same with the client of the package."""
    arguments = f", {dict(options)!r}" if options else ""
    return (
        "from pathlib import Path\n\nimport swsearch\n\n"
        f"client = swsearch.Client({server!r})\n"
        'queries = Path("queries.fasta").read_text()\n'
        f"search = client.submit(queries, {database!r}{arguments})\n"
        'client.wait(search["id"])\n'
        'print(client.report(search["id"], "blast6").decode())'
    )


def query_line(database: str, options: Mapping[str, Any]) -> str:
    """The command line of a local search with the same options."""
    given = "".join(f" --{name.replace('_', '-')} {shlex.quote(str(value))}" for name, value in options.items())
    return f"swsearch query queries.fasta {shlex.quote(database)}{given}"
