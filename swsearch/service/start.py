"""What one of several web processes is started with: :class:`Start`."""

from __future__ import annotations

import base64
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from swsearch.service.settings import Settings

GRACE_SECONDS: Final = 5
"""Time that open connections have to end when the server stops."""
METRICS_VARIABLE: Final = "PROMETHEUS_MULTIPROC_DIR"
"""Environment variable of the folder in which several web processes count."""


@dataclass(frozen=True)
class Start:
    """The start of a web process.

    Attributes
    ----------
    settings : Settings
    number : int
        0 for the first one, which also deletes what has expired.
    listening, memory : int
        Descriptors of the socket, and of the memory that the web processes share.
    metrics : Path
        Folder in which each of them counts.
    supervisor : int
        Process id of their parent.
    """

    settings: Settings
    number: int
    listening: int
    memory: int
    metrics: Path
    supervisor: int

    def line(self) -> bytes:
        """The first line of the input of the process; the address of a store may have a password."""
        return base64.b64encode(pickle.dumps(self)) + b"\n"

    @staticmethod
    def of(word: str) -> Start:
        """The start of such a line."""
        start: Start = pickle.loads(base64.b64decode(word))
        return start
