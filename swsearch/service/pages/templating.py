"""Templates, and the static files, whose addresses change with their content.

The middleware of the application adds the headers that protect pages: no script or style may stand in a page, and
nothing may come from another address.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache, partial
from importlib import resources
from typing import Any, Final

from fastapi import Response
from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined

from swsearch import __version__
from swsearch.hits.formatting import one_line, shown_bits, shown_evalue
from swsearch.report.html import bits_class
from swsearch.sequences.record import split_header
from swsearch.service.guard import SENDER
from swsearch.service.proxies import address
from swsearch.words import counted, duration

_STATIC: Final = {
    "style.css": "text/css; charset=utf-8",
    "pages.js": "text/javascript; charset=utf-8",
    "icicle.js": "text/javascript; charset=utf-8",
    "htmx-2.0.11.min.js": "text/javascript; charset=utf-8",
    "htmx-ext-sse-2.2.4.min.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
    "LICENSES.txt": "text/plain; charset=utf-8",
}
_STATE_WORDS: Final = {"queued": "waiting", "done": "finished"}
"""What people read of states whose names are others."""
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_YEAR: Final = "public, max-age=31536000, immutable"


@cache
def static_content(name: str) -> bytes:
    """The content of a static file. The style sheet begins with the components of the HTML reports."""
    of_reports = resources.files("swsearch.report").joinpath("page")
    if name == "icicle.js":
        return of_reports.joinpath(name).read_bytes()
    content = resources.files(__package__).joinpath("static", name).read_bytes()
    return of_reports.joinpath("components.css").read_bytes() + content if name == "style.css" else content


@cache
def _version(name: str) -> str:
    return hashlib.sha256(static_content(name)).hexdigest()[:12]


def static_address(name: str) -> str:
    """The address of a static file, with a part of its digest."""
    return address(f"/static/{name}?v={_version(name)}")


def static_response(name: str) -> Response:
    """A static file, which browsers keep for a year; 404 if there is none of this name."""
    if name not in _STATIC:
        return Response("There is no such file.", 404, media_type="text/plain")
    return Response(static_content(name), media_type=_STATIC[name], headers={"Cache-Control": _YEAR})


def shown_time(time: datetime) -> str:
    """A time in UTC to the minute."""
    return time.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


def first_word(header: str) -> str:
    """The first word of a header, as a name that people read."""
    return one_line(split_header(header)[0]) or "unnamed"


def description_of(header: str) -> str:
    """The rest of a header."""
    return one_line(split_header(header)[1])


def whole(text: str) -> int | None:
    """A whole number of an address or a form, of at most 11 digits; None if the text is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 12 else None


@cache
def environment() -> Environment:
    """The templates of the package; every value is escaped, and a missing one is an error."""
    made = Environment(
        loader=PackageLoader(__package__, "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(duration=duration, time=shown_time, one_line=one_line, first_word=first_word, counted=counted)
    made.filters.update(description=description_of, bits=shown_bits, evalue=shown_evalue, bits_class=bits_class)
    made.filters["iso"] = lambda time: time.astimezone(UTC).isoformat(timespec="seconds")
    made.filters["state_word"] = lambda state: _STATE_WORDS.get(state, state)
    made.filters["number"] = lambda value: f"{value:,}"
    made.globals.update(static=static_address, version=__version__, sender=SENDER.get, root=partial(address, ""))
    return made


def rendered(template: str, values: Mapping[str, Any]) -> str:
    """The text of a template. Bytes of a header that are not UTF-8 are shown as U+FFFD."""
    return _SURROGATE.sub("\ufffd", environment().get_template(template).render(values))


def page(template: str, status: int = 200, headers: Mapping[str, str] | None = None, **values: Any) -> HTMLResponse:
    """A page as an answer. What depends on the owner is not kept by caches."""
    sent = {"Cache-Control": "private, no-cache", "Vary": "HX-Request", **(headers or {})}
    return HTMLResponse(rendered(template, values), status, sent)
