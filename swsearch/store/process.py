"""The process that works on a run, stored so that a run whose process died can be distinguished from a running one.

The process id is not sufficient: ids are reused, at the latest after a restart of the machine, and in containers many
programs have the id 1. Therefore a run also stores the start time of its process. The processes of another machine
cannot be observed; the user must decide whether they are running.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

_START_FIELD: Final = 19
"""Index, among the fields of ``/proc/PID/stat`` after the program's name, of the start in clock ticks since boot."""


@dataclass(frozen=True)
class HostProcess:
    """A process.

    Attributes
    ----------
    host : str
        Name of its machine.
    process : int
        Its process id there.
    began : str or None
        Its start: the boot id of the machine and the clock ticks since boot. None if unknown (not Linux).
    """

    host: str
    process: int
    began: str | None

    @classmethod
    def this(cls) -> Self:
        """The calling process."""
        return cls(socket.gethostname(), os.getpid(), _began(os.getpid()))

    def __str__(self) -> str:
        return f"process {self.process} on {self.host}"

    @property
    def is_here(self) -> bool:
        """Whether it is or was a process of this machine."""
        return self.host == socket.gethostname()

    @property
    def has_ended(self) -> bool:
        """Whether it was a process of this machine and has ended; False if unknown.

        A process that was killed remains as a zombie until its parent has asked for its exit code.
        """
        if not self.is_here:
            return False
        try:
            os.kill(self.process, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            pass
        if _fields(self.process)[:1] in ([b"Z"], [b"X"]):
            return True
        began = _began(self.process)
        return None not in (self.began, began) and self.began != began


def _began(process: int) -> str | None:
    try:
        machine = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None
    fields = _fields(process)
    return f"{machine} {int(fields[_START_FIELD])}" if fields else None


def _fields(process: int) -> list[bytes]:
    """The fields of ``/proc/PID/stat`` after the program's name, the state first; empty if there is no such process."""
    try:
        return Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return []
