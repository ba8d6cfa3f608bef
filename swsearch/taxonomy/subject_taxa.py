"""The taxa of subjects, for filters and reports: which tree counts, and the ids of subjects looked up in it.

The tree comes from the option ``--taxonomy``, from the database, or from the environment variable
``SWSEARCH_TAXONOMY``, in this order (:func:`chosen_tree`). Ids are those that a database has stored or that headers
state (:class:`TaxonomyOfSubjects`). Ids that were merged, were deleted or are unknown are reported in one line for each
kind (:class:`TaxidNotes`). What was assigned to taxa, such as queries, is counted by :func:`clade_counts`: how many to
each taxon, and to it and all below it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from swsearch.sequences.headers import header_taxids
from swsearch.words import counted

if TYPE_CHECKING:
    from swsearch.taxonomy.tree import Taxonomy

TAXONOMY_VARIABLE: Final = "SWSEARCH_TAXONOMY"
"""Environment variable with the path of a taxdump."""


def chosen_tree(given: str | None, stored: Taxonomy | None, *, is_needed: bool = True) -> Taxonomy | None:
    """The tree to use; None if there is none.

    Parameters
    ----------
    given : str or None
        The value of ``--taxonomy``.
    stored : Taxonomy or None
        The tree that the database has stored.
    is_needed : bool
        Whether the environment counts, so that no taxdump is read for what works without one.

    Raises
    ------
    InputError
        The taxdump cannot be read.
    """
    if given is None and (stored is not None or not (is_needed and has_variable())):
        return stored
    from swsearch.taxonomy.dump import load_taxonomy

    return load_taxonomy(os.environ[TAXONOMY_VARIABLE], TAXONOMY_VARIABLE) if given is None else load_taxonomy(given)


def has_variable() -> bool:
    """Whether the environment names a taxdump."""
    return bool(os.environ.get(TAXONOMY_VARIABLE))


class TaxidNotes:
    """The ids that were looked up in a tree and are not current there."""

    def __init__(self, tree: Taxonomy) -> None:
        self._tree = tree
        self._merged: dict[int, int] = {}
        self._deleted: set[int] = set()
        self._unknown: set[int] = set()

    def current(self, taxid: int) -> int:
        """The id into which this one was merged, or the id itself; it is noted if it is not current."""
        taxon = self._tree.index(taxid)
        if taxon is None:
            (self._deleted if self._tree.is_deleted(taxid) else self._unknown).add(taxid)
            return taxid
        found = self._tree.taxid(taxon)
        if found != taxid:
            self._merged[taxid] = found
        return found

    def messages(self) -> list[str]:
        """What to say about the ids so far; empty if all are current."""
        lines = []
        if self._merged:
            old = min(self._merged)
            merged = f"merged into others, which are used: {old} into {self._merged[old]}{_and_so_on(self._merged)}"
            lines.append(f"{_counted(self._merged, 'was', 'were')} {merged}")
        if self._deleted:
            deleted = f"deleted from the taxonomy: {min(self._deleted)}{_and_so_on(self._deleted)}"
            lines.append(f"warning: {_counted(self._deleted, 'was', 'were')} {deleted}")
        if self._unknown:
            unknown = f"not in the taxonomy: {min(self._unknown)}{_and_so_on(self._unknown)}"
            lines.append(f"warning: {_counted(self._unknown, 'is', 'are')} {unknown}; a newer taxdump may have more")
        return lines


def _counted(ids: Collection[int], one: str, several: str) -> str:
    return counted(len(ids), f"taxonomy id {one}", f"taxonomy ids {several}")


def _and_so_on(several: Collection[int]) -> str:
    return " …" if len(several) > 1 else ""


StoredTaxids = Callable[[int], tuple[int, ...] | None]
"""Gives the stored ids of a subject by its index; None if none are stored, so that its header counts."""


@dataclass(frozen=True)
class SubjectTaxa:
    """The organisms of one subject.

    ``taxids`` are current ids, ascending; an id that the tree lacks stays as it is stated. ``taxa`` are the taxa of
    those that the tree has, in the same order.
    """

    taxids: tuple[int, ...]
    taxa: tuple[int, ...]


class TaxonomyOfSubjects:
    """Looks up the organisms of subjects in a tree; without ``stored``, their ids are those that headers state."""

    def __init__(self, tree: Taxonomy, stored: StoredTaxids = lambda _: None) -> None:
        self.tree = tree
        self._stored = stored
        self._notes = TaxidNotes(tree)
        self._known: dict[tuple[int, ...], SubjectTaxa] = {}

    def of(self, subject_index: int, header: str) -> SubjectTaxa:
        """The organisms of a subject."""
        stated = self._stored(subject_index)
        if stated is None:
            stated = header_taxids(header)
        found = self._known.get(stated)
        if found is None:
            taxids = tuple(sorted({self._notes.current(taxid) for taxid in stated}))
            taxa = tuple(taxon for taxid in taxids if (taxon := self.tree.index(taxid)) is not None)
            found = self._known[stated] = SubjectTaxa(taxids, taxa)
        return found

    def messages(self) -> list[str]:
        """What to tell the user about ids that are not current (:class:`swsearch.taxonomy.subject_taxa.TaxidNotes`)."""
        return self._notes.messages()


@dataclass(frozen=True)
class TaxonCount:
    """The counts of one taxon, ``depth`` of whose ancestors are listed above it.

    ``n_direct`` counts the assignments to the taxon itself, ``n_clade``, at least 1, those to it and to all taxa below
    it.
    """

    taxon: int
    depth: int
    n_direct: int
    n_clade: int


def clade_counts(tree: Taxonomy, direct: Mapping[int, int]) -> list[TaxonCount]:
    """The taxa with assignments at or below them, each followed by those below it.

    Of taxa with one parent, the one with most assignments comes first, then the one that is first in the tree.
    ``direct`` has the number of assignments to each taxon itself.
    """
    totals: dict[int, int] = {}
    for taxon, n_direct in direct.items():
        if n_direct:
            for above in tree.lineage(taxon):
                totals[above] = totals.get(above, 0) + n_direct
    below: dict[int | None, list[int]] = {}
    for taxon in sorted(totals, key=lambda one: (-totals[one], one)):
        parent = int(tree.parents[taxon])
        below.setdefault(None if parent == taxon else parent, []).append(taxon)
    counts = []
    waiting = [(taxon, 0) for taxon in reversed(below.get(None, []))]
    while waiting:
        taxon, depth = waiting.pop()
        counts.append(TaxonCount(taxon, depth, direct.get(taxon, 0), totals[taxon]))
        waiting += [(child, depth + 1) for child in reversed(below.get(taxon, []))]
    return counts


def without_repetitions(counts: list[TaxonCount]) -> list[TaxonCount]:
    """The taxa of :func:`clade_counts` without those whose assignments are all at or below one child, except roots."""
    kept: list[TaxonCount] = []
    above: list[tuple[int, int]] = []  # depths of the taxa above, those of all and those that are kept
    for place, one in enumerate(counts):
        while above and above[-1][0] >= one.depth:
            above.pop()
        following = counts[place + 1] if place + 1 < len(counts) else None
        repeats = following is not None and following.depth > one.depth and following.n_clade == one.n_clade
        depth = above[-1][1] + 1 if above else 0
        if repeats and one.depth > 0:
            depth -= 1
        else:
            kept.append(TaxonCount(one.taxon, depth, one.n_direct, one.n_clade))
        above.append((one.depth, depth))
    return kept
