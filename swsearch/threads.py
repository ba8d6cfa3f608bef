"""Threads: how many are used, and work on several threads whose results come in order.

:func:`threads_to_use` is the meaning of ``--threads`` for engines. :class:`Threads` does the steps of indexing,
verification and export: functions of the native module, of ``hashlib`` and of the operating system, which release
Python's global lock. :func:`read_ahead` moves an iterator, such as a decompressor, to its own thread. With one thread,
nothing runs beside the caller. If the system starts fewer threads than requested, or none, those that it has started do
the work, or the caller does.

Long work gives signs of its progress, by calls of :func:`beat` between its parts. The worker of a search service
listens (:func:`listening`): its server ends a worker that has made no progress for minutes, and a lease is not extended
for it. So all work that may take a minute beats: scoring, alignments, filters and translation. In any other program,
nobody listens. A thread whose work may be given up (:func:`given_up_by`) ends it at the next beat: only the main thread
is interrupted by signals.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event, local
from typing import Any, Final, ParamSpec, TypeVar

from swsearch.arguments import whole_number
from swsearch.errors import InputError
from swsearch.words import option

MAX_THREADS: Final = 1024
"""Largest number of threads."""


def usable_cores() -> int:
    """Number of cores that this process may use, at least 1; a container or a batch system may limit them."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def check_threads(threads: int) -> None:
    """Refuse a number of threads that no engine accepts.

    Raises
    ------
    InputError
        It is not a whole number, below 1, or above 1,024.
    """
    if whole_number("threads", threads) < 1:
        raise InputError(f"{option('threads', threads)}: at least 1 thread is needed")
    if threads > MAX_THREADS:
        raise InputError(
            f"{option('threads', threads)}: {MAX_THREADS:,} at most; the cores of this machine are taken without it"
        )


def threads_to_use(asked: int | None) -> int:
    """The number of threads that the user requested, or one per usable core if ``asked`` is None.

    Raises
    ------
    InputError
        The number is below 1, or above 1,024.

    >>> threads_to_use(3)
    3
    """
    if asked is None:
        return usable_cores()
    check_threads(asked)
    return asked


MOST_DEFAULT_THREADS: Final = 16
"""Largest default number of threads. Reading, hashing and writing a file are sequential, so more are of no use."""

SWITCH_SECONDS: Final = 0.0005
"""Switch interval of Python's global lock in processes with a GPU or many requests; with the default, one thread keeps
the others, such as the one that feeds the GPU, waiting for longer."""

_AHEAD: Final = 2

P = ParamSpec("P")
T = TypeVar("T")
U = TypeVar("U")


class Threads:
    """A number of threads; a context manager, at whose end all work has ended.

    An exception that leaves the context gives up the work: what has not begun is not begun, and what runs ends with
    ``CancelledError`` where it next calls :func:`beat`.

    Parameters
    ----------
    n_threads : int, optional
        By default, one per usable core, and at most 16. One means that the caller's thread does all work.

    Raises
    ------
    InputError
        The number is below 1, or above 1,024.
    """

    def __init__(self, n_threads: int | None = None) -> None:
        if n_threads is not None:
            check_threads(n_threads)
        wanted = min(usable_cores(), MOST_DEFAULT_THREADS) if n_threads is None else n_threads
        self._given_up = Event()
        self._pool, self.n_threads = _started(wanted, self._given_up) if wanted > 1 else (None, 1)

    def __enter__(self) -> Threads:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._given_up.set()
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def submit(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run a function on one of the threads. With one thread, it has ended when this method returns."""
        if self._pool is not None:
            return self._pool.submit(function, *args, **kwargs)
        done: Future[T] = Future()
        try:
            done.set_result(function(*args, **kwargs))
        except Exception as error:
            done.set_exception(error)
        return done

    def in_order(self, function: Callable[[U], T], items: Iterable[U]) -> Generator[T, None, None]:
        """The results of ``function(item)`` in the order of the items, of which a few are taken ahead: no more
        than it takes to have the first result.

        An exception of an item comes in the place of its result.
        """
        if self._pool is None:
            yield from map(function, items)
            return
        running: deque[Future[T]] = deque()
        try:
            for item in items:
                running.append(self._pool.submit(function, item))
                # One result for each item: if all that are known were given at once, no thread would work meanwhile.
                if running[0].done() or len(running) > self.n_threads + _AHEAD:
                    yield running.popleft().result()
            while running:
                yield running.popleft().result()
        finally:
            for future in running:
                future.cancel()


def _started(n_threads: int, given_up: Event) -> tuple[ThreadPoolExecutor | None, int]:
    """A pool of running threads and their number, as many as the system starts; None and 1 if it starts none."""
    while n_threads > 0:
        pool = ThreadPoolExecutor(n_threads, initializer=given_up_by, initargs=(given_up,))
        begin = Event()
        n_started = 0
        try:
            for n_started in range(n_threads):  # noqa: B007 - the number of threads at an exception
                pool.submit(begin.wait)  # no thread is idle, so each needs a new one
        except RuntimeError:
            begin.set()
            pool.shutdown()
            n_threads = n_started
        else:
            begin.set()
            return pool, n_threads
    return None, 1


_END: Final = object()


def read_ahead(items: Iterator[T]) -> Generator[T, None, None]:
    """The items of an iterator that runs on its own thread, up to two items ahead."""
    started, _ = _started(1, Event())
    if started is None:
        yield from items
        return
    with started as pool:

        def following() -> Future[Any]:
            return pool.submit(next, items, _END)

        coming = deque(following() for _ in range(_AHEAD))
        try:
            while (item := coming.popleft().result()) is not _END:
                coming.append(following())
                yield item
        finally:
            for future in coming:
                future.cancel()


# --- signs of progress ---

_of_thread: Final = local()
_listeners: list[Callable[[], None]] = []


@contextmanager
def listening(listener: Callable[[], None]) -> Iterator[None]:
    """A context in which a function is called at each :func:`beat` of this process, by the thread that works."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def given_up_by(event: Event) -> None:
    """Let :func:`beat` end the work of this thread once an event is set."""
    _of_thread.event = event


def beat(_amount: int = 0) -> None:
    """Say that work goes on; it has the form of a callback for progress.

    Raises
    ------
    CancelledError
        The work of this thread was given up.
    """
    event = getattr(_of_thread, "event", None)
    if event is not None and event.is_set():
        raise CancelledError
    for listener in _listeners:
        listener()
