"""The taxa of subjects, for reports: ids that a database has stored or headers state, looked up in a tree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from swsearch.sequences.organism import header_taxids
from swsearch.taxonomy.notes import TaxidNotes
from swsearch.taxonomy.tree import Taxonomy

StoredTaxids = Callable[[int], tuple[int, ...] | None]
"""Gives the stored ids of a subject by its index; None if none are stored, so that its header counts."""


@dataclass(frozen=True)
class SubjectTaxa:
    """The organisms of one subject.

    Attributes
    ----------
    taxids : tuple of int
        Current ids, ascending; an id that the tree lacks stays as it is stated.
    taxa : tuple of int
        The taxa of those ids that the tree has, in the same order.
    """

    taxids: tuple[int, ...]
    taxa: tuple[int, ...]


class TaxonomyOfSubjects:
    """Looks up the organisms of subjects.

    Parameters
    ----------
    tree : Taxonomy
    stored : callable, optional
        By default, ids are those that headers state.

    Attributes
    ----------
    tree : Taxonomy
    """

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
        """What to tell the user about ids that are not current (:class:`swsearch.taxonomy.notes.TaxidNotes`)."""
        return self._notes.messages()
