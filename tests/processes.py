"""Processes of the program, each a new interpreter: those that a test stops or kills, or whose streams it needs."""

import os
import resource
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

PROGRAMS = Path(sys.executable).parent
"""The folder of the interpreter and of the command, for a shell's PATH."""
SWSEARCH = str(PROGRAMS / "swsearch")


class Process(subprocess.Popen[str]):
    """A process whose streams are text; at the end of a ``with`` block it is killed, if it still runs."""

    def __exit__(self, *_: Any) -> None:
        self.kill()
        super().__exit__(*_)


def run_with_file_limit(
    arguments: Sequence[str | os.PathLike[str]], folder: Path, limit: int
) -> subprocess.CompletedProcess[str]:
    """Run `swsearch` in a folder to its end, while none of its files may grow beyond ``limit`` bytes."""
    return subprocess.run(
        [SWSEARCH, *arguments],
        check=False,
        capture_output=True,
        text=True,
        cwd=folder,
        # The limit would cut off the bytecode of modules, too, which later processes then cannot load.
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )


def free_port() -> int:
    """A port of this machine on which nothing listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def in_shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command line of bash in a folder to its end; ``swsearch`` is the one that is tested."""
    environment = {**os.environ, "PATH": f"{PROGRAMS}:{os.environ['PATH']}"}
    return subprocess.run(
        ["bash", "-c", command], check=False, capture_output=True, text=True, cwd=folder, env=environment
    )


PAUSE = """
import sys

def pause(*_):
    print("here", flush=True)
    sys.stdin.readline()

def before(function):
    def paused(*arguments, **options):
        pause()
        return function(*arguments, **options)
    return paused
"""


def paused(program: str, *arguments: object, **options: Any) -> Process:
    """Start a Python program, which has the functions of `PAUSE`; return when it pauses. A line makes it go on."""
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    process = start(["-c", PAUSE + program, *map(str, arguments)], **streams, **options)
    assert process.stdout is not None
    assert process.stdout.readline() == "here\n", process.communicate()[1]
    return process


def start(arguments: Sequence[str | os.PathLike[str]], **options: Any) -> Process:
    """Start the interpreter with these arguments; the options are those of `subprocess.Popen`."""
    return Process([sys.executable, *arguments], text=True, **options)
