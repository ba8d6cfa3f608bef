"""The worker process of a server: started with it, started again when it dies, stopped with it.

The two are joined by pipes for hints: the server writes a line when there is work, and the worker when something has
changed. The end of the server's pipe tells the worker to finish what it has in hand, also if the server was killed.
"""

from __future__ import annotations

import asyncio
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Final

from swsearch.service.logs import log

_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 10.0
"""Seconds between the death of a worker and the start of the next; doubled at each death without a batch between."""
_LINE_BYTES: Final = 1 << 20
"""Longest line of a worker; it may have the keys of all searches of a batch."""
DRAIN_SECONDS: Final = 60.0
"""Time that a worker has to finish what it has in hand when the server stops."""


class Supervisor:
    """Keeps one worker process running; it belongs to one event loop.

    Parameters
    ----------
    command : sequence of str
        The command of the worker.
    on_change : callable
        Called with the keys of the searches that have changed, or with None if any of them may have.
    on_restart : callable
        Called when a worker died and is started again.
    """

    def __init__(
        self,
        command: Sequence[str],
        on_change: Callable[[Iterable[str] | None], None],
        on_restart: Callable[[], None],
    ) -> None:
        self._command = command
        self._on_change = on_change
        self._on_restart = on_restart
        self._process: Process | None = None
        self._task: asyncio.Task[None] | None = None
        self.loop: asyncio.AbstractEventLoop | None = None
        self._stopping = False
        self.is_ready = False
        """Whether the worker can take queries."""

    def start(self) -> None:
        """Start the worker in the background."""
        self.loop = asyncio.get_running_loop()
        self._task = asyncio.create_task(self._run())

    def hint(self) -> None:
        """Tell the worker that there is work; may be called from any thread."""
        if self.loop is not None:
            with suppress(RuntimeError):  # the loop is closed
                self.loop.call_soon_threadsafe(self._write_hint)

    def _write_hint(self) -> None:
        process = self._process
        if process is not None and process.stdin is not None and process.returncode is None:
            with suppress(OSError, RuntimeError):
                process.stdin.write(b"\n")

    async def stop(self) -> None:
        """Let the worker finish what it has in hand, and wait for its end."""
        self._stopping = True
        process = self._process
        if process is not None and process.stdin is not None:
            process.stdin.close()
        if self._task is None:
            return
        try:
            async with asyncio.timeout(DRAIN_SECONDS):
                await self._task
        except TimeoutError:
            if process is not None and process.returncode is None:
                process.kill()
                await process.wait()

    async def _run(self) -> None:
        pause = _FIRST_PAUSE
        while not self._stopping:
            self._process = process = await asyncio.create_subprocess_exec(
                *self._command, stdin=PIPE, stdout=PIPE, limit=_LINE_BYTES
            )
            if self._stopping and process.stdin is not None:
                process.stdin.close()
            assert process.stdout is not None
            async for line in process.stdout:
                word, *keys = line.decode("ascii", "replace").split()
                if word == "ready":
                    self.is_ready = True
                else:
                    pause = _FIRST_PAUSE
                self._on_change(keys or None)
            code = await process.wait()
            self.is_ready = False
            if self._stopping:
                return
            log("worker died", "error", code=code, restart_in_seconds=pause)
            self._on_restart()
            self._on_change(None)
            await asyncio.sleep(pause)
            pause = min(_LONGEST_PAUSE, pause * 2)
