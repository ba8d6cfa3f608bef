"""What happens before and after every request: its id, who sent it, limits, headers of the answer, log, metrics.

:class:`Guard` is a middleware of ASGI, so that answers are streamed through it. In this order, a request is refused if

- the server has no tokens and the request's ``Host`` is not a loopback name: another site's page had its name resolved
  to this machine (DNS rebinding);
- it changes something and its ``Origin`` is another site: a browser was made to send it (CSRF);
- its address has the character NUL, which no store can look for;
- nobody is known to have sent it (:class:`Identity`), or its sender has sent too many;
- it changes something for the owner of a cookie, and does not say that a page of this server sent it;
- its body is too large, as it was sent or decompressed, or there are too many of them (:mod:`.bodies`).

In this order, the owner of a request is

- ``local`` on a server without tokens;
- whom the header of single sign-on names, if a trusted proxy sent it;
- the owner of the token that was sent as Bearer, as X-API-Key or as the password of Basic;
- the owner of the token in the cookie that the sign-in page set;
- nobody, if the request reads a search by the key of a link.

Tokens that are not valid are counted by address. Beyond the limit, a token is looked up only if it was valid before, so
nobody can go on guessing, and the others behind the same address can go on working.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import math
import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlsplit

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from swsearch.errors import Refused, SwSearchError
from swsearch.service.answers import EarlyAnswer, described, error_answer
from swsearch.service.bodies import Budget, whole_body
from swsearch.service.logs import log
from swsearch.service.metrics import Metrics
from swsearch.service.proxies import cookie_path, site_of
from swsearch.service.sent_text import TAKE
from swsearch.service.service import Service
from swsearch.service.settings import NOBODY
from swsearch.store.accounts import LOCAL_OWNER, is_link_key, is_owner_name

SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that change nothing."""
SIGN_IN: Final = "/sign-in"
SIGN_OUT: Final = "/sign-out"
OPEN_PATHS: Final = frozenset({"/healthz", "/readyz"})
"""Paths that need no token and are not counted."""
_STATIC: Final = ("/static/", "/favicon.ico")
_LINKED: Final = re.compile(r"/(?:results|api/v1/searches)/([^/]+)(?:/.*)?", re.DOTALL)
_COOKIE_DAYS: Final = 30
_TOKEN_SECONDS: Final = 2.0
"""Time for which a token's owner is remembered; a revoked token works for this long."""
_MOST_TOKENS: Final = 1000
"""Number of tokens that are remembered."""
MOST_BUCKETS: Final = 16_384
"""Senders or addresses whose requests are counted at a time."""


# --- limits on requests per minute ---


class Buckets:
    """Token buckets by name, for one event loop.

    A bucket holds at most as many tokens as there may be requests in a minute, and fills evenly; a request takes one.
    So a burst of a minute's requests passes at once, and the rate after it is the limit. A bucket that is full is the
    same as none. Of more than :data:`MOST_BUCKETS`, the one that was used longest ago is forgotten.
    """

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._capacity = float(per_minute)
        self._per_second = per_minute / 60
        self._clock = clock
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """The level of each bucket, and the time of that level; the bucket that was used last at the end."""

    def seconds(self, name: str) -> float:
        """Time until the bucket has a token; 0 if it has one."""
        return max(0.0, (1.0 - self._level(name, self._clock())) / self._per_second)

    def take(self, name: str) -> float:
        """Take a token and return 0; or take none, and return the time until there is one, in seconds."""
        seconds = self.seconds(name)
        if not seconds:
            self.charge(name)
        return seconds

    def charge(self, name: str) -> None:
        """Take a token even if there is none, down to a bucket that must fill twice: failures at once count whole."""
        now = self._clock()
        self._levels[name] = max(-self._capacity, self._level(name, now) - 1.0), now
        self._levels.move_to_end(name)
        if len(self._levels) > MOST_BUCKETS:
            self._levels.popitem(last=False)

    def _level(self, name: str, now: float) -> float:
        level, seen = self._levels.get(name, (self._capacity, now))
        return min(self._capacity, level + (now - seen) * self._per_second)


def network_of(address: str) -> str:
    """What counts as one address: an IPv4 address, or the /64 of an IPv6 address, which one subscriber has.

    >>> network_of("192.0.2.7"), network_of("2001:db8:1:2:3::4"), network_of("::ffff:192.0.2.7"), network_of("?")
    ('192.0.2.7', '2001:db8:1:2::/64', '192.0.2.7', '?')
    """
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((int(found), 64), strict=False))


# --- who sent a request ---


@dataclass(frozen=True)
class Sender:
    """Who sent a request, and how that is known."""

    owner: str
    """:data:`~swsearch.service.settings.NOBODY` if the request is allowed without an owner."""
    means: str
    """``local``, ``sso``, ``token``, ``cookie``, ``link``, or ``open`` for a path that needs no owner."""


SENDER: ContextVar[Sender | None] = ContextVar("SENDER", default=None)
"""The sender of the request that is answered now, for the head of pages."""


class Identity:
    """The senders of the requests to a service; it belongs to one event loop."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._owners: dict[str, tuple[float, str]] = {}
        """When valid tokens were last looked up, and their owners."""
        self._failures = Buckets(service.settings.limits.failures_per_minute)
        self._requests = Buckets(service.settings.limits.requests_per_minute)

    async def sender(self, scope: Scope, headers: Headers) -> Sender:
        """Who sent a request; raises EarlyAnswer if it is nobody who may send it."""
        if not self._service.settings.tokens_required:
            return Sender(LOCAL_OWNER, "local")
        named = self._named_by_proxy(scope, headers)
        path: str = scope["path"]
        if path in OPEN_PATHS or path in (SIGN_IN, SIGN_OUT) or path.startswith(_STATIC):
            return Sender(NOBODY, "open")
        if named is not None:
            return Sender(named, "sso")
        sent, kept = sent_token(headers), kept_token(scope)
        token = sent or kept
        if token is not None:
            owner = await self.owner_of(token, scope)
            if owner is not None:
                return Sender(owner, "token" if sent else "cookie")
        found = _LINKED.fullmatch(path)
        if found is not None and scope["method"] in SAFE and is_link_key(found[1]):
            return Sender(NOBODY, "link")
        raise _unauthorized(scope, headers, "a token is needed" if token is None else _INVALID)

    async def owner_of(self, token: str, scope: Scope) -> str | None:
        """The owner of a token that a request sent; None if it is not valid.

        Raises
        ------
        EarlyAnswer
            The address has sent too many tokens that are not valid, or the store cannot be read.
        """
        now, known = time.monotonic(), self._owners.get(token)
        if known is not None and now - known[0] < _TOKEN_SECONDS:
            return known[1]
        address = network_of(client_address(scope))
        seconds = self._failures.seconds(address)
        if seconds and known is None:
            problem = "too many tokens that are not valid were sent from this address"
            raise _too_many("too_many_failures", problem, seconds)
        try:
            owner = await run_in_threadpool(self._service.store.accounts.owner_of, token)
        except SwSearchError as error:
            raise EarlyAnswer(*described(error, self._service)) from error
        if len(self._owners) > _MOST_TOKENS:
            self._owners.clear()
        if owner is None:
            self._owners.pop(token, None)
            self._failures.charge(address)
        else:
            self._owners[token] = now, owner
        return owner

    def count(self, sender: Sender, scope: Scope) -> None:
        """Count a request; raises :class:`EarlyAnswer` if its sender has sent too many."""
        path: str = scope["path"]
        if sender.means == "local" or path in OPEN_PATHS or path.startswith(_STATIC):
            return
        name = f"of {sender.owner}" if sender.owner else network_of(client_address(scope))
        seconds = self._requests.take(name)
        if seconds:
            most = self._service.settings.limits.requests_per_minute
            raise _too_many("too_many_requests", f"you have sent more than {most:,} requests in a minute", seconds)

    def _named_by_proxy(self, scope: Scope, headers: Headers) -> str | None:
        """The owner whom a trusted proxy names, if there is one."""
        header = self._service.settings.sso_header
        given = headers.getlist(header) if header else []
        if not given:
            return None
        if not scope["state"].get("is_proxied", False):
            raise EarlyAnswer(403, "untrusted_proxy", f"the header {header} is accepted from the server's proxy alone")
        try:
            (owner,) = (value.encode("latin-1").decode("utf-8").strip() for value in given)
        except ValueError:
            raise EarlyAnswer(403, "bad_owner", f"the header {header} is not a single name in UTF-8") from None
        if not owner:  # some proxies send it empty for those who have not signed in
            return None
        if not is_owner_name(owner):
            raise EarlyAnswer(403, "bad_owner", f"the header {header} names nobody who can own searches")
        return owner


_INVALID: Final = "this token is not valid, or it was revoked"


def _unauthorized(scope: Scope, headers: Headers, problem: str) -> EarlyAnswer:
    """The answer to nobody: to the sign-in page for people, a challenge for programs.

    A browser would meet the challenge with a dialogue of its own, so requests that scripts of the pages send have none.
    """
    advice = "send it as Bearer, as X-API-Key, or as the password of Basic"
    refusal = EarlyAnswer(401, "unauthorized", f"{problem}; {advice}")
    if "text/html" in headers.get("accept", ""):
        refusal.answer = RedirectResponse(sign_in_address(scope), 303, {"Cache-Control": "no-store"})
    elif headers.get("hx-request") == "true":
        refusal.answer.headers["HX-Redirect"] = SIGN_IN
    elif "sec-fetch-mode" not in headers:
        refusal.answer.headers["WWW-Authenticate"] = 'Basic realm="swsearch"'
    return refusal


def _too_many(code: str, problem: str, seconds: float) -> EarlyAnswer:
    whole = max(1, math.ceil(seconds))
    return EarlyAnswer(429, code, f"{problem}; try again in {whole} s", {"Retry-After": str(whole)})


def client_address(scope: Scope) -> str:
    """The address of the client, as a trusted proxy tells it."""
    client = scope.get("client")
    return "" if client is None else str(client[0])


# --- tokens in requests ---


def sent_token(headers: Mapping[str, Any]) -> str | None:
    """The token of a request: Bearer, X-API-Key, or the password of Basic; None if there is none."""
    key = headers.get("x-api-key")
    if key:
        return str(key)
    kind, _, value = str(headers.get("authorization", "")).partition(" ")
    if kind.lower() == "bearer":
        return value.strip() or None
    if kind.lower() == "basic":
        try:
            return base64.b64decode(value, validate=True).decode("utf-8").partition(":")[2] or None
        except (binascii.Error, UnicodeDecodeError):
            return None
    return None


def kept_token(scope: Scope) -> str | None:
    """The token in the cookie of the sign-in page; None if there is none."""
    return HTTPConnection(scope).cookies.get(_cookie_name(scope)) or None


def _cookie_name(scope: Scope) -> str:
    """With TLS, a prefix by which browsers take the cookie only over TLS, and for a whole host from this host alone."""
    if scope["scheme"] != "https":
        return "swsearch"
    return "__Host-swsearch" if cookie_path() == "/" else "__Secure-swsearch"


def cookie(scope: Scope, token: str | None) -> str:
    """The value of ``Set-Cookie`` that keeps a token, or with None, forgets it."""
    secure = "; Secure" if scope["scheme"] == "https" else ""
    kept = f"Path={cookie_path()}; Max-Age={_COOKIE_DAYS * 86400 if token else 0}"
    return f"{_cookie_name(scope)}={token or ''}; {kept}; HttpOnly; SameSite=Strict{secure}"


# --- the sign-in page ---


def sign_in_address(scope: Scope) -> str:
    """The address of the sign-in page, which leads back to the page that was asked for."""
    wanted = scope["path"] if scope["method"] in SAFE else "/"
    query = scope.get("query_string", b"").decode("latin-1") if scope["method"] in SAFE else ""
    return f"{SIGN_IN}?next={quote(wanted + ('?' if query else '') + query, safe='/')}"


def local_address(text: str) -> str:
    r"""An address to go to after signing in: the given one if it is a path of this server, otherwise the first page.

    >>> local_address("/history?page=2"), local_address("//evil.org/"), local_address("/\\evil.org")
    ('/history?page=2', '/', '/')
    """
    is_local = text.startswith("/") and not text.startswith(("//", "/\\")) and text.isascii() and text.isprintable()
    return text if is_local and len(text) <= 2000 else "/"


# --- the middleware ---


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
    """The middleware."""

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

        claims = ExitStack()
        try:
            try:
                self._check_site(scope["method"], headers)
                if "\0" in scope["path"] or b"%00" in scope["query_string"]:
                    raise EarlyAnswer(
                        400, "bad_input", "the address has the character NUL, which no store can look for"
                    )
                sender = await self._identity.sender(scope, headers)
                state["owner"] = sender.owner
                SENDER.set(sender)
                self._identity.count(sender, scope)
                _check_page(sender, scope["method"], headers)
                TAKE.set(claims.enter_context(self._budget.claim(sender.owner)))
                if scope["method"] not in SAFE:
                    most = self._service.settings.limits.request_bytes
                    most = min(most, _OPEN_BYTES) if sender.means == "open" else most
                    receive = await whole_body(headers, receive, scope, most)
            except EarlyAnswer as refusal:
                await refusal.answer(scope, receive, send_with_headers)
                return
            except Refused as refused:
                await error_answer(*described(refused, self._service))(scope, receive, send_with_headers)
                return
            await self._app(scope, receive, send_with_headers)
        finally:
            claims.close()
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
            raise EarlyAnswer(403, "wrong_host", "this server answers requests to localhost alone")
        origin = headers.get("origin")
        is_foreign = origin is not None and site_of(origin) != host.lower()
        if method not in SAFE and (is_foreign or headers.get("sec-fetch-site") in ("cross-site", "same-site")):
            raise EarlyAnswer(403, "cross_site", "this request was sent by the page of another site")


def _check_page(sender: Sender, method: str, headers: Headers) -> None:
    """Refuse what changes something by a cookie alone, unless the browser says that a page of this server sent it."""
    is_said = "origin" in headers or headers.get("sec-fetch-site") in ("same-origin", "none")
    if method not in SAFE and sender.means in ("cookie", "open") and not is_said:
        raise EarlyAnswer(403, "cross_site", "this request does not say which page sent it; programs send a token")


def _host_name(host: str) -> str:
    """The name in a ``Host`` header, without the port.

    >>> _host_name("localhost:8765"), _host_name("[::1]:80"), _host_name("Example.org")
    ('localhost', '::1', 'example.org')
    """
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
