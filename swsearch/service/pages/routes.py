"""The addresses of the pages: :data:`router`, and :data:`sign_in_router` for those who are not known yet.

``/``                                        search form
``/searches`` (POST)                         submits it
``/results/REF``                             progress, then the result
``/results/REF/queries/N``                   hits of one query; ``N`` counts from 1
``/results/REF/queries/N/hits/RANK``         alignments of one subject
``/results/REF/queries/N/{scores,coverage,organisms,domains}``
``/results/REF/queries/N/alignment``         multiple alignment of the hits with ``rank``
``/results/REF/queries/N/sequences.fasta``   hit sequences
``/results/REF/report/FORMAT``               a report; with ``?query=N`` of one query, with a filter of its hits
``/results/REF/{progress,events,cancel,share,share/ID/withdraw,commands,request.json,queries.fasta}``
``/history``, ``/databases``, ``/static/NAME``, ``/favicon.ico``
``/sign-in``                                 takes a token once, keeps it in a cookie, and leads back to the page
``/sign-out`` (POST)                         forgets it

The cookie is ``SameSite=Strict``, so a browser that comes from another site does not send it at first. The sign-in page
then asks the browser to come again, from a page of this server.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse
from fastapi.routing import APIRoute
from sse_starlette import EventSourceResponse

from swsearch.domains.domain_report import drawing
from swsearch.errors import HitsNotFound, InputError, RunNotFound, SearchNotFound, SwSearchError
from swsearch.hits.result import QueryResult
from swsearch.report.base import Report
from swsearch.report.formats import ALIGNMENTS, FORMATS, new_report
from swsearch.report.html import MAX_BARS, alignment_key, anchored_rows
from swsearch.report.icicle import organism_tree
from swsearch.sequences.fasta_text import MAX_FLANK
from swsearch.sequences.record import identifier
from swsearch.service.answers import EarlyAnswer, told
from swsearch.service.api_models import shown
from swsearch.service.bodies import readers_of, sent_form
from swsearch.service.guard import SIGN_IN, SIGN_OUT, Identity, cookie, kept_token, local_address
from swsearch.service.json_api import owner_of, service_of
from swsearch.service.pages.figures import coverage_figure, score_figure
from swsearch.service.pages.form import EXAMPLES, FIRST, SearchForm, form_fields, read_form, submit_form
from swsearch.service.pages.results import (
    ROWS,
    HitsView,
    fact_lines,
    organisms,
    overview_figure,
    page_number,
    read_view,
    subject_values,
    taxonomy_of_run,
    wanted_hits,
    with_taxa,
)
from swsearch.service.pages.searches import (
    PageSearches,
    changed_options,
    curl_lines,
    python_lines,
    query_line,
    request_body,
)
from swsearch.service.pages.templating import page, rendered, static_response, whole
from swsearch.service.proxies import address, server_url
from swsearch.service.reports import Download, file_name, offered_formats, subject_part
from swsearch.service.service import Service
from swsearch.service.submit import Submission
from swsearch.store.results import HitView
from swsearch.store.runs import StoredRun
from swsearch.store.store import Store

MAX_PASTED: Final = 64 << 20
"""Largest number of bytes of pasted sequences."""
_LISTED: Final = 50
"""Number of queries, searches or organisms on a page."""
MAX_ALIGNED: Final = 500
"""Largest number of rows below the query in a multiple alignment on a page."""
_FASTA: Final = "text/x-fasta; charset=utf-8"
QueryNumber = Annotated[int | None, Query(ge=1, le=10**12)]
Number = Annotated[int, Path(ge=1, le=10**12)]
"""A query or a hit in an address, counted from 1."""


class PageRoute(APIRoute):
    """A route whose expected errors are pages."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler with the errors translated."""
        handler = super().get_route_handler()

        async def answered(request: Request) -> Response:
            try:
                return await handler(request)
            except (SearchNotFound, RunNotFound, HitsNotFound, RequestValidationError):
                return problem_page(404, "There is no such result", "It has expired, or the address is not complete.")
            except SwSearchError as error:
                status, _, message = told(request, error)
                return problem_page(status, "This cannot be shown", message)

        return answered


router = APIRouter(route_class=PageRoute, include_in_schema=False)


def problem_page(status: int, title: str, text: str) -> HTMLResponse:
    """A page about a problem."""
    return page("problem.html", status, title=title, text=text)


def is_part(request: Request) -> bool:
    """Whether htmx asks for a part of a page."""
    return request.headers.get("hx-request") == "true" and request.headers.get("hx-history-restore-request") != "true"


def _search_page(service: Service, form: SearchForm, status: int = 200) -> HTMLResponse:
    """The page with the search form."""
    fields = form_fields()
    hidden = [one for name, one in fields.items() if name not in FIRST]
    groups = dict.fromkeys(one.group for one in hidden)
    labels = {"sequences": "Sequences", "databases": "Databases", "subjects": "Your own subjects"}
    labels |= {name: one.row.label for name, one in fields.items()}
    return page(
        "search.html", status, form=form, databases=service.databases.offered(), examples=EXAMPLES, labels=labels,
        takes_subjects=service.settings.subject_sets is not None,
        first=[fields[name] for name in FIRST],
        groups=[(group, [one for one in hidden if one.group == group]) for group in groups],
    )  # fmt: skip


def _query_page(request: Request, reference: str, number: int) -> HTMLResponse:
    """The page of one query; htmx gets the table alone."""
    service, run, given = service_of(request), PageSearches(request).run(reference), _given(request)
    wanted, errors = read_view(given)
    in_order = run.info.orders_alignments and run.info.lists_several  # otherwise, it is the order of subjects
    wanted = with_taxa(replace(wanted, orders_alignments=in_order), service, run, number - 1)
    found = service.store.results.view(run.id, number - 1, wanted)
    view = HitsView(run, found, wanted, _query_address(reference, number), given)
    status = 422 if errors else 200
    can_align = FORMATS["afasta"].fits(run.info)
    if is_part(request):
        return page("hits_table.html", 200, view=view, errors=errors, is_part=True, can_align=can_align)
    first = found
    whole = HitView(limit=wanted.limit, orders_alignments=wanted.orders_alignments)
    if wanted != whole:
        first = service.store.results.view(run.id, number - 1, replace(whole, limit=ROWS))
    search = PageSearches(request).view(reference)
    before, after = service.store.results.neighbours(run.id, number - 1)
    return page(
        "query.html", status, view=view, errors=errors, reference=reference, search=search, number=number,
        facts=_facts(service, run), figure=overview_figure(first.query, first.n_hits, view.base), is_part=False,
        formats=offered_formats(run.info), before=before, after=after, can_align=can_align,
        has_domains=_has_domains(service, run),
    )  # fmt: skip


def _given(request: Request) -> dict[str, str]:
    """The parameters of an address; ranks, which may be given several times, are one text."""
    return {**request.query_params, "rank": ",".join(request.query_params.getlist("rank"))}


def _query_address(reference: str, number: int) -> str:
    return address(f"/results/{reference}/queries/{number}")


def _facts(service: Service, run: StoredRun) -> list[tuple[str, str]]:
    offered = service.offered_with(run.info.database)
    return fact_lines(run.info, offered[0].origin if offered else "")


@router.get("/")
def search_form(request: Request, again: str | None = None, example: str | None = None) -> HTMLResponse:
    """The search form; ``again`` fills it with a search, ``example`` with sequences to try."""
    form = SearchForm()
    searches = PageSearches(request)
    databases = searches.service.databases.offered()
    if again is not None:
        sent = searches.submission(again)
        if sent is not None:
            form = SearchForm.of(shown(sent.queries), [sent.database], sent.options)
            form.subjects = searches.sent_subjects(sent.database)
    elif len(databases) == 1:
        form.databases = (databases[0].name,)
    for one in EXAMPLES:
        if one.name == example:
            fitting = [database.name for database in databases if database.catalogue.alphabet == one.alphabet]
            form = SearchForm(one.fasta, tuple(fitting[:1]))
    return _search_page(searches.service, form)


@router.post("/searches")
async def submit(request: Request) -> Response:
    """Submit the searches of a form, one for each chosen database."""
    async with sent_form(request, max_part_size=MAX_PASTED) as sent:
        form, sequences = await read_form(sent)
    return await readers_of(request).read(request, _submitted, service_of(request), owner_of(request), form, sequences)


def _submitted(service: Service, owner: str, form: SearchForm, sequences: bytes) -> Response:
    """The answer to a form: to the progress of the search, or the form with its errors."""
    options = form.options()
    offered = [one.name for one in service.databases.offered()]
    if not sequences.strip():
        form.errors["sequences"] = "Paste at least one sequence, or choose a file."
    if not form.databases and not form.subjects.strip():
        form.errors["databases"] = "Choose at least one database."
    elif unknown := [name for name in form.databases if name not in offered]:
        form.errors["databases"] = f"There is no database {unknown[0][:60]!r} any more; choose another one."
    references = [] if form.errors else submit_form(service, owner, form, sequences, options)
    if form.errors and not references:
        return _search_page(service, form, 422)
    there = f"/results/{references[0]}" if len(references) == 1 else "/history"
    return RedirectResponse(there, 303)


@router.get("/results/{reference}")
def result(request: Request, reference: str) -> HTMLResponse:
    """The progress of a search; when it has ended, its queries, or the hits of its only query."""
    searches, store = PageSearches(request), service_of(request).store
    search = searches.view(reference)
    run = searches.begun_run(reference)
    if run is not None and search.has_ended and run.n_queries == 1 and run.n_failed == 0:
        only = store.results.summaries(run.id, 0, 1)
        if only:
            return _query_page(request, reference, only[0].number + 1)
    number = page_number(request.query_params)
    lines, failures = [], []
    if run is not None:
        summaries = store.results.summaries(run.id, (number - 1) * _LISTED, _LISTED)
        lines = [(one, _query_address(reference, one.number + 1)) for one in summaries]
        failures = store.results.failures(run.id)[:_LISTED]
    return page(
        "result.html", search=search, run=run, reference=reference, lines=lines, failures=failures,
        facts=None if run is None else _facts(service_of(request), run), page_number=number,
        n_pages=1 if run is None else max(1, -(-run.n_queries // _LISTED)),
        formats=[] if run is None else offered_formats(run.info),
    )  # fmt: skip


@router.get("/results/{reference}/progress")
def progress(request: Request, reference: str) -> Response:
    """The part of the page that says how far a search is."""
    search = PageSearches(request).view(reference)
    if not is_part(request):
        return RedirectResponse(f"/results/{reference}", 303)
    return page("progress.html", search=search, reference=reference)


@router.get("/results/{reference}/events")
async def events(request: Request, reference: str) -> EventSourceResponse:
    """The same part as server-sent events, now and after changes; ``end`` follows the last."""
    searches = await PageSearches(request).watched(reference)

    async def changes() -> AsyncIterator[dict[str, str]]:
        async for search in searches:
            yield {
                "event": "progress",
                "data": rendered("progress.html", {"search": search, "reference": reference}),
            }
        yield {"event": "end", "data": "ended"}

    return EventSourceResponse(changes())


@router.post("/results/{reference}/cancel")
def cancel(request: Request, reference: str) -> RedirectResponse:
    """Cancel a search."""
    PageSearches(request).cancel(reference)
    return RedirectResponse(f"/results/{reference}", 303)


def _shared(request: Request, reference: str, new: str | None) -> HTMLResponse:
    shared_at = None if new is None else f"{server_url(request)}/results/{new}"
    links = PageSearches(request).links(reference)
    return page("share.html", address=shared_at, links=links, reference=reference, is_part=is_part(request))


@router.get("/results/{reference}/share")
def links(request: Request, reference: str) -> HTMLResponse:
    """The links to a search."""
    return _shared(request, reference, None)


@router.post("/results/{reference}/share")
def share(request: Request, reference: str) -> HTMLResponse:
    """Make a link to a search, and show it once."""
    return _shared(request, reference, PageSearches(request).share(reference))


@router.post("/results/{reference}/share/{link}/withdraw")
def withdraw(request: Request, reference: str, link: str) -> HTMLResponse:
    """Withdraw a link."""
    service_of(request).store.accounts.delete_links(reference, owner_of(request), link)
    return _shared(request, reference, None)


@router.get("/results/{reference}/commands")
def commands(request: Request, reference: str) -> HTMLResponse:
    """The same search by ``curl``, in Python and on the command line."""
    searches = PageSearches(request)
    sent, run = searches.submission(reference), searches.begun_run(reference)
    server = server_url(request)
    values: dict[str, Any] = {"reference": reference, "command": ""}
    if run is not None:  # without the paths of its own command
        values["command"] = query_line(run.info.database.name, changed_options(run.info.reported_parameters))
    if sent is not None:
        values["command"] = query_line(sent.database, sent.options)
        values["curl"] = curl_lines(server, reference, needs_token=searches.service.settings.tokens_required)
        values["python"] = python_lines(server, sent.database, sent.options)
    return page("commands.html", is_part=is_part(request), sent=sent, **values)


@router.get("/results/{reference}/request.json")
def request_json(request: Request, reference: str) -> Response:
    """The body of the request to the API that submits the search."""
    sent = _sent(request, reference)
    text = request_body(shown(sent.queries), sent.database, sent.options)
    return Response(text, media_type="application/json")


@router.get("/results/{reference}/queries.fasta")
def queries_fasta(request: Request, reference: str) -> Response:
    """The queries of a search."""
    headers = {"Content-Disposition": 'attachment; filename="queries.fasta"'}
    fasta = _sent(request, reference).queries.encode("utf-8", "surrogateescape")
    return Response(fasta, media_type=_FASTA, headers=headers)


@router.get("/results/{reference}/report/{format_name}")
async def report(request: Request, reference: str, format_name: str, query: QueryNumber = None) -> Response:
    """A report of a run, or with ``query`` of one query and the hits that the filter keeps."""
    if format_name not in FORMATS:
        raise SearchNotFound(reference)
    form, new = FORMATS[format_name], partial(new_report, format_name)
    return await _download(request, reference, query, new, form.file_ending, form.media_type)


async def _download(
    request: Request, reference: str, number: int | None, new: Callable[[], Report], ending: str, media_type: str
) -> Response:
    """A report of a run, or of one query with the hits that the filter in the address keeps."""

    def made() -> tuple[Download, str]:
        service, run = service_of(request), PageSearches(request).run(reference)
        if number is None:
            return Download(service, run.id, new()), f"{run.info.database.name}_hits"
        query = service.store.results.subject(run.id, number - 1, 0)
        keep = with_taxa(wanted_hits(_given(request)), service, run, number - 1).keep

        def kept(store: Store) -> list[QueryResult]:
            return [replace(query, hits=tuple(store.results.hits(run.id, number - 1, keep)))]

        return Download(service, run.id, new(), kept), query.header

    download, title = await run_in_threadpool(made)
    name = file_name(title, ending)
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Content-Security-Policy": "sandbox"}
    return await download.answer(media_type, headers)


def _sent(request: Request, reference: str) -> Submission:
    sent = PageSearches(request).submission(reference)
    if sent is None:  # a large run of the command line
        raise SearchNotFound(reference)
    return sent


_QUERY: Final = "/results/{reference}/queries/{number}"


@router.get(_QUERY)
def query(request: Request, reference: str, number: Number) -> HTMLResponse:
    """The hits of one query."""
    return _query_page(request, reference, number)


@router.get(f"{_QUERY}/hits/{{rank}}")
def subject(request: Request, reference: str, number: Number, rank: Number) -> HTMLResponse:
    """The alignments of one subject."""
    service, run = service_of(request), PageSearches(request).run(reference)
    found = service.store.results.subject(run.id, number - 1, rank)
    if not found.hits:
        raise SearchNotFound(reference)
    n_subjects = service.store.results.view(run.id, number - 1, HitView(limit=1)).n_subjects
    return _about_query(request, "subject.html", reference, found, **subject_values(run.info, found, n_subjects))


@router.get(f"{_QUERY}/alignment")
def multiple_alignment(request: Request, reference: str, number: Number) -> HTMLResponse:
    """The chosen hits, or else the best, aligned to the query."""
    service, run = service_of(request), PageSearches(request).run(reference)
    FORMATS["afasta"].check_fits(run.info)
    given = _given(request)
    given["rank"] = given["rank"] or ",".join(map(str, range(1, MAX_BARS + 1)))
    found = service.store.results.subject(run.id, number - 1, 0)
    hits = service.store.results.hits(run.id, number - 1, wanted_hits(given).keep)
    found = replace(found, hits=tuple(islice(hits, MAX_ALIGNED)))
    if not found.hits:
        raise SearchNotFound(reference)
    return page(
        "alignment.html", rows="".join(anchored_rows(run.info, found)), key=alignment_key(run.info),
        query=found, reference=reference, number=number, base=_query_address(reference, number), most=MAX_ALIGNED,
        ranks=given["rank"], formats=[(name, FORMATS[name].title) for name in ALIGNMENTS],
    )  # fmt: skip


@router.get(f"{_QUERY}/scores")
def scores(request: Request, reference: str, number: Number) -> HTMLResponse:
    """The figure of the scores."""
    service, run = service_of(request), PageSearches(request).run(reference)
    found = service.store.results.subject(run.id, number - 1, 0)
    figure = score_figure(*service.store.results.subject_scores(run.id, number - 1), run.info, found.n_passed)
    missing = "This run has no bit scores."
    return _about_query(request, "figure.html", reference, found, figure=figure, missing=missing)


@router.get(f"{_QUERY}/coverage")
def coverage(request: Request, reference: str, number: Number) -> HTMLResponse:
    """The figure of the coverage."""
    service, run = service_of(request), PageSearches(request).run(reference)
    starts, ends = service.store.results.query_places(run.id, number - 1)
    found = service.store.results.subject(run.id, number - 1, 0)
    figure = coverage_figure(starts, ends, found.length) if len(starts) else None
    missing = "There are no alignments."
    return _about_query(request, "figure.html", reference, found, figure=figure, missing=missing)


@router.get(f"{_QUERY}/domains")
async def domains(request: Request, reference: str, number: Number) -> HTMLResponse:
    """The domains of a query that is a protein."""

    def found() -> QueryResult:
        service, run = service_of(request), PageSearches(request).run(reference)
        if not _has_domains(service, run):
            raise SearchNotFound(reference)
        return service.store.results.subject(run.id, number - 1, 0)

    query = await run_in_threadpool(found)
    name, of_query = identifier(query.header), await request.app.state.domain_finder.of(query.letters)
    drawn = "".join(drawing(of_query, query.length, name, "domains")) if of_query else None
    kept = {"Cache-Control": "private, max-age=86400"}  # a large library takes a minute
    return _about_query(request, "domains.html", reference, query, headers=kept, drawn=drawn, name=name)


def _has_domains(service: Service, run: StoredRun) -> bool:
    """Whether the pages of a run show the domains of its queries."""
    return bool(service.settings.families) and run.info.query_alphabet == "protein"


@router.get(f"{_QUERY}/organisms")
def organism_table(request: Request, reference: str, number: Number) -> HTMLResponse:
    """The organisms of the subjects: a tree if the database has a taxonomy, otherwise a list."""
    service, run = service_of(request), PageSearches(request).run(reference)
    subjects = service.store.results.subjects(run.id, number - 1)
    query = service.store.results.subject(run.id, number - 1, 0)
    with taxonomy_of_run(service, run) as taxonomy:
        if taxonomy is not None:
            tree = organism_tree(taxonomy, subjects, "taxa")
            return _about_query(request, "organisms.html", reference, query, tree=tree)
    found, unknown = organisms(header for _, header in subjects)
    largest = found[0].n_subjects if found else 1
    return _about_query(
        request, "organisms.html", reference, query, tree=None, organisms=found[:_LISTED], largest=largest,
        n_organisms=len(found), unknown=unknown,
    )  # fmt: skip


@router.get(f"{_QUERY}/sequences.fasta")
async def sequences(request: Request, reference: str, number: Number) -> Response:
    """Sequences of the hits that the filter keeps, or with ``rank`` of one subject."""
    given = _given(request)
    chosen, flank = given.get("part", "aligned"), whole(given.get("flank", "50"))
    if flank is None or flank > MAX_FLANK:
        raise InputError(f"give a whole number of residues for the flanks, at most {MAX_FLANK:,}")
    new = partial(new_report, "fasta", part=subject_part(chosen, flank))
    return await _download(request, reference, number, new, f".{chosen}.fasta", _FASTA)


def _about_query(request: Request, template: str, reference: str, query: QueryResult, **values: Any) -> HTMLResponse:
    """A page about a query; htmx gets the part that is new."""
    base = _query_address(reference, query.number + 1)
    return page(template, is_part=is_part(request), base=base, query_name=query.header, **values)


@router.get("/history")
def history(request: Request) -> HTMLResponse:
    """The searches of the sender; on a server without tokens, the runs of the store, too."""
    searches, number = PageSearches(request), page_number(request.query_params)
    listed = searches.history((number - 1) * _LISTED, _LISTED + 1)
    runs = searches.stored_runs()[:_LISTED] if number == 1 else []
    return page(
        "history.html", searches=listed[:_LISTED], runs=runs, page_number=number, has_more=len(listed) > _LISTED
    )


@router.get("/databases")
def databases(request: Request) -> HTMLResponse:
    """The databases of this server."""
    return page("databases.html", databases=service_of(request).databases.offered())


@router.get("/static/{name}")
def static(name: str) -> Response:
    """A static file."""
    return static_response(name)


@router.get("/favicon.ico")
def icon() -> Response:
    """The icon for answers that are not pages of HTML, which cannot name it."""
    return static_response("icon.svg")


# --- signing in and out ---


_NO_STORE = {"Cache-Control": "no-store"}


sign_in_router = APIRouter(include_in_schema=False)


@sign_in_router.get(SIGN_IN)
async def sign_in_form(request: Request) -> Response:
    """The form for a token; a browser that is signed in is led to the page that it asked for."""
    wanted = local_address(request.query_params.get("next", "/"))
    if not service_of(request).settings.tokens_required:
        return RedirectResponse("/", 303)
    token = kept_token(request.scope)
    if token is not None:
        try:
            if await _identity(request).owner_of(token, request.scope) is not None:
                return RedirectResponse(wanted, 303, _NO_STORE)
        except EarlyAnswer:
            return _sign_in_page(wanted)
    from_elsewhere = request.headers.get("sec-fetch-site") in ("cross-site", "same-site")
    return _sign_in_page(wanted, comes_again=from_elsewhere and "again" not in request.query_params)


@sign_in_router.post(SIGN_IN)
async def sign_in(request: Request) -> Response:
    """Keep a token in a cookie."""
    async with request.form(max_files=0, max_fields=10) as sent:
        token, wanted = (str(sent.get(name, "")).strip() for name in ("token", "next"))
    wanted = local_address(wanted)
    if not token:
        return _sign_in_page(wanted, 422, "Paste your token.")
    try:
        owner = await _identity(request).owner_of(token, request.scope)
    except EarlyAnswer as refusal:
        answer = _sign_in_page(wanted, refusal.answer.status_code, f"{str(refusal).capitalize()}.")
        answer.headers.update({k: v for k, v in refusal.answer.headers.items() if k == "retry-after"})
        return answer
    if owner is None:
        return _sign_in_page(wanted, 403, "This token is not valid, or it was revoked.")
    return RedirectResponse(wanted, 303, {"Set-Cookie": cookie(request.scope, token), **_NO_STORE})


@sign_in_router.post(SIGN_OUT)
def sign_out(request: Request) -> RedirectResponse:
    """Forget the token."""
    return RedirectResponse(SIGN_IN, 303, {"Set-Cookie": cookie(request.scope, None), **_NO_STORE})


def _identity(request: Request) -> Identity:
    identity: Identity = request.app.state.identity
    return identity


def _sign_in_page(wanted: str, status: int = 200, problem: str = "", *, comes_again: bool = False) -> HTMLResponse:
    return page("sign_in.html", status, _NO_STORE, wanted=wanted, problem=problem, comes_again=comes_again)
