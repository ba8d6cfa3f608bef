"""The log of a service: one JSON object per line on stderr, for people with `jq` and for log collectors.

Every line has ``time`` (UTC), ``level`` and ``event``. Lines of a request have its ``request_id``, which is also in the
answer's header ``X-Request-ID``. Queries and URLs' parameters are never logged, and of tokens and the keys of links,
wherever a message has them, the first letters alone. A log that ``--log`` names gets the same lines.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
from datetime import UTC, datetime
from typing import Any

from swsearch.command_log import append
from swsearch.words import without_secrets

_lock = threading.Lock()


def log(event: str, level: str = "info", **values: Any) -> None:
    """Write one line; a closed stderr does not end the program."""
    time = datetime.now(UTC).isoformat(timespec="milliseconds")
    line = json.dumps({"time": time, "level": level, "event": event, **values}, default=str)
    line = without_secrets(line)
    append(line, logging.getLevelNamesMapping().get(level.upper(), logging.INFO))
    with _lock:
        try:
            sys.stderr.write(line + "\n")
            sys.stderr.flush()
        except (OSError, ValueError):
            return


class LogLines(logging.Handler):
    """A handler that writes the records of a library's logger as lines of this log."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        log(record.name, record.levelname.lower(), message=record.getMessage())
