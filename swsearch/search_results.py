"""The results of a search as the functions of :mod:`swsearch.api` return them: records that are kept, or a table."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from copy import copy
from dataclasses import replace
from html import escape
from itertools import islice, tee
from typing import TYPE_CHECKING, Any, Final, cast, overload

from swsearch.arguments import names, needed_module, number
from swsearch.database.opening import open_database
from swsearch.database.reader import PackedDatabase
from swsearch.errors import InputError
from swsearch.hits.hit import HitSource
from swsearch.hits.result import QueryResult, RunInfo
from swsearch.report.base import Report, ReportContext
from swsearch.report.formats import Use
from swsearch.report.query_taxa import LcaReport
from swsearch.report.readable import html_table
from swsearch.report.tabular import TsvReport
from swsearch.report.taxa import DEFAULT_PERCENT
from swsearch.report_context import report_context
from swsearch.typing import Closeable
from swsearch.words import counted

if TYPE_CHECKING:
    import pandas
    import pyarrow

    from swsearch.taxonomy.subject_taxa import TaxonomyOfSubjects

HEAD: Final = 20
"""Number of hits that a notebook shows of the results."""


class _Search(Iterator[QueryResult]):
    """The search behind the results: it computes each result once, for all who read them.

    After its end, each further result is the error that ended it, so that nobody takes a part of the results for all.
    """

    def __init__(self, run: RunInfo, results: Iterator[QueryResult | None], opened: ExitStack, n_queries: int) -> None:
        self.lock = threading.RLock()
        """Held while a result is computed or read."""
        self.n_queries = n_queries
        self._run = run
        self._results = results
        self._opened = opened
        self.n_read = 0
        """Number of queries that are computed."""
        self._is_computing = False
        self._must_close = False
        self._end: Exception | None = None

    @property
    def is_finished(self) -> bool:
        """Whether no further result is computed."""
        return self._end is not None

    def refuse_callback(self) -> None:
        """Refuse a callback of the search that reads its results; the lock is held."""
        if self._is_computing:
            raise InputError("results cannot be read in a callback of the search, such as progress; read them after it")

    def __next__(self) -> QueryResult:
        if self._end is not None:
            raise self._end.with_traceback(None)
        self._is_computing = True
        try:
            result = next(self._results)
        except Exception as error:
            self._finish(error)
            raise
        except BaseException:
            self._finish(InputError(f"the search was interrupted {self._progress()}; search again"))
            raise
        finally:
            self._is_computing = False
        assert result is not None
        self.n_read += 1
        if self._must_close:
            self.close()
        source = HitSource(self._run, result.letters)  # with which hits can show their alignments
        return replace(result, hits=tuple(replace(hit, source=source) for hit in result.hits))

    def close(self) -> None:
        """End the search; if it is computing a result, after this result."""
        if not self.lock.acquire(blocking=False):
            self._must_close = True
            return
        try:
            if self._is_computing:
                self._must_close = True
            else:
                self._finish(InputError(f"the results were closed {self._progress()}; search again"))
        finally:
            self.lock.release()

    def _finish(self, end: Exception) -> None:
        if self._end is None:
            self._end = StopIteration() if self.n_read == self.n_queries else end
        self._opened.close()

    def _progress(self) -> str:
        return f"after {self.n_read:,} of {counted(self.n_queries, 'query', 'queries')}"


class _Reading(Iterator[QueryResult]):
    """One reading of the results. Threads that share it share its results: each one is given to one thread."""

    def __init__(self, search: _Search, results: Iterator[QueryResult]) -> None:
        self._search = search
        self._results = results

    def __next__(self) -> QueryResult:
        with self._search.lock:
            self._search.refuse_callback()
            return next(self._results)


class SearchResults(Closeable):
    """The results of a search, one per query, in the order of the queries; they can be read any number of times.

    Each result is computed when it is first read, and kept in memory for further readings: each loop, table or report
    begins with the first query. The results are kept as long as this object is in use. Nothing is kept by a loop over
    the call itself, ``for result in swsearch.search_database(...)``, nor by :meth:`stream`, so that the memory does not
    depend on the number of queries. ``len(results)`` is the number of queries, and ``results[0]`` the result of the
    first one. ``next(results)`` reads from a place that belongs to the object; no other reading depends on it.

    Threads may share the object: each thread that loops over it gets all results.

    Closing the object ends the search, and a run in a store is then marked as interrupted. What was read before
    remains; reading further raises an error.

    Attributes
    ----------
    run : RunInfo
        The record of the run: parameters, scoring, database and program.
    run_id : int or None
        Id of the run in the store; None if nothing is stored.

    Raises
    ------
    InputError
        While results are read: they were closed before all were computed, or they were streamed and not kept.
    DatabaseError
        While results are read: the database was closed, or it is needed again and has changed.
    """

    def __init__(
        self,
        run: RunInfo,
        run_id: int | None,
        results: Iterator[QueryResult | None],
        opened: ExitStack,
        n_queries: int,
        subjects: PackedDatabase | None = None,
    ) -> None:
        self.run = run
        self.run_id = run_id
        self._search = _Search(run, results, opened, n_queries)
        (self._kept,) = tee(self._search, 1)  # never advanced, so it holds all results from the first one
        self._own: _Reading | None = None
        self._is_streamed = False
        self._subjects = subjects
        self._opened_again = ExitStack()

    def __len__(self) -> int:
        return self._search.n_queries

    def __repr__(self) -> str:
        queries = counted(len(self), "query", "queries")
        return f"<SearchResults of {queries} in {self.run.database.name}, {self._search.n_read:,} computed>"

    def _repr_html_(self) -> str:
        """The first hits as a table for a notebook, which computes the queries that have them."""
        shown: list[QueryResult] = []
        n_hits = 0
        with self._search.lock:
            if self._is_streamed or (self._search.is_finished and self._search.n_read < len(self)):
                return f"<p>{escape(repr(self))}</p>"
        for result in self:
            shown.append(result)
            n_hits += len(result.hits)
            if n_hits >= HEAD:
                break
        return f"<p>{escape(repr(self))}</p>\n{html_table(self.run, shown, HEAD)}"

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[QueryResult]:
        with self._search.lock:
            if self._is_streamed:
                raise InputError("the results were streamed, and not kept; search again, or read them from a store")
            return _Reading(self._search, copy(self._kept))

    @overload
    def __getitem__(self, which: int) -> QueryResult: ...

    @overload
    def __getitem__(self, which: slice) -> list[QueryResult]: ...

    def __getitem__(self, which: int | slice) -> QueryResult | list[QueryResult]:
        """The result of one query, by its place from 0 or from the end, or those of several; computed as far as needed.

        Raises
        ------
        IndexError
            There is no query at this place.
        """
        places = range(len(self))
        if isinstance(which, slice):
            wanted = places[which]
            computed = list(islice(self, max(wanted, default=-1) + 1))
            return [computed[place] for place in wanted]
        try:
            place = places[which]
        except IndexError:
            raise IndexError(f"there is no result {which} of {counted(len(self), 'query', 'queries')}") from None
        return next(islice(self, place, None))

    def __next__(self) -> QueryResult:
        with self._search.lock:
            if self._own is None or self._is_streamed:
                self._own = cast(_Reading, iter(self))
            return next(self._own)

    def stream(self) -> Iterator[QueryResult]:
        """All results, once: a result is not kept after it is yielded, and the object cannot be read again.

        Raises
        ------
        InputError
            The results were streamed before.
        """
        with self._search.lock:
            reading = iter(self)
            self._is_streamed = True
            (self._kept,), self._own = tee(self._search, 1), None
            return reading

    def subjects(self) -> PackedDatabase:
        """The database of the search, as a reader of whole subjects: ``letters(hit.subject_index)``.

        The end of the first reading closes the database; a call after it opens it again, until the results are closed.

        Raises
        ------
        InputError
            The results are those of several databases (:func:`swsearch.align_families`).
        DatabaseError
            The database is needed again, and has changed or is not there any more.
        """
        subjects = self._database()
        if subjects is None:
            raise InputError("whole subjects are read from one database, and these results are of several")
        return subjects

    def _database(self) -> PackedDatabase | None:
        """The database of the search, which is opened again if it was closed; None if there were several searches."""
        with self._search.lock:
            if self._subjects is not None and self._subjects.is_closed and self._search.is_finished:
                self._subjects = self._opened_again.enter_context(
                    open_database(self.run.database.paths, searched=self.run.database.digests)
                )
            return self._subjects

    def taxonomy(self) -> TaxonomyOfSubjects:
        """The organisms of the subjects: ``of(hit.subject_index, hit.subject_header)``; InputError if unknown."""
        return self.context_of(LcaReport()).needed_taxonomy

    def context_of(self, report: Report) -> ReportContext:
        """What a report of these results reads beside them.

        Raises
        ------
        InputError
            Whole subjects are asked for of results of several databases, or a taxonomy is needed and there is none.
        """
        needs_subjects = report.needs_subjects(self.run)
        database = self.subjects() if needs_subjects else None
        if database is None and report.taxonomy_use is not Use.NONE:
            database = self._database()
        given = [self.run.parameters.get(name) for name in ("taxonomy", "taxid_map")]
        taxonomy, taxid_map = (None if path is None else str(path) for path in given)
        return report_context(report, self.run, database, taxonomy, taxid_map)

    def to_arrow(self, fields: Sequence[str] | None = None, lca_top: float = DEFAULT_PERCENT) -> pyarrow.Table:
        """All hits as a table of Apache Arrow with one row per hit and BLAST's column names.

        It requires ``swsearch[parquet]``. Text is UTF-8; other bytes of a header become U+FFFD.

        Parameters
        ----------
        fields : sequence of str, optional
            Names of columns, as for ``--fields``; by default, those of ``--format tsv``.
        lca_top : float
            For the fields of the query's taxon: as ``--lca-top``.

        Raises
        ------
        InputError
            A field is unknown, or pyarrow is not installed.
        """
        pyarrow = needed_module("pyarrow", "to_arrow")
        from swsearch.report.parquet import add_row, arrow_schema

        number("lca_top", lca_top)
        table = TsvReport(None if fields is None else names("fields", fields), lca_top)
        chosen = table.fields(self.run)
        columns: list[list[Any]] = [[] for _ in chosen]
        context = replace(self.context_of(table), ancestors=table.ancestors)
        for result in self:
            for hit in self.run.listed(result):
                add_row(columns, chosen, context, result, hit)
        schema = arrow_schema(chosen)
        return pyarrow.table([*map(pyarrow.array, columns, schema.types)], schema=schema)

    def to_pandas(self, fields: Sequence[str] | None = None, lca_top: float = DEFAULT_PERCENT) -> pandas.DataFrame:
        """All hits as a data frame of pandas, which is required; parameters and errors as for :meth:`to_arrow`."""
        needed_module("pandas", "to_pandas")
        return self.to_arrow(fields, lca_top).to_pandas()

    def to_polars(self, fields: Sequence[str] | None = None, lca_top: float = DEFAULT_PERCENT) -> Any:
        """All hits as a data frame of Polars, which is required; parameters and errors as for :meth:`to_arrow`."""
        polars = needed_module("polars", "to_polars")
        return polars.from_arrow(self.to_arrow(fields, lca_top))

    def close(self) -> None:
        """End the search, and close the database and the engine that it opened."""
        self._search.close()
        self._opened_again.close()
