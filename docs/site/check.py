"""Checks the built pages of the site: every link inside leads somewhere, and nothing is loaded from another address.

Links to other sites are checked for their form alone; ``make docs-links`` asks the network.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

_LOADED: Final = {
    "audio": ("src",), "embed": ("src",), "iframe": ("src",), "img": ("src", "srcset"), "input": ("src",),
    "link": ("href",), "object": ("data",), "script": ("src",), "source": ("src", "srcset"), "video": ("src", "poster"),
}  # fmt: skip
"""Attributes by which an element makes a browser load something."""
_CSS_ADDRESS: Final = re.compile(r"url\(\s*['\"]?([^'\")]+)|@import\s+['\"]([^'\"]+)")
_HOST: Final = re.compile(r"(?:[a-z0-9-]+\.)+[a-z]{2,}")


@dataclass
class _Page(HTMLParser):
    """The anchors, links and loaded files of a page.

    Attributes
    ----------
    anchors : set of str
    links : list of str
        Addresses of ``a`` elements.
    loaded : list of str
        Addresses that a browser loads.
    """

    anchors: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take the addresses of an element."""
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        self.loaded += [values[name] for name in _LOADED.get(tag, ()) if name in values]
        self.loaded += _addresses(values.get("style", ""))


def _addresses(style: str) -> list[str]:
    return [one[0] or one[1] for one in _CSS_ADDRESS.findall(style)]


def faults(folder: Path) -> Iterator[str]:
    """What is wrong in a built site, one line each: a link without a target, or an address that is loaded from outside.

    Parameters
    ----------
    folder : Path
        The site, as Sphinx's builder ``html`` writes it.
    """
    pages = {}
    for path in sorted(folder.rglob("*.html")):
        page = _Page()
        page.feed(path.read_text(encoding="utf-8"))
        pages[path] = page
    for path, page in pages.items():
        place = path.relative_to(folder).as_posix()
        for link in dict.fromkeys(page.links):
            fault = _fault_of_link(link, path, pages)
            if fault:
                yield f"{place}: the link {link} {fault}"
        for address in dict.fromkeys(page.loaded):
            fault = _fault_of_loaded(address, path)
            if fault:
                yield f"{place}: {address} {fault}"
    for path in sorted(folder.rglob("*.css")):
        for address in _addresses(path.read_text(encoding="utf-8")):
            fault = _fault_of_loaded(address, path)
            if fault:
                yield f"{path.relative_to(folder).as_posix()}: {address} {fault}"


def _fault_of_link(link: str, path: Path, pages: dict[Path, _Page]) -> str | None:
    parts = urlsplit(link)
    if parts.scheme in ("http", "https"):
        return None if _HOST.fullmatch(parts.hostname or "") else "has no host that could exist"
    if parts.scheme or parts.netloc:
        return f"has the scheme {parts.scheme or 'of a network path'}, which no page needs"
    # Most links are those of the navigation, which all pages have.
    target = _file_at(path.parent, unquote(parts.path)) if parts.path else path
    if target is None:
        return "leads to no page or file"
    anchor = unquote(parts.fragment)
    if anchor and target in pages and anchor not in pages[target].anchors:
        return "names an anchor that the page does not have"
    return None


@cache
def _file_at(folder: Path, place: str) -> Path | None:
    """Return the file at a place relative to a folder, if there is one."""
    target = (folder / place).resolve()
    return target if target.is_file() else None


def _fault_of_loaded(address: str, path: Path) -> str | None:
    parts = urlsplit(address)
    if parts.scheme == "data" or not address or address.startswith("#"):
        return None
    if parts.scheme or parts.netloc:
        return "is loaded from another address"
    return None if (path.parent / unquote(parts.path)).is_file() else "is loaded and does not exist"
