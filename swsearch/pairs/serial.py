"""Pairs by definition, for checking: the whole matrices, filled a row at a time in NumPy, and the path walked back.

The recurrences are those of docs/design/diamond.md. A row is vectorised over its columns; E, which runs along the row,
becomes a running maximum, since a gap that opens inside another of the same kind is never better than going on with
that one. Memory and time grow with the product of the lengths, so there is a limit.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from swsearch.errors import InputError
from swsearch.hits.cigar import run_length
from swsearch.pairs.align import (
    PairAlignment,
    check_sides,
    ends_of_mode,
    mode_scoring,
    outcome,
)
from swsearch.pairs.scoring import PairScoring
from swsearch.pairs.sequence import PairSequence, number_letters
from swsearch.sequences.alphabet import CODE_MASK

SERIAL_CELLS: Final = 25_000_000
"""Cells of the largest pair that is aligned this way: three matrices of 8 bytes a cell."""
MATRIX_CELLS: Final = 4_000_000
"""Cells of the largest matrix that is written out: 2,000 by 2,000, a file of about 20 MB."""
_NEVER: Final = -(2**40)

Matrix = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Matrices:
    """H, E and F of all nodes: of node (i, j), which has i letters of the query and j of the subject before it."""

    h: Matrix
    e: Matrix
    f: Matrix


def fill(pairs: Matrix, scoring: PairScoring, ends: tuple[bool, bool, bool]) -> Matrices:
    """The matrices of a pair.

    Parameters
    ----------
    pairs : int64 array, shape (query length, subject length)
        Score of each query letter against each subject letter.
    scoring : PairScoring
        Its gap costs.
    ends : (local, query_free, subject_free)
    """
    m, n = pairs.shape
    local, query_free, subject_free = ends
    opening, extend = scoring.gap_open, scoring.gap_extend
    first = opening + extend
    h = np.zeros((m + 1, n + 1), dtype=np.int64)
    e = np.full((m + 1, n + 1), _NEVER, dtype=np.int64)
    f = np.full((m + 1, n + 1), _NEVER, dtype=np.int64)
    if not subject_free:
        h[0, 1:] = -(opening + extend * np.arange(1, n + 1))
    if not query_free:
        h[1:, 0] = -(opening + extend * np.arange(1, m + 1))
    ramp = extend * np.arange(n + 1, dtype=np.int64)
    for i in range(1, m + 1):
        f[i, 1:] = np.maximum(h[i - 1, 1:] - first, f[i - 1, 1:] - extend)
        row = h[i].copy()
        row[1:] = np.maximum(h[i - 1, :-1] + pairs[i - 1], f[i, 1:])
        if local:
            row = np.maximum(row, 0)
        e[i, 1:] = np.maximum.accumulate(row + ramp)[:-1] - opening - ramp[1:]
        h[i] = np.maximum(row, e[i])
    return Matrices(h, e, f)


def _best_end(h: Matrix, ends: tuple[bool, bool, bool]) -> tuple[int, int]:
    """Row and column of the best allowed end: the smallest column, then the smallest row, of the best score."""
    m, n = h.shape[0] - 1, h.shape[1] - 1
    local, query_free, subject_free = ends
    allowed = np.zeros(h.shape, dtype=bool)
    if local:
        allowed[:] = True
    allowed[m, n] = True
    allowed[m, :] |= subject_free
    allowed[:, n] |= query_free
    best = h[allowed].max()
    column, row = np.argwhere((allowed & (h == best)).T)[0]
    return int(row), int(column)


def _walk(
    matrices: Matrices, pairs: Matrix, scoring: PairScoring, ends: tuple[bool, bool, bool], i: int, j: int
) -> tuple[int, int, str]:
    """From an end back: where the path begins, and its columns as ``M``, ``I`` and ``D``."""
    h, e, f = matrices.h, matrices.e, matrices.f
    local, query_free, subject_free = ends
    first = scoring.gap_open + scoring.gap_extend
    columns: list[str] = []
    state = "M"
    while i and j:
        if state == "M":
            if local and h[i, j] == 0:
                break
            if h[i, j] == h[i - 1, j - 1] + pairs[i - 1, j - 1]:
                columns.append("M")
                i, j = i - 1, j - 1
                continue
            state = "D" if h[i, j] == e[i, j] else "I"
        columns.append(state)
        if state == "D":
            state = "M" if e[i, j] == h[i, j - 1] - first else "D"
            j -= 1
        else:
            state = "M" if f[i, j] == h[i - 1, j] - first else "I"
            i -= 1
    if i == 0 and j and not subject_free:
        columns += ["D"] * j
        j = 0
    if j == 0 and i and not query_free:
        columns += ["I"] * i
        i = 0
    return i, j, "".join(reversed(columns))


def align_serial(
    query: PairSequence,
    subject: PairSequence,
    mode: str = "local",
    scoring: PairScoring | None = None,
    *,
    free_ends: str = "both",
    path: bool = True,
) -> tuple[PairAlignment, Matrix]:
    """The best alignment of two sequences by whole matrices, and H of all nodes.

    Parameters as for :func:`swsearch.pairs.align.align_pair`.

    Raises
    ------
    InputError
        Parameters that do not fit, or more cells than 25 million.

    >>> found, h = align_serial(PairSequence("", "RISOTTO"), PairSequence("", "PRESTO"), "edit")
    >>> found.score, found.cigar, int(-h[7, 6])
    (4, '1D1=1X1=2I2=', 4)
    """
    chosen = mode_scoring(mode, scoring)
    ends = ends_of_mode(mode, free_ends)
    check_sides(query, subject, chosen)
    cells = len(query) * len(subject)
    if cells > SERIAL_CELLS:
        raise InputError(
            f"{query.identifier} and {subject.identifier}: {cells:,} cells are too many for whole matrices, which take "
            f"24 bytes each; {SERIAL_CELLS:,} can be done: leave --serial out"
        )
    compared = number_letters(query, subject)
    equal = compared[0][:, None] == compared[1][None, :]
    if chosen.matrix is None or query.record is None or subject.record is None:
        pairs = np.where(equal, chosen.match, chosen.mismatch).astype(np.int64)
    else:
        codes = [(side.codes & CODE_MASK) for side in (query.record, subject.record)]
        pairs = chosen.matrix.scores[np.ix_(codes[0], codes[1])].astype(np.int64)
    matrices = fill(pairs, chosen, ends)
    row, column = _best_end(matrices.h, ends)
    start_row = start_column = 0
    cigar = None
    if path:
        start_row, start_column, columns = _walk(matrices, pairs, chosen, ends, row, column)
        cigar = run_length(_marked(columns, equal, start_row, start_column))
    found = (int(matrices.h[row, column]), row, column, start_row, start_column)
    return outcome(mode, query, subject, chosen, found, cigar), matrices.h


def _marked(columns: str, equal: NDArray[np.bool_], i: int, j: int) -> str:
    """The columns with ``M`` as ``=`` or ``X``."""
    marked = []
    for operation in columns:
        marked.append(operation if operation != "M" else "=" if equal[i, j] else "X")
        i += operation != "D"
        j += operation != "I"
    return "".join(marked)


def check_matrix_size(query: PairSequence, subject: PairSequence) -> None:
    """Refuse a matrix that is too large to be written out.

    Raises
    ------
    InputError
        It has more than 4 million cells.
    """
    cells = len(query) * len(subject)
    if cells > MATRIX_CELLS:
        raise InputError(
            f"--matrix-out: {len(query):,} by {len(subject):,} letters make {cells:,} cells; a table of up to "
            f"{MATRIX_CELLS:,} is written (about 20 MB): give shorter sequences"
        )


def write_matrix(path: Path, found: PairAlignment, h: Matrix) -> None:
    """Write H as tab-separated values: the subject's letters across, the query's down, the border first.

    For ``edit`` the values are distances. The file appears whole or not at all.

    Raises
    ------
    InputError
        The file cannot be written.
    """
    if not path.name or path.is_dir():
        raise InputError(f"--matrix-out {path} is a folder; name a file")
    values = -h if found.mode == "edit" else h
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.unfinished")
    try:
        with unfinished.open("w", encoding="utf-8", newline="\n") as file:
            file.write("\t".join(["", "", *map(_cell, found.subject.letters)]) + "\n")
            for letter, row in zip(["", *found.query.letters], values.tolist(), strict=True):
                file.write("\t".join([_cell(letter), *map(str, row)]) + "\n")
        unfinished.replace(path)
    except OSError as error:
        raise InputError(f"--matrix-out {path}: {error.strerror}; choose another file") from error
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)


def _cell(letter: str) -> str:
    """A letter as a table's cell can hold it."""
    return letter if letter.isprintable() else repr(letter)
