"""The FastAPI application of the web process: :func:`create_app`."""

from __future__ import annotations

from fastapi import FastAPI

from swsearch import __version__
from swsearch.service.settings import Settings


def create_app(settings: Settings) -> FastAPI:
    """The application for these settings."""
    app = FastAPI(title="swsearch", version=__version__)
    app.state.settings = settings
    # THE BROWSER PAGES: app.include_router(swsearch.service.web.pages.router)
    return app
