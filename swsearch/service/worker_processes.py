"""The child processes of a server: started with it, started again when they die, stopped with it.

A server and each of its children are joined by pipes. Through them go lines of words, which save time or tell a state;
nothing that must not be lost. The end of the server's pipe tells a child to finish what it has in hand, also if the
server was killed, so that no child outlives it.
"""

from __future__ import annotations

import asyncio
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from swsearch.service.logs import log

READY: Final = "ready"
"""The word of a child that can be used."""
WORK: Final = "work"
"""The word of a web process that has stored a search."""
ALIVE: Final = "alive"
"""The word of a worker whose work has made progress."""
CHANGED: Final = "changed"
"""The word before the keys of searches that have changed; without keys, any of them may have."""

_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 10.0
"""Seconds between the death of a child and the start of the next; doubled at each death before it has done anything."""
_LINE_BYTES: Final = 1 << 20
"""Longest line of a child; it may have the keys of all searches of a batch."""
_MAX_UNREAD: Final = 1 << 20
"""Bytes that a child may leave unread; further lines are not sent to it."""


def worker_command(databases: Sequence[str], options: Sequence[str]) -> tuple[str, ...]:
    """The command of a server's worker process.

    The store is in its environment, since a URL may have a password.
    """
    return (*python_module("swsearch"), "worker", *databases, "--hints", *options)


def python_module(name: str) -> tuple[str, ...]:
    """The command that runs a module; no code is imported from the folder where the server was started (``-P``)."""
    return (sys.executable, "-P", "-m", name)


class Child:
    """Keeps one child process running; it belongs to one event loop.

    Parameters
    ----------
    name : str
        What the log calls it.
    command : sequence of str
    on_words : callable
        Called with the words of each line of the process.
    on_death : callable
        Called when the process died; it is started again afterwards.
    greeting : bytes
        What each process reads first.
    pass_fds : sequence of int
        Descriptors that it inherits.
    silence : float, optional
        Time in seconds after which a process that was ready and says nothing is killed. By default, none is.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        on_words: Callable[[list[str]], None],
        on_death: Callable[[], None],
        *,
        greeting: bytes = b"",
        pass_fds: Sequence[int] = (),
        silence: float | None = None,
    ) -> None:
        self._name = name
        self._command = command
        self._on_words = on_words
        self._on_death = on_death
        self._greeting = greeting
        self._pass_fds = tuple(pass_fds)
        self._silence = silence
        self._heard = 0.0
        self._process: Process | None = None
        self._task: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping = False
        self.is_ready = False
        """Whether the process can be used."""

    def start(self) -> None:
        """Start the process in the background."""
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.create_task(self._run())

    def tell(self, *words: str) -> None:
        """Send a line; may be called from any thread."""
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._write, (" ".join(words) + "\n").encode("ascii"))

    def _write(self, line: bytes) -> None:
        process = self._process
        if process is not None and process.stdin is not None and process.returncode is None:
            with suppress(OSError, RuntimeError):
                if process.stdin.transport.get_write_buffer_size() < _MAX_UNREAD:
                    process.stdin.write(line)

    async def stop(self, seconds: float) -> None:
        """Let the process finish what it has in hand, and wait for its end; after this time it is killed."""
        self._stopping = True
        process = self._process
        if process is not None and process.stdin is not None:
            process.stdin.close()
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
            self._process = process = await asyncio.create_subprocess_exec(
                *self._command, stdin=PIPE, stdout=PIPE, limit=_LINE_BYTES, pass_fds=self._pass_fds
            )
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(self._greeting)
            if self._stopping:
                process.stdin.close()
            watching = asyncio.create_task(self._watch(process))
            async for line in process.stdout:
                self._heard = time.monotonic()
                words = line.decode("ascii", "replace").split()
                if words == [ALIVE]:
                    continue
                if words == [READY]:
                    self.is_ready = True
                else:
                    pause = _FIRST_PAUSE
                self._on_words(words)
            code = await process.wait()
            self.is_ready = False
            watching.cancel()
            if self._stopping:
                return
            log(f"{self._name} died", "error", code=code, restart_in_seconds=pause)
            self._on_death()
            await asyncio.sleep(pause)
            pause = min(_LONGEST_PAUSE, pause * 2)

    async def _watch(self, process: Process) -> None:
        """Kill the process if it hangs, as nothing else ends it: a signal that it can handle waits for its work."""
        if self._silence is None:
            return
        while True:
            await asyncio.sleep(min(1.0, self._silence / 4))
            seconds = time.monotonic() - self._heard
            if self.is_ready and seconds > self._silence:
                log(f"{self._name} hangs", "error", process=process.pid, silent_seconds=round(seconds, 1))
                process.kill()
                return


class Workers:
    """The worker processes of a server; they belong to one event loop.

    Parameters
    ----------
    commands : sequence of sequence of str
        One command per worker; none if the server starts no workers.
    on_words, on_death, silence
        As for :class:`Child`.
    """

    def __init__(
        self,
        commands: Sequence[Sequence[str]],
        on_words: Callable[[list[str]], None],
        on_death: Callable[[], None],
        silence: float,
    ) -> None:
        self._children = [Child("worker", command, on_words, on_death, silence=silence) for command in commands]

    @property
    def is_ready(self) -> bool:
        """Whether one of them can be used."""
        return any(child.is_ready for child in self._children)

    def start(self) -> None:
        """Start them in the background."""
        for child in self._children:
            child.start()

    def tell(self) -> None:
        """Wake all of them; the first that looks takes the work. May be called from any thread."""
        for child in self._children:
            child.tell()

    async def stop(self, seconds: float) -> None:
        """Let them finish what they have in hand, and wait for their ends; after this time they are killed."""
        await asyncio.gather(*(child.stop(seconds) for child in self._children))
