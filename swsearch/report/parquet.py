"""``parquet``: the columns of ``tsv`` with their types, for DuckDB, pandas, Polars and Spark.

The report is written in row groups of at most 65,536 hits, so it needs the memory of one row group and of one query.
Unknown values are null. Text in Parquet is UTF-8; other bytes of a header become U+FFFD. The metadata of the file
contains the run as JSON under the key ``swsearch``, as in the ``json`` report.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from swsearch.errors import InputError
from swsearch.hits.hit import Hit
from swsearch.hits.result import QueryResult, RunInfo
from swsearch.report.base import ReportContext
from swsearch.report.fields import Field, Value
from swsearch.report.jsons import describe_run
from swsearch.report.tabular import ColumnsReport
from swsearch.report.taxa import DEFAULT_PERCENT
from swsearch.words import option

if TYPE_CHECKING:
    import pyarrow

ROWS_IN_GROUP: Final = 65_536

_NOT_UTF8: Final = re.compile("[\ud800-\udfff]")


class ParquetReport(ColumnsReport):
    """One row per hit, with columns compressed by zstd.

    Raises
    ------
    InputError
        pyarrow is not installed, or a field is unknown or repeated.
    """

    def __init__(self, fields: Sequence[str] | None = None, lca_top: float = DEFAULT_PERCENT) -> None:
        if find_spec("pyarrow") is None:
            raise InputError("format parquet needs pyarrow; `pip install 'swsearch[parquet]'` adds it")
        super().__init__(fields, lca_top)
        names = [field.name for field in self.asked]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise InputError(
                f"{option('fields')} names {', '.join(twice)} twice; a column of a parquet file is there once"
            )

    def begin(self, run: RunInfo) -> None:
        """Write the beginning of the file."""
        from pyarrow import parquet

        super().begin(run)
        about = {**describe_run(run), "parameters": run.reported_parameters}
        self._schema = arrow_schema(self._fields, {"swsearch": json.dumps(about, allow_nan=False)})
        self._columns: list[list[Value]] = [[] for _ in self._fields]
        self._writer = parquet.ParquetWriter(self.stream.buffer, self._schema, compression="zstd")

    def write(self, query: QueryResult) -> None:
        """Write each row group as soon as it is full."""
        for hit in self.run.listed(query):
            add_row(self._columns, self._fields, self.context, query, hit)
            if len(self._columns[0]) >= ROWS_IN_GROUP:
                self._write_group()

    def end(self) -> None:
        """Write the last row group."""
        if self._columns[0]:
            self._write_group()

    def close(self) -> None:
        """Write the end of the file."""
        self._writer.close()

    def _write_group(self) -> None:
        import pyarrow

        arrays = map(pyarrow.array, self._columns, self._schema.types)
        self._writer.write_batch(pyarrow.record_batch([*arrays], schema=self._schema))
        for column in self._columns:
            column.clear()


def add_row(
    columns: Sequence[list[Value]], fields: Sequence[Field], context: ReportContext, query: QueryResult, hit: Hit
) -> None:
    """Add the values of a hit to the columns of the fields, as Apache Arrow takes them: text is UTF-8."""
    for column, field in zip(columns, fields, strict=True):
        value = field.value(context, query, hit)
        column.append(_NOT_UTF8.sub("\ufffd", value) if isinstance(value, str) else value)


def arrow_schema(fields: Sequence[Field], metadata: dict[str, str] | None = None) -> pyarrow.Schema:
    """The names and types of fields as columns of Apache Arrow."""
    import pyarrow

    types: dict[type, Any] = {str: pyarrow.string(), int: pyarrow.int64(), float: pyarrow.float64()}
    return pyarrow.schema([(field.name, types[field.kind]) for field in fields], metadata)
