"""Who waits for a search: streams of its changes, and requests that are held until its end.

One task looks at the searches that anybody waits for: at those of the streams that a worker says it has changed, at
once, and at all of them twice a second. A thousand streams therefore cost one query of the store per look. A held
request is told of the end by the worker, and then reads the store itself, together with what else it answers.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import copy_context
from functools import partial
from itertools import chain
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


class Hub:
    """The waiting room; it belongs to one event loop."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._watched: dict[str, dict[asyncio.Event, float]] = {}
        """The streams of a search; each event is set when there is something to say, before its time only the end."""
        self._held: dict[str, set[asyncio.Event]] = {}
        """The requests that are held until the end of a search; each event is set when it may have come."""
        self._found: dict[str, SearchStatus | None] = {}
        self._hint = asyncio.Event()
        self._hinted: set[str] = set()
        self._unheard: dict[str, None] = {}
        """Searches that may have ended while no request was held for them, the last one at the end."""
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
        for looked in (*chain(*self._watched.values()), *chain(*self._held.values())):
            looked.set()

    def look_at_all(self) -> None:
        """Look now at all searches that anybody waits for: any of them may have changed."""
        self._looks_at_all = 0.0
        self._hint.set()

    def hint_changed(self, keys: Iterable[str]) -> None:
        """Look now at these searches, as far as there are streams of their changes."""
        if watched := self._watched.keys() & keys:
            self._hinted |= watched
            self._hint.set()

    def hint_ended(self, keys: Collection[str]) -> None:
        """Tell those who wait for these searches that they may have ended."""
        for key in keys:
            for ended in self._held.get(key, ()):
                ended.set()
            if key not in self._held:
                self._unheard.pop(key, None)
                self._unheard[key] = None
        while len(self._unheard) > _MOST_UNHEARD:
            del self._unheard[next(iter(self._unheard))]
        self.hint_changed(keys)

    async def held(self, look: Callable[[bool], tuple[_T | None, str]], seconds: float, unfinished: str = "") -> _T:
        """What a function has found when nothing is waited for any more.

        The thread of short calls calls it with whether the request may still wait; if it may, the function can return
        None and the key of an ``unfinished`` search, and is called again when that may have ended. The caller may have
        just seen one.
        """
        ends, waits, found = time.monotonic() + seconds, seconds > 0, None
        while found is None:
            if waits and unfinished:
                waits = await self.may_have_ended(unfinished, ends - time.monotonic())
            found, unfinished = await self.short_call(look, waits)
        return found

    async def may_have_ended(self, key: str, seconds: float) -> bool:
        """Return True when a search may have ended; False when the time is over, or the server stops.

        The caller has just seen that the search is unfinished, and looks again.
        """
        if self._is_released:
            return False
        if key in self._unheard:
            del self._unheard[key]
            return True
        ended = asyncio.Event()
        self._held.setdefault(key, set()).add(ended)
        try:
            async with asyncio.timeout(seconds):
                await ended.wait()
        except TimeoutError:
            return False
        finally:
            self._held[key].discard(ended)
            if not self._held[key]:
                del self._held[key]
        return not self._is_released

    async def changes(self, key: str) -> AsyncIterator[SearchStatus]:
        """The status of a search now and after changes, until it is finished; about once a second, the end at once.

        It also ends when the server stops.

        Raises
        ------
        SearchNotFound
            It was deleted.
        """
        last: SearchStatus | None = None
        with self._watching(key) as looked:
            while True:
                while key not in self._found or (last is not None and self._found[key] == last):
                    if self._is_released:
                        return
                    looked.clear()
                    await looked.wait()
                found = self._found[key]
                if found is None:
                    raise SearchNotFound(key)
                last = found
                looked.clear()
                self._watched[key][looked] = time.monotonic() + STREAM_SECONDS
                yield found
                if found.search.is_finished or self._is_released:
                    return
                await looked.wait()

    @contextmanager
    def _watching(self, key: str) -> Iterator[asyncio.Event]:
        """A context in which a stream waits for a search; the first look is at once."""
        looked = asyncio.Event()
        self._watched.setdefault(key, {})[looked] = 0.0
        self._found.pop(key, None)
        self.hint_changed([key])
        try:
            yield looked
        finally:
            del self._watched[key][looked]
            if not self._watched[key]:
                del self._watched[key]
                self._found.pop(key, None)

    async def _look(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._hint.wait()
            self._hint.clear()
            began = time.monotonic()
            is_of_all = began >= self._looks_at_all
            keys = list(self._watched if is_of_all else self._watched.keys() & self._hinted)
            ends = list(self._held) if is_of_all else []
            if is_of_all:
                self._looks_at_all = began + LOOK_SECONDS
            self._hinted.clear()
            if not keys and not ends:
                continue
            try:
                found = await self.short_call(self._service.statuses, keys, ends)
            except SwSearchError:
                await asyncio.sleep(LOOK_SECONDS)
                self._looks_at_all = 0.0
                continue
            for key in found.keys() & self._held.keys():
                for ended in self._held[key] if found[key].search.is_finished else ():
                    ended.set()
            await self._tell(keys, found)
            await asyncio.sleep(min(LOOK_SECONDS, _PAUSE * (time.monotonic() - began)))

    async def _tell(self, keys: Sequence[str], found: Mapping[str, SearchStatus]) -> None:
        """Wake the streams of searches that have ended, then the others, the longest ones first and a few at a time.

        A hint ends this early: what has ended meanwhile is more urgent, and the others are woken after the next look.
        """
        due: list[tuple[float, asyncio.Event]] = []
        now = time.monotonic()
        for key in keys:
            if key not in self._watched:
                continue
            status = self._found[key] = found.get(key)
            if status is None or status.search.is_finished:
                for looked in self._watched[key]:
                    looked.set()
            else:
                due += [(not_before, looked) for looked, not_before in self._watched[key].items() if now >= not_before]
        due.sort(key=lambda one: one[0])
        for first in range(0, len(due), _AT_ONCE):
            for _, looked in due[first : first + _AT_ONCE]:
                looked.set()
            if first + _AT_ONCE < len(due):
                await asyncio.sleep(_BREATH_SECONDS)
                if self._hint.is_set():
                    return
