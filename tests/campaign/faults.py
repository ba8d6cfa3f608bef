"""Faults that can be injected at a numbered system call, and the library that injects them (`shim.c`)."""

import ctypes
import mmap
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.compiled import compiled, compiler_version, digest_of

WRITE, CREATE, RENAME, SYNC, UNLINK, READ, OPEN = (1 << bit for bit in range(7))
CHANGES: Final = WRITE | CREATE | RENAME | SYNC | UNLINK
"""The calls that change the disk: each is a moment at which a killed program can leave a different state."""

COUNT, KILL_BEFORE, KILL_AFTER, TORN, FAIL, SHORT, SIGNAL = range(7)
KILLS: Final = {"before": KILL_BEFORE, "after": KILL_AFTER, "in the middle of": TORN}


@dataclass(frozen=True)
class Fault:
    """One fault at the `at`-th call of the classes `of`, counted from 1; no fault if `at` is 0."""

    at: int = 0
    action: int = COUNT
    value: int = 0  # the error of FAIL, the signal of SIGNAL
    sticky: bool = False  # whether every later call of these classes gets the same fault
    of: int = CHANGES

    def environment(self, root: Path, page: Path) -> dict[str, str]:
        """Return the environment variables, besides the preloaded library, that inject the fault into a program."""
        words = f"{self.at} {self.action} {self.value} {int(self.sticky)} {self.of}"
        return {"CAMPAIGN_ROOT": f"{root}/", "CAMPAIGN_PAGE": str(page), "CAMPAIGN_FAULT": words}


NONE: Final = Fault()


class Page:
    """The shared page in which the library reports the number of calls and the call that was faulted."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with open(path, "a+b") as file:
            file.truncate(4096)
            self._bytes = mmap.mmap(file.fileno(), 4096)

    @property
    def calls(self) -> int:
        return int.from_bytes(self._bytes[:8], "little")

    @property
    def what(self) -> str:
        """The call that was faulted; empty if there was none."""
        return self._bytes[64:1088].split(b"\0", 1)[0].decode("utf-8", "replace")

    @property
    def began(self) -> bool:
        """Whether a fork has reached the program with its signal handlers."""
        return self._bytes[-1] == 1

    @began.setter
    def began(self, has_begun: bool) -> None:
        self._bytes[-1] = has_begun

    def close(self) -> None:
        self._bytes.close()


def shim() -> Path:
    """Return the library, compiled."""
    source = Path(__file__).with_name("shim.c")
    command = ["gcc", "-O1", "-shared", "-fPIC", source, "-ldl", "-o"]
    parts = [compiler_version("gcc"), digest_of(source.parent)]
    return compiled("shim.so", parts, lambda path: subprocess.run([*command, path], check=True))


def arm(root: Path, page: Path, fault: Fault) -> None:
    """Inject the fault into this process."""
    library = ctypes.CDLL(None)
    library.campaign_arm(
        f"{root}/".encode(), str(page).encode(), ctypes.c_long(fault.at), fault.action, fault.value, int(fault.sticky),
        ctypes.c_uint(fault.of),
    )  # fmt: skip
