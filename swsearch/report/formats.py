"""The table of report formats: what each is called, what it writes, what it needs and which options it takes.

A new format is a row of the table, and a :class:`swsearch.report.base.Report` in a module of its own. Commands,
downloads, menus, completion and the suggestions from the names of files read the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from swsearch.errors import InputError
from swsearch.words import option

if TYPE_CHECKING:
    from swsearch.hits.result import RunInfo
    from swsearch.report.base import Report
    from swsearch.report.row_filter import RowFilter
    from swsearch.sequences.fasta_text import SubjectPart

_TEXT: Final = "text/plain; charset=utf-8"
_TABBED: Final = "text/tab-separated-values; charset=utf-8"
_PAGE: Final = "text/html; charset=utf-8"
_COLUMNS: Final = frozenset({"fields", "lca_top"})
_ROWS: Final = frozenset({"rows"})


class Use(IntEnum):
    """What a report takes from a taxonomy, or from the database that was searched."""

    NONE = 0
    IF_KNOWN = 1
    """Ids and names of organisms, which headers may state as well."""
    NEEDED = 2
    """What neither headers nor records have."""


@dataclass(frozen=True, eq=False, repr=False)
class Format:
    """A report format.

    Attributes
    ----------
    name : str
        The value of ``--format``.
    report : str
        Module and class below :mod:`swsearch.report`. It is imported when the format is chosen; all together take
        longer than a search.
    title : str
        What a menu calls the format.
    media_type : str
        The media type of a download.
    note : str
        What ``--help`` says beside the name, if the name does not tell.
    ending : str
        The end of a download's name; by default, the name of the format.
    suffixes : tuple of str
        The ends of files' names that suggest the format.
    takes : frozenset of str
        The options of :func:`new_report` that the class takes, by the names of its parameters.
    taxonomy : Use
        What every report of the format takes from a taxonomy; columns may need more.
    binary : bool
        Whether the report is binary. It is then written to ``stream.buffer``, and not to a terminal.
    untranslated : tuple of str
        The sides of a search (:attr:`RunInfo.translates`) whose translation the format cannot represent.
    reason : str
        The reason, as the end of a sentence that begins with the format.
    """

    name: str
    report: str
    title: str
    media_type: str
    note: str = ""
    ending: str = ""
    suffixes: tuple[str, ...] = ()
    takes: frozenset[str] = frozenset()
    taxonomy: Use = Use.NONE
    binary: bool = False
    untranslated: tuple[str, ...] = ()
    reason: str = ""

    @property
    def file_ending(self) -> str:
        """The end of a download's name.

        >>> FORMATS["blast6"].file_ending, FORMATS["csv"].file_ending
        ('.tsv', '.csv')
        """
        return self.ending or f".{self.name}"

    def fits(self, run: RunInfo) -> bool:
        """Whether the format can represent a run."""
        return run.translates not in self.untranslated

    def check_fits(self, run: RunInfo) -> None:
        """Refuse a run that the format cannot represent, before anything is computed.

        Raises
        ------
        InputError
            The format cannot represent the run.
        """
        if not self.fits(run):
            raise InputError(f"format {self.name} {self.reason}")


_ANCHORED: Final[dict[str, Any]] = {
    "media_type": _TEXT,
    "takes": _ROWS,
    "untranslated": ("query", "both"),
    "reason": "cannot hold a search with a translated query: a row of residues does not fit a query of bases; choose "
    "blast6, pairwise or another format",
}
_ROWS_OF_TABLE: Final = (
    Format("table", "readable.TableReport", "Table for reading", _TEXT, ending=".txt", takes=frozenset({"width"})),
    Format("blast6", "tabular.Blast6Report", "BLAST tabular (outfmt 6)", _TABBED, ending=".tsv", takes=_COLUMNS),
    Format(
        "blast7", "tabular.Blast7Report", "BLAST tabular with comments (outfmt 7)", _TEXT,
        ending=".txt", takes=_COLUMNS,
    ),
    Format("tsv", "tabular.TsvReport", "TSV with a header", _TABBED, suffixes=(".tsv",), takes=_COLUMNS),
    Format("csv", "tabular.CsvReport", "CSV", "text/csv; charset=utf-8", suffixes=(".csv",), takes=_COLUMNS),
    Format(
        "parquet", "parquet.ParquetReport", "Parquet", "application/vnd.apache.parquet",
        suffixes=(".parquet",), takes=_COLUMNS, binary=True,
    ),
    Format(
        "lca", "query_taxa.LcaReport", "Taxon of each query (TSV)", _TABBED,
        note="the taxon of each query", ending=".lca.tsv", takes=_COLUMNS, taxonomy=Use.NEEDED,
    ),
    Format("json", "jsons.JsonReport", "JSON", "application/json", suffixes=(".json",), taxonomy=Use.IF_KNOWN),
    Format(
        "jsonl", "jsons.JsonLinesReport", "JSON lines", "application/x-ndjson",
        suffixes=(".jsonl",), taxonomy=Use.IF_KNOWN,
    ),
    Format("pairwise", "readable.PairwiseReport", "Pairwise alignments", _TEXT, ending=".txt"),
    Format(
        "sam", "read_mapping.SamReport", "SAM", _TEXT,
        suffixes=(".sam",), untranslated=("query", "subject", "both"),
        reason="cannot hold a translated search: its CIGARs count residues where SAM's count bases; choose blast6, "
        "json or another format",
    ),
    Format("gff3", "genome.Gff3Report", "Features of the subjects (GFF3)", _TEXT, suffixes=(".gff3", ".gff")),
    Format("bed", "genome.BedReport", "Intervals of the subjects (BED)", _TEXT, suffixes=(".bed",)),
    Format("paf", "read_mapping.PafReport", "PAF", _TEXT, suffixes=(".paf",)),
    Format("a3m", "anchored.A3mReport", "A3M multiple alignment", suffixes=(".a3m",), **_ANCHORED),
    Format("sto", "anchored.StockholmReport", "Stockholm multiple alignment", suffixes=(".sto",), **_ANCHORED),
    Format("afasta", "anchored.AlignedFastaReport", "Aligned FASTA", suffixes=(".afasta",), **_ANCHORED),
    Format("xml", "blast_documents.BlastXmlReport", "BLAST XML", "application/xml", suffixes=(".xml",)),
    Format(
        "xml2", "blast_documents.Xml2Report", "BLAST XML, version 2", "application/xml",
        ending=".xml", taxonomy=Use.IF_KNOWN,
    ),
    Format(
        "json2", "blast_documents.Json2Report", "BLAST JSON", "application/json",
        note="BLAST's", ending=".json", taxonomy=Use.IF_KNOWN,
    ),
    Format(
        "html", "html.HtmlReport", "HTML report, self-contained", _PAGE,
        suffixes=(".html", ".htm"), taxonomy=Use.IF_KNOWN,
    ),
    Format(
        "fasta", "hit_sequences.FastaReport", "Whole sequences of the hits (FASTA)", "text/x-fasta; charset=utf-8",
        note="sequences of hits", suffixes=(".fasta",), takes=frozenset({"part"}),
    ),
    Format("multiqc", "multiqc.MultiqcReport", "Identity of best hits, for MultiQC", _TABBED, ending="_mqc.tsv"),
    Format(
        "kraken", "query_taxa.KrakenReport", "Queries by taxon (Kraken's report)", _TEXT,
        ending=".kreport.txt", takes=frozenset({"lca_top"}), taxonomy=Use.NEEDED,
    ),
    Format(
        "taxa-html", "taxa_html.TaxaHtmlReport", "Queries by taxon, HTML page", _PAGE,
        note="by taxon", ending=".taxa.html", takes=frozenset({"lca_top"}), taxonomy=Use.NEEDED,
    ),
)  # fmt: skip
FORMATS: Final = {form.name: form for form in _ROWS_OF_TABLE}
"""The formats by their names."""
COLUMNS: Final = tuple(form.name for form in _ROWS_OF_TABLE if "fields" in form.takes)
"""The formats whose columns can be selected."""
ALIGNMENTS: Final = tuple(form.name for form in _ROWS_OF_TABLE if "rows" in form.takes)
"""The formats that are multiple alignments."""
TAXA: Final = tuple(form.name for form in _ROWS_OF_TABLE if form.taxonomy is Use.NEEDED)
"""The formats about the taxa of queries."""
SUFFIXES: Final = {suffix: form.name for form in _ROWS_OF_TABLE for suffix in form.suffixes}
"""The formats that the names of files suggest."""
FOREIGN_SUFFIXES: Final = (
    ".xlsx", ".xlsm", ".xls", ".ods", ".docx", ".doc", ".odt", ".rtf", ".pptx", ".pdf", ".ps", ".png", ".jpg", ".jpeg",
    ".svg", ".bam", ".cram", ".feather", ".arrow", ".h5", ".sqlite",
)  # fmt: skip
"""Ends of names of files that are not text, and none of these formats."""


_PARTS: Final = f"{option('part', flag='--aligned')} and {option('flank')}"
_REFUSALS: Final = {
    "part": f"has no parts of subjects to choose; give {_PARTS} with {option('format', 'fasta')}",
    "width": f"has lines of any length; give {option('width')} with {option('format', 'table')}",
    "fields": f"has no columns to choose; give {option('fields')} with {', '.join(COLUMNS)}",
    "rows": f"has no rows of an alignment to choose; give {option('rows', flag='--msa-…')} with "
    f"{option('format')} {', '.join(ALIGNMENTS)}",
}
"""Why a format does not take an option, as the end of a sentence."""


def names_with_notes() -> str:
    """The names of all formats in a sentence, with notes on some of them."""
    *names, last = (f"{form.name} ({form.note})" if form.note else form.name for form in _ROWS_OF_TABLE)
    return f"{', '.join(names)} or {last}"


def format_of(name: str) -> Format:
    """The format with a name.

    Raises
    ------
    InputError
        There is no such format.
    """
    if name not in FORMATS:
        meant = SUFFIXES.get(f".{name.lower()}")
        that = "" if meant is None else f"{meant} is the one of .{name.lower()} files; "
        raise InputError(f"there is no format {name!r}; {that}choose from {', '.join(FORMATS)}")
    return FORMATS[name]


def takes(name: str, option: str, fields: Sequence[str]) -> bool:
    """Whether a report in a format takes an option of the command line.

    Parameters
    ----------
    name : str
        The format; no report, as ``none``, takes any.
    option : str
        The option, as in :mod:`swsearch.options`.
    fields : sequence of str
        The columns that are chosen, if the format has them.

    >>> takes("a3m", "msa_diff", ()), takes("table", "flank", ()), takes("tsv", "lca_top", ["qseqid"])
    (True, False, False)
    """
    from swsearch.report.taxa import LCA  # only here: few commands have configured columns

    form = FORMATS.get(name)
    parameter = "rows" if option.startswith("msa_") else "part" if option in ("aligned", "flank") else option
    if form is None or parameter not in form.takes:
        return False
    return parameter != "lca_top" or name in TAXA or any(field in LCA for field in fields)


def new_report(
    name: str,
    fields: Sequence[str] | None = None,
    rows: RowFilter | None = None,
    part: SubjectPart | None = None,
    width: int | None = None,
    lca_top: float | None = None,
) -> Report:
    """A report in a format, which is not begun.

    Parameters
    ----------
    name : str
        One of :data:`FORMATS`.
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
    form = format_of(name)
    asked = {"part": part, "width": width, "fields": fields, "rows": rows or None, "lca_top": lca_top}
    given = {one: value for one, value in asked.items() if value is not None}
    for one in given:
        if one not in form.takes and one in _REFUSALS:
            raise InputError(f"format {name} {_REFUSALS[one]}")
    module, _, of_class = form.report.partition(".")
    make = getattr(import_module(f"swsearch.report.{module}"), of_class)
    report: Report = make(**{one: value for one, value in given.items() if one in form.takes})
    if lca_top is not None and report.ancestors is None:
        fields_of_it = "with these columns " if name in COLUMNS else ""
        fields_of_taxa = "the fields lca, lcarank, lcaname and lcalineage"
        there = f"give it with {option('format')} {', '.join(TAXA)}, or with {fields_of_taxa}"
        raise InputError(f"{option('lca_top', lca_top)}: format {name} {fields_of_it}has no taxa of queries; {there}")
    return report
