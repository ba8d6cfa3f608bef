"""The BLAST URL API at ``/blast/Blast.cgi`` (NCBI's Common URL API), for Biopython, Biotite, BioPerl and others.

``CMD=Put`` submits a search and answers with its RID, ``CMD=Get`` gives its state or its report, ``CMD=Delete`` cancels
it. A RID is a name of the search (:func:`rid_of`), so it lives as long as the search does. A Get is held until the
search is finished, because clients pause for long when it is not.

A refusal is a page with status 200, as NCBI's, because clients show its text then, and otherwise only the number. Where
clients would ask again for ever (a Get of an unknown RID or of a failed search), it has another status.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse

from swsearch.errors import FastaFormatError, InputError, Refused, SearchNotFound, SwSearchError
from swsearch.hits.result import QueryResult
from swsearch.search.queries import Requirements
from swsearch.sequences.alphabet import ALPHABETS
from swsearch.service.answers import told
from swsearch.service.bodies import sent_fields
from swsearch.service.databases import OfferedDatabase
from swsearch.service.json_api import held, owner_of, service_of, submitted
from swsearch.service.protocols.blast_answers import REPORTS, error_page, state_page, submitted_page
from swsearch.service.protocols.blast_parameters import Program, checked_parameters, submission_of, whole_of
from swsearch.service.proxies import address, site_of
from swsearch.service.reports import Download
from swsearch.service.service import SearchStatus, Service
from swsearch.service.submit import Submission
from swsearch.store.store import Store
from swsearch.words import shortened

_NAME: Final = re.compile(r"[A-Za-z2-7]{26}")
_PREFERRED_WAIT: Final = re.compile(r"\bwait=(\d{1,4})\b")
_MAX_FIELDS: Final = 500
_MAX_FILES: Final = 10

MAX_ADDRESS: Final = 1 << 17
"""Longest query string, in bytes. Longer requests are sent by POST."""
HOLD_SECONDS: Final = 50.0
"""Time for which a Get of a report is held; proxies end requests after 60."""
HOLD_STATE_SECONDS: Final = 3.0
"""The same for a Get of the state: the time for which Biotite pauses between two of them."""
_UNKNOWN: Final = "there is no search of yours with this RID, or it has expired"


router = APIRouter()
"""The routes of this protocol."""


@router.api_route("/blast/Blast.cgi", methods=["GET", "POST"])
async def blast(request: Request) -> Response:
    """Answer one request."""
    command = ""
    try:
        if len(request.scope["query_string"]) > MAX_ADDRESS:
            return error_page(f"Submitted URI too large (maximum {MAX_ADDRESS:,} bytes); send it by POST", 414)
        fields = await _sent_fields(request)
        command = next((value for name, value in fields if name.upper() == "CMD"), "").strip().lower()
        return await _answer(request, command, checked_parameters(fields))
    except SwSearchError as error:
        status, _, message = told(request, error)
        return error_page(message, 200 if command == "put" and status < 500 else status)


async def _answer(request: Request, command: str, sent: Mapping[str, str]) -> Response:
    if command not in ("put", "get", "delete"):
        found = f"CMD={shortened(command)} is not available" if command else "CMD is missing"
        raise InputError(f"{found}; choose Put, Get or Delete")
    if command == "get":
        return await _get(request, sent)
    _refuse_other_sites(request)
    return await (_put if command == "put" else _delete)(request, sent)


async def _put(request: Request, sent: Mapping[str, str]) -> HTMLResponse:
    submission, program = submission_of(sent)
    database = await run_in_threadpool(service_of(request).databases.current, submission.database)
    program.check(database)
    status = await _submitted(request, submission, database, program)
    return submitted_page(rid_of(status.search.key), status.seconds_left, address(_page_of(status)))


async def _delete(request: Request, sent: Mapping[str, str]) -> HTMLResponse:
    """Cancel a search; one that is finished is kept until it expires, as all are."""
    rid = sent.get("RID", "").strip()
    try:
        status = await run_in_threadpool(service_of(request).cancel, key_of(rid), owner_of(request))
    except SearchNotFound:
        return state_page("UNKNOWN", _UNKNOWN, status=404)
    text = "is cancelled" if status.search.state == "cancelled" else "was finished, and is kept until it expires"
    return HTMLResponse(f"<!doctype html>\n<title>swsearch</title>\n<p>Search {rid} {text}.</p>\n")


async def _get(request: Request, sent: Mapping[str, str]) -> Response:
    wanted = sent.get("FORMAT_OBJECT", "Alignment").strip().lower()
    if wanted not in ("alignment", "searchinfo"):
        raise InputError(f"FORMAT_OBJECT={shortened(wanted)} is not available; choose Alignment or SearchInfo")
    is_state = wanted == "searchinfo"
    form = None if is_state else _wanted_form(sent)
    service = service_of(request)
    try:
        key = key_of(sent.get("RID", "").strip())
        status = await _held_status(request, key, HOLD_STATE_SECONDS if is_state else HOLD_SECONDS)
    except SearchNotFound:
        return state_page("UNKNOWN", _UNKNOWN, status=200 if is_state else 404)
    if status.search.state == "cancelled":
        return state_page("UNKNOWN", "this search was cancelled", status=200 if is_state else 404)
    if not status.search.is_finished:
        return state_page("WAITING", "this search is not finished")
    reason = await run_in_threadpool(_failure, service, status)
    if reason is not None:
        return state_page("FAILED", reason, status=200 if is_state else 409)
    if is_state:
        return state_page("READY", has_hits=status.search.n_hits > 0)
    if form is None:
        return RedirectResponse(_page_of(status), 303)
    return await _report(request, status, *form)


def _wanted_form(sent: Mapping[str, str]) -> tuple[str, int | None] | None:
    """Format and largest number of subjects of a report; None for a person with a browser, who names no format."""
    if "FORMAT_TYPE" not in sent:
        return None
    kind = sent["FORMAT_TYPE"].strip().upper()
    view = sent.get("ALIGNMENT_VIEW", "Pairwise").strip().lower()
    if view not in ("pairwise", "tabular"):
        raise InputError(f"ALIGNMENT_VIEW={shortened(view)} is not available; choose Pairwise or Tabular")
    if kind == "HTML":
        # Bio.Blast would take any page for one that says WAITING, and ask again for ever.
        raise InputError("FORMAT_TYPE=HTML is not for programs; leave it out in a browser, or choose XML")
    if kind not in REPORTS:
        raise InputError(f"FORMAT_TYPE={shortened(kind)} is not available; choose {', '.join(REPORTS)}")
    if kind == "TEXT" and view == "tabular":
        kind = "TABULAR"
    n_subjects = whole_of("ALIGNMENTS", sent["ALIGNMENTS"]) if "ALIGNMENTS" in sent else None
    if n_subjects is not None and n_subjects < 1:
        raise InputError(f"ALIGNMENTS={n_subjects}: at least 1 subject must be asked for")
    return kind, n_subjects


async def _report(request: Request, status: SearchStatus, kind: str, n_subjects: int | None) -> Response:
    rid = rid_of(status.search.key)
    service = service_of(request)
    media_type, new = REPORTS[kind]

    def prepared() -> Download:
        search, run_id = service.finished_run(status.search.key, owner_of(request))
        cut = n_subjects if n_subjects is not None and n_subjects < int(search.options.get("top") or 0) else None
        queries = None if cut is None else partial(_first_subjects, run_id=run_id, n_subjects=cut)
        return Download(service, run_id, new(rid), queries)

    download = await run_in_threadpool(prepared)
    headers = {"Content-Disposition": f'attachment; filename="{rid}.zip"'} if media_type.endswith("zip") else {}
    return await download.answer(media_type, headers)


def _first_subjects(store: Store, run_id: int, n_subjects: int) -> Iterator[QueryResult]:
    """The queries of a run, each with the hits of its first subjects."""
    for query in store.results.queries(run_id):
        yield replace(query, hits=tuple(hit for hit in query.hits if hit.rank <= n_subjects))


def _page_of(status: SearchStatus) -> str:
    """The path of the page of a search, to which a redirection adds the server's root path."""
    return f"/results/{status.search.key}"


# --- requests ---


async def _sent_fields(request: Request) -> list[tuple[str, str]]:
    """Names and values of a request, from its address and from its form; an uploaded file is the text in it."""
    fields = list(request.query_params.multi_items())
    if request.method == "GET":
        return fields
    limits = service_of(request).settings.limits
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in ("application/x-www-form-urlencoded", "multipart/form-data", ""):
        raise InputError(f"send a form, not {shortened(kind)}")
    try:
        return fields + await sent_fields(request, limits, max_files=_MAX_FILES, max_fields=_MAX_FIELDS)
    except HTTPException as error:
        raise InputError(f"the form cannot be read: {error.detail}") from error


def _refuse_other_sites(request: Request) -> None:
    """Refuse a GET that a page of another site lets a browser send: in this protocol a GET may change something."""
    site = request.headers.get("sec-fetch-site", "none")
    referer = request.headers.get("referer")
    host = request.headers.get("host", "").lower()
    is_foreign = referer is not None and site_of(referer) != host
    if site in ("cross-site", "same-site") or is_foreign:
        raise Refused("cross_site", "this request was sent by the page of another site")


# --- searches ---


def rid_of(key: str) -> str:
    """The RID of a search: the bytes of its key in base 32, since a RID has capitals and digits only.

    >>> rid_of("AAECAwQFBgcICQoLDA0ODw"), key_of("AAAQEAYEAUDAOCAJBIFQYDIOB4")
    ('AAAQEAYEAUDAOCAJBIFQYDIOB4', 'AAECAwQFBgcICQoLDA0ODw')
    """
    return base64.b32encode(base64.urlsafe_b64decode(f"{key}==")).decode().rstrip("=")


def key_of(name: str) -> str:
    """The key of a search from its :func:`rid_of`, in capitals or not; raises SearchNotFound for any other text."""
    if not _NAME.fullmatch(name):
        raise SearchNotFound(name)
    try:
        content = base64.b32decode(f"{name.upper()}======")
    except binascii.Error as error:
        raise SearchNotFound(name) from error
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


async def _submitted(
    request: Request, submission: Submission, database: OfferedDatabase, program: Program
) -> SearchStatus:
    """Submit a search; sequences without a header are accepted, and messages advise programs in place of options."""
    text = submission.queries.lstrip()
    is_bare = text != "" and not text.startswith((">", "@"))
    given = replace(submission, queries=f">\n{text}" if is_bare else text)
    try:
        stored, _ = await submitted(request, given)
        return await run_in_threadpool(service_of(request).status_of, stored)
    except FastaFormatError as error:
        line = error.line - 1 if is_bare and error.line is not None else error.line
        problem = _advised(error.problem, submission, database, program)
        raise error.replaced(problem=problem, line=line, record=None if is_bare else error.record) from error
    except Refused:
        raise
    except InputError as error:
        raise InputError(_advised(error.marked, submission, database, program)) from error


def _advised(message: str, submission: Submission, database: OfferedDatabase, program: Program) -> str:
    """A message with the program for queries of another alphabet in place of the advice of `swsearch query`."""
    translate = submission.options.get("translate")
    requirements = Requirements(database.name, ALPHABETS[database.catalogue.alphabet], translate)
    for name, alphabet in ALPHABETS.items():
        message = message.replace(requirements.advice(alphabet), program.advice(name))
    return message


async def _held_status(request: Request, key: str, seconds: float) -> SearchStatus:
    """A search of the sender, as soon as it is finished or the time is over.

    A client that sends ``Prefer: wait=N`` (RFC 7240) waits N seconds at most.
    """
    preferred = _PREFERRED_WAIT.search(request.headers.get("prefer", ""))
    if preferred:
        seconds = min(seconds, float(preferred[1]))
    return await held(request, key, seconds, lambda status: status)


def _failure(service: Service, status: SearchStatus) -> str | None:
    """The reason why a finished search has no complete result; None if it has.

    This protocol cannot say that one of several queries failed, and a report without it would look complete.
    """
    search = status.search
    if search.state == "done" and not search.n_failed:
        return None
    if search.state == "done":
        number, reason = service.failures(search)[0]
        return f"{search.n_failed} of {search.n_queries} queries failed; query {number + 1}: {reason}"
    reason = search.reason or ("it was cancelled" if search.state == "cancelled" else "the search failed")
    return service.databases.without_paths(reason)
