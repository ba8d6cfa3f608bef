"""Where a command writes its results: stdout, or a file that appears whole or not at all."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from swsearch.errors import InputError, writing_to
from swsearch.output_files import descriptor_of, refuse_compressed, text_file


class OutputClosed(Exception):
    """Whoever read stdout reads no more."""


def say(message: str) -> None:
    """One line of talk, to stderr."""
    print(f"swsearch: {message}", file=sys.stderr, flush=True)


@contextmanager
def result_stream(path: Path | None, *, binary: bool = False) -> Iterator[TextIO]:
    r"""A text stream for results: stdout where ``path`` is None or ``-``, else a file made visible by one rename.

    Text is UTF-8 with ``\n`` line ends, and header bytes that are not UTF-8 are written as they were read. ``binary``
    results go to the stream's ``buffer``; text is compressed where the file's name says so. Where the block raises, no
    file is left and an older one stays as it was.

    Raises
    ------
    InputError
        The file cannot be created, or ``binary`` results would go to a terminal or into an archive.
    OutputClosed
        Nobody reads stdout any more, as after ``| head``.
    """
    if path is None or str(path) == "-" or descriptor_of(path) == 1:
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
    if binary:
        refuse_compressed(path, "--out", "these results are binary and compressed in themselves")
    with text_file(path, "--out") as stream:
        yield stream
