"""Where the taxonomic tree comes from: the option ``--taxonomy``, or the environment variable ``SWSEARCH_TAXONOMY``.

A tree that a database has stored stands between the two: an option has precedence over it, the variable has not.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

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
    from swsearch.taxonomy.cache import load_taxonomy

    return load_taxonomy(os.environ[TAXONOMY_VARIABLE], TAXONOMY_VARIABLE) if given is None else load_taxonomy(given)


def has_variable() -> bool:
    """Whether the environment names a taxdump."""
    return bool(os.environ.get(TAXONOMY_VARIABLE))
