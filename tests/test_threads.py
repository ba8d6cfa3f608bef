"""Threads whose results come in order. The expected values are those of the built-in ``map``."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future

import numpy as np
import pytest

from swsearch.database.partition import Partition
from swsearch.hits.traceback import LocalAligner
from swsearch.query.profile import sequence_profile
from swsearch.scoring.scheme import default_scheme
from swsearch.search.frames import Frame
from swsearch.sequences.alphabet import PROTEIN
from swsearch.threads import Threads, beat, read_ahead
from tests.support import random_codes

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


@pytest.mark.parametrize("work", ["beats", "alignment"])
def test_an_exception_ends_work_at_its_next_beat(work: str) -> None:
    """The alignment has more cells than a processor computes in an hour."""
    began = threading.Event()

    def beats() -> None:
        while True:
            began.set()
            beat()

    def alignment() -> None:
        codes = random_codes(np.random.default_rng(3), 3_000_000)
        query = Frame("plus", 0, codes, sequence_profile(codes, default_scheme(PROTEIN)))
        began.set()
        LocalAligner(PROTEIN, progress=beat).paths(query, Partition.pack([codes]))

    def interrupted(threads: Threads) -> None:
        futures.append(threads.submit({"beats": beats, "alignment": alignment}[work]))
        assert began.wait(60)
        raise KeyboardInterrupt

    futures: list[Future[None]] = []
    with pytest.raises(KeyboardInterrupt), Threads(2) as threads:
        interrupted(threads)
    assert isinstance(futures[0].exception(), CancelledError)


def test_one_result_is_given_for_each_item_that_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pool that has the first three results at once: were they given at once, no thread would have work meanwhile."""
    taken: list[int] = []
    submitted: list[Future[int]] = []

    def items() -> Iterator[int]:
        for number in range(5):
            taken.append(number)
            yield number

    class ThreeAtOnce:
        def submit(self, function: Callable[[int], int], item: int) -> Future[int]:
            submitted.append(Future())
            if len(submitted) >= 3:
                for number, future in enumerate(submitted):
                    if not future.done():
                        future.set_result(function(number))
            return submitted[-1]

        def shutdown(self, **_: bool) -> None:
            """Nothing runs."""

    monkeypatch.setattr("swsearch.threads._started", lambda n_threads, given_up: (ThreeAtOnce(), n_threads))
    with Threads(2) as threads:
        given = [(result, len(taken)) for result in threads.in_order(square, items())]
    assert given == [(0, 3), (1, 4), (4, 5), (9, 5), (16, 5)]
