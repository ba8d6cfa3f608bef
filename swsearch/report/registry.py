"""The registry of report formats: their names, their construction, and the check that a format can represent a run."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from swsearch.errors import InputError
from swsearch.report.protocol import AncestorReport, SubjectReport, TaxonomyReport, TaxonomyUse
from swsearch.words import option

if TYPE_CHECKING:
    from swsearch.hits.result import RunInfo
    from swsearch.hits.subjects import SubjectPart
    from swsearch.report.protocol import ReportFormat
    from swsearch.report.row_filter import RowFilter

_WITH_COLUMNS: Final = {
    "blast6": ("tabular", "Blast6Report"),
    "blast7": ("tabular", "Blast7Report"),
    "tsv": ("tabular", "TsvReport"),
    "csv": ("tabular", "CsvReport"),
    "parquet": ("parquet", "ParquetReport"),
    "lca": ("query_taxa", "LcaReport"),
}
_WITHOUT_COLUMNS: Final = {
    "table": ("table", "TableReport"),
    "json": ("jsons", "JsonReport"),
    "jsonl": ("jsons", "JsonLinesReport"),
    "pairwise": ("pairwise", "PairwiseReport"),
    "sam": ("sam", "SamReport"),
    "a3m": ("anchored", "A3mReport"),
    "sto": ("anchored", "StockholmReport"),
    "afasta": ("anchored", "AlignedFastaReport"),
    "xml": ("blast_documents", "BlastXmlReport"),
    "xml2": ("blast_documents", "Xml2Report"),
    "json2": ("blast_documents", "Json2Report"),
    "html": ("html", "HtmlReport"),
    "fasta": ("hit_sequences", "FastaReport"),
    "multiqc": ("multiqc", "MultiqcReport"),
    "kraken": ("query_taxa", "KrakenReport"),
    "taxa-html": ("taxa_html", "TaxaHtmlReport"),
}
"""Module and class of each format. A format is imported when it is chosen; all together take longer than a search."""
COLUMNS: Final = tuple(_WITH_COLUMNS)
"""The formats whose columns can be selected."""
TAXA: Final = ("lca", "kraken", "taxa-html")
"""The formats about the taxa of queries."""
ALIGNMENTS: Final = ("a3m", "sto", "afasta")
"""The formats that are multiple alignments."""


def _class_of(home: tuple[str, str]) -> Any:
    module, name = home
    return getattr(import_module(f"swsearch.report.{module}"), name)


def formats() -> list[str]:
    """The names that :func:`get_format` accepts.

    >>> print(" ".join(formats()))  # doctest: +NORMALIZE_WHITESPACE
    table blast6 blast7 tsv csv parquet lca json jsonl pairwise sam a3m sto afasta xml xml2 json2 html fasta multiqc
    kraken taxa-html
    """
    return ["table", *_WITH_COLUMNS, *(name for name in _WITHOUT_COLUMNS if name != "table")]


def check_fits(report: ReportFormat, run: RunInfo) -> None:
    """Refuse a run that the format cannot represent, before anything is computed.

    Raises
    ------
    InputError
        The format cannot represent the run.
    """
    _refuse(report.name, run)


def needs_subjects(report: ReportFormat, run: RunInfo) -> bool:
    """Whether the format writes letters of this run's subjects that are only in the database.

    Its queries then need a reader of subjects (:func:`swsearch.hits.result.with_subjects`).
    """
    return isinstance(report, SubjectReport) and report.needs_subjects(run)


def taxonomy_use(report: ReportFormat) -> TaxonomyUse:
    """What the format takes from a taxonomy (:func:`swsearch.hits.result.with_taxonomy`)."""
    return report.taxonomy_use() if isinstance(report, TaxonomyReport) else TaxonomyUse.NONE


def lca_percent(report: ReportFormat) -> float | None:
    """The percentage for the taxa of queries (:class:`~swsearch.report.taxa.CommonAncestors`); None if it has none."""
    return report.lca_percent() if isinstance(report, AncestorReport) else None


def fitting_formats(run: RunInfo) -> list[str]:
    """The names of :func:`formats` that can represent a run."""
    fitting = []
    for name in formats():
        with suppress(InputError):
            _refuse(name, run)
            fitting.append(name)
    return fitting


def _refuse(name: str, run: RunInfo) -> None:
    if name == "sam":
        from swsearch.report.sam import refuse_translated

        refuse_translated(run)
    if name in ALIGNMENTS:
        from swsearch.report.anchored import refuse_translated_query

        refuse_translated_query(run, name)


def get_format(
    name: str,
    fields: Sequence[str] | None = None,
    rows: RowFilter | None = None,
    part: SubjectPart | None = None,
    width: int | None = None,
    lca_top: float | None = None,
) -> ReportFormat:
    """A format by its name.

    Parameters
    ----------
    name : str
        One of :func:`formats`.
    fields : sequence of str, optional
        Columns (:mod:`swsearch.report.fields`); by default, those of the format.
    rows : RowFilter, optional
        Conditions on the rows of a multiple alignment, for ``a3m``, ``sto`` and ``afasta``.
    part : SubjectPart, optional
        The part of each subject that ``fasta`` writes; by default, the whole sequence.
    width : int, optional
        Largest number of characters of a line of ``table``, where identifiers leave that room; 100 by default.
    lca_top : float, optional
        Percentage of the best bit score within which hits count for the taxon of a query
        (:class:`swsearch.report.taxa.CommonAncestors`); 10 by default.

    Raises
    ------
    InputError
        There is no such format or field, the columns, rows, sequences or width of the format cannot be selected,
        ``lca_top`` is out of its range or the report has no taxa of queries, or a library is not installed.
    """
    if part is not None and name != "fasta" and name in formats():
        parts = f"{option('part', flag='--aligned')} and {option('flank')}"
        advice = f"give {parts} with {option('format', 'fasta')}"
        raise InputError(f"format {name} has no parts of subjects to choose; {advice}")
    if width is not None and name != "table" and name in formats():
        advice = f"give {option('width')} with {option('format', 'table')}"
        raise InputError(f"format {name} has lines of any length; {advice}")
    if name in _WITH_COLUMNS:
        if rows:
            raise InputError(_no_rows(name))
        chosen: ReportFormat = _class_of(_WITH_COLUMNS[name])(fields, *([] if lca_top is None else [lca_top]))
        return _with_use_of(lca_top, chosen)
    if name not in _WITHOUT_COLUMNS:
        raise InputError(f"there is no format {name!r}; choose from {', '.join(formats())}")
    if fields is not None:
        raise InputError(f"format {name} has no columns to choose; give {option('fields')} with {', '.join(COLUMNS)}")
    if rows and name not in ALIGNMENTS:
        raise InputError(_no_rows(name))
    report = _class_of(_WITHOUT_COLUMNS[name])
    percent = lca_top if name in TAXA else None
    chosen = report(*(given for given in (part, rows or None, width, percent) if given is not None))
    return _with_use_of(lca_top, chosen)


def _with_use_of(lca_top: float | None, report: ReportFormat) -> ReportFormat:
    """The report; InputError if it does not use ``lca_top``, which is given."""
    if lca_top is not None and lca_percent(report) is None:
        fields = "with these columns " if report.name in COLUMNS else ""
        fields_of_taxa = "the fields lca, lcarank, lcaname and lcalineage"
        there = f"give it with {option('format')} {', '.join(TAXA)}, or with {fields_of_taxa}"
        raise InputError(f"{option('lca_top', lca_top)}: format {report.name} {fields}has no taxa of queries; {there}")
    return report


def _no_rows(name: str) -> str:
    formats = f"{option('format')} {', '.join(ALIGNMENTS)}"
    return f"format {name} has no rows of an alignment to choose; give {option('rows', flag='--msa-…')} with {formats}"
