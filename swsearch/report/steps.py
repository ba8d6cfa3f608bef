"""The steps of a run: what is done with each result, in the order of the queries.

A run is a loop over its results, in which every step is given each of them::

    for result in results:
        for step in steps:
            step.write(result)

The report is a step, and so are files of profiles or of queries beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TextIO

from swsearch.hits.result import QueryResult, RunInfo
from swsearch.report.base import Report, ReportContext


class Step:
    """Something that is done with each result of a run; the methods here do nothing."""

    def begin(self, run: RunInfo) -> None:
        """Prepare for the results of a run, which is open."""

    def write(self, result: QueryResult) -> None:
        """Take a result."""

    def end(self) -> None:
        """Take notice that all results were given."""

    def close(self) -> None:
        """Release what :meth:`begin` opened; after an error, too."""


def perform(steps: Sequence[Step], run: RunInfo, results: Iterable[QueryResult]) -> None:
    """Give all results to each step, in the order of the steps."""
    begun = []
    try:
        for step in steps:
            step.begin(run)
            begun.append(step)
        for result in results:
            for step in steps:
                step.write(result)
        for step in steps:
            step.end()
    finally:
        for step in begun:
            step.close()


class ReportStep(Step):
    """Writes a report.

    Parameters
    ----------
    report : Report
    context : ReportContext
        Its run is replaced by that of :meth:`begin`.
    stream : text stream
        Opened for binary reports too, which use its ``buffer``; the caller closes it.
    """

    def __init__(self, report: Report, context: ReportContext, stream: TextIO) -> None:
        self._report = report
        self._context = context
        self._stream = stream

    def begin(self, run: RunInfo) -> None:
        """Write what precedes the first query."""
        self._report.begin(replace(self._context, run=run), self._stream)

    def write(self, result: QueryResult) -> None:
        """Write the result of a query."""
        self._report.write(result)

    def end(self) -> None:
        """Write what follows the last query."""
        self._report.end()

    def close(self) -> None:
        """Release what the report opened."""
        self._report.close()
