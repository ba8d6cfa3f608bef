"""The page on performance: a text whose figures are read from ``benchmarks/results`` when the site is built.

The text is ``performance.md.in``. A figure in it is ``{{file / key / key | format}}``: the name of a result without
suffix, the keys that lead to the value, and a format of Python. The key ``[program=swsearch; threads=1]`` takes, from a
list, the one entry that has these values. A figure that is written by hand is an error.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

from sources import ROOT, SiteError

RESULTS: Final = ROOT / "benchmarks" / "results"
TEXT: Final = Path(__file__).with_name("performance.md.in")
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
    bare = _FIGURE.sub("", text)
    for pattern in (_CELLS_BY_HAND, _MEASURED):
        if found := pattern.search(bare):
            raise SiteError(f"{TEXT.name}: {found[0]!r} has a figure written by hand; read it from a result")

    def figure(match: re.Match[str]) -> str:
        name, *keys = (key.strip() for key in match[1].split("/"))
        value = _value(results / f"{name}.json", keys)
        return format(value, (match[2] or "").strip())

    return {"performance/index.md": _FIGURE.sub(figure, text)}


def _value(path: Path, keys: list[str]) -> Any:
    """The value of a result that keys lead to."""
    try:
        value: Any = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SiteError(f"{TEXT.name} names {path.name}, and there is no such result in {path.parent}") from None
    for key in keys:
        if key.startswith("["):
            wanted = [pair.split("=") for pair in key.strip("[]").split(";")]
            fitting = [one for one in value if all(str(one.get(name.strip())) == is_.strip() for name, is_ in wanted)]
            if len(fitting) != 1:
                raise SiteError(f"{TEXT.name}: {len(fitting)} entries of {path.name} fit {key}; name one")
            value = fitting[0]
        elif isinstance(value, dict) and key in value:
            value = value[key]
        else:
            raise SiteError(f"{TEXT.name}: {path.name} has no {' / '.join(keys)}")
    return value
