"""``--log FILE``: the log of a command is opened before any work, and its last line has the exit code.

The option stands before or behind the name of the command. The log is opened before values are converted
(:mod:`swsearch.cli.command`), or when the line is found to be wrong, so that wrong usage is logged too. The first two
lines name the program, the host and the command line. What follows is said through :func:`swsearch.cli.output.say`;
errors that nobody expected also have their traceback.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from typer.core import TyperOption

from swsearch import __version__
from swsearch.cli.command_line import command_line
from swsearch.cli.options import OUTPUT_FILE, of_share
from swsearch.cli.output import say
from swsearch.command_log import append, close_log, log_path, open_log
from swsearch.errors import InputError
from swsearch.file_registry import identities_of, registry
from swsearch.options import OUTPUT
from swsearch.output_files import descriptor_of, refuse_compressed
from swsearch.words import counted, quoted

NAME: Final = "log"
KEY: Final = "swsearch.log"
"""Key in ``ctx.meta`` for the file that a group names."""
_SIGTERM_CODE: Final = 143


def option() -> TyperOption:
    """The option of every command and group; that of a group is kept in ``ctx.meta`` for its command."""
    return TyperOption(
        param_decls=[NAME, f"--{NAME}"],
        type=OUTPUT_FILE,
        metavar="FILE",
        help="Append all messages to this file, with times, the command line, tracebacks and the exit code.",
        rich_help_panel=OUTPUT,
        expose_value=False,
        callback=_keep_name,
    )


def _keep_name(ctx: Any, _param: Any, value: str | None) -> None:
    if value is not None:
        ctx.meta[KEY] = value


def begin_log(name: str | None, others: Sequence[str], shard: str | None = None) -> None:
    """Open the log, unless it is open or there is none, and write its first lines.

    Parameters
    ----------
    name : str or None
        The file.
    others : sequence of str
        What else the command line names.
    shard : str, optional
        The value of ``--shard``, which takes the place of ``{shard}`` in the name.

    Raises
    ------
    InputError
        The file cannot be opened, or the command reads or writes it otherwise.
    """
    if name is None or log_path() is not None:
        return

    name = of_share(name, shard or "1/1")
    _refuse(name, others)
    open_log(Path(name), say)
    threading.excepthook = _log_thread
    import platform

    from swsearch.threads import usable_cores

    system = f"{platform.system()} {platform.release()} {platform.machine()}"
    host = f"{platform.node()} ({system}, {counted(usable_cores(), 'core')})"
    append(f"swsearch {__version__}, Python {platform.python_version()}, on {host}, in {Path.cwd()}")
    append(f"command: {command_line()}")


def end_log(began: float, outcome: int | BaseException) -> None:
    """Write the last lines and close the log, if there is one.

    Parameters
    ----------
    began : float
        The time of ``time.monotonic`` at which the command began.
    outcome : int or BaseException
        The exit code, or what ends the process.
    """
    if log_path() is None:
        return
    code: Any = outcome
    if isinstance(outcome, SystemExit):
        code = outcome.code if isinstance(outcome.code, int) else int(outcome.code is not None)
        if code == _SIGTERM_CODE:
            append("terminated by SIGTERM", logging.WARNING)
    elif isinstance(outcome, BaseException):
        code = 1
        append("unexpected error", logging.ERROR, outcome)
    level = logging.INFO if code == 0 else logging.ERROR
    append(f"exit code {code} after {time.monotonic() - began:.3f} s", level)
    threading.excepthook = threading.__excepthook__
    close_log()


def _refuse(name: str, others: Sequence[str]) -> None:
    """Refuse a file that cannot be a log, or that other words of the command line name."""
    shown = f"--{NAME} {name or quoted(name)}"
    if name in ("", "-") or descriptor_of(name) in (0, 1, 2):
        raise InputError(f"{shown}: a log is a file, and its lines are printed on stderr anyway; name a file")
    refuse_compressed(Path(name), f"--{NAME}", "each line is appended as it is said, which no archive can take")
    mine = identities_of(name)
    if any(mine & identities_of(word) for word in others if word):
        raise InputError(f"{shown}: the command line names this file for something else, too; choose another file")
    registry().write(f"--{NAME}", name)


def _log_thread(failed: threading.ExceptHookArgs) -> None:
    """Log what ends a thread; Python prints it."""
    if failed.exc_value is not None and not isinstance(failed.exc_value, SystemExit):
        append("unexpected error of a thread", logging.ERROR, failed.exc_value)
    threading.__excepthook__(failed)
