"""The three full matrices of a pairwise alignment, cell by cell: what the oracles of the alignment tests trace back.

The recurrence is in C (``full_matrix.c``), because in Python it took most of the time of these tests; it is compiled
once (``tests/compiled.py``).

H    the best score of an alignment that ends at a node
E    of those that end with a gap that consumes the subject: max(H - first, E - extend), one column before
F    of those that end with a gap that consumes the query: the same, one row above
"""

from __future__ import annotations

import ctypes
import os
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tests.compiled import compiled, compiler_version

NEVER = -(10**9)
"""The score of what is impossible."""

_SOURCE = Path(__file__).with_suffix(".c")
_OPTIONS = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC")


@cache
def _fill() -> Any:
    compiler = os.environ.get("CC", "cc")

    def make(path: Path) -> None:
        environment = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}
        subprocess.run([compiler, *_OPTIONS, "-o", str(path), str(_SOURCE)], check=True, env=environment)

    parts = [_SOURCE.read_text(), *_OPTIONS, compiler_version(compiler)]
    return ctypes.CDLL(str(compiled("full-matrix.so", parts, make))).fill


def full_matrices(
    scores: np.ndarray, gap_open: int, extend: int, top: np.ndarray, left: np.ndarray, floor: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return H, E and F of m + 1 by n + 1 nodes; a gap of k residues costs ``gap_open + k * extend``.

    ``scores[i, j]`` is the score of query residue i against subject residue j, ``top`` and ``left`` are row 0 and
    column 0 of H, and no other H is below ``floor``.
    """
    m, n = scores.shape
    pairs = np.ascontiguousarray(scores, dtype=np.int64)
    h = np.zeros((m + 1, n + 1), np.int64)
    h[0], h[:, 0] = top, left
    e, f = np.full_like(h, NEVER), np.full_like(h, NEVER)
    numbers = [ctypes.c_int64(number) for number in (m, n, gap_open + extend, extend, floor)]
    _fill()(*(ctypes.c_void_p(array.ctypes.data) if isinstance(array, np.ndarray) else array for array in (
        pairs, *numbers, h, e, f,
    )))  # fmt: skip
    return h, e, f
