"""The registry of report formats: their names, their construction, and the check that a format can represent a run."""

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
    """The names that :func:`get_format` accepts.

    >>> formats()
    ['table', 'blast6', 'blast7', 'tsv', 'csv', 'parquet', 'json', 'jsonl', 'pairwise', 'sam', 'xml', 'html']
    """
    return ["table", *_WITH_COLUMNS, *(name for name in _WITHOUT_COLUMNS if name != "table")]


def check_fits(report: ReportFormat, run: RunInfo) -> None:
    """Refuse a run that the format cannot represent, before anything is computed.

    Raises
    ------
    InputError
        The format cannot represent the run.
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
        Columns (:mod:`swsearch.report.fields`); by default, those of the format.

    Raises
    ------
    InputError
        There is no such format or field, the columns of the format cannot be selected, or a library is not installed.
    """
    if name in _WITH_COLUMNS:
        return _WITH_COLUMNS[name](fields)
    if name not in _WITHOUT_COLUMNS:
        raise InputError(f"there is no format {name!r}; choose from {', '.join(formats())}")
    if fields is not None:
        raise InputError(f"format {name} has no columns to choose; give --fields with {', '.join(_WITH_COLUMNS)}")
    return _WITHOUT_COLUMNS[name]()
