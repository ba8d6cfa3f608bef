"""Text files by lines: from disk, pipes or standard input, compressed or not, any bytes."""

from __future__ import annotations

import lzma
import os
import zlib
from collections.abc import Iterator

from xopen import xopen

from swsearch.errors import InputError
from swsearch.sequences.source import seekable


def text_lines(path: str | os.PathLike[str], name: str) -> Iterator[str]:
    """The lines of a text file with their ends, bytes that are not UTF-8 as surrogate escapes; ``-`` is standard input.

    Parameters
    ----------
    path : path
    name : str
        What messages call the file.

    Raises
    ------
    InputError
        The file cannot be read, or its archive is damaged.
    """
    source = seekable(path)  # held until the end: a pipe's copy goes with it
    try:
        with xopen(os.fspath(source), "rb", threads=0) as stream:
            for line in stream:
                yield line.decode("utf-8", "surrogateescape")
    except OSError as error:
        raise InputError(f"{name}: {error.strerror or error}; choose another file") from error
    except (EOFError, zlib.error, lzma.LZMAError) as error:
        raise InputError(f"{name}: the archive is damaged or cut short ({error}); fetch it again") from error
