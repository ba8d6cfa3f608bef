"""Waiting in tests: for events, never for a fixed time, because a busy machine may take any time.

The limits below end a test that hangs; a test that is merely slow does not reach them.
"""

import os
import signal
import threading
import time
from collections.abc import Callable

import pytest

LIMIT_SECONDS = 300.0


def wait_until(happened: Callable[[], object], what: str) -> None:
    """Return when `happened` returns a true value; fail if that never happens.

    The interval between calls grows to a tenth of a second, because a call may cost more than the event itself.
    """
    ends = time.monotonic() + LIMIT_SECONDS
    pause = 0.002
    while not happened():
        assert time.monotonic() < ends, f"{what}: not within {LIMIT_SECONDS:.0f} s"
        time.sleep(pause)
        pause = min(1.5 * pause, 0.1)


def interrupt(work: Callable[[], object], seconds: float = 0.3) -> None:
    """Run work that Ctrl-C ends; the signal comes `seconds` after the start, from another thread as from a shell.

    The reaction time is measured by the processor time of all threads since then, not by the clock.
    """
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))

    def work_on() -> None:
        timer.start()  # inside the block, because the signal may come before the work has begun
        work()

    try:
        with pytest.raises(KeyboardInterrupt):
            work_on()
    finally:
        timer.cancel()
        timer.join()
