"""What the API and the pages of the web process share: :class:`Service`, in ``app.state.service``.

Its methods are those of a person who is known by the name of an owner; they raise the errors of :mod:`swsearch.errors`,
which :mod:`swsearch.service.answers` turns into answers. All of them block, so they are called from threads: an
endpoint that is a plain function runs in one.

Searches that are submitted at the same time are stored in one transaction (:class:`Submissions`). SQLite has one writer
at a time; without this, a hundred submissions a second would leave a worker little time to store its results.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Final

from swsearch.database.reader import PackedDatabase
from swsearch.errors import DatabaseError, InputError, Refused
from swsearch.filters.subject_filters import refused_taxids
from swsearch.hits.result import DatabaseInfo
from swsearch.report.summary import ListEnds
from swsearch.service.databases import Databases, OfferedDatabase, SubjectSets, is_subject_set
from swsearch.service.estimates import Estimate, search_estimates
from swsearch.service.settings import Settings
from swsearch.service.submit import SearchMaker, Submission, check_texts, options_of, search_maker
from swsearch.store.accounts import is_link_key
from swsearch.store.rows import QUEUED
from swsearch.store.search_records import NewSearch, SearchedDatabase, StoredSearch
from swsearch.store.searches import OwnerLimits
from swsearch.store.store import Store
from swsearch.typing import Closeable

SEEN_WITHIN: Final = timedelta(seconds=30)
"""Time after its last progress during which a worker counts as alive."""
_ESTIMATE_SECONDS: Final = 0.25
_PAUSE: Final = 2.0
_LONGEST_PAUSE: Final = 0.02
"""Time between two transactions with submissions, in units of the time that the first one took, and at most in seconds:
searches that come meanwhile are stored together."""
_SHORT: Final = 4096
"""Length of queries, or of a description of options, that are read in a moment."""
_MOST_KINDS: Final = 1000
"""Number of databases with options that are remembered."""


@dataclass(frozen=True)
class SearchStatus:
    """A search, and while it is unfinished, its estimated end: its place among all, and the seconds that are left."""

    search: StoredSearch
    position: int | None = None
    seconds_left: float | None = None

    def under(self, key: str) -> SearchStatus:
        """The same with another key of the search: that of a link by which it is seen."""
        return replace(self, search=replace(self.search, key=key))


class Service(Closeable):
    """The service behind the web process."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.databases = Databases(settings.databases, settings.folder, settings.subject_sets)
        sets = settings.subject_sets
        self._subject_sets = None if sets is None else SubjectSets(sets, settings.limits)
        self.store = Store(settings.store, create=True)
        self.downloads = Store(settings.store)
        """The store as downloads read it: they hold its connections for as long as their readers take."""
        self.download_slots = threading.Semaphore(settings.limits.downloads)
        """One for each report that is written."""
        self.on_submit: Callable[[], object] = lambda: None
        """Called after searches were stored, to wake the worker; by any thread."""
        self.on_cancel: Callable[[str], object] = lambda key: None
        """Called with the key of a search that was cancelled; by any thread."""
        limits = settings.limits
        most_hits = self.databases.most_hits
        self._limits = OwnerLimits(limits.queued_cells, limits.daily_cells, limits.stored_hits, most_hits)
        self._submissions = Submissions(self._submit_all)
        self._lock = threading.Lock()
        self._estimates: tuple[float, dict[str, tuple[str, int]], float, dict[str, Estimate]] = (-1.0, {}, 0.0, {})
        """When the estimates were made, of what, with which speed, and the estimates."""
        self._makers: dict[str, tuple[SearchedDatabase, SearchMaker]] = {}
        """What makes searches like those that were accepted, by :func:`_kind`, as far as it does so in a moment."""

    def close(self) -> None:
        """Store what was submitted, and close the connections to the store."""
        self._submissions.close()
        self.store.close()
        self.downloads.close()

    @property
    def keep(self) -> timedelta | None:
        """Time from the end of a search to its deletion."""
        return timedelta(days=self.settings.expiry_days) if self.settings.expiry_days > 0 else None

    # --- searches ---

    def submit(self, submission: Submission, owner: str) -> tuple[StoredSearch, bool]:
        """Accept a search; returns it, and whether it is new.

        Raises
        ------
        InputError
            The queries or options cannot be used; :class:`Refused` names a limit.
        """
        return self.begin_to_submit(submission, owner).result()

    def begin_to_submit(self, submission: Submission, owner: str) -> Future[tuple[StoredSearch, bool]]:
        """Check a search and let it be stored, as :meth:`submit` does; the future raises Refused and StoreError."""
        check_texts(submission)
        database = self.databases.current(self._database_name(submission, owner))
        kind = _kind(submission)
        searched, maker = self._makers.get(kind, (None, None))
        if maker is None or searched != database.searched:
            maker = search_maker(submission.options, database, self.settings.limits)
        new = maker(submission, owner)
        self._check_organisms(new)
        if len(kind) <= _SHORT and submission.subjects is None and "taxid" not in submission.options:
            if len(self._makers) >= _MOST_KINDS:
                self._makers.clear()
            self._makers[kind] = new.database, maker
        return self._submissions.store(new)

    def is_quick(self, submission: Submission) -> bool:
        """Whether :meth:`begin_to_submit` takes about a millisecond: nothing must be simulated, packed or opened."""
        return len(submission.queries) <= _SHORT and submission.subjects is None and _kind(submission) in self._makers

    def _check_organisms(self, new: NewSearch) -> None:
        """Refuse taxonomy ids that no subject of the database has, as far as its stored taxonomy tells."""
        if new.options["taxid"] is None:
            return
        filters = options_of(new.options).subject_filters
        with self.databases.open(new.database.name, new.database.digest) as database:
            if (problem := refused_taxids(database, filters)) is not None:
                raise Refused("no_such_organism", self.databases.without_paths(problem))

    def _database_name(self, submission: Submission, owner: str) -> str:
        """The database of a submission, which is made of its subjects if it has some.

        A set of subjects that was sent before is known to those alone who have searched it.
        """
        if submission.subjects is None:
            name = submission.database
            if is_subject_set(name) and name not in self.store.searches.databases_of(owner):
                raise self.databases.unknown(name)
            return name
        if submission.database:
            raise InputError("a search has a database or subjects of its own, not both; leave one of them out")
        if self._subject_sets is None:
            raise Refused("no_subjects", "this server takes no subjects with a search; choose one of its databases")
        return self._subject_sets.add(submission.subjects, owner, partial(self.store.searches.databases_of, owner))

    def _submit_all(self, searches: Sequence[NewSearch]) -> list[tuple[StoredSearch, bool] | Refused]:
        found = self.store.searches.submit(searches, self._limits, self.keep)
        if any(not isinstance(each, Refused) and not each[0].is_finished for each in found):
            self.on_submit()
        return found

    def status(self, key: str, owner: str) -> SearchStatus:
        """The status of a search as :meth:`search` finds it, with the given key: who has a link learns no other."""
        return self.status_of(self.search(key, owner)).under(key)

    def search(self, key: str, owner: str) -> StoredSearch:
        """A search of the owner, or the one that the link with this key shows to everybody; with its own key.

        Raises
        ------
        SearchNotFound
            There is no such search.
        """
        return self.store.accounts.linked_search(key) if is_link_key(key) else self.store.searches.get(key, owner)

    def statuses(self, keys: Sequence[str], ends: Sequence[str] = ()) -> dict[str, SearchStatus]:
        """The searches with these keys that exist, whoever owns them, and of those of ``ends`` the finished ones."""
        found = self.store.searches.with_keys(keys) if keys else {}
        if ends:
            found |= self.store.searches.with_keys(ends, finished=True)
        return {key: self.status_of(search) for key, search in found.items()}

    def history(self, owner: str, limit: int = 50, before: str | None = None) -> list[SearchStatus]:
        """The owner's newest searches, or those older than the search ``before``."""
        last = None if before is None else self.store.searches.get(before, owner).id
        return [self.status_of(search) for search in self.store.searches.of_owner(owner, limit, last)]

    def cancel(self, key: str, owner: str) -> SearchStatus:
        """Cancel a search of the owner, unless it is finished."""
        cancelled = self.store.searches.cancel(key, owner, self.keep)
        self.on_cancel(key)
        return self.status_of(cancelled)

    def status_of(self, search: StoredSearch) -> SearchStatus:
        """A search with its estimate."""
        if search.is_finished:
            return SearchStatus(search)
        if search.state == QUEUED and search.reason is None and not self.databases.has(search.database.name):
            reason = f"the database {search.database.name} is not there at the moment; the search waits for it"
            search = replace(search, reason=reason)
        estimate = self.estimates().get(search.key)
        if estimate is None:  # the search was submitted after those estimates were made
            with self._lock:
                _, waiting, speed, _ = self._estimates
            mine = {search.key: (search.owner, search.cells - search.cells_done)}
            estimate = search_estimates(waiting | mine, speed)[search.key]
        return SearchStatus(search, *estimate)

    def estimates(self) -> dict[str, Estimate]:
        """The estimates of all unfinished searches, at most a quarter of a second old."""
        with self._lock:
            if time.monotonic() - self._estimates[0] > _ESTIMATE_SECONDS:
                speed = sum(self.store.searches.speeds(SEEN_WITHIN))
                waiting = self.store.searches.waiting()
                self._estimates = (time.monotonic(), waiting, speed, search_estimates(waiting, speed))
            return self._estimates[3]

    # --- results ---

    def run_of(self, key: str, owner: str) -> tuple[StoredSearch, int]:
        """A search of the owner, and the run with its results so far.

        Raises
        ------
        Refused
            No worker has begun it, or it ended before one did.
        """
        search = self.search(key, owner)
        if search.run_id is None:
            problem = search.reason or ("it was cancelled" if search.is_finished else "it is still queued")
            raise Refused("no_results", f"this search has no results: {problem}")
        return search, search.run_id

    def finished_run(self, key: str, owner: str) -> tuple[StoredSearch, int]:
        """A finished search of the owner, and its run, for reports; raises Refused if it is not finished."""
        search, run_id = self.run_of(key, owner)
        if not search.is_finished:
            raise Refused("not_finished", "this search is not finished; a report is complete or not there at all")
        return search, run_id

    @contextmanager
    def open_database(self, info: DatabaseInfo) -> Iterator[PackedDatabase | None]:
        """The offered database with the content that a run searched; None if there is none any more."""
        for one in self.offered_with(info):
            try:
                database = self.databases.open(one.name, searched=info.digests)
            except DatabaseError:
                continue
            with database:
                yield database
            return
        yield None

    def offered_with(self, info: DatabaseInfo) -> list[OfferedDatabase]:
        """The databases that have the content that a run searched."""
        return [one for one in self.databases.all() if one.has_content(info.digest)]

    def list_ends(self, search: StoredSearch) -> str | None:
        """Which lists of a finished search end at ``top``, and what they leave out; None if nothing is."""
        if search.run_id is None or not search.is_finished:
            return None
        ends = ListEnds(self.store.runs.get(search.run_id).info)
        for n_subjects, n_passed in self.store.results.list_lengths(search.run_id):
            ends.count(n_subjects, n_passed)
        return ends.message("a larger --top")

    def failures(self, search: StoredSearch) -> list[tuple[int, str]]:
        """Numbers of the queries of a search that could not be searched, each with the reason."""
        if search.run_id is None or not search.n_failed:
            return []
        return [
            (failed.number, self.databases.without_paths(failed.reason))
            for failed in self.store.results.failures(search.run_id)
        ]

    # --- the rest ---

    def delete_expired(self) -> int:
        """Delete the searches whose time has come, and the sets of subjects that no search needs any more.

        Returns the number of searches.
        """
        n_deleted = self.store.searches.delete_expired()
        if self._subject_sets is not None:
            self._subject_sets.delete_unused(self.store.searches.databases())
        return n_deleted

    def is_ready(self) -> bool:
        """Whether a worker has made progress lately."""
        return bool(self.store.searches.speeds(SEEN_WITHIN))


# --- submissions ---


def _kind(submission: Submission) -> str:
    """Database, alphabet and options of a submission."""
    return repr((submission.database, submission.alphabet, sorted(submission.options.items())))


Stored = tuple[StoredSearch, bool]
"""A stored search, and whether it is new."""


class Submissions(Closeable):
    """A thread that stores searches; those that come while others are being stored are stored together.

    ``store_all`` stores searches in one transaction; it returns each of them, or why it was refused.
    """

    def __init__(self, store_all: Callable[[Sequence[NewSearch]], Sequence[Stored | Refused]]) -> None:
        self._store_all = store_all
        self._thread = ThreadPoolExecutor(1)
        self._waiting: deque[tuple[NewSearch, Future[Stored]]] = deque()

    def store(self, search: NewSearch) -> Future[Stored]:
        """Let a search be stored; the future raises Refused or StoreError. May be called from any thread.

        A search whose future is cancelled while it waits is not stored.
        """
        future: Future[Stored] = Future()
        self._waiting.append((search, future))
        self._thread.submit(self._store_waiting)
        return future

    def close(self) -> None:
        """End the thread, after it has stored what was submitted."""
        self._thread.shutdown()

    def _store_waiting(self) -> None:
        waiting = [self._waiting.popleft() for _ in range(len(self._waiting))]
        accepted = [(search, future) for search, future in waiting if future.set_running_or_notify_cancel()]
        if not accepted:
            return
        began = time.monotonic()
        try:
            answers = self._store_all([search for search, _ in accepted])
        except BaseException as error:
            for _, future in accepted:
                future.set_exception(error)
            return
        for (_, future), answer in zip(accepted, answers, strict=True):
            if isinstance(answer, Refused):
                future.set_exception(answer)
            else:
                future.set_result(answer)
        time.sleep(min(_LONGEST_PAUSE, _PAUSE * (time.monotonic() - began)))
