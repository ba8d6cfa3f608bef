"""The command line of this process: what a run records of it, and the command that goes on with a run."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Final

_given: Final[list[str]] = []


def begin(arguments: Sequence[str]) -> None:
    """Note the arguments of this process, without the name of the program."""
    _given[:] = arguments


def arguments() -> list[str]:
    """The arguments of this process, without the name of the program."""
    return list(_given)


def command_line() -> str:
    """The command line as a shell reads it."""
    return shlex.join(["swsearch", *arguments()])


def resuming_line(run_id: int) -> str:
    """The command line that goes on with a run of this one.

    >>> begin(["batch", "q.fa", "p.db", "--resume", "latest"])
    >>> resuming_line(3)
    'swsearch batch q.fa p.db --resume 3'
    """
    kept: list[str] = []
    left = arguments()
    while left:
        word = left.pop(0)
        if word == "--":
            return shlex.join(["swsearch", *kept, "--resume", str(run_id), word, *left])
        if word == "--resume":
            del left[:1]
        elif not word.startswith("--resume="):
            kept.append(word)
    return shlex.join(["swsearch", *kept, "--resume", str(run_id)])
