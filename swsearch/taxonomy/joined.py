"""One tree of the taxa of several, such as those that several databases have stored."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from swsearch.taxonomy.texts import Texts
from swsearch.taxonomy.tree import Taxonomy, build_tree


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
        rank_names=[tree.rank_names[number] for tree in trees for number in range(len(tree.rank_names))],
        names=[
            (known, Texts.joined(getattr(tree, column).take(own) for tree, own in chosen))
            for column in ("names", "common_names", "blast_names")
        ],
        merged=np.concatenate([tree.merged for tree in trees]),
        deleted=np.concatenate([tree.deleted for tree in trees]),
    )
