"""The output of a command: results to stdout or to a file that appears only when it is complete, messages to stderr.

On a terminal, both streams share the screen, with the progress bar on the last line. Therefore all output passes
through this module, which removes the bar before it writes; the next update of the progress draws the bar again.
``--quiet`` keeps the messages of :func:`inform` and the progress from stderr (:func:`quietly`). All messages are also
lines of the log that ``--log`` names.
"""

from __future__ import annotations

import io
import logging
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, BinaryIO, Final, Self, TextIO, cast

from swsearch.command_log import append
from swsearch.errors import InputError, OutputClosed, writing_to
from swsearch.file_registry import registry
from swsearch.output_files import descriptor_of, refuse_compressed, text_file
from swsearch.words import as_options, duration, one_line

_TO_LINE_START: Final = "\r"
_CLEAR_TO_END: Final = "\x1b[K"
_LEVELS: Final = {"error": logging.ERROR, "failed": logging.ERROR, "warning": logging.WARNING}
"""The level of a message in the log, by the word before its first colon."""


class _LastLine:
    """The line of the terminal at the cursor: empty, with a bar, or with the beginning of a line of results."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._has_bar = False
        self._has_text = False

    def show_bar(self, text: str) -> None:
        """Draw or replace the bar, unless the line contains the beginning of a line of results."""
        with self._lock:
            if not self._has_text:
                self._has_bar = True
                _write_stderr(f"{_TO_LINE_START}{text}{_CLEAR_TO_END}")

    def clear_bar(self) -> None:
        """Remove the bar, if there is one."""
        with self._lock:
            if self._has_bar:
                self._has_bar = False
                _write_stderr(f"{_TO_LINE_START}{_CLEAR_TO_END}")

    def write(self, file: BinaryIO, data: Any) -> int:
        """Write results to the terminal."""
        with self._lock:
            self.clear_bar()
            written = file.write(data)
            file.flush()
            if written:
                self._has_text = bytes(data[-1:]) != b"\n"
            return written


last_line: Final = _LastLine()


def terminal_width(stream: TextIO) -> int | None:
    """The columns of the terminal that a stream writes to; ``COLUMNS`` precedes them. None if both are unknown."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns):
        return int(columns)
    try:
        return os.get_terminal_size(stream.fileno()).columns or None
    except (OSError, ValueError):
        return None


def table_width(format_name: str, out: Path | None, width: int | None) -> int | None:
    """The width of a report for readers: as asked, or that of the terminal that shows it; None for the usual one.

    Files and pipes have the usual width, so that their bytes do not depend on the environment.
    """
    on_terminal = (out is None or str(out) == "-") and sys.stdout.isatty()
    if width is None and format_name == "table" and on_terminal:
        return terminal_width(sys.stdout)
    return width


_command: Final = SimpleNamespace(is_quiet=False)
"""Whether the command in progress has ``--quiet``; for all threads."""


@contextmanager
def quietly(is_quiet: bool) -> Iterator[None]:
    """A command that has ``--quiet``, or has not."""
    before, _command.is_quiet = _command.is_quiet, is_quiet
    try:
        yield
    finally:
        _command.is_quiet = before


def say(message: str) -> None:
    """Write a message of one line to stderr, and to the log of ``--log``, if there is one.

    Control characters, which names of files and identifiers may bring into it, are escaped, and marked options named
    as on the command line (:func:`swsearch.words.option`).
    """
    message = note(message)
    last_line.clear_bar()
    _write_stderr(f"swsearch: {message}\n")


def inform(message: str) -> None:
    """Say a message that ``--quiet`` keeps from stderr."""
    (note if _command.is_quiet else say)(message)


def note(message: str) -> str:
    """Write a message to the log alone; returns it as :func:`say` writes it."""
    message = as_options(one_line(message))
    append(message, _LEVELS.get(message.partition(":")[0], logging.INFO))
    return message


def _write_stderr(text: str) -> None:
    """Write to stderr; a closed or failing stderr does not end the command."""
    with suppress(OSError, ValueError):
        sys.stderr.write(text)
        sys.stderr.flush()


class _ClosedStdout(io.TextIOBase):
    """Stands for a closed stdout: a command that writes to it ends with an error, as the programs of coreutils do."""

    def write(self, _text: str) -> int:
        raise InputError("stdout is closed; redirect it")


def open_closed_streams() -> None:
    """Replace a closed stdin, stdout or stderr by the null device.

    Otherwise, the next file that is opened would have the descriptor of the closed stream, and code that writes to the
    stream by its descriptor would write to the file; and Python prints the text for a closed stderr to stdout.
    ``sys.stdin`` remains None, and what is written to a closed stdout is an error (:class:`_ClosedStdout`). All text is
    UTF-8 in every locale, and file names that are not UTF-8 are written unchanged.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # uses the lowest free descriptor, which is this one
    if sys.stdout is None:
        sys.stdout = _ClosedStdout()
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8", errors="surrogateescape")  # noqa: SIM115
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(encoding="utf-8", errors="surrogateescape")


@contextmanager
def result_stream(path: Path | None, *, binary: bool = False, option: str = "--out") -> Iterator[TextIO]:
    r"""A text stream for results: stdout if ``path`` is None or ``-``, else a file that one rename makes visible.

    Text is UTF-8 with ``\n`` line ends, and header bytes that are not UTF-8 are written as they were read. ``binary``
    results are written to the stream's ``buffer``; text is compressed if the name of the file has a compression suffix.
    If the block raises, no new file remains and an existing one is unchanged. Messages name ``option``.

    Raises
    ------
    InputError
        The file cannot be created, stdout is closed, or ``binary`` results would be written to a terminal or archive.
    OutputClosed
        The reader of stdout has closed it, for example ``head``.
    """
    if path is None or str(path) == "-" or descriptor_of(path) == 1:
        registry().write(option, "-")
        with _standard_output(binary=binary) as stream:
            yield stream
        return
    if binary:
        refuse_compressed(path, "--out", "these results are binary and compressed in themselves")
    with text_file(path, option) as stream:
        yield stream


@contextmanager
def _standard_output(*, binary: bool) -> Iterator[TextIO]:
    if isinstance(sys.stdout, _ClosedStdout):
        raise InputError("stdout is closed; give --out FILE, or redirect stdout")
    is_terminal = sys.stdout.isatty()
    if binary and is_terminal:
        raise InputError("these results are binary and stdout is a terminal; give --out FILE, or redirect stdout")
    sys.stdout.flush()
    if not hasattr(sys.stdout, "buffer"):  # a program that calls this one has replaced stdout by a text stream
        yield sys.stdout
        return
    sink: Any = _Stdout(sys.stdout.buffer, is_terminal)
    stream = io.TextIOWrapper(
        cast(BinaryIO, sink), encoding="utf-8", errors="surrogateescape", newline="\n", line_buffering=is_terminal
    )
    try:
        with writing_to("stdout"):
            yield stream
            stream.flush()
    finally:
        with suppress(OSError, OutputClosed):
            stream.flush()  # what was written before an error is not lost
        sink.is_deaf = True
        stream.detach()


class _Stdout(io.BufferedIOBase):
    """Standard output as bytes; raises :class:`OutputClosed` if its reader has closed it, and removes the bar first."""

    def __init__(self, file: BinaryIO, is_terminal: bool) -> None:
        self._file = file
        self._is_terminal = is_terminal
        self.is_deaf = False
        """Whether further data from the layers above is discarded."""

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        if self.is_deaf:
            return len(data)
        try:
            return last_line.write(self._file, data) if self._is_terminal else self._file.write(data)
        except BrokenPipeError as error:
            raise OutputClosed from error

    def flush(self) -> None:
        if self.is_deaf:
            return
        try:
            self._file.flush()
        except BrokenPipeError as error:
            raise OutputClosed from error


PLAIN_INTERVAL_SECONDS: Final = 5.0
LONGEST_INTERVAL_SECONDS: Final = 300.0
"""The interval between plain lines is a hundredth of the elapsed time, within these limits."""
BAR_INTERVAL_SECONDS: Final = 0.1
SHORTEST_BAR: Final = 5
LONGEST_BAR: Final = 40
"""Largest width of the bar, in characters."""


class ProgressReport:
    """Reports how many of ``total`` units are complete, the rate, and the remaining time; a context manager.

    Parameters
    ----------
    what : str
        The word before the numbers, such as ``searching``.
    total : int
        Number of all units; 0 if it is unknown.
    unit : str
        Name of the unit of the rate, ``scale`` units per second, such as ``GCUPS``.
    scale : float
        Number of units in one ``unit``.
    """

    def __init__(self, what: str, total: int, unit: str, scale: float) -> None:
        self._what = what
        self._total = total
        self._unit = unit
        self._scale = scale
        self._done = 0
        self._note = ""
        self._began = self._said = self._drawn = time.monotonic()
        self._has_bar = not _command.is_quiet and sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        last_line.clear_bar()

    def note(self, text: str) -> None:
        """Add a note to the line, such as ``3 of 20 queries done``; print a line when the interval is over."""
        self._note = text
        self.reach(self._done)

    def advance(self, units: int) -> None:
        """Add ``units`` to the number of complete units; print a line when the interval is over."""
        self.reach(self._done + units)

    def reach(self, units: int) -> None:
        """Set the number of complete units; print a line when the interval is over."""
        is_first = not self._done
        self._done = units
        now = time.monotonic()
        if self._has_bar and (is_first or now - self._drawn >= BAR_INTERVAL_SECONDS):
            self._drawn = now
            last_line.show_bar(self._bar((terminal_width(sys.stderr) or 80) - 1))
        if now - self._said >= min(max(PLAIN_INTERVAL_SECONDS, (now - self._began) / 100), LONGEST_INTERVAL_SECONDS):
            self._said = now
            share = f"{100 * self._done / self._total:.1f} % done, " if self._total else ""
            (note if self._has_bar else inform)(f"{self._heading()}: {share}{self._figures()}")

    def _bar(self, width: int) -> str:
        """Heading, bar and numbers in at most ``width`` characters, so that the terminal does not wrap the line."""
        left = width - len(self._heading()) - len(self._figures()) - 4
        bar = ""
        if self._total and left >= SHORTEST_BAR:
            length = min(left, LONGEST_BAR)
            done = min(length, length * self._done // self._total)
            bar = f"[{'=' * done}{' ' * (length - done)}] "
        return f"{self._heading()} {bar}{self._figures()}"[: max(width, 0)]

    def _heading(self) -> str:
        return f"{self._what}, {self._note}" if self._note else self._what

    def _figures(self) -> str:
        seconds = time.monotonic() - self._began
        rate = self._done / seconds if seconds > 0 else 0.0
        left = f", {duration((self._total - self._done) / rate)} left" if self._total and rate > 0 else ""
        return f"{rate / self._scale:.1f} {self._unit}{left}"
