"""The events of a run as JSON lines, for scripts that monitor it."""

from __future__ import annotations

import json
import time
from typing import Any, TextIO


class EventLog:
    """JSON lines for scripts, one per event, each flushed at once; without a stream nothing is written.

    Every line has ``event`` (``start``, ``query``, ``failed``, ``end``) and ``seconds`` since the start.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self._began = time.monotonic()

    def write(self, event: str, **values: Any) -> None:
        """Write one event."""
        if self._stream is not None:
            seconds = round(time.monotonic() - self._began, 3)
            self._stream.write(json.dumps({"event": event, "seconds": seconds, **values}) + "\n")
            self._stream.flush()
