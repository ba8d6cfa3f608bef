"""The taxonomic tree: taxa with their ids, ranks and names, each below its parent.

The taxa are in the order of a breadth-first walk from the roots, children by ascending id. So a parent stands before
its children, the children of neighbouring taxa are neighbours, and the descendants of a taxon are one range of each
level. Walks towards the root end because indices descend, in any arrays that :func:`Taxonomy.checked` accepts.

A column of texts is two arrays: the bytes of all texts one after another, and the end of each
(:class:`swsearch.arrays.Texts`). Arrays are written to files and mapped into memory as they are. The cache of this user
and a packed database have the same arrays, one per file. n is the number of taxa:

===================  =========================  ==========================================================
array                dtype, shape               meaning
===================  =========================  ==========================================================
``taxids``           uint32 (n,)                ids, in the order of the tree
``parents``          uint32 (n,)                index of each taxon's parent; a root is its own
``by_taxid``         uint32 (n,)                indices of the taxa by ascending id
``ranks``            uint16 (n,)                index of each taxon's rank
``rank_names``       bytes                      names of the ranks, one after another
``rank_name_ends``   uint32 (n_ranks,)          end of each in ``rank_names``, exclusive
``names``            bytes                      scientific names
``name_ends``        uint32 (n,)
``common_names``     bytes
``common_name_ends`` uint32 (n,)
``blast_names``      bytes
``blast_name_ends``  uint32 (n,)
``merged``           uint32 (2 n_merged,)       pairs of a former id, ascending, and the id into which it was merged
``deleted``          uint32 (n_deleted,)        deleted ids, ascending
===================  =========================  ==========================================================
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from swsearch.arrays import Texts, distinct

ARRAY_DTYPES: Final = {
    "taxids": "<u4",
    "parents": "<u4",
    "by_taxid": "<u4",
    "ranks": "<u2",
    "rank_names": "<u1",
    "rank_name_ends": "<u4",
    "names": "<u1",
    "name_ends": "<u4",
    "common_names": "<u1",
    "common_name_ends": "<u4",
    "blast_names": "<u1",
    "blast_name_ends": "<u4",
    "merged": "<u4",
    "deleted": "<u4",
}


Numbers = NDArray[np.uint32]
"""Taxonomy ids, indices of taxa or ends of texts, one axis."""


def ranges(starts: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The numbers of several ranges, one range after another.

    >>> ranges(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    before = np.cumsum(sizes) - sizes
    numbers: NDArray[np.int64] = np.arange(int(sizes.sum()), dtype=np.int64) + np.repeat(starts - before, sizes)
    return numbers


ROOT_TAXID: Final = 1
"""NCBI's id of the root."""
_DENSE: Final = 4
"""A table may have this many entries for each id."""
_DOMAINS: Final = ("domain", "superkingdom", "acellular root")
"""Ranks of NCBI's highest taxa: of cells since 2025 and before, and of viruses."""


@dataclass(frozen=True, eq=False)
class Taxonomy:
    """A taxonomic tree; :func:`build_tree` makes one. Taxa are numbered from 0 in the order of the tree.

    The arrays are those of the module's table; ``merged`` has the shape (n_merged, 2). Names are empty where there are
    none. Common names are those of GenBank first; BLAST's are those of large groups, such as ``mammals``.
    """

    taxids: Numbers
    parents: Numbers
    by_taxid: Numbers
    ranks: NDArray[np.uint16]
    rank_names: Texts
    names: Texts
    common_names: Texts
    blast_names: Texts
    merged: Numbers
    deleted: Numbers
    _lineages: dict[int, tuple[int, ...]] = field(default_factory=dict, init=False, repr=False)

    def __len__(self) -> int:
        return len(self.taxids)

    def checked(self) -> Taxonomy:
        """The tree itself, after a check of its arrays, so that none of their values leads outside of another array.

        Raises
        ------
        ValueError
            An array has another length than the others, or a value that it cannot have.
        """
        n = len(self)
        columns = (self.names, self.common_names, self.blast_names)
        if n == 0 or any(len(one) != n for one in (self.parents, self.by_taxid, self.ranks, *columns)):
            raise ValueError("the columns of the taxa differ in length")
        parents = self.parents.astype(np.int64)
        if (parents > np.arange(n)).any() or (np.diff(parents) < 0).any():
            raise ValueError("a taxon stands before its parent")
        if int(self.by_taxid.max()) >= n or (np.diff(self.taxids[self.by_taxid].astype(np.int64)) <= 0).any():
            raise ValueError("the taxa are not in the order of their ids")
        if int(self.ranks.max()) >= len(self.rank_names):
            raise ValueError("a rank has no name")
        for one in (self.rank_names, *columns):
            ends = one.ends.astype(np.int64)
            if (np.diff(ends, prepend=0) < 0).any() or int(ends[-1]) != len(one.data):
                raise ValueError("a name ends before it begins, or beyond all names")
        if self.merged.shape != (len(self.merged), 2) or (np.diff(self.merged[:, 0].astype(np.int64)) <= 0).any():
            raise ValueError("the merged ids do not ascend")
        if (np.diff(self.deleted.astype(np.int64)) <= 0).any():
            raise ValueError("the deleted ids do not ascend")
        return self

    @property
    def has_names(self) -> bool:
        """Whether any taxon has a name."""
        return len(self.names.data) > 0

    # --- taxa by their ids ---

    def index(self, taxid: int) -> int | None:
        """The taxon with this id, or with the id into which this one was merged; None if there is none."""
        found = self._at(taxid)
        if found is None and (current := self.merged_into(taxid)) is not None:
            return self._at(current)
        return found

    def _at(self, taxid: int) -> int | None:
        if not 0 <= taxid <= np.iinfo(np.uint32).max:
            return None
        place = int(np.searchsorted(self.taxids, np.uint32(taxid), sorter=self.by_taxid))
        if place == len(self):
            return None
        found = int(self.by_taxid[place])
        return found if int(self.taxids[found]) == taxid else None

    def merged_into(self, taxid: int) -> int | None:
        """The id into which an id was merged; None if it was not."""
        place = int(np.searchsorted(self.merged[:, 0], taxid))
        is_merged = place < len(self.merged) and int(self.merged[place, 0]) == taxid
        return int(self.merged[place, 1]) if is_merged else None

    def is_deleted(self, taxid: int) -> bool:
        """Whether an id was deleted."""
        place = int(np.searchsorted(self.deleted, taxid))
        return place < len(self.deleted) and int(self.deleted[place]) == taxid

    # --- a taxon ---

    def taxid(self, taxon: int) -> int:
        """Its id."""
        return int(self.taxids[taxon])

    def rank(self, taxon: int) -> str:
        """Its rank as NCBI names it, ``no rank`` if it has none."""
        return self.rank_names[int(self.ranks[taxon])] or "no rank"

    def name(self, taxon: int) -> str | None:
        """Its scientific name; None if the tree has no name of it."""
        return self.names[taxon] or None

    def common_name(self, taxon: int) -> str | None:
        """Its common name, or its scientific name if it has none, as in BLAST's ``scomname``."""
        return self.common_names[taxon] or self.name(taxon)

    def blast_name(self, taxon: int) -> str | None:
        """The BLAST name of its nearest ancestor, or of itself; None if no ancestor has one."""
        found = (self.blast_names[one] for one in reversed(self.lineage(taxon)))
        return next((name for name in found if name), None)

    def ancestor(self, taxon: int, *ranks: str) -> int | None:
        """Its nearest ancestor, or itself, with one of these ranks; None if there is none."""
        return next((one for one in reversed(self.lineage(taxon)) if self.rank(one) in ranks), None)

    def domain(self, taxon: int) -> str | None:
        """The name of its domain (superkingdom before 2025), such as ``Bacteria`` or ``Viruses``; None if unknown."""
        found = self.ancestor(taxon, *_DOMAINS)
        return None if found is None else self.name(found)

    def lineage(self, taxon: int) -> tuple[int, ...]:
        """The taxa from the root to this one, itself included."""
        found = self._lineages.get(taxon)
        if found is None:
            parent = int(self.parents[taxon])
            path = [taxon]
            while parent != path[-1]:
                path.append(parent)
                parent = int(self.parents[parent])
            found = tuple(reversed(path))
            self._lineages[taxon] = found
        return found

    def lineage_names(self, taxon: int) -> list[str]:
        """The names of its lineage without the root; a taxon without a name is called by its id."""
        lineage = self.lineage(taxon)
        shown = lineage[1:] if self.taxid(lineage[0]) == ROOT_TAXID and len(lineage) > 1 else lineage
        return [self.name(one) or f"taxid {self.taxid(one)}" for one in shown]

    # --- several taxa ---

    def lca(self, taxa: Iterable[int]) -> int | None:
        """The lowest common ancestor: the taxon farthest from the root that is an ancestor of all, or one of them.

        None if there are no taxa, or if they are below different roots.
        """
        lineages = [self.lineage(taxon) for taxon in set(taxa)]
        common = None
        for level in zip(*lineages, strict=False):
            if any(one != level[0] for one in level):
                break
            common = level[0]
        return common

    def children(self, first: int, stop: int) -> tuple[int, int]:
        """The range of the children of the taxa from ``first`` to ``stop`` - 1."""
        places = np.searchsorted(self.parents, [first, stop])
        begin, end = np.maximum(places, self.n_roots).tolist()
        return begin, end

    @cached_property
    def n_roots(self) -> int:
        """Number of taxa that are their own parents; they are the first."""
        return int(np.count_nonzero(self.parents == np.arange(len(self))))

    def descendants(self, taxon: int) -> Iterator[tuple[int, int]]:
        """Ranges of the taxon itself and all taxa below it, level by level."""
        level = (taxon, taxon + 1)
        while level[0] < level[1]:
            yield level
            level = self.children(*level)

    def subset(self, taxa: Sequence[int] | NDArray[np.int64]) -> Taxonomy:
        """The tree of these taxa and all their ancestors, with the former ids that were merged into one of them."""
        is_kept = np.zeros(len(self), np.bool_)
        level = np.asarray(taxa, dtype=np.int64)
        while level.size:
            is_kept[level] = True
            parents = self.parents[level].astype(np.int64)
            level = parents[~is_kept[parents]]
        kept = np.flatnonzero(is_kept)
        new = np.cumsum(is_kept, dtype=np.int64) - 1
        taxids = self.taxids[kept]
        return Taxonomy(
            taxids=taxids,
            parents=new[self.parents[kept]].astype(np.uint32),
            by_taxid=np.argsort(taxids).astype(np.uint32),
            ranks=self.ranks[kept],
            rank_names=self.rank_names,
            names=self.names.take(kept),
            common_names=self.common_names.take(kept),
            blast_names=self.blast_names.take(kept),
            merged=self.merged[np.isin(self.merged[:, 1], taxids)],
            deleted=np.empty(0, np.uint32),
        )


def build_tree(
    taxids: Numbers,
    parents: Numbers,
    ranks: NDArray[np.uint16],
    rank_names: Texts,
    names: Sequence[tuple[Numbers, Texts]],
    merged: Numbers,
    deleted: Numbers,
) -> Taxonomy:
    """The tree of taxa in any order.

    Parameters
    ----------
    taxids, parents : uint32 array, shape (n_taxa,)
        Ids of the taxa and of their parents; a root is its own parent.
    ranks : uint16 array, shape (n_taxa,)
        Indices in ``rank_names``.
    rank_names : Texts
    names : sequence of pairs
        Ids and names: scientific names, common names, and BLAST names. Of several names of a taxon, the first counts;
        ids that are not among ``taxids`` are ignored.
    merged : uint32 array, shape (n_merged, 2)
        Former ids and those into which they were merged, in any order.
    deleted : uint32 array, shape (n_deleted,)

    Raises
    ------
    ValueError
        There is no taxon, an id occurs twice, a parent does not exist, or taxa are each other's ancestors.
    """
    n = len(taxids)
    if n == 0:
        raise ValueError("there is no taxon")
    order = np.argsort(taxids, kind="stable")
    ids = taxids[order]
    if n > 1 and (twice := np.flatnonzero(ids[1:] == ids[:-1])).size:
        raise ValueError(f"taxonomy id {ids[twice[0]]} is there twice")
    above = _index(ids, parents[order])
    if (lost := np.flatnonzero(above < 0)).size:
        raise ValueError(f"the parent {parents[order][lost[0]]} of taxonomy id {ids[lost[0]]} is not there")
    walk = _breadth_first(above)
    if len(walk) < n:
        is_reached = np.zeros(n, np.bool_)
        is_reached[walk] = True
        raise ValueError(f"taxonomy id {ids[np.argmin(is_reached)]} is below no root")
    place = np.empty(n, np.int64)
    place[walk] = np.arange(n)
    tree_ids, tree_ranks = ids[walk], ranks[order][walk]
    tree_parents = place[above[walk]].astype(np.uint32)
    del order, walk, above

    def named(of: Numbers, texts: Texts) -> Texts:
        rows = np.full(n, -1, np.int64)
        at = _index(ids, of)
        known = np.flatnonzero(at >= 0)[::-1]  # backwards, so that the first name of a taxon is the last to be set
        rows[place[at[known]]] = known
        return texts.take(rows)

    merged = merged[np.argsort(merged[:, 0], kind="stable")]
    return Taxonomy(
        taxids=tree_ids,
        parents=tree_parents,
        by_taxid=place.astype(np.uint32),
        ranks=tree_ranks,
        rank_names=rank_names,
        names=named(*names[0]),
        common_names=named(*names[1]),
        blast_names=named(*names[2]),
        merged=merged[np.diff(merged[:, 0].astype(np.int64), prepend=-1) > 0],
        deleted=distinct(deleted),
    )


def _index(ids: Numbers, wanted: Numbers) -> NDArray[np.int64]:
    """The indices of some ids in ``ids``, which ascend; -1 for an id that is not there."""
    largest = int(ids[-1])
    if largest < _DENSE * len(ids):  # as NCBI's are: a table takes a tenth of the time of a binary search
        table = np.full(largest + 2, -1, np.int64)
        table[ids] = np.arange(len(ids))
        return table[np.minimum(wanted, np.uint32(largest + 1))]
    at = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
    return np.where(ids[at] == wanted, at, -1)


def _breadth_first(parents: NDArray[np.int64]) -> NDArray[np.int64]:
    """The nodes that can be reached from the roots, breadth first, children by ascending index."""
    n = len(parents)
    is_root = parents == np.arange(n)
    below = np.flatnonzero(~is_root)
    children = below[np.argsort(parents[below], kind="stable")]
    sizes = np.bincount(parents[below], minlength=n)
    starts = np.cumsum(sizes) - sizes
    level = np.flatnonzero(is_root)
    levels = []
    while level.size:
        levels.append(level)
        level = children[ranges(starts[level], sizes[level])]
    return np.concatenate(levels) if levels else np.empty(0, np.int64)


def joined_tree(trees: Sequence[Taxonomy]) -> Taxonomy:
    """The tree of all taxa of several trees, at least one.

    A taxon has parent, rank and names of the first tree that has it, so trees of different releases of a taxonomy make
    a tree as well. Former ids stay those of the taxa into which the first tree merged them.
    """
    if len(trees) == 1:
        return trees[0]
    rows = []
    known = np.empty(0, np.uint32)
    for tree in trees:
        rows.append(np.flatnonzero(~np.isin(tree.taxids, known)))
        known = np.concatenate([known, tree.taxids[rows[-1]]])
    chosen = list(zip(trees, rows, strict=True))
    first_ranks = np.cumsum([0, *(len(tree.rank_names) for tree in trees[:-1])])
    return build_tree(
        taxids=known,
        parents=np.concatenate([tree.taxids[tree.parents[own]] for tree, own in chosen]),
        ranks=np.concatenate(
            [
                (tree.ranks[own] + first).astype(np.uint16)
                for (tree, own), first in zip(chosen, first_ranks, strict=True)
            ]
        ),
        rank_names=Texts.joined(tree.rank_names for tree in trees),
        names=[
            (known, Texts.joined(getattr(tree, column).take(own) for tree, own in chosen))
            for column in ("names", "common_names", "blast_names")
        ],
        merged=np.concatenate([tree.merged for tree in trees]),
        deleted=np.concatenate([tree.deleted for tree in trees]),
    )


_TEXTS: Final = ("rank_names", "names", "common_names", "blast_names")


def packed_arrays(tree: Taxonomy) -> dict[str, NDArray[Any]]:
    """The arrays of a tree, by their names in :data:`ARRAY_DTYPES`."""
    arrays: dict[str, NDArray[Any]] = {}
    for name, dtype in ARRAY_DTYPES.items():
        if name in _TEXTS:
            arrays[name] = getattr(tree, name).data
        elif name.endswith("_ends"):
            arrays[name] = np.ascontiguousarray(getattr(tree, f"{name.removesuffix('_ends')}s").ends, dtype=dtype)
        else:
            arrays[name] = np.ascontiguousarray(getattr(tree, name), dtype=dtype).ravel()
    return arrays


def unpacked(arrays: Mapping[str, NDArray[Any]]) -> Taxonomy:
    """The tree of these arrays, which it does not copy.

    Raises
    ------
    ValueError
        The arrays are those of no tree; the message says why.
    """
    columns = {name: Texts(arrays[name], arrays[f"{name.removesuffix('s')}_ends"]) for name in _TEXTS}
    if len(arrays["merged"]) % 2:
        raise ValueError("the merged ids are not pairs")
    return Taxonomy(
        taxids=arrays["taxids"],
        parents=arrays["parents"],
        by_taxid=arrays["by_taxid"],
        ranks=arrays["ranks"],
        merged=arrays["merged"].reshape(-1, 2),
        deleted=arrays["deleted"],
        **columns,
    ).checked()
