"""``--plot``: a histogram of the scores of a run, with the curves of its statistics and of the fit (matplotlib)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from swsearch.plots import save_figure
from swsearch.search.score_check import TOP, CheckedScores
from swsearch.typing import Floats


def expected_counts(checked: CheckedScores, lam: float = 1.0, log_k: float = 0.0) -> Floats:
    """Number of scores that an extreme-value distribution predicts in each cell between two edges; float64.

    By default, its parameters are those that the run's statistics predict for reduced scores.
    """
    below = np.exp(-np.exp(np.minimum(log_k - lam * checked.edges, 500.0)))
    counts: Floats = checked.n_scores * np.diff(below)
    return counts


def write_score_plot(checked: CheckedScores, title: str, path: Path) -> None:
    """Draw the histogram into a file, which appears only when it is complete.

    :func:`swsearch.plots.check_plot` has accepted the path. Raises :class:`InputError` if matplotlib is not installed,
    or the file cannot be written.
    """
    from matplotlib.figure import Figure

    inner = checked.counts[1:-1]
    used = checked.edges[:-1][inner > 0]
    leftmost, rightmost = (used[0], used[-1]) if len(used) else (0.0, checked.cut)
    middle = (checked.edges[:-1] + checked.edges[1:]) / 2
    figure = Figure(figsize=(9, 5.5), layout="constrained")
    axes = figure.add_subplot()
    axes.stairs(inner, checked.edges, fill=True, color="0.8", label=f"{checked.n_scores:,} scores")
    axes.plot(middle, expected_counts(checked), color="tab:blue", label="the run's statistics")
    if checked.fit is not None:
        curve = expected_counts(checked, checked.fit.lam, checked.fit.log_k)
        axes.plot(
            middle,
            curve,
            color="tab:red",
            linestyle="--",
            label=f"fit up to {TOP:.1f}; {checked.ratio:.2g} × as many hits",
        )
    axes.axvline(checked.cut, color="0.4", linewidth=0.8, label=f"E = {checked.evalue:.2g} at average length")
    axes.set_yscale("log")
    axes.set_ylim(0.5, 3.0 * max(inner.max(), 1))
    axes.set_xlim(leftmost - 0.5, max(rightmost, checked.cut) + 1.0)
    axes.set_xlabel("reduced score: -ln(E within one subject)")
    axes.set_ylabel("pairs of a query and a subject")
    axes.set_title(title.replace("$", r"\$"), loc="left", fontsize="small")
    axes.legend(fontsize="small")
    save_figure(figure, path)
