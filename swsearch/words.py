"""Text of messages and reports: singular and plural, long values abbreviated, no secrets, no control characters."""

from __future__ import annotations

import re
from typing import Final

_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_SECRETS: Final = (
    (re.compile(r"(\w://[^\s:/@]*:)(?:[^\s/]+|[^\s@]+)@"), r"\1***@"),
    (re.compile(r"(\bhttps?://)[^\s/@:]+@"), r"\1***@"),
    (re.compile(r"(?i)([?&](?:[\w-]*(?:password|token|signature|credential|secret|key)|sig)=)[^\s&'\"]+"), r"\1***"),
    (re.compile(r"\b(sws_|share-)[A-Za-z0-9_-]{20,}"), r"\1..."),
)  # fmt: skip
"""Passwords in URLs, the users of web addresses, secret parameters of URLs; tokens and keys of links of a service."""


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


def without_secrets(text: str) -> str:
    """A command line or a message without its passwords and tokens; of a service's tokens, the first letters stay.

    >>> without_secrets("swsearch runs list --store postgresql://me:secret@host/hits")
    'swsearch runs list --store postgresql://me:***@host/hits'
    >>> without_secrets("https://me@host/?X-Amz-Signature=12ab&x=1"), without_secrets("sws_0123456789abcdefghijkl")
    ('https://***@host/?X-Amz-Signature=***&x=1', 'sws_...')
    """
    for pattern, instead in _SECRETS:
        text = pattern.sub(instead, text)
    return text


def a_kind(value: object) -> str:
    """The name of a value's type with its article, for messages.

    >>> a_kind(7), a_kind(None), a_kind([1])
    ('an int', 'None', 'a list')
    """
    if value is None:
        return "None"
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"
