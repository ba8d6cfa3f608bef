"""The options that name a store, and the store that commands use if none is named."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from swsearch.cli import completion
from swsearch.cli.options import CREATED_STORE, KEPT_STORE, OUTPUT, NamedFile
from swsearch.errors import InputError
from swsearch.file_systems import check_staging

DEFAULT_STORE: Final = "~/.local/share/swsearch/hits.sqlite"
"""Stands for the user's store (:func:`swsearch.store.user_store.user_store`), also where $XDG_DATA_HOME moves it."""
_FORMER_DEFAULT: Final = Path("hits.sqlite")
STORE_VARIABLE: Final = "SWSEARCH_STORE"
"""Environment variable that specifies the store if ``--store`` is not used."""


def _store_or_none(store: str) -> str:
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
    if _store_or_none(store) == "none":
        in_environment = os.environ.get(STORE_VARIABLE, "").lower() == "none"
        given = f"{STORE_VARIABLE}=none" if in_environment else "--store none"
        advice = "name their store with --store FILE"
        raise InputError(f"{given} keeps no hits, and this command works on kept ones; {advice}")


def _kept_store(store: str) -> str:
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
    from swsearch.store.user_store import user_store

    say_if_former_default_is_here()
    return str(user_store())


def _created_store(store: str) -> str:
    """The result of :func:`_kept_store`, for commands that create the store if it is missing."""
    name = _kept_store(store)
    if store == DEFAULT_STORE:
        from swsearch.store.user_store import make_user_folder

        make_user_folder()
    return name


def say_if_former_default_is_here(*, quiet: bool = False) -> None:
    """Tell a user of the user's store that the current folder has a store, the default of former versions."""
    from swsearch.cli.output import say
    from swsearch.store.user_store import user_store

    path = user_store()
    if _FORMER_DEFAULT.is_file() and _FORMER_DEFAULT.resolve() != path.resolve():
        advice = f"--store {_FORMER_DEFAULT} uses it"
        say(f"{_FORMER_DEFAULT} in this folder is not used, runs are kept in {path}; {advice}", quiet=quiet)


def _store_option(purpose: str, callback: Callable[..., str], kind: NamedFile) -> Any:
    return typer.Option(
        click_type=kind,
        envvar=STORE_VARIABLE,
        help=f"SQLite file or database URL that keeps the hits{purpose}.",
        rich_help_panel=OUTPUT,
        callback=callback,
    )


Store = Annotated[str, _store_option(", or none", _store_or_none, CREATED_STORE)]
KeptStore = Annotated[str, _store_option("", _kept_store, KEPT_STORE)]
CreatedStore = Annotated[str, _store_option("; a missing one is created", _created_store, CREATED_STORE)]
StageStore = Annotated[
    str,
    typer.Option(
        "--stage-store",
        metavar="[auto|always|never]",
        autocompletion=completion.one_of(("auto", "always", "never")),
        callback=check_staging,
        help="Write the store on this machine and publish it as whole files: auto where it is on a network file "
        "system.",
        rich_help_panel=OUTPUT,
    ),
]
