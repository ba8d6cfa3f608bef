"""``lca``: the taxon of each query, on a line of its own.

The lines are those of DIAMOND's ``--outfmt 102``, separated by tabs: identifier of the query, taxonomy id, and the
smallest E-value of a hit that counts and has an organism (:mod:`swsearch.report.lca`). Id and E-value of an
unclassified query are 0. Other columns can be selected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TextIO

from swsearch.errors import InputError
from swsearch.hits.result import QueryResult, RunInfo
from swsearch.report import lca
from swsearch.report.numbers import UNKNOWN, blast_evalue
from swsearch.report.query_taxa import QueryTaxaReport
from swsearch.report.text import one_line
from swsearch.sequences.record import identifier
from swsearch.words import option


def _evalue(ancestors: lca.CommonAncestors, query: QueryResult) -> str:
    found = ancestors.of(query)
    return "0" if found.taxon is None else blast_evalue(found.evalue, digits=2)


_COLUMNS: Final[dict[str, Callable[[lca.CommonAncestors, QueryResult], str | int | None]]] = {
    "qseqid": lambda _, query: identifier(query.header),
    "qacc": lambda _, query: identifier(query.header),
    "qaccver": lambda _, query: identifier(query.header),
    "qlen": lambda _, query: query.length,
    "evalue": _evalue,
    "lca": lca.taxid,
    "lcarank": lca.rank,
    "lcaname": lca.name,
    "lcalineage": lca.names_of_lineage,
}
DEFAULT_FIELDS: Final = ("qseqid", "lca", "evalue")


class LcaReport(QueryTaxaReport):
    """One line for each query, also for those without hits.

    Parameters
    ----------
    fields : sequence of str, optional
        Columns; by default :data:`DEFAULT_FIELDS`.
    lca_percent : float
        As for :class:`swsearch.report.lca.CommonAncestors`.

    Raises
    ------
    InputError
        A column is unknown or not a property of a query, or ``lca_percent`` is out of its range.
    """

    name = "lca"
    binary = False

    def __init__(self, fields: Sequence[str] | None = None, lca_percent: float = lca.DEFAULT_PERCENT) -> None:
        names = DEFAULT_FIELDS if fields is None else fields
        unknown = [name for name in names if name not in _COLUMNS]
        if unknown or not names:
            what = f"which has no {', '.join(unknown)}" if unknown else f"and {option('fields')} names no field"
            raise InputError(f"format lca has a line for each query, {what}; choose from {', '.join(_COLUMNS)}")
        self._columns = [_COLUMNS[name] for name in names]
        super().__init__(lca_percent)

    def write(self, run: RunInfo, queries: Iterable[QueryResult], stream: TextIO) -> None:
        """Write the report (:class:`swsearch.report.protocol.ReportFormat`)."""
        for query in queries:
            values = (column(self._ancestors, query) for column in self._columns)
            stream.write("\t".join(UNKNOWN if value is None else one_line(str(value)) for value in values) + "\n")
