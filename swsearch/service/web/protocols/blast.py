"""The BLAST URL API at ``/blast/Blast.cgi`` (NCBI's Common URL API), for Biopython, Biotite, BioPerl and others.

``CMD=Put`` submits a search and answers with its RID, ``CMD=Get`` gives its state or its report, ``CMD=Delete`` cancels
it. A RID is a name of the search (:func:`~swsearch.service.web.protocols.common.public_name`), so it lives as long as
the search does. A Get is held until the search is finished, because clients pause for long when it is not.

A refusal is a page with status 200, as NCBI's, because clients show its text then, and otherwise only the number. Where
clients would ask again for ever (a Get of an unknown RID or of a failed search), it has another status.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse
from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse

from swsearch.errors import InputError, SearchNotFound, SwSearchError
from swsearch.service.web.api import owner_of, service_of
from swsearch.service.web.protocols.blast_answers import (
    MEDIA_TYPES,
    error_page,
    report_of,
    state_page,
    submitted_page,
)
from swsearch.service.web.protocols.blast_parameters import checked_parameters, submission_of
from swsearch.service.web.protocols.common import (
    failure,
    held_status,
    key_of,
    problem,
    public_name,
    refuse_other_sites,
    sent_fields,
    submitted,
    whole_of,
)
from swsearch.service.web.reports import Download
from swsearch.service.web.state import SearchStatus, Service
from swsearch.words import shortened

MAX_ADDRESS: Final = 1 << 17
"""Longest query string, in bytes. Longer requests are sent by POST."""
HOLD_SECONDS: Final = 50.0
"""Time for which a Get of a report is held; proxies end requests after 60."""
HOLD_STATE_SECONDS: Final = 3.0
"""The same for a Get of the state: the time for which Biotite pauses between two of them."""
_UNKNOWN: Final = "there is no search of yours with this RID, or it has expired"


def blast_router() -> APIRouter:
    """The routes of this protocol."""
    router = APIRouter()

    @router.api_route("/blast/Blast.cgi", methods=["GET", "POST"])
    async def blast(request: Request) -> Response:
        """Answer one request."""
        command = ""
        try:
            if len(request.scope["query_string"]) > MAX_ADDRESS:
                return error_page(f"Submitted URI too large (maximum {MAX_ADDRESS:,} bytes); send it by POST", 414)
            fields = await sent_fields(request)
            command = next((value for name, value in fields if name.upper() == "CMD"), "").strip().lower()
            return await _answer(request, command, checked_parameters(fields))
        except SwSearchError as error:
            status, message = problem(request, error)
            return error_page(message, 200 if command == "put" and status < 500 else status)

    return router


async def _answer(request: Request, command: str, sent: Mapping[str, str]) -> Response:
    if command not in ("put", "get", "delete"):
        found = f"CMD={shortened(command)} is not available" if command else "CMD is missing"
        raise InputError(f"{found}; choose Put, Get or Delete")
    if command == "get":
        return await _get(request, sent)
    refuse_other_sites(request)
    return await (_put if command == "put" else _delete)(request, sent)


async def _put(request: Request, sent: Mapping[str, str]) -> HTMLResponse:
    submission, program = submission_of(sent)
    database = await run_in_threadpool(service_of(request).databases.current, submission.database)
    program.check(database)
    status = await submitted(request, submission, database, program.advice)
    seconds = None if status.forecast is None else status.forecast.seconds
    return submitted_page(public_name(status.search.key), seconds, _page_address(request, status))


async def _delete(request: Request, sent: Mapping[str, str]) -> HTMLResponse:
    """Cancel a search; one that is finished is kept until it expires, as all are."""
    rid = sent.get("RID", "").strip()
    try:
        status = await run_in_threadpool(service_of(request).cancel, key_of(rid), owner_of(request))
    except SearchNotFound:
        return state_page("UNKNOWN", _UNKNOWN, status=404)
    request.app.state.changed(status.search.key)
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
        status = await held_status(request, key, HOLD_STATE_SECONDS if is_state else HOLD_SECONDS)
    except SearchNotFound:
        return state_page("UNKNOWN", _UNKNOWN, status=200 if is_state else 404)
    if status.search.state == "cancelled":
        return state_page("UNKNOWN", "this search was cancelled", status=200 if is_state else 404)
    if not status.search.is_finished:
        return state_page("WAITING", "this search is not finished")
    reason = await run_in_threadpool(failure, service, status)
    if reason is not None:
        return state_page("FAILED", reason, status=200 if is_state else 409)
    if is_state:
        return state_page("READY", has_hits=await run_in_threadpool(_has_hits, service, status))
    if form is None:
        return RedirectResponse(_page_address(request, status), 303)
    return await _report(request, status, *form)


def _wanted_form(sent: Mapping[str, str]) -> tuple[str, int | None] | None:
    """Format and largest number of subjects of a report; None for a person with a browser, who names no format.

    Raises
    ------
    InputError
        There is no such format.
    """
    if "FORMAT_TYPE" not in sent:
        return None
    kind = sent["FORMAT_TYPE"].strip().upper()
    view = sent.get("ALIGNMENT_VIEW", "Pairwise").strip().lower()
    if view not in ("pairwise", "tabular"):
        raise InputError(f"ALIGNMENT_VIEW={shortened(view)} is not available; choose Pairwise or Tabular")
    if kind == "HTML":
        # Bio.Blast would take any page for one that says WAITING, and ask again for ever.
        raise InputError("FORMAT_TYPE=HTML is not for programs; leave it out in a browser, or choose XML")
    if kind not in MEDIA_TYPES:
        raise InputError(f"FORMAT_TYPE={shortened(kind)} is not available; choose {', '.join(MEDIA_TYPES)}")
    if kind == "TEXT" and view == "tabular":
        kind = "TABULAR"
    n_subjects = whole_of("ALIGNMENTS", sent["ALIGNMENTS"]) if "ALIGNMENTS" in sent else None
    if n_subjects is not None and n_subjects < 1:
        raise InputError(f"ALIGNMENTS={n_subjects}: at least 1 subject must be asked for")
    return kind, n_subjects


def _has_hits(service: Service, status: SearchStatus) -> bool:
    """Whether any query of a finished search has a hit."""
    offset, step = 0, 1000
    while summaries := service.queries(status.search.key, status.search.owner, offset, step):
        if any(summary.n_hits for summary in summaries):
            return True
        offset += step
    return False


async def _report(request: Request, status: SearchStatus, kind: str, n_subjects: int | None) -> Response:
    rid = public_name(status.search.key)
    service = service_of(request)

    def prepared() -> Download:
        search, run_id = service.finished_run(status.search.key, owner_of(request))
        cut = n_subjects if n_subjects is not None and n_subjects < int(search.options.get("top") or 0) else None
        return Download(service, run_id, report_of(kind, rid, cut))

    download = await run_in_threadpool(prepared)
    media_type = MEDIA_TYPES[kind]
    headers = {"Content-Disposition": f'attachment; filename="{rid}.zip"'} if media_type.endswith("zip") else {}
    return await download.answer(media_type, headers)


def _page_address(request: Request, status: SearchStatus) -> str:
    return f"{request.scope.get('root_path', '')}/results/{status.search.key}"
