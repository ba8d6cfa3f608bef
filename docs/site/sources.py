"""Collects the sources of the documentation site in one folder: the Markdown pages of the repository, and their files.

The pages are those of ``docs/`` and some that lie beside what they describe (``CHANGELOG.md``, ``cuda/README.md`` …).
On GitHub they are read where they are, so their links are relative to the repository. Here each page gets its place on
the site, and its links are rewritten: to the place of another page, or to a copy of a file of the repository, which the
site offers for download. Anchors and addresses of the web remain as they are.

``navigation.toml`` says in which section each page is listed. A page in no section is an error.
"""

from __future__ import annotations

import posixpath
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
NAVIGATION: Final = Path(__file__).with_name("navigation.toml")
START: Final = "index"

_BESIDE: Final = {
    "CHANGELOG.md": "project/changelog",
    "CONTRIBUTING.md": "project/contributing",
    "benchmarks/README.md": "project/benchmarks",
    "cuda/README.md": "project/kernels",
    "data/README.md": "project/data",
}
"""Pages outside ``docs/`` by their places on the site."""
_FILES: Final = "files"
"""The folder of the site's sources for files of the repository outside ``docs/``."""
_LINK: Final = re.compile(r"(?<=\]\()([^)#\s]+)((?:#[^)\s]*)?)(?=\))")


class SiteError(Exception):
    """The site cannot be built; the message says what to change."""


@dataclass(frozen=True)
class Section:
    """A section of the navigation.

    Attributes
    ----------
    title : str
    pages : tuple of str
        Names of pages, without suffix, and patterns of names for all other pages that match.
    """

    title: str
    pages: tuple[str, ...]


def navigation() -> list[Section]:
    """The sections of ``navigation.toml``."""
    found = tomllib.loads(NAVIGATION.read_text(encoding="utf-8"))
    return [Section(one["title"], tuple(one["pages"])) for one in found["section"]]


def repository_pages(root: Path = ROOT) -> dict[str, str]:
    """The pages of the repository that are on the site: path in the repository → name on the site."""
    docs = {
        path.relative_to(root).as_posix(): path.relative_to(root / "docs").with_suffix("").as_posix()
        for path in sorted(root.glob("docs/**/*.md"))
    }
    examples = {f"examples/{path.parent.name}/README.md": f"examples/{path.parent.name}"
                for path in sorted(root.glob("examples/*/README.md"))}  # fmt: skip
    return docs | _BESIDE | examples


def listed(sections: Sequence[Section], titles: Mapping[str, str]) -> dict[str, list[str]]:
    """The pages of each section: those that are named, in this order, then those that match a pattern, by their titles.

    Parameters
    ----------
    sections : sequence of Section
    titles : mapping of str to str
        Name of each page to be listed → its title.

    Raises
    ------
    SiteError
        A page is in no section or in two, or a section names a page that does not exist.
    """
    named = [page for section in sections for page in section.pages if "*" not in page]
    for page in named:
        if page not in titles:
            raise SiteError(f"{NAVIGATION.name} names {page}, and there is no such page; remove the name")
        if named.count(page) > 1:
            raise SiteError(f"{NAVIGATION.name} names {page} twice")
    found = {}
    rest = {page: title for page, title in titles.items() if page not in named}
    for section in sections:
        pages = []
        for name in section.pages:
            if "*" not in name:
                pages.append(name)
                continue
            matching = sorted((page for page in rest if fnmatchcase(page, name)), key=lambda page: rest[page].lower())
            pages += matching
            for page in matching:
                del rest[page]
        found[section.title] = pages
    if rest:
        raise SiteError(
            f"no section of docs/site/{NAVIGATION.name} lists {', '.join(sorted(rest))}; name each where a reader "
            "would look for it"
        )
    return found


def title_of(page: str, text: str) -> str:
    """The title of a page: its first heading.

    Raises
    ------
    SiteError
        The page does not begin with a heading of the first level.
    """
    first = text.partition("\n")[0]
    if not first.startswith("# "):
        raise SiteError(f"{page}: the first line is not a title; begin the page with '# ' and the title")
    return first[2:].strip()


def rewritten(path: str, text: str, places: Mapping[str, str], root: Path = ROOT) -> tuple[str, set[str]]:
    """A page with links for the site, and the files of the repository that they lead to.

    Parameters
    ----------
    path : str
        The page's path in the repository.
    text : str
        Its Markdown.
    places : mapping of str to str
        Path in the repository → name on the site, for all pages.
    root : Path
        The repository.
    """
    here = posixpath.dirname(places[path])
    files = set()

    def link(match: re.Match[str]) -> str:
        target, anchor = match.groups()
        aim = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
        if aim in places:
            return posixpath.relpath(f"{places[aim]}.md", here or ".") + anchor
        if "://" not in target and (root / aim).is_file():
            files.add(aim)
            return posixpath.relpath(_place_of_file(aim), here or ".") + anchor
        return match[0]

    return _LINK.sub(link, text), files


def write_sources(folder: Path, generated: Mapping[str, str]) -> None:
    """Write the sources of the site.

    Parameters
    ----------
    folder : Path
        An empty folder, or none.
    generated : mapping of str to str
        Further pages: name with suffix → text. Those in folders are listed by the page ``index`` of their folder.

    Raises
    ------
    SiteError
        A page is not listed, or has no title.
    """
    places = repository_pages()
    written: dict[str, bytes] = {}
    titles = {}
    for path, name in places.items():
        text = (ROOT / path).read_text(encoding="utf-8")
        titles[name] = title_of(path, text)
        text, files = rewritten(path, text, places)
        written[f"{name}.md"] = text.encode()
        written |= {_place_of_file(file): (ROOT / file).read_bytes() for file in files}
    written |= {name: text.encode() for name, text in generated.items()}
    titles |= {name.rpartition(".")[0]: name for name in generated if name.rpartition(".")[0].endswith("/index")}
    del titles[START]
    sections = listed(navigation(), titles)
    written[f"{START}.md"] += "".join(_toctree(title, pages) for title, pages in sections.items()).encode()

    for name, content in written.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)


def _place_of_file(path: str) -> str:
    """The place of a file of the repository among the sources: files of ``docs/`` stay beside its pages."""
    return path.removeprefix("docs/") if path.startswith("docs/") else f"{_FILES}/{path}"


def _toctree(title: str, pages: Sequence[str]) -> str:
    return "\n```{toctree}\n:hidden:\n:caption: " + title + "\n\n" + "".join(f"{page}\n" for page in pages) + "```\n"
