"""What a report is: an object that is given a run, then the results of its queries one by one, and writes them.

:class:`ReportContext` is what a report may read beside the results. :mod:`swsearch.report.formats` has the table of the
formats.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

from swsearch.errors import InputError
from swsearch.hits.result import QueryResult, RunInfo
from swsearch.report.formats import FORMATS, Format, TaxonomyUse
from swsearch.sequences.fasta_text import SubjectReader
from swsearch.words import option

if TYPE_CHECKING:  # a report that uses no taxonomy need not import it
    from swsearch.taxonomy.subject_taxa import TaxonomyOfSubjects


@dataclass(frozen=True)
class ReportContext:
    """What a report reads beside the results.

    Attributes
    ----------
    run : RunInfo
    subjects : SubjectReader or None
        The database, for reports with letters of subjects that the records of hits do not contain.
    taxonomy : TaxonomyOfSubjects or None
        The organisms of the subjects, if they are known.
    """

    run: RunInfo
    subjects: SubjectReader | None = None
    taxonomy: TaxonomyOfSubjects | None = None

    @property
    def needed_subjects(self) -> SubjectReader:
        """The reader of subjects.

        Raises
        ------
        InputError
            There is none.
        """
        if self.subjects is None:
            raise InputError("the sequences of these hits are in the database of the search, which was not opened")
        return self.subjects

    @property
    def needed_taxonomy(self) -> TaxonomyOfSubjects:
        """The taxonomy.

        Raises
        ------
        InputError
            There is none.
        """
        if self.taxonomy is None:
            raise InputError(f"names and lineages of taxa need a taxonomy; give one with {option('taxonomy')}")
        return self.taxonomy


class Report(ABC):
    """A report in one format: :meth:`begin`, then :meth:`write` for each query, then :meth:`end`; :meth:`close` always.

    Each query is written when it is given, unless the class states otherwise. A report can be begun again after its
    end.

    Attributes
    ----------
    name : str
        The name of the format.
    context : ReportContext
        What :meth:`begin` was given.
    stream : text stream
        Where the report is written. It should accept surrogate escapes (``errors="surrogateescape"``), because headers
        are written as they were read.
    """

    name: str
    context: ReportContext
    stream: TextIO

    @property
    def format(self) -> Format:
        """The row of the table of formats."""
        return FORMATS[self.name]

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
    def taxonomy_use(self) -> TaxonomyUse:
        """What the report takes from a taxonomy."""
        return self.format.taxonomy

    @property
    def lca_top(self) -> float | None:
        """The percentage of the best bit score for the taxa of queries; None if the report assigns no query."""
        return None

    # --- what it writes ---

    def begin(self, context: ReportContext, stream: TextIO) -> None:
        """Write what precedes the first query.

        Raises
        ------
        InputError
            The format cannot represent the run.
        """
        self.check_fits(context.run)
        self.context = context
        self.stream = stream

    @abstractmethod
    def write(self, query: QueryResult) -> None:
        """Write the result of a query."""

    def end(self) -> None:  # noqa: B027 - most formats end with the last query
        """Write what follows the last query."""

    def close(self) -> None:  # noqa: B027 - most formats open nothing
        """Release what :meth:`begin` opened; for a report that is not complete, too."""

    def write_all(self, context: ReportContext, queries: Iterable[QueryResult], stream: TextIO) -> None:
        """Write the complete report; each query as soon as ``queries`` yields it."""
        self.begin(context, stream)
        try:
            for query in queries:
                self.write(query)
            self.end()
        finally:
            self.close()
