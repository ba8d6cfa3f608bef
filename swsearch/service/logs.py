"""The log of a service: one JSON object per line on stderr, for people with `jq` and for log collectors.

Every line has ``time`` (UTC), ``level`` and ``event``. Lines of a request have its ``request_id``, which is also in the
answer's header ``X-Request-ID``. Queries and URLs' parameters are never logged, and of tokens and the keys of links,
wherever a message has them, the first letters alone. A log that ``--log`` names gets the same lines.
"""

from __future__ import annotations

import json
import logging
import math
import sys
import threading
import time
import traceback
from datetime import UTC, datetime
from typing import Any, Final

from swsearch.command_log import append
from swsearch.words import without_secrets

SELDOM_SECONDS: Final = 60.0
"""Time between two lines on the same state."""
_MOST_SELDOM: Final = 1000
"""Number of states that are remembered."""
_IS_LOGGED: Final = "is_in_log_of_swsearch"
"""Attribute of an error that has been logged."""
_lock = threading.Lock()
_seldom: dict[tuple[str, str], tuple[float, int]] = {}
"""When a line was last written, and how many were left out since, by event and message."""


def log(event: str, level: str = "info", **values: Any) -> None:
    """Write one line; a closed stderr does not end the program."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    line = json.dumps({"time": now, "level": level, "event": event, **values}, default=str)
    line = without_secrets(line)
    append(line, logging.getLevelNamesMapping().get(level.upper(), logging.INFO))
    with _lock:
        try:
            sys.stderr.write(line + "\n")
            sys.stderr.flush()
        except (OSError, ValueError):
            return


def log_seldom(event: str, **values: Any) -> None:
    """Write one line about an error, unless one with the same event and message was written within the last minute.

    It is for a state that lasts, such as a full disk, which is met again and again. The line after the minute says how
    many were left out.
    """
    key, now = (event, str(values.get("message"))), time.monotonic()
    with _lock:
        written, n_left_out = _seldom.get(key, (-math.inf, 0))
        is_due = now - written >= SELDOM_SECONDS
        if len(_seldom) >= _MOST_SELDOM:
            _seldom.clear()
        _seldom[key] = (now, 0) if is_due else (written, n_left_out + 1)
    if is_due:
        log(event, "error", **values, **({"left_out": n_left_out} if n_left_out else {}))


def log_exception(event: str, error: BaseException, **values: Any) -> None:
    """Write one line with the traceback of an error, unless there is one already.

    The framework raises an error again after its answer, and the server then logs it too.
    """
    if getattr(error, _IS_LOGGED, False):
        return
    setattr(error, _IS_LOGGED, True)
    text = "".join(traceback.format_exception(error))
    log(event, "error", **values, message=f"{type(error).__name__}: {error}", traceback=text)


class LogLines(logging.Handler):
    """A handler that writes the records of a library's logger as lines of this log."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        error = record.exc_info[1] if record.exc_info else None
        if error is None:
            log(record.name, record.levelname.lower(), message=record.getMessage())
        else:
            log_exception(record.name, error)
