"""Inputs that can be read several times from the beginning: files, and temporary copies of pipes and standard input.

A pipe can be read only once, but a reader reads the first bytes to detect the format, and reads the complete file again
to locate an error. Therefore a pipe is copied to an unnamed temporary file, which the operating system removes when the
process ends, for any reason.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
import tempfile
import weakref
from collections.abc import Sequence
from typing import BinaryIO, Final

from swsearch.errors import InputError

STDIN: Final = "-"
_BLOCK_BYTES: Final = 1 << 20


class Spooled(os.PathLike[str]):
    """The copy of a pipe, as a path that can be opened as long as the object exists.

    Attributes
    ----------
    given : str
        The path that was copied, ``-`` for standard input.
    """

    def __init__(self, given: str, source: BinaryIO) -> None:
        self.given = given
        with tempfile.TemporaryFile(prefix="swsearch-pipe-") as spool:
            shutil.copyfileobj(source, _Named(spool), _BLOCK_BYTES)
            spool.flush()
            self._descriptor = os.dup(spool.fileno())
        weakref.finalize(self, os.close, self._descriptor)

    def __fspath__(self) -> str:
        return f"/dev/fd/{self._descriptor}"


class _Named:
    """A temporary file whose error messages name its folder, because the pipe is not the cause of the errors."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, data: bytes) -> int:
        try:
            return self._file.write(data)
        except OSError as error:
            raise InputError(f"{tempfile.gettempdir()} cannot take a copy of a pipe: {error.strerror}") from error


def seekable(path: str | os.PathLike[str]) -> str | os.PathLike[str]:
    """The path itself, or a copy of its content if it is a pipe, a terminal or standard input (``-``).

    A path that cannot be opened is returned unchanged; the reader then reports the error.

    Raises
    ------
    InputError
        Standard input is closed, or the copy cannot be written.
    """
    if isinstance(path, Spooled):
        return path
    given = os.fspath(path)
    if given == STDIN:
        return Spooled(given, standard_input())
    try:
        with open(given, "rb", buffering=0) as file:
            return path if file.seekable() else Spooled(given, file)
    except (OSError, ValueError):
        return path


def standard_input() -> BinaryIO:
    """Standard input as bytes.

    Raises
    ------
    InputError
        Standard input is closed.
    """
    if sys.stdin is None:
        raise InputError("stdin is closed, so - cannot be read; name a file")
    return sys.stdin.buffer


def given_name(path: str | os.PathLike[str]) -> str:
    """The path as the caller specified it; for a copy, the path that was copied."""
    return path.given if isinstance(path, Spooled) else os.fspath(path)


def shown_name(path: str | os.PathLike[str]) -> str:
    """The name of a source in messages: the path as specified, or ``<stdin>`` for ``-``."""
    name = given_name(path)
    return "<stdin>" if name == STDIN else name


def source_name(path: str | os.PathLike[str]) -> str:
    """The name of a source without its folder; ``<stdin>`` for standard input and ``<pipe>`` for ``/dev/fd/63``."""
    name = given_name(path)
    if name in (STDIN, "/dev/stdin"):
        return "<stdin>"
    return "<pipe>" if name.startswith(("/dev/fd/", "/proc/self/fd/")) else os.path.basename(name)


def refuse_repeated_pipes(paths: Sequence[str | os.PathLike[str]]) -> None:
    """Refuse a pipe that occurs twice: its second reader would receive no data, or wait forever.

    Raises
    ------
    InputError
        A pipe occurs twice.
    """
    seen: set[tuple[int, int]] = set()
    for path in paths:
        name = given_name(path)
        try:
            found = os.stat(0 if name == STDIN else name)
        except (OSError, ValueError):
            continue
        # Reading from ``-`` moves the file position of standard input, even if it is a regular file.
        if not stat.S_ISFIFO(found.st_mode) and name != STDIN:
            continue
        if (found.st_dev, found.st_ino) in seen:
            raise InputError(f"{shown_name(path)} is named twice and can be read but once; give a file for one of them")
        seen.add((found.st_dev, found.st_ino))
