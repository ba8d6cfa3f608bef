"""Counts of what was assigned to taxa, such as queries: how many to each taxon, and to it and all below it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from swsearch.taxonomy.tree import Taxonomy


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

    Parameters
    ----------
    tree : Taxonomy
    direct : mapping of int to int
        For each taxon, the number of assignments to it.
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
    """The same taxa without those whose assignments are all at or below one child; roots are kept.

    Parameters
    ----------
    counts : list of TaxonCount
        As :func:`clade_counts` lists them.
    """
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
