"""The tickets of MMseqs2-App and of ColabFold's server, which ColabFold, Boltz, Chai and others ask for alignments.

``POST /ticket/msa``, ``/ticket/pair``, ``/ticket``  submit, and give a ticket: an id and a status
``GET /ticket/ID``, ``POST /tickets``                the status of one ticket, of several
``GET /ticket/type/ID``                              ``msa``, ``pair`` or ``search``
``GET /result/download/ID``                          the alignments, or tables, as ``tar.gz``
``GET /result/ID/N``                                 the hits of one query of a search as JSON
``GET /result/ID/query``                             the queries as FASTA
``GET /result/queries/ID/LIMIT/PAGE``                their names
``GET /databases``, ``/databases/all``               the databases
``GET /template/LIST``                               refused

All of them are under ``/api`` too, where MMseqs2-App has them. ``/databases`` is only there, because the page of that
name has the other address. These clients look at the status in an answer's body and never at its code, so each error
has one (:func:`errors_with_status`). They wait for 6 seconds: submissions and looks at unfinished tickets are held for
5.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse, StreamingResponse
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import ImmutableMultiDict
from starlette.types import ASGIApp, Receive, Scope, Send

from swsearch.errors import InputError, Refused
from swsearch.sequences.record import identifier
from swsearch.service import api_models
from swsearch.service.answers import OF_PROTOCOL
from swsearch.service.bodies import readers_of, sent_fields
from swsearch.service.databases import OfferedDatabase
from swsearch.service.json_api import hub_of, owner_of, service_of
from swsearch.service.protocols import ticket_jobs
from swsearch.service.protocols.ticket_jobs import (
    KEEP_ALIVE_SECONDS,
    Ticket,
    archive_bytes,
    query_answer,
    status_of,
    write_archive,
)
from swsearch.service.service import Service
from swsearch.store.search_records import StoredSearch

HOLD_SECONDS: Final = 5.0
"""Longest time for which a request is held; ColabFold's client waits 6.02 seconds."""
_SLOT_SECONDS: Final = 60.0
_STATUSES: Final = {429: "RATELIMIT", 503: ticket_jobs.UNKNOWN}
"""Statuses that make clients send again; an error with another code is final."""
_PREFIXES: Final = ("", "/api")
_PATHS: Final = re.compile(r"(?:/api)?/(?:ticket|tickets|result|template|databases/all)(?:/.*)?|/api/databases")
_MAX_TICKETS: Final = 100
_MAX_LOOKUP: Final = 1000

Id = Annotated[str, Path(max_length=64)]
Number = Annotated[int, Path(ge=0, le=2**31)]


_routes = APIRouter()


# --- submission and status ---


@_routes.post("/ticket/msa")
async def msa(request: Request) -> JSONResponse:
    """Submit searches for alignments."""
    return await _submitted(request, ticket_jobs.submit_msa)


@_routes.post("/ticket/pair")
async def pair(request: Request) -> JSONResponse:
    """Submit searches for paired alignments."""
    return await _submitted(request, ticket_jobs.submit_pair)


@_routes.post("/ticket")
async def search(request: Request) -> JSONResponse:
    """Submit searches of several databases."""
    return await _submitted(request, ticket_jobs.submit_search, "taxfilter")


@_routes.get("/ticket/type/{ticket_id}")
def ticket_type(ticket_id: Id) -> dict[str, str]:
    """The type of a ticket."""
    return {"type": Ticket.of(ticket_id).type}


@_routes.get("/ticket/{ticket_id}")
async def ticket_status(request: Request, ticket_id: Id) -> JSONResponse:
    """The status of a ticket; the answer is held until it is finished."""
    began = time.monotonic()
    return _ticket_answer(ticket_id, await _held_status(request, Ticket.of(ticket_id), began))


@_routes.post("/tickets")
async def statuses(request: Request) -> JSONResponse:
    """The status of several tickets."""
    ids = (await _sent(request)).getlist("tickets[]")
    if len(ids) > _MAX_TICKETS:
        raise InputError(f"{len(ids):,} tickets are asked for; {_MAX_TICKETS} at most")
    found = await run_in_threadpool(_statuses, request, ids)
    return JSONResponse([{"id": ticket_id, "status": status} for ticket_id, status in found])


async def _sent(request: Request) -> ImmutableMultiDict[str, str]:
    """The fields of a form."""
    return ImmutableMultiDict(await sent_fields(request, service_of(request).settings.limits))


async def _submitted(request: Request, submit: Callable[..., Ticket], *further: str) -> JSONResponse:
    """Submit, and answer with the status: that of the end, if it comes soon.

    ``submit`` takes the service, the owner, the queries, the mode, the databases and the texts of further fields.
    """
    began = time.monotonic()
    sent = await _sent(request)
    # Of a field that is there several times, the first counts.
    queries, mode, *others = ("".join(sent.getlist(name)[:1]) for name in ("q", "mode", *further))
    given = (queries, mode, sent.getlist("database[]"), *others)
    ticket = await readers_of(request).read(request, submit, service_of(request), owner_of(request), *given)
    return _ticket_answer(ticket.id, await _held_status(request, ticket, began))


async def _held_status(request: Request, ticket: Ticket, began: float) -> str:
    """The status of a ticket when it is finished, or when the request has been held long enough."""

    def look(waits: bool) -> tuple[str | None, str]:
        searches = _searches(request, ticket)
        status = status_of(searches)
        if waits and status in (ticket_jobs.PENDING, ticket_jobs.RUNS):
            return None, next(one.key for one in searches if one is not None and not one.is_finished)
        return status, ""

    return await hub_of(request).held(look, began + HOLD_SECONDS - time.monotonic())


def _searches(request: Request, ticket: Ticket) -> list[StoredSearch | None]:
    """The searches of a ticket of the sender; None for one that is not there."""
    return service_of(request).store.searches.under(owner_of(request), ticket.keys)


def _statuses(request: Request, ids: list[str]) -> list[tuple[str, str]]:
    return [(ticket_id, status_of(_searches(request, Ticket.of(ticket_id)))) for ticket_id in ids]


def _ticket_answer(ticket_id: str, status: str) -> JSONResponse:
    return JSONResponse({"id": ticket_id, "status": status}, headers={"Cache-Control": "no-store"})


# --- results ---


@_routes.get("/result/download/{ticket_id}")
async def download(request: Request, ticket_id: Id) -> Response:
    """The archive of a finished ticket."""
    service, ticket = service_of(request), Ticket.of(ticket_id)
    searches = await run_in_threadpool(_finished, request, ticket)
    making = asyncio.create_task(_made_in_turn(service, ticket, searches))
    await asyncio.wait({making}, timeout=KEEP_ALIVE_SECONDS)
    if making.done():
        making.result()  # an error is answered as one, because no byte has been sent
    headers = {"Content-Disposition": f'attachment; filename="mmseqs_results_{ticket.id}.tar.gz"'}
    return StreamingResponse(archive_bytes(making), headers=headers, media_type="application/octet-stream")


@_routes.get("/result/queries/{ticket_id}/{limit}/{number}")
def queries(request: Request, ticket_id: Id, limit: Number, number: Number) -> dict[str, Any]:
    """The names of some queries of a ticket."""
    searches = _finished(request, Ticket.of(ticket_id))
    run_id = searches[0].run_id
    assert run_id is not None
    limit = min(limit, _MAX_LOOKUP)
    found = service_of(request).store.results.summaries(run_id, number * limit, limit + 1)
    names = [{"id": one.number, "name": api_models.shown(identifier(one.header)), "set": 0} for one in found[:limit]]
    return {"lookup": names, "hasNext": len(found) > limit}


@_routes.get("/result/{ticket_id}/query")
def fasta(request: Request, ticket_id: Id) -> PlainTextResponse:
    """The queries of a ticket."""
    searches = _finished(request, Ticket.of(ticket_id))
    store = service_of(request).store
    return PlainTextResponse(store.searches.fasta(searches[0]).encode("utf-8", "surrogateescape"))


@_routes.get("/result/{ticket_id}/{number}")
def result(request: Request, ticket_id: Id, number: Number, database: str | None = None) -> JSONResponse:
    """The hits of one query."""
    ticket = Ticket.of(ticket_id)
    if ticket.type != "search":
        raise InputError(f"a ticket of /ticket/{ticket.type} has an archive; get /result/download/{ticket.id}")
    store = service_of(request).store
    return JSONResponse(query_answer(store, _finished(request, ticket), number, database))


@_routes.get("/template/{names}")
def template(names: str) -> Response:
    """Refuse structures, which no database of this server has."""
    raise Refused("no_results", "this server has no structures for templates")


def _finished(request: Request, ticket: Ticket) -> list[StoredSearch]:
    return ticket_jobs.finished(service_of(request), owner_of(request), ticket)


async def _made_in_turn(service: Service, ticket: Ticket, searches: list[StoredSearch]) -> Any:
    """The archive, made when one of the server's downloads may begin: a refusal would be taken for the archive."""
    deadline = time.monotonic() + _SLOT_SECONDS
    while not service.download_slots.acquire(blocking=False):
        if time.monotonic() > deadline:
            most = service.settings.limits.downloads
            raise Refused("too_many_downloads", f"{most} files are being made; try again in some seconds")
        await asyncio.sleep(0.05)

    def make() -> Any:
        try:
            return write_archive(service, ticket, searches)
        finally:
            service.download_slots.release()

    return await run_in_threadpool(make)


# --- the rest ---


@_routes.get("/databases/all")
def databases(request: Request) -> dict[str, list[dict[str, Any]]]:
    """The databases, in MMseqs2-App's form."""
    offered = service_of(request).databases.offered()
    return {"databases": [_database_answer(one, place) for place, one in enumerate(offered)]}


def _database_answer(one: OfferedDatabase, place: int) -> dict[str, Any]:
    return {
        "name": one.name,
        "version": str(one.catalogue.generation),
        "path": one.name,
        "default": place == 0,
        "order": place,
        "taxonomy": False,
        "complex": False,
        "motif": False,
        "full_header": False,
        "index": "",
        "search": "",
        "multimer": "",
        "status": ticket_jobs.COMPLETE,
    }


router = APIRouter()
"""The routes of this protocol."""
for _prefix in _PREFIXES:
    router.include_router(_routes, prefix=_prefix)
router.add_api_route("/api/databases", databases, methods=["GET"])


def errors_with_status(app: ASGIApp) -> ASGIApp:
    """A middleware around all others: gives the errors of this protocol a status, whoever refuses the request."""

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":  # also for other paths: the context may be that of the connection's last request
            has_status = _PATHS.fullmatch(scope["path"]) is not None
            OF_PROTOCOL.set(lambda code: {"status": _STATUSES.get(code, ticket_jobs.ERROR)} if has_status else {})
        await app(scope, receive, send)

    return serve
