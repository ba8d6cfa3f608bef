"""The command line of this process: what a run records of it, and the command that goes on with a run."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

_given: Final[list[str]] = []
_noted: Final[list[Any]] = []
"""The name of the command in progress, its parameters, and the values of the parser."""


def begin(arguments: Sequence[str]) -> None:
    """Note the arguments of this process, without the name of the program."""
    _given[:] = arguments
    _noted.clear()


def note(command: str, parameters: Sequence[Any], opts: Mapping[str, Any]) -> None:
    """Note what the parser found in the arguments."""
    _noted[:] = [command, list(parameters), dict(opts)]


def command_line() -> str:
    """The command line as a shell reads it."""
    return shlex.join(["swsearch", *_given])


def follows(flag: str, word: str) -> bool:
    """Whether a word stands behind this one on the command line, as if it were its value."""
    return (flag, word) in pairwise(_given)


def resuming_line(run_id: int) -> str:
    """The command line that goes on with a run of this one."""
    command, parameters, opts = _noted
    others = {name: value for name, value in opts.items() if name != "resume"}
    resume = "latest" if command == "rbh" else str(run_id)  # its two searches are two runs
    return shlex.join(words_of(command, parameters, others | {"resume": resume}))


def words_of(command: str, parameters: Sequence[Any], opts: Mapping[str, Any]) -> list[str]:
    """The words of a command line: its arguments, then its options by their long names.

    Parameters
    ----------
    command : str
        As ``query`` or ``db info``.
    parameters : sequence
        The parameters of the command.
    opts : mapping of str to str, bool or sequence of str
        The values of the parser by the names of the parameters.
    """
    by_name = {one.name: one for one in parameters}
    arguments: list[str] = []
    options: list[str] = []
    for name, value in opts.items():
        one = by_name[name]
        if one.param_type_name == "argument":
            arguments += texts(value)
        elif value is True or value is False:
            options.append(max(one.opts if value else one.secondary_opts, key=len))
        else:
            options += [word for text in texts(value) for word in (max(one.opts, key=len), text)]
    start = ["swsearch", *command.split()]
    if any(word.startswith("-") and word != "-" for word in arguments):
        return [*start, *options, "--", *arguments]
    return [*start, *arguments, *options]


def texts(value: Any) -> list[str]:
    """The words that are the value of a parameter; flags have none."""
    if value is None or isinstance(value, bool):
        return []
    return [str(one) for one in value] if isinstance(value, (list, tuple)) else [str(value)]
