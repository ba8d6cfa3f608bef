"""Where files are: ``migrations/`` and ``cuda/`` beside the package, in a checkout or in an installed one; caches."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from swsearch.errors import SwSearchError

_PACKAGE = Path(__file__).resolve().parent


@cache
def resource_folder(name: str) -> Path:
    """The folder ``name`` that the build copies into the package as ``_name``.

    A checkout comes first, so that an editable install sees the files as they are edited.

    Parameters
    ----------
    name : str
        ``migrations`` or ``cuda``.

    Raises
    ------
    SwSearchError
        The folder is in neither place: the installation is damaged.
    """
    checkout = _PACKAGE.parent
    if (checkout / "pyproject.toml").is_file() and (checkout / name).is_dir():
        return checkout / name
    # An editable install keeps what the build copied beside the compiled module, which lies on the package's path too.
    import swsearch

    for folder in swsearch.__path__:
        if (Path(folder) / f"_{name}").is_dir():
            return Path(folder) / f"_{name}"
    raise SwSearchError(f"{_PACKAGE} lacks its folder _{name}; install swsearch again")


def user_cache(name: str) -> Path:
    """The folder ``swsearch/name`` under ``$XDG_CACHE_HOME`` or ``~/.cache``; it need not exist.

    A relative ``$XDG_CACHE_HOME`` does not count, as its specification has it. For a user without a home, as in some
    containers, the folder is one that nobody can create: caches then keep nothing.
    """
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if given.is_absolute():
        return given / "swsearch" / name
    try:
        return Path.home() / ".cache" / "swsearch" / name
    except RuntimeError:
        return Path(os.devnull) / "swsearch" / name
