"""Draws the timeline of ten queries that ``benchmark_pipeline.py`` measured: what the host and the GPU do, and when.

    python benchmarks/plot_pipeline.py [--results benchmarks/results] [--out docs/design/cuda-timeline.svg]

The figures are those of ``pipeline-h200.json``. The same results give the same file.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import matplotlib as mpl

mpl.use("svg")
from matplotlib import pyplot as plt

COLORS, LABELS = ("#0b6e4f", "#9bd0bb"), ("white", "black")
ROWS = ("host: finish", "GPU: kernels and copies", "host: plan, pack, launch")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, default=Path("benchmarks/results"))
    parser.add_argument("--out", type=Path, default=Path("docs/design/cuda-timeline.svg"))
    options = parser.parse_args()

    report = json.loads((options.results / "pipeline-h200.json").read_text(encoding="utf-8"))["after"]
    batches = report["timeline"]
    mpl.rcParams["svg.hashsalt"] = "swsearch"
    mpl.rcParams["font.size"] = 9
    figure, axes = plt.subplots(figsize=(7.2, 3.0), layout="constrained")
    for number, batch in enumerate(batches):
        prepared, packed, _, ended, finished = (1e3 * seconds for seconds in batch["host"])
        began, computed = (1e3 * seconds for seconds in batch["device"])
        color = COLORS[number % 2]
        # The end of a batch may overlap with the next one, so that neighbours have different heights.
        level = 1 + (0.2 if number % 2 else -0.2)
        for row, height, (first, last) in (
            (0.0, 0.75, (ended, finished)), (level, 0.38, (began, computed)), (2.0, 0.75, (prepared, packed)),
        ):  # fmt: skip
            axes.barh(row, last - first, left=first, height=height, color=color, edgecolor=color)
        label = " + ".join(f"{length:,}" for length in batch["lengths"])
        axes.text((began + computed) / 2, level, label, ha="center", va="center", fontsize=7, color=LABELS[number % 2])
    axes.set_yticks(range(len(ROWS)), ROWS)
    axes.set_xlabel("milliseconds since the first kernel")
    axes.set_title(
        f"Ten queries, two a batch, on one {report['device']}: idle for at most "
        f"{report['longest_gap_seconds'] * 1e6:.0f} µs between batches",
        fontsize=9,
    )
    axes.grid(axis="x", linewidth=0.4, alpha=0.5)
    figure.savefig(options.out, metadata={"Date": None, "Creator": "benchmarks/plot_pipeline.py"})


if __name__ == "__main__":
    main()
