"""Locations of files: ``migrations`` and ``cuda`` of a checkout or an installed package, caches and user's data."""

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

    For a user without a home folder, as in some containers, the returned folder cannot be created, and nothing is
    cached.
    """
    return (_user_folder("XDG_CACHE_HOME", ".cache") or Path(os.devnull)) / "swsearch" / name


def user_data(name: str) -> Path | None:
    """The file ``swsearch/name`` under ``$XDG_DATA_HOME`` or ``~/.local/share``; it need not exist.

    None for a user without a home folder.
    """
    folder = _user_folder("XDG_DATA_HOME", ".local/share")
    return None if folder is None else folder / "swsearch" / name


def _user_folder(variable: str, usual: str) -> Path | None:
    """The folder that ``variable`` names, or ``usual`` in the home folder; None if the user has no home folder.

    A relative path in the variable is ignored, as the XDG Base Directory Specification requires.
    """
    given = Path(os.environ.get(variable, ""))
    if given.is_absolute():
        return given
    try:
        return Path.home() / usual
    except RuntimeError:
        return None
