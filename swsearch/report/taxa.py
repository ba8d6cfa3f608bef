"""The organisms of a hit, as the columns and structured formats of reports have them.

Ids and names come from the taxonomy of the query's result (:func:`swsearch.hits.result.with_taxonomy`). Without one,
the id and the scientific name are those that the subject's header states, and nothing else is known. Several values are
separated as by BLAST: different ones alone, joined by ``;``; BLAST names and superkingdoms in alphabetical order, all
others in the order of the ids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from swsearch.errors import InputError
from swsearch.hits.hit import Hit
from swsearch.hits.result import QueryResult
from swsearch.report.protocol import TaxonomyUse
from swsearch.sequences.organism import header_organism, header_taxids
from swsearch.words import option

if TYPE_CHECKING:  # a report that uses no taxonomy need not import it
    from swsearch.taxonomy.subjects import TaxonomyOfSubjects
    from swsearch.taxonomy.tree import Taxonomy

    NameOfTaxon = Callable[[Taxonomy, int], str | None]
    NameOfHit = Callable[[QueryResult, Hit], str | None]

_SEPARATOR: Final = ";"
_LINEAGE_SEPARATOR: Final = "; "
_LINEAGES_SEPARATOR: Final = "<>"
"""As in DIAMOND's column ``slineages``."""


def taxids(query: QueryResult, hit: Hit) -> tuple[int, ...]:
    """The taxonomy ids of a hit's subject, ascending; empty if none is known."""
    if query.taxonomy is None:
        return header_taxids(hit.subject_header)
    return query.taxonomy.of(hit.subject_index, hit.subject_header).taxids


def organisms(query: QueryResult, hit: Hit) -> list[str]:
    """The scientific names of a hit's subject, in the order of its ids; that of its header if the ids have none."""
    names = [] if query.taxonomy is None else _names(query, hit, lambda tree, taxon: tree.name(taxon))
    if not names and (stated := header_organism(hit.subject_header)) is not None:
        names = [stated]
    return names


def first_taxid(query: QueryResult, hit: Hit) -> int | None:
    """The smallest taxonomy id."""
    found = taxids(query, hit)
    return found[0] if found else None


def joined_taxids(query: QueryResult, hit: Hit) -> str | None:
    """All taxonomy ids."""
    return _SEPARATOR.join(map(str, taxids(query, hit))) or None


def first_organism(query: QueryResult, hit: Hit) -> str | None:
    """The first scientific name."""
    found = organisms(query, hit)
    return found[0] if found else None


def joined_organisms(query: QueryResult, hit: Hit) -> str | None:
    """All scientific names."""
    return _SEPARATOR.join(organisms(query, hit)) or None


def first_name(name: NameOfTaxon) -> NameOfHit:
    """The name of this kind of the first organism that has one, as a function of a query and a hit."""
    return lambda query, hit: next(iter(_names(query, hit, name)), None)


def joined_names(name: NameOfTaxon, *, alphabetical: bool = False) -> NameOfHit:
    """The names of this kind of all organisms, as a function of a query and a hit."""

    def joined(query: QueryResult, hit: Hit) -> str | None:
        found = _names(query, hit, name)
        return _SEPARATOR.join(sorted(found) if alphabetical else found) or None

    return joined


def common_name(tree: Taxonomy, taxon: int) -> str | None:
    """The common name of a taxon, or else its scientific name."""
    return tree.common_name(taxon)


def blast_name(tree: Taxonomy, taxon: int) -> str | None:
    """BLAST's name of the group to which a taxon belongs."""
    return tree.blast_name(taxon)


def domain(tree: Taxonomy, taxon: int) -> str | None:
    """The name of the domain or superkingdom of a taxon."""
    return tree.domain(taxon)


def name_at(rank: str) -> NameOfTaxon:
    """The name of the ancestor with a rank, as a function of a tree and a taxon."""

    def name(tree: Taxonomy, taxon: int) -> str | None:
        found = tree.ancestor(taxon, rank)
        return None if found is None else tree.name(found)

    return name


def lineage(tree: Taxonomy, taxon: int) -> str | None:
    """The names from below the root down to a taxon."""
    return _LINEAGE_SEPARATOR.join(tree.lineage_names(taxon)) or None


def joined_lineages(query: QueryResult, hit: Hit) -> str | None:
    """The lineages of all organisms."""
    return _LINEAGES_SEPARATOR.join(_names(query, hit, lineage)) or None


def _names(query: QueryResult, hit: Hit, name: NameOfTaxon) -> list[str]:
    """The different names of a kind, of the organisms of a hit's subject, in the order of their ids."""
    taxonomy = needed_taxonomy(query)
    taxa = taxonomy.of(hit.subject_index, hit.subject_header).taxa
    return list(dict.fromkeys(found for taxon in taxa if (found := name(taxonomy.tree, taxon)) is not None))


def needed_taxonomy(query: QueryResult) -> TaxonomyOfSubjects:
    """The taxonomy of a query's result.

    Raises
    ------
    InputError
        It has none.
    """
    if query.taxonomy is None:
        raise InputError(f"names and lineages of taxa need a taxonomy; give one with {option('taxonomy')}")
    return query.taxonomy


def greatest_use(uses: Iterable[TaxonomyUse]) -> TaxonomyUse:
    """What several columns need together."""
    return max(uses, default=TaxonomyUse.NONE)
