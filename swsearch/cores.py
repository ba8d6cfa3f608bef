"""How many threads are of use: the cores this process may run on."""

from __future__ import annotations

import os
from typing import Final

MAX_THREADS: Final = 4096
"""More threads than that are never started, however many are asked for."""


def usable_cores() -> int:
    """Cores this process may run on, which a container or a batch system may have cut down; at least 1."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def threads_to_use(asked: int | None) -> int:
    """As many threads as are asked for, up to :data:`MAX_THREADS`; for None one a usable core.

    >>> threads_to_use(3), threads_to_use(10**12)
    (3, 4096)
    """
    return usable_cores() if asked is None else min(asked, MAX_THREADS)
