"""The FastAPI application of the web process: :func:`create_app`.

``app.state`` has ``service`` (:class:`~swsearch.service.service.Service`), ``hub`` (who waits for a change),
``identity`` (who sent a request) and ``readers`` (threads for long texts). ``request.state`` has ``owner`` and
``request_id``.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from anyio import to_thread
from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.concurrency import run_in_threadpool

from swsearch import __version__
from swsearch.errors import SwSearchError
from swsearch.report.links import link_table
from swsearch.service.answers import add_error_answers, error_answer
from swsearch.service.bodies import Readers
from swsearch.service.domain_finder import DomainFinder
from swsearch.service.guard import Guard, Identity
from swsearch.service.hub import Hub
from swsearch.service.json_api import describe_tokens, router
from swsearch.service.logs import log
from swsearch.service.metrics import Metrics
from swsearch.service.pages import routes as pages
from swsearch.service.protocols import add_protocols
from swsearch.service.proxies import RootPath, TrustedProxies
from swsearch.service.service import Service
from swsearch.service.settings import Settings
from swsearch.service.worker_processes import ServerWorker
from swsearch.threads import SWITCH_SECONDS

THREADS: Final = 4
"""Threads that use the store. With 40, the default, they spend more time on waiting for each other than on work: on 16
cores, 64 clients got 64 answers a second, and 84 with 4 threads."""
_EXPIRY_SECONDS: Final = 60.0
"""Time between two looks for expired searches."""


def create_app(settings: Settings) -> FastAPI:
    """The application for these settings; its lifespan starts and stops the workers.

    Raises
    ------
    StoreError
        The store cannot be opened.
    """
    link_table()  # refuses a file of links that cannot be used
    service = Service(settings)
    metrics = Metrics(service)
    hub = Hub(service)

    def died() -> None:
        metrics.worker_restarts.inc()
        hub.look_at_all()

    silence = settings.limits.worker_silence_seconds
    workers = [
        ServerWorker(command, hub.hint_changed, hub.hint_ended, died, silence) for command in settings.worker_commands
    ]
    readers = Readers()

    def wake() -> None:
        for worker in workers:
            worker.wake()

    def cancelled(key: str) -> None:
        wake()
        hub.hint_ended([key])

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        to_thread.current_default_thread_limiter().total_tokens = THREADS
        sys.setswitchinterval(SWITCH_SECONDS)
        # Many threads use the service; the workers and the hub belong to this loop.
        in_loop = asyncio.get_running_loop().call_soon_threadsafe
        service.on_submit = wake
        service.on_cancel = lambda key: in_loop(cancelled, key)
        hub.start()
        for worker in workers:
            worker.start()
        expiry = asyncio.create_task(_delete_expired(service))
        try:
            yield
        finally:
            expiry.cancel()
            await hub.stop()
            await asyncio.gather(*(worker.stop() for worker in workers))
            readers.close()
            service.close()

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
    app.state.service = service
    app.state.hub = hub
    app.state.readers = readers
    app.state.domain_finder = DomainFinder(settings.families) if settings.families else None

    app.state.identity = Identity(service)
    app.add_middleware(Guard, service=service, identity=app.state.identity, metrics=metrics)
    if settings.tokens_required:
        describe_tokens(app)
    if settings.trusted_proxies:
        app.add_middleware(TrustedProxies, proxies=settings.trusted_proxies)
    if settings.root_path:
        app.add_middleware(RootPath, root_path=settings.root_path)
    add_error_answers(app, router.routes)
    app.include_router(router)
    app.include_router(pages.sign_in_router)
    app.include_router(pages.router)
    add_protocols(app, settings.protocols)

    @app.get("/healthz", include_in_schema=False)
    async def healthz() -> dict[str, str]:
        """The process answers."""
        return {"status": "ok"}

    @app.get("/readyz", include_in_schema=False)
    def readyz() -> JSONResponse:
        """The store can be read, and a worker has made progress lately: that of this server, if it has one."""
        try:
            is_ready = service.is_ready() and (not workers or any(worker.is_ready for worker in workers))
            service.store.check_place()
            service.store.searches.waiting()
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
