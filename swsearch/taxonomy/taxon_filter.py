"""The filter by taxonomy id: the subjects of some organisms, and of all that descend from them.

A subject's ids are those of a map (:mod:`swsearch.taxonomy.assignment`), or else those that the database has stored, or
else those that its header states. Descendants come from a taxonomic tree (:mod:`swsearch.taxonomy.subject_taxa`);
without one, an id has no descendants.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from swsearch.errors import InputError
from swsearch.sequences.headers import header_taxids
from swsearch.taxonomy.assignment import mapped_names, read_map
from swsearch.taxonomy.subject_taxa import chosen_tree
from swsearch.taxonomy.tree import Taxonomy
from swsearch.words import option

if TYPE_CHECKING:
    from swsearch.database.reader import PackedDatabase
    from swsearch.database.stored_taxonomy import DatabaseTaxonomy

_TAXID: Final = re.compile(r"[0-9]{1,18}", re.ASCII)


@dataclass(frozen=True)
class TaxonFilter:
    """The subjects of some organisms.

    ``taxids`` pass, including descendants. ``members`` are the identifiers to which the map assigns one of them; None
    if there is no map. ``notes`` are messages for the user, such as ids that were merged into others.
    """

    taxids: frozenset[int]
    members: frozenset[str] | None
    notes: tuple[str, ...]

    @staticmethod
    def read(taxid: str, taxid_map: str | None, taxonomy: str | None, database: PackedDatabase) -> TaxonFilter:
        """The filter for the values of the options with these names.

        Raises
        ------
        InputError
            ``taxid`` is not a list of ids, a file cannot be read or has another format, or the tree of ``taxonomy``
            lacks an id.
        """
        taxids = parse_taxids(taxid)
        notes: list[str] = []
        stored = None
        if taxonomy is None and database.taxonomy is not None:
            _refuse_lack(database)
            stored = database.taxonomy.tree
        if (tree := chosen_tree(taxonomy, stored)) is not None:
            # A stored tree lacks the organisms of which the database has no sequence.
            taxids, notes = with_descendants(taxids, tree, is_whole=tree is not stored)
        return TaxonFilter(taxids, None if taxid_map is None else mapped_members(taxids, taxid_map), tuple(notes))

    def chosen(self, database: PackedDatabase) -> NDArray[np.bool_]:
        """Whether each subject belongs to one of the organisms, by its index; bool, shape (n_subjects,)."""
        chosen = np.zeros(database.n_subjects, dtype=np.bool_)
        sets = np.full(database.n_subjects, -1, np.int64)
        if self.members is None and database.taxonomy is not None:
            there = database.subject_index
            sets[there] = database.taxonomy.set_of(there)
            chosen = np.array([False, *self._of_sets(database.taxonomy), False])[sets]  # the last is that of no set, -1
            if not (sets[there] < 0).any():
                return chosen
        for index, header in database.headers():
            if sets[index] < 0:
                chosen[index] = self._holds(header)
        return chosen

    def may_pass(self, database: PackedDatabase) -> bool:
        """Whether a subject may belong to one of the organisms, as far as the stored taxonomy tells."""
        taxonomy = database.taxonomy
        if self.members is not None or taxonomy is None:
            return True
        if any(self._of_sets(taxonomy)):
            return True
        return bool((taxonomy.set_of(database.subject_index) < 0).any())  # the headers of these subjects decide

    def _of_sets(self, taxonomy: DatabaseTaxonomy) -> Iterator[bool]:
        """Whether each set of taxonomy ids of a database, from number 1, has one of the organisms."""
        for number in range(1, taxonomy.n_sets + 1):
            yield not self.taxids.isdisjoint(taxonomy.taxids_of_set(number))

    def _holds(self, header: str) -> bool:
        if self.members is None:
            return not self.taxids.isdisjoint(header_taxids(header))
        return any(name in self.members for name in mapped_names(header))


def _refuse_lack(database: PackedDatabase) -> None:
    """Refuse several databases of which only some have a taxonomy: descendants in the others would be left out."""
    lacking = next((one.name for one in database.members if one.catalogue.taxonomy_digest is None), None)
    if lacking is not None:
        advice = f"store one with `swsearch db taxonomy {lacking} TAXDUMP`, or give {option('taxonomy')}"
        raise InputError(
            f"{option('taxid')}: {lacking} has no taxonomy, and another of the databases has one; {advice}"
        )


def parse_taxids(text: str) -> frozenset[int]:
    """Taxonomy ids separated by commas.

    >>> sorted(parse_taxids("9606,10090"))
    [9606, 10090]
    """
    parts = [part.strip() for part in text.split(",")]
    if not all(_TAXID.fullmatch(part) for part in parts):
        raise InputError(f"{option('taxid', text)}: give NCBI taxonomy ids separated by commas, such as 9606,10090")
    return frozenset(map(int, parts))


def with_descendants(
    taxids: frozenset[int], tree: Taxonomy, *, is_whole: bool = True
) -> tuple[frozenset[int], list[str]]:
    """The ids and all their descendants in a tree, and messages about ids that were merged into others.

    Former ids of these taxa are included, so that sequences which state them are found.

    Raises
    ------
    InputError
        The tree is whole and lacks an id.
    """
    notes = []
    is_chosen = np.zeros(len(tree), np.bool_)
    found = set(taxids)
    for taxid in sorted(taxids):
        taxon = tree.index(taxid)
        if taxon is None:
            if is_whole:
                raise InputError(f"{option('taxid', taxid)} {_absence(tree, taxid)}")
            continue
        if (current := tree.taxid(taxon)) != taxid:
            notes.append(f"--taxid {taxid} was merged into {current}, which is used")
        for first, stop in tree.descendants(taxon):
            is_chosen[first:stop] = True
    found.update(tree.taxids[is_chosen].tolist())
    found.update(tree.merged[np.isin(tree.merged[:, 1], tree.taxids[is_chosen]), 0].tolist())
    return frozenset(found), notes


def _absence(tree: Taxonomy, taxid: int) -> str:
    if tree.is_deleted(taxid):
        return "was deleted from the taxonomy; take the id of the organism that it was meant for"
    return "is not in the taxonomy; take a newer taxdump, or correct the id"


def mapped_members(taxids: frozenset[int], path: str) -> frozenset[str]:
    """The identifiers to which a map assigns one of the ids; only these are stored in memory.

    Raises
    ------
    InputError
        The file is not a map.
    """
    members: set[str] = set()
    for names, ids in read_map(path):
        if not taxids.isdisjoint(ids):
            members.update(names)
    return frozenset(members)
