"""The matrices of the alignment tests' oracles. Expected values: the recurrence in Python, written a second time."""

import numpy as np
import pytest

from swsearch.scoring.scheme import GapPenalty
from tests.full_matrix import NEVER, full_matrices, local_end
from tests.support import random_codes, random_profile


@pytest.mark.parametrize("floor", [0, 2 * NEVER])
@pytest.mark.parametrize(("gap_open", "extend"), [(0, 1), (3, 0), (5, 2), (0, 0), (16_383, 16_383)])
def test_matrices_are_those_of_the_recurrence(gap_open, extend, floor):
    rng = np.random.default_rng(gap_open)
    for m, n in [(0, 0), (0, 3), (4, 0), (1, 1), (1, 9), (13, 2), (25, 31)]:
        scores = rng.integers(-6, 9, (m, n))
        scores[rng.random((m, n)) < 0.1] = NEVER
        top, left = (np.concatenate([[0], -rng.integers(0, 9, length)]) for length in (n, m))
        h = {(0, 0): 0, **{(0, j): top[j] for j in range(n + 1)}, **{(i, 0): left[i] for i in range(m + 1)}}
        e, f = ({(i, j): NEVER for i in range(m + 1) for j in range(n + 1)} for _ in range(2))
        for i in range(1, m + 1):
            for j in range(1, n + 1):
                e[i, j] = max(h[i, j - 1] - gap_open - extend, e[i, j - 1] - extend)
                f[i, j] = max(h[i - 1, j] - gap_open - extend, f[i - 1, j] - extend)
                h[i, j] = max(h[i - 1, j - 1] + scores[i - 1, j - 1], e[i, j], f[i, j], floor)
        for found, wanted in zip(full_matrices(scores, gap_open, extend, top, left, floor), (h, e, f), strict=True):
            assert found.shape == (m + 1, n + 1)
            assert {place: found[place] for place in wanted} == wanted


@pytest.mark.parametrize(("gap_open", "extend"), [(0, 1), (3, 0), (5, 2), (16_383, 16_383)])
@pytest.mark.parametrize("high", [-1, 1, 6])
def test_the_first_end_is_that_of_the_matrix(gap_open, extend, high):
    """Expected values: the nodes of the whole matrix, which the test above compares."""
    rng = np.random.default_rng(extend)
    for m, n in [(1, 0), (1, 1), (1, 9), (13, 2), (25, 31), (40, 300)]:
        profile = random_profile(rng, m, 7, GapPenalty(gap_open, extend), -6, high)
        subject = random_codes(rng, n)
        scores = profile.table[profile.rows].astype(np.int64)[:, subject]
        h = full_matrices(scores, gap_open, extend, np.zeros(n + 1), np.zeros(m + 1), 0)[0]
        best = int(h.max())
        column, row = min((int(j), int(i)) for i, j in np.argwhere(h == best)) if best > 0 else (0, 0)
        assert local_end(profile, subject | np.uint8(32)) == local_end(profile, subject) == (best, row, column)
