"""Draws GCUPS by query length on one GPU, for this program, CUDASW++4.0 and libmarv.

    python benchmarks/plot_cuda.py [--results benchmarks/results] [--out docs/design/cuda-gcups.svg]

The figures are those of ``cuda-h200.json`` (``benchmark_cuda.py``), ``cudasw4-h200.json`` (``benchmark_cudasw4.py``)
and ``libmarv-h200.json``. The same results give the same file.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

mpl.use("svg")
from matplotlib import pyplot as plt

OURS = (
    ("pairs-floors", "swsearch, two queries a word, top hits", "#0b6e4f", "o"),
    ("single-floors", "swsearch, one query, top hits", "#3aa17e", "s"),
    ("single-all", "swsearch, one query, every score", "#9bd0bb", "^"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, default=Path("benchmarks/results"))
    parser.add_argument("--out", type=Path, default=Path("docs/design/cuda-gcups.svg"))
    options = parser.parse_args()

    def load(name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((options.results / name).read_text(encoding="utf-8"))
        return found

    ours, cudasw4, libmarv = load("cuda-h200.json"), load("cudasw4-h200.json"), load("libmarv-h200.json")
    mpl.rcParams["svg.hashsalt"] = "swsearch"
    mpl.rcParams["font.size"] = 9
    figure, axes = plt.subplots(figsize=(7.2, 4.4), layout="constrained")
    for mode, label, color, marker in OURS:
        rows = ours[mode]["queries"]
        lengths = [float(np.mean(row["lengths"])) for row in rows]
        axes.plot(lengths, [row["gcups"] for row in rows], color=color, marker=marker, markersize=4, label=label)
    axes.plot(
        [row["length"] for row in cudasw4["queries"]],
        [row["gcups"] for row in cudasw4["queries"]],
        color="#b5532a", marker="D", markersize=4, label="CUDASW++4.0, one query, top hits",
    )  # fmt: skip
    for key, label, style in (
        ("ungapped_gcups", "libmarv, ungapped filter (mean)", ":"),
        ("gapped_gcups", "libmarv, gapped (mean)", "--"),
    ):
        axes.axhline(libmarv[key], color="#6b6b8d", linestyle=style, linewidth=1.2, label=label)
    axes.set_xscale("log")
    axes.set_xticks([150, 250, 500, 1000, 2000, 5000], ["150", "250", "500", "1,000", "2,000", "5,000"])
    axes.minorticks_off()
    axes.set_ylim(bottom=0)
    axes.set_xlabel("query length, residues (mean of two, where two share words)")
    axes.set_ylabel("GCUPS, kernel time")
    axes.set_title(
        f"Exact local alignment scores on one {ours['device']}: {ours['subjects']:,} proteins, BLOSUM62, gap 11 + k",
        fontsize=9,
    )
    axes.grid(axis="y", linewidth=0.4, alpha=0.5)
    axes.legend(fontsize=8, ncols=2, loc="lower center", bbox_to_anchor=(0.5, 0.15), framealpha=0.9)
    figure.savefig(options.out, metadata={"Date": None, "Creator": "benchmarks/plot_cuda.py"})


if __name__ == "__main__":
    main()
