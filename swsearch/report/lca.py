"""The taxon of a query: the lowest common ancestor of the organisms of its best hits.

It is the one that DIAMOND assigns (``--outfmt 102``). Hits count whose bit score is within a percentage of the best bit
score of the query; among these, only those with an organism that the taxonomy has. An organism counts whether it is the
only one of its subject or one of several.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from swsearch.errors import InputError
from swsearch.hits.hit import Hit
from swsearch.hits.result import QueryResult, RunInfo
from swsearch.report.taxa import lineage, needed_taxonomy
from swsearch.words import counted, option

DEFAULT_PERCENT: Final = 10.0
"""Default of ``--lca-top``, that of DIAMOND's ``--top`` with ``--outfmt 102``."""
UNCLASSIFIED: Final = 0
"""The taxonomy id of a query without a taxon, as in DIAMOND and Kraken."""


@dataclass(frozen=True)
class Assignment:
    """The taxon of one query.

    Attributes
    ----------
    taxon : int or None
        Its place in the tree of the query's taxonomy; None if the query is unclassified.
    evalue : float or None
        The smallest E-value of a hit that counts and has an organism; None if there is none, or no E-values.
    """

    taxon: int | None
    evalue: float | None


class CommonAncestors:
    """Assigns queries to taxa.

    Parameters
    ----------
    percent : float
        Hits count whose bit score is at most so many percent below the best; 0 to 100. If a run has no bit scores, raw
        scores take their place.

    Attributes
    ----------
    percent : float

    Raises
    ------
    InputError
        ``percent`` is out of its range.
    """

    def __init__(self, percent: float = DEFAULT_PERCENT) -> None:
        if not (math.isfinite(percent) and 0 <= percent <= 100):
            raise InputError(f"{option('lca_top', percent)}: give a percentage of the best bit score, from 0 to 100")
        self.percent = percent
        self._last: tuple[QueryResult, Assignment] | None = None

    def of(self, query: QueryResult) -> Assignment:
        """The taxon of a query, whose result must have a taxonomy (:func:`swsearch.hits.result.with_taxonomy`)."""
        last = self._last
        if last is None or last[0] is not query:  # each line of a table asks for the same query
            last = self._last = query, self._assigned(query)
        return last[1]

    def _assigned(self, query: QueryResult) -> Assignment:
        taxonomy = needed_taxonomy(query)
        taxa: set[int] = set()
        evalues = []
        for hit in self.counting(query):
            found = taxonomy.of(hit.subject_index, hit.subject_header).taxa
            taxa.update(found)
            if found and hit.evalue is not None:
                evalues.append(hit.evalue)
        taxon = taxonomy.tree.lca(taxa)
        return Assignment(taxon, None if taxon is None else min(evalues, default=None))

    def counting(self, query: QueryResult) -> Iterator[Hit]:
        """The hits that count, in their order."""
        least = (1 - self.percent / 100) * max(map(_worth, query.hits), default=0.0)
        return (hit for hit in query.hits if _worth(hit) >= least)

    def is_cut(self, run: RunInfo, query: QueryResult) -> bool:
        """Whether the list of a query ends at ``--top`` with a hit that counts, so that further subjects may count."""
        top = run.parameters.get("top")
        is_full = top is not None and query.n_subjects >= int(top) and query.n_passed > query.n_subjects
        return is_full and any(hit.rank == query.hits[-1].rank for hit in self.counting(query))


def _worth(hit: Hit) -> float:
    return hit.score if hit.bits is None else hit.bits


def cut_lists(run: RunInfo, percent: float, n_queries: int) -> str | None:
    """What to tell about the queries whose lists are cut (:meth:`CommonAncestors.is_cut`); None if there are none.

    Parameters
    ----------
    run : RunInfo
    percent : float
        As for :class:`CommonAncestors`.
    n_queries : int
        Number of these queries.
    """
    if not n_queries:
        return None
    lists = counted(n_queries, "list was", "lists were")
    where = f"where hits still counted for the query's taxon (at most {percent:g} % below the best bit score)"
    return f"{lists} cut at --top {run.parameters['top']} {where}; a larger --top may find a higher common ancestor"


class CutLists:
    """Counts the queries whose taxon may be another one if more of their hits are reported.

    Parameters
    ----------
    run : RunInfo
    percent : float
        As for :class:`CommonAncestors`.
    """

    def __init__(self, run: RunInfo, percent: float) -> None:
        self._run = run
        self._ancestors = CommonAncestors(percent)
        self.n_queries = 0

    def counted(self, queries: Iterable[QueryResult]) -> Iterator[QueryResult]:
        """The same results; each is counted when it is taken."""
        for query in queries:
            self.n_queries += self._ancestors.is_cut(self._run, query)
            yield query

    def messages(self) -> list[str]:
        """What to say about the queries so far; empty if there are none."""
        found = cut_lists(self._run, self._ancestors.percent, self.n_queries)
        return [] if found is None else [f"warning: {found}"]


# --- the values of an assignment, as functions of a query ---

ValueOfQuery = Callable[[CommonAncestors, QueryResult], str | int | None]


def taxid(ancestors: CommonAncestors, query: QueryResult) -> int:
    """The taxonomy id; :data:`UNCLASSIFIED` if there is none."""
    taxon = ancestors.of(query).taxon
    return UNCLASSIFIED if taxon is None else needed_taxonomy(query).tree.taxid(taxon)


def rank(ancestors: CommonAncestors, query: QueryResult) -> str | None:
    """The rank as NCBI names it, ``no rank`` if the taxon has none."""
    taxon = ancestors.of(query).taxon
    return None if taxon is None else needed_taxonomy(query).tree.rank(taxon)


def name(ancestors: CommonAncestors, query: QueryResult) -> str | None:
    """The scientific name."""
    taxon = ancestors.of(query).taxon
    return None if taxon is None else needed_taxonomy(query).tree.name(taxon)


def names_of_lineage(ancestors: CommonAncestors, query: QueryResult) -> str | None:
    """The names from below the root down to the taxon."""
    taxon = ancestors.of(query).taxon
    return None if taxon is None else lineage(needed_taxonomy(query).tree, taxon)
