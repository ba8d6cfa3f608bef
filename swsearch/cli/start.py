"""The entry point of the ``swsearch`` command: what is set up before the program is imported.

Ctrl-C and SIGTERM during the import end the process at once, because nothing has been opened or written at that point;
the exit codes are those of the command, and there is no traceback of an import. OpenBLAS gets one thread: NumPy loads
it, its idle threads use more processor time than a short command, and the program computes nothing with it. Python
processes that this one starts, such as the workers of ``--cluster local:4``, import nothing from the current folder,
which may have modules of any name. Python looks for garbage cycles less often: at its own threshold, it looks dozens of
times among the modules that are being imported, and all of what they define stays. This module imports no other module
that takes time.
"""

from __future__ import annotations

import gc
import os
import signal
from types import FrameType
from typing import NoReturn

_OBJECTS_PER_COLLECTION = 20_000
_SIGNALLED = 128  # the exit code is this plus the number of the signal: 130 or 143


def leave(number: int, _frame: FrameType | None) -> NoReturn:
    """End the process."""
    os._exit(_SIGNALLED + number)


def run() -> NoReturn:
    """Import the program and run it.

    Signals that are ignored, as after ``nohup``, remain ignored; a number of threads that the user set is kept.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, leave)
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, leave)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ["PYTHONSAFEPATH"] = "1"
    gc.set_threshold(_OBJECTS_PER_COLLECTION)

    from swsearch.cli import app

    app.run()
