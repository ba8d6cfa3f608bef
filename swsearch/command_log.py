"""The log of a command (``--log``): what the command says on stderr, in a file, each line with time and process.

A line is ``2026-11-23T15:20:01.123+00:00 INFO 4242 searching: 12.0 % done``: local time with its offset from UTC,
level, process id, message. Commands say their lines through :func:`append`; without an open log it does nothing. Of a
message with several lines, such as a traceback, each is a line of the log, and control characters are escaped.
Passwords and tokens are left out (:func:`swsearch.words.without_secrets`).

A record is appended by one call of the operating system, so that the records of several processes do not mix and
nothing is lost if the process is killed. Network file systems do not promise this among several machines.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Final

from swsearch.errors import InputError
from swsearch.words import one_line, without_secrets

LOG_VARIABLE: Final = "SWSEARCH_LOG"
"""Environment variable that names the log where the command line does not."""
_SAID: Final = logging.getLogger("swsearch.said")
_SAID.propagate = False  # it was said on stderr; a handler of the program that calls this one would repeat it
_SAID.setLevel(logging.DEBUG)
_SAID.addHandler(logging.NullHandler())
_LIBRARY: Final = logging.getLogger("swsearch")
_RECORD: Final = re.compile(rb"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d [A-Z]+ \d+ ", re.MULTILINE)
"""How each line of a log begins."""
_PREFIX_BYTES: Final = 1 << 16
"""A log that was cut at its head begins within a line."""


class LogFile(logging.Handler):
    """Appends records to a file.

    Parameters
    ----------
    path : Path
    on_failure : callable
        Called once with a message if the file cannot be written any more, for example because the disk is full.

    Raises
    ------
    InputError
        The file cannot be opened, or is a file of another program.
    """

    def __init__(self, path: Path, on_failure: Callable[[str], None]) -> None:
        super().__init__()
        self.path = path.absolute()
        self._on_failure = on_failure
        self._failed = False
        try:
            self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except (OSError, ValueError) as error:  # ValueError: a NUL byte in the name
            reason = (error.strerror if isinstance(error, OSError) else None) or error
            raise InputError(f"--log {path}: {reason}; choose another file") from error
        if _is_other_file(path):
            os.close(self._descriptor)
            raise InputError(f"--log {path}: this file is not a log of swsearch, and would be changed; choose another")

    def emit(self, record: logging.LogRecord) -> None:
        """Append one record."""
        if self._failed:
            return
        left = self.lines(record).encode("utf-8", "surrogateescape")
        try:
            while left:
                left = left[os.write(self._descriptor, left) :]
        except OSError as error:
            self._failed = True
            self._on_failure(f"warning: --log {self.path}: {error.strerror or error}; the log ends here")

    @staticmethod
    def lines(record: logging.LogRecord) -> str:
        r"""The lines of a record.

        >>> found = logging.LogRecord("swsearch", logging.INFO, "", 0, "two\nlines", None, None)
        >>> [line.split(" ", 3)[3] for line in LogFile.lines(found).splitlines()]
        ['two', 'lines']
        """
        text = record.getMessage()
        if record.exc_info:
            text = f"{text}\n{logging.Formatter().formatException(record.exc_info)}"
        time = datetime.fromtimestamp(record.created).astimezone().isoformat(timespec="milliseconds")
        before = f"{time} {record.levelname} {record.process}"
        return "".join(f"{before} {one_line(line)}\n" for line in without_secrets(text).split("\n"))

    def close(self) -> None:
        """Close the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        super().close()


def _is_other_file(path: Path) -> bool:
    """Whether a regular file begins with text but no line of a log; one that may not be read is not looked at."""
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            found = file.read(_PREFIX_BYTES)
    except OSError:
        return False
    return bool(found.strip()) and _RECORD.search(found) is None


class _LibraryWarnings(logging.Handler):
    """Says warnings of the library, which Python would print on stderr if there were no handler."""

    def __init__(self, say: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._say = say

    def emit(self, record: logging.LogRecord) -> None:
        """Say one record."""
        self._say(record.getMessage().removeprefix("swsearch: "))


def append(message: str, level: int = logging.INFO, error: BaseException | None = None) -> None:
    """Append a message to the log, with the traceback of an error if one is given."""
    _SAID.log(level, "%s", without_secrets(message), exc_info=error)


def log_path() -> Path | None:
    """The file of the open log, absolute; None if there is none."""
    return next((handler.path for handler in _SAID.handlers if isinstance(handler, LogFile)), None)


def open_log(path: Path, say: Callable[[str], None]) -> None:
    """Open the log of this process.

    Parameters
    ----------
    path : Path
    say : callable
        Says a line on stderr and passes it to :func:`append`.

    Raises
    ------
    InputError
        The file cannot be opened, or is a file of another program.
    """
    _SAID.addHandler(LogFile(path, say))
    _LIBRARY.addHandler(_LibraryWarnings(say))


def close_log() -> None:
    """Close the log of this process, if there is one."""
    for logger in (_SAID, _LIBRARY):
        for handler in [one for one in logger.handlers if isinstance(one, LogFile | _LibraryWarnings)]:
            logger.removeHandler(handler)
            handler.close()
