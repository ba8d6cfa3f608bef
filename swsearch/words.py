"""Text of messages and reports: singular and plural, long values abbreviated, no secrets, no control characters."""

from __future__ import annotations

import os
import re
from ast import literal_eval
from typing import Final

_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_SECRETS: Final = (
    (re.compile(r"(\w://[^\s:/@]*:)(?:[^\s/]+|[^\s@]+)@"), r"\1***@"),
    (re.compile(r"(\bhttps?://)[^\s/@:]+@"), r"\1***@"),
    (re.compile(r"(?i)([?&](?:[\w-]*(?:password|token|signature|credential|secret|key)|sig)=)[^\s&'\"]+"), r"\1***"),
    (re.compile(r"\b(sws_|share-)[A-Za-z0-9_-]{20,}"), r"\1..."),
)  # fmt: skip
"""Passwords in URLs, the users of web addresses, secret parameters of URLs; tokens and keys of links of a service."""

_OPTION: Final = re.compile("\ue000([^\ue001=|]*)\\|([^\ue001=]*)(?:=([^\ue001]*))?\ue001")
"""An option in a message: its name in Python, its name on the command line, and its value, as Python writes it."""
ABSENT: Final = object()
"""In place of the value of an option that a message only names."""


def option(name: str, value: object = ABSENT, *, flag: str = "") -> str:
    """An option, or an argument of a function, in the message of an error, perhaps with its value.

    The message names it in the words of the caller: :func:`as_arguments` for Python, :func:`as_options` for the command
    line.

    Parameters
    ----------
    name : str
        The name of the argument.
    value : object, optional
        Its value; True for an option that takes none.
    flag : str
        The option of the command line, if it is not the name with dashes.

    >>> message = f"{option('top', 0)}: at least 1; {option('bound', False, flag='--no-bound')}, {option('mask_mode')}"
    >>> as_options(message), as_arguments(message)
    ('--top 0: at least 1; --no-bound, --mask-mode', 'top=0: at least 1; bound=False, mask_mode')
    >>> as_options(option("ties", "all")), as_arguments(option("ties", "all")), as_options(option("mask", "a b"))
    ('--ties all', "ties='all'", "--mask 'a b'")
    """
    flag = flag or "--" + name.replace("_", "-")
    return f"\ue000{name}|{flag}\ue001" if value is ABSENT else f"\ue000{name}|{flag}={_shown(value)}\ue001"


def _shown(value: object) -> str:
    """A value as Python writes it, abbreviated if it is long."""
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if isinstance(value, str):
        return quoted(value, 200)
    if isinstance(value, float) and float(short := f"{value:g}") == value:
        return short
    return shortened(repr(value), 200)


def as_arguments(message: str) -> str:
    """A message in which the options of :func:`option` are arguments of a function."""
    return _OPTION.sub(lambda found: found[1] if found[3] is None else f"{found[1]}={found[3]}", message)


def as_options(message: str) -> str:
    """A message in which the options of :func:`option` are those of the command line."""

    def spelled(found: re.Match[str]) -> str:
        flag, value = found[2], found[3]
        if value in (None, "True", "False"):
            return flag
        if re.fullmatch(r"\[[\d, ]*\]", value):
            value = value[1:-1].replace(" ", "")
        elif value[:1] in "'\"" and not re.search(r"[\s\\]", value):
            value = literal_eval(value) or value
        return f"{flag} {value}"

    return _OPTION.sub(spelled, message)


def named_twice(problem: str, content: str, source: str) -> str:
    """The message that a source, such as a database, must not be given twice, since all its content would count twice.

    >>> named_twice("a.db is named twice", "subjects", "database")
    'a.db is named twice; its subjects would count twice: name each database once'
    """
    return f"{problem}; its {content} would count twice: name each {source} once"


def duration(seconds: float) -> str:
    """A duration as text.

    >>> duration(3.2), duration(75), duration(7320)
    ('3 s', '1 min 15 s', '2 h 2 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


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
