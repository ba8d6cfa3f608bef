"""Signs of progress of long work: :func:`beat`, called between its parts.

The worker of a search service listens (:func:`listening`): its server ends a worker that has made no progress for
minutes, and a lease is not extended for it. So all work that may take a minute beats: scoring, alignments, filters and
translation. In any other program, nobody listens.

A thread whose work may be given up (:func:`given_up_by`) ends it at the next beat: only the main thread is interrupted
by signals.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

_of_thread: Final = threading.local()
_listeners: list[Callable[[], None]] = []


@contextmanager
def listening(listener: Callable[[], None]) -> Iterator[None]:
    """A context in which a function is called at each :func:`beat` of this process, by the thread that works."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def given_up_by(event: threading.Event) -> None:
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
        from concurrent.futures import CancelledError  # only here: most programs have no such thread

        raise CancelledError
    for listener in _listeners:
        listener()
