"""Threads whose results come in order. The expected values are those of the built-in ``map``."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from swsearch.threads import Threads, read_ahead

ITEMS = list(range(50))


def square(number: int) -> int:
    if number == 40:
        raise ValueError("forty")
    return number * number


@pytest.mark.parametrize("n_threads", [1, 2, 7])
def test_results_and_exceptions_come_in_order(n_threads: int) -> None:
    found: list[int] = []
    with Threads(n_threads) as threads, pytest.raises(ValueError, match="forty"):
        found.extend(threads.in_order(square, iter(ITEMS)))
    assert found == [number * number for number in ITEMS[:40]]


@pytest.mark.parametrize("n_threads", [1, 2])
def test_an_exception_of_a_submitted_function_is_that_of_its_result(n_threads: int) -> None:
    with Threads(n_threads) as threads:
        assert threads.submit(square, 3).result() == 9
        with pytest.raises(ValueError, match="forty"):
            threads.submit(square, 40).result()


def test_items_read_ahead_are_all_items_and_end_with_the_exception() -> None:
    def items() -> Iterator[int]:
        yield from ITEMS
        raise OSError("the disk")

    found: list[int] = []
    with pytest.raises(OSError, match="the disk"):
        found.extend(read_ahead(items()))
    assert found == ITEMS


def test_an_abandoned_iterator_leaves_no_thread() -> None:
    before = threading.active_count()
    ahead = read_ahead(iter(ITEMS))
    assert next(ahead) == 0
    ahead.close()
    with Threads(3) as threads:
        some = threads.in_order(square, ahead)
        some.close()
    assert threading.active_count() == before


@pytest.mark.parametrize("n_possible", [0, 1, 3])
def test_fewer_threads_than_requested_do_the_work(monkeypatch: pytest.MonkeyPatch, n_possible: int) -> None:
    """A system that starts no more threads; expected values: all results, by as many threads as there are."""
    start = threading.Thread.start
    running: set[threading.Thread] = set()

    def limited(thread: threading.Thread) -> None:
        running.intersection_update(threading.enumerate())
        if len(running) >= n_possible:
            raise RuntimeError("can't start new thread")
        start(thread)
        running.add(thread)

    monkeypatch.setattr(threading.Thread, "start", limited)
    with Threads(8) as threads:
        assert threads.n_threads == max(n_possible, 1)
        assert list(threads.in_order(square, iter(ITEMS[:40]))) == [number * number for number in ITEMS[:40]]
    if n_possible == 0:
        assert list(read_ahead(iter(ITEMS))) == ITEMS
