"""The navigation in the sidebar, made once for the site. The theme would make it anew for each page, in a third of
the time of the build: the pages differ only in the relative links, and in the entries that are marked as current.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Final
from xml.etree import ElementTree

from sources import START
from sphinx.application import Sphinx
from sphinx.environment.adapters.toctree import global_toctree_for_doc

_BEFORE_THE_THEME: Final = 400
_AFTER_THE_THEME: Final = 600


class Sidebar:
    """The navigation of all pages.

    Parameters
    ----------
    app : Sphinx
        Its pages get this navigation.
    """

    def __init__(self, app: Sphinx) -> None:
        self._of_start: str | None = None
        self._parsed: ElementTree.Element | None = None
        app.connect("html-page-context", self._offer, priority=_BEFORE_THE_THEME)
        app.connect("html-page-context", self._adapt, priority=_AFTER_THE_THEME)

    def _offer(self, app: Sphinx, _page: str, _template: str, context: dict[str, Any], _doctree: object) -> None:
        """Give the theme the entries as the first page has them."""
        if self._of_start is None:
            builder: Any = app.builder
            entries = global_toctree_for_doc(
                app.env, START, builder, tags=app.tags, collapse=False, includehidden=True, maxdepth=-1,
                titles_only=True,
            )  # fmt: skip
            self._of_start = builder.render_partial(entries)["fragment"]
        context["toctree"] = lambda **_: self._of_start

    def _adapt(self, app: Sphinx, page: str, _template: str, context: dict[str, Any], _doctree: object) -> None:
        """Write the links of this page, and mark its entry and those above it, into what the theme has made."""
        if self._parsed is None:
            self._parsed = ElementTree.fromstring(f"<div>{context['furo_navigation_tree']}</div>")
        tree = deepcopy(self._parsed)
        above = {child: parent for parent in tree.iter() for child in parent}
        for link in tree.iter("a"):
            target = link.attrib["href"].removesuffix(".html")
            if target == page:
                link.set("href", "#")
                link.set("class", f"current {link.get('class')}")
                _mark(above[link], above)
                above[link].set("class", f"{above[link].get('class')} current-page")
            else:
                link.set("href", app.builder.get_relative_uri(page, target))
        text = ElementTree.tostring(tree, encoding="unicode", method="html")
        context["furo_navigation_tree"] = text.removeprefix("<div>").removesuffix("</div>")


def _mark(entry: ElementTree.Element, above: dict[ElementTree.Element, ElementTree.Element]) -> None:
    """Mark an entry of the navigation, its list, and the entries above it, whose lists are shown."""
    level, *others = entry.attrib["class"].split()
    entry.set("class", " ".join([level, "current", *others]))
    box = entry.find("input")
    if box is not None:
        box.set("checked", "")
    above[entry].set("class", "current")
    if above[above[entry]].tag == "li":
        _mark(above[above[entry]], above)
