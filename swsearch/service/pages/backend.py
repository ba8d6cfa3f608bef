"""What the pages need of the service: an interface, and the values that it takes and returns.

A *reference* is the part of a result's address that names it: the unguessable id of a search, the token of a shared
link, or ``run-7`` for a run that a command stored.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

from swsearch.database.reader import PackedDatabase
from swsearch.errors import SwSearchError
from swsearch.hits.result import DatabaseInfo
from swsearch.store.links import StoredLink
from swsearch.store.records import StoredRun
from swsearch.store.result_views import ResultViews

WAITING: Final = "waiting"
RUNNING: Final = "running"
FINISHED: Final = "finished"
FAILED: Final = "failed"
CANCELLED: Final = "cancelled"

ENDED: Final = frozenset({FINISHED, FAILED, CANCELLED})
"""States in which nothing changes any more."""


class RequestRefused(SwSearchError):
    """A search that is not accepted.

    Attributes
    ----------
    field : str
        Where the problem is: ``sequences``, ``databases``, or the name of an option.
    """

    def __init__(self, field: str, message: str) -> None:
        self.field = field
        super().__init__(message)


class NotFound(SwSearchError):
    """There is no such result, or its owner has not shared it."""


@dataclass(frozen=True)
class OfferedDatabase:
    """A database that can be searched.

    Attributes
    ----------
    name : str
    alphabet : str
        ``protein`` or ``dna``.
    n_subjects, n_residues : int
    digest : str
        SHA-256 of the content, in hexadecimal.
    generation : int
    """

    name: str
    alphabet: str
    n_subjects: int
    n_residues: int
    digest: str
    generation: int


@dataclass(frozen=True)
class SearchRequest:
    """A search as it is submitted.

    Attributes
    ----------
    sequences : bytes
        A file of queries as it was pasted or uploaded, perhaps compressed.
    database : str
        Name of an offered database; empty with ``subjects``.
    options : mapping
        The fields of :class:`swsearch.search.options.SearchOptions` that differ from the default, and ``alphabet``.
    subjects : str or None
        The text of the subjects that are searched in place of a database.
    """

    sequences: bytes
    database: str
    options: Mapping[str, str | int | float]
    subjects: str | None = None


@dataclass(frozen=True)
class SearchStatus:
    """The state of a search.

    Attributes
    ----------
    reference : str
    state : str
        :data:`WAITING`, :data:`RUNNING`, :data:`FINISHED`, :data:`FAILED` or :data:`CANCELLED`.
    database : str
    title : str
        The header of the first query.
    n_queries, n_done : int
        Number of queries, and of those that are searched.
    submitted : datetime
    position : int or None
        Number of searches before this one, if it waits.
    seconds_left : float or None
        Estimate of the time until the end; None if there is none.
    share_done : float or None
        Completed share of the work, 0 to 1; None if unknown.
    problem : str
        Why it failed; otherwise empty.
    expires : datetime or None
        When the result is deleted; None if it is kept.
    """

    reference: str
    state: str
    database: str
    title: str
    n_queries: int
    n_done: int
    submitted: datetime
    position: int | None = None
    seconds_left: float | None = None
    share_done: float | None = None
    problem: str = ""
    expires: datetime | None = None
    is_linked: bool = False
    """Whether it is seen through a link, which shows it and no more."""

    @property
    def has_ended(self) -> bool:
        """Whether the state does not change any more."""
        return self.state in ENDED


class PageBackend(Protocol):
    """The service as the pages see it. ``owner`` is what the authentication of a request returned.

    Methods that take a reference raise :class:`NotFound` if the owner may not see it. All but :meth:`watch` may wait
    for the store, and are called in threads.
    """

    @property
    def store(self) -> ResultViews:
        """The store with the runs."""
        ...

    def databases(self) -> Sequence[OfferedDatabase]:
        """The databases in the order in which they are offered."""
        ...

    @property
    def takes_subjects(self) -> bool:
        """Whether subjects may be sent with a search."""
        ...

    def subjects(self, name: str) -> str:
        """The FASTA of the subjects that somebody sent, by the name of their set; empty if there is no such set."""
        ...

    def submit(self, owner: str, request: SearchRequest) -> str:
        """Accept a search; returns its reference. Raises :class:`RequestRefused`."""
        ...

    def status(self, owner: str, reference: str) -> SearchStatus:
        """The state of a search; a stored run is a search too."""
        ...

    def watch(self, owner: str, reference: str) -> AsyncIterator[SearchStatus]:
        """The state of a search now and after changes, until it has ended."""
        ...

    def cancel(self, owner: str, reference: str) -> None:
        """Cancel a search that has not ended; otherwise nothing changes."""
        ...

    def run(self, owner: str, reference: str) -> StoredRun | None:
        """The run with the results; None if no query has been searched yet."""
        ...

    def request(self, owner: str, reference: str) -> SearchRequest | None:
        """The search as it was submitted, to search again; None for a large run of the command line."""
        ...

    def share(self, owner: str, reference: str) -> str:
        """A reference under which everyone who knows it sees the result."""
        ...

    def links(self, owner: str, reference: str) -> Sequence[StoredLink]:
        """The links that :meth:`share` made, oldest first; their references are not stored."""
        ...

    def withdraw(self, owner: str, reference: str, link_id: str) -> None:
        """End a link. Raises :class:`swsearch.errors.Refused` if there is none of this id."""
        ...

    def history(self, owner: str, offset: int, limit: int) -> Sequence[SearchStatus]:
        """The owner's searches, newest first."""
        ...

    def stored_runs(self, owner: str) -> Sequence[StoredRun]:
        """The runs of commands that the owner may see, newest first."""
        ...

    def downloading(self) -> AbstractContextManager[ResultViews]:
        """The store for one download. Raises :class:`swsearch.errors.Refused` if too many are running."""
        ...

    def open_database(self, info: DatabaseInfo) -> AbstractContextManager[PackedDatabase | None]:
        """The database that a run searched, open; None if it is not offered any more or has another content."""
        ...
