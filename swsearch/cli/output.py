"""Where a command writes its results: stdout, or a file that appears whole or not at all."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from swsearch.errors import InputError, writing_to


class OutputClosed(Exception):
    """Whoever read stdout reads no more."""


def say(message: str) -> None:
    """One line of talk, to stderr."""
    print(f"swsearch: {message}", file=sys.stderr, flush=True)


@contextmanager
def result_stream(path: Path | None, *, binary: bool = False) -> Iterator[TextIO]:
    r"""A text stream for results: stdout where ``path`` is None or ``-``, else a file made visible by one rename.

    Text is UTF-8 with ``\n`` line ends, and header bytes that are not UTF-8 are written as they were read. ``binary``
    results go to the stream's ``buffer``. Where the block raises, no file is left and an older one stays as it was.

    Raises
    ------
    InputError
        The file cannot be created, or ``binary`` results would go to a terminal.
    OutputClosed
        Nobody reads stdout any more, as after ``| head``.
    """
    if path is None or str(path) == "-":
        reconfigure = getattr(sys.stdout, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding="utf-8", errors="surrogateescape", newline="\n")
        if binary and sys.stdout.isatty():
            raise InputError("these results are binary and stdout is a terminal; give --out FILE, or redirect stdout")
        try:
            with writing_to("stdout"):
                yield sys.stdout
                sys.stdout.flush()
        except BrokenPipeError as error:
            raise OutputClosed from error
        return
    if path.exists() and not path.is_file():
        # A device or a pipe, /dev/null say, cannot be replaced by a rename and need not be.
        with (
            writing_to(str(path)),
            path.open("w", encoding="utf-8", errors="surrogateescape", newline="\n") as stream,
        ):
            yield stream
        return
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.unfinished")
    try:
        stream = unfinished.open("w", encoding="utf-8", errors="surrogateescape", newline="\n")
    except OSError as error:
        raise InputError(f"--out {path}: {error.strerror}; choose another file") from error
    try:
        with writing_to(str(path)), stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
