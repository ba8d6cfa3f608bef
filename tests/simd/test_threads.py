"""Threads of the native functions: more than the system can start, and invalid arrays, which the error names.

Expected values: the results of one thread.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from swsearch import _native

TABLE = np.full((32, 32), -3, np.int8)
np.fill_diagonal(TABLE, 2)
RNG = np.random.default_rng(5)
QUERY = RNG.integers(0, 4, 90).astype(np.uint8)
RESIDUES = RNG.integers(0, 4, 400 * 60).astype(np.uint8)
STARTS, LENGTHS = np.arange(0, 400 * 60, 60).astype(np.uint64), np.full(400, 60, np.uint32)
ENDS = np.arange(60, 400 * 60 + 1, 60)
LETTERS = RESIDUES.astype(np.uint16)
LONG = LETTERS[:12_000]


def scores(n_threads: int) -> object:
    out = np.empty((1, 400), np.int32)
    profile = (QUERY.astype(np.int32), TABLE, 5, 2)
    _native.score_partition([profile], RESIDUES, STARTS, LENGTHS, out, [(0, [0])], "auto", n_threads)
    return out.tolist()


def alignments(n_threads: int) -> object:
    identity = np.arange(32, dtype=np.uint8)
    rows = QUERY.astype(np.int32)
    return _native.align_local(QUERY, rows, TABLE, 5, 2, identity, RESIDUES, STARTS, LENGTHS, n_threads)


def long_pair(n_threads: int) -> object:
    """Align more than 50 million cells, which are computed in a separate thread."""
    end = np.array([len(LONG)])
    found = _native.align_pairs(LONG, end, LONG[::-1].copy(), end, None, 2, -3, 5, 2, True, 15, True, n_threads)
    return [part.tolist() for part in found]


def pairs(n_threads: int) -> object:
    found = _native.align_pairs(LETTERS, ENDS, LETTERS[::-1].copy(), ENDS, None, 2, -3, 5, 2, True, 15, True, n_threads)
    starts = [np.ascontiguousarray(found[0][:, 3]), np.ascontiguousarray(found[0][:, 4])]
    cigars = _native.write_cigars(LETTERS, ENDS, LETTERS[::-1].copy(), ENDS, *starts, found[1], found[2], n_threads)
    return found[0].tolist(), cigars


FUNCTIONS = [scores, alignments, long_pair, pairs]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_five_thousand_threads_are_no_error(function):
    assert function(5000) == function(1)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="RLIMIT_NPROC counts threads on Linux")
def test_work_is_done_where_no_thread_can_be_started():
    """Expected: the same results in a process that may start no thread; root changes its user to be limited."""
    code = (
        "import os, resource, threading\n"
        "from tests.simd.test_threads import FUNCTIONS\n"
        "wanted = [function(1) for function in FUNCTIONS]\n"
        "resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))\n"
        "os.setuid(65534) if os.getuid() == 0 else None\n"
        "try:\n"
        "    threading.Thread(target=print).start()\n"
        "except RuntimeError:\n"
        "    print('no thread')\n"
        "print([function(7) for function in FUNCTIONS] == wanted)\n"
    )
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-c", code]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=root, env=environment)
    assert done.stdout == "no thread\nTrue\n", done.stderr


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": np.zeros(3, np.int64)}, "rows must be an array of int32"),
        ({"residues": np.zeros(8, np.uint8)[::2]}, "residues must be contiguous"),
        ({"residues": np.zeros((2, 4), np.uint8)}, "residues must have 1 dimensions, not 2"),
        ({"table": np.zeros((4, 31), np.int8)}, "table must have 32 columns, not 31"),
        ({"starts": np.zeros(1, np.int64)}, "starts must be an array of uint64"),
    ],
)
def test_arrays_of_another_kind_are_named(change, message):
    given = {
        "query_codes": np.zeros(3, np.uint8), "identity": np.zeros(32, np.uint8), "rows": np.zeros(3, np.int32),
        "table": np.zeros((32, 32), np.int8), "gap_open": 1, "gap_extend": 1,
        "residues": np.zeros(8, np.uint8), "starts": np.zeros(1, np.uint64), "lengths": np.full(1, 4, np.uint32),
    }  # fmt: skip
    with pytest.raises(TypeError, match=message):
        _native.align_local(**(given | change))
