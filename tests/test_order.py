"""The order of the tests; expected values are written by hand."""

import pytest

from tests.order import slow_first


@pytest.mark.parametrize(
    ("tests", "n_workers", "expected"),
    [
        ("a1 a2 B1 b2 C1 c2 C3 d1 E1", 1, "B1 C1 C3 E1 a1 a2 b2 c2 d1"),
        ("a1 a2 B1 b2 C1 c2 C3 d1 E1", 3, "B1 a1 a2 C1 C3 b2 E1 c2 d1"),
        ("a1 a2 B1 b2 B3 B4 C1", 2, "B1 B3 B4 C1 a1 a2 b2"),
        ("A1 B1 C1 D1 E1", 2, "A1 C1 E1 B1 D1"),
        ("a1 a2 a3", 2, "a1 a2 a3"),
        ("a1", 3, "a1"),
        ("", 3, ""),
    ],
)
def test_the_part_of_each_worker_begins_with_slow_tests(tests, n_workers, expected):
    """A capital is a slow test, the letter its module; parts of a third are whole numbers of tests, rounded down."""
    found = slow_first(tests.split(), lambda name: name[0].isupper(), lambda name: name[0].lower(), n_workers)
    assert found == expected.split()
