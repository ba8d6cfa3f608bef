"""The user's store: the file in which commands keep runs if no store is named. It is the same in every folder.

This module imports nothing that takes time, since commands resolve the name before they know whether it is needed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from swsearch.errors import StoreError
from swsearch.folders import user_data
from swsearch.words import option

_FILE: Final = "hits.sqlite"
_ADVICE: Final = f"name another store with {option('store')} or SWSEARCH_STORE, or none"


def user_store() -> Path:
    """``swsearch/hits.sqlite`` under ``$XDG_DATA_HOME`` or ``~/.local/share``; it need not exist.

    Raises
    ------
    StoreError
        The user has no home folder.
    """
    path = user_data(_FILE)
    if path is None:
        raise StoreError(f"this user has no home folder in which runs could be kept; {_ADVICE}")
    return path


def is_user_store(name: str) -> bool:
    """Whether a store of this name is the user's store."""
    return name == str(user_data(_FILE))


def make_user_folder() -> Path:
    """Create the folder of the user's store, which nobody else can read, unless it exists; return the store's path.

    The permissions are those of the XDG Base Directory Specification, also for the folders above it.

    Raises
    ------
    StoreError
        The folder cannot be created, or the user has no home folder.
    """
    path = user_store()
    try:
        missing = [folder for folder in (path.parent, *path.parent.parents) if not folder.exists()]
        for folder in reversed(missing):
            folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise StoreError(f"the folder {path.parent} cannot be created: {error.strerror}; {_ADVICE}") from error
    return path
