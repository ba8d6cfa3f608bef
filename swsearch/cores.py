"""How many threads are of use: the cores this process may run on."""

from __future__ import annotations

import os


def usable_cores() -> int:
    """Cores this process may run on, which a container or a batch system may have cut down; at least 1."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
