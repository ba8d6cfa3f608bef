"""The FastAPI application of the web process: :func:`create_app`.

``app.state`` has ``service`` (:class:`~swsearch.service.service.Service`), ``hub`` (who waits for a change),
``identity`` (who sent a request), ``readers`` (threads for long texts), ``changed(key)`` (wakes the worker and
everybody who waits for a search) and ``settings``. ``request.state`` has ``owner`` and ``request_id``. What the process
exchanges with others goes through an :class:`~swsearch.service.exchange.Exchange`.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from anyio import to_thread
from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.concurrency import run_in_threadpool

from swsearch import __version__
from swsearch.errors import SwSearchError
from swsearch.service.answers import add_error_answers, error_answer
from swsearch.service.api import describe_tokens, router
from swsearch.service.bodies import Readers
from swsearch.service.exchange import Exchange, OwnWorkers
from swsearch.service.guard import Guard, Identity
from swsearch.service.hub import Hub
from swsearch.service.logs import log
from swsearch.service.metrics import Metrics
from swsearch.service.pages.wiring import add_pages
from swsearch.service.protocols.registry import add_protocols
from swsearch.service.proxies import RootPath, TrustedProxies
from swsearch.service.service import Service
from swsearch.service.settings import Settings
from swsearch.service.shared import SharedMemory
from swsearch.threads import SWITCH_SECONDS

THREADS: Final = 4
"""Threads that use the store. With 40, the default, they spend more time on waiting for each other than on work: on 16
cores, 64 clients got 64 answers a second, and 84 with 4 threads."""
_EXPIRY_SECONDS: Final = 60.0
"""Time between two looks for expired searches."""


def create_app(
    settings: Settings,
    exchange: Exchange | None = None,
    memory: SharedMemory | None = None,
    metrics_folder: Path | None = None,
    *,
    deletes_expired: bool = True,
) -> FastAPI:
    """The application for these settings.

    Parameters
    ----------
    settings : Settings
    exchange : Exchange, optional
        By default, that of the only web process of a server: its lifespan starts and stops the worker.
    memory : SharedMemory, optional
        What it shares with other web processes.
    metrics_folder : Path, optional
        Where it counts together with them.
    deletes_expired : bool
        Whether this process deletes searches that have expired.

    Raises
    ------
    StoreError
        The store cannot be opened.
    """
    shared = SharedMemory() if memory is None else memory
    service = Service(settings, shared.downloads(settings.limits))
    metrics = Metrics(service, metrics_folder)
    hub = Hub(service)
    others = exchange or OwnWorkers(
        settings.worker_commands, metrics.worker_restarts.inc, settings.limits.worker_silence_seconds
    )
    others.on_change, others.on_valid = hub.hint, service.remember_valid
    service.on_submit, service.on_valid = others.work, others.valid
    readers = Readers()

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        to_thread.current_default_thread_limiter().total_tokens = THREADS
        sys.setswitchinterval(SWITCH_SECONDS)
        hub.start()
        others.start()
        expiry = asyncio.create_task(_delete_expired(service)) if deletes_expired else None
        try:
            yield
        finally:
            if expiry is not None:
                expiry.cancel()
            await hub.stop()
            await others.stop()
            readers.close()
            service.close()
            shared.close()

    app = FastAPI(
        title="swsearch",
        version=__version__,
        description="Exhaustive Smith-Waterman searches of protein and DNA databases.",
        lifespan=lifespan,
        openapi_url="/api/v1/openapi.json",
        servers=[{"url": settings.root_path}] if settings.root_path else None,
        docs_url=None,  # their pages load scripts from other sites
        redoc_url=None,
    )
    app.state.settings = settings
    app.state.service = service
    app.state.hub = hub
    app.state.readers = readers

    def changed(key: str) -> None:
        others.work()
        others.changed(key)

    app.state.changed = changed
    app.state.identity = Identity(service, shared)
    app.add_middleware(Guard, service=service, identity=app.state.identity, metrics=metrics)
    if settings.tokens_required:
        describe_tokens(app)
    if settings.trusted_proxies:
        app.add_middleware(TrustedProxies, proxies=settings.trusted_proxies)
    if settings.root_path:
        app.add_middleware(RootPath, root_path=settings.root_path)
    add_error_answers(app, router.routes)
    app.include_router(router)
    add_pages(app)
    add_protocols(app, settings.protocols)

    @app.get("/healthz", include_in_schema=False)
    async def healthz() -> dict[str, str]:
        """The process answers."""
        return {"status": "ok"}

    @app.get("/readyz", include_in_schema=False)
    def readyz() -> JSONResponse:
        """The store can be read, and a worker has made progress lately: that of this server, if it has one."""
        try:
            is_ready = service.is_ready() and (others.is_worker_ready or not settings.worker_commands)
            service.store.check_place()
            service.store.waiting()
        except SwSearchError:
            return error_answer(503, "store_unavailable", "the store cannot be read")
        if not is_ready:
            return error_answer(503, "no_worker", "no worker is ready")
        return JSONResponse({"status": "ready"})

    @app.get("/metrics", include_in_schema=False)
    def prometheus(_request: Request) -> Response:
        """The metrics."""
        return Response(metrics.text(), media_type=CONTENT_TYPE_LATEST)

    return app


async def _delete_expired(service: Service) -> None:
    while True:
        try:
            n_deleted = await run_in_threadpool(service.delete_expired)
            if n_deleted:
                log("searches expired", searches=n_deleted)
        except SwSearchError as error:
            log("store failed", "error", message=str(error))
        await asyncio.sleep(_EXPIRY_SECONDS)
