"""Faults that can be injected at a numbered system call, and the library that injects them (`shim.c`)."""

import ctypes
import errno
import mmap
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

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

    def __str__(self) -> str:
        if not self.at:
            return "no fault"
        what = {FAIL: errno.errorcode.get(self.value, ""), SHORT: "half done", SIGNAL: f"signal {self.value}"}.get(
            self.action, next((f"killed {name}" for name, action in KILLS.items() if action == self.action), "")
        )
        return f"{what} at call {self.at}{' and all later' if self.sticky else ''}"


NONE: Final = Fault()


class Page:
    """The shared page in which the library reports the number of calls and the call that was faulted."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.write_bytes(bytes(4096))
        with open(path, "r+b") as file:
            self._bytes = mmap.mmap(file.fileno(), 4096)

    @property
    def calls(self) -> int:
        return int.from_bytes(self._bytes[:8], "little")

    @property
    def what(self) -> str:
        """The call that was faulted; empty if there was none."""
        return self._bytes[64:1088].split(b"\0", 1)[0].decode("utf-8", "replace")

    def close(self) -> None:
        self._bytes.close()


def build_shim(folder: Path) -> Path:
    """Compile the library."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    assert compiler, "a C compiler is needed for the library that makes system calls fail"
    source, library = Path(__file__).with_name("shim.c"), folder / "shim.so"
    if not library.exists() or library.stat().st_mtime < source.stat().st_mtime:
        unfinished = library.with_suffix(f".{id(library)}")
        command = [compiler, "-O1", "-shared", "-fPIC", "-o", str(unfinished), str(source), "-ldl"]
        subprocess.run(command, check=True)
        unfinished.rename(library)
    return library


def is_loaded() -> bool:
    """Return whether the library is preloaded in this process, so that its children can be armed after a fork."""
    return hasattr(ctypes.CDLL(None), "campaign_arm")


def without_shim() -> dict[str, str]:
    """Return the environment without the library of :func:`build_shim`: sanitizers must be loaded first."""
    return {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}


def arm(root: Path, page: Path, fault: Fault) -> None:
    """Inject the fault into this process."""
    library = ctypes.CDLL(None)
    library.campaign_arm(
        f"{root}/".encode(), str(page).encode(), ctypes.c_long(fault.at), fault.action, fault.value, int(fault.sticky),
        ctypes.c_uint(fault.of),
    )  # fmt: skip


def watch(descriptor: int) -> None:
    """Count calls on an already open file of this process as well, for example its standard output."""
    ctypes.CDLL(None).campaign_watch(descriptor)
