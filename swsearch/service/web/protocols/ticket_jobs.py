"""Tickets: what a client sent, as searches of the service, and their common status.

A ticket is one search for each database. Its id is a hash of what was sent, of the owner and of the databases' content,
and the searches have it in their idempotency keys. So a client that sends again gets the same ticket, and tickets need
no table: they are as durable as the searches. Two characters of the id say what kind of ticket it is and how many
searches it has.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from swsearch import __version__
from swsearch.errors import InputError, Refused
from swsearch.report.row_filter import RowFilter
from swsearch.search.defaults import FAMILY_EVALUE, FAMILY_ITERATIONS, FAMILY_TOP
from swsearch.service.databases import OfferedDatabase
from swsearch.service.requests import Submission
from swsearch.service.web.state import Service
from swsearch.store.search_records import StoredSearch
from swsearch.store.service_models import CANCELLED, DONE, FAILED, RUNNING
from swsearch.store.ticket_store import TicketStore
from swsearch.words import shortened

PAIR_EVALUE: Final = 0.001
SEARCH_EVALUE: Final = 0.001
SEARCH_TOP: Final = 300
"""E-values and numbers of subjects: those of ColabFold's server for pairs, and of MMseqs2 for searches."""
DIVERSE_ROWS: Final = RowFilter(max_identity=95, diff=3000, filter_above=1000)
"""Rows that ColabFold's server keeps of an alignment, unless the mode says ``nofilter``."""

PENDING, RUNS, COMPLETE, ERROR, UNKNOWN = "PENDING", "RUNNING", "COMPLETE", "ERROR", "UNKNOWN"

MSA: Final = "m"
MSA_TEMPLATES: Final = "t"
ENVIRONMENT: Final = "e"
ENVIRONMENT_TEMPLATES: Final = "f"
ALIGNMENTS: Final = MSA + MSA_TEMPLATES + ENVIRONMENT + ENVIRONMENT_TEMPLATES
UNFILTERED: Final = ALIGNMENTS.upper()
PAIR_GREEDY: Final = "g"
PAIR_COMPLETE: Final = "c"
SEARCH: Final = "s"
TYPES: Final = {
    **dict.fromkeys(ALIGNMENTS + UNFILTERED, "msa"),
    PAIR_GREEDY: "pair",
    PAIR_COMPLETE: "pair",
    SEARCH: "search",
}
"""The kinds of tickets by their letter in the id, with MMseqs2-App's names of their types. For alignments, a kind says
whether the archive has files for the environment and for templates, and, as a capital letter, that it has all rows; for
pairs, how complete an organism must be."""
_COUNTS: Final = "0123456789"
_ID: Final = re.compile(rf"([{''.join(TYPES)}])([1-9])([A-Za-z0-9_-]{{36}})")
_MODES: Final = {
    "ticket/msa": {"", "all", "env", "nofilter", "notemplates"},
    "ticket/pair": {"", "all", "env", "pairgreedy", "paircomplete", "pairfilterbest"},
}
MAX_DATABASES: Final = len(_COUNTS) - 1


@dataclass(frozen=True)
class Ticket:
    """A ticket by its id.

    Attributes
    ----------
    id : str
        38 characters, as MMseqs2-App's have.
    kind : str
        One of the letters above.
    keys : tuple of str
        The idempotency keys of its searches. They have blanks, which no key of the API has.
    """

    id: str
    kind: str
    keys: tuple[str, ...]

    @classmethod
    def of(cls, ticket_id: str) -> Ticket:
        """The ticket with an id.

        Raises
        ------
        InputError
            No ticket has such an id.
        """
        found = _ID.fullmatch(ticket_id)
        if found is None:
            raise InputError(f"{shortened(ticket_id)!r} is not the id of a ticket")
        return cls(ticket_id, found[1], tuple(f"ticket {ticket_id} {place}" for place in range(int(found[2]))))

    @property
    def type(self) -> str:
        """``msa``, ``pair`` or ``search``."""
        return TYPES[self.kind]


class Tickets:
    """The tickets of a service; its methods block.

    Parameters
    ----------
    service : Service
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._store = TicketStore.beside(service.store)

    # --- submission ---

    def submit_msa(self, owner: str, queries: str, mode: str, databases: Sequence[str]) -> Ticket:
        """Submit searches for alignments of one sequence each.

        Raises
        ------
        InputError
            The queries, the mode or a database cannot be used; :class:`Refused` names a limit.
        """
        words = _words("ticket/msa", mode)
        chosen = self._proteins(databases, with_second="env" in words)
        kinds = (MSA, ENVIRONMENT) if "notemplates" in words else (MSA_TEMPLATES, ENVIRONMENT_TEMPLATES)
        kind = kinds["env" in words]
        kind = kind.upper() if "nofilter" in words else kind
        return self._submit(owner, kind, queries, chosen, self._options(FAMILY_EVALUE, FAMILY_TOP, FAMILY_ITERATIONS))

    def submit_pair(self, owner: str, queries: str, mode: str, databases: Sequence[str]) -> Ticket:
        """Submit searches for the paired alignments of the chains of a complex; errors are those of ``submit_msa``."""
        words = _words("ticket/pair", mode)
        if {"pairgreedy", "paircomplete"} <= words:
            raise InputError("mode names pairgreedy and paircomplete; choose one")
        chosen = self._proteins(databases, with_second="env" in words)
        kind = PAIR_COMPLETE if "paircomplete" in words else PAIR_GREEDY
        return self._submit(owner, kind, queries, chosen, self._options(PAIR_EVALUE, FAMILY_TOP, FAMILY_ITERATIONS))

    def submit_search(self, owner: str, queries: str, mode: str, databases: Sequence[str], taxa: str = "") -> Ticket:
        """Submit searches of several databases; errors are those of ``submit_msa``."""
        if mode not in ("", "all"):
            raise InputError(f"mode {shortened(mode)!r} of /ticket is not offered; choose all")
        if taxa:
            raise InputError("taxfilter is not offered, because it needs a taxonomic tree; leave it out")
        names = list(dict.fromkeys(databases))
        if not 1 <= len(names) <= MAX_DATABASES:
            offered = ", ".join(self._service.databases.paths)
            raise InputError(f"give 1 to {MAX_DATABASES} fields database[]; the databases are {offered}")
        chosen = [self._service.databases.current(name) for name in names]
        return self._submit(owner, SEARCH, queries, chosen, self._options(SEARCH_EVALUE, SEARCH_TOP, iterations=1))

    def _proteins(self, names: Sequence[str], *, with_second: bool) -> list[OfferedDatabase]:
        """The databases of an alignment: those that are named, or the first protein databases that are offered."""
        if names:
            chosen = [self._service.databases.current(name) for name in dict.fromkeys(names)]
        else:
            chosen = [one for one in self._service.offered() if one.alphabet == "protein"]
        for one in chosen:
            if one.alphabet != "protein":
                raise InputError(f"database {one.name} is {one.alphabet}; an alignment needs proteins")
        if not chosen:
            raise InputError("an alignment needs a database of proteins, and this server has none")
        return chosen[: 2 if with_second else 1]

    def _options(self, evalue: float, top: int, iterations: int) -> dict[str, Any]:
        return {"evalue": evalue, "top": min(top, self._service.settings.limits.top), "iterations": iterations}

    def _submit(
        self,
        owner: str,
        kind: str,
        queries: str,
        databases: Sequence[OfferedDatabase],
        options: dict[str, Any],
    ) -> Ticket:
        searched = [(one.name, one.searched.digest) for one in databases]
        ticket = Ticket.of(kind + _COUNTS[len(databases)] + _digest(owner, kind, queries, searched, options))
        status = status_of(self.searches(owner, ticket))
        if status in (PENDING, RUNS, COMPLETE):
            return ticket
        if status == ERROR:
            self._store.release_failed(owner, ticket.keys)
        alphabet = None if kind == SEARCH else "protein"
        for key, database in zip(ticket.keys, databases, strict=True):
            self._service.submit(Submission(queries, database.name, options, alphabet, key), owner)
        return ticket

    # --- status ---

    def searches(self, owner: str, ticket: Ticket) -> list[StoredSearch | None]:
        """The searches of a ticket of the owner; None for one that is not there."""
        return self._store.searches_under(owner, ticket.keys)

    def finished(self, owner: str, ticket: Ticket) -> list[StoredSearch]:
        """The searches of a complete ticket.

        Raises
        ------
        Refused
            There is no such ticket, or it is not complete.
        """
        searches = self.searches(owner, ticket)
        status = status_of(searches)
        if status != COMPLETE:
            raise Refused("not_finished", f"the status of this ticket is {status}; its result is not there")
        return [search for search in searches if search is not None]


def status_of(searches: Sequence[StoredSearch | None]) -> str:
    """The status of a ticket with these searches."""
    found = [search for search in searches if search is not None]
    if any(search.state in (FAILED, CANCELLED) or search.n_failed for search in found):
        return ERROR
    if len(found) < len(searches):
        return UNKNOWN
    states = {search.state for search in found}
    if states == {DONE}:
        return COMPLETE
    return RUNS if states & {RUNNING, DONE} else PENDING


def _words(path: str, mode: str) -> set[str]:
    """The words of a mode, such as ``env-nofilter``."""
    words = set(mode.split("-"))
    unknown = sorted(words - _MODES[path])
    if unknown:
        known = ", ".join(sorted(_MODES[path] - {""}))
        raise InputError(f"mode {shortened(unknown[0])!r} of /{path} is not offered; choose from {known}, joined by -")
    return words


def _digest(*sent: Any) -> str:
    text = json.dumps([__version__, *sent]).encode()
    return base64.urlsafe_b64encode(hashlib.sha256(text).digest()).decode()[:36]
