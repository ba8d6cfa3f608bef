"""The entry of the ``swsearch`` command: what Ctrl-C and SIGTERM do while the program is being loaded.

Nothing has been opened or written by then, so the process ends at once, with the command's own exit codes and without
the traceback of an import. This module imports nothing that takes time.
"""

from __future__ import annotations

import os
import signal
from types import FrameType
from typing import NoReturn

_SIGNALLED = 128  # exit code less the signal's number: 130 and 143


def leave(number: int, _frame: FrameType | None) -> NoReturn:
    """End the process."""
    os._exit(_SIGNALLED + number)


def run() -> NoReturn:
    """Load the program and run it. Signals that are ignored, as after ``nohup``, stay so."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, leave)
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, leave)

    from swsearch.cli import app

    app.run()
