"""Checks of the names of stores, and the store that commands use if none is named."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from swsearch.errors import InputError
from swsearch.options import DEFAULT_STORE

_FORMER_DEFAULT: Final = Path("hits.sqlite")
STORE_VARIABLE: Final = "SWSEARCH_STORE"
"""Environment variable that specifies the store if ``--store`` is not used."""


def store_or_none(store: str) -> str:
    """The name of a store; ``none`` is recognised in upper and lower case."""
    if not store.strip():
        raise InputError("--store has an empty name; give a file or a database URL, or none")
    return "none" if store.lower() == "none" else store


def refuse_none(store: str) -> None:
    """Refuse ``none`` in commands that require a store.

    Raises
    ------
    InputError
        The name is ``none``, from the option or the environment.
    """
    if store_or_none(store) == "none":
        in_environment = os.environ.get(STORE_VARIABLE, "").lower() == "none"
        given = f"{STORE_VARIABLE}=none" if in_environment else "--store none"
        advice = "name their store with --store FILE"
        raise InputError(f"{given} keeps no hits, and this command works on kept ones; {advice}")


def kept_store(store: str) -> str:
    """The name of a store, for commands that require one; :data:`DEFAULT_STORE` becomes the path of the user's store.

    Raises
    ------
    InputError
        The name is ``none``.
    StoreError
        It is the user's store, and the user has no home folder.
    """
    refuse_none(store)
    if store != DEFAULT_STORE:
        return store
    from swsearch.folders import user_store

    say_if_former_default_is_here()
    return str(user_store())


def created_store(store: str) -> str:
    """The result of :func:`kept_store`, for commands that create the store if it is missing."""
    name = kept_store(store)
    if store == DEFAULT_STORE:
        from swsearch.folders import make_user_folder

        make_user_folder()
    return name


def say_if_former_default_is_here(*, quiet: bool = False) -> None:
    """Tell a user of the user's store that the current folder has a store, the default of former versions."""
    from swsearch.cli.output import say
    from swsearch.folders import user_store

    path = user_store()
    if _FORMER_DEFAULT.is_file() and _FORMER_DEFAULT.resolve() != path.resolve():
        advice = f"--store {_FORMER_DEFAULT} uses it"
        say(f"{_FORMER_DEFAULT} in this folder is not used, runs are kept in {path}; {advice}", quiet=quiet)


def check_staging(staging: str) -> str:
    """The value of ``--stage-store``, checked (:func:`swsearch.folders.check_staging`)."""
    from swsearch.folders import check_staging as check

    return check(staging)
