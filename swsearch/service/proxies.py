"""What stands before the server: reverse proxies that are trusted, and the path below which one offers the server.

What a trusted proxy says of a client's address and scheme holds (:class:`TrustedProxies`); from any other connection,
``X-Forwarded-For`` and ``X-Forwarded-Proto`` are ignored.

Routes know nothing of the path (``--root-path``, such as ``/swsearch``). :class:`RootPath` removes it from the path of
a request, if the proxy did not, and puts it before the paths in the headers of the answer. Addresses within pages are
made by :func:`address`.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any, Final, cast
from urllib.parse import urlsplit

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from swsearch.errors import InputError


class TrustedProxies:
    """The outermost middleware.

    It sets ``scope["client"]`` and ``scope["scheme"]`` to those of the client, and ``scope["state"]["is_proxied"]`` to
    whether the connection comes from a trusted proxy. ``proxies`` are addresses and networks.
    """

    def __init__(self, app: ASGIApp, proxies: Sequence[str]) -> None:
        self._forwarded: Any = ProxyHeadersMiddleware(cast(Any, app), list(proxies))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        client = scope.get("client")
        is_proxied = client is not None and client[0] in self._forwarded.trusted_hosts
        scope.setdefault("state", {})["is_proxied"] = is_proxied
        await self._forwarded(scope, receive, send)


def check_proxies(given: Sequence[str]) -> tuple[str, ...]:
    """The addresses and networks of ``--trusted-proxy``.

    Raises
    ------
    InputError
        One is neither, or means every address.
    """
    proxies = []
    for text in given:
        try:
            network = ipaddress.ip_network(text)
        except ValueError as error:
            advice = "give an address such as 127.0.0.1, or a network such as 10.0.0.0/24"
            raise InputError(f"--trusted-proxy {text}: {error}; {advice}") from error
        if network.prefixlen == 0:
            raise InputError(f"--trusted-proxy {text} trusts every client; give the address of the proxy")
        proxies.append(str(network))
    return tuple(proxies)


# --- the path below which a proxy offers the server ---


_ROOT: ContextVar[str] = ContextVar("_ROOT", default="")
"""The root path of the server that answers the present request; empty without one."""
_FORM: Final = re.compile(r"(?:/[A-Za-z0-9._~-]+)+")
_DOTS: Final = re.compile(r"/\.{1,2}(?=/|$)")
OWN_PATHS: Final = frozenset({
    "api", "blast", "databases", "favicon.ico", "healthz", "history", "metrics", "readyz", "result", "results",
    "searches", "sign-in", "sign-out", "static", "template", "ticket", "tickets",
})  # fmt: skip
"""The first parts of the paths of the application, with all protocols."""
_ADDRESS_HEADERS: Final = ("location", "hx-redirect")


class RootPath:
    """The outermost middleware of a server with a root path, which is as :func:`check_root_path` returns it."""

    def __init__(self, app: ASGIApp, root_path: str) -> None:
        self._app = app
        self._root_path = root_path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        _ROOT.set(self._root_path)
        if scope["path"] == self._root_path or scope["path"].startswith(f"{self._root_path}/"):
            inner = scope["path"].removeprefix(self._root_path) or "/"
            # The raw path of a request is its path without decoding; the characters of a root path need none.
            raw = scope.get("raw_path", b"").removeprefix(self._root_path.encode()) or b"/"
            scope = {**scope, "path": inner, "raw_path": raw}

        async def send_with_root(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name in _ADDRESS_HEADERS:
                    if headers.get(name, "").startswith("/"):
                        headers[name] = address(headers[name])
            await send(message)

        await self._app(scope, receive, send_with_root)


def address(path: str) -> str:
    """The address of a path of this server, such as ``/history?page=2``, for a link in a page."""
    return _ROOT.get() + path


def cookie_path() -> str:
    """The path of the cookies of this server."""
    return _ROOT.get() or "/"


def server_url(request: Request) -> str:
    """The URL of this server as the client of a request knows it, without a slash at the end."""
    return str(request.base_url).rstrip("/") + _ROOT.get()


def check_root_path(given: str) -> str:
    """The value of ``--root-path`` without a slash at the end; empty if none was given.

    Raises
    ------
    InputError
        It is not a path; or a path of the application begins like it, so that the middleware could not tell whether the
        proxy has removed the root path from a request.

    >>> check_root_path("/tools/swsearch/"), check_root_path("")
    ('/tools/swsearch', '')
    """
    root_path = given.rstrip("/")
    if given in ("", "/"):
        return ""
    if not _FORM.fullmatch(root_path) or _DOTS.search(root_path):
        advice = "give a path of letters and digits that begins with /, such as /swsearch"
        raise InputError(f"--root-path {given}: {advice}")
    first = root_path.split("/")[1]
    if first in OWN_PATHS:
        raise InputError(f"--root-path {given}: the server has pages below /{first}; choose another path")
    return root_path


def site_of(address: str) -> str | None:
    """Host and port of an address, in small letters; None if it cannot be read.

    >>> site_of("https://Example.org:8765/page"), site_of("http://[")
    ('example.org:8765', None)
    """
    try:
        return urlsplit(address).netloc.lower()
    except ValueError:
        return None
