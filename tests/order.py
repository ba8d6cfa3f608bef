"""The order of the tests: each worker of pytest-xdist begins with slow tests, so that none of them is the last.

``--dist worksteal`` gives each worker the same number of consecutive tests, and a worker that has none left takes the
last tests of another.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from itertools import chain
from typing import TypeVar

Test = TypeVar("Test")


def slow_first(
    tests: Sequence[Test], is_slow: Callable[[Test], bool], module_of: Callable[[Test], Hashable], n_workers: int
) -> list[Test]:
    """Return the tests in an order in which the part of each worker begins with slow ones.

    The slow tests of a module remain together, because they share fixtures.

    Parameters
    ----------
    tests : sequence
    is_slow : callable
    module_of : callable
    n_workers : int
        At least 1.
    """
    modules: dict[Hashable, list[Test]] = {}
    for test in filter(is_slow, tests):
        modules.setdefault(module_of(test), []).append(test)
    shares = [list(chain.from_iterable(list(modules.values())[worker::n_workers])) for worker in range(n_workers)]
    others = [test for test in tests if not is_slow(test)]
    ordered: list[Test] = []
    for worker, share in enumerate(shares):
        n_left = n_workers - worker
        n_others = max(0, (len(tests) - len(ordered)) // n_left - len(share)) if n_left > 1 else len(others)
        ordered += share + others[:n_others]
        others = others[n_others:]
    return ordered
