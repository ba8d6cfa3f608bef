"""The native functions refuse arrays and numbers that they cannot use. The messages are written by hand."""

import numpy as np
import pytest

from swsearch import _native

CODES = np.array([[0, 1, 2], [0, 1, 3], [31, 31, 31]], np.uint8)
ORDER = np.array([0, 1], np.uint32)


def select(codes=CODES, order=ORDER, n_kinds=20, max_identity=90, min_identity=20, at_least=0, taken=None):
    taken = np.zeros(len(codes), np.uint8) if taken is None else taken
    _native.select_rows(codes, order, n_kinds, max_identity, min_identity, at_least, taken)
    return taken.tolist()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"order": np.array([0, 3], np.uint32)}, "order has a number that is not a row"),
        ({"order": np.array([0, 2], np.uint32)}, "a row of order has no residue"),
        ({"n_kinds": 33}, "n_kinds ranges from 1 to 32"),
        ({"n_kinds": 0}, "n_kinds ranges from 1 to 32"),
        ({"max_identity": 101}, "max_identity ranges from 0 to 100"),
        ({"min_identity": -1}, "min_identity is negative"),
        ({"at_least": -1}, "at_least is negative"),
        ({"taken": np.zeros(2, np.uint8)}, "taken and codes differ in length"),
    ],
)
def test_values_are_checked(wrong, message):
    with pytest.raises(ValueError, match=message):
        select(**wrong)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"codes": CODES.astype(np.int8)}, "codes must be an array of uint8"),
        ({"codes": CODES[:, ::2]}, "codes must be contiguous"),
        ({"codes": CODES[0]}, "codes must have 2 dimensions"),
        ({"order": ORDER.astype(np.int64)}, "order must be an array of uint32"),
        ({"taken": np.zeros(3, bool)}, "taken must be an array of uint8"),
    ],
)
def test_arrays_are_checked(wrong, message):
    with pytest.raises(TypeError, match=message):
        select(**wrong)


def test_neff_checks_its_arguments_and_no_row_is_no_error():
    assert select() == [1, 1, 0]
    assert select(order=ORDER[:0]) == [0, 0, 0]
    assert _native.effective_number(CODES[:0], 20, 1) == 1.0
    with pytest.raises(ValueError, match="threads"):
        _native.effective_number(CODES, 20, 0)
    with pytest.raises(TypeError, match="uint8"):
        _native.effective_number(CODES.astype(np.int16), 20, 1)
