"""The protocol of report formats: a format writes a run and its query results to a stream."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Protocol, TextIO, runtime_checkable

from swsearch.hits.result import QueryResult, RunInfo


class TaxonomyUse(IntEnum):
    """What a report takes from a taxonomy (:func:`swsearch.hits.result.with_taxonomy`)."""

    NONE = 0
    IF_KNOWN = 1
    """Ids and names, which headers may state as well."""
    NEEDED = 2
    """What no header states."""


class ReportFormat(Protocol):
    """A format, which writes the results of a run; it has no state between calls.

    Attributes
    ----------
    name : str
        The value of ``--format``.
    binary : bool
        Whether the report is binary. It is then written to ``stream.buffer``, and not to a terminal.
    """

    name: str
    binary: bool

    def write(self, run: RunInfo, queries: Iterable[QueryResult], stream: TextIO) -> None:
        """Write the complete report; each query as soon as ``queries`` yields it, unless the class states otherwise.

        ``stream`` should accept surrogate escapes (``errors="surrogateescape"``), because headers are written as they
        were read.
        """


@runtime_checkable
class SubjectReport(ReportFormat, Protocol):
    """A format that may write letters of subjects that the records of hits do not contain."""

    def needs_subjects(self, run: RunInfo) -> bool:
        """Whether the queries of this run need a reader (:func:`swsearch.hits.result.with_subjects`)."""
        ...


@runtime_checkable
class TaxonomyReport(ReportFormat, Protocol):
    """A format that may write what a taxonomy has about the subjects."""

    def taxonomy_use(self) -> TaxonomyUse:
        """What the report takes from a taxonomy."""
        ...


@runtime_checkable
class AncestorReport(ReportFormat, Protocol):
    """A format that may assign queries to taxa (:class:`swsearch.report.taxa.CommonAncestors`)."""

    def lca_percent(self) -> float | None:
        """The percentage of the best bit score within which hits count; None if the report assigns no query."""
        ...
