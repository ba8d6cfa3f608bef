"""The results of a search as the functions of :mod:`swsearch.api` return them: an iterator of records, or a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Self

from swsearch.closeable import Closeable
from swsearch.database.reader import PackedDatabase
from swsearch.errors import InputError
from swsearch.hits.result import QueryResult, RunInfo, with_subjects
from swsearch.hits.subjects import SubjectReader
from swsearch.organisms import with_organisms
from swsearch.report.fields import select_fields
from swsearch.report.lca import DEFAULT_PERCENT
from swsearch.report.protocol import TaxonomyUse
from swsearch.report.separated import default_fields
from swsearch.report.taxa import greatest_use

if TYPE_CHECKING:
    import pandas
    import pyarrow


class SearchResults(Closeable):
    """The results of a search, one per query, in the order of the queries: an iterator that can be read once.

    Each result is yielded as soon as it is computed. Closing the object ends the search; a run in a store is then
    marked as interrupted.

    Attributes
    ----------
    run : RunInfo
        The record of the run: parameters, scoring, database and program.
    run_id : int or None
        Id of the run in the store; None if nothing is stored.
    """

    def __init__(
        self,
        run: RunInfo,
        run_id: int | None,
        results: Iterator[QueryResult | None],
        opened: ExitStack,
        subjects: SubjectReader | None = None,
    ) -> None:
        self.run = run
        self.run_id = run_id
        self._results = results
        self._opened = opened
        self._subjects = subjects

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> QueryResult:
        try:
            result = next(self._results)
        except BaseException:
            self._opened.close()
            raise
        assert result is not None
        return result

    def with_subjects(self) -> Iterator[QueryResult]:
        """The results with a reader of whole subjects, which can be used until the results end or are closed.

        Raises
        ------
        InputError
            The results are those of several databases (:func:`swsearch.align_families`).
        """
        if self._subjects is None:
            raise InputError("whole subjects are read from one database, and these results are of several")
        return with_subjects(self, self._subjects)

    def with_taxonomy(self) -> Iterator[QueryResult]:
        """The results with the organisms of the subjects (:attr:`QueryResult.taxonomy`); InputError if unknown."""
        return self.completed(False, TaxonomyUse.NEEDED)

    def completed(self, needs_letters: bool, use: TaxonomyUse) -> Iterator[QueryResult]:
        """The results with what a report takes from the database: whole subjects if ``needs_letters``, and organisms.

        Raises
        ------
        InputError
            Whole subjects are asked for of results of several databases, or a taxonomy is needed and there is none.
        """
        results = self.with_subjects() if needs_letters else iter(self)
        database = self._subjects if isinstance(self._subjects, PackedDatabase) else None
        given = [self.run.parameters.get(name) for name in ("taxonomy", "taxid_map")]
        taxonomy, taxid_map = (None if path is None else str(path) for path in given)
        return with_organisms(results, use, database, taxonomy, taxid_map)

    def to_arrow(self, fields: Sequence[str] | None = None, lca_top: float = DEFAULT_PERCENT) -> pyarrow.Table:
        """All hits as a table of Apache Arrow with one row per hit and BLAST's column names.

        It requires ``swsearch[parquet]``.

        Parameters
        ----------
        fields : sequence of str, optional
            Names of columns, as for ``--fields``; by default, those of ``--format tsv``.
        lca_top : float
            For the fields of the query's taxon: as ``--lca-top``.

        Raises
        ------
        InputError
            A field is unknown.
        ModuleNotFoundError
            pyarrow is not installed.
        """
        import pyarrow

        chosen = default_fields(self.run) if fields is None else select_fields(list(fields), lca_top)
        types = {str: pyarrow.string(), int: pyarrow.int64(), float: pyarrow.float64()}
        columns: dict[str, list[Any]] = {field.name: [] for field in chosen}
        results = self.completed(any(field.needs_subjects for field in chosen), greatest_use(f.use for f in chosen))
        for result in results:
            for hit in result.hits:
                for field in chosen:
                    columns[field.name].append(field.value(self.run, result, hit))
        schema = pyarrow.schema([(field.name, types[field.kind]) for field in chosen])
        return pyarrow.table(columns, schema=schema)

    def to_pandas(self, fields: Sequence[str] | None = None, lca_top: float = DEFAULT_PERCENT) -> pandas.DataFrame:
        """All hits as a data frame of pandas, which is required; parameters and errors as for :meth:`to_arrow`."""
        return self.to_arrow(fields, lca_top).to_pandas()

    def close(self) -> None:
        """End the search, and close the database and the engine that it opened."""
        self._opened.close()
