"""A taxonomic tree as flat little-endian arrays, which are written to files and mapped into memory as they are.

The cache of this user and a packed database have the same arrays, one per file. n is the number of taxa:

===================  =========================  ==========================================================
array                dtype, shape               meaning
===================  =========================  ==========================================================
``taxids``           uint32 (n,)                ids, in the order of the tree (:mod:`swsearch.taxonomy.tree`)
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
``merged``           uint32 (2 n_merged,)       pairs of a former id and the id into which it was merged
``deleted``          uint32 (n_deleted,)        deleted ids, ascending
===================  =========================  ==========================================================
"""

from __future__ import annotations

from typing import Final

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
