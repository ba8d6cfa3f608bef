"""A web process: the application on a socket that listens, until it is told to stop.

The only one of a server is the process of `swsearch serve` itself (:func:`serve`). One of several runs this module: its
first line of input is a :class:`~swsearch.service.start.Start`, and its other lines and its output are those of
:class:`~swsearch.service.exchange.ToSupervisor`.
"""

from __future__ import annotations

import gc
import logging
import os
import shutil
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import uvicorn
from fastapi import FastAPI

from swsearch.command_log import LOG_VARIABLE, open_log
from swsearch.errors import SwSearchError
from swsearch.service.app import create_app
from swsearch.service.exchange import ToSupervisor, lines_of
from swsearch.service.logs import LogLines, log
from swsearch.service.shared import SharedMemory
from swsearch.service.start import GRACE_SECONDS, Start

KEEP_ALIVE_SECONDS: Final = 75
"""Time for which an idle connection is kept; longer than the 60 seconds of usual proxies."""
MAX_HEAD_BYTES: Final = 1 << 20
"""Longest head of a request; that of a GET with sequences in its address is long."""
BACKLOG: Final = 2048
"""Connections that may wait to be accepted."""


class _Server(uvicorn.Server):
    """A server that says when it can be used, and when it begins to stop."""

    def __init__(self, config: uvicorn.Config, on_start: Callable[[], None], on_stop: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_start = on_start
        self._on_stop = on_stop

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then say so."""
        await super().startup(sockets)
        if self.started:
            self._on_start()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let nobody wait any more, then stop: what is held longer than the grace would be answered with an error."""
        self._on_stop()
        await super().shutdown(sockets)


class _SharedSocket(socket.socket):
    """A socket on which several processes accept connections.

    asyncio accepts as many connections at a time as it lets wait. Here it is told one, so that connections which come
    together are spread over the processes, and yet as many may wait as on any other socket.
    """

    def listen(self, _backlog: int = 0, /) -> None:
        super().listen(BACKLOG)


def serve(app: FastAPI, listening: socket.socket, on_start: Callable[[], None]) -> None:
    """Serve until SIGTERM or Ctrl-C."""
    _run(_server(app, on_start, BACKLOG), listening)


def _server(app: FastAPI, on_start: Callable[[], None], accept: int) -> uvicorn.Server:
    """The server of an application, which accepts so many connections at a time."""
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
        backlog=accept,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
        h11_max_incomplete_event_size=MAX_HEAD_BYTES,
    )
    return _Server(config, on_start, app.state.hub.release)


def _run(server: uvicorn.Server, listening: socket.socket) -> None:
    """Run a server until SIGTERM or Ctrl-C, or until it is told to exit."""

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


def main() -> None:
    """Be one of several web processes."""
    lines = lines_of(0)
    first = next(lines, None)
    if first is None:
        return  # the supervisor has ended
    start = Start.of(first[0])
    if path := os.environ.get(LOG_VARIABLE):
        open_log(Path(path))

    def end() -> None:
        server.should_exit = True

    exchange = ToSupervisor(lines, end)
    memory = SharedMemory(start.memory)
    try:
        app = create_app(start.settings, exchange, memory, start.metrics, deletes_expired=start.number == 0)
    except SwSearchError as error:
        log("web process cannot start", "error", message=str(error))
        raise SystemExit(1) from None
    server = _server(app, exchange.ready, accept=1)
    _run(server, _SharedSocket(fileno=start.listening))
    if os.getppid() != start.supervisor:  # it was killed, and cannot delete its folder
        shutil.rmtree(start.metrics, ignore_errors=True)


if __name__ == "__main__":
    main()
