"""Figures of one result as SVG: scores of the listed subjects beside what chance predicts, coverage of the query.

Positions are percentages and curves are stretched, so a figure fits any width and its text keeps its size.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from markupsafe import Markup

from swsearch.deterministic import LN2, exp, log
from swsearch.hits.result import RunInfo
from swsearch.report.html import ticks
from swsearch.report.summary import LIKELY_EVALUE, filters_alignments
from swsearch.typing import Floats, Places
from swsearch.words import counted

_HEIGHT: Final = 180
_MAX_BINS: Final = 60
_MAX_STEPS: Final = 400


@dataclass(frozen=True)
class Figure:
    """A figure with its text."""

    svg: Markup
    title: str
    caption: str
    """The numbers that a reader needs; a screen reader gets them instead of the graphic."""


def score_figure(bits: Floats, evalues: Floats, run: RunInfo, n_passed: int) -> Figure | None:
    """Number of listed subjects by bit score, and the number that chance predicts by the run's statistics.

    The scores of the other subjects are not stored, and those that a bound proves to be too low for the list are not
    even computed.

    Parameters
    ----------
    bits, evalues : float64 arrays, shape (n_subjects,)
        Of the listed subjects.
    run : RunInfo
    n_passed : int
        Number of subjects that passed the limits of the search, before the list was cut.

    Returns
    -------
    Figure or None
        None if there are no bit scores.
    """
    known = np.isfinite(bits) & np.isfinite(evalues)
    if not known.any():
        return None
    bits, evalues = bits[known], evalues[known]
    low, high = float(np.floor(bits.min())), float(np.ceil(bits.max())) + 1.0
    width = max(1.0, np.ceil((high - low) / _MAX_BINS))
    n_bins = max(1, int(np.ceil((high - low) / width)))
    edges = low + width * np.arange(n_bins + 1)
    counts = np.histogram(bits, edges)[0]
    # E = c * 2^-bits; c varies a little with the length of the subject, its median stands for all.
    positive = evalues > 0
    expected = np.zeros(n_bins)
    if positive.any():
        log_c = float(np.median(log(evalues[positive]) + LN2 * bits[positive]))
        below = exp(np.minimum(log_c - LN2 * edges, 700.0))
        expected = below[:-1] - below[1:]
    top = max(1.0, float(counts.max()))

    def height(values: Floats) -> Floats:
        """Share of the height on a logarithmic axis from 0.5 to twice the largest count."""
        shown: Floats = np.clip(log(np.maximum(values, 1e-9) / 0.5) / log(2 * top / 0.5), 0.0, 1.0)
        return shown

    parts: list[str] = []
    labels: list[str] = []
    for n in [10**power for power in range(8) if 10**power <= 2 * top]:
        y = _HEIGHT * (1 - float(height(np.array([float(n)]))[0]))
        parts.append(f'<line class="grid" x1="0%" x2="100%" y1="{y:.1f}" y2="{y:.1f}"/>')
        labels.append(f'<text x="100%" y="{y - 3:.1f}" text-anchor="end">{n:,}</text>')
    tall = height(counts.astype(np.float64))
    for number, (count, share) in enumerate(zip(counts.tolist(), tall.tolist(), strict=True)):
        if count:
            x, wide = 100 * number / n_bins, 100 / n_bins
            y = _HEIGHT * (1 - share)
            tip = f"{edges[number]:.0f} to {edges[number + 1]:.0f} bits: {count:,}"
            parts.append(
                f'<rect class="count" x="{x:.2f}%" width="{wide * 0.92:.2f}%" y="{y:.1f}" '
                f'height="{_HEIGHT - y:.1f}"><title>{tip}</title></rect>'
            )
    middles = 1000 * (np.arange(n_bins) + 0.5) / n_bins
    n_drawn = int((expected > 0.5).sum()) + 1  # down to the axis, which begins at 0.5
    curve = _curve(middles[:n_drawn], _HEIGHT * (1 - height(expected[:n_drawn])))
    if curve:
        parts.append(_stretched(f'<path class="halo" d="{curve}"/><path class="curve" d="{curve}"/>'))
    parts += labels
    for place in _round_ticks(low, high):
        x = 100 * (place - low) / (n_bins * width)
        anchor = "start" if x < 3 else "end" if x > 97 else "middle"
        parts.append(f'<text x="{x:.2f}%" y="{_HEIGHT + 15}" text-anchor="{anchor}">{place:g}</text>')
    parts.append(f'<line class="base" x1="0%" x2="100%" y1="{_HEIGHT}" y2="{_HEIGHT}"/>')
    caption = _score_caption(bits, evalues, run, n_passed, has_curve=bool(curve))
    return Figure(_svg(parts), "Bit scores of the listed subjects", caption)


def _score_caption(bits: Floats, evalues: Floats, run: RunInfo, n_passed: int, *, has_curve: bool) -> str:
    surprising = int((evalues <= LIKELY_EVALUE).sum())
    chosen, evalue = run.parameters.get("chosen_subjects"), run.parameters.get("evalue")
    n_searched = chosen if isinstance(chosen, int) else run.database.n_subjects
    # Whether subjects were left out for something else than their scores.
    is_filtered = isinstance(chosen, int) or filters_alignments(run)
    limit = "" if evalue in (None, "inf") else f" (the limit was {evalue:g})"
    sentences = [
        f"The bars count the {counted(len(bits), 'subject')} of the list, which have {bits.min():.1f} to "
        f"{bits.max():.1f} bits and E-values up to {evalues.max():.2g}{limit}; {surprising:,} of them have an E-value "
        f"of at most {LIKELY_EVALUE:g}.",
        "The dashed line is the number of subjects that chance predicts in each bar, by the statistics of the run; it "
        "is not fitted to these scores."
        if has_curve
        else "By the statistics of the run, chance predicts less than one subject in every bar.",
    ]
    if is_filtered:
        sentences.append("The search left subjects out by other filters than their scores; the line counts these too.")
    n_cut = max(0, n_passed - len(bits)) if not is_filtered else 0
    if n_cut:
        sentences.append(f"{counted(n_cut, 'weaker subject')} passed the limits, but the list ends before them.")
    if n_searched > len(bits):
        n_others = counted(n_searched - len(bits), "other subject")
        sentences.append(
            f"The scores of the {n_others} are not stored, and those that are proved to be too low for the list are "
            "not even computed. `swsearch query --plot` computes all scores and draws them with a fitted curve."
        )
    return " ".join([*sentences, "The vertical axis is logarithmic."])


def coverage_figure(starts: Places, ends: Places, length: int) -> Figure:
    """Number of alignments over each position of the query.

    Parameters
    ----------
    starts, ends : int64 arrays, shape (n_hits,)
        Aligned parts of the query, 0-based and half-open.
    length : int
        Length of the query.
    """
    change = (
        np.bincount(starts, minlength=length + 1)[: length + 1] - np.bincount(ends, minlength=length + 1)[: length + 1]
    )
    depth = np.cumsum(change)[:length]
    top = max(1, int(depth.max()))
    n_steps = min(length, _MAX_STEPS)
    cuts = np.arange(n_steps + 1) * length // n_steps
    steps = [int(depth[a:b].max()) for a, b in pairwise(cuts)]
    path = [f"M0 {_HEIGHT}"]
    for number, deep in enumerate(steps):
        y = _HEIGHT * (1 - deep / top)
        path.append(f"L{1000 * number / n_steps:.1f} {y:.1f}L{1000 * (number + 1) / n_steps:.1f} {y:.1f}")
    path.append(f"L1000 {_HEIGHT}Z")
    parts = [_stretched(f'<path class="area" d="{"".join(path)}"/>')]
    parts.append('<line class="grid" x1="0%" x2="100%" y1="0.5" y2="0.5"/>')
    parts.append(f'<text x="100%" y="13" text-anchor="end">{top:,}</text>')
    for place in ticks(length):
        x = 100 * (place - 1) / length
        anchor = "start" if x < 3 else "end" if x > 96 else "middle"
        parts.append(f'<text x="{x:.2f}%" y="{_HEIGHT + 15}" text-anchor="{anchor}">{place}</text>')
    parts.append(f'<line class="base" x1="0%" x2="100%" y1="{_HEIGHT}" y2="{_HEIGHT}"/>')
    covered = int((depth > 0).sum())
    caption = (
        f"{covered:,} of {length:,} positions of the query lie in at least one of {len(starts):,} alignments; at most "
        f"{top:,} alignments lie over one position."
    )
    return Figure(_svg(parts), "Alignments over each position of the query", caption)


def _svg(parts: list[str]) -> Markup:
    content = "".join(parts)
    return Markup(f'<svg class="plot" height="{_HEIGHT + 20}" aria-hidden="true" focusable="false">{content}</svg>')


def _stretched(content: str) -> str:
    box = f'viewBox="0 0 1000 {_HEIGHT}" preserveAspectRatio="none" width="100%" height="{_HEIGHT}"'
    return f"<svg {box}>{content}</svg>"


def _curve(xs: Floats, ys: Floats) -> str:
    """The path through these points; empty if there is only one."""
    if len(xs) < 2:
        return ""
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in zip(xs.tolist(), ys.tolist(), strict=True))


def _round_ticks(low: float, high: float) -> list[float]:
    span = high - low
    step = next(unit * 10.0**power for power in range(7) for unit in (1, 2, 5) if span <= 10 * unit * 10.0**power)
    first = np.ceil(low / step) * step
    return [float(place) for place in np.arange(first, high + 1e-9, step)]
