"""Where the files beside the package are: ``migrations/`` and ``cuda/``, in a checkout or in an installed package."""

from __future__ import annotations

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
