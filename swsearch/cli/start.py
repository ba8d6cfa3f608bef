"""The entry point of the ``swsearch`` command: handling of Ctrl-C and SIGTERM while the program is being imported.

Nothing has been opened or written at that point, so the process ends at once, with the exit codes of the command and
without the traceback of an import. This module imports no other module that takes time.
"""

from __future__ import annotations

import os
import signal
from types import FrameType
from typing import NoReturn

_SIGNALLED = 128  # the exit code is this plus the number of the signal: 130 or 143


def leave(number: int, _frame: FrameType | None) -> NoReturn:
    """End the process."""
    os._exit(_SIGNALLED + number)


def run() -> NoReturn:
    """Import the program and run it. Signals that are ignored, as after ``nohup``, remain ignored."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, leave)
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, leave)

    from swsearch.cli import app

    app.run()
