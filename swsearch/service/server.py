"""`swsearch serve`: the socket, the web process, and the order in which they end.

On SIGTERM or Ctrl-C, the server takes no more connections, ends what it answers, lets the worker finish the queries
that it has in hand, and exits with 0. What is queued stays in the store, and the next server goes on with it.
"""

from __future__ import annotations

import errno
import gc
import ipaddress
import logging
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

import uvicorn

from swsearch.errors import InputError
from swsearch.service.logs import LogLines, log
from swsearch.service.settings import Settings
from swsearch.service.web.app import create_app

GRACE_SECONDS: Final = 5
"""Time that open connections have to end when the server stops."""
KEEP_ALIVE_SECONDS: Final = 75
"""Time for which an idle connection is kept; longer than the 60 seconds of usual proxies."""

MAX_HEAD_BYTES: Final = 1 << 20
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
        listening = socket.create_server((host, port), family=family, backlog=2048)
    except (OSError, OverflowError) as error:
        if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            raise InputError(f"port {port} of {host} is taken; choose another one with --port") from error
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"--host {host} --port {port}: {reason}") from error
    # Connections inherit it. asyncio sets it only on sockets that were made with the protocol's number; without it, the
    # body of an answer waits 40 ms for the acknowledgement of the headers.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


class _Server(uvicorn.Server):
    """A server that says when it can be used."""

    def __init__(self, config: uvicorn.Config, on_start: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_start = on_start

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then say so."""
        await super().startup(sockets)
        if self.started:
            self._on_start()


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
        logger = logging.getLogger("uvicorn.error")
        logger.addHandler(LogLines(logging.WARNING))
        logger.propagate = False
        config = uvicorn.Config(
            create_app(settings),
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,  # the application trusts the proxies of its settings
            lifespan="on",
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=GRACE_SECONDS,
            h11_max_incomplete_event_size=MAX_HEAD_BYTES,
        )
        server = _Server(config, lambda: announce(url))

        def stop(*_: Any) -> None:
            server.should_exit = True

        # uvicorn has handlers of its own while it serves, and raises the signal again for these when it has ended.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, stop)
        _collect_seldom()
        log("server started", url=url, databases=list(settings.databases))
        server.run(sockets=[listening])
        log("server stopped")


def _collect_seldom() -> None:
    """Let Python look for garbage cycles seldom, and not among the modules: with 600 connections a look takes 0.2 s."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 50)


def worker_command(databases: Sequence[str], options: Sequence[str]) -> tuple[str, ...]:
    """The command of a server's worker process; the store is in its environment, since a URL may have a password."""
    return (sys.executable, "-m", "swsearch", "worker", *databases, "--hints", *options)
