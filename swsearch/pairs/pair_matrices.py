"""The matrix of a pair as a file: the scores H of all nodes of a small pair, and the dot plot of a pair of any size.

:func:`write_matrix` writes the scores as tab-separated values.

The dot plot shows the words that both sequences share, and the path of the alignment. It requires matplotlib (the extra
``plot``). A dot marks positions at which the same k letters begin in both sequences. k is the smallest word length with
at most :data:`MAX_DOTS` dots, so that a plot of two genomes is as readable as one of two short sequences. The vertical
axis is the query, downwards; the horizontal axis is the subject.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch.engine.reference import Matrix, fill, letter_scores
from swsearch.errors import InputError
from swsearch.hits.cigar import parse
from swsearch.output_files import check_plot, save_figure, text_file
from swsearch.pairs.pair_alignment import Pair, PairAlignment, PairScoring, mode_scoring, pair_arrays
from swsearch.typing import Letters

# --- scores ---


MAX_CELLS: Final = 4_000_000
"""Number of cells of the largest matrix that is written: 2,000 by 2,000, a file of about 20 MB."""


def score_matrix(
    pair: Pair, mode: str = "local", scoring: PairScoring | None = None, free_ends: str | None = None
) -> Matrix:
    """H of all nodes of a pair, int64 of shape (query length + 1, subject length + 1); distances for ``edit``.

    Parameters are those of :func:`swsearch.pairs.pair_alignment.align_pairs`. Raises :class:`InputError` if they do not
    fit, or if the pair has more than 25 million cells.

    >>> from swsearch.pairs.sequence import PairSequence
    >>> int(score_matrix((PairSequence("", "RISOTTO"), PairSequence("", "PRESTO")), "edit")[7, 6])
    4
    """
    problem, scored, _ = pair_arrays([pair], mode, mode_scoring(mode, scoring), free_ends)
    ((query, subject),) = scored
    h, *_ = fill(letter_scores(query, subject, problem), problem)
    return -h if mode == "edit" else h


def check_matrix_size(pair: Pair) -> None:
    """Raise :class:`InputError` for a matrix of more than 4 million cells, which is too large to be written."""
    rows, columns = len(pair[0]), len(pair[1])
    if rows * columns > MAX_CELLS:
        raise InputError(
            f"--matrix-out: {rows:,} by {columns:,} letters make {rows * columns:,} cells; a table of up to "
            f"{MAX_CELLS:,} is written (about 20 MB): give shorter sequences"
        )


def write_matrix(path: Path, pair: Pair, h: Matrix) -> None:
    """Write a matrix with one row per query letter and one column per subject letter, after the border row and column.

    The file appears only when it is complete; it is compressed if its name ends in ``.gz``, for example. Raises
    :class:`InputError` if it cannot be created, and :class:`OSError` if it cannot be written.
    """
    query, subject = pair
    with text_file(path, "--matrix-out") as stream:
        stream.write("\t".join(["", "", *map(_cell, subject.letters)]) + "\n")
        for letter, row in zip(["", *query.letters], h.tolist(), strict=True):
            stream.write("\t".join([_cell(letter), *map(str, row)]) + "\n")


def _cell(letter: str) -> str:
    """A letter, escaped if it cannot be printed in a cell of the table."""
    return letter if letter.isprintable() else repr(letter)


# --- dot plot ---


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

    *_, (compared,) = pair_arrays([(pair.query, pair.subject)], pair.mode, pair.scoring)
    k, rows, columns = common_words(*compared)
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
