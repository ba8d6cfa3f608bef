"""Waiting in tests: for what happens, never for a time. A busy machine may take as long as it likes.

The limits below end a test that hangs; none is met by one that is merely slow.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable

import pytest

LIMIT_SECONDS = 300.0


def wait_until(happened: Callable[[], object], what: str) -> None:
    """Return when `happened` returns something true; fails where that never comes.

    It is asked less and less often, up to ten times a second: asking may cost more than what is waited for.
    """
    ends = time.monotonic() + LIMIT_SECONDS
    pause = 0.002
    while not happened():
        assert time.monotonic() < ends, f"{what}: not within {LIMIT_SECONDS:.0f} s"
        time.sleep(pause)
        pause = min(1.5 * pause, 0.1)


def interrupt(work: Callable[[], object], seconds: float = 0.3) -> None:
    """Do work that Ctrl-C ends; it comes that long after the beginning, from another thread as from a shell.

    Whether it was heard soon is told by the processor time spent since, of all threads, not by the clock.
    """
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))

    def work_on() -> None:
        timer.start()  # in here, since the signal may come before the work has begun
        work()

    try:
        with pytest.raises(KeyboardInterrupt):
            work_on()
    finally:
        timer.cancel()
        timer.join()
