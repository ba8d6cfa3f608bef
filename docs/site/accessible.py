"""Repairs of the built pages for readers who use a keyboard or a screen reader.

Each repair replaces a piece of the theme's HTML. The tests look at pages with axe-core.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

_REPAIRS: Final = {
    # The captions of the navigation have the role of a heading, without its level.
    '<p class="caption" role="heading">': '<p class="caption" role="heading" aria-level="2">',
    # Two landmarks of the same kind need names.
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="Site">',
    '<aside class="toc-drawer">': '<aside class="toc-drawer" aria-label="Page">',
    # What scrolls must take the focus, so that keys can scroll it.
    "<pre>": '<pre tabindex="0">',
    '<div class="table-wrapper ': '<div tabindex="0" class="table-wrapper ',
    # The empty corner of a table is not a header.
    '<th class="head"><p></p></th>': "<td></td>",
}


def repair(folder: Path) -> None:
    """Repair all pages of a built site."""
    for path in sorted(folder.rglob("*.html")):
        text = path.read_text(encoding="utf-8")
        for piece, repaired in _REPAIRS.items():
            text = text.replace(piece, repaired)
        path.write_text(text, encoding="utf-8")
