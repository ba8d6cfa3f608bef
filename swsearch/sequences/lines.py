"""Reader of the lines of text files: from disk, pipes or standard input, compressed or not, with arbitrary bytes."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, BinaryIO, Final

from swsearch.errors import InputError
from swsearch.sequences.archives import MAGIC_BYTES, archive_format, decompressed
from swsearch.sequences.source import seekable

MAX_LINE_BYTES: Final = 1 << 28
"""Length of the longest line, in bytes. It is bounded because lines are in memory."""
_WHOLE_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)
_BLOCK_BYTES: Final = 1 << 16


def text_lines(path: str | os.PathLike[str], name: str) -> Iterator[str]:
    """The lines of a text file with their line ends; bytes that are not UTF-8 become surrogate escapes.

    Parameters
    ----------
    path : path
        ``-`` is standard input.
    name : str
        The file's name in messages.

    Raises
    ------
    InputError
        The file cannot be read, its archive is damaged, or a line has more than 268,435,456 bytes.
    """
    with ExitStack() as stack:
        source = seekable(path)  # the copy of a pipe exists as long as this object
        try:
            raw = stack.enter_context(open(source, "rb"))
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise InputError(f"{name}: {reason}; choose another file") from error
        stream = io.BufferedReader(_Text(raw, name), _BLOCK_BYTES)
        number = 0
        while line := stream.readline(MAX_LINE_BYTES + 1):
            number += 1
            if len(line) > MAX_LINE_BYTES:
                raise InputError(f"{name}, line {number}: more than {MAX_LINE_BYTES:,} bytes; break the line")
            yield line.decode("utf-8", "surrogateescape")


def whole_number(text: str) -> int:
    """The integer in a field of a text file: an optional sign and ASCII digits.

    ``int`` alone would also accept ``1_000`` and digits of other scripts.

    Raises
    ------
    ValueError
        The field is not of this form, or has more than 18 digits.

    >>> whole_number("-12")
    -12
    """
    if _WHOLE_NUMBER.fullmatch(text) is None:
        raise ValueError(f"{text if len(text) <= 40 else text[:37] + '...'!r} is no whole number")
    return int(text)


class _Text(io.RawIOBase):
    """A decompressed file whose damage raises an :class:`InputError`. The file need not be seekable."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._name = name
        try:
            start = file.read(MAGIC_BYTES)
            self._file = decompressed(_Begun(start, file), archive_format(start))
        except Exception as error:
            raise self._named(error) from error

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer)
        try:
            block = self._file.read(len(view))
        except Exception as error:  # each decompressor has its own exceptions
            raise self._named(error) from error
        view[: len(block)] = block
        return len(block)

    def _named(self, error: Exception) -> InputError:
        if isinstance(error, OSError) and error.strerror:
            return InputError(f"{self._name}: {error.strerror}; choose another file")
        return InputError(f"{self._name}: the archive is damaged or cut short ({error}); fetch it again")


class _Begun(io.RawIOBase):
    """A file from its beginning, of which the first bytes (``start``) have already been read."""

    def __init__(self, start: bytes, rest: BinaryIO) -> None:
        self._start = start
        self._rest = rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer)
        block = self._start[: len(view)] or self._rest.read(len(view))
        self._start = self._start[len(view) :]
        view[: len(block)] = block
        return len(block)
