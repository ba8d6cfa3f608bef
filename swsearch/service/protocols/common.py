"""What the protocols share: the fields of a request, names of searches, held requests, programs and their alphabets."""

from __future__ import annotations

import asyncio
import base64
import binascii
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from fastapi import Request
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException

from swsearch.errors import FastaFormatError, InputError, Refused, SearchNotFound, SwSearchError
from swsearch.search.needs import QueryNeeds
from swsearch.sequences.alphabet import ALPHABETS
from swsearch.service.answers import described, log_error
from swsearch.service.api import owner_of, service_of
from swsearch.service.bodies import CLAIM, readers_of, sent_form
from swsearch.service.databases import OfferedDatabase
from swsearch.service.hub import Hub
from swsearch.service.proxies import site_of
from swsearch.service.service import SearchStatus, Service
from swsearch.service.submit import Submission, plain_text
from swsearch.words import shortened

_NAME: Final = re.compile(r"[A-Za-z2-7]{26}")
_PREFERRED_WAIT: Final = re.compile(r"\bwait=(\d{1,4})\b")
_MAX_FIELDS: Final = 500
_MAX_FILES: Final = 10


# --- requests ---


async def sent_fields(request: Request) -> list[tuple[str, str]]:
    """Names and values of a request, from its address and from its form; an uploaded file is the text in it.

    Raises
    ------
    InputError
        The form cannot be read.
    """
    fields = list(request.query_params.multi_items())
    if request.method == "GET":
        return fields
    limits = service_of(request).settings.limits
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in ("application/x-www-form-urlencoded", "multipart/form-data", ""):
        raise InputError(f"send a form, not {shortened(kind)}")
    try:
        async with sent_form(
            request, max_files=_MAX_FILES, max_fields=_MAX_FIELDS, max_part_size=limits.request_bytes
        ) as form:
            for name, value in form.multi_items():
                if isinstance(value, UploadFile):
                    content, take = await value.read(), CLAIM.get().take
                    text = await readers_of(request).read(request, plain_text, content, limits, take)
                    fields.append((name, text))
                else:
                    fields.append((name, value))
    except HTTPException as error:
        raise InputError(f"the form cannot be read: {error.detail}") from error
    return fields


def refuse_other_sites(request: Request) -> None:
    """Refuse a GET that a page of another site lets a browser send: in these protocols a GET may change something.

    Raises
    ------
    Refused
        The request was sent by another site.
    """
    site = request.headers.get("sec-fetch-site", "none")
    referer = request.headers.get("referer")
    host = request.headers.get("host", "").lower()
    is_foreign = referer is not None and site_of(referer) != host
    if site in ("cross-site", "same-site") or is_foreign:
        raise Refused("cross_site", "this request was sent by the page of another site")


def problem(request: Request, error: SwSearchError) -> tuple[int, str]:
    """Status and message of an expected error; the log has those of the server."""
    status, _, message = described(error, service_of(request))
    if status >= 500:
        log_error(request, error)
    return status, message


# --- searches ---


def public_name(key: str) -> str:
    """The name of a search in protocols whose names have capitals and digits only: the bytes of its key in base 32.

    >>> public_name("AAECAwQFBgcICQoLDA0ODw"), key_of("AAAQEAYEAUDAOCAJBIFQYDIOB4")
    ('AAAQEAYEAUDAOCAJBIFQYDIOB4', 'AAECAwQFBgcICQoLDA0ODw')
    """
    return base64.b32encode(base64.urlsafe_b64decode(f"{key}==")).decode().rstrip("=")


def key_of(name: str) -> str:
    """The key of a search from its :func:`public_name`, in capitals or not.

    Raises
    ------
    SearchNotFound
        This is the name of no search.
    """
    if not _NAME.fullmatch(name):
        raise SearchNotFound(name)
    try:
        content = base64.b32decode(f"{name.upper()}======")
    except binascii.Error as error:
        raise SearchNotFound(name) from error
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


async def submitted(
    request: Request, submission: Submission, database: OfferedDatabase, advice: Callable[[str], str]
) -> SearchStatus:
    """Submit a search; sequences without a header are accepted.

    Parameters
    ----------
    request : Request
    submission : Submission
    database : OfferedDatabase
        The database that it names.
    advice : callable
        What to do with queries of an alphabet that does not fit, for messages, in place of options of `swsearch query`.

    Raises
    ------
    SwSearchError
        As :meth:`swsearch.service.service.Service.submit`.
    """
    text = submission.queries.lstrip()
    is_bare = text != "" and not text.startswith((">", "@"))
    given = replace(submission, queries=f">\n{text}" if is_bare else text)
    try:
        service = service_of(request)
        stored, _ = await asyncio.wrap_future(
            await readers_of(request).read(request, service.begin_to_submit, given, owner_of(request))
        )
        return await run_in_threadpool(service.status_of, stored)
    except FastaFormatError as error:
        line = error.line - 1 if is_bare and error.line is not None else error.line
        place = {"record": None if is_bare else error.record, "line": line, "column": error.column}
        raise FastaFormatError(
            _advised(error.problem, submission, database, advice), error.path, identifier=error.identifier, **place
        ) from error
    except Refused:
        raise
    except InputError as error:
        raise InputError(_advised(error.marked, submission, database, advice)) from error


def _advised(message: str, submission: Submission, database: OfferedDatabase, advice: Callable[[str], str]) -> str:
    """A message with this advice in place of that of `swsearch query`."""
    translate = submission.options.get("translate")
    needs = QueryNeeds(database.name, ALPHABETS[database.alphabet], translate)
    for found, alphabet in ALPHABETS.items():
        message = message.replace(needs.advice(alphabet), advice(found))
    return message


async def held_status(request: Request, key: str, seconds: float) -> SearchStatus:
    """A search of the sender, as soon as it is finished or the time is over.

    A client that sends ``Prefer: wait=N`` (RFC 7240) waits N seconds at most.

    Raises
    ------
    SearchNotFound
        There is no such search.
    """
    preferred = _PREFERRED_WAIT.search(request.headers.get("prefer", ""))
    if preferred:
        seconds = min(seconds, float(preferred[1]))
    service, owner = service_of(request), owner_of(request)
    status = await run_in_threadpool(service.status, key, owner)
    if seconds and not status.search.is_finished:
        hub: Hub = request.app.state.hub
        await hub.finished(key, seconds)
        status = await run_in_threadpool(service.status, key, owner)
    return status


def failure(service: Service, status: SearchStatus) -> str | None:
    """The reason why a finished search has no complete result; None if it has.

    These protocols cannot say that one of several queries failed, and a report without it would look complete.
    """
    search = status.search
    if search.state == "done" and not search.n_failed:
        return None
    if search.state == "done":
        number, reason = service.failures(search)[0]
        return f"{search.n_failed} of {search.n_queries} queries failed; query {number + 1}: {reason}"
    reason = search.reason or ("it was cancelled" if search.state == "cancelled" else "the search failed")
    return service.databases.without_paths(reason)


# --- programs ---


@dataclass(frozen=True)
class Program:
    """A program of BLAST: the alphabets that it compares, and the value of the option ``translate``."""

    name: str
    query: str
    database: str
    translate: str | None

    def fits(self, query: str, database: str) -> bool:
        """Whether it compares queries and a database of these alphabets."""
        return (self.query, self.database) == (query, database)

    def advice(self, queries: str) -> str:
        """The program that searches such a database with queries of another alphabet."""
        return f"choose {' or '.join(other.name for other in PROGRAMS.values() if other.fits(queries, self.database))}"

    @property
    def aligned(self) -> str:
        """The alphabet of the aligned letters."""
        return "dna" if self.translate is None and self.database == "dna" else "protein"

    def check(self, database: OfferedDatabase) -> None:
        """Refuse a database of the other alphabet.

        Raises
        ------
        InputError
            The database does not fit.
        """
        if database.alphabet == self.database:
            return
        others = [other.name for other in PROGRAMS.values() if other.database == database.alphabet]
        raise InputError(
            f"{self.name} searches databases of {_WORDS[self.database]}, and {database.name} is "
            f"{_WORDS[database.alphabet]}; choose {', '.join(others[:-1])} or {others[-1]}, or another database"
        )


_WORDS: Final = {"protein": "protein", "dna": "DNA"}
PROGRAMS: Final = {
    program.name: program
    for program in (
        Program("blastp", "protein", "protein", None),
        Program("blastn", "dna", "dna", None),
        Program("blastx", "dna", "protein", "query"),
        Program("tblastn", "protein", "dna", "subject"),
        Program("tblastx", "dna", "dna", "both"),
    )
}
"""The programs by name."""


def program_named(name: str, parameter: str) -> Program:
    """A program, from the value of a parameter.

    Raises
    ------
    InputError
        There is no such program.
    """
    program = PROGRAMS.get(name.strip().lower())
    if program is None:
        found = f"there is no program {shortened(name)!r}" if name else f"{parameter} is missing"
        raise InputError(f"{found}; choose {', '.join(PROGRAMS)}")
    return program


# --- values ---


def number_of(name: str, value: str) -> float:
    """A real number above 0.

    Raises
    ------
    InputError
        The value is none.
    """
    try:
        number = float(value)
    except ValueError:
        number = 0.0
    if not number > 0:
        raise InputError(f"{name}={shortened(value)}: a number above 0 is needed")
    return number


def whole_of(name: str, value: str) -> int:
    """A whole number; one with a point is accepted too, such as 11.0.

    Raises
    ------
    InputError
        The value is none.
    """
    try:
        number = float(value)
    except ValueError:
        number = 0.5
    if not number.is_integer() or abs(number) >= 2**31:
        raise InputError(f"{name}={shortened(value)}: a whole number is needed")
    return int(number)


def composition_of(name: str, value: str, aligned: str) -> dict[str, str]:
    """The option for a value of BLAST's composition-based statistics: 0 or F for none, 1, 2, 3, D or T for some.

    DNA has none, whatever is sent.

    >>> composition_of("compstats", "2", "protein"), composition_of("compstats", "F", "protein")
    ({'composition': 'adjust'}, {'composition': 'none'})
    """
    if aligned == "dna":
        return {}
    if is_off(value):
        return {"composition": "none"}
    if value.strip().upper() not in ("1", "2", "3", "D", "T", "2005", "2006"):
        raise InputError(f"{name}={shortened(value)} is not available: choose 0, 1, 2 or 3")
    return {"composition": "adjust"}


def is_off(value: str) -> bool:
    """Whether a value says no, or nothing.

    >>> [is_off(value) for value in ("", "no", "F", "off", "0", "yes", "L")]
    [True, True, True, True, True, False, False]
    """
    return value.strip().lower() in ("", "no", "none", "off", "false", "f", "0", "n", "(none)")
