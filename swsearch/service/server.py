"""`swsearch serve`: the socket, and one or several web processes that answer on it.

On SIGTERM or Ctrl-C, the server takes no more connections, ends what it answers, lets the worker finish the queries
that it has in hand, and exits with 0. What is queued stays in the store, and the next server goes on with it.

One web process is this process itself, and starts the worker. Several are children of this process, like the worker
(:mod:`swsearch.service.supervisor`).
"""

from __future__ import annotations

import errno
import ipaddress
import socket
import time
from collections.abc import Callable
from typing import Final

from swsearch.errors import InputError
from swsearch.service.logs import log
from swsearch.service.settings import Settings

_FEW_CORES: Final = 4
"""Number of cores up to which one web process is enough: the worker has the others."""
_MOST: Final = 4
_BACKLOG: Final = 2048
"""Connections that may wait to be accepted."""
PORT_SECONDS: Final = 2.0
"""Time for which a port that is taken is tried again."""


def usual_web_processes(n_cores: int) -> int:
    """The number of web processes of a server on so many cores.

    >>> [usual_web_processes(n) for n in (1, 2, 4, 8, 16, 128)]
    [1, 1, 1, 2, 4, 4]
    """
    return 1 if n_cores <= _FEW_CORES else min(_MOST, n_cores // 4)


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


def _listening(host: str, port: int) -> socket.socket:
    """A socket that listens; a port whose server is ending, since its supervisor was killed, is waited for."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    ends = time.monotonic() + PORT_SECONDS
    while True:
        try:
            return socket.create_server((host, port), family=family, backlog=_BACKLOG)
        except OSError as error:
            if error.errno != errno.EADDRINUSE or time.monotonic() > ends:
                raise
        time.sleep(0.05)


def bound_socket(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 is any free one.

    Raises
    ------
    InputError
        The port is taken, or the address is not one of this machine.
    """
    try:
        listening = _listening(host, port)
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
        log("server started", url=url, databases=list(settings.databases), web_processes=settings.web_processes)
        # Not before, since the framework takes a second to load, and the wrong address or port is told at once.
        if settings.web_processes > 1:
            from swsearch.service.supervisor import supervise

            supervise(settings, listening, lambda: announce(url))
        else:
            from swsearch.service.app import create_app
            from swsearch.service.process import serve as serve_web

            serve_web(create_app(settings), listening, lambda: announce(url))
        log("server stopped")
