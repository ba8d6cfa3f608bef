"""The organisms of a hit, and the taxon of a query.

Ids and names of **organisms** come from the taxonomy of the context (:class:`swsearch.report.base.ReportContext`).
Without one, the id and the scientific name are those that the subject's header states, and nothing else is known.
Several values are separated as by BLAST: different ones alone, joined by ``;``; BLAST names and superkingdoms in
alphabetical order, all others in the order of the ids.

The **taxon of a query** is the lowest common ancestor of the organisms of its best hits, the one that DIAMOND assigns
(``--outfmt 102``). Hits count whose bit score is within a percentage of the best bit score of the query; among these,
only those with an organism that the taxonomy has. An organism counts whether it is the only one of its subject or one
of several.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from swsearch.errors import InputError
from swsearch.hits.hit import Hit
from swsearch.hits.result import QueryResult, RunInfo, n_left_out
from swsearch.report.base import ReportContext
from swsearch.sequences.headers import header_organism, header_taxids
from swsearch.words import counted, option

if TYPE_CHECKING:
    from swsearch.taxonomy.tree import Taxonomy

    NameOfTaxon = Callable[[Taxonomy, int], str | None]

    ValuesOfHit = Callable[[ReportContext, Hit], Sequence[str | int]]

# --- the organisms of a hit ---


_SEPARATOR: Final = ";"
_LINEAGE_SEPARATOR: Final = "; "
LINEAGES_SEPARATOR: Final = "<>"
"""As in DIAMOND's column ``slineages``."""


def taxids(context: ReportContext, hit: Hit) -> tuple[int, ...]:
    """The taxonomy ids of a hit's subject, ascending; empty if none is known."""
    if context.taxonomy is None:
        return header_taxids(hit.subject_header)
    return context.taxonomy.of(hit.subject_index, hit.subject_header).taxids


def organisms(context: ReportContext, hit: Hit) -> list[str]:
    """The scientific names of a hit's subject, in the order of its ids; that of its header if the ids have none."""
    names = [] if context.taxonomy is None else _names(context, hit, lambda tree, taxon: tree.name(taxon))
    if not names and (stated := header_organism(hit.subject_header)) is not None:
        names = [stated]
    return names


def names_of(name: NameOfTaxon) -> ValuesOfHit:
    """The different names of this kind of a subject's organisms, in the order of their ids, as a function of a hit."""
    return lambda context, hit: _names(context, hit, name)


def first(values: ValuesOfHit) -> Callable[[ReportContext, Hit], str | int | None]:
    """The first of several values, as a function of a context and a hit; None if there is none."""
    return lambda context, hit: next(iter(values(context, hit)), None)


def joined(
    values: ValuesOfHit, separator: str = _SEPARATOR, *, alphabetical: bool = False
) -> Callable[[ReportContext, Hit], str | None]:
    """All of several values in one text, as a function of a context and a hit; None if there is none."""

    def text(context: ReportContext, hit: Hit) -> str | None:
        found = list(map(str, values(context, hit)))
        return separator.join(sorted(found) if alphabetical else found) or None

    return text


def name_at(rank: str) -> NameOfTaxon:
    """The name of the ancestor with a rank, as a function of a tree and a taxon."""

    def name(tree: Taxonomy, taxon: int) -> str | None:
        found = tree.ancestor(taxon, rank)
        return None if found is None else tree.name(found)

    return name


def lineage(tree: Taxonomy, taxon: int) -> str | None:
    """The names from below the root down to a taxon."""
    return _LINEAGE_SEPARATOR.join(tree.lineage_names(taxon)) or None


def _names(context: ReportContext, hit: Hit, name: NameOfTaxon) -> list[str]:
    """The different names of a kind, of the organisms of a hit's subject, in the order of their ids."""
    taxonomy = context.needed_taxonomy
    taxa = taxonomy.of(hit.subject_index, hit.subject_header).taxa
    return list(dict.fromkeys(found for taxon in taxa if (found := name(taxonomy.tree, taxon)) is not None))


# --- the taxon of a query ---


DEFAULT_PERCENT: Final = 10.0
"""Default of ``--lca-top``, that of DIAMOND's ``--top`` with ``--outfmt 102``."""
UNCLASSIFIED: Final = 0
"""The taxonomy id of a query without a taxon, as in DIAMOND and Kraken."""


class CommonAncestors:
    """Assigns queries to taxa.

    Parameters
    ----------
    percent : float
        Hits count whose bit score is at most this percentage below the best; 0 to 100. If a run has no bit scores, raw
        scores take their place.

    Raises
    ------
    InputError
        ``percent`` is out of its range.
    """

    def __init__(self, percent: float = DEFAULT_PERCENT) -> None:
        if not (math.isfinite(percent) and 0 <= percent <= 100):
            raise InputError(f"{option('lca_top', percent)}: give a percentage of the best bit score, from 0 to 100")
        self.percent = percent
        self._last: tuple[QueryResult, tuple[int | None, float | None]] | None = None

    def of(self, context: ReportContext, query: QueryResult) -> tuple[int | None, float | None]:
        """The taxon of a query and the smallest E-value of a hit that counts and has an organism.

        The taxon is its place in the tree of the context, which must have a taxonomy. Both are None if the query is
        unclassified; the E-value also if there are no E-values.
        """
        last = self._last
        if last is None or last[0] is not query:  # each line of a table asks for the same query
            last = self._last = query, self._assigned(context, query)
        return last[1]

    def _assigned(self, context: ReportContext, query: QueryResult) -> tuple[int | None, float | None]:
        taxonomy = context.needed_taxonomy
        taxa: set[int] = set()
        evalues = []
        for hit in self.counting(query):
            found = taxonomy.of(hit.subject_index, hit.subject_header).taxa
            taxa.update(found)
            if found and hit.evalue is not None:
                evalues.append(hit.evalue)
        taxon = taxonomy.tree.lca(taxa)
        return taxon, None if taxon is None else min(evalues, default=None)

    def counting(self, query: QueryResult) -> Iterator[Hit]:
        """The hits that count, in their order."""
        least = (1 - self.percent / 100) * max(map(_worth, query.hits), default=0.0)
        return (hit for hit in query.hits if _worth(hit) >= least)

    def is_cut(self, run: RunInfo, query: QueryResult) -> bool:
        """Whether the list of a query ends at ``--top`` with a hit that counts, so that further subjects may count."""
        is_full = n_left_out(run.parameters.get("top"), query.n_subjects, query.n_passed) > 0
        return is_full and any(hit.rank == query.hits[-1].rank for hit in self.counting(query))


def _worth(hit: Hit) -> float:
    return hit.score if hit.bits is None else hit.bits


def cut_lists(run: RunInfo, percent: float, n_queries: int) -> str | None:
    """What to tell about ``n_queries`` whose lists are cut (:meth:`CommonAncestors.is_cut`); None if there are none."""
    if not n_queries:
        return None
    lists = counted(n_queries, "list was", "lists were")
    where = f"where hits still counted for the query's taxon (at most {percent:g} % below the best bit score)"
    return f"{lists} cut at --top {run.parameters['top']} {where}; a larger --top may find a higher common ancestor"


# --- the values of an assignment, as functions of a query ---

ValueOfQuery = Callable[[ReportContext, QueryResult], str | int | None]


def assignment(context: ReportContext, query: QueryResult) -> tuple[int | None, float | None]:
    """The result of :meth:`CommonAncestors.of` for the percentage of the report."""
    assert context.ancestors is not None
    return context.ancestors.of(context, query)


def query_taxid(context: ReportContext, query: QueryResult) -> int:
    """The taxonomy id; :data:`UNCLASSIFIED` if there is none."""
    taxon, _ = assignment(context, query)
    return UNCLASSIFIED if taxon is None else context.needed_taxonomy.tree.taxid(taxon)


def _of_taxon(name: NameOfTaxon) -> ValueOfQuery:
    """The name of this kind of the taxon; None if there is none."""

    def value(context: ReportContext, query: QueryResult) -> str | None:
        taxon, _ = assignment(context, query)
        return None if taxon is None else name(context.needed_taxonomy.tree, taxon)

    return value


LCA: Final[dict[str, ValueOfQuery]] = {
    "lca": query_taxid,
    "lcarank": _of_taxon(lambda tree, taxon: tree.rank(taxon)),
    "lcaname": _of_taxon(lambda tree, taxon: tree.name(taxon)),
    "lcalineage": _of_taxon(lineage),
}
"""The columns of the taxon: its id, its rank as NCBI names it, its scientific name, and its lineage."""
