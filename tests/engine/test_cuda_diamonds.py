"""Pairs by diamonds on a GPU. The expected ends are those of the CPU's pair kernels, which the whole matrix judges.

The same driver and kernel run without a GPU in ``tests/cuda/test_emulated_diamonds.py``; here many warps really wait for
one another.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from swsearch import _native
from swsearch.engine.cuda.device import PyCudaDevice
from swsearch.engine.cuda.diamond_plan import WORDS, PairProblem, SweepShape
from swsearch.engine.cuda.diamonds import DiamondSweep, PairEnd
from swsearch.engine.cuda.info import cuda_info

pytestmark = pytest.mark.gpu

SHAPES = [SweepShape(narrow, words) for narrow in (True, False) for words in WORDS]


@pytest.fixture(scope="module")
def sweep() -> Iterator[DiamondSweep]:
    info = cuda_info()
    if not info.usable:
        pytest.skip(info.reason)
    device = PyCudaDevice()
    yield DiamondSweep(device)
    device.close()


def on_cpu(query: np.ndarray, subject: np.ndarray, p: PairProblem) -> PairEnd:
    found = _native.align_pair(
        query, subject, p.table, p.match, p.mismatch, p.gap_open, p.gap_extend, p.local, p.local or p.query_free,
        p.local or p.subject_free, False, 2, 1 << 26, None, "auto",
    )  # fmt: skip
    return PairEnd(found[0], found[1], found[2])


def related(rng: np.random.Generator, m: int, n: int, letters: int) -> tuple[np.ndarray, np.ndarray]:
    query = rng.integers(0, letters, m).astype(np.uint16)
    subject = rng.integers(0, letters, n).astype(np.uint16)
    shared = min(m, n) * 2 // 3
    subject[:shared] = np.where(rng.random(shared) < 0.2, subject[:shared], query[:shared])
    return query, subject


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("local", [True, False])
def test_ends_are_those_of_the_cpu(sweep: DiamondSweep, shape: SweepShape, local: bool) -> None:
    """Many pairs a launch: all length relations to a strip, free ends, tables and compared letters, all kinds of gaps."""
    rng = np.random.default_rng(shape.words)
    s = shape.strip_rows
    lengths = [
        (1, 1),
        (s - 1, 31),
        (s, 32),
        (s + 1, 33),
        (9 * s + 5, 700),
        (1, 900),
        (2000, 1),
        (3 * s, 64),
        (777, 3000),
    ]
    table = rng.integers(-6, 7, (20, 20)).astype(np.int8)
    for case in range(6):
        query_free, subject_free = [(False, False), (True, True), (True, False), (False, True)][case % 4]
        gap = [(0, 2), (5, 2), (3, 1)][case % 3]
        problem = PairProblem(local, query_free, subject_free, *gap, 2, -3, table if case % 2 else None)
        pairs = [related(rng, m, n, 20 if case % 2 else (4, 60)[case // 2 % 2]) for m, n in lengths]
        assert shape.fits(problem)
        found = sweep.ends(pairs, problem, shape=shape)
        assert found == [on_cpu(query, subject, problem) for query, subject in pairs]


@pytest.mark.parametrize("local", [True, False])
def test_more_strips_than_run_at_a_time(sweep: DiamondSweep, local: bool) -> None:
    """Warps go on to later strips while earlier ones run; a 300,000-letter query has 2,344 strips of 128 rows."""
    pair = related(np.random.default_rng(3), 300_000, 2_500, 4)
    problem = PairProblem(local, True, True, 5, 2, 2, -3)
    for words in WORDS:
        assert sweep.ends([pair], problem, shape=SweepShape(True, words)) == [on_cpu(*pair, problem)]
