"""Threads that read what clients send: :class:`Readers`, in ``app.state.readers``.

A long text takes seconds to read. It is read beside the threads that all other requests use, one text of an owner at a
time, so that other owners and the store are not waited for. When the client has gone, or the server stops, the
thread's work ends at its next :func:`~swsearch.service.reading.check_wanted`.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from contextlib import asynccontextmanager, suppress
from typing import Final, ParamSpec, TypeVar
from weakref import WeakValueDictionary

from fastapi import Request
from starlette.datastructures import FormData

from swsearch.errors import InputError
from swsearch.service.reading import NOT_WANTED
from swsearch.service.web.bodies import SMALL_BYTES

THREADS: Final = 4
"""Texts that are read at a time. They share the interpreter, so more would not be read sooner."""
_END_SECONDS: Final = 1.0
"""Time that the threads have to end when the server stops."""
_P = ParamSpec("_P")
_T = TypeVar("_T")


class Readers:
    """The threads; for one event loop."""

    def __init__(self) -> None:
        self._free = asyncio.Semaphore(THREADS)
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._at_work: dict[threading.Thread, threading.Event] = {}

    async def read(self, request: Request, work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """The result of a function that reads what a request has sent, when it is its owner's turn.

        Raises
        ------
        InputError
            The client has gone.
        Exception
            What the function raises.
        """
        not_wanted = threading.Event()
        context = contextvars.copy_context()
        context.run(NOT_WANTED.set, not_wanted)
        reading = asyncio.ensure_future(
            self._in_turn(request.state.owner, not_wanted, lambda: context.run(work, *args, **kwargs))
        )
        gone = asyncio.ensure_future(_gone(request))
        try:
            await asyncio.wait((reading, gone), return_when=asyncio.FIRST_COMPLETED)
            if not reading.done():
                raise InputError("the request ended early")
            return reading.result()
        finally:
            not_wanted.set()
            reading.cancel()
            gone.cancel()

    async def _in_turn(self, owner: str, not_wanted: threading.Event, work: Callable[[], _T]) -> _T:
        """Let a thread work when no other works for this owner; its turn ends with the thread, whoever waits for it."""
        loop = asyncio.get_running_loop()
        turn = self._turns.setdefault(owner, asyncio.Lock())
        await turn.acquire()
        try:
            await self._free.acquire()
        except BaseException:
            turn.release()
            raise
        future: Future[_T] = Future()

        def run() -> None:
            try:
                future.set_result(work())
            except BaseException as error:
                future.set_exception(error)
            finally:
                with suppress(RuntimeError):  # the loop is closed
                    loop.call_soon_threadsafe(end)

        def end() -> None:
            del self._at_work[thread]
            self._free.release()
            turn.release()

        # A daemon, so that the end of the process does not wait for it.
        thread = threading.Thread(target=run, name="reader", daemon=True)
        self._at_work[thread] = not_wanted
        future.set_running_or_notify_cancel()
        thread.start()
        return await asyncio.wrap_future(future)

    def close(self) -> None:
        """Give up what is being read, and wait for a moment, in which most of it ends."""
        for not_wanted in self._at_work.values():
            not_wanted.set()
        ends = time.monotonic() + _END_SECONDS
        for thread in list(self._at_work):
            thread.join(max(0.0, ends - time.monotonic()))


def readers_of(request: Request) -> Readers:
    """The readers of this application."""
    readers: Readers = request.app.state.readers
    return readers


@asynccontextmanager
async def sent_form(request: Request, **limits: int) -> AsyncIterator[FormData]:
    """A context with the form of a request; a long one is parsed by a thread, since the event loop would wait for it.

    Parameters and errors are those of ``Request.form``.
    """

    async def parsed() -> FormData:
        return await request.form(**limits)

    if len(await request.body()) <= SMALL_BYTES:
        form = await parsed()
    else:
        form = await readers_of(request).read(request, lambda: asyncio.run(parsed()))
    try:
        yield form
    finally:
        await form.close()


async def _gone(request: Request) -> None:
    """Return when the client has closed the connection; the body was read before."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
