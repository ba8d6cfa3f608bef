"""Signs of progress of long work: :func:`beat`, called between its parts.

The worker of a search service listens (:func:`listening`): its server ends a worker that has made no progress for
minutes, and a lease is not extended for it. So all work that may take a minute beats: scoring, alignments, filters and
translation. In any other program, nobody listens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

_listeners: list[Callable[[], None]] = []


@contextmanager
def listening(listener: Callable[[], None]) -> Iterator[None]:
    """A context in which a function is called at each :func:`beat` of this process, by the thread that works."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def beat(_amount: int = 0) -> None:
    """Say that work goes on; it has the form of a callback for progress."""
    for listener in _listeners:
        listener()
