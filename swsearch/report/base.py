"""The steps of a run: what is done with each result, in the order of the queries; a report writes them.

A run is a loop over its results, in which every step is given each of them::

    for result in results:
        for step in steps:
            step.write(result)

Files of profiles or of queries beside the report are steps, too. :class:`ReportContext` is what a report may read
beside the results. :mod:`swsearch.report.formats` has the table of the formats.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TextIO

from swsearch.errors import InputError
from swsearch.hits.result import QueryResult, RunInfo
from swsearch.report.formats import FORMATS, Format, Use
from swsearch.sequences.fasta_text import SubjectReader
from swsearch.words import option

if TYPE_CHECKING:  # a report that uses no taxonomy need not import it
    from swsearch.report.taxa import CommonAncestors
    from swsearch.taxonomy.subject_taxa import TaxonomyOfSubjects


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


@dataclass(frozen=True)
class ReportContext:
    """What a report reads beside the results.

    ``subjects`` is the database, for letters of subjects that the records of hits do not contain; ``taxonomy`` has the
    organisms of the subjects, if they are known. ``ancestors`` is that of the report (:attr:`Report.ancestors`).
    """

    run: RunInfo
    subjects: SubjectReader | None = None
    taxonomy: TaxonomyOfSubjects | None = None
    ancestors: CommonAncestors | None = None

    @property
    def needed_subjects(self) -> SubjectReader:
        """The reader of subjects; raises InputError if there is none."""
        if self.subjects is None:
            raise InputError("the sequences of these hits are in the database of the search, which was not opened")
        return self.subjects

    @property
    def needed_taxonomy(self) -> TaxonomyOfSubjects:
        """The taxonomy; raises InputError if there is none."""
        if self.taxonomy is None:
            raise InputError(f"names and lineages of taxa need a taxonomy; give one with {option('taxonomy')}")
        return self.taxonomy


class Report(Step, ABC):
    """A report in one format: :meth:`begin`, then :meth:`write` for each query, then :meth:`end`; :meth:`close` always.

    Each query is written when it is given, unless the class states otherwise. A report can be begun again after its
    end.

    Attributes
    ----------
    context : ReportContext
        What the report reads beside the results; its run is that of :meth:`begin`.
    stream : text stream
        Where the report is written; binary reports use its ``buffer``. It should accept surrogate escapes
        (``errors="surrogateescape"``), because headers are written as they were read. The caller closes it.
    ancestors : CommonAncestors or None
        Assigns queries to taxa; None if the report assigns none.
    """

    context: ReportContext
    stream: TextIO
    ancestors: CommonAncestors | None = None

    @property
    def format(self) -> Format:
        """The row of the table of formats, which names this class."""
        path = f"{type(self).__module__.removeprefix('swsearch.report.')}.{type(self).__name__}"
        return next(form for form in FORMATS.values() if form.report == path)

    @property
    def name(self) -> str:
        """The name of the format."""
        return self.format.name

    @property
    def binary(self) -> bool:
        """Whether the report is written to ``stream.buffer``."""
        return self.format.binary

    @property
    def run(self) -> RunInfo:
        """The run that is reported."""
        return self.context.run

    # --- what the report needs ---

    def check_fits(self, run: RunInfo) -> None:
        """Refuse a run that the report cannot represent, before anything is computed.

        Raises
        ------
        InputError
            The format cannot represent the run, or the run has no values of a field.
        """
        self.format.check_fits(run)

    def needs_subjects(self, run: RunInfo) -> bool:
        """Whether the report of a run has letters of subjects that the records of hits do not contain."""
        return False

    @property
    def taxonomy_use(self) -> Use:
        """What the report takes from a taxonomy."""
        return self.format.taxonomy

    # --- what it writes ---

    def write_to(self, stream: TextIO, context: ReportContext) -> None:
        """Say where the report is written, and what it reads beside the results; before :meth:`begin`."""
        self.stream = stream
        self.context = replace(context, ancestors=self.ancestors)

    def begin(self, run: RunInfo) -> None:
        """Write what precedes the first query.

        Raises
        ------
        InputError
            The format cannot represent the run.
        """
        self.check_fits(run)
        self.context = replace(self.context, run=run)
        self._has_queries = False

    def write_between(self, text: str) -> None:
        """Write what separates two queries, unless the query that follows is the first."""
        if self._has_queries:
            self.stream.write(text)
        self._has_queries = True

    @abstractmethod
    def write(self, query: QueryResult) -> None:
        """Write the result of a query."""

    def write_all(self, context: ReportContext, queries: Iterable[QueryResult], stream: TextIO) -> None:
        """Write the complete report; each query as soon as ``queries`` yields it."""
        self.write_to(stream, context)
        perform([self], context.run, queries)
