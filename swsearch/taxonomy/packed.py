"""Conversion of a taxonomic tree to flat arrays, which files have as they are (:mod:`swsearch.taxonomy.layout`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from swsearch.taxonomy.layout import ARRAY_DTYPES
from swsearch.taxonomy.texts import Texts
from swsearch.taxonomy.tree import Taxonomy

_TEXTS: Final = ("rank_names", "names", "common_names", "blast_names")


def packed_arrays(tree: Taxonomy) -> dict[str, NDArray[Any]]:
    """The arrays of a tree, by their names in :data:`swsearch.taxonomy.layout.ARRAY_DTYPES`."""
    arrays: dict[str, NDArray[Any]] = {}
    for name, dtype in ARRAY_DTYPES.items():
        if name in _TEXTS:
            arrays[name] = getattr(tree, name).text
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
        raise ValueError("the merged ids are no pairs")
    return Taxonomy(
        taxids=arrays["taxids"],
        parents=arrays["parents"],
        by_taxid=arrays["by_taxid"],
        ranks=arrays["ranks"],
        merged=arrays["merged"].reshape(-1, 2),
        deleted=arrays["deleted"],
        **columns,
    ).checked()
