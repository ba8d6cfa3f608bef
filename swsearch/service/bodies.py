"""The bodies of requests: received whole (:func:`whole_body`), and read as texts in threads (:class:`Readers`).

A body of 64 kB can be 64 MB when it is decompressed, and ten times that in objects of Python. Therefore the bytes that
are in memory are counted from their arrival to the end of their request (:class:`Budget`): those of an owner, and those
of all owners of this process. Beyond the limits, a request is refused with the time after which to try again. The first
:data:`SMALL_BYTES` of a body are not counted, so that an owner with ordinary requests is not refused because of others.

A long text takes seconds to read. It is read in threads beside those that all other requests use, one text of an owner
at a time, so that other owners and the store are not waited for. When the client has gone, or the server stops, the
thread's work ends at its next :func:`~swsearch.service.sent_text.check_wanted`.
"""

from __future__ import annotations

import asyncio
import contextvars
import io
import re
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Final, ParamSpec, TypeVar
from weakref import WeakValueDictionary

from fastapi import Request
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, Headers, UploadFile
from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive, Scope

from swsearch.errors import InputError, Refused
from swsearch.sequences.archives import MAGIC_BYTES, archive_format, decompressed
from swsearch.service.answers import EarlyAnswer
from swsearch.service.sent_text import NOT_WANTED, TAKE, Take, plain_text
from swsearch.service.settings import ServerLimits

SMALL_BYTES: Final = 64 << 10
"""Bytes of each body that do not count; also the longest JSON beside its texts."""
_MOST_TEXTS: Final = 10_000
"""Number of texts, keys included, in a JSON body that is not small."""
_BLOCK_BYTES: Final = 1 << 20
_CHARSET: Final = re.compile(r"""(?i);\s*charset\s*=\s*["']?([^\s"';]*)""")
_CHARSETS: Final = frozenset({"utf-8", "utf8", "us-ascii", "ascii", "iso-8859-1", "latin1", "windows-1252"})
"""Encodings of forms. The framework knows all of Python's, some of which make text that no file can contain."""
_JSON_TEXT: Final = re.compile(rb'"[^"\\]*+(?:\\.?[^"\\]*+)*+"?', re.DOTALL)
"""A text with its quotation marks; the last one may be cut off, so that no look for its end is in vain."""


class Budget:
    """The bytes of bodies that are in memory, by owner; threads may share it."""

    def __init__(self, limits: ServerLimits) -> None:
        self._limits = limits
        self._lock = threading.Lock()
        self._of_owner: Counter[str] = Counter()

    @contextmanager
    def claim(self, owner: str) -> Iterator[Take]:
        """A context with the function that counts the bytes of a request; they are given back at its end.

        The function is called before the bytes are in memory or soon after. It raises Refused if, together with those
        of other requests, they would exceed a limit. A request is never refused because of its own bytes, which other
        limits bound.
        """
        n_free, n_mine = SMALL_BYTES, 0

        def take(n_bytes: int) -> None:
            nonlocal n_free, n_mine
            n_counted = max(0, n_bytes - n_free)
            n_free -= n_bytes - n_counted
            if n_counted:
                self._count(owner, n_counted, n_mine)
                n_mine += n_counted

        try:
            yield take
        finally:
            with self._lock:
                self._of_owner[owner] -= n_mine
                if not self._of_owner[owner]:
                    del self._of_owner[owner]

    def _count(self, owner: str, n_bytes: int, n_mine: int) -> None:
        """Count bytes of a request that has ``n_mine`` already."""
        limits = self._limits
        with self._lock:
            of_owner, of_all = self._of_owner[owner], self._of_owner.total()
            if of_owner > n_mine and of_owner + n_bytes > limits.owner_bytes_in_flight:
                most = f"your requests that are being read have up to {limits.owner_bytes_in_flight:,} bytes together"
                raise Refused("too_many_bytes", f"{most}; send this one when others are answered")
            if of_all > n_mine and of_all + n_bytes > limits.bytes_in_flight:
                raise Refused("server_busy", "this server is reading as many large requests as it may; try again")
            self._of_owner[owner] += n_bytes


async def whole_body(headers: Headers, receive: Receive, scope: Scope, most: int) -> Receive:
    """Read the body of a request and decompress it; returns a channel that gives it to the application.

    In ``scope``, the headers become those of the decompressed body. It has at most ``most`` bytes, as it is sent and
    decompressed.

    Raises
    ------
    EarlyAnswer
        The body is too large, or cannot be used.
    Refused
        Too many bytes are in memory.
    """
    take = TAKE.get()
    too_large = partial(EarlyAnswer, 413, "too_large", f"the request has more than {most:,} bytes")
    charset = _CHARSET.search(headers.get("content-type", ""))
    if charset is not None and charset[1].lower() not in _CHARSETS:
        raise EarlyAnswer(415, "bad_encoding", "send texts in UTF-8")
    length = headers.get("content-length", "")
    if length.isdecimal() and int(length) > most:
        raise too_large()
    parts: list[bytes] = []
    n_bytes = 0
    try:
        async for part in Request(scope, receive).stream():
            parts.append(part)
            n_bytes += len(part)
            if n_bytes > most:
                raise too_large()
            take(len(part))
    except ClientDisconnect as error:
        raise EarlyAnswer(400, "bad_input", "the request ended early") from error
    body = b"".join(parts)
    parts.clear()
    coding = headers.get("content-encoding", "identity").strip().lower()
    if coding == "gzip":
        body = await run_in_threadpool(_unzipped, body, most)
        kept = [(name, value) for name, value in scope["headers"] if name != b"content-encoding"]
        scope["headers"] = [
            (name, str(len(body)).encode() if name == b"content-length" else value) for name, value in kept
        ]
    elif coding != "identity":
        raise EarlyAnswer(415, "bad_encoding", "send the body as it is, or with Content-Encoding: gzip")
    if len(body) > SMALL_BYTES and "json" in headers.get("content-type", "json").lower():
        await run_in_threadpool(_check_json, body)
    left: bytes | None = body
    del body

    async def replay() -> Message:
        nonlocal left
        if left is None:
            return await receive()
        message: Message = {"type": "http.request", "body": left, "more_body": False}
        left = None
        return message

    return replay


def _unzipped(body: bytes, most: int) -> bytes:
    if archive_format(body[:MAGIC_BYTES]) != "gz":
        raise EarlyAnswer(400, "bad_encoding", "the body is not gzip, as its Content-Encoding says")
    file = decompressed(io.BytesIO(body), "gz")
    parts: list[bytes] = []
    n_bytes = 0
    while True:
        try:
            part = file.read(_BLOCK_BYTES)
        except Exception as error:  # each decompressor has its own exceptions
            raise EarlyAnswer(400, "bad_encoding", "the gzip of the body is damaged or cut short") from error
        if not part:
            return b"".join(parts)
        parts.append(part)
        n_bytes += len(part)
        if n_bytes > most:
            raise EarlyAnswer(413, "too_large", f"the request has more than {most:,} bytes when it is decompressed")
        TAKE.get()(len(part))


def _check_json(body: bytes) -> None:
    """Refuse JSON with so many values that it would need a multiple of its bytes, and the event loop, for seconds."""
    n_bytes = len(body)
    for number, found in enumerate(_JSON_TEXT.finditer(body)):
        n_bytes -= found.end() - found.start()
        if number > _MOST_TEXTS:
            break
    if n_bytes > SMALL_BYTES:
        problem = "the JSON has too many values; sequences belong in one text, and options are few"
        raise EarlyAnswer(413, "too_large", problem)


# --- threads that read ---


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
        reading = asyncio.ensure_future(self._in_turn(request.state.owner, context, partial(work, *args, **kwargs)))
        reading.add_done_callback(lambda _: reading.cancelled() or reading.exception())  # also if nobody asks any more
        gone = asyncio.ensure_future(_gone(request))
        try:
            await asyncio.wait((reading, gone), return_when=asyncio.FIRST_COMPLETED)
            if not reading.done():
                raise InputError("the request ended early")
            return reading.result()
        finally:
            not_wanted.set()
            gone.cancel()
            if not_wanted not in self._at_work.values():  # its bytes, which it waits with, count no more
                reading.cancel()

    async def _in_turn(self, owner: str, context: contextvars.Context, work: Callable[[], _T]) -> _T:
        """Let a thread work when no other works for this owner; its turn ends with the thread, whoever waits for it."""
        future: Future[_T] = Future()

        def run() -> None:
            try:
                future.set_result(context.run(work))
            except BaseException as error:
                future.set_exception(error)

        async with self._turns.setdefault(owner, asyncio.Lock()), self._free:
            future.set_running_or_notify_cancel()
            # A daemon, so that the end of the process does not wait for it.
            thread = threading.Thread(target=run, name="reader", daemon=True)
            self._at_work[thread] = context[NOT_WANTED]
            thread.start()
            try:
                return await asyncio.wrap_future(future)
            finally:
                del self._at_work[thread]

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


async def sent_fields(request: Request, limits: ServerLimits, **most: int) -> list[tuple[str, str]]:
    """Names and values of a form; an uploaded file is the text in it, decompressed.

    Parameters are those of :func:`sent_form`, after the limits of the server.

    Raises
    ------
    InputError
        An archive is damaged.
    Refused
        A text is longer than a request may be.
    """
    fields = []
    async with sent_form(request, max_part_size=limits.request_bytes, **most) as form:
        for name, value in form.multi_items():
            if isinstance(value, UploadFile):
                fields.append((name, await readers_of(request).read(request, plain_text, await value.read(), limits)))
            else:
                fields.append((name, value))
    return fields


async def _gone(request: Request) -> None:
    """Return when the client has closed the connection; the body was read before."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
