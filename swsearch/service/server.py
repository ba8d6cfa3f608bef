"""`swsearch serve`: the socket, and the web process that answers on it and starts the workers.

On SIGTERM or Ctrl-C, the server takes no more connections, ends what it answers, lets the workers finish the queries
that they have in hand, and exits with 0. What is queued stays in the store, and the next server goes on with it.
"""

from __future__ import annotations

import errno
import gc
import ipaddress
import logging
import signal
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from swsearch.errors import InputError
from swsearch.service.logs import LogLines, log
from swsearch.service.settings import Settings

if TYPE_CHECKING:
    from fastapi import FastAPI

_BACKLOG: Final = 2048
"""Connections that may wait to be accepted."""
_KEEP_ALIVE_SECONDS: Final = 75
"""Time for which an idle connection is kept; longer than the 60 seconds of usual proxies."""
_GRACE_SECONDS: Final = 5
"""Time that open connections have to end when the server stops."""
_MAX_HEAD_BYTES: Final = 1 << 20
"""Longest head of a request; that of a GET with sequences in its address is long."""


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def bound_socket(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 is any free one.

    Raises
    ------
    InputError
        The port is taken, or the address is not one of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except (OSError, OverflowError) as error:
        if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            raise InputError(f"port {port} of {host} is taken; choose another one with --port") from error
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"--host {host} --port {port}: {reason}") from error
    # Connections inherit it. asyncio sets it only on sockets that were made with the protocol's number; without it, the
    # body of an answer waits 40 ms for the acknowledgement of the headers.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def serve(settings: Settings, host: str, port: int, announce: Callable[[str], None]) -> None:
    """Serve until SIGTERM or Ctrl-C.

    Parameters
    ----------
    settings : Settings
    host : str
        An address of this machine.
    port : int
        0 for any free port.
    announce : callable
        Called with the URL when requests are answered.

    Raises
    ------
    InputError
        The address cannot be used.
    StoreError
        The store cannot be opened.
    """
    with bound_socket(host, port) as listening:
        shown = f"[{host}]" if ":" in host else host
        url = f"http://{shown}:{listening.getsockname()[1]}"
        log("server started", url=url, databases=list(settings.databases))
        # Not before, since the framework takes a second to load, and the wrong address or port is told at once.
        from swsearch.service.asgi import create_app

        _answer(create_app(settings), listening, lambda: announce(url))
        log("server stopped")


def _answer(app: FastAPI, listening: socket.socket, on_start: Callable[[], None]) -> None:
    """Answer requests until SIGTERM or Ctrl-C."""
    import uvicorn

    class Server(uvicorn.Server):
        """A server that says when it can be used, and when it begins to stop."""

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if self.started:
                on_start()

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            app.state.hub.release()  # what is held for longer than the grace would be answered with an error
            await super().shutdown(sockets)

    logger = logging.getLogger("uvicorn.error")
    logger.addHandler(LogLines(logging.WARNING))
    logger.propagate = False
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # the application trusts the proxies of its settings
        lifespan="on",
        backlog=_BACKLOG,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=_GRACE_SECONDS,
        h11_max_incomplete_event_size=_MAX_HEAD_BYTES,
    )
    server = Server(config)

    def stop(*_: Any) -> None:
        server.should_exit = True

    # uvicorn has handlers of its own while it serves, and raises the signal again for these when it has ended.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    _collect_seldom()
    server.run(sockets=[listening])


def _collect_seldom() -> None:
    """Let Python look for garbage cycles seldom, and not among the modules: with 600 connections a look takes 0.2 s."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 50)
