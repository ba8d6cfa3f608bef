"""The matrix H of all nodes of a small pair, written as a file of tab-separated values."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from swsearch.engine.reference_pairs import Matrix, fill, letter_scores
from swsearch.errors import InputError
from swsearch.output_files import text_file
from swsearch.pairs.align import Pair, mode_scoring, pair_arrays
from swsearch.pairs.scoring import PairScoring

MAX_CELLS: Final = 4_000_000
"""Number of cells of the largest matrix that is written: 2,000 by 2,000, a file of about 20 MB."""


def score_matrix(
    pair: Pair, mode: str = "local", scoring: PairScoring | None = None, free_ends: str | None = None
) -> Matrix:
    """H of all nodes of a pair, int64 of shape (query length + 1, subject length + 1); distances for ``edit``.

    Parameters as for :func:`swsearch.pairs.align.align_pairs`.

    Raises
    ------
    InputError
        The parameters do not fit, or the pair has more than 25 million cells.

    >>> from swsearch.pairs.sequence import PairSequence
    >>> int(score_matrix((PairSequence("", "RISOTTO"), PairSequence("", "PRESTO")), "edit")[7, 6])
    4
    """
    problem, (queries, subjects), _ = pair_arrays([pair], mode, mode_scoring(mode, scoring), free_ends)
    h = fill(letter_scores(queries[0], subjects[0], problem), problem).h
    return -h if mode == "edit" else h


def check_matrix_size(pair: Pair) -> None:
    """Refuse a matrix that is too large to be written.

    Raises
    ------
    InputError
        The matrix has more than 4 million cells.
    """
    rows, columns = len(pair[0]), len(pair[1])
    if rows * columns > MAX_CELLS:
        raise InputError(
            f"--matrix-out: {rows:,} by {columns:,} letters make {rows * columns:,} cells; a table of up to "
            f"{MAX_CELLS:,} is written (about 20 MB): give shorter sequences"
        )


def write_matrix(path: Path, pair: Pair, h: Matrix) -> None:
    """Write a matrix with one row per query letter and one column per subject letter, after the border row and column.

    The file appears only when it is complete; it is compressed if its name ends in ``.gz``, for example.

    Raises
    ------
    InputError
        The file cannot be created.
    OSError
        The file cannot be written, for example because the disk is full.
    """
    query, subject = pair
    with text_file(path, "--matrix-out") as stream:
        stream.write("\t".join(["", "", *map(_cell, subject.letters)]) + "\n")
        for letter, row in zip(["", *query.letters], h.tolist(), strict=True):
            stream.write("\t".join([_cell(letter), *map(str, row)]) + "\n")


def _cell(letter: str) -> str:
    """A letter, escaped if it cannot be printed in a cell of the table."""
    return letter if letter.isprintable() else repr(letter)
