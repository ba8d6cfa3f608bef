"""The worker processes of a server: started with it, started again when they die, stopped with it.

A server and each worker are joined by pipes, through which they exchange one-line messages. A lost message only costs
time; all state is in the store. The end of the server's pipe tells a worker to finish what it has in hand, also if the
server was killed, so that no worker outlives it.
"""

from __future__ import annotations

import asyncio
import socket
import sys
import threading
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from swsearch.service.logs import log

READY: Final = "ready"
"""The message of a worker that can take queries."""
ALIVE: Final = "alive"
"""The message of a worker whose work has made progress."""
CHANGED: Final = "changed"
"""The word before the keys of searches that have changed and go on."""
ENDED: Final = "ended"
"""The word before the keys of searches that may have ended."""

_DRAIN_SECONDS: Final = 60.0
"""Time that a worker has to finish what it has in hand when the server stops."""
_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 10.0
"""Seconds between the death of a worker and the next start; doubled at each death before it has done anything."""
_LINE_BYTES: Final = 1 << 20
"""Longest message of a worker; it may have the keys of all searches of a batch."""


def worker_command(databases: Sequence[str], options: Sequence[str]) -> tuple[str, ...]:
    """The command of a server's worker process; no code is imported from the folder of the server (``-P``).

    The store is in its environment, since a URL may have a password.
    """
    return (sys.executable, "-P", "-m", "swsearch", "worker", *databases, "--hints", *options)


class ServerWorker:
    """A worker process of a server, which is kept running; it belongs to one event loop, but for :meth:`wake`.

    Parameters
    ----------
    command : sequence of str
        The command that starts it.
    on_change, on_end : callable
        Called with the keys of searches of which it says :data:`CHANGED` or :data:`ENDED`.
    on_death : callable
        Called when it died; it is started again afterwards.
    silence : float
        Time in seconds after which it is killed if it says nothing; it counts from the start of its process, too.
    """

    is_ready = False
    """Whether it can take queries."""

    def __init__(
        self,
        command: Sequence[str],
        on_change: Callable[[list[str]], object],
        on_end: Callable[[list[str]], object],
        on_death: Callable[[], None],
        silence: float,
    ) -> None:
        self._command = command
        self._hear = {CHANGED: on_change, ENDED: on_end}
        self._on_death = on_death
        self._silence = silence
        self._process: Process | None = None
        self._hints: socket.socket | None = None
        """The other end of its input."""
        self._hinting = threading.Lock()
        self._task: asyncio.Task[None] | None = None
        self._stopping = False

    def start(self) -> None:
        """Start it in the background."""
        self._task = asyncio.create_task(self._run())

    def wake(self) -> None:
        """Say that there may be work; any thread may call this."""
        with self._hinting, suppress(OSError):  # it has ended, or leaves so much unread that it will look in any case
            if self._hints is not None:
                self._hints.send(b"\n")

    async def stop(self, seconds: float = _DRAIN_SECONDS) -> None:
        """Let it finish what it has in hand, and wait for its end; after this time it is killed."""
        self._stopping = True
        process = self._process
        self._talk_to(None)
        if self._task is None:
            return
        try:
            async with asyncio.timeout(seconds):
                await self._task
        except TimeoutError:
            if process is not None and process.returncode is None:
                process.kill()
                await process.wait()

    async def _run(self) -> None:
        pause = _FIRST_PAUSE
        while not self._stopping:
            ours, theirs = socket.socketpair()
            ours.setblocking(False)
            with theirs:
                self._process = process = await asyncio.create_subprocess_exec(
                    *self._command, stdin=theirs.fileno(), stdout=PIPE, limit=_LINE_BYTES
                )
            self._talk_to(ours)
            if self._stopping:
                self._talk_to(None)
            while line := await self._next_line(process):
                word, *keys = line.decode("ascii", "replace").split() or [ALIVE]
                if word == READY:
                    self.is_ready = True
                elif word in self._hear:
                    pause = _FIRST_PAUSE
                    self._hear[word](keys)
            code = await process.wait()
            self.is_ready = False
            if self._stopping:
                return
            log("worker died", "error", code=code, restart_in_seconds=pause)
            self._on_death()
            await asyncio.sleep(pause)
            pause = min(_LONGEST_PAUSE, pause * 2)

    def _talk_to(self, hints: socket.socket | None) -> None:
        """Send hints to another process from now on, or to none; the end of those to the last one tells it to stop."""
        with self._hinting:
            last, self._hints = self._hints, hints
            if last is not None:
                last.close()

    async def _next_line(self, process: Process) -> bytes:
        """The next line of a process, empty at its end; a process that says nothing for too long is killed.

        Nothing else ends one that hangs: a signal that it can handle waits for its work.
        """
        assert process.stdout is not None
        try:
            async with asyncio.timeout(self._silence):
                return await process.stdout.readline()
        except TimeoutError:
            log("worker hangs", "error", process=process.pid, silent_seconds=self._silence)
            process.kill()
            return b""
