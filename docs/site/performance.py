"""Texts whose figures are read from ``benchmarks/results``: the page on performance, made when the site is built, and
what lies in the repository, the page ``docs/how-good-how-fast.md`` and the figures of ``README.md``.

    python docs/site/performance.py     # writes the page and the figures of the README

A text is a file ``….md.in`` beside this one. A figure in it is ``{{file / key / key | format}}``: the name of a
result without suffix, the keys that lead to the value, and a format of Python. The key ``[program=swsearch;
threads=1]`` takes, from a list, the one entry that has these values. A figure that is written by hand is an error.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any, Final

from sources import ROOT, SiteError

RESULTS: Final = ROOT / "benchmarks" / "results"
TEXT: Final = Path(__file__).with_name("performance.md.in")
_README_FIGURES: Final = re.compile(r"(?<=<!--figures-->\n).*?(?=<!--end-->)", re.DOTALL)
_FIGURE: Final = re.compile(r"\{\{(.+?)(?:\|([^|]*?))?\}\}")
_CELLS_BY_HAND: Final = re.compile(r"^\|[^|\n]*\|.*\d.*$(?!\n\| ---)", re.MULTILINE)
_MEASURED: Final = re.compile(r"\d[\d,.]*\s*(?:GCUPS|GB|MB|ms|s|seconds|times|%)(?!\w)")


def performance_pages(text: str | None = None, results: Path = RESULTS) -> dict[str, str]:
    """The page: name with suffix → Markdown.

    Parameters
    ----------
    text : str, optional
        The text with places for figures; by default ``performance.md.in``.
    results : Path
        The folder of the results.

    Raises
    ------
    SiteError
        A result has no such value, or a figure is written by hand.
    """
    if text is None:
        text = TEXT.read_text(encoding="utf-8")
    return {"performance/index.md": _with_figures(text, TEXT.name, results)}


def repository_texts() -> dict[Path, str]:
    """What lies in the repository and has figures: path → the text as it must be.

    Raises
    ------
    SiteError
        As :func:`performance_pages`.
    """

    def made(name: str) -> str:
        return _with_figures(TEXT.with_name(name).read_text(encoding="utf-8"), name, RESULTS)

    readme = ROOT / "README.md"
    figures = made("readme-figures.md.in")
    return {
        ROOT / "docs" / "how-good-how-fast.md": made("how-good-how-fast.md.in"),
        readme: _README_FIGURES.sub(lambda _: figures, readme.read_text(encoding="utf-8")),
    }


def _with_figures(text: str, place: str, results: Path) -> str:
    """A text with the figures in their places; ``place`` names it in messages."""
    bare = _FIGURE.sub("", text)
    for pattern in (_CELLS_BY_HAND, _MEASURED):
        if found := pattern.search(bare):
            raise SiteError(f"{place}: {found[0]!r} has a figure written by hand; read it from a result")

    def figure(match: re.Match[str]) -> str:
        name, *keys = (key.strip() for key in match[1].split("/"))
        value = _value(results / f"{name}.json", keys, place)
        return format(value, (match[2] or "").strip())

    return _FIGURE.sub(figure, text)


def _value(path: Path, keys: list[str], place: str) -> Any:
    """The value of a result that keys lead to."""
    try:
        value: Any = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SiteError(f"{place} names {path.name}, and there is no such result in {path.parent}") from None
    for key in keys:
        if key.startswith("["):
            wanted = [pair.split("=") for pair in key.strip("[]").split(";")]
            fitting = [one for one in value if all(str(one.get(name.strip())) == is_.strip() for name, is_ in wanted)]
            if len(fitting) != 1:
                raise SiteError(f"{place}: {len(fitting)} entries of {path.name} fit {key}; name one")
            value = fitting[0]
        elif isinstance(value, dict) and key in value:
            value = value[key]
        else:
            raise SiteError(f"{place}: {path.name} has no {' / '.join(keys)}")
    return value


def main() -> int:
    """Write the texts that lie in the repository; returns the exit code."""
    try:
        texts = repository_texts()
    except SiteError as error:
        print(f"docs: error: {error}", file=sys.stderr)
        return 1
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
