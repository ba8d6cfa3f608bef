"""What happens before and after every request: its id, who sent it, limits, headers of the answer, log, metrics.

A middleware of ASGI, so that answers are streamed through it. In this order, a request is refused if

- the server has no tokens and the request's ``Host`` is no loopback name: another site's page had its name resolved to
  this machine (DNS rebinding);
- it changes something and its ``Origin`` is another site: a browser was made to send it (CSRF);
- its address has the character NUL, which no store can look for;
- nobody is known to have sent it (:mod:`swsearch.service.web.identity`), or its sender has sent too many;
- it changes something for the owner of a cookie, and does not say that a page of this server sent it;
- its body is too large, as it was sent or decompressed.
"""

from __future__ import annotations

import re
import secrets
import time
import zlib
from typing import Final
from urllib.parse import urlsplit

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from swsearch.service.logs import log
from swsearch.service.web.answers import Refusal
from swsearch.service.web.identity import OPEN_PATHS, SAFE, SENDER, Identity, Sender
from swsearch.service.web.metrics import Metrics
from swsearch.service.web.root_path import site_of
from swsearch.service.web.state import Service

_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_METHODS: Final = SAFE | {"POST", "PUT", "PATCH", "DELETE"}
_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
_CHARSET: Final = re.compile(r"""(?i);\s*charset\s*=\s*["']?([^\s"';]*)""")
_CHARSETS: Final = frozenset({"utf-8", "utf8", "us-ascii", "ascii", "iso-8859-1", "latin1", "windows-1252"})
"""Encodings of forms. The framework knows all of Python's, some of which make text that no file can contain."""
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
                if scope["method"] not in SAFE:
                    most = self._service.settings.limits.request_bytes
                    most = min(most, _OPEN_BYTES) if sender.means == "open" else most
                    receive = await self._whole_body(headers, receive, scope, most)
            except Refusal as refusal:
                await refusal.answer(scope, receive, send_with_headers)
                return
            await self._app(scope, receive, send_with_headers)
        finally:
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

    async def _whole_body(self, headers: Headers, receive: Receive, scope: Scope, most: int) -> Receive:
        """Read the body, decompress it, and return a channel that gives it to the application."""
        too_large = Refusal(413, "too_large", f"the request has more than {most:,} bytes")
        charset = _CHARSET.search(headers.get("content-type", ""))
        if charset is not None and charset[1].lower() not in _CHARSETS:
            raise Refusal(415, "bad_encoding", "send texts in UTF-8")
        length = headers.get("content-length", "")
        if length.isdecimal() and int(length) > most:
            raise too_large
        parts: list[bytes] = []
        n_bytes = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Refusal(400, "bad_input", "the request ended early")
            parts.append(message.get("body", b""))
            n_bytes += len(parts[-1])
            if n_bytes > most:
                raise too_large
            if not message.get("more_body", False):
                break
        body = b"".join(parts)
        coding = headers.get("content-encoding", "identity").strip().lower()
        if coding == "gzip":
            body = await run_in_threadpool(_unzipped, body, most)
            kept = [(name, value) for name, value in scope["headers"] if name != b"content-encoding"]
            scope["headers"] = [
                (name, str(len(body)).encode() if name == b"content-length" else value) for name, value in kept
            ]
        elif coding != "identity":
            raise Refusal(415, "bad_encoding", "send the body as it is, or with Content-Encoding: gzip")
        is_sent = False

        async def replay() -> Message:
            nonlocal is_sent
            if is_sent:
                return await receive()
            is_sent = True
            return {"type": "http.request", "body": body, "more_body": False}

        return replay


def _check_page(sender: Sender, method: str, headers: Headers) -> None:
    """Refuse what changes something by a cookie alone, unless the browser says that a page of this server sent it."""
    is_said = "origin" in headers or headers.get("sec-fetch-site") in ("same-origin", "none")
    if method not in SAFE and sender.means in ("cookie", "open") and not is_said:
        raise Refusal(403, "cross_site", "this request does not say which page sent it; programs send a token")


def _unzipped(body: bytes, most: int) -> bytes:
    unzip = zlib.decompressobj(wbits=31)
    try:
        plain = unzip.decompress(body, most + 1)
    except zlib.error as error:
        raise Refusal(400, "bad_encoding", "the body is no gzip, as its Content-Encoding says") from error
    if len(plain) > most:
        raise Refusal(413, "too_large", f"the request has more than {most:,} bytes when it is decompressed")
    if not unzip.eof:
        raise Refusal(400, "bad_encoding", "the gzip of the body is cut short")
    return plain


def _host_name(host: str) -> str:
    """The name in a ``Host`` header, without the port.

    >>> _host_name("localhost:8765"), _host_name("[::1]:80"), _host_name("Example.org")
    ('localhost', '::1', 'example.org')
    """
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
