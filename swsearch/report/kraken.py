"""``kraken``: the number of queries by taxon, in the form of Kraken 2's report.

Each query is assigned to a taxon (:mod:`swsearch.report.lca`). A line has six columns, separated by tabs: percentage of
the queries at and below the taxon, their number, number of the queries at the taxon itself, code of the rank, taxonomy
id, and scientific name, indented by two spaces for each level. The first line has the unclassified queries, if there
are any; without queries, there is no line. Pavian, KrakenTools, Krona and MultiQC read the form.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, TextIO

from swsearch.hits.result import QueryResult, RunInfo
from swsearch.report.lca import UNCLASSIFIED
from swsearch.report.query_taxa import QueryTaxa, QueryTaxaReport
from swsearch.report.text import one_line

if TYPE_CHECKING:
    from swsearch.taxonomy.counts import TaxonCount
    from swsearch.taxonomy.tree import Taxonomy

_CODES: Final = {
    "superkingdom": "D", "domain": "D", "kingdom": "K", "phylum": "P", "class": "C", "order": "O", "family": "F",
    "genus": "G", "species": "S",
}  # fmt: skip
"""Kraken's codes of ranks; NCBI calls superkingdoms domains since 2025."""
_ROOT: Final = "R"


def rank_codes(tree: Taxonomy, counts: Sequence[TaxonCount]) -> list[str]:
    """The codes of the ranks of taxa.

    A taxon of another rank has the code of the nearest taxon above it that has one, with the number of levels between
    them: ``G1`` is one level below a genus. Above all others is ``R``, the root.

    Parameters
    ----------
    tree : Taxonomy
    counts : sequence of TaxonCount
        As :func:`swsearch.taxonomy.counts.clade_counts` lists them.
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


class KrakenReport(QueryTaxaReport):
    """A line for each taxon, written when the last query is known."""

    name = "kraken"
    binary = False

    def write(self, run: RunInfo, queries: Iterable[QueryResult], stream: TextIO) -> None:
        """Write the report (:class:`swsearch.report.protocol.ReportFormat`)."""
        from swsearch.taxonomy.counts import clade_counts

        found = QueryTaxa.of(run, queries, self._ancestors)

        def write_line(n_clade: int, n_direct: int, code: str, taxid: int, name: str) -> None:
            stream.write(f"{100 * n_clade / found.n_queries:6.2f}\t{n_clade}\t{n_direct}\t{code}\t{taxid}\t{name}\n")

        if found.n_unclassified:
            write_line(found.n_unclassified, found.n_unclassified, "U", UNCLASSIFIED, "unclassified")
        if found.tree is None:
            return
        counts = clade_counts(found.tree, found.direct)
        for one, code in zip(counts, rank_codes(found.tree, counts), strict=True):
            taxid = found.tree.taxid(one.taxon)
            name = one_line(found.tree.name(one.taxon) or f"taxid {taxid}")
            write_line(one.n_clade, one.n_direct, code, taxid, "  " * one.depth + name)
