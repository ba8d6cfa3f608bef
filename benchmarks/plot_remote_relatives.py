"""Draws the remote relatives that one round and three rounds find, by the false hits before them.

    python benchmarks/plot_remote_relatives.py [--results benchmarks/results] [--out docs/remote-relatives.svg]

The figures are those of ``iterations.json`` (``benchmark_iterations.py``): pairs of domains of one superfamily of
SCOPe40 at 0.1, 1 and 10 false hits a query. The same results give the same file.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import matplotlib as mpl

mpl.use("svg")
from matplotlib import pyplot as plt

STYLES = {
    "swsearch sensitive": ("#0b6e4f", "P", "-"),
    "swsearch": ("#6fb09a", "o", "-"),
    "hhblits": ("#5b4b8a", "D", "--"),
    "jackhmmer": ("#b5532a", "s", "--"),
    "psiblast": ("#3b6ea5", "^", "--"),
    "mmseqs": ("#8a6d1f", "v", "--"),
}
"""Colour, marker and line of each program."""
NAMES = {"mmseqs": "MMseqs2 -s 7.5", "swsearch sensitive": "swsearch --sensitive"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, default=Path("benchmarks/results"))
    parser.add_argument("--out", type=Path, default=Path("docs/remote-relatives.svg"))
    options = parser.parse_args()

    tools = json.loads((options.results / "iterations.json").read_text(encoding="utf-8"))["tools"]
    mpl.rcParams["svg.hashsalt"] = "swsearch"
    mpl.rcParams["font.size"] = 9
    figure, panels = plt.subplots(1, 2, figsize=(7.2, 3.4), layout="constrained", sharey=True)
    for axes, rounds, title in zip(panels, ("1", "3"), ("one round", "three rounds"), strict=True):
        for tool, (color, marker, line) in STYLES.items():
            found = tools[tool]["rounds"][rounds]["coverage"]
            axes.plot(
                [float(errors) for errors in found], [100 * share for share in found.values()],
                color=color, marker=marker, markersize=4, linestyle=line, label=NAMES.get(tool, tool),
            )  # fmt: skip
        axes.set_xscale("log")
        axes.set_xticks([0.1, 1, 10], ["0.1", "1", "10"])
        axes.minorticks_off()
        axes.set_xlabel("false hits a query")
        axes.set_title(title, fontsize=9)
        axes.grid(linewidth=0.4, alpha=0.5)
    panels[0].set_ylim(bottom=0)
    panels[0].set_ylabel("pairs of one superfamily, %")
    panels[0].legend(fontsize=8, loc="upper left")
    figure.savefig(options.out, metadata={"Date": None, "Creator": "benchmarks/plot_remote_relatives.py"})


if __name__ == "__main__":
    main()
