"""What the formats about the taxa of queries have in common, and the counts for those that summarize a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from swsearch.hits.result import QueryResult, RunInfo
from swsearch.report.lca import DEFAULT_PERCENT, CommonAncestors
from swsearch.report.protocol import TaxonomyUse
from swsearch.report.taxa import needed_taxonomy

if TYPE_CHECKING:  # the tree itself is that of the queries
    from swsearch.taxonomy.tree import Taxonomy


class QueryTaxaReport:
    """A report that assigns each query to a taxon.

    Parameters
    ----------
    lca_percent : float
        As for :class:`swsearch.report.lca.CommonAncestors`.

    Raises
    ------
    InputError
        ``lca_percent`` is out of its range.
    """

    def __init__(self, lca_percent: float = DEFAULT_PERCENT) -> None:
        self._ancestors = CommonAncestors(lca_percent)

    def taxonomy_use(self) -> TaxonomyUse:
        """The tree (:class:`swsearch.report.protocol.TaxonomyReport`)."""
        return TaxonomyUse.NEEDED

    def lca_percent(self) -> float:
        """The percentage of the best bit score (:class:`swsearch.report.protocol.AncestorReport`)."""
        return self._ancestors.percent


@dataclass
class QueryTaxa:
    """How many queries were assigned to which taxa.

    Attributes
    ----------
    n_queries, n_unclassified : int
    n_cut : int
        Number of queries whose taxon may be another one if more hits are reported
        (:meth:`swsearch.report.lca.CommonAncestors.is_cut`).
    direct : Counter
        Number of queries of each taxon.
    tree : Taxonomy or None
        The tree of the taxa; None if there was no query.
    """

    n_queries: int = 0
    n_unclassified: int = 0
    n_cut: int = 0
    direct: Counter[int] = field(default_factory=Counter)
    tree: Taxonomy | None = None

    @classmethod
    def of(cls, run: RunInfo, queries: Iterable[QueryResult], ancestors: CommonAncestors) -> QueryTaxa:
        """Count all queries of a run, whose results must have a taxonomy."""
        counted = cls()
        for query in queries:
            counted.tree = needed_taxonomy(query).tree
            counted.n_queries += 1
            counted.n_cut += ancestors.is_cut(run, query)
            taxon = ancestors.of(query).taxon
            if taxon is None:
                counted.n_unclassified += 1
            else:
                counted.direct[taxon] += 1
        return counted
