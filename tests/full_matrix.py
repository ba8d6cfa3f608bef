"""The three full matrices of a pairwise alignment, cell by cell: what the oracles of the alignment tests trace back.

The recurrence is in C (``full_matrix.c``), because in Python it took most of the time of these tests; it is compiled
once (``tests/compiled.py``).

H    the best score of an alignment that ends at a node
E    of those that end with a gap that consumes the subject: max(H - first, E - extend), one column before
F    of those that end with a gap that consumes the query: the same, one row above
"""

import ctypes
import os
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from swsearch.query.profile import QueryProfile
from swsearch.sequences.alphabet import N_CODES
from swsearch.typing import Codes
from tests.compiled import compiled, compiler_version

NEVER = -(10**9)
"""The score of what is impossible."""

_SOURCE = Path(__file__).with_suffix(".c")
_OPTIONS = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC")


@cache
def _library() -> Any:
    compiler = os.environ.get("CC", "cc")

    def make(path: Path) -> None:
        environment = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}
        subprocess.run([compiler, *_OPTIONS, "-o", str(path), str(_SOURCE)], check=True, env=environment)

    parts = [_SOURCE.read_text(), *_OPTIONS, compiler_version(compiler)]
    return ctypes.CDLL(str(compiled("full-matrix.so", parts, make)))


def _call(name: str, *arguments: np.ndarray | int) -> None:
    """Call a function of the library with arrays and 64-bit integers."""
    getattr(_library(), name)(*(
        ctypes.c_void_p(argument.ctypes.data) if isinstance(argument, np.ndarray) else ctypes.c_int64(argument)
        for argument in arguments
    ))  # fmt: skip


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
    _call("fill", pairs, m, n, gap_open + extend, extend, floor, h, e, f)
    return h, e, f


def local_end(profile: QueryProfile, subject: Codes) -> tuple[int, int, int]:
    """Return the best local score, the query end and the subject end: the smallest subject end, then query end.

    Without a score above 0, all three are 0.
    """
    rows, table, codes = (np.ascontiguousarray(array) for array in (profile.rows, profile.table, subject))
    assert (rows.dtype, table.dtype, codes.dtype, table.shape[1]) == (np.int32, np.int8, np.uint8, N_CODES)
    h, found = np.zeros(profile.length + 1, np.int64), np.zeros(3, np.int64)
    e = np.full_like(h, NEVER)
    _call(
        "local_end", table, rows, profile.length, codes, codes.size, profile.gap.first, profile.gap.extend, h, e, found
    )
    score, query_end, subject_end = found.tolist()
    return score, query_end, subject_end
