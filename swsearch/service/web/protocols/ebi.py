"""EBI's job dispatcher at ``/Tools/services/rest/{fasta,ncbiblast}``, for its clients in Perl and Python.

A client submits a job (``run``), asks for its state until it is not RUNNING (``status``), and fetches results of the
types that it is told (``resulttypes``, ``result``). A job is a search; its id is the tool and the search's
:func:`~swsearch.service.web.protocols.common.public_name`. EBI's Perl client asks for the state without a pause, so
the answer is held while there is nothing to say.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TextIO

from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool

from swsearch.errors import InputError, Refused, SearchNotFound, SwSearchError
from swsearch.hits.result import QueryResult, RunInfo
from swsearch.report.blast_xml import xml_text
from swsearch.report.protocol import ReportFormat
from swsearch.report.registry import get_format
from swsearch.report.text import one_line
from swsearch.sequences.record import identifier
from swsearch.service.web.api import owner_of, service_of
from swsearch.service.web.protocols.common import (
    PROGRAMS,
    failure,
    held_status,
    key_of,
    problem,
    public_name,
    sent_fields,
    submitted,
)
from swsearch.service.web.protocols.ebi_parameters import TOOLS, Parameter, Tool
from swsearch.service.web.reports import Download
from swsearch.service.web.state import SearchStatus
from swsearch.words import shortened

HOLD_SECONDS: Final = 5.0
"""Time for which a request for a state is held."""
_XML: Final = "application/xml"


class IdsReport:
    """The identifiers of the subjects, one a line, in the order of the hits."""

    name = "ids"
    binary = False

    def write(self, run: RunInfo, queries: Iterable[QueryResult], stream: TextIO) -> None:
        """Write the report."""
        for query in queries:
            stream.writelines(f"{one_line(identifier(hit.subject_header))}\n" for hit in query.hits if hit.hsp == 1)


class QueriesReport:
    """The queries in FASTA."""

    name = "sequence"
    binary = False

    def write(self, run: RunInfo, queries: Iterable[QueryResult], stream: TextIO) -> None:
        """Write the report."""
        for query in queries:
            stream.write(f">{query.header}\n{query.letters}\n")


@dataclass(frozen=True)
class ResultType:
    """A result that a client can fetch: a report, or a text if ``report`` is None."""

    label: str
    description: str
    suffix: str
    media_type: str
    report: str | ReportFormat | None = None


_PLAIN: Final = "text/plain"
RESULTS: Final[Mapping[str, ResultType]] = {
    "out": ResultType("Alignments", "The alignments, for readers.", "txt", _PLAIN, "pairwise"),
    "tsv": ResultType("Table", "The table of BLAST's -outfmt 7.", "tsv", _PLAIN, "blast7"),
    "xml": ResultType("BLAST XML", "The XML of BLAST's -outfmt 5.", "xml", _XML, "xml"),
    "json": ResultType("BLAST JSON", "The JSON of BLAST's -outfmt 15.", "json", "application/json", "json2"),
    "ids": ResultType("Identifiers", "Identifiers of the subjects.", "txt", _PLAIN, IdsReport()),
    "sequence": ResultType("Query", "The query in FASTA.", "fasta", _PLAIN, QueriesReport()),
    "parameters": ResultType("Parameters", "The options of the search.", "txt", _PLAIN),
}
"""The results of a job that succeeded."""
FAILED: Final[Mapping[str, ResultType]] = {
    "error": ResultType("Error", "The reason why the job failed.", "txt", _PLAIN),
    "parameters": RESULTS["parameters"],
}
"""The results of a job that failed. They are two, because EBI's Perl client cannot read a list of one."""


class _Route(APIRoute):
    """A route whose expected errors are XML, in which clients look for the description."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler with the errors translated."""
        handler = super().get_route_handler()

        async def answered(request: Request) -> Response:
            try:
                return await handler(request)
            except SwSearchError as error:
                status, message = problem(request, error)
                text = f"<error><description>{xml_text(message)}</description></error>"
                return _document(text, status)

        return answered


def ebi_router() -> APIRouter:
    """The routes of this protocol."""
    router = APIRouter(prefix="/Tools/services/rest/{tool}", route_class=_Route)

    @router.get("/parameters")
    @router.get("/parameters/")
    async def parameters(tool: str) -> Response:
        """The names of the parameters."""
        names = "".join(f"<id>{name}</id>" for name in _tool(tool).parameters)
        return _document(f"<parameters>{names}</parameters>")

    @router.get("/parameterdetails/{name}")
    async def parameter_details(request: Request, tool: str, name: str) -> Response:
        """What a parameter means, and its values."""
        found = await run_in_threadpool(service_of(request).offered)
        return _document(_described(_tool(tool).described(name, found)))

    @router.post("/run")
    @router.post("/run/")
    async def run(request: Request, tool: str) -> Response:
        """Submit a job; the answer is its id."""
        chosen = _tool(tool)
        fields = await sent_fields(request)
        current = service_of(request).databases.current
        submission, database, program = await run_in_threadpool(chosen.submission, fields, current)

        def advice(queries: str) -> str:
            others = [other.name for other in PROGRAMS.values() if other.fits(queries, database.alphabet)]
            return f"choose {' or '.join(others)}" + ("" if program.name in PROGRAMS else " of the tool ncbiblast")

        status = await submitted(request, submission, database, advice)
        return PlainTextResponse(f"{chosen.name}-{public_name(status.search.key)}")

    @router.get("/status/{job}")
    async def status(request: Request, tool: str, job: str) -> Response:
        """The state of a job."""
        try:
            found = await held_status(request, _key(tool, job), HOLD_SECONDS)
        except SearchNotFound:
            return PlainTextResponse("NOT_FOUND")
        if not found.search.is_finished:
            return PlainTextResponse("RUNNING")  # never QUEUED, which some clients take for the end
        reason = await run_in_threadpool(failure, service_of(request), found)
        return PlainTextResponse("FINISHED" if reason is None else "FAILURE")

    @router.get("/resulttypes/{job}")
    async def result_types(request: Request, tool: str, job: str) -> Response:
        """The results that can be fetched."""
        _, _, types = await _finished(request, tool, job)
        return _document(f"<types>{''.join(_listed(name, kind) for name, kind in types.items())}</types>")

    @router.get("/result/{job}/{name}")
    async def result(request: Request, tool: str, job: str, name: str) -> Response:
        """One result."""
        found, reason, types = await _finished(request, tool, job)
        kind = types.get(name)
        if kind is None:
            raise InputError(f"this job has no result {shortened(name)!r}; choose {', '.join(types)}")
        if name == "error":
            return PlainTextResponse(f"{reason}\n")
        if kind.report is None:
            options = {"database": found.search.database.name, **found.search.options}.items()
            lines = [one_line(f"{option}={value}") for option, value in options if value is not None]
            return PlainTextResponse("\n".join(lines) + "\n")
        service = service_of(request)
        _, run_id = await run_in_threadpool(service.finished_run, found.search.key, owner_of(request))
        report = get_format(kind.report) if isinstance(kind.report, str) else kind.report
        download = await run_in_threadpool(Download, service, run_id, report)
        return await download.answer(kind.media_type)

    return router


def _tool(name: str) -> Tool:
    tool = TOOLS.get(name)
    if tool is None:
        raise InputError(f"there is no tool {shortened(name)!r}; choose {' or '.join(TOOLS)}")
    return tool


def _key(tool: str, job: str) -> str:
    """The key of a job's search.

    Raises
    ------
    SearchNotFound
        This is the id of no job of the tool.
    """
    prefix, _, name = job.partition("-")
    if prefix != _tool(tool).name:
        raise SearchNotFound(job)
    return key_of(name)


async def _finished(request: Request, tool: str, job: str) -> tuple[SearchStatus, str | None, Mapping[str, ResultType]]:
    """A finished job, the reason if it failed, and its results.

    Raises
    ------
    Refused
        It is not finished.
    """
    status = await held_status(request, _key(tool, job), 0)
    if not status.search.is_finished:
        raise Refused("not_finished", "this job is RUNNING; its results can be fetched when it is FINISHED")
    reason = await run_in_threadpool(failure, service_of(request), status)
    return status, reason, RESULTS if reason is None else FAILED


# --- XML ---


def _document(content: str, status: int = 200) -> Response:
    return Response(f'<?xml version="1.0" encoding="UTF-8"?>\n{content}\n', status, media_type="application/xml")


def _listed(name: str, kind: ResultType) -> str:
    values = {
        "description": kind.description,
        "fileSuffix": kind.suffix,
        "identifier": name,
        "label": kind.label,
        "mediaType": kind.media_type,
    }
    return f"<type>{''.join(f'<{key}>{xml_text(text)}</{key}>' for key, text in values.items())}</type>"


def _described(parameter: Parameter) -> str:
    values = "".join(
        f"<value><label>{xml_text(value)}</label><value>{xml_text(value)}</value>"
        f"<defaultValue>{'true' if place == 0 else 'false'}</defaultValue></value>"
        for place, value in enumerate(parameter.values)
    )
    about = f"<name>{xml_text(parameter.label)}</name><description>{xml_text(parameter.description)}</description>"
    listed = f"<values>{values}</values>" if values else ""
    return f"<parameter>{about}<type>{parameter.kind}</type>{listed}</parameter>"
