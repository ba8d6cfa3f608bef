"""Whether what is being read is still wanted: :func:`check_wanted`, between two parts of a long text.

A server reads what clients send in threads (:mod:`swsearch.service.web.readers`). A thread cannot be stopped from
outside, so its work asks.
"""

from __future__ import annotations

import threading
from contextvars import ContextVar
from typing import Final

from swsearch.errors import InputError

NOT_WANTED: ContextVar[threading.Event] = ContextVar("NOT_WANTED")
"""Set when the client has gone or the server stops; without a value, the work is wanted."""
_NEVER: Final = threading.Event()


def check_wanted() -> None:
    """Raise InputError if nobody waits for the result of this thread's work any more."""
    if NOT_WANTED.get(_NEVER).is_set():
        raise InputError("the request ended early")
