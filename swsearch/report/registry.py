"""The report formats by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from swsearch.errors import InputError
from swsearch.hits.result import RunInfo
from swsearch.report.blast import Blast6Report, Blast7Report
from swsearch.report.blast_xml import BlastXmlReport
from swsearch.report.html import HtmlReport
from swsearch.report.jsons import JsonLinesReport, JsonReport
from swsearch.report.pairwise import PairwiseReport
from swsearch.report.parquet import ParquetReport
from swsearch.report.protocol import ReportFormat
from swsearch.report.sam import SamReport, refuse_translated
from swsearch.report.separated import CsvReport, TsvReport
from swsearch.report.table import TableReport

_WITH_COLUMNS: Final[dict[str, Callable[[Sequence[str] | None], ReportFormat]]] = {
    "blast6": Blast6Report,
    "blast7": Blast7Report,
    "tsv": TsvReport,
    "csv": CsvReport,
    "parquet": ParquetReport,
}
_WITHOUT_COLUMNS: Final[dict[str, Callable[[], ReportFormat]]] = {
    "table": TableReport,
    "json": JsonReport,
    "jsonl": JsonLinesReport,
    "pairwise": PairwiseReport,
    "sam": SamReport,
    "xml": BlastXmlReport,
    "html": HtmlReport,
}


def formats() -> list[str]:
    """Names that :func:`get_format` takes.

    >>> formats()
    ['table', 'blast6', 'blast7', 'tsv', 'csv', 'parquet', 'json', 'jsonl', 'pairwise', 'sam', 'xml', 'html']
    """
    return ["table", *_WITH_COLUMNS, *(name for name in _WITHOUT_COLUMNS if name != "table")]


def check_fits(report: ReportFormat, run: RunInfo) -> None:
    """Refuse a run that the format cannot hold, before anything is computed.

    Raises
    ------
    InputError
        It cannot.
    """
    if isinstance(report, SamReport):
        refuse_translated(run)


def get_format(name: str, fields: Sequence[str] | None = None) -> ReportFormat:
    """A format by its name.

    Parameters
    ----------
    name : str
        One of :func:`formats`.
    fields : sequence of str, optional
        Columns (:mod:`swsearch.report.fields`); the format's own where not given.

    Raises
    ------
    InputError
        There is no such format or field, the format has no columns to choose, or needs a library that is missing.
    """
    if name in _WITH_COLUMNS:
        return _WITH_COLUMNS[name](fields)
    if name not in _WITHOUT_COLUMNS:
        raise InputError(f"there is no format {name!r}; choose from {', '.join(formats())}")
    if fields is not None:
        raise InputError(f"format {name} has no columns to choose; give --fields with {', '.join(_WITH_COLUMNS)}")
    return _WITHOUT_COLUMNS[name]()
