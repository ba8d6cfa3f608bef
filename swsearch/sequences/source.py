"""Inputs that can be read several times from the beginning: files, temporary copies of pipes and standard input, texts.

:func:`seekable` gives such an input for a path, :func:`held` one that stays the same file while it is read, and
:func:`text_lines` the lines of a text file, compressed or not, with arbitrary bytes.

A pipe can be read only once, but a reader reads the first bytes to detect the format, and reads the complete file again
to locate an error. Therefore a pipe is copied to an unnamed temporary file, which the operating system removes when the
process ends, for any reason.
"""

from __future__ import annotations

import io
import os
import re
import stat
import sys
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO, Final

from swsearch.errors import InputError
from swsearch.file_registry import registry
from swsearch.sequences.archives import MAGIC_BYTES, archive_format, decompressed

STDIN: Final = "-"
_NAMES_OF_STDIN: Final = (STDIN, "/dev/stdin")
_BLOCK_BYTES: Final = 1 << 20
_SEQUENCE_STARTS: Final = (b">", b"@", b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd")
BEFORE_TEXT: Final = b"\xef\xbb\xbf \t\r\n"
"""A byte order mark and white space."""


class HeldFile(os.PathLike[str]):
    """An open file, as a path that leads to this file as long as the object exists, even if its name does not.

    ``given`` is the path that was opened, ``-`` for standard input. The ``descriptor`` must not be closed.
    """

    def __init__(self, given: str, descriptor: int) -> None:
        self.given = given
        self.descriptor = descriptor
        weakref.finalize(self, os.close, descriptor)

    def __fspath__(self) -> str:
        return f"/dev/fd/{self.descriptor}"

    @property
    def label(self) -> str:
        """What the catalogue of a database calls the file."""
        return os.path.basename(self.given)

    def opened(self) -> BinaryIO:
        """A stream of the file from its beginning."""
        return open(self, "rb")


class TextInMemory(os.PathLike[str]):
    """The content of a file that need not exist; as a path, it has the name ``given``, by which messages call it."""

    def __init__(self, given: str, content: bytes) -> None:
        self.given = given
        self._content = content

    def __fspath__(self) -> str:
        return self.given

    def opened(self) -> BinaryIO:
        """A stream of the content from its beginning."""
        return io.BytesIO(self._content)


class Spooled(HeldFile):
    """The copy of a pipe or of standard input; if that was a file, it is not :attr:`is_pipe`."""

    def __init__(self, given: str, source: BinaryIO) -> None:
        self.is_pipe = not _is_file(source)
        with tempfile.TemporaryFile(prefix="swsearch-pipe-") as spool:
            while block := source.read(_BLOCK_BYTES):
                try:
                    spool.write(block)
                except OSError as error:  # of the folder: the pipe is not the cause
                    raise InputError(
                        f"{tempfile.gettempdir()} cannot take a copy of a pipe: {error.strerror}"
                    ) from error
            spool.flush()
            super().__init__(given, os.dup(spool.fileno()))

    @property
    def is_cut(self) -> bool:
        """Whether the text of a pipe ends within a line, as the text of a program that failed usually does.

        The end of a compressed text is checked by its decompression, and that of FASTQ by the length of the qualities.
        """
        size = os.fstat(self.descriptor).st_size
        start, end = os.pread(self.descriptor, MAGIC_BYTES, 0), os.pread(self.descriptor, 1, max(size - 1, 0))
        is_text = not start.startswith(b"@") and archive_format(start) is None
        return self.is_pipe and is_text and end not in (b"", b"\n", b"\r")


def _is_file(source: BinaryIO) -> bool:
    """Whether a stream is a regular file, or bytes in memory, which also end where they should."""
    try:
        return stat.S_ISREG(os.fstat(source.fileno()).st_mode)
    except io.UnsupportedOperation:
        return True


def seekable(path: str | os.PathLike[str]) -> str | os.PathLike[str]:
    """The path itself, or a copy of its content if it is a pipe, a terminal or standard input (``-``).

    A path that cannot be opened is returned unchanged; the reader then reports the error.

    Raises
    ------
    InputError
        Standard input is closed, the copy cannot be written, or the file is an output of the same command.
    """
    if isinstance(path, (HeldFile, TextInMemory)):
        return path
    given = os.fspath(path)
    registry().read(given)
    if given == STDIN:
        if sys.stdin is None:
            raise InputError("stdin is closed, so - cannot be read; name a file")
        return Spooled(given, sys.stdin.buffer)
    try:
        with open(given, "rb", buffering=0) as file:
            return path if file.seekable() else Spooled(given, file)
    except (OSError, ValueError):
        return path


def held(path: str | os.PathLike[str]) -> HeldFile:
    """The file at ``path``, open, or a copy of its content as from :func:`seekable`.

    Raises
    ------
    InputError
        The file cannot be opened, standard input is closed, or the copy cannot be written.
    """
    source = seekable(path)
    if isinstance(source, HeldFile):
        return source
    try:
        return HeldFile(os.fspath(path), os.open(path, os.O_RDONLY | os.O_CLOEXEC))
    except OSError as error:
        raise InputError(
            f"{shown_name(path)} cannot be read: {error.strerror or error}; choose another file"
        ) from error


def opened(source: str | os.PathLike[str]) -> BinaryIO:
    """A stream of a source from its beginning, which the caller closes."""
    return source.opened() if isinstance(source, (HeldFile, TextInMemory)) else open(source, "rb")


def is_sequence_file(path: str | os.PathLike[str]) -> bool:
    """Whether a path is that of a pipe, or of a file that begins like FASTA, FASTQ or an archive.

    A folder and a file of anything else are none. ``-`` is standard input. A pipe is not read.
    """
    name = os.fspath(path)
    if name == STDIN:
        return True
    try:
        if not stat.S_ISREG(kind := os.stat(name).st_mode):
            return not stat.S_ISDIR(kind)
        with open(name, "rb") as file:
            return file.read(_BLOCK_BYTES).lstrip(BEFORE_TEXT).startswith(_SEQUENCE_STARTS)
    except (OSError, ValueError):
        return False


def path_list(paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[str | os.PathLike[str]]:
    """One path or several ones, as a list."""
    return [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)


def given_name(path: str | os.PathLike[str]) -> str:
    """The path as the caller specified it; for an open file or a copy, the path that was opened."""
    return path.given if isinstance(path, HeldFile) else os.fspath(path)


def shown_name(path: str | os.PathLike[str]) -> str:
    """The name of a source in messages: the path as specified, or ``<stdin>`` for ``-``."""
    name = given_name(path)
    return "<stdin>" if name == STDIN else name


def source_name(path: str | os.PathLike[str]) -> str:
    """The name of a source without its folder; ``<stdin>`` for standard input and ``<pipe>`` for ``/dev/fd/63``."""
    name = given_name(path)
    if name in _NAMES_OF_STDIN:
        return "<stdin>"
    if name.startswith(("/dev/fd/", "/proc/self/fd/")):
        return "<pipe>"
    return path.label if isinstance(path, HeldFile) else os.path.basename(name)


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
            shown = shown_name(STDIN) if name in _NAMES_OF_STDIN else shown_name(path)
            raise InputError(f"{shown} is named twice and can be read only once; give a file for one of them")
        seen.add((found.st_dev, found.st_ino))


MAX_LINE_BYTES: Final = 1 << 28
"""Length of the longest line, in bytes. It is bounded because lines are in memory."""
_WHOLE_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)
_READ_BYTES: Final = 1 << 16


@contextmanager
def text_stream(path: str | os.PathLike[str], name: str) -> Iterator[io.BufferedReader]:
    """The bytes of a text file, decompressed; parameters and errors are those of :func:`text_lines`."""
    source = seekable(path)  # the copy of a pipe exists as long as this object
    try:
        raw = opened(source)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{name}: {reason}; choose another file") from error
    with raw:
        yield io.BufferedReader(_Text(raw, name), _READ_BYTES)


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
    with text_stream(path, name) as stream:
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
        raise ValueError(f"{text if len(text) <= 40 else text[:37] + '...'!r} is not a whole number")
    return int(text)


class _Text(io.RawIOBase):
    """A decompressed file whose damage raises an :class:`InputError`."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._name = name
        try:
            start = file.read(MAGIC_BYTES)
            file.seek(0)
            self._file = decompressed(file, archive_format(start))
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
