"""What a web process exchanges with the other processes of its server: hints that save time, and states.

:class:`OwnWorkers` is for the only web process of a server, which starts the workers itself. :class:`ToSupervisor` is
for one of several, whose supervisor (:mod:`swsearch.service.supervisor`) passes everything on.
"""

from __future__ import annotations

import asyncio
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Final

from swsearch.service.worker_processes import CHANGED, READY, WORK, Workers

WORKER: Final = "worker"
"""The word before the state of the worker: :data:`READY` or :data:`AWAY`."""
AWAY: Final = "away"
VALID: Final = "valid"
"""The word before the SHA-256 of a token that was found valid."""
DRAIN_SECONDS: Final = 60.0
"""Time that a worker has to finish what it has in hand when the server stops."""


class Exchange(ABC):
    """The exchange of one web process.

    Attributes
    ----------
    on_change : callable
        Called in the event loop with the keys of searches that have changed, or with None if any may have.
    on_valid : callable
        Called in the event loop with the SHA-256 of a token that another process found valid.
    is_worker_ready : bool
        Whether the worker of this server can take queries.
    """

    def __init__(self) -> None:
        self.on_change: Callable[[Iterable[str] | None], None] = lambda keys: None
        self.on_valid: Callable[[str], None] = lambda digest: None
        self.is_worker_ready = False
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        """Begin, in the running event loop."""
        self._loop = asyncio.get_running_loop()

    @abstractmethod
    async def stop(self) -> None:
        """End what was begun."""

    @abstractmethod
    def work(self) -> None:
        """Say that there is work for the worker; any thread may."""

    def changed(self, key: str) -> None:
        """Say that a search has changed; any thread may."""
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self.on_change, [key])

    @abstractmethod
    def valid(self, digest: str) -> None:
        """Say that a token was found valid, by its SHA-256; any thread may."""


class OwnWorkers(Exchange):
    """The exchange of the only web process of a server.

    Parameters
    ----------
    commands : sequence of sequence of str
        The commands of the workers; none if the server starts none.
    on_death : callable
        Called when a worker died.
    silence : float
        Time in seconds without progress after which a worker is ended.
    """

    def __init__(self, commands: Sequence[Sequence[str]], on_death: Callable[[], None], silence: float) -> None:
        super().__init__()
        self._on_death = on_death
        self._workers = Workers(commands, self._hear, self._died, silence)

    def start(self) -> None:
        """Start the workers."""
        super().start()
        self._workers.start()

    async def stop(self) -> None:
        """Let the workers finish what they have in hand, and wait for their ends."""
        await self._workers.stop(DRAIN_SECONDS)

    def work(self) -> None:
        """Wake the workers."""
        self._workers.tell()

    def valid(self, digest: str) -> None:
        """Nothing: there is no other web process."""

    def _hear(self, words: list[str]) -> None:
        self.is_worker_ready = self._workers.is_ready
        self.on_change(words[1:] or None)

    def _died(self) -> None:
        self.is_worker_ready = self._workers.is_ready
        self._on_death()
        self.on_change(None)


class ToSupervisor(Exchange):
    """The exchange of one of several web processes, over its input and output.

    Parameters
    ----------
    lines : iterator of list of str
        The lines of the supervisor, of :func:`lines_of`.
    on_end : callable
        Called, in the event loop, when there are no more: the process is to stop.
    """

    def __init__(self, lines: Iterator[list[str]], on_end: Callable[[], None]) -> None:
        super().__init__()
        self._lines = lines
        self._on_end = on_end

    def start(self) -> None:
        """Listen, and say that this process answers."""
        super().start()
        os.set_blocking(1, False)
        threading.Thread(target=self._listen, daemon=True).start()

    async def stop(self) -> None:
        """Nothing: the thread ends with the process."""

    def ready(self) -> None:
        """Say that this process answers."""
        self._say(READY)

    def work(self) -> None:
        """Let the worker be woken."""
        self._say(WORK)

    def changed(self, key: str) -> None:
        """Tell this process and all others."""
        super().changed(key)
        self._say(CHANGED, key)

    def valid(self, digest: str) -> None:
        """Tell all others."""
        self._say(VALID, digest)

    def _say(self, *words: str) -> None:
        with suppress(OSError):  # a supervisor that does not read, or has ended
            os.write(1, (" ".join(words) + "\n").encode("ascii"))

    def _listen(self) -> None:
        loop = self._loop
        assert loop is not None
        with suppress(RuntimeError):  # the loop is closed
            for words in self._lines:
                loop.call_soon_threadsafe(self._hear, words)
            loop.call_soon_threadsafe(self._on_end)

    def _hear(self, words: list[str]) -> None:
        match words:
            case [str(word), *keys] if word == CHANGED:
                self.on_change(keys or None)
            case [str(word), str(digest)] if word == VALID:
                self.on_valid(digest)
            case [str(word), str(state)] if word == WORKER:
                self.is_worker_ready = state == READY


def lines_of(descriptor: int) -> Iterator[list[str]]:
    """The words of each line that can be read from a descriptor, until its end."""
    rest = b""
    while True:
        try:
            read = os.read(descriptor, 1 << 16)
        except OSError:
            return
        if not read:
            return
        *lines, rest = (rest + read).split(b"\n")
        for line in lines:
            yield line.decode("ascii", "replace").split()
