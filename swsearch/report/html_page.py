"""What the HTML reports have in common: a page that is one file and loads no other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from html import escape
from importlib import resources
from typing import Final

from swsearch.report.text import one_line

_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
ROWS_SHOWN: Final = 500
"""Number of rows of a table that are initially shown; the style sheet contains the same number."""


@cache
def _page_file(name: str) -> str:
    return resources.files("swsearch.report.page").joinpath(name).read_text("utf-8")


def text(value: str) -> str:
    """Text escaped for any part of the page."""
    return escape(one_line(value))


def opening(title: str, heading: str, skip: tuple[str, str], facts: Mapping[str, str | None]) -> Iterator[str]:
    """The page up to the facts of its header, which is not closed.

    Parameters
    ----------
    title, heading : str
    skip : pair of str
        The id of the content, and the words of the link that leads the keyboard there.
    facts : mapping of str to str or None
        Facts by their names; those that are None are left out.
    """
    yield '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
    yield f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">\n<link rel="icon" href="data:,">\n'
    style = _page_file("components.css") + _page_file("style.css")
    yield f"<title>{text(title)}</title>\n<style>\n{style}</style>\n</head>\n"
    yield f'<body>\n<a class="skip" href="#{skip[0]}">{skip[1]}</a>\n<header>\n'
    yield f'<h1>{heading}</h1>\n<dl class="facts">\n'
    yield from (f"<dt>{name}</dt><dd>{text(fact)}</dd>\n" for name, fact in facts.items() if fact)
    yield "</dl>\n"


def no_script(words: str) -> str:
    """A remark for browsers without scripts, where all rows of a table are shown."""
    shown = "table.short tbody tr { display: table-row !important; } .all { display: none; }"
    return f"<noscript><p>{words}</p><style>{shown}</style></noscript>\n"


def all_rows_button(table: str, n_rows: int) -> str:
    """The button below a long table that shows the other rows; ``table`` is its id."""
    return f'<button type="button" class="all" aria-controls="{table}">Show all {n_rows:,} rows</button>\n'


def closing(*scripts: str) -> str:
    """The end of the page, with these files of the folder ``page`` as scripts."""
    written = "".join(f"<script>\n{_page_file(name)}</script>\n" for name in scripts)
    return f"</main>\n{written}</body>\n</html>\n"
