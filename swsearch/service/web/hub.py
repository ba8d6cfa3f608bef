"""Who waits for a change of a search: streams of events, and requests that are held until there is something to say.

One task looks at all searches that anybody waits for in one query, when a worker hints at a change and otherwise twice
a second, so that a thousand streams cost the store as much as one.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Final

from starlette.concurrency import run_in_threadpool

from swsearch.errors import SearchNotFound, SwSearchError
from swsearch.service.web.state import SearchStatus, Service

LOOK_SECONDS: Final = 0.5
"""Time between two looks without a hint."""
_PAUSE_SECONDS: Final = 0.02
"""Shortest time between two looks."""


class Hub:
    """The waiting room; it belongs to one event loop."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._watched: Counter[str] = Counter()
        self._found: dict[str, SearchStatus | None] = {}
        self._hint = asyncio.Event()
        self._looked = asyncio.Condition()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to look."""
        self._task = asyncio.create_task(self._look())

    async def stop(self) -> None:
        """End all waits."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    def hint(self) -> None:
        """Look now: something may have changed."""
        self._hint.set()

    async def changes(self, key: str) -> AsyncIterator[SearchStatus]:
        """The status of a search now and after each change, until it is finished.

        Raises
        ------
        SearchNotFound
            It was deleted.
        """
        self._watched[key] += 1
        self._found.pop(key, None)
        self._hint.set()
        last: SearchStatus | None = None
        try:
            while True:
                async with self._looked:
                    while key not in self._found or (last is not None and self._found[key] == last):
                        await self._looked.wait()
                    found = self._found[key]
                if found is None:
                    raise SearchNotFound(key)
                last = found
                yield found
                if found.search.is_finished:
                    return
        finally:
            self._watched[key] -= 1
            if self._watched[key] <= 0:
                del self._watched[key]
                self._found.pop(key, None)

    async def finished(self, key: str, seconds: float) -> None:
        """Return when a search is finished, deleted, or the time is over."""
        with suppress(TimeoutError, SearchNotFound):
            async with asyncio.timeout(seconds):
                async for _ in self.changes(key):
                    pass

    async def _look(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._hint.wait()
            self._hint.clear()
            keys = list(self._watched)
            if not keys:
                await self._hint.wait()
                continue
            try:
                found = await run_in_threadpool(self._service.statuses, keys)
            except SwSearchError:
                await asyncio.sleep(LOOK_SECONDS)
                continue
            async with self._looked:
                self._found.update({key: found.get(key) for key in keys if key in self._watched})
                self._looked.notify_all()
            await asyncio.sleep(_PAUSE_SECONDS)
