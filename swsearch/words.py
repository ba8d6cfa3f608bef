"""Text of messages and reports: singular and plural, and abbreviation of values that may be longer than a line."""

from __future__ import annotations

import re
from typing import Final

_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def counted(n: int, noun: str, plural: str | None = None) -> str:
    """A number with its noun: ``noun`` for 1, otherwise ``plural`` or, by default, ``noun`` with an s.

    >>> counted(1, "sequence"), counted(1500, "protein sequence"), counted(0, "query", "queries")
    ('1 sequence', '1,500 protein sequences', '0 queries')
    """
    return f"{n:,} {noun if n == 1 else plural or f'{noun}s'}"


def size_in_bytes(n_bytes: int) -> str:
    """A size with its unit, a power of 1,000.

    >>> size_in_bytes(512), size_in_bytes(40_960), size_in_bytes(1_250_000_000)
    ('512 bytes', '41 kB', '1.25 GB')
    """
    if n_bytes < 1000:
        return counted(n_bytes, "byte")
    power = min(4, (len(str(n_bytes)) - 1) // 3)
    return f"{n_bytes / 1000**power:.3g} {('kB', 'MB', 'GB', 'TB')[power - 1]}"


def shortened(text: str, most: int = 60) -> str:
    """A text from a file or an option for a message: at most ``most`` characters, followed by an ellipsis if truncated.

    >>> shortened("sp|P02232|LGB1_VICFA"), shortened("MKLV" * 1000, 8)
    ('sp|P02232|LGB1_VICFA', 'MKLVMKLV…')
    """
    return text if len(text) <= most else text[:most] + "…"


def quoted(text: str, most: int = 40) -> str:
    """The result of :func:`shortened` in quotes, with escapes for characters that cannot be printed on a line.

    >>> quoted("0;1"), quoted("1" * 100, 10)
    ("'0;1'", "'1111111111…'")
    """
    return repr(shortened(text, most))


def one_line(text: str) -> str:
    r"""A message with escapes in place of its control characters and line separators.

    >>> print(one_line("r2\r x, \x1b[2J and \N{LINE SEPARATOR}"))
    r2\r x, \x1b[2J and \u2028
    """
    return _CONTROL.sub(lambda found: repr(found.group())[1:-1], text)


def first_word(header: str) -> str:
    """The identifier of a header for a message, ``unnamed`` if it is empty.

    >>> first_word("P1 a protein"), first_word(" ")
    ('P1', 'unnamed')
    """
    return shortened(header.split(None, 1)[0]) if header.strip() else "unnamed"
