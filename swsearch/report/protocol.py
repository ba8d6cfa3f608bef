"""What a report format is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TextIO

from swsearch.hits.result import QueryResult, RunInfo


class ReportFormat(Protocol):
    """Writes one run's results as text; holds no state between calls."""

    name: str

    def write(self, run: RunInfo, queries: Iterable[QueryResult], stream: TextIO) -> None:
        """Write the whole report, each query as soon as ``queries`` gives it.

        ``stream`` should take surrogate escapes (``errors="surrogateescape"``): headers are written as they were read.
        """
