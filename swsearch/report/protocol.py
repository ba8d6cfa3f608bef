"""What a report format is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TextIO

from swsearch.hits.result import QueryResult, RunInfo


class ReportFormat(Protocol):
    """Writes one run's results; holds no state between calls.

    Attributes
    ----------
    name : str
        As ``--format`` takes it.
    binary : bool
        The report is no text: it goes to ``stream.buffer``, and must not be shown on a terminal.
    """

    name: str
    binary: bool

    def write(self, run: RunInfo, queries: Iterable[QueryResult], stream: TextIO) -> None:
        """Write the whole report, each query as soon as ``queries`` gives it unless the format's class says otherwise.

        ``stream`` should take surrogate escapes (``errors="surrogateescape"``): headers are written as they were read.
        """
