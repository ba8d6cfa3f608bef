"""The taxonomy of a packed database: which organisms its sequences come from, and the tree of these organisms.

It is stored when a database is made or later (:func:`swsearch.database.changes.set_taxonomy`), so that filters and
reports need no other file. It has the taxa of the database and their ancestors only, a small part of NCBI's taxdump.
Its format is specified in :mod:`swsearch.database.format`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from swsearch.database.format import TAXONOMY_DTYPES, Catalogue, TaxonomyEntry, taxonomy_name
from swsearch.database.segment import Numbering, Segment, header_blocks, parts_of, shifted
from swsearch.database.segment_writer import HashingFile
from swsearch.errors import DatabaseError, InputError
from swsearch.folders import sync_folder
from swsearch.taxonomy.assignment import TaxidSets, mapped_taxids, stated_taxids
from swsearch.taxonomy.subject_taxa import TAXONOMY_VARIABLE, TaxidNotes, TaxonomyOfSubjects, chosen_tree
from swsearch.taxonomy.tree import Numbers, Taxonomy, joined_tree, packed_arrays, unpacked
from swsearch.typing import SubjectIndex
from swsearch.words import option

if TYPE_CHECKING:
    from swsearch.database.reader import Member, PackedDatabase


def store_organisms(
    folder: Path,
    generation: int,
    parts: Iterable[Sequence[Segment]],
    tree: Taxonomy,
    taxid_map: str | os.PathLike[str] | None,
) -> tuple[TaxonomyEntry, tuple[str, ...]]:
    """Write the taxonomy of sequences into the folder of their database; the result is that of :func:`store_taxonomy`.

    The parts are those of all rows, removed subjects included. Without a map (:mod:`swsearch.taxonomy.assignment`), ids
    are those that headers state. Raises InputError if the map cannot be read.
    """
    headers = (header for part in parts for _, block in header_blocks(part, with_removed=True) for header in block)
    taxids = stated_taxids(headers) if taxid_map is None else mapped_taxids(headers, os.fspath(taxid_map))
    return store_taxonomy(folder, generation, tree, taxids)


def store_taxonomy(
    folder: Path, generation: int, tree: Taxonomy, taxids: TaxidSets
) -> tuple[TaxonomyEntry, tuple[str, ...]]:
    """Write the taxonomy of all rows into the folder of a database; also returns messages about ids not current.

    The tree has at least the taxa of the rows. Ids that were merged are replaced.
    """
    notes = TaxidNotes(tree)
    sets = [tuple(sorted({notes.current(taxid) for taxid in ids})) for ids in taxids.sets]
    taxa = sorted({taxon for ids in sets for taxid in ids if (taxon := tree.index(taxid)) is not None})
    deleted = sorted({taxid for ids in sets for taxid in ids if tree.is_deleted(taxid)})
    kept = replace(tree.subset(taxa or [0]), deleted=np.array(deleted, np.uint32))
    target = folder / taxonomy_name(generation)
    target.mkdir()
    arrays: dict[str, NDArray[Any]] = {
        **packed_arrays(kept),
        "set_of": taxids.set_of,
        "set_taxids": np.array([taxid for ids in sets for taxid in ids], np.uint32),
        "set_ends": np.cumsum([len(ids) for ids in sets], dtype=np.uint64).astype(np.uint32),
    }
    files = {}
    for name, dtype in TAXONOMY_DTYPES.items():
        with HashingFile(target / f"{name}.bin", dtype) as file:
            files[name] = file.finish([arrays[name]])
    sync_folder(target)
    entry = TaxonomyEntry(target.name, len(kept), len(taxids.set_of), taxids.n_assigned, files)
    return entry, tuple(notes.messages())


class DatabaseTaxonomy:
    """The organisms of all subjects of an open database, or of several.

    The sets of ids of a member are numbered behind those of the members before it. Subjects of a member without a
    stored taxonomy are as those that were added to a database after its taxonomy was stored: their headers state their
    ids.

    Parameters
    ----------
    members : sequence of Member
        At least one has stored a taxonomy.
    n_before : sequence of int
        ``subject_index`` of the first subject of each member.

    Raises
    ------
    DatabaseError
        The arrays of a member contradict each other.
    """

    def __init__(self, members: Sequence[Member], n_before: Sequence[int]) -> None:
        self._trees: list[Taxonomy] = []
        # The numbering of each part, its first row, the sets of all rows, and the number of sets of earlier members.
        self._parts: list[tuple[Numbering, int, Numbers, int]] = []
        taxids, ends = [], []
        n_taxids = n_sets = 0
        for member, first in zip(members, n_before, strict=False):
            arrays, entry = member.taxonomy_arrays, member.catalogue.taxonomy
            if arrays is None or entry is None:
                continue
            self._trees.append(_checked_tree(member.folder / entry.name, arrays))
            rows = first_rows(member.catalogue)
            for part in parts_of(shifted(member.segments, first)):
                self._parts.append((part[0].numbering, rows[part[0].entry.name], arrays["set_of"], n_sets))
            taxids.append(arrays["set_taxids"])
            ends.append(arrays["set_ends"].astype(np.int64) + n_taxids)
            n_taxids += len(taxids[-1])
            n_sets += len(ends[-1])
        self._taxids, self._ends = np.concatenate(taxids), np.concatenate(ends)

    @cached_property
    def tree(self) -> Taxonomy:
        """The taxa of all sequences, and their ancestors; one that members place differently is as in the first."""
        return joined_tree(self._trees)

    @property
    def n_sets(self) -> int:
        """Number of different sets of ids, those of each member counted by themselves."""
        return len(self._ends)

    def taxids(self, subject_index: int) -> tuple[int, ...] | None:
        """The ids of a subject, ascending; None for one that was added after the taxonomy was stored."""
        number = int(self.set_of(np.array([subject_index], np.uint32))[0])
        return None if number < 0 else () if number == 0 else self.taxids_of_set(number)

    def taxids_of_set(self, number: int) -> tuple[int, ...]:
        """The ids of a set, whose number counts from 1."""
        start = int(self._ends[number - 2]) if number > 1 else 0
        return tuple(self._taxids[start : int(self._ends[number - 1])].tolist())

    def set_of(self, subject_index: SubjectIndex) -> NDArray[np.int64]:
        """The sets of subjects: numbers from 1, 0 for no id, -1 for subjects whose ids are not stored; int64."""
        sets = np.full(len(subject_index), -1, np.int64)
        for numbering, first_row, set_of, n_before in self._parts:
            inside = np.flatnonzero(numbering.holds(subject_index))
            rows = numbering.fasta_indices(subject_index[inside]).astype(np.int64) + first_row
            is_stored = rows < len(set_of)
            own = set_of[rows[is_stored]].astype(np.int64)
            sets[inside[is_stored]] = np.where(own > 0, own + n_before, 0)
        return sets


def _checked_tree(folder: Path, arrays: Mapping[str, NDArray[Any]]) -> Taxonomy:
    """The tree of a stored taxonomy, after a check of all its arrays; messages name the folder."""
    try:
        tree = unpacked(arrays)
        ends = arrays["set_ends"].astype(np.int64)
        if (np.diff(ends, prepend=0) < 0).any() or len(arrays["set_taxids"]) != (ends[-1] if len(ends) else 0):
            raise ValueError("a set of ids ends before it begins, or beyond all ids")
        if len(arrays["set_of"]) and int(arrays["set_of"].max()) > len(ends):
            raise ValueError("a sequence has a set that is not there")
    except ValueError as error:
        raise DatabaseError(
            f"{folder} is damaged: {error}; store the taxonomy again (`swsearch db taxonomy`)"
        ) from error
    return tree


def first_rows(catalogue: Catalogue) -> dict[str, int]:
    """The first row of each segment, by its name; all slices have that of the whole segment, 0."""
    rows, base = {segment.name: 0 for segment in catalogue.segments if segment.is_slice}, 0
    for segment in catalogue.content:
        rows[segment.name] = base
        base += segment.n_subjects
    return rows


def remaining_taxids(database: PackedDatabase, taxonomy: DatabaseTaxonomy) -> TaxidSets:
    """The ids of all subjects by their index, those of subjects that were added later from their headers."""
    every = database.subject_index
    sets = taxonomy.set_of(every)
    stored = [taxonomy.taxids_of_set(number) for number in range(1, taxonomy.n_sets + 1)]
    added = np.flatnonzero(sets < 0)
    stated = stated_taxids(database.header(int(one)) for one in every[added].tolist())
    sets[added] = np.where(stated.set_of > 0, stated.set_of.astype(np.int64) + len(stored), 0)
    return TaxidSets((*stored, *stated.sets), sets.astype(np.uint32))


def taxonomy_of_subjects(
    database: PackedDatabase | None,
    taxonomy: str | None = None,
    taxid_map: str | None = None,
    needed_by: str | None = None,
) -> TaxonomyOfSubjects | None:
    """The organisms of the subjects of a search, for its reports; None if nothing is known about them.

    Parameters
    ----------
    database : PackedDatabase or None
        The database that was searched, if it is there.
    taxonomy : str or None
        A taxdump, in place of the tree that the database has stored.
    taxid_map : str or None
        A map of identifiers to ids, in place of the ids that the database has stored or headers state.
    needed_by : str or None
        What needs the names of a taxonomy, for the message if there are none; None if it works without them.

    Raises
    ------
    InputError
        A file cannot be read, there is no taxonomy or one without names although it is needed, or there is a map and no
        taxonomy or no database.
    """
    stored = None if database is None else database.taxonomy
    is_needed = needed_by is not None or taxid_map is not None
    tree = chosen_tree(taxonomy, None if stored is None else stored.tree, is_needed=is_needed)
    if tree is None:
        what = needed_by or (taxid_map and option("taxid_map", taxid_map))
        if what is None:
            return None
        named = f"{option('taxonomy')} or {TAXONOMY_VARIABLE} names one"
        where = f"{named}, `swsearch db taxonomy` stores one with the database"
        raise InputError(f"{what} needs a taxonomy; {where}")
    if needed_by is not None and not tree.has_names:
        raise InputError(f"{needed_by} needs the names of taxa, which are not there; give a taxdump with names.dmp")
    if taxid_map is None:
        return TaxonomyOfSubjects(tree) if stored is None else TaxonomyOfSubjects(tree, stored.taxids)
    if database is None:
        given = option("taxid_map", taxid_map)
        raise InputError(f"{given}: the names of the subjects are in the database, which is not there")
    mapped = mapped_taxids((header for _, header in database.headers()), taxid_map)
    return TaxonomyOfSubjects(tree, mapped.taxids)
