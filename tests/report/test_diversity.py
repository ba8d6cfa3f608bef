"""The diversity of an alignment. Expected values: HH-suite's ``hhmake``, and hand calculation."""

import numpy as np
import pytest

from swsearch.report.row_filter import RowFilter, effective_number, mean_kinds
from tests.report.families import GAP, X, family, hhmake_neff


@pytest.mark.peer("hhmake")
@pytest.mark.parametrize(("seed", "n_rows", "n_columns"), [(1, 40, 90), (2, 150, 200), (3, 9, 61)])
def test_neff_is_that_of_hhmake(tmp_path, seed, n_rows, n_columns):
    """One decimal, and hhmake's logarithms have an error."""
    for rows in (RowFilter(), RowFilter(max_identity=50)):
        codes = family(seed, n_rows, n_columns)
        codes = codes[rows.kept(codes)]
        assert effective_number(codes) == pytest.approx(hhmake_neff(codes, tmp_path), abs=0.06)


def test_neff_does_not_depend_on_threads():
    codes = family(4, 50, 120)
    assert effective_number(codes, threads=1) == effective_number(codes, threads=3)


def test_neff_by_hand():
    """Rows without a difference count once, k different ones k times; a column without residues as that before it."""
    assert effective_number(np.array([[0] * 12] * 5, np.uint8)) == 1.0
    assert effective_number(np.array([[k] * 12 for k in range(4)], np.uint8)) == pytest.approx(4.0)
    halves = np.array([[0] * 12 + [GAP], [1] * 12 + [GAP]], np.uint8)
    assert effective_number(halves) == pytest.approx((12 * 2 + 1) / 13)
    assert effective_number(np.array([[2] * 3], np.uint8)) == 1.0


def test_kinds_by_hand():
    assert mean_kinds(np.array([[0, 1, X], [GAP, 2, GAP]], np.uint8)) == 1.5
    assert mean_kinds(np.array([[X]], np.uint8)) == 0.0
