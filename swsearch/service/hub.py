"""Who waits for a change of a search: streams of events, and requests that are held until there is something to say.

One task looks at the searches that anybody waits for: at those that a worker says it has changed, at once, and at all
of them twice a second. A thousand streams therefore cost one query of the store per look.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from typing import Final, ParamSpec, TypeVar

from swsearch.errors import SearchNotFound, SwSearchError
from swsearch.service.service import SearchStatus, Service

_P = ParamSpec("_P")
_T = TypeVar("_T")

LOOK_SECONDS: Final = 0.5
"""Time between two looks at all searches."""
_PAUSE: Final = 2.0
"""Time between two looks, in units of the time that the first of them took; so a third of the time is for looks."""


STREAM_SECONDS: Final = 0.9
"""Shortest time between two statuses of an unfinished search in one stream. A search of 10,000 queries changes with
each of them, and hundreds of people may look at it."""
_MOST_UNHEARD: Final = 1000
"""Number of hints that are remembered because somebody may begin to wait for the search in a moment."""
_AT_ONCE: Final = 8
_BREATH_SECONDS: Final = 0.01
"""Number of streams that get a status at once, and the time for other requests before the next ones."""


@dataclass(eq=False)
class _Watcher:
    """Somebody who waits for a search: for its end alone, or for changes.

    ``looked`` is set when there is something to say, and not before ``not_before`` unless it is the end.
    """

    until_end: bool = False
    looked: asyncio.Event = field(default_factory=asyncio.Event)
    not_before: float = 0.0


class Hub:
    """The waiting room; it belongs to one event loop."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._watched: dict[str, set[_Watcher]] = {}
        self._found: dict[str, SearchStatus | None] = {}
        self._hint = asyncio.Event()
        self._hinted: set[str] = set()
        self._unheard: dict[str, None] = {}
        """Searches that were hinted at while nobody waited for them, the last one at the end."""
        self._looks_at_all = 0.0
        self._is_released = False
        self._task: asyncio.Task[None] | None = None
        self._short_calls = ThreadPoolExecutor(1)

    def start(self) -> None:
        """Begin to look."""
        self._task = asyncio.create_task(self._look())

    async def stop(self) -> None:
        """End all waits."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        self._short_calls.shutdown()

    async def short_call(self, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """The result of a function that uses the store for a moment; one thread makes all these calls.

        Threads hand Python's lock to each other whenever one of them calls the store's driver. With four threads for
        these calls, an answer to one of 64 clients took 8.2 ms of processor time on 32 cores; with one, 5.7 ms.
        """
        call = partial(copy_context().run, function, *args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(self._short_calls, call)

    def release(self) -> None:
        """Let nobody wait any more, because the server stops: streams end, and held requests are answered."""
        self._is_released = True
        for watchers in self._watched.values():
            for watcher in watchers:
                watcher.looked.set()

    def hint(self, keys: Iterable[str] | None = None) -> None:
        """Look now: these searches may have changed; without keys, any."""
        if keys is None:
            self._looks_at_all = 0.0
        else:
            for key in keys:
                if key in self._watched:
                    self._hinted.add(key)
                else:
                    self._unheard.pop(key, None)
                    self._unheard[key] = None
            while len(self._unheard) > _MOST_UNHEARD:
                del self._unheard[next(iter(self._unheard))]
        self._hint.set()

    def hint_begun(self, keys: Iterable[str]) -> None:
        """Look now at those of these searches whose begin, which is not their end, matters to somebody who waits."""
        if some := [key for key in keys if not self._is_until_end(key)]:
            self.hint(some)

    async def changes(self, key: str, *, until_end: bool = False) -> AsyncIterator[SearchStatus]:
        """The status of a search now and after changes, until it is finished; about once a second, the end at once.

        With ``until_end``, only the end is sure to be among them. It also ends when the server stops.

        Raises
        ------
        SearchNotFound
            It was deleted.
        """
        last: SearchStatus | None = None
        with self._watching(key, until_end=until_end) as watcher:
            while True:
                while key not in self._found or (last is not None and self._found[key] == last):
                    if self._is_released:
                        return
                    watcher.looked.clear()
                    await watcher.looked.wait()
                found = self._found[key]
                if found is None:
                    raise SearchNotFound(key)
                last = found
                watcher.looked.clear()
                watcher.not_before = time.monotonic() + STREAM_SECONDS
                yield found
                if found.search.is_finished or self._is_released:
                    return
                await watcher.looked.wait()

    async def finished(self, key: str, seconds: float) -> SearchStatus | None:
        """Return when a search is finished, with its status, or when the time is over, with None."""
        with suppress(TimeoutError, SearchNotFound):
            async with asyncio.timeout(seconds):
                found = [status async for status in self.changes(key, until_end=True) if status.search.is_finished]
                return found[0] if found else None
        return None

    @contextmanager
    def _watching(self, key: str, *, until_end: bool) -> Iterator[_Watcher]:
        """A context in which somebody waits for a search; the first look is at once.

        Whoever waits for the end has just seen that the search is unfinished, so nothing is new without a hint.
        """
        watcher = _Watcher(until_end)
        self._watched.setdefault(key, set()).add(watcher)
        self._found.pop(key, None)
        if not until_end or key in self._unheard:
            self.hint([key])
        try:
            yield watcher
        finally:
            self._watched[key].discard(watcher)
            if not self._watched[key]:
                del self._watched[key]
                self._found.pop(key, None)

    def _is_until_end(self, key: str) -> bool:
        """Whether nobody waits for a change of a search, unless it is its end."""
        return all(watcher.until_end for watcher in self._watched.get(key, ()))

    async def _look(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._hint.wait()
            self._hint.clear()
            began = time.monotonic()
            if began >= self._looks_at_all:
                keys = list(self._watched)
                self._looks_at_all = began + LOOK_SECONDS
            else:
                keys = [key for key in self._hinted if key in self._watched]
            self._hinted.clear()
            if not keys:
                continue
            ends = [key for key in keys if self._is_until_end(key)]
            others = list(set(keys).difference(ends))
            try:
                found = await self.short_call(self._service.statuses, others, ends)
            except SwSearchError:
                await asyncio.sleep(LOOK_SECONDS)
                self._looks_at_all = 0.0
                continue
            await self._tell([*others, *found.keys() & set(ends)], found)
            await asyncio.sleep(min(LOOK_SECONDS, _PAUSE * (time.monotonic() - began)))

    async def _tell(self, keys: Sequence[str], found: Mapping[str, SearchStatus]) -> None:
        """Wake those who wait for an end, then those who wait for a change, the longest ones first and a few at a time.

        A hint ends this early: what has ended meanwhile is more urgent, and the others are woken after the next look.
        """
        due: list[_Watcher] = []
        now = time.monotonic()
        for key in keys:
            if key not in self._watched:
                continue
            status = self._found[key] = found.get(key)
            if status is None or status.search.is_finished:
                for watcher in self._watched[key]:
                    watcher.looked.set()
            else:
                due += [watcher for watcher in self._watched[key] if now >= watcher.not_before]
        due.sort(key=lambda watcher: watcher.not_before)
        for first in range(0, len(due), _AT_ONCE):
            for watcher in due[first : first + _AT_ONCE]:
                watcher.looked.set()
            if first + _AT_ONCE < len(due):
                await asyncio.sleep(_BREATH_SECONDS)
                if self._hint.is_set():
                    return
