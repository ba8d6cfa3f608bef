"""Errors as answers: one JSON object ``{"error": {"code", "message"}}``, with no path of the server in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Final

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Match

from swsearch.errors import DatabaseError, HitsNotFound, InputError, Refused, SearchNotFound, StoreError, SwSearchError
from swsearch.service.logs import log_exception, log_seldom
from swsearch.service.service import Service
from swsearch.words import one_line

_REFUSALS: Final = {
    "unknown_database": (404, 0),
    "too_large": (413, 0),
    "too_many_queries": (413, 0),
    "query_too_long": (413, 0),
    "queue_full": (429, 30),
    "daily_limit": (429, 3600),
    "too_many_hits": (429, 3600),
    "too_many_downloads": (429, 5),
    "too_many_bytes": (429, 5),
    "server_busy": (503, 5),
    "too_many_subject_sets": (429, 30),
    "idempotency_conflict": (409, 0),
    "no_results": (409, 0),
    "not_finished": (409, 0),
    "too_many_links": (409, 0),
    "unknown_link": (404, 0),
}
"""HTTP status codes of refusals, and the time in seconds after which to send the request again, 0 if that would not
help. The other refusals have 400 and 0."""
_OTHER: Final = (400, 0)
_CODES: Final = {401: "unauthorized", 403: "forbidden", 404: "not_found", 405: "method_not_allowed", 413: "too_large"}


OF_PROTOCOL: ContextVar[Callable[[int], dict[str, str]]] = ContextVar("OF_PROTOCOL", default=lambda status: {})
"""What the answer for an error of some HTTP status has besides the error, for clients of a protocol."""


def error_answer(status: int, code: str, message: str, headers: dict[str, str] | None = None) -> JSONResponse:
    """The answer for an error; halves of surrogate pairs, which a message may quote, are escaped."""
    written = message.encode("utf-8", "backslashreplace").decode()
    _, retry_seconds = _REFUSALS.get(code, _OTHER)
    again = {"Retry-After": str(retry_seconds)} if retry_seconds else {}
    content = {**OF_PROTOCOL.get()(status), "error": {"code": code, "message": written}}
    return JSONResponse(content, status, again | (headers or {}))


class EarlyAnswer(Exception):
    """An answer before the application sees the request."""

    def __init__(self, status: int, code: str, message: str, headers: dict[str, str] | None = None) -> None:
        self.answer: Response = error_answer(status, code, message, headers)
        super().__init__(message)


def described(error: SwSearchError, service: Service) -> tuple[int, str, str]:
    """Status, code and message for an expected error; the API and the pages show the same."""
    if isinstance(error, Refused):
        status, _ = _REFUSALS.get(error.code, _OTHER)
        return status, error.code, service.databases.without_paths(error.on_command_line())
    if isinstance(error, SearchNotFound):
        return 404, "not_found", str(error)
    if isinstance(error, HitsNotFound):
        return 404, "not_found", f"this search has no query {error.number}; they are numbered from 0"
    if isinstance(error, InputError):
        return 400, "bad_input", service.databases.without_paths(error.on_command_line())
    if isinstance(error, StoreError):
        return 503, "store_unavailable", "the server's store cannot be used at the moment; try again"
    if isinstance(error, DatabaseError):
        return 503, "database_unavailable", "the database cannot be read at the moment; try again"
    return 500, "internal", "the server cannot do this at the moment"


def told(request: Request, error: SwSearchError) -> tuple[int, str, str]:
    """Status, code and message of an expected error; the log has those of the server."""
    status, code, message = described(error, request.app.state.service)
    if status >= 500:
        log_error(request, error)
    return status, code, message


def log_error(request: Request, error: Exception) -> None:
    """Write an error of the server to the log: a state of store or database seldom, any other with its traceback."""
    if isinstance(error, (StoreError, DatabaseError)):
        log_seldom("error", request_id=_request_id(request), message=str(error))
    else:
        log_exception("error", error, request_id=_request_id(request))


def _request_id(request: Request) -> str | None:
    return getattr(request.state, "request_id", None)


def _methods(request: Request, routes: Sequence[BaseRoute]) -> set[str]:
    """The methods that the path of a request has among some routes."""
    fitting = [route for route in routes if route.matches(request.scope)[0] is not Match.NONE]
    return {method for route in fitting for method in getattr(route, "methods", None) or ()}


def add_error_answers(app: FastAPI, routes: Sequence[BaseRoute]) -> None:
    """Let an application answer every error in this form; ``routes`` are those of the API."""

    async def expected(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, SwSearchError)
        return error_answer(*told(request, error))

    async def invalid(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)
        first = error.errors()[0]
        place = ".".join(str(part) for part in first.get("loc", ()))
        if place == "body":  # as a whole: a form, a file, or no JSON object
            sent = request.headers.get("Content-Type", "none")
            problem = "body: this takes a JSON object"
            if not sent.startswith("application/json"):
                problem += f" with Content-Type: application/json; Content-Type was {sent}"
            return error_answer(422, "invalid_request", one_line(problem))
        return error_answer(422, "invalid_request", one_line(f"{place}: {first.get('msg', 'invalid')}"))

    async def of_http(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException)
        code = _CODES.get(error.status_code, "error")
        headers = dict(error.headers or {})
        if error.status_code == 405 and (methods := _methods(request, routes)):
            headers["Allow"] = ", ".join(sorted(methods))  # the framework names those of one of the path's routes
        return error_answer(error.status_code, code, str(error.detail), headers)

    async def unexpected(request: Request, error: Exception) -> JSONResponse:
        log_error(request, error)
        problem = f"the server has made an error; its log has it under {_request_id(request)}"
        return error_answer(500, "internal", problem)

    app.add_exception_handler(SwSearchError, expected)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, of_http)
    app.add_exception_handler(Exception, unexpected)
