"""Protocols that clients of other search services already speak, each behind a switch (`swsearch serve --protocol`).

A protocol is a router of its own: it translates the requests of its clients into submissions, and states and reports
into the answers that they expect, errors included. Everything else is the service's: jobs, owners, limits, reports.

:data:`PROTOCOLS` has them by name, and :func:`add_protocols` adds some of them to an application.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fastapi import APIRouter, FastAPI

from swsearch.errors import InputError
from swsearch.service.protocols import blast, tickets

PROTOCOLS: Final[dict[str, APIRouter]] = {
    "blast": blast.router,
    "tickets": tickets.router,
}
"""The router of each protocol, by the name of its switch."""
ERRORS: Final = {
    "tickets": tickets.errors_with_status,
}
"""Middleware of protocols whose clients need errors in another form, those of every other part of the server too."""


def check_protocols(names: Sequence[str]) -> tuple[str, ...]:
    """The protocols that a server is asked for, each of them once; raises InputError for any other name."""
    for name in names:
        if name not in PROTOCOLS:
            raise InputError(f"--protocol {name}: there is no such protocol; choose from {', '.join(PROTOCOLS)}")
    return tuple(dict.fromkeys(names))


def add_protocols(app: FastAPI, names: Sequence[str]) -> None:
    """Let an application speak these protocols."""
    for name in names:
        app.include_router(PROTOCOLS[name], include_in_schema=False)
        if name in ERRORS:
            app.add_middleware(ERRORS[name])
