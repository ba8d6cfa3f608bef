"""What happens before and after every request: its id, who sent it, limits, headers of the answer, log, metrics.

A middleware of ASGI, so that answers are streamed through it. In this order, a request is refused if

- the server has no tokens and the request's ``Host`` is no loopback name: another site's page had its name resolved to
  this machine (DNS rebinding);
- it changes something and its ``Origin`` is another site: a browser was made to send it (CSRF);
- its address has the character NUL, which no store can look for;
- nobody is known to have sent it (:mod:`swsearch.service.web.identity`), or its sender has sent too many;
- it changes something for the owner of a cookie, and does not say that a page of this server sent it;
- its body is too large, as it was sent or decompressed, or there are too many of them (:mod:`.bodies`).
"""

from __future__ import annotations

import re
import secrets
import time
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from swsearch.errors import Refused
from swsearch.service.logs import log
from swsearch.service.web.answers import Refusal, refusal_of
from swsearch.service.web.bodies import CLAIM, Budget, Claim, whole_body
from swsearch.service.web.identity import OPEN_PATHS, SAFE, SENDER, Identity, Sender
from swsearch.service.web.metrics import Metrics
from swsearch.service.web.root_path import site_of
from swsearch.service.web.state import Service

_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_METHODS: Final = SAFE | {"POST", "PUT", "PATCH", "DELETE"}
_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
_OPEN_BYTES: Final = 10_000
"""Largest body of a request that needs no owner: the form of the sign-in page."""
_HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'",
}


class Guard:
    """The middleware.

    Parameters
    ----------
    app : ASGI application
    service : Service
    identity : Identity
    metrics : Metrics
    """

    def __init__(self, app: ASGIApp, service: Service, identity: Identity, metrics: Metrics) -> None:
        self._app = app
        self._service = service
        self._identity = identity
        self._metrics = metrics
        self._budget = Budget(service.settings.limits)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        headers = Headers(scope=scope)
        given = headers.get("x-request-id", "")
        request_id = given if _REQUEST_ID.fullmatch(given) else secrets.token_hex(8)
        state = scope.setdefault("state", {})
        state["request_id"] = request_id
        status = 0

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                answer = MutableHeaders(scope=message)
                answer["X-Request-ID"] = request_id
                for name, value in _HEADERS.items():
                    answer.setdefault(name, value)
            await send(message)

        claim: Claim | None = None
        try:
            try:
                self._check_site(scope["method"], headers)
                if "\0" in scope["path"] or b"%00" in scope["query_string"]:
                    raise Refusal(400, "bad_input", "the address has the character NUL, which no store can look for")
                sender = await self._identity.sender(scope, headers)
                state["owner"] = sender.owner
                SENDER.set(sender)
                self._identity.count(sender, scope)
                _check_page(sender, scope["method"], headers)
                claim = self._budget.claim(sender.owner)
                CLAIM.set(claim)
                if scope["method"] not in SAFE:
                    most = self._service.settings.limits.request_bytes
                    most = min(most, _OPEN_BYTES) if sender.means == "open" else most
                    receive = await whole_body(headers, receive, scope, most, claim)
            except Refusal as refusal:
                await refusal.answer(scope, receive, send_with_headers)
                return
            except Refused as refused:
                await refusal_of(refused).answer(scope, receive, send_with_headers)
                return
            await self._app(scope, receive, send_with_headers)
        finally:
            if claim is not None:
                claim.end()
            seconds = time.perf_counter() - began
            route = getattr(scope.get("route"), "path", "(other)")
            method = scope["method"] if scope["method"] in _METHODS else "(other)"  # clients can invent any
            self._metrics.count_request(method, route, status, seconds)
            if route not in OPEN_PATHS:
                log(
                    "request",
                    request_id=request_id,
                    method=scope["method"],
                    path=scope["path"],
                    status=status,
                    ms=round(seconds * 1000, 1),
                    owner=state.get("owner") or None,
                )

    def _check_site(self, method: str, headers: Headers) -> None:
        host = headers.get("host", "")
        if not self._service.settings.tokens_required and _host_name(host) not in _LOOPBACK:
            raise Refusal(403, "wrong_host", "this server answers requests to localhost alone")
        origin = headers.get("origin")
        is_foreign = origin is not None and site_of(origin) != host.lower()
        if method not in SAFE and (is_foreign or headers.get("sec-fetch-site") in ("cross-site", "same-site")):
            raise Refusal(403, "cross_site", "this request was sent by the page of another site")


def _check_page(sender: Sender, method: str, headers: Headers) -> None:
    """Refuse what changes something by a cookie alone, unless the browser says that a page of this server sent it."""
    is_said = "origin" in headers or headers.get("sec-fetch-site") in ("same-origin", "none")
    if method not in SAFE and sender.means in ("cookie", "open") and not is_said:
        raise Refusal(403, "cross_site", "this request does not say which page sent it; programs send a token")


def _host_name(host: str) -> str:
    """The name in a ``Host`` header, without the port.

    >>> _host_name("localhost:8765"), _host_name("[::1]:80"), _host_name("Example.org")
    ('localhost', '::1', 'example.org')
    """
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
