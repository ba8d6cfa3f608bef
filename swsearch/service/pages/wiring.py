"""The pages become part of the application: :func:`add_pages`."""

from __future__ import annotations

from fastapi import FastAPI, Request

from swsearch.service.pages.routes import pages_router
from swsearch.service.pages.service_backend import ServiceBackend
from swsearch.service.pages.sign_in import sign_in_router


def add_pages(app: FastAPI) -> None:
    """Add the pages to the application that :func:`swsearch.service.app.create_app` makes."""

    def owner_of(request: Request) -> str:
        owner: str = request.state.owner
        return owner

    app.include_router(sign_in_router())
    app.include_router(pages_router(ServiceBackend(app.state.service, app.state.hub), owner_of))
