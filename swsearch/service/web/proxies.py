"""Reverse proxies that are trusted: what they say of a client's address and scheme holds (:class:`TrustedProxies`).

The headers are ``X-Forwarded-For`` and ``X-Forwarded-Proto``. From any other connection they are ignored.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import Any, cast

from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from swsearch.errors import InputError


class TrustedProxies:
    """The outermost middleware.

    It sets ``scope["client"]`` and ``scope["scheme"]`` to those of the client, and ``scope["state"]["is_proxied"]`` to
    whether the connection comes from a trusted proxy.

    Parameters
    ----------
    app : ASGI application
    proxies : sequence of str
        Addresses and networks.
    """

    def __init__(self, app: ASGIApp, proxies: Sequence[str]) -> None:
        self._app = app
        self._networks = [ipaddress.ip_network(proxy) for proxy in proxies]
        self._forwarded: Any = ProxyHeadersMiddleware(cast(Any, app), list(proxies))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        is_proxied = scope["type"] == "http" and self._is_trusted(scope.get("client"))
        scope.setdefault("state", {})["is_proxied"] = is_proxied
        await (self._forwarded if is_proxied else self._app)(scope, receive, send)

    def _is_trusted(self, client: tuple[str, int] | None) -> bool:
        try:
            address = ipaddress.ip_address("" if client is None else client[0])
        except ValueError:
            return False
        return any(address in network for network in self._networks)


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
