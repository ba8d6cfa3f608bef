"""``swsearch tokens``: add, list and revoke the tokens of the people who may use a service."""

from __future__ import annotations

import shlex
from typing import Annotated

import typer

from swsearch.cli import options
from swsearch.cli.command import CommandGroup
from swsearch.errors import InputError
from swsearch.options import DEFAULT_STORE

app = CommandGroup(
    help="Add, list and revoke the tokens of a service. A server with a token answers no request without one.",
    no_args_is_help=True,
)


@app.command()
def add(
    owner: Annotated[
        str, typer.Argument(metavar="NAME", help="Owner of the token. Owners see only their own searches.")
    ],
    store: options.CreatedStore = DEFAULT_STORE,
) -> None:
    """Make a token and print it. It is shown this once; the store keeps its SHA-256.

    Example: swsearch tokens add ann --store hits.sqlite
    """
    from swsearch.cli.output import say
    from swsearch.store.store import Store

    with Store(store, create=True) as opened:
        stored, token = opened.accounts.add_token(owner)
        print(token)
        say(f"token {stored.id} of {owner}; a server that runs without tokens asks for them after a restart")


@app.command("list")
def list_tokens(store: options.KeptStore = DEFAULT_STORE) -> None:
    """List the tokens: id, owner, when they were made and revoked.

    Example: swsearch tokens list --store hits.sqlite
    """
    from swsearch.cli.output import say
    from swsearch.store.store import Store

    with Store(store) as opened:
        tokens = opened.accounts.tokens()
        if not tokens:
            say(f"no token in {opened.name}; `swsearch tokens add NAME --store {shlex.quote(opened.name)}` makes one")
        for token in tokens:
            state = "valid" if token.revoked is None else f"revoked {token.revoked:%Y-%m-%d %H:%M}"
            print(f"{token.id}  {token.created:%Y-%m-%d %H:%M}  {state}  {token.owner}")


@app.command()
def revoke(
    tokens: Annotated[
        list[str], typer.Argument(metavar="ID…", help="Ids of the tokens, as `swsearch tokens list` prints them.")
    ],
    store: options.KeptStore = DEFAULT_STORE,
) -> None:
    """Revoke tokens: within seconds, a running server refuses them.

    Example: swsearch tokens revoke 1f0c22aa --store hits.sqlite
    """
    from swsearch.cli.output import say
    from swsearch.store.store import Store

    if not tokens:
        raise InputError("give the id of a token")
    with Store(store) as opened:
        for token_id in tokens:
            token = opened.accounts.revoke_token(token_id)
            say(f"token {token.id} of {token.owner} is revoked")
