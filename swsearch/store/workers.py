"""Which process works on a run, and whether it still does: what a run remembers so that one whose process died can be
told from one that is under way.

A process number alone does not say: numbers are given again, after a restart of the machine at once, and in a container
every program may be number 1. So a run also keeps when its process began, as the system counts it. Nobody can look at
another machine's processes; what is to be thought of those is for a person to say.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

_START_FIELD: Final = 19
"""Of ``/proc/PID/stat`` behind the program's name: when the process began, in clock ticks since the machine did."""


@dataclass(frozen=True)
class Worker:
    """A process.

    Attributes
    ----------
    host : str
        Its machine.
    process : int
        Its number there.
    began : str or None
        When it began: the machine's start and clock ticks since. None where the system does not say (not Linux).
    """

    host: str
    process: int
    began: str | None

    @classmethod
    def this(cls) -> Self:
        """The process that asks."""
        return cls(socket.gethostname(), os.getpid(), _began(os.getpid()))

    def __str__(self) -> str:
        return f"process {self.process} on {self.host}"

    @property
    def is_here(self) -> bool:
        """Whether it is, or was, a process of this machine."""
        return self.host == socket.gethostname()

    @property
    def has_ended(self) -> bool:
        """Whether it is a process of this machine that is no more; False where that cannot be known."""
        if not self.is_here:
            return False
        try:
            os.kill(self.process, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            pass
        began = _began(self.process)
        return None not in (self.began, began) and self.began != began


def _began(process: int) -> str | None:
    try:
        machine = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        ticks = Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()[_START_FIELD]
    except OSError:
        return None
    return f"{machine} {int(ticks)}"
