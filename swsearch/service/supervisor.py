"""Several web processes and the workers: :func:`supervise`, the main process of such a server.

It has the socket on which all web processes accept connections, the memory that they share, and a pipe to and from each
of its children. What one of them says is passed on: work to the worker, changes to all web processes. It answers no
request and opens no store, so there is little that could end it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from swsearch.errors import SwSearchError
from swsearch.service.exchange import AWAY, DRAIN_SECONDS, VALID, WORKER
from swsearch.service.settings import Settings
from swsearch.service.shared import SharedMemory
from swsearch.service.start import GRACE_SECONDS, METRICS_VARIABLE, Start
from swsearch.service.worker_processes import CHANGED, READY, WORK, Child, Workers, python_module

_COMMAND: Final = python_module("swsearch.service.process")
_MOST_DEATHS: Final = 3
"""Number of web processes that may die before all of them have answered."""
_END_SECONDS: Final = GRACE_SECONDS + 10.0
"""Time that a web process has to end its answers and itself."""


def supervise(settings: Settings, listening: socket.socket, announce: Callable[[], None]) -> None:
    """Serve until SIGTERM or Ctrl-C; ``announce`` is called when all web processes answer.

    Raises
    ------
    SwSearchError
        Several web processes ended before all of them answered.
    """
    with tempfile.TemporaryDirectory(prefix="swsearch-metrics-", ignore_cleanup_errors=True) as folder:
        os.environ[METRICS_VARIABLE] = folder
        try:
            asyncio.run(_Supervisor(settings, listening, Path(folder), announce).run())
        finally:
            del os.environ[METRICS_VARIABLE]


class _Supervisor:
    def __init__(
        self, settings: Settings, listening: socket.socket, metrics: Path, announce: Callable[[], None]
    ) -> None:
        self._listening = listening
        self._announce = announce
        self._is_announced = False
        self._stopping = asyncio.Event()
        self._failed = False
        self._n_early_deaths = 0
        self._memory = SharedMemory()
        from swsearch.service.metrics import restart_counters  # it loads what reads METRICS_VARIABLE

        worker_restarts, web_restarts = restart_counters()
        self._web_restarts: Callable[[], None] = web_restarts.inc
        self._worker_restarts: Callable[[], None] = worker_restarts.inc
        silence = settings.limits.worker_silence_seconds
        self._workers = Workers(settings.worker_commands, self._hear_worker, self._worker_died, silence)
        descriptors = (listening.fileno(), self._memory.descriptor)
        self._webs = [
            Child(
                "web process",
                _COMMAND,
                partial(self._hear_web, number),
                self._web_died,
                greeting=Start(settings, number, *descriptors, metrics, os.getpid()).line(),
                pass_fds=descriptors,
            )
            for number in range(settings.web_processes)
        ]

    async def run(self) -> None:
        """Start all children, wait for SIGTERM or Ctrl-C, and let the children end: the worker after the others."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stopping.set)
        for web in self._webs:
            web.start()
        self._workers.start()
        await self._stopping.wait()
        self._listening.close()
        await asyncio.gather(*(web.stop(_END_SECONDS) for web in self._webs))
        await self._workers.stop(DRAIN_SECONDS)
        if self._failed:
            raise SwSearchError("a web process ended while it started; the log says why")

    # --- what children say ---

    def _hear_web(self, number: int, words: list[str]) -> None:
        match words:
            case [str(word)] if word == READY:
                self._webs[number].tell(WORKER, self._state_of_workers())
                if not self._is_announced and all(web.is_ready for web in self._webs):
                    self._is_announced = True
                    self._announce()
            case [str(word)] if word == WORK:
                self._workers.tell()
            case [str(word), _] if word in (CHANGED, VALID):
                self._tell_webs(words, besides=number)
                if word == CHANGED:
                    self._workers.tell()

    def _hear_worker(self, words: list[str]) -> None:
        if words == [READY]:
            self._tell_webs([WORKER, READY])
        self._tell_webs([CHANGED, *words[1:]])

    def _tell_webs(self, words: Sequence[str], besides: int | None = None) -> None:
        for number, web in enumerate(self._webs):
            if number != besides and web.is_ready:
                web.tell(*words)

    def _state_of_workers(self) -> str:
        return READY if self._workers.is_ready else AWAY

    # --- deaths ---

    def _worker_died(self) -> None:
        self._worker_restarts()
        self._tell_webs([WORKER, self._state_of_workers()])
        self._tell_webs([CHANGED])

    def _web_died(self) -> None:
        self._web_restarts()
        if not self._is_announced:
            self._n_early_deaths += 1
            if self._n_early_deaths == _MOST_DEATHS:
                self._failed = True
                self._stopping.set()
