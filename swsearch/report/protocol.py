"""The protocol of report formats."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TextIO

from swsearch.hits.result import QueryResult, RunInfo


class ReportFormat(Protocol):
    """Writes one run's results; holds no state between calls.

    Attributes
    ----------
    name : str
        The value of ``--format``.
    binary : bool
        The report is not text: it is written to ``stream.buffer``, and not to a terminal.
    """

    name: str
    binary: bool

    def write(self, run: RunInfo, queries: Iterable[QueryResult], stream: TextIO) -> None:
        """Write the whole report, each query as soon as ``queries`` gives it unless the format's class says otherwise.

        ``stream`` should take surrogate escapes (``errors="surrogateescape"``): headers are written as they were read.
        """
