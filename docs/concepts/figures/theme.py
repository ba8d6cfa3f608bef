"""The look of the figures of docs/concepts: Matplotlib draws them, and their colours follow the reader's scheme.

A figure is drawn in the colours named here. In the SVG file each of them becomes a CSS variable with a light and a
dark value, chosen by ``prefers-color-scheme``. Every figure has a background of its own, so it can be
read on a page whose scheme differs from the browser's.
"""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Final

import matplotlib as mpl
from matplotlib.figure import Figure

FOLDER: Final = Path(__file__).resolve().parents[1]

PAPER, INK, FAINT = "#fefefe", "#1b1b1b", "#c9c9c9"
BLUE, ORANGE, GREEN = "#0b5ca8", "#b34700", "#0b6e4f"
PALE_BLUE, PALE_ORANGE, PALE_GREEN, PALE = "#d4e4f7", "#fbdfc9", "#d2ebdf", "#ededed"

_DARK: Final = {
    PAPER: "#16181c", INK: "#e6e6e6", FAINT: "#4c5058", BLUE: "#7db8f5", ORANGE: "#f5a265", GREEN: "#6fcfa6",
    PALE_BLUE: "#1f3a57", PALE_ORANGE: "#553018", PALE_GREEN: "#17432f", PALE: "#2b2e34",
}  # fmt: skip
"""Light colour → dark colour."""
_SETTINGS: Final = {
    "svg.fonttype": "none", "svg.hashsalt": "swsearch", "font.family": "sans-serif", "font.size": 11,
    "figure.facecolor": PAPER, "axes.facecolor": PAPER, "axes.edgecolor": INK, "axes.labelcolor": INK,
    "axes.spines.top": False, "axes.spines.right": False, "text.color": INK, "xtick.color": INK, "ytick.color": INK,
    "grid.color": FAINT, "grid.linewidth": 0.6, "axes.grid": True, "axes.axisbelow": True, "legend.frameon": False,
    "figure.constrained_layout.use": True, "lines.linewidth": 1.8,
}  # fmt: skip


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of this size in inches."""
    mpl.rcParams.update(_SETTINGS)
    return Figure(figsize=(width, height))


def themed(svg: str, title: str) -> str:
    """An SVG file with the colours above as variables, and a title for screen readers."""
    names = {light: f"--c{number}" for number, light in enumerate(_DARK)}
    svg = re.sub("|".join(names), lambda match: f"var({names[match[0]]})", svg)
    light = "".join(f"{name}: {colour}; " for colour, name in names.items())
    dark = "".join(f"{name}: {_DARK[colour]}; " for colour, name in names.items())
    style = f"<style>svg {{ {light}}}\n@media (prefers-color-scheme: dark) {{ svg {{ {dark}}} }}</style>"
    svg = re.sub(r"\s*<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    return re.sub(r"(<svg [^>]*)>", rf'\1 role="img">\n <title>{title}</title>\n {style}', svg, count=1)


def save(figure: Figure, name: str, title: str) -> None:
    """Write ``docs/concepts/NAME.svg``."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    lines = [line.rstrip() for line in themed(buffer.getvalue(), title).splitlines()]
    (FOLDER / f"{name}.svg").write_text("\n".join(lines) + "\n", encoding="utf-8")
