"""A page parsed strictly: elements closed in order, links and forms, nothing that the security policy forbids."""

from collections import deque
from collections.abc import Iterable
from html.parser import HTMLParser
from urllib.parse import urldefrag, urljoin, urlsplit

from tests.service.servers import Answer, Site

VOID = {"meta", "link", "br", "input"}
ADDRESSES = ("href", "src", "hx-get", "sse-connect", "data-poll")
EXPECTED = {
    "html", "head", "meta", "title", "link", "script", "noscript", "body", "a", "header", "nav", "ul", "ol", "li",
    "main", "p", "footer", "h1", "h2", "h3", "form", "section", "label", "textarea", "input", "template",
    "fieldset", "legend", "span", "bdi", "div", "select", "option", "details", "summary", "button", "dl", "dt",
    "dd", "figure", "figcaption", "svg", "line", "text", "rect", "path", "table", "caption", "thead", "tbody",
    "tr", "th", "td", "time", "pre", "progress", "strong", "code",
}  # fmt: skip
"""The elements of all templates and figures."""


class HtmlPage(HTMLParser):
    """The elements of a page or of a part of one.

    Attributes
    ----------
    text : str
        All text outside of ``script`` and ``template``.
    links : list of str
        Addresses of the server that a browser would get.
    external : list of str
        Addresses of public databases, to which a browser sends no address of a page.
    forms : list of (method, action)
    rows : list of list of str
        The texts of the cells of all rows.
    values, values_by_id : dict of str to str
        Contents of the fields.
    """

    def __init__(self, text: str, root_path: str = "") -> None:
        super().__init__()
        self._root_path = root_path
        self.open: list[str] = []
        self.ids: list[str] = []
        self.references: list[str] = []
        self.links: list[str] = []
        self.external: list[str] = []
        self.forms: list[tuple[str, str]] = []
        self.rows: list[list[str]] = []
        self.text = ""
        self.values: dict[str, str] = {}
        self.values_by_id: dict[str, str] = {}
        self.feed(text)
        self.close()
        assert self.open == []
        assert len(self.ids) == len(set(self.ids)), sorted(self.ids)
        if text.startswith("<!DOCTYPE html>"):
            assert set(self.references) <= set(self.ids), set(self.references) - set(self.ids)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in EXPECTED, tag
        values = {name: value or "" for name, value in attrs}
        assert "style" not in values
        assert not [name for name in values if name.startswith(("on", "hx-on"))]
        self.ids += [values["id"]] if "id" in values else []
        if values.get("rel") == "external noopener noreferrer":
            assert values["href"].startswith("https://")
            self.external.append(values["href"])
        else:
            self.links += [values[name] for name in ADDRESSES if name in values]
        for name in ("aria-labelledby", "aria-describedby", "aria-controls", "for"):
            self.references += values.get(name, "").split()
        if tag == "form":
            self.forms.append((values.get("method", "get"), values["action"]))
        if tag == "script":
            assert values["src"].startswith(f"{self._root_path}/static/")
        if tag == "input" and "name" in values and values.get("type") not in ("radio", "checkbox", "file"):
            self.values[values["name"]] = values.get("value", "")
        if tag == "input" and "id" in values:
            self.values_by_id[values["id"]] = values.get("value", "")
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th") and self.rows:
            self.rows[-1].append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ("line", "rect", "path"), tag

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        assert not (self.open and self.open[-1] == "script" and data.strip())
        if "template" not in self.open:
            self.text += data
        if self.rows and {"td", "th"} & set(self.open) and "title" not in self.open:
            self.rows[-1][-1] += data


def crawled(site: Site, start: Iterable[str], owner: str | None = None) -> dict[str, Answer]:
    """The answers to some paths, and to those of up to 400 to which their pages lead, all of which are of the site."""
    root = urlsplit(site.url).path
    seen: dict[str, Answer] = {}
    waiting = deque(start)
    while waiting:
        path = waiting.popleft()
        if path in seen or len(seen) > 400 or path.endswith("/events"):
            continue
        seen[path] = answer = site.request(path, owner=owner)
        if not answer.is_page:
            continue
        page = HtmlPage(answer.text, root)
        sent = {action for method, action in page.forms if method == "post"}
        for link in [*page.links, *(action for _, action in page.forms)]:
            address = urldefrag(urljoin(root + path, link))[0]
            assert not urlsplit(address).netloc, address
            assert address.startswith(f"{root}/"), (path, link)
            if "sort=" not in address and "hits/" not in address and link not in sent:
                waiting.append(address.removeprefix(root))
    return seen
