"""The rows of an alignment that are kept. Expected values: HH-suite's ``hhfilter``, the definitions, by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swsearch.errors import InputError
from swsearch.report.row_filter import RowFilter
from tests.report.families import GAP, X, family, hhfilter

needs_hhsuite = pytest.mark.peer("hhfilter")


@needs_hhsuite
@pytest.mark.parametrize(
    ("rows", "options"),
    [
        (RowFilter(coverage=50), ("-id", 100, "-cov", 50)),
        (RowFilter(query_identity=33), ("-id", 100, "-qid", 33)),
        (RowFilter(max_identity=90), ("-id", 90)),
        (RowFilter(max_identity=45), ("-id", 45)),
        (RowFilter(max_identity=90, diff=5), ("-id", 90, "-diff", 5)),
        (RowFilter(max_identity=95, diff=20, coverage=30), ("-id", 95, "-diff", 20, "-cov", 30)),
        (RowFilter(diff=30), ("-id", 100, "-diff", 30)),
    ],
)
def test_rows_are_those_of_hhfilter(tmp_path, rows, options):
    for seed, n_rows, n_columns in ((1, 60, 100), (2, 120, 140), (3, 180, 333)):
        codes = family(seed, n_rows, n_columns)
        wanted = hhfilter(codes, tmp_path, *options)
        assert rows.kept(codes).tolist() == wanted
        assert 1 < len(wanted) < len(codes)


def identity(row, other) -> tuple[int, int, int]:
    """Equal columns, columns in common, and residues of the row."""
    both = (row < 20) & (other < 20)
    return np.count_nonzero(both & (row == other)), np.count_nonzero(both), np.count_nonzero(row < 20)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 40), st.sampled_from([17, 64, 65, 200]), st.integers(0, 99))
def test_no_kept_row_is_too_similar_and_each_removed_row_is(seed, n_rows, n_columns, limit):
    """Source: the definition, with fractions that are written out; n_columns around the blocks of the comparison."""
    codes = family(seed, min(n_rows, n_columns // 2), n_columns)
    kept = set(RowFilter(max_identity=limit).kept(codes).tolist())
    lengths = np.count_nonzero(codes < 20, axis=1)
    assert 0 in kept
    for row in range(1, len(codes)):
        longer = [other for other in kept if lengths[other] > lengths[row]]
        similar = []
        for other in longer:
            equal, common, residues = identity(codes[row], codes[other])
            filled = [np.flatnonzero(codes[k] < 20) for k in (row, other)]
            overlap = min(f[-1] for f in filled) - max(f[0] for f in filled) + 1
            share = (9999 - 100 * limit) / 10000
            enough = int(share * min(residues, overlap) + 0.999)
            similar.append(common > 0 and common - equal < enough and common - equal <= share * common)
        assert any(similar) != (row in kept)


def test_coverage_and_identity_with_the_query_include_their_limits():
    """By hand: 2 of 4 columns; 1 of 2 residues equals the query's. X is not a residue."""
    codes = np.array([[0, 1, 2, 3], [0, 5, GAP, GAP], [0, X, 6, 7], [GAP, GAP, GAP, 3], [0, X, X, X]], np.uint8)
    assert RowFilter(coverage=50).kept(codes).tolist() == [0, 1, 2]
    assert RowFilter(coverage=50.1).kept(codes).tolist() == [0, 2]
    assert RowFilter(query_identity=50).kept(codes).tolist() == [0, 1, 3, 4]
    assert RowFilter(query_identity=100).kept(codes).tolist() == [0, 3, 4]
    assert not RowFilter()
    assert RowFilter().kept(codes).tolist() == [0, 1, 2, 3, 4]


def test_equal_rows_are_kept_in_the_order_of_the_alignment():
    """By hand: of equal rows the first stays; of rows without a common column both."""
    codes = np.array([[0, 1, 2, 3]] + [[9, 9, 9, 9]] * 3 + [[7, GAP, GAP, GAP], [GAP, GAP, GAP, 8]], np.uint8)
    assert RowFilter(max_identity=90).kept(codes).tolist() == [0, 1, 4, 5]


def test_a_query_without_residues_stays_and_a_row_without_any_goes():
    codes = np.array([[X] * 5, [GAP] * 5, [0, 1, 2, 3, 4]], np.uint8)
    for rows in (RowFilter(coverage=10), RowFilter(max_identity=90), RowFilter(diff=2)):
        assert rows.kept(codes).tolist() == [0, 2]
    assert RowFilter(max_identity=90).kept(codes[:1]).tolist() == [0]


def test_a_diverse_selection_keeps_rows_where_there_are_few():
    """Two domains of 100 columns: many similar rows of the first alone, ten of the second alone, all alike."""
    random = np.random.default_rng(5)
    query = random.integers(0, 20, 200)
    rows = [query]
    for place in range(210):
        row = query.copy()
        changed = random.permutation(200)[: 24 + place % 7]
        row[changed] = (row[changed] + 1) % 20
        row[slice(100, 200) if place < 200 else slice(0, 100)] = GAP
        rows.append(row)
    kept = RowFilter(max_identity=100, diff=11).kept(np.array(rows, np.uint8))
    assert np.count_nonzero(kept > 200) == 10
    assert 11 <= np.count_nonzero(kept <= 200) <= 60


def test_few_rows_are_not_compared_with_each_other():
    codes = family(7, 20, 60)
    few, many = (RowFilter(coverage=60, max_identity=40, filter_above=n) for n in (20, 5))
    assert few.kept(codes).tolist() == RowFilter(coverage=60).kept(codes).tolist()
    assert many.kept(codes).tolist() == RowFilter(coverage=60, max_identity=40).kept(codes).tolist()
    assert len(many.kept(codes)) < len(few.kept(codes))


def test_bases_are_compared_as_bases():
    """By hand: code 4 of DNA is not a base, so the last row has three residues, all equal to the query's."""
    codes = np.array([[0, 1, 2, 3, 0, 1], [0, 1, 2, 4, 4, 4], [3, 3, 3, 3, 3, 3]], np.uint8)
    assert RowFilter(max_identity=90).kept(codes, n_kinds=4).tolist() == [0, 2]
    assert RowFilter(max_identity=90).kept(codes).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    "wrong", [{"coverage": 100.5}, {"query_identity": -1}, {"max_identity": 101}, {"diff": -1}, {"filter_above": 2**31}]
)
def test_values_out_of_range_are_refused(wrong):
    ((name, value),) = wrong.items()
    with pytest.raises(InputError, match=rf"^{name}={value}: choose"):
        RowFilter(**wrong)
    with pytest.raises(InputError, match="filter_above serves max_identity and diff"):
        RowFilter(coverage=5, filter_above=10)
