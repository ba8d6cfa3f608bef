"""Draws the pipeline of the CUDA engine in time: what the host and the device do for ten queries.

    python benchmarks/plot_pipeline.py [--results benchmarks/results] [--out docs/design/cuda-pipeline.svg]

The times are those of ``pipeline-h200.json`` (``benchmark_pipeline.py``). The same results give the same file.
"""

from __future__ import annotations

import argparse
import itertools
import json
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("svg")
from matplotlib import pyplot as plt

ROWS = {"device": 0, "host": 1}
COLORS = ("#0b6e4f", "#b5532a", "#5b6fb0")
"""A colour for each batch in flight, in turns."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, default=Path("benchmarks/results"))
    parser.add_argument("--out", type=Path, default=Path("docs/design/cuda-pipeline.svg"))
    options = parser.parse_args()

    report: dict[str, Any] = json.loads((options.results / "pipeline-h200.json").read_text(encoding="utf-8"))
    batches = report["timeline"]
    mpl.rcParams["svg.hashsalt"] = "swsearch"
    mpl.rcParams["font.size"] = 9
    figure, axes = plt.subplots(figsize=(7.2, 2.2), layout="constrained")
    for number, batch in enumerate(batches):
        color = COLORS[number % len(COLORS)]
        began, prepared, _, ended, handled = (seconds * 1e3 for seconds in batch["host"])
        first, last = (seconds * 1e3 for seconds in batch["device"])
        axes.barh(ROWS["device"], last - first, left=first, height=0.5, color=color)
        name = " and ".join(map(str, batch["lengths"]))
        axes.text((first + last) / 2, ROWS["device"] - 0.45, name, ha="center", va="top", fontsize=7)
        axes.barh(ROWS["host"], prepared - began, left=began, height=0.5, color=color, alpha=0.9)
        axes.barh(ROWS["host"], handled - ended, left=ended, height=0.5, color=color, alpha=0.4)
    gaps = [later["device"][0] - sooner["device"][1] for sooner, later in itertools.pairwise(batches)]
    axes.set_yticks(list(ROWS.values()), list(ROWS))
    axes.set_ylim(-0.9, 1.5)
    axes.set_xlabel("milliseconds since the first kernel")
    axes.set_title(
        f"Five batches of two queries (lengths below) on one {report['device']}: prepared (dark) and handed on (light) by "
        f"the host;\nthe device is idle for at most {max(gaps) * 1e6:.0f} microseconds between two batches",
        fontsize=8,
    )
    figure.savefig(options.out, metadata={"Date": None, "Creator": "benchmarks/plot_pipeline.py"})


if __name__ == "__main__":
    main()
