"""Numbers of threads: the default on this machine, and the range that ``--threads`` allows."""

from __future__ import annotations

import os
from typing import Final

from swsearch.arguments import whole_number
from swsearch.errors import InputError
from swsearch.words import option

MAX_THREADS: Final = 1024
"""Largest number of threads."""


def usable_cores() -> int:
    """Number of cores that this process may use, at least 1; a container or a batch system may limit them."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def check_threads(threads: int) -> None:
    """Refuse a number of threads that no engine accepts.

    Raises
    ------
    InputError
        It is no whole number, below 1, or above 1,024.
    """
    if whole_number("threads", threads) < 1:
        raise InputError(f"{option('threads', threads)}: at least 1 thread is needed")
    if threads > MAX_THREADS:
        raise InputError(
            f"{option('threads', threads)}: {MAX_THREADS:,} at most; the cores of this machine are taken without it"
        )


def threads_to_use(asked: int | None) -> int:
    """The number of threads that the user requested, or one per usable core if ``asked`` is None.

    Raises
    ------
    InputError
        The number is below 1, or above 1,024.

    >>> threads_to_use(3)
    3
    """
    if asked is None:
        return usable_cores()
    check_threads(asked)
    return asked
