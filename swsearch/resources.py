"""Locations of files: the folders ``migrations`` and ``cuda`` of a checkout or an installed package, and caches."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from swsearch.errors import SwSearchError

_PACKAGE = Path(__file__).resolve().parent


@cache
def resource_folder(name: str) -> Path:
    """The folder ``name`` of the checkout, or else the copy ``_name`` that the build adds to the package.

    The checkout has precedence, so that an editable install uses the edited files.

    Parameters
    ----------
    name : str
        ``migrations`` or ``cuda``.

    Raises
    ------
    SwSearchError
        The folder is in neither location, so the installation is damaged.
    """
    checkout = _PACKAGE.parent
    if (checkout / "pyproject.toml").is_file() and (checkout / name).is_dir():
        return checkout / name
    # An editable install has the copies beside the compiled module, whose folder is also on the package's path.
    import swsearch

    for folder in swsearch.__path__:
        if (Path(folder) / f"_{name}").is_dir():
            return Path(folder) / f"_{name}"
    raise SwSearchError(f"{_PACKAGE} lacks its folder _{name}; install swsearch again")


def user_cache(name: str) -> Path:
    """The folder ``swsearch/name`` under ``$XDG_CACHE_HOME`` or ``~/.cache``; it need not exist.

    A relative ``$XDG_CACHE_HOME`` is ignored, as its specification requires. For a user without a home folder, as in
    some containers, the returned folder cannot be created, and nothing is cached.
    """
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if given.is_absolute():
        return given / "swsearch" / name
    try:
        return Path.home() / ".cache" / "swsearch" / name
    except RuntimeError:
        return Path(os.devnull) / "swsearch" / name
