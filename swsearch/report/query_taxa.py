"""``lca`` and ``kraken``: the taxa of the queries, line by line and counted.

Each query is assigned to a taxon (:class:`swsearch.report.taxa.CommonAncestors`).

The lines of ``lca`` are those of DIAMOND's ``--outfmt 102``, separated by tabs: identifier of the query, taxonomy id,
and the smallest E-value of a hit that counts and has an organism. Id and E-value of an unclassified query are 0. Other
columns can be selected.

``kraken`` is the number of queries by taxon, in the form of Kraken 2's report. A line has six columns, separated by
tabs: percentage of the queries at and below the taxon, their number, number of the queries at the taxon itself, code of
the rank, taxonomy id, and scientific name, indented by two spaces for each level. The first line has the unclassified
queries, if there are any; without queries, there is no line. Pavian, KrakenTools, Krona and MultiQC read the form.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from swsearch.errors import InputError
from swsearch.hits.formatting import UNKNOWN, blast_evalue, one_line
from swsearch.hits.result import QueryResult, RunInfo
from swsearch.report.base import Report, ReportContext
from swsearch.report.taxa import DEFAULT_PERCENT, LCA, UNCLASSIFIED, CommonAncestors, ValueOfQuery, assignment
from swsearch.sequences.record import identifier
from swsearch.words import option

if TYPE_CHECKING:
    from swsearch.taxonomy.subject_taxa import TaxonCount
    from swsearch.taxonomy.tree import Taxonomy


class CountedTaxaReport(Report):
    """A report about the taxa of all queries, which is written when the last one is counted.

    Parameters
    ----------
    lca_top : float
        The percentage of :class:`swsearch.report.taxa.CommonAncestors`.

    Attributes
    ----------
    n_queries, n_unclassified : int
    n_cut : int
        Number of queries whose taxon may be another one if more hits are reported
        (:meth:`swsearch.report.taxa.CommonAncestors.is_cut`).
    direct : Counter
        Number of queries of each taxon.
    tree : Taxonomy or None
        The tree of the taxa; None if there was no query.

    Raises
    ------
    InputError
        ``lca_top`` is out of its range.
    """

    def __init__(self, lca_top: float = DEFAULT_PERCENT) -> None:
        self.ancestors: CommonAncestors = CommonAncestors(lca_top)

    def begin(self, run: RunInfo) -> None:
        """Write nothing yet."""
        super().begin(run)
        self.n_queries = self.n_unclassified = self.n_cut = 0
        self.direct: Counter[int] = Counter()
        self.tree: Taxonomy | None = None

    def write(self, query: QueryResult) -> None:
        """Count a query; the context must have a taxonomy."""
        self.tree = self.context.needed_taxonomy.tree
        self.n_queries += 1
        self.n_cut += self.ancestors.is_cut(self.run, query)
        taxon, _ = self.ancestors.of(self.context, query)
        if taxon is None:
            self.n_unclassified += 1
        else:
            self.direct[taxon] += 1


# --- lca ---


def _evalue(context: ReportContext, query: QueryResult) -> str:
    taxon, evalue = assignment(context, query)
    return "0" if taxon is None else blast_evalue(evalue, digits=2)


_COLUMNS: Final[dict[str, ValueOfQuery]] = {
    "qseqid": lambda _, query: identifier(query.header),
    "qacc": lambda _, query: identifier(query.header),
    "qaccver": lambda _, query: identifier(query.header),
    "qlen": lambda _, query: query.length,
    "evalue": _evalue,
    **LCA,
}
DEFAULT_FIELDS: Final = ("qseqid", "lca", "evalue")


class LcaReport(Report):
    """One line for each query, also for those without hits.

    Parameters
    ----------
    fields : sequence of str, optional
        Columns; by default :data:`DEFAULT_FIELDS`.
    lca_top : float
        The percentage of :class:`swsearch.report.taxa.CommonAncestors`.

    Raises
    ------
    InputError
        A column is unknown or not a property of a query, or ``lca_top`` is out of its range.
    """

    def __init__(self, fields: Sequence[str] | None = None, lca_top: float = DEFAULT_PERCENT) -> None:
        names = DEFAULT_FIELDS if fields is None else fields
        unknown = [name for name in names if name not in _COLUMNS]
        if unknown or not names:
            what = f"which has no {', '.join(unknown)}" if unknown else f"and {option('fields')} names no field"
            raise InputError(f"format lca has a line for each query, {what}; choose from {', '.join(_COLUMNS)}")
        self._columns = [_COLUMNS[name] for name in names]
        self.ancestors = CommonAncestors(lca_top)

    def write(self, query: QueryResult) -> None:
        """Write the line of a query."""
        values = (column(self.context, query) for column in self._columns)
        self.stream.write("\t".join(UNKNOWN if value is None else one_line(str(value)) for value in values) + "\n")


# --- kraken ---


_CODES: Final = {
    "superkingdom": "D", "domain": "D", "kingdom": "K", "phylum": "P", "class": "C", "order": "O", "family": "F",
    "genus": "G", "species": "S",
}  # fmt: skip
"""Kraken's codes of ranks; NCBI calls superkingdoms domains since 2025."""
_ROOT: Final = "R"


def rank_codes(tree: Taxonomy, counts: Sequence[TaxonCount]) -> list[str]:
    """The codes of the ranks of taxa.

    A taxon of another rank has the code of the nearest taxon above it that has one, with the number of levels between
    them: ``G1`` is one level below a genus. Above all others is ``R``, the root. The counts are in the order of
    :func:`swsearch.taxonomy.subject_taxa.clade_counts`.
    """
    codes = []
    above: list[tuple[str, int]] = []  # code and distance at each level
    for one in counts:
        del above[one.depth :]
        code, distance = above[-1] if above else (_ROOT, -1)
        own = _CODES.get(tree.rank(one.taxon))
        above.append((code, distance + 1) if own is None else (own, 0))
        code, distance = above[-1]
        codes.append(f"{code}{distance or ''}")
    return codes


class KrakenReport(CountedTaxaReport):
    """A line for each taxon, written when the last query is known."""

    def end(self) -> None:
        """Write the lines."""
        from swsearch.taxonomy.subject_taxa import clade_counts

        stream = self.stream

        def write_line(n_clade: int, n_direct: int, code: str, taxid: int, name: str) -> None:
            stream.write(f"{100 * n_clade / self.n_queries:6.2f}\t{n_clade}\t{n_direct}\t{code}\t{taxid}\t{name}\n")

        if self.n_unclassified:
            write_line(self.n_unclassified, self.n_unclassified, "U", UNCLASSIFIED, "unclassified")
        if self.tree is None:
            return
        counts = clade_counts(self.tree, self.direct)
        for one, code in zip(counts, rank_codes(self.tree, counts), strict=True):
            taxid = self.tree.taxid(one.taxon)
            name = one_line(self.tree.name(one.taxon) or f"taxid {taxid}")
            write_line(one.n_clade, one.n_direct, code, taxid, "  " * one.depth + name)
