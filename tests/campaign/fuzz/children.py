"""A function run in a forked child with limits: its result, and whether it died, hung or exhausted its memory.

A fork takes some milliseconds and a new interpreter most of a second, so forks make thousands of trials cheap. Modules
that the child uses should be imported before the fork.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import resource
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

HANG_SECONDS: Final = 120
"""Limit of a child's own processor time; three times that of wall time, so that a busy machine causes no failure."""
MEMORY_BYTES: Final = 3 << 30
"""Limit of the address space that a child may use beyond its parent's."""
UNCAUGHT: Final = 99
"""Exit code of a child whose function raised."""


@dataclass(frozen=True)
class Ended:
    """How a child ended.

    Attributes
    ----------
    code : int
        The function's return value; the negative number of the signal that ended it; :data:`UNCAUGHT` for an exception.
    out, err : str
        What it printed.
    """

    code: int
    out: str
    err: str

    @property
    def fault(self) -> str | None:
        """What no command may do: die by a signal, raise an uncaught exception, exhaust its memory; None if none."""
        if self.code < 0:
            name = signal.Signals(-self.code).name
            hung = " (it hung)" if -self.code in (signal.SIGXCPU, signal.SIGALRM) else ""
            return f"died by {name}{hung}: {self.err[:1500]}"
        if self.code == UNCAUGHT or "Traceback (most recent call last)" in self.err:
            return self.err[-1500:]
        return "out of memory" if "out of memory" in self.err else None


def in_child(function: Callable[[], int]) -> Ended:
    """Run ``function`` in a child of this process and capture the output of its descriptors."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        sys.stdout.flush()
        sys.stderr.flush()
        child = os.fork()
        if child == 0:
            _be_child(function, out.fileno(), err.fileno())
        _, status = os.waitpid(child, 0)
        sizes = [(file.fileno(), os.fstat(file.fileno()).st_size) for file in (out, err)]
        texts = [os.pread(number, size, 0).decode("utf-8", "replace") for number, size in sizes]
    return Ended(os.waitstatus_to_exitcode(status), *texts)


def _be_child(function: Callable[[], int], out: int, err: int) -> None:
    """Run the function in the child; never return."""
    code = UNCAUGHT
    try:
        os.dup2(out, 1)
        os.dup2(err, 2)
        faulthandler.enable(2, all_threads=False)  # the frames of a crash are part of its output
        sys.stdin = open(os.devnull)  # noqa: SIM115 - for as long as the child lives
        sys.stdout = open(1, "w", encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
        for name in (signal.SIGALRM, signal.SIGXCPU, signal.SIGINT, signal.SIGTERM):
            signal.signal(name, signal.SIG_DFL)
        signal.alarm(3 * HANG_SECONDS)
        used = int(sum(resource.getrusage(resource.RUSAGE_SELF)[:2]))
        resource.setrlimit(resource.RLIMIT_CPU, (used + HANG_SECONDS, used + HANG_SECONDS + 5))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        most = _address_space() + MEMORY_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        code = function()
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(BaseException):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code & 0xFF)


def _address_space() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()
