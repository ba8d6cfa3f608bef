"""The pages for signing in and out, on servers with tokens.

``/sign-in``    takes a token once, keeps it in a cookie, and leads back to the page that was asked for
``/sign-out``   (POST) forgets it

The cookie is ``SameSite=Strict``, so a browser that comes from another site does not send it at first. The sign-in page
then asks the browser to come again, from a page of this server.
"""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from swsearch.service.answers import EarlyAnswer
from swsearch.service.guard import SIGN_IN, SIGN_OUT, Identity, cookie, kept_token, local_address
from swsearch.service.pages.templating import page

_NO_STORE = {"Cache-Control": "no-store"}


def sign_in_router() -> APIRouter:
    """The router of these pages."""
    router = APIRouter(include_in_schema=False)

    @router.get(SIGN_IN)
    async def form(request: Request) -> Response:
        wanted = local_address(request.query_params.get("next", "/"))
        if not request.app.state.settings.tokens_required:
            return RedirectResponse("/", 303)
        token = kept_token(request.scope, request.headers)
        if token is not None:
            try:
                if await _identity(request).owner_of(token, request.scope) is not None:
                    return RedirectResponse(wanted, 303, _NO_STORE)
            except EarlyAnswer:
                return _form(wanted)
        from_elsewhere = request.headers.get("sec-fetch-site") in ("cross-site", "same-site")
        return _form(wanted, comes_again=from_elsewhere and "again" not in request.query_params)

    @router.post(SIGN_IN)
    async def sign_in(request: Request) -> Response:
        async with request.form(max_files=0, max_fields=10) as sent:
            token, wanted = (str(sent.get(name, "")).strip() for name in ("token", "next"))
        wanted = local_address(wanted)
        if not token:
            return _form(wanted, 422, "Paste your token.")
        try:
            owner = await _identity(request).owner_of(token, request.scope)
        except EarlyAnswer as refusal:
            answer = _form(wanted, refusal.answer.status_code, f"{str(refusal).capitalize()}.")
            answer.headers.update({k: v for k, v in refusal.answer.headers.items() if k == "retry-after"})
            return answer
        if owner is None:
            return _form(wanted, 403, "This token is not valid, or it was revoked.")
        return RedirectResponse(wanted, 303, {"Set-Cookie": cookie(request.scope, token), **_NO_STORE})

    @router.post(SIGN_OUT)
    def sign_out(request: Request) -> RedirectResponse:
        return RedirectResponse(SIGN_IN, 303, {"Set-Cookie": cookie(request.scope, None), **_NO_STORE})

    return router


def _identity(request: Request) -> Identity:
    identity: Identity = request.app.state.identity
    return identity


def _form(wanted: str, status: int = 200, problem: str = "", *, comes_again: bool = False) -> HTMLResponse:
    return page("sign_in.html", status, _NO_STORE, wanted=wanted, problem=problem, comes_again=comes_again)
