"""The API under ``/api/v1``: searches, their events, hits and reports, databases, usage.

Endpoints are plain functions where they use the store, which then runs in a thread; streams are coroutines. Errors are
those of :mod:`swsearch.service.answers`.
"""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import suppress
from difflib import get_close_matches
from functools import partial
from typing import Annotated, Any, Final, Literal, TypeVar

from fastapi import APIRouter, Depends, FastAPI, Header, Path, Query, Request, Response, params
from fastapi.dependencies.utils import get_flat_params
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from sse_starlette import EventSourceResponse
from starlette.concurrency import run_in_threadpool

from swsearch.errors import HitsNotFound, InputError, SearchNotFound
from swsearch.report.formats import FORMATS, new_report
from swsearch.report.row_filter import MOST_ROWS, RowFilter
from swsearch.sequences.fasta_text import MAX_FLANK, SubjectPart
from swsearch.sequences.record import identifier
from swsearch.service import api_models
from swsearch.service.bodies import readers_of
from swsearch.service.hub import Hub
from swsearch.service.proxies import address
from swsearch.service.reports import Download
from swsearch.service.service import SearchStatus, Service
from swsearch.service.submit import Submission
from swsearch.store.accounts import StoredLink
from swsearch.store.results import SORTS, HitFilter, HitView
from swsearch.store.search_records import StoredSearch

T = TypeVar("T")
MAX_WAIT: Final = 50.0
"""Longest time for which a request is held, in seconds; proxies end requests after 60."""
MAX_PAGE: Final = 1000
PING_SECONDS: Final = 11
PING_SPREAD: Final = 9
"""Seconds between two signs of life in a stream, and by how much they differ from stream to stream: hundreds of streams
that began together, after a restart, must not all write in the same moment."""
_phases: Final = itertools.count()
_IDEMPOTENCY_KEY: Final = re.compile(r"[\x21-\x7e]{1,200}")

_ERRORS: Final[dict[int | str, dict[str, Any]]] = {
    status: {"model": api_models.ErrorAnswer, "description": meaning}
    for status, meaning in (
        (400, "The request cannot be used."),
        (401, "A token is needed."),
        (403, "The request was sent by another site."),
        (404, "There is no such search, or it has expired."),
        (409, "The search is not that far, or the Idempotency-Key belongs to another search."),
        (413, "A limit on sizes is exceeded."),
        (415, "The Content-Encoding is not known."),
        (422, "The request has another form."),
        (429, "A limit on queued or daily work is exceeded."),
        (500, "The server made an error."),
        (503, "The store or a database cannot be used at the moment."),
    )
}

_TOKENS: Final[dict[str, dict[str, str]]] = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "key": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
    "basic": {"type": "http", "scheme": "basic", "description": "The token is the password; the name is ignored."},
}


class StrictRoute(APIRoute):
    """A route that refuses parameters that its endpoint does not have, rather than answer another question.

    The error names the nearest known parameter, or all.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """What answers a request."""
        answer = super().get_route_handler()
        fields = get_flat_params(self.dependant)
        known = [field.alias for field in fields if isinstance(field.field_info, params.Query)]

        async def strict(request: Request) -> Response:
            for name in request.query_params:
                if name not in known:
                    near = get_close_matches(name, known, n=1)
                    advice = f"did you mean {near[0]}?" if near else f"there are: {', '.join(known) or 'none'}"
                    problem = {"loc": ("query", name), "msg": f"no such parameter here; {advice}"}
                    raise RequestValidationError([problem])
            return await answer(request)

        return strict


router = APIRouter(prefix="/api/v1", responses=_ERRORS, route_class=StrictRoute)

Key = Annotated[str, Path(description="The id of a search.", max_length=64)]
Number = Annotated[int, Path(ge=0, le=2**31, description="The number of a query in its search, from 0.")]
Offset = Annotated[int, Query(ge=0, le=2**31)]
Wait = Annotated[float, Query(ge=0, le=MAX_WAIT, description="Wait up to this many seconds for the search to finish.")]
FirstHits = Annotated[
    int,
    Query(ge=0, le=MAX_PAGE, description="If the search is finished, include up to this many hits of its first query."),
]
Limit = Annotated[int, Query(ge=1, le=MAX_PAGE)]


def service_of(request: Request) -> Service:
    """The service of this application."""
    service: Service = request.app.state.service
    return service


def hub_of(request: Request) -> Hub:
    """Who waits for a change, in this application."""
    hub: Hub = request.app.state.hub
    return hub


def owner_of(request: Request) -> str:
    """Who sent a request."""
    owner: str = request.state.owner
    return owner


def describe_tokens(app: FastAPI) -> None:
    """Let the description of the API say how a token is sent."""
    made = app.openapi

    def described() -> dict[str, Any]:
        schema = made()
        schema["components"]["securitySchemes"] = _TOKENS
        schema["security"] = [{name: []} for name in _TOKENS]
        return schema

    app.openapi = described  # type: ignore[method-assign]


# --- searches ---


@router.post(
    "/searches", status_code=201, response_model=api_models.FoundSearch,
    responses={200: {"model": api_models.FoundSearch, "description": "It was submitted before, with the same key."}},
)  # fmt: skip
async def submit(
    request: Request,
    body: api_models.SearchRequest,
    wait: Wait = 0,
    hits: FirstHits = 0,
    idempotency_key: Annotated[
        str | None, Header(description="A second request with it gives the same search.")
    ] = None,
) -> Response:
    """Submit a search; it goes on if this connection, or this server, ends."""
    if idempotency_key is not None and not _IDEMPOTENCY_KEY.fullmatch(idempotency_key):
        raise InputError("an Idempotency-Key has 1 to 200 printable ASCII characters, without blanks")
    submission = Submission(body.queries, body.database, body.options, body.alphabet, idempotency_key, body.subjects)
    stored, is_new = await submitted(request, submission)
    answer = partial(_found_search, service_of(request), hits)
    content = await held(request, stored.key, wait, answer, is_unfinished=not stored.is_finished)
    headers = {"Location": f"/api/v1/searches/{stored.key}"}
    return Response(content, 201 if is_new else 200, headers, media_type="application/json")


async def submitted(request: Request, submission: Submission) -> tuple[StoredSearch, bool]:
    """Submit a search of the sender; returns it, and whether it is new. Errors are those of :meth:`Service.submit`."""
    service, hub = service_of(request), hub_of(request)
    begin = partial(service.begin_to_submit, submission, owner_of(request))
    is_quick = service.is_quick(submission)
    return await asyncio.wrap_future(
        await (hub.short_call(begin) if is_quick else readers_of(request).read(request, begin))
    )


async def held(
    request: Request, key: str, seconds: float, answer: Callable[[SearchStatus], T], *, is_unfinished: bool = False
) -> T:
    """What a function makes of the status of a search of the sender, when it is finished or the time is over.

    ``is_unfinished`` says that the caller has just seen that it is. The status is read and the answer made by one call
    of a thread.
    """
    service, owner = service_of(request), owner_of(request)

    def look(waits: bool) -> tuple[T | None, str]:
        search = service.search(key, owner)
        return None if waits and not search.is_finished else answer(service.status_of(search)), search.key

    return await hub_of(request).held(look, seconds, key if is_unfinished else "")


def _found_search(service: Service, n_hits: int, status: SearchStatus) -> bytes:
    """A search with the best hits of its first query, as JSON that the models write: many clients repeat a request."""
    content = api_models.search_answer(status).model_dump_json().encode()
    return content[:-1] + b',"hits":' + _first_hits(service, status.search, n_hits) + b"}" if n_hits else content


def _first_hits(service: Service, search: StoredSearch, n_hits: int) -> bytes:
    """The best hits of the first query of a search as JSON; null while it is not finished, or without that query."""
    if search.run_id is not None and search.is_finished:
        with suppress(HitsNotFound):
            page = service.store.results.view(search.run_id, 0, HitView(limit=n_hits))
            return api_models.hit_page_json(page, 0)
    return b"null"


@router.get("/searches", response_model=list[api_models.Search])
def searches(
    request: Request,
    limit: Limit = 50,
    before: Annotated[str | None, Query(max_length=64, description="Only those older than this search.")] = None,
) -> list[api_models.Search]:
    """Your searches, the newest first."""
    statuses = service_of(request).history(owner_of(request), limit, before)
    return [api_models.search_answer(status) for status in statuses]


@router.get("/searches/{key}", response_model=api_models.FoundSearch)
async def search(request: Request, key: Key, wait: Wait = 0, hits: FirstHits = 0) -> Response:
    """A search and how far it is."""
    service = service_of(request)
    content = await held(request, key, wait, lambda status: _found_search(service, hits, status.under(key)))
    return Response(content, media_type="application/json")


@router.get("/searches/{key}/events", response_class=EventSourceResponse)
async def events(request: Request, key: Key) -> EventSourceResponse:
    """Server-sent events: ``status`` with the search now and after changes; the stream ends with the search."""
    hub = hub_of(request)
    watched = (await hub.short_call(service_of(request).search, key, owner_of(request))).key

    async def changes() -> AsyncIterator[dict[str, str]]:
        try:
            async for status in hub.changes(watched):
                yield {"event": "status", "data": api_models.search_answer(status.under(key)).model_dump_json()}
        except SearchNotFound:
            yield {"event": "gone", "data": "{}"}

    return EventSourceResponse(changes(), ping=PING_SECONDS + next(_phases) % PING_SPREAD)


@router.post("/searches/{key}/cancel", response_model=api_models.Search)
def cancel(request: Request, key: Key) -> api_models.Search:
    """Cancel a search; one that is finished stays as it is."""
    return api_models.search_answer(service_of(request).cancel(key, owner_of(request)))


# --- links ---


@router.post("/searches/{key}/links", status_code=201, response_model=api_models.NewLink)
def add_link(request: Request, key: Key) -> api_models.NewLink:
    """Make a link that shows this search to everybody who has it, until it is withdrawn or the search expires.

    The key of the link takes the place of the search's id in all requests that read: state, events, hits and reports.
    It is told this once.
    """
    added, link_key = service_of(request).store.accounts.add_link(key, owner_of(request))
    page = address(f"/results/{link_key}")
    return api_models.NewLink(id=added.id, created=added.created, key=link_key, page=page)


@router.get("/searches/{key}/links", response_model=list[api_models.Link])
def links(request: Request, key: Key) -> Sequence[StoredLink]:
    """The links of a search, the oldest first, without their keys."""
    return service_of(request).store.accounts.links(key, owner_of(request))


@router.delete("/searches/{key}/links", status_code=204)
def delete_links(request: Request, key: Key) -> None:
    """Withdraw all links of a search."""
    service_of(request).store.accounts.delete_links(key, owner_of(request))


@router.delete("/searches/{key}/links/{link}", status_code=204)
def delete_link(
    request: Request, key: Key, link: Annotated[str, Path(max_length=64, description="The id of a link.")]
) -> None:
    """Withdraw one link of a search."""
    service_of(request).store.accounts.delete_links(key, owner_of(request), link)


# --- results ---


@router.get("/searches/{key}/queries", response_model=api_models.QueryPage)
def queries(request: Request, key: Key, offset: Offset = 0, limit: Limit = 100) -> api_models.QueryPage:
    """The queries of a search that are done, in order; and those that failed."""
    service, owner = service_of(request), owner_of(request)
    search, run_id = service.run_of(key, owner)
    listed = service.store.results.summaries(run_id, offset, limit)
    failed = service.failures(search)
    return api_models.QueryPage(
        queries=[
            api_models.Query(
                number=query.number,
                id=api_models.shown(identifier(query.header)),
                header=api_models.shown(query.header),
                length=query.length,
                n_hits=query.n_hits,
                n_passed=query.n_passed,
            )
            for query in listed
        ],
        failed=[api_models.FailedQuery(number=number, reason=reason) for number, reason in failed],
        list_ends=None if offset else service.list_ends(search),
    )


def hit_filter(
    text: Annotated[str, Query(max_length=200, description="Part of the subject's header.")] = "",
    max_evalue: Annotated[float | None, Query(ge=0, allow_inf_nan=False)] = None,
    min_bits: Annotated[float | None, Query(ge=0, allow_inf_nan=False)] = None,
    min_identity: Annotated[float | None, Query(ge=0, le=100)] = None,
    min_query_coverage: Annotated[float | None, Query(ge=0, le=100)] = None,
) -> HitFilter:
    """The conditions on the hits of a page."""
    return HitFilter(text, None, None, max_evalue, min_bits, min_identity, min_query_coverage)


@router.get("/searches/{key}/queries/{number}/hits", response_model=api_models.HitPage)
def hits(
    request: Request,
    key: Key,
    number: Number,
    offset: Offset = 0,
    limit: Limit = 100,
    sort: Annotated[str, Query(json_schema_extra=api_models.one_of(SORTS))] = "rank",
    order: Literal["asc", "desc"] = "asc",
    *,
    keep: Annotated[HitFilter, Depends(hit_filter)],
) -> Response:
    """One page of the hits of a query, sorted and filtered by the server."""
    if sort not in SORTS:
        raise InputError(f"hits cannot be sorted by {sort!r}; choose {', '.join(SORTS)}")
    service = service_of(request)
    _, run_id = service.run_of(key, owner_of(request))
    view = HitView(sort, order == "desc", keep=keep, offset=offset, limit=limit)
    page = service.store.results.view(run_id, number, view)
    return Response(api_models.hit_page_json(page, offset), media_type="application/json")


def row_filter(
    msa_coverage: Annotated[
        float, Query(ge=0, le=100, description="For alignments: least percentage of the query's columns in a row.")
    ] = 0.0,
    msa_query_identity: Annotated[
        float, Query(ge=0, le=100, description="For alignments: least identity of a row with the query, in percent.")
    ] = 0.0,
    msa_max_identity: Annotated[
        int, Query(ge=0, le=100, description="For alignments: most identity of two rows, in percent.")
    ] = 100,
    msa_diff: Annotated[
        int, Query(ge=0, le=MOST_ROWS, description="For alignments: diverse rows in each window of 50 columns; 0: all.")
    ] = 0,
    msa_filter_above: Annotated[
        int, Query(ge=0, le=MOST_ROWS, description="For alignments: rows from which on their identity matters.")
    ] = 0,
) -> RowFilter:
    """The conditions on the rows of a3m, sto and afasta."""
    return RowFilter(msa_coverage, msa_query_identity, msa_max_identity, msa_diff, msa_filter_above)


@router.get(
    "/searches/{key}/report", response_class=Response,
    responses={200: {"description": "The report.", "content": {form.media_type: {} for form in FORMATS.values()}}},
)  # fmt: skip
async def report(
    request: Request,
    key: Key,
    format: Annotated[str, Query(json_schema_extra=api_models.one_of(FORMATS))] = "json",
    fields: Annotated[
        str | None, Query(max_length=2000, description="Columns by BLAST's names, separated by blanks or commas.")
    ] = None,
    aligned: Annotated[bool, Query(description="For fasta: the aligned parts, in place of whole sequences.")] = False,
    flank: Annotated[
        int, Query(ge=0, le=MAX_FLANK, description="For fasta, with aligned: residues on each side of a part.")
    ] = 0,
    lca_top: Annotated[
        float | None,
        Query(
            ge=0, le=100, description="For lca, kraken, taxa-html and fields lca…: percentage of the best score. [10]"
        ),
    ] = None,
    *,
    rows: Annotated[RowFilter, Depends(row_filter)],
) -> Response:
    """The report of a finished search: the bytes that `swsearch query` prints."""
    service, owner = service_of(request), owner_of(request)

    def made() -> Download:
        _, run_id = service.finished_run(key, owner)
        chosen = None if fields is None else fields.replace(",", " ").split()
        part = SubjectPart(aligned, flank) if aligned or flank else None
        return Download(service, run_id, new_report(format, chosen, rows, part, lca_top=lca_top))

    download = await run_in_threadpool(made)
    name = f"search-{key[:8]}{FORMATS[format].file_ending}"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return await download.answer(FORMATS[format].media_type, headers)


# --- databases and usage ---


@router.get("/databases", response_model=list[api_models.Database])
def databases(request: Request) -> list[api_models.Database]:
    """The databases with the generations that they have now."""
    return [api_models.database_answer(offered) for offered in service_of(request).databases.offered()]


@router.get("/usage", response_model=list[api_models.Usage])
def usage(request: Request) -> list[api_models.Usage]:
    """What you submitted on the last days, the newest first."""
    return [
        api_models.Usage(day=day.day, searches=day.n_searches, queries=day.n_queries, cells=day.cells)
        for day in service_of(request).store.searches.usage(owner_of(request))
    ]
