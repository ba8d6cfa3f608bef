"""A dot-plot of a pair: the words that both sequences share, and the path of the alignment.

The plot requires matplotlib (the extra ``plot``). A dot marks positions at which the same k letters begin in both
sequences. k is the smallest word length with at most :data:`MAX_DOTS` dots, so that a plot of two genomes is as
readable as one of two short sequences. The vertical axis is the query, downwards; the horizontal axis is the subject.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch.hits.cigar import parse
from swsearch.pairs.align import PairAlignment
from swsearch.pairs.sequence import number_letters
from swsearch.plots import check_plot, save_figure
from swsearch.typing import Letters

MAX_DOTS: Final = 200_000

Positions = NDArray[np.int64]


def common_words(query: Letters, subject: Letters, max_dots: int = MAX_DOTS) -> tuple[int, Positions, Positions]:
    """The word length, and the positions in query and subject at which the same word begins, one entry per dot.

    >>> number = np.array([0, 1, 2, 0, 1], dtype=np.uint16)
    >>> k, rows, columns = common_words(number, number[:3], max_dots=3)
    >>> k, list(zip(rows.tolist(), columns.tolist()))
    (2, [(0, 0), (1, 1), (3, 0)])
    """
    words = [query.astype(np.int64), subject.astype(np.int64)]
    k = 1
    while True:
        lengths = len(words[0]), len(words[1])
        if not all(lengths):
            return k, np.empty(0, np.int64), np.empty(0, np.int64)
        order = np.argsort(words[1], kind="stable")
        ordered = words[1][order]
        first = np.searchsorted(ordered, words[0], side="left")
        n_dots = np.searchsorted(ordered, words[0], side="right") - first
        total = int(n_dots.sum())
        if total <= max_dots:
            rows = np.repeat(np.arange(lengths[0]), n_dots)
            offset = np.arange(total) - np.repeat(np.cumsum(n_dots) - n_dots, n_dots)
            return k, rows, order[np.repeat(first, n_dots) + offset]
        # A word of k + 1 letters is a word of k letters and the next letter; renumbering the words keeps numbers small.
        n_numbers = 1 + int(max(query.max(), subject.max()))
        longer = [word[:-1] * n_numbers + side[k:] for word, side in zip(words, (query, subject), strict=True)]
        _, numbers = np.unique(np.concatenate(longer), return_inverse=True)
        words = [numbers[: len(longer[0])], numbers[len(longer[0]) :]]
        k += 1


def write_plot(pair: PairAlignment, path: Path) -> None:
    """Draw the dot-plot of a pair into a file, which appears only when it is complete."""
    check_plot(path)
    from matplotlib.figure import Figure

    k, rows, columns = common_words(*number_letters(pair.query, pair.subject))
    figure = Figure(figsize=(8, 8), layout="constrained")
    axes = figure.add_subplot()
    axes.plot(columns + 1, rows + 1, ",", color="0.45", rasterized=True)
    if pair.cigar:
        axes.plot(*_path(pair), color="tab:red", linewidth=1)
    axes.set_xlim(0.5, max(len(pair.subject), 1) + 0.5)
    axes.set_ylim(max(len(pair.query), 1) + 0.5, 0.5)
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.set_xlabel(_plain(pair.subject.identifier) or "subject")
    axes.set_ylabel(_plain(pair.query.identifier) or "query")
    axes.set_title(f"words of {k}; {pair.mode}, score {pair.score}", loc="left", fontsize="small")
    save_figure(figure, path)


def _plain(name: str) -> str:
    """A name with ``$`` escaped, because ``$`` begins a formula in matplotlib."""
    return name.replace("$", r"\$")


def _path(pair: PairAlignment) -> tuple[list[int], list[int]]:
    """Subject and query coordinates of the corners of the alignment's path."""
    assert pair.cigar is not None
    assert pair.query_start is not None
    assert pair.subject_start is not None
    x, y = [pair.subject_start + 1], [pair.query_start + 1]
    for length, operation in parse(pair.cigar):
        x.append(x[-1] + (length if operation != "I" else 0))
        y.append(y[-1] + (length if operation != "D" else 0))
    return x, y
